package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/state/statetest"
)

// A sample is a library and its expected content.
type sample struct {
	file, log []byte
	documents map[string]*ingest.Document
	chunks    map[string][]ingest.Chunk
}

// newSample makes a library of some hundred pages. If log is set, its last changes are only in the
// log.
func newSample(t testing.TB, withLog bool) *sample {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sample")
	s, err := Open(context.Background(), dir, Options{})
	must(t, err)
	ctx := ready(t, s, "a", "b")
	x := &sample{documents: make(map[string]*ingest.Document), chunks: make(map[string][]ingest.Chunk)}
	random := rand.New(rand.NewPCG(1, 2))
	store := func(i int) {
		var texts []string
		for n := range 1 + random.IntN(6) {
			texts = append(texts, fmt.Sprintf("chunk %d of document %d %s", n, i, strings.Repeat("word ", random.IntN(150))))
		}
		doc, chunks := newDocument([]string{"a", "b"}[i%2], fmt.Sprint("document", i), texts...)
		must(t, s.Replace(ctx, testSpace, doc, chunks, vectorsFor(doc, chunks)))
		x.documents[doc.ID], x.chunks[doc.ID] = doc, chunks
	}
	for i := range 40 {
		store(i)
	}
	must(t, s.Delete(ctx, "a/document2"))
	delete(x.documents, "a/document2")
	if withLog {
		_, err := s.write.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
		must(t, err)
		for i := 30; i < 45; i++ {
			store(i)
		}
		x.log, err = os.ReadFile(s.place + "-wal")
		must(t, err)
		x.file, err = os.ReadFile(s.place)
		must(t, err)
		must(t, s.Close())
		return x
	}
	must(t, s.Close())
	x.file, err = os.ReadFile(s.place)
	must(t, err)
	return x
}

// write writes the sample into a data directory.
func (x *sample) write(t testing.TB, file, log []byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, FileName), file, 0o600))
	if log != nil {
		must(t, os.WriteFile(filepath.Join(dir, FileName+"-wal"), log, 0o600))
	}
	return dir
}

// check opens a damaged library and reads everything. Its documents must be unchanged, and missing
// ones must be reported. Then it stores the missing ones and expects the whole library. Newly found
// damage may require another start.
func (x *sample) check(t testing.TB, dir string) (lost int) {
	t.Helper()
	for range 3 {
		s, err := Open(context.Background(), dir, Options{})
		must(t, err)
		n, err := x.heal(t, s)
		lost += n
		if !errors.Is(err, ErrDamaged) {
			must(t, err)
			if again := x.missing(t, s); len(again) > 0 {
				t.Errorf("missing after storing again: %q", again)
			}
			var f follower
			f.same(t, s)
			if n := len(f.documents); n != len(x.documents) {
				t.Errorf("%d documents after all, want %d: %q", n, len(x.documents), f.ids())
			}
			must(t, s.Close())
			return lost
		}
		must(t, s.Close())
	}
	t.Error("still damaged after three starts")
	return lost
}

// heal stores the missing documents, and returns their number.
func (x *sample) heal(t testing.TB, s *Store) (lost int, err error) {
	t.Helper()
	ctx := context.Background()
	if err := x.read(s); err != nil {
		return 0, err
	}
	missing := x.missing(t, s)
	damaged, err := s.ListDamage(ctx)
	if err != nil {
		return 0, err
	}
	for _, id := range missing {
		if !slices.ContainsFunc(damaged, func(d Damage) bool { return d.Document == id || d.Document == "" }) {
			t.Errorf("%s is lost without a report: %v", id, damaged)
		}
	}
	for _, root := range []string{"a", "b"} {
		got, err := s.AddRoot(ctx, "/srv/"+root, "")
		if err != nil {
			return 0, err
		}
		if got.Name != root {
			t.Errorf("root %s = %+v; %v", root, got, damaged)
		}
	}
	for _, id := range missing {
		if err := s.Replace(ctx, testSpace, x.documents[id], x.chunks[id], vectorsFor(x.documents[id], x.chunks[id])); err != nil {
			return lost, err
		}
		lost++
	}
	return lost, nil
}

// read reads everything, to set damaged rows aside.
func (x *sample) read(s *Store) error {
	ctx := context.Background()
	for _, err := range s.Changes(ctx, testSpace, 0) {
		if err != nil {
			return err
		}
	}
	list, err := s.Documents(ctx, retrieve.Filter{})
	for _, d := range list {
		if _, err := s.Document(ctx, d.ID); err != nil && !errors.Is(err, errRow) && !errors.Is(err, retrieve.ErrNotFound) {
			return err
		}
		if _, _, err := s.DocumentChunks(ctx, d.ID); err != nil && !errors.Is(err, errRow) && !errors.Is(err, retrieve.ErrNotFound) {
			return err
		}
	}
	return err
}

