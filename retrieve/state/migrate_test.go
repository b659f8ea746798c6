package state

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/disk"
	"ibid/retrieve/state/statetest"
)

// earlierDocuments are those of the libraries of earlier layouts in testdata.
func earlierDocuments() iter.Seq2[*ingest.Document, []ingest.Chunk] {
	return func(yield func(*ingest.Document, []ingest.Chunk) bool) {
		for i := range 12 {
			texts := []string{fmt.Sprintf("text %d, Öland", i), "shared text", strings.Repeat("long ", 40*i)}
			doc, chunks := newDocument([]string{"a", "b"}[i%2], fmt.Sprint(i), texts[:i%4]...)
			if !yield(doc, chunks) {
				return
			}
		}
	}
}

// checkEarlier checks that a library has all that those in testdata have.
func checkEarlier(t *testing.T, s *Store, missing ...string) {
	t.Helper()
	ctx := t.Context()
	var f follower
	f.same(t, s)
	var want []string
	for doc, chunks := range earlierDocuments() {
		if slices.Contains(missing, doc.ID) {
			continue
		}
		want = append(want, doc.ID)
		got, err := s.Document(ctx, doc.ID)
		must(t, err)
		rows, vectors, err := s.DocumentChunks(ctx, doc.ID)
		must(t, err)
		if got.Text != doc.Text || got.Title != doc.Title || got.Meta["author"] != "Ann <b>" || !slices.Equal(got.Sections, doc.Sections) ||
			!slices.Equal(rows, chunks) || !slices.EqualFunc(vectors, vectorsFor(doc, chunks), slices.Equal[[]float32]) {
			t.Errorf("%s is %+v with %+v, want %+v with %+v", doc.ID, got, rows, doc, chunks)
		}
	}
	slices.Sort(want)
	if ids := f.ids(); !slices.Equal(ids, want) {
		t.Errorf("documents %q, want %q", ids, want)
	}
	roots, err := s.Roots(ctx)
	if len(roots) != 2 || roots[1] != (ingest.Root{Name: "b", Path: "/srv/b", Collection: "default"}) || err != nil {
		t.Errorf("roots %+v, %v", roots, err)
	}
	if r, err := s.Ledger().Record(ctx, "record"); len(r.Documents) != 1 || err != nil {
		t.Errorf("the record is %+v, %v", r, err)
	}
	if ring, err := s.Keyring().Ring(ctx); len(ring.Keys) != 1 || err != nil {
		t.Errorf("the keys are %+v, %v", ring, err)
	}
	if r, err := s.verify(ctx, nil); err != nil || len(r.Damaged) != len(missing) {
		t.Errorf("verify = %+v, %v", r, err)
	}
}

// earlierFile puts a library of the first layout into a new data directory.
func earlierFile(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, FileName), unzipped(t, "testdata/layout1.db.gz"), 0o600))
	return dir
}

func unzipped(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(name)
	must(t, err)
	defer f.Close()
	r, err := gzip.NewReader(f)
	must(t, err)
	data, err := io.ReadAll(r)
	must(t, err)
	return data
}

// TestMigrateFile brings a library of the first layout up to date, with an
// interruption at each place.
func TestMigrateFile(t *testing.T) {
	for interrupted := range 5 {
		t.Run(fmt.Sprint(interrupted), func(t *testing.T) {
			dir := earlierFile(t)
			must(t, os.WriteFile(filepath.Join(dir, FileName+".1.new"), nil, 0o600)) // of a process that was killed
			for n := range interrupted {
				ctx, cancel := context.WithCancel(t.Context())
				_, err := Open(ctx, dir, Options{batch: 2, Migrating: func(done, total int) {
					if done >= 2*n {
						cancel()
					}
				}})
				if !errors.Is(err, context.Canceled) {
					t.Fatalf("an interrupted migration: %v", err)
				}
			}
			var calls []int
			s, err := Open(t.Context(), dir, Options{batch: 2, Migrating: func(done, total int) { calls = append(calls, done) }})
			must(t, err)
			t.Cleanup(func() { must(t, s.Close()) })
			checkEarlier(t, s)
			if want := 12; len(calls) == 0 || calls[len(calls)-1] != want {
				t.Errorf("progress %v", calls)
			}
			names, err := filepath.Glob(filepath.Join(dir, "*"))
			must(t, err)
			for i := range names {
				names[i] = filepath.Base(names[i])
			}
			if want := []string{"before-layout-4.1.db", FileName, FileName + "-shm", FileName + "-wal", lockName}; !slices.Equal(names, want) {
				t.Errorf("files %q, want %q", names, want)
			}
			must(t, s.Close())
			s = openTest(t, dir)
			checkEarlier(t, s)
			late := migration{from: s, into: s, earlier: oldFile(), most: 2} // of a process that began before this one finished
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			must(t, late.run(ctx))
		})
	}
}

