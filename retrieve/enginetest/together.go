package enginetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ibid/ingest"
	"ibid/retrieve"
)

// testConcurrent writes and reads by several handles at once: readers see only
// complete documents, and everything stored before they ask.
func testConcurrent(t *testing.T, open func() retrieve.Store) {
	handles := []retrieve.Store{open(), open(), open()}
	ctx := ready(t, handles[0], "a")
	const rounds = 15
	version := func(path string, i int) (*ingest.Document, []ingest.Chunk) {
		return Document("a", path, fmt.Sprintf("boat version%d", i), fmt.Sprintf("sea version%d", i))
	}
	var writing, reading sync.WaitGroup
	done := make(chan struct{})
	for w, e := range handles {
		other := handles[(w+1)%len(handles)]
		writing.Go(func() {
			for i := range rounds {
				doc, chunks := version(fmt.Sprint(w), i)
				if err := e.Replace(ctx, doc, chunks, [][]float32{Vector(float64(w)), Vector(90)}); err != nil {
					t.Error(err)
				}
				if got, err := other.Document(ctx, doc.ID); err != nil || got.Text != doc.Text {
					t.Errorf("what was stored just now is seen elsewhere as %+v, %v", got, err)
				}
				ids, err := other.Lexical(ctx, retrieve.Terms("boat"), 1, retrieve.Filter{Document: doc.ID})
				if err != nil || !slices.Equal(ids, []string{chunks[0].ID}) {
					t.Errorf("what was stored just now is found elsewhere as %q, %v", ids, err)
				}
				// All of them write this one.
				doc, chunks = version("all", i*len(handles)+w)
				if err := e.Replace(ctx, doc, chunks, [][]float32{Vector(50), Vector(90)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, e := range append(handles, open()) {
		reading.Go(func() {
			for {
				if err := halves(ctx, e); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
	for _, e := range append(handles, open()) {
		lexical(t, e, fmt.Sprintf("version%d", rounds-1), 10, retrieve.Filter{PathPrefix: "0"}, "a/0#1", "a/0#2")
		doc, err := e.Document(ctx, "a/all")
		must(t, err)
		last := strings.Fields(doc.Text)[1]
		lexical(t, e, last, 10, retrieve.Filter{Document: "a/all"}, "a/all#1", "a/all#2")
		s, err := e.Stats(ctx, retrieve.Terms("boat"))
		if err != nil || s.Chunks != 2*(len(handles)+1) || s.Frequency[retrieve.Terms("boat")[0]] != len(handles)+1 {
			t.Errorf("Stats = %+v, %v", s, err)
		}
	}
}

// halves reports whether an engine returns documents of two chunks whose versions
// differ.
func halves(ctx context.Context, e retrieve.Engine) error {
	ids, err := e.Dense(ctx, Vector(0), 100, retrieve.Filter{PathPrefix: []string{"", "1", "all"}[rand.IntN(3)]})
	if err != nil {
		return err
	}
	if len(ids)%2 != 0 {
		return fmt.Errorf("half a document is seen: %q", ids)
	}
	if ids, err := e.Lexical(ctx, retrieve.Terms("boat"), 10, retrieve.Filter{}); err != nil || slices.ContainsFunc(ids, func(id string) bool { return !strings.HasSuffix(id, "#1") }) {
		return fmt.Errorf("the chunks about a boat are %q: %w", ids, err)
	}
	found, err := e.Candidates(ctx, ids)
	if err != nil {
		return err
	}
	versions := make(map[string]string)
	for _, c := range found {
		_, version, _ := strings.Cut(c.Text, " ")
		if v := versions[c.Document+c.Digest]; v != "" && v != version {
			return fmt.Errorf("one state of %s has the versions %s and %s", c.Document, v, version)
		}
		versions[c.Document+c.Digest] = version
	}
	list, err := e.Documents(ctx, retrieve.Filter{})
	if err != nil {
		return err
	}
	for _, d := range list {
		if d.Chunks != 2 {
			return fmt.Errorf("%s is listed with %d chunks", d.ID, d.Chunks)
		}
	}
	if len(list) == 0 {
		return nil
	}
	doc, err := e.Document(ctx, list[rand.IntN(len(list))].ID)
	if err != nil {
		return err
	}
	if want, _ := Document(doc.Root, doc.Path, strings.Split(doc.Text, "\n")...); want.Digest != doc.Digest {
		return fmt.Errorf("%s has the text %q and the digest of another", doc.ID, doc.Text)
	}
	return nil
}

// settling is how long a server may take to notice that a client has disconnected.
const settling = 10 * time.Second

// eventually calls look until it succeeds, at most for the time settling.
func eventually[V any](t *testing.T, look func() (V, error)) V {
	t.Helper()
	deadline := time.Now().Add(settling)
	for {
		v, err := look()
		if err == nil {
			return v
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// A breaker cancels calls at random moments while they run.
type breaker struct {
	r                *rand.Rand
	took             map[string]time.Duration // at the least, by what was tried
	broken, finished map[string]int
}

func newBreaker(r *rand.Rand) *breaker {
	return &breaker{r, make(map[string]time.Duration), make(map[string]int), make(map[string]int)}
}

// try calls do, and cancels it once it is known how long such a call takes.
func (b *breaker) try(ctx context.Context, what string, do func(context.Context) error) error {
	took, known := b.took[what]
	if known {
		limited, cancel := context.WithTimeout(ctx, time.Duration(b.r.Float64()*1.5*float64(took)))
		defer cancel()
		ctx = limited
	}
	begun := time.Now()
	if err := do(ctx); err != nil {
		b.broken[what]++
		return err
	}
	if d := time.Since(begun); !known || d < took {
		b.took[what] = d
	}
	b.finished[what]++
	return nil
}

func (b *breaker) String() string {
	return fmt.Sprintf("broken off: %v; finished: %v", b.broken, b.finished)
}

// testAbandoned cancels changes at random moments and abandons the handle: another
// one sees the old or the new state, complete, and can continue.
func testAbandoned(t *testing.T, open func() retrieve.Store) {
	e, watcher := open(), open()
	ctx := ready(t, e, "a", "b")
	r := rand.New(rand.NewPCG(7, 8))
	p := newPlain()
	p.space = space
	p.collections["a"], p.collections["b"] = ingest.DefaultCollection, ingest.DefaultCollection
	version := 0
	next := func(root, path string) (*ingest.Document, []ingest.Chunk, [][]float32) {
		version++
		var texts []string
		var vectors [][]float32
		for i := range 1 + r.IntN(5) {
			texts = append(texts, fmt.Sprintf("boat version%d %s", version, few(r, words(), 40)))
			vectors = append(vectors, Vector(float64(10*i+version%7)))
		}
		doc, chunks := Document(root, path, texts...)
		return doc, chunks, vectors
	}
	fill := func(root string) {
		t.Helper()
		for i := range 3 {
			doc, chunks, vectors := next(root, fmt.Sprintf("%d.md", i))
			must(t, e.Replace(ctx, doc, chunks, vectors))
			must(t, p.Replace(ctx, doc, chunks, vectors))
		}
	}
	fill("a")
	fill("b")
	breaks := newBreaker(r)
	// attempt makes a change, which may be cancelled, and makes it to p if it
	// happened.
	attempt := func(what string, do func(ctx context.Context, e retrieve.Engine) error) {
		t.Helper()
		old := p.clone()
		must(t, do(ctx, p))
		err := breaks.try(ctx, what, func(ctx context.Context) error { return do(ctx, e) })
		if err == nil {
			if err := p.same(ctx, watcher, termsOf(words()...)...); err != nil {
				t.Fatalf("after a %s: %v", what, err)
			}
			return
		}
		p = eventually(t, func() (*plain, error) {
			now := p.same(ctx, watcher, termsOf(words()...)...)
			if now == nil {
				return p, nil
			}
			before := old.same(ctx, watcher, termsOf(words()...)...)
			if before == nil {
				return old, nil
			}
			return nil, fmt.Errorf("a %s that was broken off (%w) left neither the old nor the new: %w; %w", what, err, before, now)
		})
	}
	for round := range 60 {
		root, from := []string{"a", "b"}[r.IntN(2)], fmt.Sprintf("%d.md", r.IntN(3))
		doc, chunks, vectors := next(root, from)
		attempt("Replace", func(ctx context.Context, e retrieve.Engine) error { return e.Replace(ctx, doc, chunks, vectors) })
		if stored, ok := p.documents[root+"/"+fmt.Sprintf("%d.md", r.IntN(3))]; ok && round%2 == 0 {
			to := stored.doc
			to.Path = fmt.Sprintf("renamed %d.md", round)
			to.ID = to.Root + "/" + to.Path
			attempt("Rename", func(ctx context.Context, e retrieve.Engine) error { return e.Rename(ctx, stored.doc.ID, &to) })
		}
		if round%4 == 3 {
			attempt("DeleteRoot", func(ctx context.Context, e retrieve.Engine) error {
				_, err := e.DeleteRoot(ctx, root)
				return err
			})
			if _, there := p.collections[root]; !there {
				added, err := watcher.AddRoot(ctx, "/srv/"+root, "")
				must(t, err)
				if added.Name != root {
					t.Fatalf("the root %s came back as %s", root, added.Name)
				}
				p.collections[root] = added.Collection
				fill(root)
			}
		}
		if round%10 == 9 {
			e = open() // the old one is neither closed nor used again
		}
	}
	t.Log(breaks)
	for _, what := range []string{"Replace", "Rename", "DeleteRoot"} {
		if breaks.broken[what] == 0 {
			t.Errorf("no %s was broken off: this proves nothing", what)
		}
	}
	// All handles still work.
	for _, e := range []retrieve.Store{watcher, e, open()} {
		doc, chunks, vectors := next("a", "0.md")
		must(t, e.Replace(ctx, doc, chunks, vectors))
		must(t, p.Replace(ctx, doc, chunks, vectors))
		must(t, p.same(ctx, watcher, termsOf(words()...)...))
	}
}
