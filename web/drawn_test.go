package web

import (
	"context"
	"errors"
	"testing"
)

// TestDrawings checks that a cached page is not drawn again, that the cache has
// a limit, and that it keeps the pages used last.
func TestDrawings(t *testing.T) {
	d, drawn := newDrawings(), 0
	get := func(page int) {
		t.Helper()
		_, err := d.get(t.Context(), drawnPage{document: "club/guide.pdf", page: page}, func(context.Context) ([]byte, error) {
			drawn++
			return make([]byte, drawnBytes/4), nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		get(1)
	}
	if drawn != 1 {
		t.Errorf("one page was drawn %d times", drawn)
	}
	for page := 2; page < 10; page++ {
		get(page)
		get(1)
	}
	if drawn != 9 || d.bytes != drawnBytes || len(d.pages) != 4 || len(d.used) != 4 {
		t.Errorf("%d drawn; %d bytes in %d and %d pages", drawn, d.bytes, len(d.pages), len(d.used))
	}
	if got, want := d.counts(), (drawingCount{hits: 10, misses: 9, bytes: drawnBytes}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	failed := errors.New("cannot draw")
	for range 2 {
		if _, err := d.get(t.Context(), drawnPage{page: 99}, func(context.Context) ([]byte, error) { drawn++; return nil, failed }); !errors.Is(err, failed) {
			t.Error(err)
		}
	}
	if drawn != 11 {
		t.Error("a failure was cached")
	}
}
