package local

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/enginetest"
)

// fill stores some documents of several sizes, and gives the bytes of the
// closed database.
func fill(t *testing.T, dir string) []byte {
	t.Helper()
	prepareDir(t, dir)
	e, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 24 {
		if err := replaceVersion(t, e, fmt.Sprintf("document %d.md", i), 1+7*i); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		if err := e.Delete(t.Context(), fmt.Sprintf("a/document %d.md", 5*i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return readDatabase(t, dir)
}

// readDatabase gives the bytes of a closed database.
func readDatabase(t *testing.T, dir string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	if log, err := os.Stat(filepath.Join(dir, FileName+"-wal")); err == nil && log.Size() > 0 {
		t.Fatalf("a clean close leaves %d bytes of log", log.Size())
	}
	return data
}

func replaceVersion(t *testing.T, e *Engine, path string, version int) error {
	t.Helper()
	doc, chunks := enginetest.Document("a", path, versionTexts(version)...)
	vectors := make([][]float32, len(chunks))
	for j := range vectors {
		vectors[j] = enginetest.Vector(float64(17 * (version + j)))
	}
	return e.Replace(t.Context(), doc, chunks, vectors)
}

// snapshot describes every document with all its parts, by id.
func snapshot(t *testing.T, e *Engine) map[string]string {
	t.Helper()
	out := make(map[string]string)
	list, err := e.Documents(t.Context(), retrieve.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		doc, err := e.Document(t.Context(), d.ID)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for i := range d.Chunks {
			ids = append(ids, retrieve.ChunkID(d.ID, i+1))
		}
		found, err := e.Candidates(t.Context(), ids)
		if err != nil {
			t.Fatal(err)
		}
		out[d.ID] = fmt.Sprintf("%+v %+v %+v", d, *doc, found)
	}
	roots, err := e.Roots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range roots {
		out["root "+r.Name] = fmt.Sprintf("%+v", r)
	}
	return out
}

// TestFlips changes one byte of a closed database at a time: it always opens,
// what it then holds is as it was stored, and what is missing is named.
func TestFlips(t *testing.T) {
	t.Run("grown", func(t *testing.T) { flipBytes(t, fill) })
	t.Run("compacted", func(t *testing.T) {
		flipBytes(t, func(t *testing.T, dir string) []byte {
			fill(t, dir)
			if _, _, err := Compact(t.Context(), dir, Options{}); err != nil {
				t.Fatal(err)
			}
			return readDatabase(t, dir)
		})
	})
}

// flipBytes is half of the flips, of a database as fill leaves it.
func flipBytes(t *testing.T, fill func(t *testing.T, dir string) []byte) {
	flips := datatest.Cases(t, 400)
	r := datatest.Rand(t)
	base := t.TempDir()
	whole := fill(t, base)
	e := openTest(t, base)
	want := snapshot(t, e)
	harmless, named, unnamed := 0, 0, 0
	for range flips {
		data := slices.Clone(whole)
		at := r.IntN(len(data))
		if r.IntN(10) == 0 {
			at = r.IntN(200) // the header and the schema matter most
		}
		data[at] ^= byte(1 + r.IntN(255))
		what := checkDamage(t, fmt.Sprintf("byte %d from %#x to %#x", at, whole[at], data[at]), data, want)
		harmless, named, unnamed = harmless+what[0], named+what[1], unnamed+what[2]
	}
	t.Logf("%d bytes: %d harmless, %d named what was lost, %d told of a loss that has no name", len(whole), harmless, named, unnamed)
}

// checkDamage opens a damaged database and compares it with what was stored.
func checkDamage(t *testing.T, how string, data []byte, want map[string]string) (kind [3]int) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := Verify(t.Context(), dir, Options{}, nil)
	if err != nil {
		t.Errorf("%s: verify: %v", how, err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, FileName)); err != nil || !slices.Equal(data, after) {
		t.Errorf("%s: verify has changed the file (%v)", how, err)
	}
	e, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Errorf("%s: %v", how, err)
		return
	}
	damaged := e.Damaged()
	if len(damaged) > 0 && len(report.Damaged) == 0 {
		t.Errorf("%s: verify finds nothing, and the start %v", how, damaged)
	}
	names, general := make(map[string]bool), false
	for _, d := range damaged {
		names[d.Document] = true
		general = general || d.Document == ""
	}
	got := snapshot(t, e)
	for id, state := range got {
		if want[id] == "" {
			t.Errorf("%s: %s came from nowhere", how, id)
		} else if want[id] != state {
			t.Errorf("%s: %s is silently changed to %s", how, id, state)
		}
	}
	missing := 0
	for id := range want {
		if got[id] == "" {
			missing++
			if !names[id] && !general {
				t.Errorf("%s: %s is silently lost; damaged: %v", how, id, damaged)
			}
			if !names[id] {
				kind[2] = 1
			}
		}
	}
	for name := range names {
		if name != "" && want[name] == "" {
			t.Errorf("%s: %q is named, which never was", how, name)
		}
	}
	// What was lost can be stored again, and then nothing is wrong any more.
	// Damage among the free pages is met only by the next writer: it fails, and
	// a new start repairs.
	if err := storeAgain(t, e, want); isDamage(err) {
		if err := e.Close(); err != nil {
			t.Errorf("%s: then %v", how, err)
		}
		if e, err = Open(t.Context(), dir, Options{}); err != nil {
			t.Errorf("%s: repaired on demand: %v", how, err)
			return
		}
		if err := storeAgain(t, e, want); err != nil {
			t.Errorf("%s: repaired on demand, then %v", how, err)
		}
	} else if err != nil {
		t.Errorf("%s: then %v", how, err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("%s: then %v", how, err)
	}
	e, err = Open(t.Context(), dir, Options{})
	if err != nil {
		t.Errorf("%s: reopened: %v", how, err)
		return
	}
	if again := snapshot(t, e); !maps.Equal(again, want) {
		t.Errorf("%s: stored again, it is not as it was; damaged: %v", how, e.Damaged())
	}
	if still := e.Damaged(); len(still) > 0 && missing > 0 {
		t.Errorf("%s: stored again, still damaged: %v", how, still)
	}
	if err := e.Close(); err != nil {
		t.Errorf("%s: then %v", how, err)
	}
	switch {
	case kind[2] == 1:
	case len(damaged) > 0:
		kind[1] = 1
	default:
		kind[0] = 1
	}
	return kind
}

// storeAgain stores what is missing of the wanted.
func storeAgain(t *testing.T, e *Engine, want map[string]string) error {
	t.Helper()
	if _, err := e.AddRoot(t.Context(), "/srv/a", ""); err != nil {
		return err
	}
	if space, err := e.Space(t.Context()); err != nil {
		return err
	} else if space == "" {
		if err := e.SetSpace(t.Context(), "test/4"); err != nil {
			return err
		}
	}
	got := snapshot(t, e)
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if path, ok := strings.CutPrefix(id, "a/"); ok && got[id] == "" {
			var i int
			if _, err := fmt.Sscanf(path, "document %d.md", &i); err != nil {
				t.Fatal(err)
			}
			if err := replaceVersion(t, e, path, 1+7*i); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestRuined opens what is hardly a database any more.
func TestRuined(t *testing.T) {
	base := t.TempDir()
	whole := fill(t, base)
	want := snapshot(t, openTest(t, base))
	zeroed := func(from, to int) []byte {
		data := slices.Clone(whole)
		clear(data[from:min(to, len(data))])
		return data
	}
	for name, data := range map[string][]byte{
		"no first page":   zeroed(0, pageSize),
		"no second page":  zeroed(pageSize, 2*pageSize),
		"no middle":       zeroed(4*pageSize, 12*pageSize),
		"all zero":        zeroed(0, len(whole)),
		"a half":          whole[:len(whole)/2/pageSize*pageSize],
		"an odd half":     whole[:len(whole)/2+77],
		"a few bytes":     whole[:77],
		"another file":    []byte(strings.Repeat("# Not a database\n", 1000)),
		"a page too many": append(slices.Clone(whole), make([]byte, pageSize)...),
		"swapped pages":   slices.Concat(whole[:5*pageSize], whole[6*pageSize:7*pageSize], whole[5*pageSize:6*pageSize], whole[7*pageSize:]),
		"a repeated page": slices.Concat(whole[:5*pageSize], whole[6*pageSize:7*pageSize], whole[6*pageSize:]),
	} {
		t.Run(name, func(t *testing.T) { checkDamage(t, name, data, want) })
	}
}

// A key between two pages of the table of documents, changed, hides those that
// it should lead to.
func TestMisledKeys(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	if _, _, err := Compact(t.Context(), dir, Options{}); err != nil {
		t.Fatal(err)
	}
	data := readDatabase(t, dir)
	want := snapshot(t, openTest(t, dir))
	const root = 4 * pageSize // of the documents
	if data[root] != 5 {
		t.Fatalf("the table of documents is one page of the kind %d: store more", data[root])
	}
	// The third cell of an inner page: a page number of four bytes and a key.
	data[root+int(binary.BigEndian.Uint16(data[root+16:]))+4] ^= 0xac
	checkDamage(t, "the key of a page", data, want)
}

// Bytes 52 to 55 of the header, not zero, would have SQLite take a page of the
// tables for its own book of pages, and write to it.
func TestSelfVacuuming(t *testing.T) {
	for at := 52; at < 56; at++ {
		for _, compacted := range []bool{false, true} {
			dir := t.TempDir()
			data := fill(t, dir)
			if compacted {
				if _, _, err := Compact(t.Context(), dir, Options{}); err != nil {
					t.Fatal(err)
				}
				data = readDatabase(t, dir)
			}
			want := snapshot(t, openTest(t, dir))
			data[at] = 0xa5
			how := fmt.Sprintf("byte %d, compacted %t", at, compacted)
			if kind := checkDamage(t, how, data, want); kind[0] == 1 {
				t.Errorf("%s: not noticed", how)
			}
		}
	}
}

// TestRepairKeepsTheRest damages the header only: every document survives.
func TestRepairKeepsTheRest(t *testing.T) {
	dir := t.TempDir()
	data := fill(t, dir)
	want := snapshot(t, openTest(t, dir))
	other := t.TempDir()
	clear(data[:pageSize])
	if err := os.WriteFile(filepath.Join(other, FileName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	e := openTest(t, other)
	if got := snapshot(t, e); !maps.Equal(got, want) {
		t.Errorf("%d of %d survive: %v", len(got), len(want), e.Damaged())
	}
	aside, err := filepath.Glob(filepath.Join(other, "damaged-*.db"))
	if err != nil || len(aside) != 1 {
		t.Errorf("set aside: %q, %v", aside, err)
	}
	entries, err := os.ReadDir(other)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range entries {
		if strings.Contains(f.Name(), ".old") || strings.Contains(f.Name(), ".new") {
			t.Errorf("%s is left over", f.Name())
		}
	}
}

// TestRepairWaitsForOthers does not take a database from under another process.
func TestRepairWaitsForOthers(t *testing.T) {
	dir := t.TempDir()
	data := fill(t, dir)
	other, err := shareLock(t.Context(), filepath.Join(dir, "ibid.lock"), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	clear(data[:pageSize])
	if err := os.WriteFile(filepath.Join(dir, FileName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, errLocked) {
		t.Errorf("opened: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	openTest(t, dir)
}

func TestNewerFormat(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	e, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = e.update(t.Context(), func(tx *sql.Tx) error { return setMeta(t.Context(), tx, metaFormat, "2") })
	if err := errors.Join(err, e.Close()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("a newer format: %v", err)
	}
	after, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil || !slices.Equal(before, after) {
		t.Error("a refused database was changed")
	}
}

// TestSchemaIsOnTheFirstPage holds what repairs rely on.
func TestSchemaIsOnTheFirstPage(t *testing.T) {
	page, err := emptyFile(filepath.Join(t.TempDir(), "empty"))
	if err != nil {
		t.Fatal(err)
	}
	const leaf = 0x0d
	if page[100] != leaf {
		t.Error("the schema has grown over the first page")
	}
	var c ingest.Chunk
	if chunkSum(1, &c, nil) == chunkSum(2, &c, nil) {
		t.Error("the sum of a row does not depend on its place")
	}
}

// TestEmptied: a file that has lost everything is set aside and named, and what
// its log still holds is saved; to SQLite it would be a new database.
func TestEmptied(t *testing.T) {
	for _, kept := range []struct {
		name string
		size int64
		log  bool
	}{{"nothing", 0, false}, {"the log", 0, true}, {"the first byte", 1, false}} {
		t.Run(kept.name, func(t *testing.T) {
			from, dir := t.TempDir(), t.TempDir()
			e, err := Open(t.Context(), from, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}()
			if _, err := e.AddRoot(t.Context(), "/srv/a", ""); err != nil {
				t.Fatal(err)
			}
			if err := e.SetSpace(t.Context(), "test/4"); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if err := replaceVersion(t, e, fmt.Sprintf("document %d.md", i), i); err != nil {
					t.Fatal(err)
				}
			}
			for _, suffix := range []string{"", "-wal"} {
				data, err := os.ReadFile(filepath.Join(from, FileName+suffix))
				if err != nil {
					t.Fatal(err)
				}
				if suffix == "" {
					data = data[:kept.size]
				} else if !kept.log {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, FileName+suffix), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r, err := Verify(t.Context(), dir, Options{}, nil)
			if err != nil || len(r.Damaged) != 1 {
				t.Errorf("%+v, %v", r, err)
			}
			if _, err := Backup(t.Context(), dir, filepath.Join(t.TempDir(), "copy.db"), Options{}, nil); !errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(dir, FileName+"-wal")); (err == nil) != kept.log {
				t.Fatalf("the log after looking: %v", err)
			}
			opened, err := Open(t.Context(), dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			damaged := opened.Damaged()
			if len(damaged) == 0 || !strings.Contains(damaged[0].Reason, "the damaged file is kept as damaged-") {
				t.Errorf("%+v", damaged)
			}
			docs, err := opened.Documents(t.Context(), retrieve.Filter{})
			if err != nil || kept.log != (len(docs) == 3) {
				t.Errorf("%d documents, %v", len(docs), err)
			}
			if err := opened.Close(); err != nil {
				t.Fatal(err)
			}
			if r, err := Verify(t.Context(), dir, Options{}, nil); err != nil || len(r.Damaged) > 0 {
				t.Errorf("%+v, %v", r, err)
			}
			if info, err := os.Stat(filepath.Join(dir, FileName)); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the new file: %v, %v", info.Mode(), err)
			}
		})
	}
}

// TestFoundedTogether: of many that make one library at once all use the same,
// and none leaves anything else.
func TestFoundedTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	var making errgroup.Group
	engines := make([]*Engine, 8)
	for i := range engines {
		making.Go(func() (err error) {
			engines[i], err = Open(t.Context(), dir, Options{})
			return err
		})
	}
	if err := making.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, e := range engines {
		if _, err := e.AddRoot(t.Context(), fmt.Sprintf("/srv/%d", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range engines {
		if roots, err := e.Roots(t.Context()); err != nil || len(roots) != len(engines) {
			t.Errorf("%d roots, %v", len(roots), err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() != FileName && f.Name() != lockName {
			t.Errorf("%s is left", f.Name())
		}
	}
}