// TestMigrateInUse refuses a library that another process has open, and one of
// which a document is damaged comes without that.
func TestMigrateInUse(t *testing.T) {
	dir := earlierFile(t)
	other, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	must(t, errors.Join(err, disk.Lock(other, false)))
	if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, errEarlier) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a library in use: %v", err)
	}
	must(t, other.Close())
	old := fileStore(filepath.Join(dir, FileName), Options{})
	must(t, old.connect())
	_, err = old.write.Exec(`UPDATE chunks SET text = 'x' WHERE key >> 20 = (SELECT key FROM documents WHERE id = 'b/5')`)
	must(t, errors.Join(err, old.disconnect()))
	s := openTest(t, dir)
	checkEarlier(t, s, "b/5")
	if damaged, err := s.Damaged(t.Context()); err != nil || len(damaged) != 1 || damaged[0].Document != "b/5" {
		t.Errorf("Damaged = %+v, %v", damaged, err)
	}
	for doc, chunks := range earlierDocuments() {
		if doc.ID == "b/5" {
			must(t, s.Replace(t.Context(), testSpace, doc, chunks, vectorsFor(doc, chunks)))
		}
	}
	checkEarlier(t, s)
}

// TestMigrateServer brings a schema of the third layout up to date, with
// interruptions.
func TestMigrateServer(t *testing.T) {
	address := newSchema(t)
	server := os.Getenv(statetest.Env)
	conn, err := pgx.Connect(t.Context(), server)
	must(t, err)
	_, err = conn.Exec(t.Context(), `CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public`)
	must(t, conn.Close(t.Context()))
	if err != nil {
		t.Skipf("the server has no pgvector, which earlier versions needed: %v", err)
	}
	text := unzipped(t, "testdata/layout3.postgres.sql.gz")
	u, err := url.Parse(address)
	must(t, err)
	schema := u.Query().Get("search_path")
	t.Cleanup(func() { onServer(t, server, `DROP SCHEMA IF EXISTS `+schema+`_layout3 CASCADE`) })
	onServer(t, server, strings.NewReplacer("SCHEMA earlier", "SCHEMA "+schema, "earlier.", schema+".").Replace(string(text)))
	for n := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Open(ctx, address, Options{batch: 2, Migrating: func(done, total int) {
			if done >= 2*n {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("an interrupted migration: %v", err)
		}
	}
	s, err := Open(t.Context(), address, Options{batch: 2})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	checkEarlier(t, s)
	checkEarlier(t, openTest(t, address))
	must(t, s.view(t.Context(), func(tx *tx) {
		if number := s.layout(tx); number < firstLayout {
			t.Errorf("layout %d", number)
		}
	}))
	if _, err := s.Document(t.Context(), "none"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Error(err)
	}
}

// TestEarlierUntouched checks that a damaged library of an earlier layout is not
// replaced by an empty one, and that an undamaged one is not called damaged.
func TestEarlierUntouched(t *testing.T) {
	dir := earlierFile(t)
	if _, err := Verify(t.Context(), dir, Options{}, nil); !errors.Is(err, errEarlier) {
		t.Errorf("verify: %v", err)
	}
	if _, err := Backup(t.Context(), dir, filepath.Join(t.TempDir(), "copy.db"), Options{}, nil); !errors.Is(err, errEarlier) {
		t.Errorf("backup: %v", err)
	}
	file := filepath.Join(dir, FileName)
	whole, err := os.ReadFile(file)
	must(t, err)
	damaged := 0
	for page := 1; page < len(whole)/pageSize; page++ {
		data := slices.Clone(whole)
		data[page*pageSize] ^= 0x40 // its type
		must(t, os.WriteFile(file, data, 0o600))
		s, err := Open(t.Context(), dir, Options{})
		if err != nil {
			damaged++
			if now, readErr := os.ReadFile(file); readErr != nil || !bytes.Equal(now, data) {
				t.Fatalf("page %d: the file was changed (%v) after %v", page, readErr, err)
			}
		} else {
			must(t, s.Close())
		}
		names, err := filepath.Glob(filepath.Join(dir, "*"))
		must(t, err)
		for _, name := range names {
			must(t, os.RemoveAll(name))
		}
	}
	if damaged == 0 {
		t.Error("no page was found damaged")
	}
}
