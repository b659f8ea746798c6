package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"ibid/retrieve"
)

// migrate replaces the file of an earlier layout by one of today's. The earlier one
// is kept under another name.
func (s *Store) migrate(ctx context.Context, opts Options) (err error) {
	if s.readOnly {
		return fmt.Errorf("%w, and it cannot be written: open it once where it can", errEarlier)
	}
	if err := s.disconnect(); err != nil {
		return err
	}
	if err := lockFile(s.lock, true); err != nil {
		return fmt.Errorf("%w, and another process uses it: end that, and start again to have it brought up to date: %w", errEarlier, err)
	}
	defer func() { err = errors.Join(err, lockFile(s.lock, false)) }()
	old := fileStore(s.place, Options{Wait: s.wait})
	if err := old.connect(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, old.disconnect()) }()
	source, err := old.sourceOf(ctx)
	if err != nil || source == "" {
		return err // another process was first
	}
	size, err := old.size(ctx)
	if err != nil {
		return err
	}
	if free, err := freeBytes(s.dir); err != nil {
		return err
	} else if free < size {
		return fmt.Errorf("%w, and bringing it up to date needs %.1f MB of free space in %s, which has %.1f MB: free some and start again",
			errEarlier, float64(size)/1e6, s.dir, float64(free)/1e6)
	}
	into, err := s.resume(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, into.disconnect()) }()
	m := migration{from: old, into: into, earlier: oldFile(), progress: opts.migrating(), most: opts.most()}
	if err := m.run(ctx); err != nil {
		if errors.Is(err, ErrDamaged) {
			err = fmt.Errorf("%w: repair it with the version of ibid that wrote it, by 'ibid ingest' of its folders, and start again", err)
		}
		return err
	}
	s.addLost(into.lost...)
	if err := errors.Join(into.merge(ctx), old.merge(ctx)); err != nil {
		return err
	}
	return s.switchTo(into.place)
}

// merge moves the log into the file and closes it.
func (s *Store) merge(ctx context.Context) error {
	if _, err := s.write.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		return s.explain(err)
	}
	return errors.Join(s.disconnect(), syncFile(s.place))
}

// switchTo puts a new file in the place of that of the earlier layout.
func (s *Store) switchTo(fresh string) error {
	var kept string
	for n := 1; ; n++ {
		kept = filepath.Join(s.dir, fmt.Sprintf("before-layout-%d.%d.db", firstLayout, n))
		err := os.Link(s.place, kept)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil { // some file systems have no links
			err = copyFile(s.place, kept)
		}
		if err != nil {
			return err
		}
		break
	}
	if err := syncDir(s.dir); err != nil {
		return err
	}
	if err := os.Rename(fresh, s.place); err != nil {
		return err
	}
	return errors.Join(syncDir(s.dir), removeFiles(s.place+"-wal", s.place+"-shm", fresh+"-wal", fresh+"-shm"))
}

func copyFile(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, source)
	return errors.Join(err, f.Sync(), f.Close())
}

