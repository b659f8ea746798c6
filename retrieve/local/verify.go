package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ibid/ingest"
	"ibid/retrieve"
)

// A Report is what [Verify] found.
type Report struct {
	Documents int      // whole ones
	Chunks    int      // of these documents
	Bytes     int64    // size of the database file
	Damaged   []Damage // empty when every byte that counts is as it was stored
}

// Verify reads the whole database of a data directory, compares every row with
// its checksum and with the rows that depend on it, and changes nothing:
// opening the directory is what repairs. Other processes may go on reading and
// writing; one state of the database is looked at. Progress, if it is not nil,
// is called after each document. A directory without a database is
// [os.ErrNotExist].
func Verify(ctx context.Context, dir string, opts Options, progress func(done, total int)) (r Report, err error) {
	e, err := attach(ctx, dir, opts)
	if err != nil {
		return Report{}, fmt.Errorf("verify the data directory %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, e.disconnect(), e.lock.Close()) }()
	r, err = e.verify(ctx, progress)
	if err != nil {
		return r, fmt.Errorf("verify the data directory %s: %w", dir, err)
	}
	return r, nil
}

// attach opens a data directory that is there without reading or repairing
// what is in it.
func attach(ctx context.Context, dir string, opts Options) (*Engine, error) {
	if opts.Wait <= 0 {
		opts.Wait = time.Minute
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	e := &Engine{path: filepath.Join(dir, FileName), wait: opts.Wait, limits: opts.Limits, damaged: make(map[int64]Damage)}
	if _, err := os.Stat(e.path); err != nil {
		return nil, err
	}
	if err := refuseNetwork(dir); err != nil {
		return nil, err
	}
	if err := lockSafely(); err != nil {
		return nil, err
	}
	if e.lock, err = shareLock(ctx, filepath.Join(dir, lockName), e.wait); err != nil {
		return nil, err
	}
	if err := e.connect(); err != nil {
		e.abandon()
		return nil, err
	}
	return e, nil
}

// verify checks the database of the engine, which need not be started.
func (e *Engine) verify(ctx context.Context, progress func(done, total int)) (r Report, err error) {
	info, err := os.Stat(e.path)
	if err != nil {
		return r, err
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	var v verifier
	if err = e.filled(); err == nil {
		err = e.view(ctx, func(tx *sql.Tx) error {
			v = verifier{ctx: ctx, tx: tx, progress: progress}
			return v.all()
		})
	}
	if errors.Is(err, errEmptied) {
		v.found("", "there is nothing in the file, and what was stored in it is lost: put a backup in its place, or ingest the folders again, which sets the file aside")
		err = ctx.Err()
	} else if isDamage(err) {
		v.found("", "the file cannot be read as a database, and the next start saves what can be saved: %s", wrong(err))
		err = ctx.Err()
	}
	if err != nil {
		return r, err
	}
	if e.marked() {
		v.found("", "a process met damage while it wrote: the next start repairs it")
	}
	v.report.Bytes = info.Size()
	return v.report, nil
}

// A verifier looks at everything in one transaction. Damage in one part does
// not keep it from the next.
type verifier struct {
	ctx      context.Context
	tx       *sql.Tx
	progress func(done, total int)
	report   Report
	newest   int64 // revision
	roots    map[string]string
}

func (v *verifier) found(document, reason string, args ...any) {
	v.report.Damaged = append(v.report.Damaged, Damage{Document: document, Reason: fmt.Sprintf(reason, args...)})
}

// part runs one check and takes damage for a finding.
func (v *verifier) part(what string, check func() error) error {
	err := check()
	if isDamage(err) && !errors.Is(err, errEmptied) {
		v.found("", "%s cannot be read: %s", what, wrong(err))
		return v.ctx.Err()
	}
	return err
}

func (v *verifier) all() error {
	for _, p := range []struct {
		what  string
		check func() error
	}{
		{"the format", func() error { return checkFormat(v.ctx, v.tx) }},
		{"the pages of the file", v.pages},
		{"the settings", v.settings},
		{"the list of folders", v.folders},
		{"the list of changes", v.changes},
		{"the documents", v.documents},
		{"rows that belong to no document", v.orphans},
		{"the runs", v.runs},
		{"the keys", v.keys},
		{"the listings of archives", v.listings},
	} {
		if err := v.part(p.what, p.check); err != nil {
			return err
		}
	}
	return nil
}

// pages has SQLite look at its own structures, index pages included.
func (v *verifier) pages() error {
	lines, err := column[string](v.ctx, v.tx, `PRAGMA integrity_check(20)`)
	if err != nil {
		return err
	}
	if !slices.Equal(lines, []string{"ok"}) {
		v.found("", "the pages of the file contradict one another, and the next start repairs it: %s", strings.Join(lines, "; "))
	}
	return nil
}

// settings compares the table of settings with its copy.
func (v *verifier) settings() error {
	tables := [2]map[string]string{}
	for i, table := range []string{"meta", "meta_copy"} {
		tables[i] = make(map[string]string)
		err := v.each(`SELECT name, value, sum FROM `+table, func(rows *sql.Rows) error {
			var name, value string
			var stored int64
			if err := scanned(rows.Scan(&name, &value, &stored)); err != nil {
				return err
			}
			if metaSum(name, value) != stored {
				v.found("", "the setting %q in the table %s is not as it was stored", name, table)
			}
			tables[i][name] = value
			return nil
		})
		if err != nil {
			return err
		}
	}
	for name, value := range tables[0] {
		if copied, ok := tables[1][name]; !ok || copied != value {
			v.found("", "the setting %q is %q, and its copy is %q", name, value, copied)
		}
	}
	for name := range tables[1] {
		if _, ok := tables[0][name]; !ok {
			v.found("", "the setting %q is in the copy alone", name)
		}
	}
	return nil
}

func (v *verifier) folders() error {
	roots, damaged, err := readRoots(v.ctx, v.tx)
	if err != nil {
		return err
	}
	v.roots = make(map[string]string, len(roots))
	for _, r := range roots {
		v.roots[r.Name] = r.Collection
	}
	for _, name := range damaged {
		v.found("", "the row of the folder %q is damaged: ingest it again", name)
	}
	return nil
}

func (v *verifier) changes() (err error) {
	if v.newest, err = revision(v.ctx, v.tx); err != nil {
		return err
	}
	var given int64
	err = v.tx.QueryRowContext(v.ctx, `SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'changes'), 0)`).Scan(&given)
	if err = scanned(err); err == nil && given < v.newest {
		v.found("", "the newest change has the number %d, and the last that was given is %d", v.newest, given)
	}
	return err
}

// documents checks every document with its chunks and vectors, then the digest
// over all of them.
func (v *verifier) documents() (err error) {
	keys, names, err := documentKeys(v.ctx, v.tx)
	if err != nil {
		return err
	}
	r := newReader(v.ctx, v.tx)
	defer func() { err = errors.Join(err, r.close()) }()
	if r.err != nil {
		return r.err
	}
	r.check = v.chunk
	dims, bad := 0, false
	var found library
	for i, key := range keys {
		l, reason, err := v.document(r, key, names[key], &dims)
		if err != nil {
			return err
		}
		if reason != "" {
			bad = true
			v.found(names[key], "%s", reason)
		} else {
			v.report.Documents++
			v.report.Chunks += len(l.chunks)
			found.add(l.key, l.sum)
		}
		v.progress(i+1, len(keys))
	}
	text, err := getMeta(v.ctx, v.tx, metaLibrary)
	if err != nil {
		return err
	}
	expected, err := parseLibrary(text)
	if err != nil {
		return fmt.Errorf("%w: %w", errRow, err)
	}
	if !bad && expected != found {
		v.found("", "there should be %d documents and there are %d, or they are not as they were stored: ingest the folders again", expected.documents, found.documents)
	}
	return nil
}

func (v *verifier) document(r *reader, key int64, name string, dims *int) (l *loaded, reason string, err error) {
	var row documentRow
	err = row.scan(r.documents.QueryRowContext(v.ctx, key))
	if err == nil {
		l, reason, err = r.document(&row, dims)
	}
	if isDamage(err) || errors.Is(err, sql.ErrNoRows) {
		return nil, err.Error(), v.ctx.Err()
	}
	if err != nil || reason != "" {
		return nil, reason, err
	}
	collection, known := v.roots[row.root]
	switch {
	case row.id != name:
		reason = fmt.Sprintf("the list of names calls it %s", name)
	case row.id != row.root+"/"+row.path:
		reason = fmt.Sprintf("its name is not its root %q and its path %q", row.root, row.path)
	case v.roots != nil && !known:
		reason = fmt.Sprintf("its folder %q is not in the list of folders", row.root)
	case v.roots != nil && collection != row.collection:
		reason = fmt.Sprintf("it is in the collection %q, and its folder in %q", row.collection, collection)
	case row.revision > v.newest:
		reason = fmt.Sprintf("it was changed by the change %d, and the newest is %d", row.revision, v.newest)
	}
	return l, reason, nil
}

// chunk checks what the sums of rows cannot: that the rows fit one another.
func (v *verifier) chunk(row *documentRow, c *ingest.Chunk, l *loadedChunk) (reason string) {
	if c.Start < 0 || c.End > len(row.text) || c.Start >= c.End || row.text[c.Start:c.End] != c.Text {
		return fmt.Sprintf("is not bytes %d to %d of its text", c.Start, c.End)
	}
	var square float64
	for _, x := range l.vector {
		square += float64(x) * float64(x)
	}
	if !(math.Abs(square-1) < 1e-3) {
		return fmt.Sprintf("has a vector of the length %g", math.Sqrt(square))
	}
	counts, length := retrieve.CountTerms(ingest.EmbeddingText(row.title, *c))
	if length != l.length || !slices.Equal(counts, l.counts) {
		return "has terms that are not those of its words"
	}
	return ""
}

// orphans counts rows whose document or chunk is not there.
func (v *verifier) orphans() error {
	for table, owner := range map[string]string{
		"chunks":       fmt.Sprintf(`SELECT 1 FROM documents d WHERE d.key = t.key >> %d`, ordinalBits),
		"vectors":      `SELECT 1 FROM chunks c WHERE c.key = t.key`,
		"vectors_next": `SELECT 1 FROM chunks c WHERE c.key = t.key`,
	} {
		var n int
		err := v.tx.QueryRowContext(v.ctx, `SELECT count(*) FROM `+table+` t WHERE NOT EXISTS (`+owner+`)`).Scan(&n)
		if err := scanned(err); err != nil {
			return err
		}
		if n > 0 {
			v.found("", "%d rows of the table %s belong to nothing that is stored", n, table)
		}
	}
	return v.each(`SELECT key, sum, vector FROM vectors_next`, func(rows *sql.Rows) error {
		var key, stored int64
		var vector []byte
		if err := scanned(rows.Scan(&key, &stored, &vector)); err != nil {
			return err
		}
		if vectorSum(key, vector) != stored {
			v.found("", "a vector of an interrupted re-embedding is damaged (chunk %d of document %d): run 'ibid reembed'", key&maxChunks, key>>ordinalBits)
		}
		return nil
	})
}

// runs checks what is kept of interrupted runs.
func (v *verifier) runs() error {
	if yes, err := laidOut(v.ctx, v.tx); err != nil || !yes {
		return err
	}
	err := v.each(`SELECT id, kind, started, coalesce(sum, 0), secret, spec FROM runs LEFT JOIN specs ON run = id`, func(rows *sql.Rows) error {
		var r retrieve.Job
		var started, stored int64
		if err := scanned(rows.Scan(&r.ID, &r.Kind, &started, &stored, &r.Secret, &r.Spec)); err != nil {
			return err
		}
		if r.Started = time.UnixMicro(started); runSum(r) != stored {
			v.found("", "the interrupted run %s is damaged: begin it anew", r.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if yes, err := hasTable(v.ctx, v.tx, "claims"); err != nil {
		return err
	} else if yes {
		err := v.each(`SELECT run, worker, process, until, stop, sum FROM claims`, func(rows *sql.Rows) error {
			var c claim
			var run string
			var stored int64
			if err := scanned(rows.Scan(&run, &c.worker, &c.process, &c.until, &c.stop, &stored)); err != nil {
				return err
			}
			if c.sum(run) != stored {
				v.found("", "what says who works on the run %s is damaged: it can be taken up", run)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return v.each(`SELECT run, key, sum, reply FROM replies`, func(rows *sql.Rows) error {
		var run, key string
		var stored int64
		var reply []byte
		if err := scanned(rows.Scan(&run, &key, &stored, &reply)); err != nil {
			return err
		}
		if replySum(run, key, reply) != stored {
			v.found("", "a reply of the interrupted run %s is damaged: the call is made again when it is taken up", run)
		}
		return nil
	})
}

// listings checks what is kept of archives and mails.
func (v *verifier) listings() error {
	if yes, err := hasTable(v.ctx, v.tx, "listings"); err != nil || !yes {
		return err
	}
	return v.each(`SELECT id, sum, listing FROM listings`, func(rows *sql.Rows) error {
		var id string
		var stored int64
		var listing []byte
		if err := scanned(rows.Scan(&id, &stored, &listing)); err != nil {
			return err
		}
		if listingSum(id, listing) != stored {
			v.found("", "the listing of %s is damaged: the next ingest of its folder makes it anew", id)
		}
		return nil
	})
}

// each calls f on every row of a query.
func (v *verifier) each(query string, f func(*sql.Rows) error) error {
	return eachRow(v.ctx, v.tx, query, f)
}
