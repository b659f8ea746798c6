package enginetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"ibid/retrieve"
)

// A failing embeds some batches and then fails.
type failing struct {
	Hashing
	left int
}

var errTired = errors.New("tired")

func (f *failing) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if f.left--; f.left < 0 {
		return nil, errTired
	}
	return f.Hashing.Embed(ctx, texts)
}

// testReembed changes the space of a store, by one handle while another one writes.
func testReembed(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	e, other := open(), open()
	first := func(x *retrieve.Index, question, want string) {
		t.Helper()
		got, err := x.Search(ctx, retrieve.Query{Text: question, K: 1, Apart: true})
		if err != nil || len(got) != 1 || got[0].ID != want {
			t.Errorf("for %q %d passages are found, %+v, %v; want %s", question, len(got), got, err, want)
		}
	}
	before, after := Hashing{48, "before"}, Hashing{32, "after"}
	x := index(t, other, before)
	_, err := other.AddRoot(ctx, "/srv/a", "")
	must(t, err)
	const documents, each = 6, 60
	for i := range documents {
		var texts []string
		for j := range each {
			texts = append(texts, fmt.Sprintf("harbour word%d", i*each+j))
		}
		doc, chunks := Document("a", fmt.Sprint(i), texts...)
		must(t, x.Replace(ctx, doc, chunks))
	}
	// After an interruption it still serves the old space.
	if err := retrieve.Reembed(ctx, e, &failing{after, 1}, nil); !errors.Is(err, errTired) {
		t.Fatalf("an embedder that fails: %v", err)
	}
	first(x, "word7", "a/0#8")
	if done, total, err := e.Prepared(ctx, after.Space()); err != nil || done == 0 || done >= total || total != documents*each {
		t.Errorf("%d of %d are prepared, %v", done, total, err)
	}
	if switched, err := e.SwitchSpace(ctx, after.Space()); switched || err != nil {
		t.Errorf("switched before all was prepared: %t, %v", switched, err)
	}
	// Changes made meanwhile are in the new space in the end.
	doc, chunks := Document("a", "0", "replaced meanwhile")
	must(t, x.Replace(ctx, doc, chunks))
	must(t, x.Delete(ctx, "a/1"))
	from, total := -1, 0
	must(t, retrieve.Reembed(ctx, open(), after, func(done, all int) {
		if from < 0 {
			from = done
		}
		total = all
	}))
	if left := 1 + (documents-2)*each; from <= 0 || total != left {
		t.Errorf("it went on from %d of %d chunks, want %d", from, total, left)
	}
	for _, e := range []retrieve.Store{e, other} {
		if s, err := e.Space(ctx); s != after.Space() || err != nil {
			t.Errorf("the space is %q, %v", s, err)
		}
		y := index(t, e, after)
		first(y, "word150", "a/2#31")
		first(y, "replaced", "a/0#1")
	}
	testOldSpace(t, e, x, before, after)
	// A second call has nothing to do.
	must(t, retrieve.Reembed(ctx, e, &failing{after, 0}, nil))
	// Vectors prepared for one space are not used for another.
	if err := retrieve.Reembed(ctx, e, &failing{Hashing{32, "third"}, 1}, nil); err != nil && !errors.Is(err, errTired) {
		t.Fatal(err)
	}
	fourth := Hashing{16, "fourth"}
	must(t, retrieve.Reembed(ctx, e, fourth, nil))
	first(index(t, other, fourth), "word150", "a/2#31")
}

// testOldSpace checks that an engine refuses the space that it had before.
func testOldSpace(t *testing.T, e retrieve.Store, x *retrieve.Index, before, after Hashing) {
	t.Helper()
	ctx := t.Context()
	doc, chunks := Document("a", "0", "replaced meanwhile")
	var wrong *retrieve.SpaceError
	if _, err := x.Search(ctx, retrieve.Query{Text: "word7"}); !errors.As(err, &wrong) {
		t.Errorf("searching in the old space: %v", err)
	}
	if err := x.Replace(ctx, doc, chunks); !errors.As(err, &wrong) || wrong.Stored != after.Space() || wrong.Wanted != before.Space() {
		t.Errorf("storing in the old space: %v", err)
	}
}

