package local

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ibid/data/datatest"
	"ibid/retrieve"
	"ibid/retrieve/enginetest"
)

// inPlace runs a statement on the closed database, behind the engine's back.
func inPlace(t *testing.T, dir, statement string, args ...any) {
	t.Helper()
	e, err := attach(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.write.Exec(statement, args...)
	if err := errors.Join(err, e.disconnect(), e.lock.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestVerify(t *testing.T) {
	for _, c := range []struct{ name, statement, document, reason string }{
		{"whole", ``, "", ""},
		{"a word of a chunk", `UPDATE chunks SET text = replace(text, 'piece', 'peace') WHERE key = (SELECT max(key) FROM chunks)`, "a/document 23.md", "its chunk 3 is damaged"},
		{"a vector", `UPDATE vectors SET vector = zeroblob(length(vector)) WHERE key = (SELECT max(key) FROM vectors)`, "a/document 23.md", "the vector of its chunk 3 is damaged"},
		{"a lost vector", `DELETE FROM vectors WHERE key = (SELECT max(key) FROM vectors)`, "a/document 23.md", "is not where it should be"},
		{"a lost chunk", `DELETE FROM chunks WHERE key = (SELECT max(key) FROM chunks)`, "a/document 23.md", "has 3 chunks, and there are 2"},
		{"a title", `UPDATE documents SET title = 'x' WHERE id = 'a/document 7.md'`, "a/document 7.md", "its text or its list of chunks is damaged"},
		{"a lost document", `DELETE FROM documents WHERE id = 'a/document 7.md'`, "", "there should be 20 documents and there are 19"},
		{"a lost folder", `DELETE FROM roots`, "a/document 7.md", `its folder "a" is not in the list of folders`},
		{"a folder's path", `UPDATE roots SET path = '/elsewhere'`, "", `the row of the folder "a" is damaged`},
		{"one setting of two", `DELETE FROM meta_copy WHERE name = 'space'`, "", `the setting "space" is "test/4", and its copy is ""`},
		{"a setting", `UPDATE meta SET value = 'other' WHERE name = 'space'`, "", `the setting "space" in the table meta is not as it was stored`},
		{"strays", `INSERT INTO vectors_next (key, sum, vector) VALUES (1, 2, x'00')`, "", "1 rows of the table vectors_next belong to nothing"},
		{"a listing", listingSchema + `INSERT INTO listings VALUES ('a/b.zip', 'a', 1, x'00')`, "", "the listing of a/b.zip is damaged"},
		{"later than now", `UPDATE sqlite_sequence SET seq = 1 WHERE name = 'changes'`, "", "the last that was given is 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			fill(t, dir)
			if c.statement != "" {
				inPlace(t, dir, c.statement)
			}
			var last, total int
			r, err := Verify(t.Context(), dir, Options{}, func(done, of int) { last, total = done, of })
			if err != nil {
				t.Fatal(err)
			}
			if c.reason == "" {
				if len(r.Damaged) > 0 || r.Documents != 20 || r.Chunks == 0 || r.Bytes == 0 || last != 20 || total != 20 {
					t.Errorf("%+v, %d of %d", r, last, total)
				}
				return
			}
			if !slices.ContainsFunc(r.Damaged, func(d Damage) bool {
				return d.Document == c.document && strings.Contains(d.Reason, c.reason)
			}) {
				t.Errorf("%+v", r.Damaged)
			}
		})
	}
}

// What was stored wrong, with sums that fit, is found too.
func TestVerifyRowsThatDisagree(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	e, err := attach(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = e.update(t.Context(), func(tx *sql.Tx) error {
		long := retrieve.PackVector([]float32{2, 0, 0, 0})
		first, _ := keyRange(24)
		_, err := tx.Exec(`UPDATE vectors SET vector = ?, sum = ? WHERE key = ?`, long, vectorSum(first+1, long), first+1)
		return err
	})
	if err := errors.Join(err, e.disconnect(), e.lock.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := Verify(t.Context(), dir, Options{}, nil)
	if err != nil || len(r.Damaged) != 1 || !strings.Contains(r.Damaged[0].Reason, "its chunk 1 has a vector of the length 2") {
		t.Errorf("%+v %v", r.Damaged, err)
	}
}

func TestVerifyNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	for name, err := range map[string]error{
		"verify":  second(Verify(t.Context(), dir, Options{}, nil)),
		"backup":  second(Backup(t.Context(), dir, filepath.Join(t.TempDir(), "b"), Options{}, nil)),
		"compact": third(Compact(t.Context(), dir, Options{})),
	} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the directory was made")
	}
}

func second[A any](_ A, err error) error        { return err }
func third[A, B any](_ A, _ B, err error) error { return err }

// A backup taken while another writes is one state of the database.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	e := openTest(t, dir)
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	var failed error
	writer.Go(func() {
		for i := 0; ctx.Err() == nil && failed == nil; i++ {
			// Both always have the same version, but for the moment between.
			failed = errors.Join(replaceVersion(t, e, "first.md", i), replaceVersion(t, e, "second.md", i))
		}
	})
	file := filepath.Join(t.TempDir(), "copy.db")
	r, err := Backup(t.Context(), dir, file, Options{}, nil)
	stop()
	writer.Wait()
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	if len(r.Damaged) > 0 || r.Documents < 20 || r.Documents > 22 {
		t.Errorf("%+v", r)
	}
	beside, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(beside) != 1 {
		t.Errorf("%v %v", beside, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if _, err := Backup(t.Context(), dir, file, Options{}, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("overwritten: %v", err)
	}

	other := t.TempDir()
	if err := os.Rename(file, filepath.Join(other, FileName)); err != nil {
		t.Fatal(err)
	}
	restored := openTest(t, other)
	if d := restored.Damaged(); len(d) > 0 {
		t.Errorf("damaged: %v", d)
	}
	got, want := snapshot(t, restored), snapshot(t, e)
	for _, all := range []map[string]string{got, want} {
		delete(all, "a/first.md")
		delete(all, "a/second.md")
	}
	if !maps.Equal(got, want) {
		t.Error("the copy is not as it was")
	}
	versions := make(map[string]int)
	for _, path := range []string{"first.md", "second.md"} {
		doc, err := restored.Document(t.Context(), "a/"+path)
		if errors.Is(err, retrieve.ErrNotFound) {
			versions[path] = -1
			continue
		}
		var version int
		if _, serr := fmt.Sscanf(doc.Text, "version%d", &version); err != nil || serr != nil {
			t.Fatal(err, serr)
		}
		versions[path] = version
	}
	if d := versions["first.md"] - versions["second.md"]; d != 0 && d != 1 {
		t.Errorf("two states in one copy: %v", versions)
	}
}

func TestBackupTellsDamage(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	inPlace(t, dir, `UPDATE documents SET title = 'x' WHERE id = 'a/document 7.md'`)
	file := filepath.Join(t.TempDir(), "copy.db")
	r, err := Backup(t.Context(), dir, file, Options{}, nil)
	if err != nil || len(r.Damaged) != 1 || r.Damaged[0].Document != "a/document 7.md" {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func TestBackupStopped(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	folder := t.TempDir()
	if _, err := Backup(ctx, dir, filepath.Join(folder, "copy.db"), Options{}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
}

func TestCompact(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	e := openTest(t, dir)
	for i := range 200 {
		if err := replaceVersion(t, e, "grown.md", 49+i); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Delete(t.Context(), "a/grown.md"); err != nil {
		t.Fatal(err)
	}
	old := retrieve.Job{ID: "old", Started: time.Now().Add(-2 * retrieve.MaxRunAge)}
	young := retrieve.Job{ID: "young", Started: time.Now()}
	for _, run := range []retrieve.Job{young, old} {
		if err := e.Ledger().Begin(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	want := snapshot(t, e)
	before, after, err := Compact(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes before, %d after", before, after)
	if after >= before {
		t.Errorf("%d bytes before, %d after", before, after)
	}
	if again := snapshot(t, e); !maps.Equal(again, want) {
		t.Error("who had it open sees something else")
	}
	if _, err := e.Ledger().Job(t.Context(), "young"); err != nil {
		t.Error(err)
	}
	if _, err := e.Ledger().Job(t.Context(), "old"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Error(err)
	}
	if err := replaceVersion(t, e, "later.md", 7); err != nil {
		t.Fatal(err)
	}
	other, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if now := snapshot(t, other); !maps.Equal(now, snapshot(t, e)) || len(now) != len(want)+1 {
		t.Error("two that have it open disagree")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := Verify(t.Context(), dir, Options{}, nil); err != nil || len(r.Damaged) > 0 {
		t.Errorf("%v %v", r.Damaged, err)
	}
}

// Repairs take the first page of an empty database for that of a damaged one,
// so every table must begin where it does there, after compacting too.
func TestCompactKeepsPlaces(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	places := func() (out []string) {
		e, err := attach(t.Context(), dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = e.view(t.Context(), func(tx *sql.Tx) (err error) {
			out, err = column[string](t.Context(), tx, `SELECT name || ' ' || rootpage FROM sqlite_schema WHERE name NOT IN ('runs', 'specs', 'replies') ORDER BY name`)
			return err
		})
		if err := errors.Join(err, e.disconnect(), e.lock.Close()); err != nil {
			t.Fatal(err)
		}
		return out
	}
	want := places()
	e := openTest(t, dir)
	if err := e.Ledger().Begin(t.Context(), retrieve.Job{ID: "r", Started: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Compact(t.Context(), dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if got := places(); !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// TestCollidingIDs stores documents among whose chunks' ids are pairs with the
// same first 32 bits of SHA-256, by which chromem-go's own persistence names its
// files: all are there after reopening.
// A campaign stores many more documents.
func TestCollidingIDs(t *testing.T) {
	const most = 200_000
	path := func(n int) string { return fmt.Sprintf("doc-%d", n) }
	first := make(map[uint32]int, most)
	var numbers []int
	for n := range most {
		digest := sha256.Sum256([]byte(retrieve.ChunkID("a/"+path(n), 1)))
		prefix := binary.BigEndian.Uint32(digest[:])
		if twin, ok := first[prefix]; ok {
			numbers = append(numbers, twin, n)
		}
		first[prefix] = n
	}
	if len(numbers) == 0 {
		t.Fatal("no two ids collide")
	}
	t.Logf("%d ids collide", len(numbers))
	if datatest.Campaign() {
		numbers = numbers[:0]
		for i := range most / 4 {
			numbers = append(numbers, i)
		}
	}
	dir := t.TempDir()
	prepareDir(t, dir)
	e, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range numbers {
		doc, chunks := enginetest.Document("a", path(n), "text of "+path(n))
		if err := e.Replace(t.Context(), doc, chunks, [][]float32{enginetest.Vector(float64(n))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = openTest(t, dir)
	list, err := e.Documents(t.Context(), retrieve.Filter{})
	if err != nil || len(list) != len(numbers) || len(e.Damaged()) > 0 {
		t.Fatalf("%d documents of %d are there after reopening; damaged: %v; %v", len(list), len(numbers), e.Damaged(), err)
	}
	for some := range slices.Chunk(numbers, 500) {
		ids := make([]string, len(some))
		for i, n := range some {
			ids[i] = retrieve.ChunkID("a/"+path(n), 1)
		}
		found, err := e.Candidates(t.Context(), ids)
		if err != nil || len(found) != len(some) {
			t.Fatalf("%d chunks of %d are there after reopening: %v", len(found), len(some), err)
		}
		for i, c := range found {
			if c.Text != "text of "+path(some[i]) {
				t.Fatalf("%s has the text %q", c.ID, c.Text)
			}
			if want := enginetest.Vector(float64(some[i])); dot(c.Vector, want) < 0.9999 {
				t.Fatalf("%s has the vector %v, want %v", c.ID, c.Vector, want)
			}
		}
	}
}

// A damaged document does not keep the others from another space, and stays
// named.
func TestRespaceBesideDamage(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	inPlace(t, dir, `UPDATE chunks SET text = replace(text, 'piece', 'peace') WHERE key = (SELECT min(key) FROM chunks) OR key = (SELECT max(key) FROM chunks)`)
	e, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	named := e.Damaged()
	if len(named) != 2 {
		t.Fatalf("damaged: %v", named)
	}
	const space = "other/2"
	for switched := false; !switched; {
		chunks, err := e.Unembedded(t.Context(), space, 7)
		if err != nil {
			t.Fatal(err)
		}
		if len(chunks) > 0 {
			vectors := make([][]float32, len(chunks))
			for i := range vectors {
				vectors[i] = []float32{1, float32(i)}
			}
			err = e.AddVectors(t.Context(), space, chunks, vectors)
		} else if switched, err = e.SwitchSpace(t.Context(), space); err == nil && !switched {
			t.Fatal("nothing is left to embed, and the space stays")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = openTest(t, dir)
	if again := e.Damaged(); !slices.Equal(again, named) {
		t.Errorf("damaged: %v, before: %v", again, named)
	}
	if ids, err := e.Dense(t.Context(), []float32{1, 0}, 1000, retrieve.Filter{}); err != nil || len(ids) < 30 {
		t.Errorf("%d chunks found: %v", len(ids), err)
	}
}
