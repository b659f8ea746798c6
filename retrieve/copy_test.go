package retrieve_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/state"
)

// watched lets something happen to a store while it is read or written.
type watched struct {
	*state.Store
	reading func(id string)       // before a document is read
	writing func(id string) error // in place of storing it, where it is an error
}

func (w *watched) Document(ctx context.Context, id string) (*ingest.Document, error) {
	if w.reading != nil {
		w.reading(id)
	}
	return w.Store.Document(ctx, id)
}

func (w *watched) Replace(ctx context.Context, space string, doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) error {
	if w.writing != nil {
		if err := w.writing(doc.ID); err != nil {
			return err
		}
	}
	return w.Store.Replace(ctx, space, doc, chunks, vectors)
}

// fillLibrary fills a store with two roots of two collections and some listings.
func fillLibrary(t *testing.T, e *state.Store, documents int) *retrieve.Index {
	t.Helper()
	x := newIndex(t, e, testSpace)
	for _, r := range []ingest.Root{{Path: "/srv/notes"}, {Path: "/home/notes", Collection: "work"}, {}} {
		_, err := x.AddRoot(t.Context(), r.Path, r.Collection)
		must(t, err)
	}
	roots, err := x.Roots(t.Context())
	must(t, err)
	for _, r := range roots {
		for i := range documents {
			var texts []string
			for n := range i % 4 {
				texts = append(texts, fmt.Sprintf("word%d of part %d in %s", i, n, r.Path))
			}
			store(t, x, r.Name, fmt.Sprintf("d%03d", i), fmt.Sprintf("Title %d", i), texts...)
		}
		must(t, x.KeepListing(t.Context(), r, r.Name+"/pack.zip", []byte("listing of "+r.Name)))
	}
	return x
}

func copyAll(t *testing.T, c *retrieve.Copy) retrieve.CopyReport {
	t.Helper()
	report, err := c.Run(t.Context())
	must(t, err)
	return report
}

func TestCopy(t *testing.T) {
	from, to := openState(t, t.TempDir()), openState(t, t.TempDir())
	x := fillLibrary(t, from, 20)
	// One whose name is free in the target, and is not to be taken.
	_, err := from.DeleteRoot(t.Context(), "notes")
	must(t, err)
	report := copyAll(t, &retrieve.Copy{From: from, To: to})
	if report.Documents != 40 || report.Chunks != 2*5*(1+2+3) || report.Sent != 40 ||
		len(report.Differences)+len(report.Failed) > 0 {
		t.Errorf("%+v", report)
	}
	y := newIndex(t, to, testSpace)
	for _, q := range []string{"word7 part", "word19", "home"} {
		if a, b := found(t, x, retrieve.Query{Text: q, K: 20}), found(t, y, retrieve.Query{Text: q, K: 20}); len(a) == 0 || !slices.Equal(a, b) {
			t.Errorf("%s: %q, and in the copy %q", q, a, b)
		}
	}
	want, err := from.Roots(t.Context())
	must(t, err)
	if got, err := to.Roots(t.Context()); err != nil || !slices.Equal(got, want) {
		t.Errorf("roots %v, %v", got, err)
	}
	for _, r := range want {
		if got, err := to.Listing(t.Context(), r.Name+"/pack.zip"); err != nil || string(got) != "listing of "+r.Name {
			t.Errorf("listing %q, %v", got, err)
		}
	}

	// A second time there is nothing to send.
	if again := copyAll(t, &retrieve.Copy{From: from, To: to}); again.Sent != 0 || again.Documents != 40 {
		t.Errorf("a second time: %+v", again)
	}
}

func TestCopyCollection(t *testing.T) {
	from, to := openState(t, t.TempDir()), openState(t, t.TempDir())
	fillLibrary(t, from, 8)
	report := copyAll(t, &retrieve.Copy{From: from, To: to, Collection: "work"})
	if report.Documents != 8 || len(report.Roots) != 1 || report.Roots[0].Path != "/home/notes" {
		t.Errorf("%+v", report)
	}
	if n, _, err := to.Count(t.Context(), retrieve.Filter{}); n != 8 || err != nil {
		t.Errorf("%d documents, %v", n, err)
	}
	if ids, err := to.Listings(t.Context(), ingest.Root{Name: "notes"}); len(ids) > 0 || err != nil {
		t.Errorf("listings %q, %v", ids, err)
	}
	none := retrieve.Copy{From: from, To: to, Collection: "none"}
	if _, err := none.Run(t.Context()); !errors.Is(err, retrieve.ErrNotFound) ||
		!strings.Contains(err.Error(), `in the source, which has: default, work`) {
		t.Errorf("a collection that is not there: %v", err)
	}
}

