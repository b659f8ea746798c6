package pdfium

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ibid/data/datatest"
)

var must = datatest.Must

func engine(t *testing.T) *Engine {
	t.Helper()
	code, _, err := Code("")
	if err != nil {
		t.Skipf("%v: run 'go generate ./ingest/pdf' and set the tag pdfium", err)
	}
	e, err := Open(code, t.TempDir())
	must(t, err)
	t.Cleanup(func() {
		must(t, e.Close())
	})
	return e
}

func TestEngine(t *testing.T) {
	e := engine(t)
	t.Run("several files", func(t *testing.T) { testManyFiles(t, e) })
	t.Run("memory limit", func(t *testing.T) { testMemoryLimit(t, e) })
	t.Run("marked words", func(t *testing.T) { testMarks(t, e) })
}

// testManyFiles checks that one engine reads many files, whatever earlier files did to it.
func testManyFiles(t *testing.T, e *Engine) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "read", "columns.pdf"))
	must(t, err)
	want, err := find(t, e, data, 1, "measurements")
	if err != nil || len(want) == 0 {
		t.Fatalf("finding a word: %v, %v; want at least one place", want, err)
	}
	for range 3 {
		for _, bad := range [][]byte{nil, []byte("%PDF-1.7"), data[:len(data)/3], []byte(strings.Repeat("%PDF-1.7 1 0 obj <<", 1000))} {
			if _, err := find(t, e, bad, 1, "measurements"); err == nil {
				t.Errorf("no error for a page of %.20q", bad)
			}
		}
		if again, err := find(t, e, data, 1, "measurements"); err != nil || !slices.Equal(again, want) {
			t.Fatalf("words after a bad file = %v, want %v, err = %v", again, want, err)
		}
	}
}

// testMemoryLimit checks that a file that needs too much memory fails only itself.
func testMemoryLimit(t *testing.T, e *Engine) {
	t.Helper()
	if _, err := e.Draw(make([]byte, maxMemory), DrawOptions{Page: 1}); err == nil || !strings.Contains(err.Error(), "memory") {
		t.Errorf("drawing a file as large as the memory: err = %v, want one about memory", err)
	}
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "read", "rates.pdf"))
	must(t, err)
	if found, err := find(t, e, data, 1, "Valid from"); err != nil || len(found) != 1 {
		t.Errorf("words of the next file = %v, %v", found, err)
	}
}

func find(t *testing.T, e *Engine, data []byte, page int, quote string) ([]Rect, error) {
	d, err := e.Draw(data, DrawOptions{Page: page, Quote: quote})
	if err != nil {
		return nil, err
	}
	return d.Marked, nil
}

func testMarks(t *testing.T, e *Engine) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "read", "rates.pdf"))
	must(t, err)
	found, err := find(t, e, data, 1, "Valid from 1 April")
	if err != nil || len(found) != 1 {
		t.Fatalf("found %v, %v; want one place", found, err)
	}
	if r := found[0]; r.X0 < 0 || r.X1 > 1 || r.X0 >= r.X1 || r.Y0 < 0.05 || r.Y0 >= r.Y1 || r.Y1 > 0.5 {
		t.Errorf("place = %+v, want a rectangle in the upper half of the page", r)
	}
	if found, err := find(t, e, data, 1, "what does not stand there at all"); err != nil || len(found) != 0 {
		t.Errorf("found %v, %v; want no place", found, err)
	}
	if _, err := find(t, e, data, 9, "x"); err == nil {
		t.Error("no error for page 9")
	}
}
