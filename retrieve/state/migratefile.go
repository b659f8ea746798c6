package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"ibid/retrieve"
	"ibid/retrieve/disk"
)

// replaceEarlier puts an empty database in the place of one of an earlier layout. That
// is kept under another name, from which migrate copies.
func (s *Store) replaceEarlier(ctx context.Context) (err error) {
	if s.readOnly {
		return fmt.Errorf("%w, and it cannot be written: open it once where it can", errEarlier)
	}
	if err := s.disconnect(); err != nil {
		return err
	}
	if err := disk.Lock(s.lock, true); err != nil {
		return fmt.Errorf("%w, and another process uses it: end that, and start again to have it brought up to date: %w", errEarlier, err)
	}
	defer func() { err = errors.Join(err, disk.Lock(s.lock, false)) }()
	old := fileStore(s.place, Options{Wait: s.wait})
	earlier := false
	if err = s.removeUnfinished(); err == nil {
		err = old.connect()
	}
	if err == nil {
		earlier, err = old.checkEarlier(ctx)
	}
	if err == nil {
		err = old.merge(ctx)
	}
	if err != nil || !earlier { // another process was first
		return errors.Join(err, old.disconnect())
	}
	kept, err := s.keepEarlier()
	if err != nil {
		return err
	}
	fresh, err := s.newFile(ctx)
	if err != nil {
		return err
	}
	err = fresh.update(ctx, func(t *tx) { t.set(settingSource, kept) })
	if err == nil {
		err = fresh.merge(ctx)
	}
	if err == nil {
		err = os.Rename(fresh.place, s.place)
	}
	return errors.Join(err, disk.SyncDir(s.dir), removeDatabase(fresh.place), removeFiles(s.place+"-wal", s.place+"-shm"))
}

// checkEarlier reports whether the file has an earlier layout. It returns an error if its
// pages are damaged, or the disk has no room for a copy.
func (s *Store) checkEarlier(ctx context.Context) (earlier bool, err error) {
	err = s.view(ctx, func(t *tx) {
		if earlier = s.layout(t) < firstLayout; earlier && !slices.Equal(column[string](t, `PRAGMA integrity_check(1)`), []string{"ok"}) {
			check(fmt.Errorf("%w: the pages of %s contradict one another", ErrDamaged, s.place))
		}
	})
	if isDamage(err) {
		err = fmt.Errorf("%w: repair it with the version of ibid that wrote it, by 'ibid ingest' of its folders, and start again", err)
	}
	if err != nil || !earlier {
		return false, err
	}
	size, err := s.size(ctx)
	if err != nil {
		return false, err
	}
	free, err := disk.Free(s.dir)
	if err == nil && free < size {
		err = fmt.Errorf("%w, and bringing it up to date needs %.1f MB of free space in %s, which has %.1f MB: free some and start again",
			errEarlier, float64(size)/1e6, s.dir, float64(free)/1e6)
	}
	return true, err
}

// merge moves the log into the file and closes it.
func (s *Store) merge(ctx context.Context) error {
	if _, err := s.write.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		return s.explain(err)
	}
	return errors.Join(s.disconnect(), syncFile(s.place))
}

// keepEarlier gives a file of an earlier layout a further name, which it returns.
func (s *Store) keepEarlier() (name string, err error) {
	own, err := os.Stat(s.place)
	for n := 1; err == nil; n++ {
		name = fmt.Sprintf("before-layout-%d.%d.db", firstLayout, n)
		kept := filepath.Join(s.dir, name)
		if err = os.Link(s.place, kept); errors.Is(err, fs.ErrExist) {
			var other fs.FileInfo
			if other, err = os.Stat(kept); err == nil && os.SameFile(own, other) {
				return name, nil // an interrupted attempt did
			}
			continue
		}
		if err != nil { // some file systems have no links
			return "", fmt.Errorf("%w, and cannot be kept here under another name: bring it up to date on another disk: %w", errEarlier, err)
		}
		return name, disk.SyncDir(s.dir)
	}
	return "", err
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
		space: func(t *tx) string { return t.meta("space") },
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
func readOldFile(t *tx, key int64, into *oldDocument) {
	var collection string
	var revision, sum int64
	d := &into.doc
	check(t.row(`SELECT `+oldColumns+`, collection, revision, sum FROM documents WHERE key = ?`, key).
		Scan(append(into.dest(), &collection, &revision, &sum)...))
	first, last := keyRange(key)
	var sums []any
	for r := range t.rows(`SELECT key, start, end, page, tokens, heading, anchor, terms, text, sum FROM chunks
		WHERE key BETWEEN ? AND ? ORDER BY key`, first, last) {
		var c chunkRow
		var terms []byte
		dest := []any{&c.key, &c.Start, &c.End, &c.place, &c.Tokens, &c.Heading, &c.Anchor, &terms, &c.Text}
		check(checked(r, dest...))
		c.at()
		sums = append(sums, rowSum(dest...))
		into.chunks = append(into.chunks, *c.of(d.ID))
	}
	columns := []any{key, d.ID, d.Root, d.Path, collection, d.Title, d.Format, d.Digest, into.meta, into.outline,
		d.Text, revision, len(sums)}
	if rowSum(append(columns, sums...)...) != sum {
		check(errRow)
	}
	for r := range t.rows(`SELECT key, vector, sum FROM vectors WHERE key BETWEEN ? AND ? ORDER BY key`, first, last) {
		var key int64
		var vector []byte
		check(checked(r, &key, &vector))
		into.vectors = append(into.vectors, retrieve.UnpackVector(vector))
	}
}
