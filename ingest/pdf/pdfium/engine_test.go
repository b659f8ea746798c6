package pdfium

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func engine(t *testing.T) *Engine {
	t.Helper()
	code, _, err := Code("")
	if err != nil {
		t.Skipf("%v: run 'go generate ./ingest/pdf', and give the tag pdfium", err)
	}
	e, err := Open(t.Context(), code, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

func TestEngine(t *testing.T) {
	e := engine(t)
	t.Run("reads file after file", func(t *testing.T) { readsFileAfterFile(t, e) })
	t.Run("is bounded", func(t *testing.T) { isBounded(t, e) })
	t.Run("marks what it finds", func(t *testing.T) { marksWhatItFinds(t, e) })
}

// One engine reads file after file, whatever the one before did to it.
func readsFileAfterFile(t *testing.T, e *Engine) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "read", "columns.pdf"))
	if err != nil {
		t.Fatal(err)
	}
	read := func(data []byte) (text string, err error) {
		d, err := e.Load(t.Context(), data)
		if err != nil {
			return "", err
		}
		defer d.Close()
		page := d.do("FPDF_LoadPage", d.handle, 0)
		at := d.do("FPDFText_LoadPage", page)
		text = string(d.chars(at))
		d.do("FPDFText_ClosePage", at)
		d.do("FPDF_ClosePage", page)
		return text, d.err
	}
	text, err := read(data)
	if err != nil || !strings.Contains(text, "measurements") {
		t.Fatalf("%v: %.200s", err, text)
	}
	for range 3 {
		for _, bad := range [][]byte{nil, []byte("%PDF-1.7"), data[:len(data)/3], []byte(strings.Repeat("%PDF-1.7 1 0 obj <<", 1000))} {
			// Text or a reason; what the next file gives is what matters.
			_, _ = read(bad)
		}
		if again, err := read(data); err != nil || again != text {
			t.Fatalf("then %d characters instead of %d, %v", len(again), len(text), err)
		}
	}
}

// A file that needs more memory than there is costs itself.
func isBounded(t *testing.T, e *Engine) {
	t.Helper()
	if _, err := e.Load(t.Context(), make([]byte, maxMemory)); err == nil || !strings.Contains(err.Error(), "memory") {
		t.Errorf("%v", err)
	}
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "read", "rates.pdf"))
	if err != nil {
		t.Fatal(err)
	}
	if found, err := find(t, e, data, 1, "Valid from"); err != nil || len(found) != 1 {
		t.Errorf("in the next file: %v, %v", found, err)
	}
}

func find(t *testing.T, e *Engine, data []byte, page int, quote string) ([]Rect, error) {
	d, err := e.Draw(t.Context(), data, DrawOptions{Page: page, Quote: quote})
	if err != nil {
		return nil, err
	}
	return d.Marked, nil
}

func marksWhatItFinds(t *testing.T, e *Engine) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "read", "rates.pdf"))
	if err != nil {
		t.Fatal(err)
	}
	found, err := find(t, e, data, 1, "Valid from 1 April")
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	if r := found[0]; r.X0 < 0 || r.X1 > 1 || r.X0 >= r.X1 || r.Y0 < 0.05 || r.Y0 >= r.Y1 || r.Y1 > 0.5 {
		t.Errorf("%+v", r)
	}
	if found, err := find(t, e, data, 1, "what does not stand there at all"); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := find(t, e, data, 9, "x"); err == nil {
		t.Error("page 9 was found")
	}
}