// missing lists the documents of the sample that are not in the store, and checks all other
// documents.
func (x *sample) missing(t testing.TB, s *Store) (ids []string) {
	t.Helper()
	ctx := context.Background()
	list, err := s.Documents(ctx, retrieve.Filter{})
	must(t, err)
	have := make(map[string]bool)
	for _, d := range list {
		want := x.documents[d.ID]
		if want == nil {
			t.Errorf("unexpected document %q", d.ID)
			continue
		}
		have[d.ID] = true
		doc, err := s.Document(ctx, d.ID)
		must(t, err)
		chunks, vectors, err := s.DocumentChunks(ctx, d.ID)
		must(t, err)
		if doc.Text != want.Text || doc.Title != want.Title || doc.Digest != want.Digest || !slices.Equal(chunks, x.chunks[d.ID]) ||
			!slices.EqualFunc(vectors, vectorsFor(want, chunks), slices.Equal[[]float32]) {
			t.Errorf("%s differs from the stored document", d.ID)
		}
	}
	for id := range x.documents {
		if !have[id] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// damageFile damages a file in the nth way.
func damageFile(file []byte, random *rand.Rand, n int) (_ []byte, what string) {
	at := random.IntN(len(file))
	switch n % 5 {
	case 0:
		at -= at % pageSize
		clear(file[at : at+pageSize])
		return file, fmt.Sprintf("page %d cleared", at/pageSize+1)
	case 1:
		return file[:at], fmt.Sprintf("cut to %d of %d bytes", at, len(file))
	case 2: // the beginnings of pages, where their structure is
		at = at - at%pageSize + random.IntN(120)
	case 4:
		at = random.IntN(200) // the header and the schema
	}
	file[at] ^= byte(1 + random.IntN(255))
	return file, fmt.Sprintf("byte %d changed", at)
}

// TestDamage changes a byte, clears a page or truncates the file, hundreds of times. First it
// clears pages of settings, of their index and of the list of changes.
func TestDamage(t *testing.T) {
	t.Parallel()
	for _, withLog := range []bool{false, true} {
		t.Run(fmt.Sprintf("log=%v", withLog), func(t *testing.T) {
			x := newSample(t, withLog)
			random := rand.New(rand.NewPCG(3, 4))
			lost := 0
			for _, page := range []int{4, 6, 18} {
				file := bytes.Clone(x.file)
				clear(file[page*pageSize : (page+1)*pageSize])
				x.check(t, x.write(t, file, x.log))
			}
			cases := datatest.Cases(t, 220)
			for n := range cases {
				file, log := bytes.Clone(x.file), bytes.Clone(x.log)
				file, what := damageFile(file, random, n)
				t.Run(what, func(t *testing.T) { lost += x.check(t, x.write(t, file, log)) })
			}
			t.Logf("%d documents of %d libraries of %d were lost and named", lost, cases, len(x.documents))
		})
	}
}

// TestSalvage reads an undamaged file by its pages and must find every row.
func TestSalvage(t *testing.T) {
	for _, withLog := range []bool{false, true} {
		x := newSample(t, withLog)
		dir := x.write(t, x.file, x.log)
		must(t, os.WriteFile(filepath.Join(dir, marker), nil, 0o600))
		unfinished := filepath.Join(dir, FileName+".1.new-wal")
		must(t, os.WriteFile(unfinished, nil, 0o600))
		if lost := x.check(t, dir); lost > 0 {
			t.Errorf("%d documents were lost", lost)
		}
		if _, err := os.Stat(unfinished); err == nil {
			t.Error("the file of an interrupted repair remains")
		}
	}
}

// TestInterruptedRepair ends a process at each step by which the repaired file replaces the damaged
// one. Nothing may be lost, including data that only the log had.
func TestInterruptedRepair(t *testing.T) {
	for interrupted := range 4 {
		x := newSample(t, true)
		dir := x.write(t, x.file, x.log)
		aside := filepath.Join(dir, "damaged-1.db")
		s, err := attach(t.Context(), dir, Options{})
		must(t, err)
		fresh, err := s.newFile(t.Context())
		must(t, err)
		_, err = fresh.salvage(t.Context(), s.place)
		must(t, err)
		must(t, fresh.merge(t.Context()))
		must(t, s.writeMarker(filepath.Base(fresh.place)+"\n"+filepath.Base(aside)+"\n"))
		for i, step := range []func() error{
			func() error { return os.Rename(s.place+"-wal", aside+"-wal") },
			func() error { return os.Link(s.place, aside) },
			func() error { return os.Rename(fresh.place, s.place) },
		} {
			if i < interrupted {
				must(t, step())
			}
		}
		must(t, s.Close())
		s = openTest(t, dir)
		if damaged, err := s.ListDamage(t.Context()); err != nil || len(damaged) != 1 || damaged[0].Reason != rebuilt {
			t.Errorf("repair is not reported: %+v, %v", damaged, err)
		}
		must(t, s.Close())
		if lost := x.check(t, dir); lost > 0 {
			t.Errorf("%d documents were lost after step %d", lost, interrupted)
		}
		for _, name := range []string{filepath.Join(dir, marker), fresh.place} {
			if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left: %v", name, err)
			}
		}
	}
}

// TestAside damages rows in place, in both dialects.
func TestAside(t *testing.T) {
	onBothDialects(t, func(t *testing.T, address string) {
		for name, damage := range map[string]string{
			"document": `UPDATE ibid.documents SET title = ? WHERE id = 'a/1'`,
			"id":       `UPDATE ibid.documents SET id = ? WHERE id = 'a/1'`,
			"row":      `DELETE FROM ibid.documents WHERE id = 'a/1' AND id <> ?`,
			"text":     `UPDATE ibid.texts SET text = ? WHERE number = (SELECT number FROM ibid.documents WHERE id = 'a/1')`,
			"chunk":    `UPDATE ibid.chunks SET text = ? WHERE text = 'boat'`,
			"no chunk": `DELETE FROM ibid.chunks WHERE text = 'boat' AND text <> ?`,
			"vector":   `UPDATE ibid.vectors SET vector = ? WHERE digest = (SELECT digest FROM ibid.chunks WHERE text = 'boat')`,
			"change":   `UPDATE ibid.changes SET id = ? WHERE id = 'a/1'`,
		} {
			t.Run(name, func(t *testing.T) {
				address := address + name
				if isServer(address) {
					address = statetest.Schema(t)
				}
				checkAside(t, address, name, damage)
			})
		}
	})
}

// checkAside damages a row of the document a/1 with a statement.
func checkAside(t *testing.T, address, name, damage string) {
	damage = strings.NewReplacer("'a/1'", "CAST('a/1' AS BYTES)", "'boat'", "CAST('boat' AS BYTES)").Replace(damage)
	s := openTest(t, address)
	damage = strings.ReplaceAll(damage, "BYTES", s.dialect.types.Replace("BYTES"))
	ctx := ready(t, s, "a")
	put(t, s, "a", "1", "boat", "ship")
	put(t, s, "a", "2", "train")
	var f follower
	f.same(t, s)
	if n := execute(t, s, damage, "x"); n != 1 {
		t.Errorf("%d rows", n)
	}
	r, err := Verify(ctx, address, Options{}, nil)
	must(t, err)
	if r.Documents != 1 || !slices.ContainsFunc(r.Damaged, func(d Damage) bool { return d.Document == "a/1" }) {
		t.Errorf("Verify = %+v", r)
	}
	if _, err := s.Document(ctx, "a/1"); name == "text" && err == nil {
		t.Error("a damaged text was read")
	}
	f = follower{}
	f.same(t, s)
	f.follow(t, s)
	if ids := f.ids(); !slices.Equal(ids, []string{"a/2"}) {
		t.Errorf("documents %q", ids)
	}
	if damaged, err := s.ListDamage(ctx); err != nil || len(damaged) != 1 || damaged[0].Document != "a/1" {
		t.Errorf("Damaged = %+v, %v", damaged, err)
	}
	put(t, s, "a", "1", "boat", "ship")
	f.same(t, s)
	if damaged, err := s.ListDamage(ctx); err != nil || len(damaged) != 0 || len(f.documents) != 2 {
		t.Errorf("after storing it again: %+v, %v, %q", damaged, err, f.ids())
	}
	if r, err := Verify(ctx, address, Options{}, nil); err != nil || len(r.Damaged) > 0 || r.Documents != 2 || r.Chunks != 3 {
		t.Errorf("Verify after storing it again = %+v, %v", r, err)
	}
}

// hide changes a byte of a document's key in an index page of the file, so that the index does not
// find the row.
func hide(t *testing.T, dir, id string) {
	t.Helper()
	file := filepath.Join(dir, FileName)
	data, err := os.ReadFile(file)
	must(t, err)
	key := retrieve.DigestOf(id)
	const indexLeaf = 10 // the type of an index leaf page, in its first byte
	for at := 0; ; at++ {
		i := bytes.Index(data[at:], key[:])
		if i < 0 {
			t.Fatalf("no index page has the key of %s", id)
		}
		if at += i; data[at/pageSize*pageSize] == indexLeaf {
			data[at] ^= 1
			must(t, os.WriteFile(file, data, 0o600))
			return
		}
	}
}

// TestHidden checks that a document hidden by a damaged index is neither reported as deleted nor
// silently stored twice, and that the next start repairs the file.
func TestHidden(t *testing.T) {
	const id = "a/document6"
	for name, touch := range map[string]func(ctx context.Context, s *Store) error{
		"deleted": func(ctx context.Context, s *Store) error { return s.Delete(ctx, id) },
		"replaced": func(ctx context.Context, s *Store) error {
			if err := replace(s, "a", "document6", "another text"); err != nil {
				return err
			}
			_, err := s.Documents(ctx, retrieve.Filter{Root: "a"})
			return err
		},
		"verified": func(ctx context.Context, s *Store) error {
			r, err := Verify(ctx, s.dir, Options{}, nil)
			if err == nil && len(r.Damaged) > 0 {
				err = ErrDamaged
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newSample(t, false)
			dir := x.write(t, x.file, nil)
			hide(t, dir, id)
			s, err := Open(t.Context(), dir, Options{})
			must(t, err)
			if err := touch(t.Context(), s); !errors.Is(err, ErrDamaged) {
				t.Errorf("err = %v, want ErrDamaged", err)
			}
			must(t, s.Close())
			s, err = Open(t.Context(), dir, Options{})
			must(t, err)
			defer s.Close()
			if n := count(t, s, `SELECT count(*) FROM ibid.documents WHERE id = ?`, id); n != 1 {
				t.Errorf("the document is stored %d times after the repair", n)
			}
			if r, err := s.verify(t.Context(), nil); err != nil || len(r.Damaged) > 0 {
				t.Errorf("after the repair: %+v, %v", r, err)
			}
		})
	}
}

// TestDamagedRows damages rows that every search needs. The search must work, or its error must say
// what to do, without the driver's message. The next start repairs the rows.
func TestDamagedRows(t *testing.T) {
	for _, c := range []struct {
		damage string
		works  bool
	}{{`UPDATE ibid.eras SET era = 'x'`, false}, {`UPDATE ibid.eras SET era = era + 1`, true},
		{`UPDATE ibid.changes SET revision = 'x' WHERE revision = (SELECT max(revision) FROM ibid.changes)`, false},
		{`UPDATE ibid.changes SET revision = revision + 100 WHERE revision = (SELECT max(revision) FROM ibid.changes)`, true},
		{`UPDATE ibid.changes SET deleted = 1`, true}, {`UPDATE ibid.changes SET id = 'x'`, true},
		{`DELETE FROM ibid.changes WHERE document > 0`, true}} {
		t.Run(c.damage, func(t *testing.T) {
			address := filepath.Join(t.TempDir(), "data")
			s := openTest(t, address)
			ctx := ready(t, s, "a")
			put(t, s, "a", "0", "boat")
			put(t, s, "a", "1", "boat")
			execute(t, s, c.damage)
			read := func(s *Store) error {
				n, _, err := s.Revision(ctx)
				if err == nil {
					_, err = s.Era(ctx, n)
				}
				for _, failed := range s.Changes(ctx, testSpace, 0) {
					err = errors.Join(err, failed)
				}
				return err
			}
			if r, err := Verify(ctx, address, Options{}, nil); err != nil || len(r.Damaged) == 0 {
				t.Errorf("Verify = %+v, %v; want damage", r, err)
			}
			if err := read(s); (err == nil) != c.works || err != nil && (strings.Contains(err.Error(), "sql:") ||
				!strings.Contains(err.Error(), "restart ibid to repair it")) {
				t.Errorf("reading damaged rows: err = %v", err)
			}
			must(t, s.Close())
			again := openTest(t, address)
			if err := read(again); err != nil {
				t.Errorf("reading after the repair: %v", err)
			}
			whole, err := again.Documents(ctx, retrieve.Filter{})
			must(t, err)
			damaged, err := again.ListDamage(ctx)
			must(t, err)
			for _, id := range []string{"a/0", "a/1"} {
				if !slices.ContainsFunc(whole, func(d retrieve.DocumentInfo) bool { return d.ID == id }) &&
					!slices.ContainsFunc(damaged, func(d Damage) bool { return d.Document == id }) {
					t.Errorf("%s is neither stored nor reported as damaged: %+v", id, damaged)
				}
			}
		})
	}
}