// resume opens the file that a migration fills, or creates it. One that was being
// filled from something else is removed: the library changed after an interrupted
// migration.
func (s *Store) resume(ctx context.Context, source string) (*Store, error) {
	into := fileStore(s.place+".migrating", Options{Wait: s.wait})
	if _, err := os.Stat(into.place); err == nil {
		var was string
		err := into.connect()
		if err == nil {
			err = into.view(ctx, func(t *tx) error {
				was, err = t.setting(settingSource)
				return err
			})
		}
		if err == nil && was == source {
			return into, nil
		}
		if err := errors.Join(into.disconnect(), removeDatabase(into.place)); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(into.place, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if into, err = s.laidOut(ctx, f); err != nil {
		return nil, err
	}
	return into, into.update(ctx, func(t *tx) error { return t.set(settingSource, source) })
}

// sourceOf identifies the content of a file of the first layout; empty if it
// has a later layout.
func (s *Store) sourceOf(ctx context.Context) (source string, err error) {
	err = s.view(ctx, func(t *tx) error {
		number, err := s.layout(t)
		if err != nil || number >= firstLayout {
			return err
		}
		var revision int64
		if err := t.row(`SELECT coalesce(max(revision), 0) FROM changes`).Scan(&revision); err != nil {
			return err
		}
		digest, err := t.meta("library")
		source = fmt.Sprintf("layout %d, revision %d, %s", number, revision, digest)
		return err
	})
	return source, err
}

// An oldHead is the JSON in the row of a record.
type oldHead struct {
	Kind, State string
	Shared      bool
	Ended       int64
	Spec        []byte
	Documents   int
}

func headOf(v any) (h oldHead) {
	text, _ := v.([]byte)
	if json.Unmarshal(text, &h) != nil {
		return oldHead{}
	}
	return h
}

// oldFile is the first layout, whose checksums are made as those of today.
func oldFile() earlier {
	return earlier{
		space: func(t *tx) (string, error) { return t.meta("space") },
		read:  readOldFile,
		roots: oldTable{"folders", "roots", `name, path, collection, sum, name, path, collection`, "roots", rootColumns, nil},
		rest: []oldTable{
			{"records of answers", "records", `id, caller, started, expires, head, sum,
				id, head, caller, 0, 0, started, 0, expires, size, 0`, "records", recordColumns,
				func(row []any) {
					h := headOf(row[1])
					row[1], row[3], row[4], row[6], row[9] = h.Kind, h.Shared, h.State, h.Ended, h.Spec
				}},
			{"records of answers", "record_events",
				`record, events, sum, record, (SELECT head FROM records WHERE id = record), events`, "events", eventColumns,
				func(row []any) { row[1] = headOf(row[1]).Documents }},
			{"records of answers", "record_documents", `document, record, sum, record,
				(SELECT count(*) FROM record_documents AS o WHERE o.record = record_documents.record AND o.document < record_documents.document),
				document, document`,
				"quoted", quoteColumns, keyed(2)},
			{"entries of feedback", "feedback", `run, caller, citation, rating, at, comment, sum, ` + feedbackColumns,
				"feedback", feedbackColumns, nil},
			{"keys", "access_keys", `id, name, digest, write, collections, created, expires, sum, ` + keyColumns, "keys", keyColumns, nil},
		},
	}
}

// readOldFile checks all rows of the document.
func readOldFile(t *tx, key int64, into *oldDocument) error {
	var collection string
	var revision, sum int64
	d := &into.doc
	err := t.row(`SELECT `+oldColumns+`, collection, revision, sum FROM documents WHERE key = ?`, key).
		Scan(append(into.dest(), &collection, &revision, &sum)...)
	if err != nil {
		return err
	}
	first, last := keyRange(key)
	var sums []any
	err = t.each(func(r scanner) error {
		var c chunkRow
		var terms []byte
		dest := []any{&c.key, &c.Start, &c.End, &c.place, &c.Tokens, &c.Heading, &c.Anchor, &terms, &c.Text}
		err := checked(r, dest...)
		c.at()
		sums = append(sums, rowSum(dest...))
		into.chunks = append(into.chunks, *c.of(d.ID))
		return err
	}, `SELECT key, start, end, page, tokens, heading, anchor, terms, text, sum FROM chunks
		WHERE key BETWEEN ? AND ? ORDER BY key`, first, last)
	if err != nil {
		return err
	}
	columns := []any{key, d.ID, d.Root, d.Path, collection, d.Title, d.Format, d.Digest, into.meta, into.outline,
		d.Text, revision, len(sums)}
	if rowSum(append(columns, sums...)...) != sum {
		return errRow
	}
	return t.each(func(r scanner) error {
		var key int64
		var vector []byte
		err := checked(r, &key, &vector)
		into.vectors = append(into.vectors, retrieve.UnpackVector(vector))
		return err
	}, `SELECT key, vector, sum FROM vectors WHERE key BETWEEN ? AND ? ORDER BY key`, first, last)
}
