package state

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ibid/ingest"
	"ibid/retrieve"
)

// A Report is the result of [Verify].
type Report struct {
	Documents int      `json:"documents"` // undamaged documents
	Chunks    int      `json:"chunks"`    // chunks of these documents
	Bytes     int64    `json:"bytes"`     // size of the database file, or of the schema on a server
	Damaged   []Damage `json:"damaged"`   // empty if all data is undamaged

	broken bool // the pages of the file are damaged, or a table cannot be read
}

// Verify reads a whole library and compares every row with its checksum and with the rows that
// depend on it, without changing any row. If the pages of the file or its tables are damaged, the
// next start repairs it. Other processes may read and write meanwhile; Verify checks a snapshot.
// Progress, if not nil, is called after each document. If the directory has no database, the error
// is [os.ErrNotExist].
func Verify(ctx context.Context, address string, opts Options, progress func(done, total int)) (r Report, err error) {
	err = inspect(ctx, address, opts, "verifying", func(s *Store) error {
		if r, err = s.verify(ctx, progress); err == nil && r.broken && s.dir != "" && !s.readOnly {
			err = s.writeMarker("")
		}
		return err
	})
	return r, err
}

// inspect calls f with an existing library, without repairing or changing it. Its error names the
// operation.
func inspect(ctx context.Context, address string, opts Options, doing string, f func(*Store) error) error {
	s, err := openAsIs(ctx, address, opts)
	if err == nil {
		err = errors.Join(f(s), s.Close())
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", doing, named(address), err)
	}
	return nil
}

func openAsIs(ctx context.Context, address string, opts Options) (*Store, error) {
	if isServer(address) {
		return openServer(ctx, address, opts)
	}
	dir, err := filepath.Abs(address)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, FileName)); err != nil {
		return nil, err
	}
	return attach(ctx, dir, opts)
}

