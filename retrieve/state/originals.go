package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"ibid/retrieve"
)

// Originals stores the uploaded files of a library on a server, by the id of the document or
// archive, so that every process that uses the library can read them.
type Originals struct{ s *Store }

// Originals returns the library's uploaded files, or nil for a data directory, which stores them as
// files.
func (s *Store) Originals() *Originals {
	if s.dir != "" {
		return nil
	}
	return &Originals{s}
}

// originalPart is the largest number of bytes in a row. Until FinishPut, the parts of a received
// file have the numbers -1, -2 and so on.
const originalPart = 1 << 20

// layOutOriginals creates the table of originals in a schema if it is missing. Copies in a data
// directory do not have the table. Its rows are verified by the digests of their documents.
func (t *tx) layOutOriginals() {
	if value[bool](t, `SELECT EXISTS (SELECT 1 FROM pg_tables
		WHERE schemaname = convert_from(?, 'UTF8') AND tablename = 'originals')`, t.s.schema) {
		return
	}
	t.exec(t.s.dialect.ddl(`CREATE TABLE ibid.originals (
		key  BYTES NOT NULL, -- digest of the id
		part INT NOT NULL,
		root BYTES NOT NULL,
		id   BYTES NOT NULL,
		data BYTES NOT NULL,
		PRIMARY KEY (key, part))`))
	t.exec(`ALTER TABLE ibid.originals ALTER COLUMN data SET STORAGE EXTERNAL`)
}

// Hold waits until no other process holds the id, and holds it until release is called. The
// returned context ends early only if the hold is lost.
func (o *Originals) Hold(ctx context.Context, id string) (_ context.Context, release func(), err error) {
	return retrieve.HoldJob(ctx, context.WithoutCancel(ctx), o.s.Ledger(), "upload "+id, "upload", nil)
}

// Put stores a received file durably. An earlier file with the same id remains until FinishPut.
func (o *Originals) Put(ctx context.Context, id string, content io.ReadSeeker) error {
	root, _, _ := strings.Cut(id, "/")
	return inTransaction(ctx, o.s.update, func(t *tx) {
		t.lock("original " + id)
		t.exec(`DELETE FROM ibid.originals WHERE key = ? AND part < 0`, retrieve.DigestOf(id))
		_, err := content.Seek(0, io.SeekStart) // the transaction may run again
		check(err)
		buffer := make([]byte, originalPart)
		for part := -1; ; part-- {
			n, err := io.ReadFull(content, buffer)
			if n > 0 || part == -1 {
				t.exec(`INSERT INTO ibid.originals (key, part, root, id, data) VALUES (?, ?, ?, ?, ?)`,
					retrieve.DigestOf(id), part, root, id, buffer[:n])
			}
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				return
			}
			check(err)
		}
	}, "storing the file of %s", id)
}

// FinishPut replaces the stored file with the received one if keep is set, and otherwise discards the
// received file.
func (o *Originals) FinishPut(ctx context.Context, id string, keep bool) error {
	return inTransaction(ctx, o.s.update, func(t *tx) {
		t.lock("original " + id)
		key := retrieve.DigestOf(id)
		if !keep {
			t.exec(`DELETE FROM ibid.originals WHERE key = ? AND part < 0`, key)
			return
		}
		t.exec(`DELETE FROM ibid.originals WHERE key = ? AND part >= 0`, key)
		if t.exec(`UPDATE ibid.originals SET part = -1 - part WHERE key = ?`, key) == 0 {
			check(errors.New("another server has replaced it in the meantime: send it again"))
		}
	}, "storing the file of %s", id)
}

// IDs lists the ids of the stored files, or, if received is set, of the files that await FinishPut.
func (o *Originals) IDs(ctx context.Context, received bool) (ids []string, err error) {
	err = inTransaction(ctx, o.s.view, func(t *tx) {
		ids = column[string](t, `SELECT id FROM ibid.originals WHERE part = CASE WHEN ? <> 0 THEN -1 ELSE 0 END ORDER BY id`, received)
	}, "listing the uploaded files")
	return ids, err
}

// Find returns the first of the ids whose file is stored or received. If there is no such file, the
// error wraps [fs.ErrNotExist].
func (o *Originals) Find(ctx context.Context, ids ...string) (found string, err error) {
	err = o.s.view(ctx, func(t *tx) {
		for _, id := range ids {
			if value[bool](t, `SELECT EXISTS (SELECT 1 FROM ibid.originals WHERE key = ?)`, retrieve.DigestOf(id)) {
				found = id
				return
			}
		}
		check(fmt.Errorf("finding the file of %s: %w", ids[0], fs.ErrNotExist))
	})
	return found, err
}

// Read returns a stored file or, if received is set, a file that awaits FinishPut. If there is no
// such file, the error wraps [fs.ErrNotExist].
func (o *Originals) Read(ctx context.Context, id string, received bool) (data []byte, err error) {
	err = inTransaction(ctx, o.s.view, func(t *tx) {
		data = nil
		parts := column[[]byte](t, `SELECT data FROM ibid.originals WHERE key = ? AND (part < 0) = (? <> 0) ORDER BY abs(part)`,
			retrieve.DigestOf(id), received)
		if len(parts) == 0 {
			check(fs.ErrNotExist)
		}
		for _, part := range parts {
			data = append(data, part...)
		}
	}, "reading the file of %s", id)
	return data, err
}

// Remove deletes the stored and the received file with the id, if they exist.
func (o *Originals) Remove(ctx context.Context, id string) error {
	return inTransaction(ctx, o.s.update, func(t *tx) {
		t.exec(`DELETE FROM ibid.originals WHERE key = ?`, retrieve.DigestOf(id))
	}, "deleting the file of %s", id)
}

// Size returns the total size in bytes of all files except one.
func (o *Originals) Size(ctx context.Context, without string) (bytes int64, err error) {
	err = inTransaction(ctx, o.s.view, func(t *tx) {
		bytes = value[int64](t, `SELECT coalesce(sum(octet_length(data)), 0)::bigint FROM ibid.originals WHERE key <> ?`,
			retrieve.DigestOf(without))
	}, "measuring the uploaded files")
	return bytes, err
}