// testPrepare stores a prepared document, and one of another space.
func testPrepare(t *testing.T, open func() retrieve.Store) {
	e, other := open(), open()
	ctx := ready(t, e, "a")
	doc, chunks := Document("a", "x", "boat")
	if _, err := e.Prepare(space, doc, chunks, nil); err == nil {
		t.Error("a chunk was prepared without a vector")
	}
	store, err := e.Prepare(space, doc, chunks, [][]float32{Vector(0)})
	must(t, err)
	if _, err := other.Document(ctx, doc.ID); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a document that is only prepared: %v", err)
	}
	put(t, other, "a", "x", []float64{90, 90}, "train", "boat")
	must(t, store(ctx))
	lexical(t, other, "train", 5, retrieve.Filter{})
	lexical(t, other, "boat", 5, retrieve.Filter{}, "a/x#1")
	dense(t, other, 0, 5, retrieve.Filter{}, "a/x#1")
	doc, chunks = Document("a", "y", "boat")
	store, err = e.Prepare("other/4", doc, chunks, [][]float32{Vector(0)})
	if err == nil {
		err = store(ctx)
	}
	var wrong *retrieve.SpaceError
	if !errors.As(err, &wrong) || wrong.Stored != space || wrong.Wanted != "other/4" {
		t.Errorf("a document of another space: %v", err)
	}
	if _, err := e.Document(ctx, doc.ID); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("it is stored: %v", err)
	}
}

func index(t *testing.T, e retrieve.Engine, m retrieve.Embedder) *retrieve.Index {
	t.Helper()
	x, err := retrieve.NewIndex(t.Context(), e, m, retrieve.Options{})
	must(t, err)
	return x
}

// A during calls do while it embeds.
type during struct {
	Hashing
	do func()
}

func (d during) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	d.do()
	return d.Hashing.Embed(ctx, texts)
}

// testLateWriter embeds a document while another handle switches the space: the
// engine must refuse the vectors, which may have the same length.
func testLateWriter(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	e, other := open(), open()
	before, after := Hashing{16, "before"}, Hashing{16, "after"}
	_, err := e.AddRoot(ctx, "/srv/a", "")
	must(t, err)
	doc, chunks := Document("a", "x", "word")
	must(t, index(t, e, before).Replace(ctx, doc, chunks))
	late := index(t, e, during{before, func() { must(t, retrieve.Reembed(ctx, other, after, nil)) }})
	doc, chunks = Document("a", "x", "another word")
	var wrong *retrieve.SpaceError
	if err := late.Replace(ctx, doc, chunks); !errors.As(err, &wrong) || wrong.Stored != after.Space() {
		t.Errorf("a late writer: %v", err)
	}
	kept, err := other.Document(ctx, "a/x")
	must(t, err)
	if kept.Text != "word" {
		t.Errorf("stored %q", kept.Text)
	}
}

// testReembedTogether writes and searches while one handle changes the space. In the
// end everything written is complete and in the new space, and nothing else exists.
func testReembedTogether(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	e, reader := open(), open()
	before, after := Hashing{24, "before"}, Hashing{32, "after"}
	x := index(t, e, before)
	_, err := e.AddRoot(ctx, "/srv/a", "")
	must(t, err)
	const writers, each = 2, 4
	var working, reading sync.WaitGroup
	all := make([]*spaceWriter, writers)
	for n := range writers {
		w := &spaceWriter{number: n, documents: each, stored: make(map[string][]string)}
		all[n] = w
		for i := range each {
			must(t, w.replace(ctx, x, i, fmt.Sprintf("harbour first%d", i), "harbour boat"))
		}
		own := open()
		working.Go(func() {
			if err := w.write(ctx, own, before, after); err != nil {
				t.Errorf("writer %d: %v", n, err)
			}
		})
	}
	stop := make(chan struct{})
	reading.Go(func() { searchSpaces(t, reader, stop, before, after) })
	must(t, retrieve.Reembed(ctx, e, after, nil))
	working.Wait()
	close(stop)
	reading.Wait()
	if s, err := reader.Space(ctx); s != after.Space() || err != nil {
		t.Fatalf("the space is %q, %v", s, err)
	}
	var ids []string
	for _, w := range all {
		for id, texts := range w.stored {
			doc, err := reader.Document(ctx, id)
			if err != nil || doc.Text != strings.Join(texts, "\n") {
				t.Errorf("%s is %+v, %v; want %q", id, doc, err, texts)
			}
			for i := range texts {
				ids = append(ids, retrieve.ChunkID(id, i+1))
			}
		}
	}
	slices.Sort(ids)
	checkChunks(t, e, after, ids)
	checkChunks(t, reader, after, ids)
}

// A spaceWriter replaces and deletes documents while the space changes.
type spaceWriter struct {
	number, documents int
	stored            map[string][]string // the texts of its documents, by id
}

func (w *spaceWriter) path(n int) string { return fmt.Sprintf("%d-%d", w.number, n) }

func (w *spaceWriter) replace(ctx context.Context, x *retrieve.Index, n int, texts ...string) error {
	doc, chunks := Document("a", w.path(n), texts...)
	err := x.Replace(ctx, doc, chunks)
	if err == nil {
		w.stored[doc.ID] = texts
	}
	return err
}

