package enginetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"ibid/ingest"
	"ibid/retrieve"
)

// Copy runs [retrieve.Copy] between two stores of a backend, and the contract of
// the calls that it needs.
func Copy(t *testing.T, b Backend) {
	t.Run("KeepRoot", func(t *testing.T) { testKeepRoot(t, b.New(t)()) })
	t.Run("Copy", func(t *testing.T) {
		from := b.New(t)()
		t.Run("To", func(t *testing.T) { testCopy(t, from, b.New(t)()) })
	})
}

func testKeepRoot(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e)
	want := []ingest.Root{
		{Name: "notes", Path: "/home/notes", Collection: "work"},
		{Name: "notes-7", Path: "/srv/notes", Collection: "default"},
		{Name: "uploads", Collection: "sent"},
	}
	for range 2 { // the second time they are there
		for _, r := range want {
			must(t, e.KeepRoot(ctx, r))
		}
	}
	for _, r := range []ingest.Root{
		{Name: "notes", Path: "/other/notes", Collection: "work"},
		{Name: "notes-2", Path: "/home/notes", Collection: "work"},
		{Name: "notes", Path: "/home/notes", Collection: "play"},
		{Name: "sent", Collection: "sent"},
	} {
		var refused *retrieve.RootError
		if err := e.KeepRoot(ctx, r); !errors.As(err, &refused) || refused.Root != r {
			t.Errorf("KeepRoot(%+v): %v", r, err)
		}
	}
	got, err := e.Roots(ctx)
	must(t, err)
	if !slices.Equal(got, want) {
		t.Errorf("Roots = %+v, want %+v", got, want)
	}
	if r, err := e.AddRoot(ctx, "/srv/notes", ""); err != nil || r != want[1] {
		t.Errorf("AddRoot = %+v, %v", r, err)
	}
	put(t, e, "notes-7", "a", []float64{0}, "boat")
	docs, err := e.Documents(ctx, retrieve.Filter{Collection: "default"})
	if err != nil || len(docs) != 1 {
		t.Errorf("Documents = %v, %v", docs, err)
	}
}

func testCopy(t *testing.T, from, to retrieve.Engine) {
	ctx := ready(t, from)
	for path, collection := range map[string]string{"/srv/logs": "", "/home/logs": "work", "": ""} {
		_, err := from.AddRoot(ctx, path, collection)
		must(t, err)
	}
	roots, err := from.Roots(ctx)
	must(t, err)
	for _, r := range roots {
		for i := range 12 {
			var angles []float64
			var texts []string
			for n := range i % 4 {
				angles = append(angles, float64(7*i+n))
				texts = append(texts, fmt.Sprintf("word%d of part %d", i, n))
			}
			put(t, from, r.Name, fmt.Sprintf("day %d.md", i), angles, texts...)
		}
		must(t, from.KeepListing(ctx, r.Name, r.Name+"/pack.zip", []byte{0, 1, 'x'}))
	}
	_, err = from.DeleteRoot(ctx, "logs")
	must(t, err)
	c := retrieve.Copy{From: from, To: to, Sample: 100, Seed: 1}
	report, err := c.Run(ctx)
	must(t, err)
	if report.Documents != 24 || report.Sent != 24 || report.Compared != 24 || len(report.Differences)+len(report.Failed) > 0 {
		t.Errorf("copied %+v", report)
	}
	again := retrieve.Copy{From: from, To: to, Sample: 100, Seed: 2}
	if report, err = again.Run(ctx); err != nil || report.Sent != 0 || report.Compared != 24 {
		t.Errorf("copied again %+v, %v", report, err)
	}
	want, err := from.Roots(ctx)
	must(t, err)
	if got, err := to.Roots(ctx); err != nil || !slices.Equal(got, want) {
		t.Errorf("Roots = %v, %v, want %v", got, err, want)
	}
	for _, r := range want {
		if got, err := to.Listing(ctx, r.Name+"/pack.zip"); err != nil || string(got) != "\x00\x01x" {
			t.Errorf("Listing = %q, %v", got, err)
		}
	}
	dense(t, to, 14, 2, retrieve.Filter{Root: "uploads"}, "uploads/day 2.md#1", "uploads/day 2.md#2")
	// Count agrees with Documents.
	for _, f := range []retrieve.Filter{{}, {Root: "uploads"}, {Collection: "work"}, {Root: "none"}} {
		list, err := to.Documents(ctx, f)
		must(t, err)
		chunks := 0
		for _, d := range list {
			chunks += d.Chunks
		}
		if n, m, err := retrieve.Count(ctx, to, f); n != len(list) || m != chunks || err != nil {
			t.Errorf("Count(%+v) = %d, %d, %v, want %d, %d", f, n, m, err, len(list), chunks)
		}
	}
}