func isServer(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

// named returns an address for messages. The address of a server may contain a password and is
// omitted.
func named(address string) string {
	if isServer(address) {
		return "the store"
	}
	return "the data directory " + address
}

// verify checks the database of a store, which need not have been started.
func (s *Store) verify(ctx context.Context, progress func(done, total int)) (Report, error) {
	v := verifier{s: s, progress: progress}
	if progress == nil {
		v.progress = func(int, int) {}
	}
	err := s.checkFilled()
	if err == nil && s.read == nil {
		err = s.connect()
	}
	if err == nil {
		err = s.view(ctx, func(t *tx) {
			v.t, v.report = t, Report{}
			v.checkAll()
		})
	}
	switch {
	case errors.Is(err, ErrDamaged):
		v.report.broken = true
		v.addDamage("", "%v: the next start recovers what it can", err)
		err = ctx.Err()
	case err == nil && s.isMarked():
		v.addDamage("", "a process found damage while it wrote: the next start repairs it")
	}
	if err == nil {
		v.report.Bytes, err = s.size(ctx)
	}
	return v.report, err
}

// A verifier checks a library in one transaction. Damage in one part does not prevent it from
// checking the next.
type verifier struct {
	s        *Store
	t        *tx
	progress func(done, total int)
	report   Report
	roots    map[string]string // collection by name; nil if they cannot be read
}

func (v *verifier) addDamage(document, reason string, args ...any) {
	v.report.Damaged = append(v.report.Damaged, Damage{Document: document, Reason: fmt.Sprintf(reason, args...)})
}

func (v *verifier) checkAll() {
	check(checkLayout(v.s.layout(v.t)))
	type part struct {
		what  string
		check func()
	}
	parts := []part{{"the pages of the file", v.checkPages}}
	for _, table := range tables() {
		// The check of the documents covers these tables.
		if !slices.Contains([]string{"documents", "texts", "chunks", "vectors", "changes"}, table.name) && table.sum >= 0 {
			parts = append(parts, part{"the table " + table.name, func() { v.checkRows(&table) }})
		}
	}
	parts = append(parts, part{"the roots", v.readRoots}, part{"the documents", v.checkDocuments},
		part{"rows that belong to no document", v.checkOrphans}, part{"vectors", v.checkVectors})
	for _, p := range parts {
		err := catch(p.check)
		if isDamage(err) {
			v.report.broken = true
			v.addDamage("", "%s cannot be read: %v", p.what, err)
			err = v.t.ctx.Err()
		}
		check(err)
	}
}

// checkPages makes SQLite check its own structures, including index pages.
func (v *verifier) checkPages() {
	if v.s.dir == "" {
		return
	}
	lines := column[string](v.t, `PRAGMA integrity_check(20)`)
	if !slices.Equal(lines, []string{"ok"}) {
		v.report.broken = true
		v.addDamage("", "the pages of %s contradict one another in %d places or more: the next start repairs it", v.s.place, len(lines))
	}
}

// checkRows compares the rows of a table with their checksums.
func (v *verifier) checkRows(of *table) {
	n := 0
	for r := range v.t.rows(`SELECT ` + strings.Join(of.columns, ", ") + ` FROM ibid.` + of.name) {
		if !of.isIntact(anyRow(r, len(of.columns))) {
			n++
		}
	}
	if n > 0 {
		v.addDamage("", "%d rows of the table %s do not match their checksums", n, of.name)
		v.report.broken = v.report.broken || of.name == "eras" // the next start rebuilds them
	}
}

func (v *verifier) readRoots() {
	roots, _ := v.t.roots()
	v.roots = make(map[string]string, len(roots))
	for _, r := range roots {
		v.roots[r.Name] = r.Collection
	}
}

// checkDocuments checks every document with its text, chunks and vectors, and the table of changes.
func (v *verifier) checkDocuments() {
	changes, damaged := rowsOf(v.t, scanChange, `SELECT `+changeColumns+`, sum FROM ibid.changes`)
	for _, c := range damaged {
		v.addDamage(v.t.nameOf(c.document), damagedChange)
	}
	changed := make(map[int64]string) // id by number
	for _, c := range changes {
		if !c.deleted && c.document != 0 {
			changed[c.document] = c.id
		}
	}
	aside := column[int64](v.t, `SELECT document FROM ibid.damage`)
	for _, number := range aside {
		v.addDamage(v.t.nameOf(number), "it was set aside as damaged: ingest it again")
	}
	numbers := column[int64](v.t, `SELECT number FROM ibid.documents ORDER BY number`)
	space := v.t.spaces().Used
	for i, number := range numbers {
		_, known := changed[number]
		delete(changed, number)
		if !slices.Contains(aside, number) {
			v.checkDocument(number, space, known)
		}
		v.progress(i+1, len(numbers))
	}
	for number, id := range changed {
		if !slices.Contains(aside, number) {
			v.addDamage(id, "its row in the list of documents is missing")
		}
	}
}

func (v *verifier) checkDocument(number, space int64, changed bool) {
	d, reason := v.t.examine(number, space)
	collection, known := v.roots[d.Root]
	switch {
	case reason != "":
	case !changed:
		reason = unlisted
	case v.roots != nil && !known:
		reason = fmt.Sprintf("its folder %q is not in the list of folders", d.Root)
	case v.roots != nil && collection != d.Collection:
		reason = fmt.Sprintf("it is in the collection %q, and its folder in %q", d.Collection, collection)
	}
	if reason != "" {
		v.addDamage(v.t.nameOf(number), "%s", reason)
		return
	}
	v.report.Documents, v.report.Chunks = v.report.Documents+1, v.report.Chunks+d.Chunks
}

// examine checks all rows of a document. It returns a reason if a row is damaged.
func (t *tx) examine(number, space int64) (d documentRow, reason string) {
	d, err := scanDocument(t.row(`SELECT `+documentColumns+` FROM ibid.documents WHERE number = ?`, number))
	if err != nil {
		return d, damagedRow
	}
	if key := retrieve.DigestOf(d.ID); d.ID != d.Root+"/"+d.Path || !slices.Equal(d.key, key[:]) {
		return d, fmt.Sprintf("its name is not its root %q followed by its path %q", d.Root, d.Path)
	}
	var doc *ingest.Document
	var rows []chunkRow
	err = catch(func() { doc, rows = t.textOf(&d), t.chunks(&d) })
	if found := (*damagedError)(nil); errors.As(err, &found) {
		return d, found.reason
	}
	check(err)
	vectors := t.vectors(space, digestsOf(rows))
	for i := range rows {
		c := &rows[i]
		var square float64
		for _, x := range vectors[string(c.digest)] {
			square += float64(x) * float64(x)
		}
		switch {
		case c.Start < 0 || c.End > len(doc.Text) || c.Start >= c.End || doc.Text[c.Start:c.End] != c.Text:
			return d, fmt.Sprintf("its chunk %d is not bytes %d to %d of its text", i+1, c.Start, c.End)
		case vectors[string(c.digest)] == nil:
			return d, vectorError(&d, i+1).reason
		case !(math.Abs(square-1) < 1e-3):
			return d, fmt.Sprintf("the vector of its chunk %d has length %g", i+1, math.Sqrt(square))
		}
	}
	return d, ""
}

// checkOrphans counts rows whose document or chunk is missing.
func (v *verifier) checkOrphans() {
	for _, o := range orphans {
		if n := value[int](v.t, `SELECT count(*) `+o.rows); n > 0 {
			v.addDamage("", "%d rows of the table %s belong to no stored document: 'ibid compact' removes them", n, o.table)
		}
	}
}

// orphans selects the rows whose document or chunk is missing.
var orphans = []struct{ table, rows string }{
	{"texts", `FROM ibid.texts WHERE NOT EXISTS (SELECT 1 FROM ibid.documents WHERE documents.number = texts.number)`},
	{"chunks", `FROM ibid.chunks WHERE NOT EXISTS (SELECT 1 FROM ibid.documents WHERE documents.number = chunks.key >> 20)`},
	{"vectors", `FROM ibid.vectors WHERE NOT EXISTS (SELECT 1 FROM ibid.chunks WHERE chunks.digest = vectors.digest)`},
}

func (t *tx) deleteOrphans() {
	for _, o := range orphans {
		t.exec(`DELETE ` + o.rows)
	}
}

// checkVectors checks the vectors that are not in use.
func (v *verifier) checkVectors() {
	_, damaged := rowsOf(v.t, func(r scanner) (none struct{}, err error) {
		var space int64
		var digest, vector []byte
		return none, scanChecked(r, &space, &digest, &vector)
	}, `SELECT space, digest, vector, sum FROM ibid.vectors WHERE space <> ?`, v.t.spaces().Used)
	if n := len(damaged); n > 0 {
		v.addDamage("", "%d vectors that no search needs are damaged: the encoder makes its vectors again, "+
			"and 'ibid reembed' all others", n)
	}
}

// Inspect returns the version of the server, and the layout and size of the schema, for operators.
func (s *Store) Inspect(ctx context.Context) (server, schema string, err error) {
	var number int
	err = inTransaction(ctx, s.view, func(t *tx) {
		number, server = s.layout(t), value[string](t, `SELECT convert_to(current_setting('server_version'), 'UTF8')`)
	}, "inspecting the store")
	if err != nil {
		return "", "", err
	}
	bytes, err := s.size(ctx)
	return fmt.Sprintf("%s, PostgreSQL %s", s.place, server), fmt.Sprintf("%s, layout %d, %.1f MB", s.schema, number, float64(bytes)/1e6), err
}

// size returns the size in bytes of the database file with its log, or of the schema on a server.
func (s *Store) size(ctx context.Context) (n int64, err error) {
	if s.dir == "" {
		err = s.view(ctx, func(t *tx) {
			n = value[int64](t, `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
				FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
				WHERE n.nspname = convert_from(?, 'UTF8') AND c.relkind IN ('r', 'm')`, s.schema)
		})
		return n, err
	}
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(s.place + suffix)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		n += info.Size()
	}
	return n, nil
}