// write makes 25 changes, in the space before until the engine refuses it.
func (w *spaceWriter) write(ctx context.Context, e retrieve.Store, before, after Hashing) error {
	space := before
	r := rand.New(rand.NewPCG(7, uint64(w.number)))
	for i := 0; i < 25; {
		n := r.IntN(w.documents)
		err := w.change(ctx, e, space, i, n, 1+r.IntN(3))
		wrong := (*retrieve.SpaceError)(nil)
		if errors.As(err, &wrong) && wrong.Stored == after.Space() && space == before {
			space = after
			continue
		}
		if err != nil {
			return err
		}
		i++
	}
	return nil
}

// change deletes a document at every sixth step, otherwise replaces it.
func (w *spaceWriter) change(ctx context.Context, e retrieve.Store, space Hashing, step, n, texts int) error {
	if step%6 == 5 {
		id := "a/" + w.path(n)
		err := e.Delete(ctx, id)
		if err == nil {
			delete(w.stored, id)
		}
		return err
	}
	x, err := retrieve.NewIndex(ctx, e, space, retrieve.Options{})
	if err != nil {
		return err
	}
	return w.replace(ctx, x, n, []string{fmt.Sprintf("harbour word%d", step), "harbour ship", "harbour sea"}[:texts]...)
}

// searchSpaces searches in each space until stop is closed; in one of them the
// engine refuses.
func searchSpaces(t *testing.T, e retrieve.Store, stop <-chan struct{}, spaces ...Hashing) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		for _, m := range spaces {
			x, err := retrieve.NewIndex(t.Context(), e, m, retrieve.Options{})
			if err == nil {
				_, err = x.Search(t.Context(), retrieve.Query{Text: "harbour", K: 5, Apart: true})
			}
			if wrong := (*retrieve.SpaceError)(nil); err != nil && !errors.As(err, &wrong) {
				t.Errorf("a reader: %v", err)
				return
			}
		}
	}
}

// checkChunks checks that an engine has exactly the chunks, all with the word
// "harbour", in a space.
func checkChunks(t *testing.T, e retrieve.Store, space Hashing, ids []string) {
	t.Helper()
	ctx := t.Context()
	found, err := e.Candidates(ctx, ids)
	must(t, err)
	if len(found) != len(ids) {
		t.Errorf("%d chunks found, want %d", len(found), len(ids))
	}
	for _, c := range found {
		if len(c.Vector) != space.Dims {
			t.Errorf("the vector of %s has %d dimensions", c.ID, len(c.Vector))
		}
	}
	rows, err := space.Embed(ctx, []string{"harbour"})
	must(t, err)
	for what, find := range map[string]func() ([]string, error){
		"Dense":   func() ([]string, error) { return e.Dense(ctx, rows[0], 1000, retrieve.Filter{}) },
		"Lexical": func() ([]string, error) { return e.Lexical(ctx, retrieve.Terms("harbour"), 1000, retrieve.Filter{}) },
	} {
		got, err := find()
		if slices.Sort(got); err != nil || !slices.Equal(got, ids) {
			t.Errorf("%s finds %d chunks, %v; want %d", what, len(got), err, len(ids))
		}
	}
	terms := retrieve.Terms("harbour")
	if s, err := e.Stats(ctx, terms); err != nil || s.Chunks != len(ids) || s.Frequency[terms[0]] != len(ids) {
		t.Errorf("Stats = %+v, %v; want %d chunks", s, err, len(ids))
	}
}

// testEmptied checks that the first writer chooses the space of an emptied store.
func testEmptied(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	e, other := open(), open()
	first, second := Hashing{16, "first"}, Hashing{16, "second"}
	x, y := index(t, e, first), index(t, other, second)
	_, err := x.AddRoot(ctx, "/srv/a", "")
	must(t, err)
	doc, chunks := Document("a", "x", "word")
	for range 2 {
		must(t, x.Replace(ctx, doc, chunks))
		must(t, x.Replace(ctx, doc, chunks))
		var wrong *retrieve.SpaceError
		if err := y.Replace(ctx, doc, chunks); !errors.As(err, &wrong) || wrong.Stored != first.Space() {
			t.Fatalf("another space: %v", err)
		}
		must(t, x.Delete(ctx, doc.ID))
		must(t, y.Replace(ctx, doc, chunks))
		if err := x.Replace(ctx, doc, chunks); !errors.As(err, &wrong) || wrong.Stored != second.Space() {
			t.Fatalf("the space of before: %v", err)
		}
		must(t, y.Delete(ctx, doc.ID))
	}
}