// TestCopyInto: a target that holds something keeps it.
func TestCopyInto(t *testing.T) {
	from, to := openState(t, t.TempDir()), openState(t, t.TempDir())
	fillLibrary(t, from, 4)
	y := newIndex(t, to, testSpace)
	for _, path := range []string{"/srv/own", ""} {
		_, err := y.AddRoot(t.Context(), path, "")
		must(t, err)
	}
	store(t, y, "own", "a", "Own", "a boat")
	store(t, y, "uploads", "mine", "Mine", "a train")
	report := copyAll(t, &retrieve.Copy{From: from, To: to})
	if report.Documents != 12 || len(report.Differences) > 0 {
		t.Errorf("%+v", report)
	}
	for _, r := range report.Roots {
		if want := map[bool]int{true: 1}[r.Name == "uploads"]; r.OnlyTarget != want {
			t.Errorf("%s: %d only in the target, want %d", r.Name, r.OnlyTarget, want)
		}
	}
	for _, id := range []string{"own/a", "uploads/mine"} {
		if _, err := to.Document(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
}

func TestCopyRefuses(t *testing.T) {
	from := openState(t, t.TempDir())
	fillLibrary(t, from, 2)
	for name, prepare := range map[string]func(e *state.Store) (want string){
		"another folder of the name": func(e *state.Store) string {
			_, err := e.AddRoot(t.Context(), "/mnt/notes", "")
			must(t, err)
			return `"notes" already belongs to the folder /mnt/notes`
		},
		"another name of the folder": func(e *state.Store) string {
			for _, path := range []string{"/mnt/notes", "/home/notes", "/srv/notes"} {
				_, err := e.AddRoot(t.Context(), path, "work")
				must(t, err)
			}
			_, err := e.DeleteRoot(t.Context(), "notes")
			must(t, err)
			return "already has the root"
		},
		"another collection": func(e *state.Store) string {
			_, err := e.AddRoot(t.Context(), "", "other")
			must(t, err)
			return `"uploads" is already in the collection "other"`
		},
		"another space": func(e *state.Store) string {
			y := newIndex(t, e, hashing{Dims: 64, Name: "other"})
			_, err := y.AddRoot(t.Context(), "/srv/own", "")
			must(t, err)
			store(t, y, "own", "a", "Own", "a boat")
			return "embedded with hash/64 and the target with other/64"
		},
	} {
		t.Run(name, func(t *testing.T) {
			to := openState(t, t.TempDir())
			want := prepare(to)
			before, err := to.Roots(t.Context())
			must(t, err)
			c := retrieve.Copy{From: from, To: to}
			if _, err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			if after, err := to.Roots(t.Context()); err != nil || !slices.Equal(before, after) {
				t.Errorf("the target has the roots %v, %v", after, err)
			}
		})
	}
}

// TestCopyResumes: documents stored before an error are not sent again.
func TestCopyResumes(t *testing.T) {
	from := openState(t, t.TempDir())
	fillLibrary(t, from, 20)
	full := errors.New("the disk is full")
	for _, after := range []int32{0, 1, 17, 42, 59} {
		to := &watched{Store: openState(t, t.TempDir())}
		var written atomic.Int32
		to.writing = func(string) error {
			if written.Add(1) > after {
				return full
			}
			return nil
		}
		c := retrieve.Copy{From: from, To: to}
		if _, err := c.Run(t.Context()); !errors.Is(err, full) {
			t.Errorf("full after %d: %v", after, err)
		}
		to.writing = nil
		there, _, err := to.Count(t.Context(), retrieve.Filter{})
		must(t, err)
		if there < int(after)-8 { // as many as are under way may have been broken off
			t.Errorf("%d are there after %d", there, after)
		}
		if report := copyAll(t, &retrieve.Copy{From: from, To: to}); report.Sent != 60-there || report.Documents != 60 ||
			len(report.Failed)+len(report.Differences) > 0 {
			t.Errorf("after %d of 60: %+v", after, report)
		}
	}
}

// TestCopyChanging: a source that changes meanwhile is reported.
func TestCopyChanging(t *testing.T) {
	engine := openState(t, t.TempDir())
	x := fillLibrary(t, engine, 2)
	var n atomic.Int32
	from := &watched{Store: engine, reading: func(id string) {
		store(t, x, "notes", "busy", "Busy", fmt.Sprintf("word%d", n.Add(1)))
	}}
	c := retrieve.Copy{From: from, To: openState(t, t.TempDir())}
	if _, err := c.Run(t.Context()); !errors.Is(err, retrieve.ErrCopyChanging) {
		t.Error(err)
	}
}

// TestCopyNamesWhatItCannotRead: a document that does not come whole stops
// nothing else.
func TestCopyNamesWhatItCannotRead(t *testing.T) {
	engine := openState(t, filepath.Join(t.TempDir(), "data"))
	fillLibrary(t, engine, 8)
	from := &torn{engine, "notes-2/d003"}
	to := openState(t, t.TempDir())
	report := copyAll(t, &retrieve.Copy{From: from, To: to})
	if len(report.Failed) != 1 || report.Failed[0].Document != "notes-2/d003" || !strings.Contains(report.Failed[0].Reason,
		"chunk 2 is missing") {
		t.Errorf("%+v", report)
	}
	if report.Documents != 23 || len(report.Differences) > 0 {
		t.Errorf("%+v", report)
	}
}

// torn has a document with a damaged chunk.
type torn struct {
	*state.Store
	document string
}

func (s *torn) DocumentChunks(ctx context.Context, id string) ([]ingest.Chunk, [][]float32, error) {
	if id == s.document {
		return nil, nil, errors.New("its chunk 2 is missing")
	}
	return s.Store.DocumentChunks(ctx, id)
}
