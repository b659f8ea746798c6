package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"ibid/data/datatest"
	"ibid/retrieve"
)

// files returns the content of the files of a closed index.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		all[e.Name()] = data
	}
	return all
}

// made returns the directory of a closed index with several segments and deleted documents, and its
// history.
func made(t *testing.T) (dir string, h *history, revision int64) {
	t.Helper()
	dir, h = t.TempDir(), newHistory(1)
	for range 4 {
		x := open(t, dir, 100)
		must(t, x.Apply(t.Context(), h.after(revision, 60)))
		must(t, x.Close())
		revision = x.base.Revision
	}
	return dir, h, revision
}

// TestDamage changes bytes of an index's files, truncates or removes them. All searches must then
// have the right results, or return an error that wraps ErrIndexDamaged. After Reset and applying
// the changes, the index is complete.
func TestDamage(t *testing.T) {
	source, h, revision := made(t)
	model, newest := h.until(t, revision), NewModel()
	newest.Apply(h.changes...)
	whole := files(t, source)
	var names []string
	for name := range whole {
		if name != lockName {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) < 3 {
		t.Fatalf("only the files %q, want at least 3", names)
	}
	r := datatest.Rand(t)
	found := 0
	for range datatest.Cases(t, 1000) {
		dir := t.TempDir()
		name := names[r.IntN(len(names))]
		damaged, what := damageData(r, whole[name])
		for _, other := range names {
			data := whole[other]
			if other == name {
				data = damaged
			}
			if data != nil {
				must(t, os.WriteFile(filepath.Join(dir, other), data, 0o600))
			}
		}
		x := open(t, dir, 100+r.IntN(2))
		at, _, err := x.Revision(t.Context())
		if err == nil && at == revision {
			err = h.maker.Check(t.Context(), model, x, 3)
		}
		switch {
		case errors.Is(err, retrieve.ErrIndexDamaged):
			found++
			if _, again := x.Dense(t.Context(), h.maker.Vector(), 1, retrieve.Filter{}); !errors.Is(again, retrieve.ErrIndexDamaged) {
				t.Errorf("%s, %s: err = %v, then %v", name, what, err, again)
			}
			must(t, x.Reset(t.Context()))
		case err != nil:
			t.Fatalf("%s, %s: opening the index: %v", name, what, err)
		case at == 0 && name == manifestName: // removed
		case at != revision:
			t.Fatalf("%s, %s: revision = %d, want %d", name, what, at, revision)
		}
		if err := x.Apply(t.Context(), h.changes); err != nil {
			t.Fatalf("%s, %s: applying all changes again: %v", name, what, err)
		}
		x.waitUntilIdle()
		if err := h.maker.Check(t.Context(), newest, x, 1); err != nil {
			t.Fatalf("%s, %s, after Reset: %v", name, what, err)
		}
		must(t, x.Close())
	}
	t.Logf("%d damaged files detected", found)
}

// damageData returns damaged data, or nil for a removed file.
func damageData(r *rand.Rand, data []byte) (damaged []byte, what string) {
	data = slices.Clone(data)
	at := r.IntN(len(data))
	switch r.IntN(8) {
	case 0:
		return data[:at], "cut"
	case 1:
		return append(data, data[at]), "longer"
	case 2:
		clear(data[at:min(len(data), at+4096)])
		return data, "zeros"
	case 3:
		return nil, "removed"
	case 4:
		return bytes.Repeat([]byte{byte(r.Uint32())}, len(data)), "overwritten"
	}
	data[at] ^= 1 << r.IntN(8)
	return data, "a bit"
}

// TestCutWhileOpen truncates a mapped segment. All searches must return an error, and the process
// must survive.
func TestCutWhileOpen(t *testing.T) {
	dir, h, _ := made(t)
	x := open(t, dir, 101)
	search := func() error {
		_, dense := x.Dense(t.Context(), h.maker.Vector(), 10, h.maker.Filter())
		_, lexical := x.Lexical(t.Context(), h.maker.Terms(), 10, retrieve.Filter{})
		return errors.Join(dense, lexical)
	}
	must(t, search())
	for name := range files(t, dir) {
		if strings.HasPrefix(name, segmentPrefix) {
			must(t, os.Truncate(filepath.Join(dir, name), 0))
		}
	}
	if runtime.GOOS == "windows" {
		t.Skip("files are not mapped on this system")
	}
	var wait sync.WaitGroup
	for range 4 {
		maker := &Maker{Rand: rand.New(rand.NewPCG(h.maker.Uint64(), 0)), Dims: 8, Documents: 60}
		wait.Go(func() {
			for range 20 {
				_, err := x.Lexical(t.Context(), maker.Terms(), 10, maker.Filter())
				if err == nil {
					_, err = x.Dense(t.Context(), maker.Vector(), 10, maker.Filter())
				}
				if err != nil && !errors.Is(err, retrieve.ErrIndexDamaged) {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if err := search(); !errors.Is(err, retrieve.ErrIndexDamaged) {
		t.Fatalf("searching truncated files: err = %v, want ErrIndexDamaged", err)
	}
	must(t, x.Reset(t.Context()))
	must(t, x.Apply(t.Context(), h.changes))
	must(t, h.maker.Check(t.Context(), h.until(t, h.changes[len(h.changes)-1].Revision), x, 5))
}

// TestForeign opens a directory with other options.
func TestForeign(t *testing.T) {
	dir, h, revision := made(t)
	for _, o := range []Options{{Library: "another", Space: "test/8"}, {Library: "library", Space: "test/9"}} {
		x := Open(dir, o)
		if at, _, err := x.Revision(t.Context()); at != 0 || err != nil {
			t.Errorf("%+v: revision = %d, %v", o, at, err)
		}
		must(t, x.Close())
	}
	x := open(t, dir, 0)
	if at, _, err := x.Revision(t.Context()); at != revision || err != nil {
		t.Errorf("revision = %d, want %d: %v", at, revision, err)
	}
	o := Options{Library: "another", Space: "test/8", Flush: 10}
	other := Open(dir, o)
	must(t, other.Apply(t.Context(), h.after(0, 50)))
	other.waitUntilIdle()
	must(t, other.Close())
	// The first index still has its open files, although they were removed.
	must(t, h.maker.Check(t.Context(), h.until(t, revision), x, 3))
	must(t, x.Apply(t.Context(), h.after(revision, 300)))
	must(t, h.maker.Check(t.Context(), h.until(t, h.after(revision, 300)[299].Revision), x, 3))
}

// FuzzSegment changes bytes of a segment and corrects the checksums. Searches may return anything,
// but the process must survive.
func FuzzSegment(f *testing.F) {
	h := newHistory(2)
	all, err := prepare(context.Background(), h.after(0, 100))
	must(f, err)
	latest := make(map[int64]prepared)
	for _, c := range all {
		if latest[c.Document] = c; c.dims == 0 {
			delete(latest, c.Document)
		}
	}
	var documents []prepared
	for _, c := range latest {
		documents = append(documents, c)
	}
	s, err := build(documents)
	must(f, err)
	r := rand.New(rand.NewPCG(1, 1))
	for section := range sections {
		var edits []byte
		for range 3 {
			at := s.Starts[section] + r.Uint64N(s.Starts[section+1]-s.Starts[section])
			edits = append(binary.LittleEndian.AppendUint32(edits, uint32(at)), byte(r.Uint32()))
		}
		f.Add(edits)
	}
	for range 20 {
		f.Add(append(binary.LittleEndian.AppendUint32(nil, uint32(len(s.data)-1-r.IntN(trailerSize))), byte(r.Uint32())))
	}
	f.Fuzz(func(t *testing.T, edits []byte) {
		data := append(make([]byte, 0, len(s.data)+8), s.data...)
		for ; len(edits) >= 5; edits = edits[5:] {
			data[int(binary.LittleEndian.Uint32(edits))%len(data)] ^= edits[4]
		}
		useDamaged(t, correctChecksums(data), h)
	})
}

// correctChecksums corrects the checksums of a segment.
func correctChecksums(data []byte) []byte {
	at := len(data) - trailerSize
	t := cast[trailer](data[at:])
	if table := t[0].Starts[sections]; table < uint64(at) {
		sums := cast[uint32](data[table:at])
		for i := range sums {
			if from := uint64(i) * blockSize; from < table {
				sums[i] = crc32.Checksum(data[from:min(from+blockSize, table)], castagnoli)
			}
		}
		t[0].TableSum = crc32.Checksum(data[table:at], castagnoli)
	}
	t[0].Sum = t[0].sum()
	return data
}

// useDamaged searches a segment and merges it.
func useDamaged(t *testing.T, data []byte, h *history) {
	s, err := newSegment("damaged", data)
	if err != nil {
		return
	}
	x := &Index{options: Options{}}
	x.current.Store(newSnapshot(position{Revision: 1}, []part{{segment: s}}, nil))

	maker := &Maker{Rand: rand.New(rand.NewPCG(1, 0)), Dims: 8, Documents: 60}
	for i := range 4 {
		x.sieve.above = i % 2 * few
		hits, _ := x.Dense(t.Context(), maker.Vector(), 20, maker.Filter())
		more, _ := x.Lexical(t.Context(), maker.Terms(), 20, maker.Filter())
		_, _ = x.Evidence(t.Context(), append(hits, more...), []string{"boat", "keel"})
		_, _ = x.Stats(t.Context(), Words)
		x.fault.Store(nil)
	}
	_ = catchDamage(func() error {
		parts := applyDeletions([]part{{segment: s}}, []deletion{{3, 1000}, {5, 1000}, {8, 1000}})
		if c := merged(parts); c != nil {
			_, err = c.segment()
		}
		return err
	})
}

// TestLost removes the directory of an open index: all documents remain searchable, and new ones
// stay in memory.
func TestLost(t *testing.T) {
	dir, h, revision := made(t)
	x := Open(dir, Options{Library: "library", Space: "test/8", Flush: 50})
	must(t, os.RemoveAll(dir))
	for range 5 {
		changes := h.after(revision, 100)
		must(t, x.Apply(t.Context(), changes))
		x.waitUntilIdle()
		revision = changes[len(changes)-1].Revision
		must(t, h.maker.Check(t.Context(), h.until(t, revision), x, 3))
	}
	if x.err() == nil {
		t.Error("err() = nil after the directory was removed")
	}
	if err := x.Close(); err != nil {
		t.Log(err)
	}
}

// TestUnreadable checks that an index is rebuilt in memory if its files cannot be read or its
// directory cannot be created.
func TestUnreadable(t *testing.T) {
	for name, harm := range map[string]func(dir string) error{
		"manifest is a folder": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, manifestName)), os.Mkdir(filepath.Join(dir, manifestName), 0o700))
		},
		"index is a file": func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
		},
		"index is a dangling link": func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.Symlink(filepath.Join(dir, "nowhere"), dir))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, h, _ := made(t)
			must(t, harm(dir))
			var unwritten error
			x := Open(dir, Options{Library: "library", Space: "test/8", Unwritten: func(err error) { unwritten = err }})
			if _, _, err := x.Revision(t.Context()); errors.Is(err, retrieve.ErrIndexDamaged) {
				err = x.Reset(t.Context())
				must(t, err)
			}
			must(t, x.Apply(t.Context(), h.changes))
			must(t, h.maker.Check(t.Context(), h.until(t, h.changes[len(h.changes)-1].Revision), x, 5))
			if err := x.Close(); err != nil || unwritten == nil {
				t.Errorf("Close = %v, unwritten = %v", err, unwritten)
			}
		})
	}
}

// TestCheck flips a bit in each block of a segment; Check must find every one.
func TestCheck(t *testing.T) {
	dir, _, _ := made(t)
	segments, err := filepath.Glob(filepath.Join(dir, segmentPrefix+"*"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("segments = %q, %v; want at least one", segments, err)
	}
	whole, err := os.ReadFile(segments[0])
	must(t, err)
	o := Options{Library: "library", Space: "test/8"}
	x := Open(dir, o)
	must(t, errors.Join(x.Check(t.Context()), x.Close()))
	for at := 100; at < len(whole); at += blockSize {
		harmed := slices.Clone(whole)
		harmed[at] ^= 1
		must(t, os.WriteFile(segments[0], harmed, 0o600))
		x := Open(dir, o)
		if err := x.Check(t.Context()); !errors.Is(err, retrieve.ErrIndexDamaged) {
			t.Errorf("byte %d: Check = %v, want ErrIndexDamaged", at, err)
		}
		must(t, x.Close())
	}
}
