package retrieve_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"ibid/retrieve"
)

// failing embeds so many batches and then no more.
type failing struct {
	hashing
	left int
}

var errTired = errors.New("tired")

func (f *failing) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if f.left--; f.left < 0 {
		return nil, errTired
	}
	return f.hashing.Embed(ctx, texts)
}

func TestReembed(t *testing.T) {
	ctx := t.Context()
	e := openLocal(t, t.TempDir())
	x := newIndex(t, e, testSpace)
	_, err := x.AddRoot(ctx, "/srv/a", "")
	must(t, err)
	const documents = 300
	for i := range documents {
		store(t, x, "a", fmt.Sprint(i), "Title", fmt.Sprintf("word%d in one chunk", i), fmt.Sprintf("word%d in the next", i))
	}

	// Broken off on its way, it serves the old space as before.
	other := hashing{32, "other"}
	tired := &failing{other, 1}
	if err := retrieve.Reembed(ctx, e, tired, nil); !errors.Is(err, errTired) {
		t.Fatalf("a failing embedder: %v", err)
	}
	if got := found(t, x, retrieve.Query{Text: "word7 next", K: 1}); len(got) != 1 || got[0] != "a/7#2" {
		t.Errorf("meanwhile found %q", got)
	}
	// What is written meanwhile belongs to the new space in the end.
	store(t, x, "a", "3", "Title", "replaced")
	must(t, x.Delete(ctx, "a/5"))

	first, last := -1, 0
	must(t, retrieve.Reembed(ctx, e, other, func(done, total int) {
		if first < 0 {
			first = done
		}
		last = done
		if total != 2*documents-3 {
			t.Errorf("%d of %d", done, total)
		}
	}))
	if first < 200 || last != 2*documents-3 {
		t.Errorf("it went on from %d to %d: what was done already was lost", first, last)
	}
	var space *retrieve.SpaceError
	if _, err := x.Search(ctx, retrieve.Query{Text: "word7"}); !errors.As(err, &space) {
		t.Errorf("searching in the old space: %v", err)
	}
	y := newIndex(t, e, other)
	for _, want := range []string{"a/7#2", "a/299#2"} {
		var n int
		if _, err := fmt.Sscanf(want, "a/%d#", &n); err != nil {
			t.Fatal(err)
		}
		if got := found(t, y, retrieve.Query{Text: fmt.Sprintf("word%d next", n), K: 1}); len(got) != 1 || got[0] != want {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	if got := found(t, y, retrieve.Query{Text: "replaced", K: 1}); len(got) != 1 || got[0] != "a/3#1" {
		t.Errorf("found %q", got)
	}
	// Done once, it has nothing to do.
	must(t, retrieve.Reembed(ctx, e, &failing{other, 0}, nil))
}

// A third space drops what was prepared for the second.
func TestReembedChangeOfMind(t *testing.T) {
	ctx := t.Context()
	e := openLocal(t, t.TempDir())
	x := newIndex(t, e, testSpace)
	_, err := x.AddRoot(ctx, "/srv/a", "")
	must(t, err)
	for i := range 300 {
		store(t, x, "a", fmt.Sprint(i), "Title", fmt.Sprintf("word%d", i))
	}
	if err := retrieve.Reembed(ctx, e, &failing{hashing{32, "second"}, 1}, nil); !errors.Is(err, errTired) {
		t.Fatal(err)
	}
	third := hashing{16, "third"}
	must(t, retrieve.Reembed(ctx, e, third, nil))
	if got := found(t, newIndex(t, e, third), retrieve.Query{Text: "word123", K: 1}); len(got) != 1 || got[0] != "a/123#1" {
		t.Errorf("found %q", got)
	}
}

// A writer that embedded a document while another process switched the space
// must not store it: the vectors may be as long, and mean something else.
func TestReembedRefusesALateWriter(t *testing.T) {
	ctx := t.Context()
	e := openLocal(t, t.TempDir())
	x := newIndex(t, e, testSpace)
	_, err := x.AddRoot(ctx, "/srv/a", "")
	must(t, err)
	store(t, x, "a", "1", "Title", "word")
	other := hashing{testSpace.dims, "other"}
	late := newIndex(t, e, &during{testSpace, func() { must(t, retrieve.Reembed(ctx, e, other, nil)) }})
	doc, chunks := document("a", "1", "Title", "another word")
	var space *retrieve.SpaceError
	if err := late.Replace(ctx, doc, chunks); !errors.As(err, &space) || space.Stored != "other/64" {
		t.Errorf("a late writer: %v", err)
	}
	kept, err := e.Document(ctx, "a/1")
	must(t, err)
	if kept.Text != "word" {
		t.Errorf("stored %q", kept.Text)
	}
}

// A library that was emptied may be filled by whoever comes first, in any space.
func TestReplaceInAnEmptiedLibrary(t *testing.T) {
	ctx := t.Context()
	e := openLocal(t, t.TempDir())
	x, y := newIndex(t, e, testSpace), newIndex(t, e, hashing{testSpace.dims, "other"})
	_, err := x.AddRoot(ctx, "/srv/a", "")
	must(t, err)
	doc, chunks := document("a", "1", "Title", "word")
	for range 2 {
		must(t, x.Replace(ctx, doc, chunks))
		must(t, x.Replace(ctx, doc, chunks))
		var space *retrieve.SpaceError
		if err := y.Replace(ctx, doc, chunks); !errors.As(err, &space) || space.Stored != testSpace.Space() {
			t.Fatalf("another space: %v", err)
		}
		must(t, x.Delete(ctx, doc.ID))
		must(t, y.Replace(ctx, doc, chunks))
		if err := x.Replace(ctx, doc, chunks); !errors.As(err, &space) || space.Stored != "other/64" {
			t.Fatalf("the space of before: %v", err)
		}
		must(t, y.Delete(ctx, doc.ID))
	}
}

// during does something while it embeds.
type during struct {
	hashing
	do func()
}

func (d *during) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	d.do()
	return d.hashing.Embed(ctx, texts)
}
