package weaviate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ibid/retrieve"
	"ibid/retrieve/enginetest"
	"ibid/retrieve/weaviate/weaviatetest"
)

const testSpace = "enginetest/4"

// openTwo opens two engines on one empty library, as two servers would.
func openTwo(t *testing.T, c *weaviatetest.Cluster) (a, b *Engine) {
	t.Helper()
	open := fresh(c, nil)(t)
	a, b = open().(*Engine), open().(*Engine)
	if err := a.SetSpace(t.Context(), testSpace); err != nil {
		t.Fatal(err)
	}
	if _, err := a.AddRoot(t.Context(), "/srv/a", ""); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// stored counts the objects of a document in a class, of all generations.
func stored(t *testing.T, e *Engine, class, id string) int {
	t.Helper()
	rows, err := e.wire.search(t.Context(), query(class, equal("document", documentID(id)), maxResults))
	if err != nil {
		t.Fatal(err)
	}
	return len(rows)
}

func TestTogether(t *testing.T) {
	c := weaviatetest.Start(t, 1)
	t.Run("OneDocument", func(t *testing.T) { testOneDocument(t, c) })
	t.Run("Crash", func(t *testing.T) { testCrash(t, c) })
	t.Run("Schema", func(t *testing.T) { testSchema(t, c) })
	t.Run("Killed", func(t *testing.T) { testKilled(t, c) }) // the last, for it kills the node
}

// Of two servers that replace one document at once one comes last, and leaves it
// whole; nothing of the others stays.
func testOneDocument(t *testing.T, c *weaviatetest.Cluster) {
	a, b := openTwo(t, c)
	var working sync.WaitGroup
	for w := range 6 {
		working.Go(func() {
			for i := range 4 {
				e := []*Engine{a, b}[w%2]
				word := fmt.Sprintf("version%d", 10*w+i)
				texts := []string{"boat " + word, "sea " + word, "harbour " + word}[:1+(w+i)%3]
				doc, chunks := enginetest.Document("a", "x", texts...)
				vectors := make([][]float32, len(chunks))
				for n := range vectors {
					vectors[n] = enginetest.Vector(float64(n))
				}
				if err := e.Replace(t.Context(), doc, chunks, vectors); err != nil {
					t.Error(err)
				}
			}
		})
	}
	working.Wait()
	doc, err := b.Document(t.Context(), "a/x")
	if err != nil {
		t.Fatal(err)
	}
	texts := strings.Split(doc.Text, "\n")
	if n := stored(t, a, a.wire.at.chunks(testSpace), "a/x"); n != len(texts) {
		t.Errorf("%d chunks are stored of a document of %d", n, len(texts))
	}
	found, err := a.Candidates(t.Context(), []string{"a/x#1", "a/x#2", "a/x#3"})
	if err != nil || len(found) != len(texts) {
		t.Fatalf("%d chunks of %d, %v", len(found), len(texts), err)
	}
	for i, c := range found {
		if c.Text != texts[i] {
			t.Errorf("chunk %d is %q in a document of %q", i, c.Text, texts)
		}
	}
	pages, err := a.wire.pages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s := stateOf(pages); len(s.tasks) > 0 {
		t.Errorf("the journals still say %+v", s.tasks)
	}
}

// What a crash leaves is neither found nor counted, and is swept up when its
// process cannot be at work any more, and no sooner.
func testCrash(t *testing.T, c *weaviatetest.Cluster) {
	a, b := openTwo(t, c)
	ctx := t.Context()
	doc, chunks := enginetest.Document("a", "x", "boat", "harbour")
	vectors := [][]float32{enginetest.Vector(0), enginetest.Vector(1)}
	if err := b.Replace(ctx, doc, chunks, vectors); err != nil {
		t.Fatal(err)
	}
	next, more := enginetest.Document("a", "x", "boat", "boat again", "a new boat")
	d := newDocument(next, more, []int{1, 1, 1})
	h, err := a.journal.begin(ctx, task{Name: documentTask + d.ID, Generation: d.Generation})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := d.parts(a.wire.at, next.Text, outline{})
	if err != nil {
		t.Fatal(err)
	}
	class := a.wire.at.chunks(testSpace)
	for i := range more {
		counts, length := retrieve.CountTerms(more[i].Text)
		o, err := d.chunkObject(class, &more[i], counts, length, enginetest.Vector(0))
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	if err := a.wire.put(ctx, objects...); err != nil {
		t.Fatal(err)
	}
	h.j.stop() // it says nothing any more
	h.j.beats.Wait()

	same := func(when string) {
		t.Helper()
		s, err := b.Stats(ctx, []string{"boat", "harbour"})
		if err != nil || s.Chunks != 2 || s.Frequency["boat"] != 1 || s.Frequency["harbour"] != 1 {
			t.Errorf("%s: %+v, %v", when, s, err)
		}
		ids, err := b.Dense(ctx, enginetest.Vector(0), 9, retrieve.Filter{})
		if err != nil || len(ids) != 2 {
			t.Errorf("%s: found %q, %v", when, ids, err)
		}
	}
	same("with what a crash left")
	if err := b.sweepUp(ctx); err != nil {
		t.Fatal(err)
	}
	if n := stored(t, b, class, "a/x"); n != 5 {
		t.Errorf("%d of 5 chunks are left: those of a process that may be at work were swept up", n)
	}
	before, err := b.Revision(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b.sweeping.age = time.Millisecond
	time.Sleep(2 * b.sweeping.age)
	if err := b.sweepUp(ctx); err != nil {
		t.Fatal(err)
	}
	same("swept up")
	if n, parts := stored(t, b, class, "a/x"), stored(t, b, b.wire.at.parts(), "a/x"); n != 2 || parts != 2 {
		t.Errorf("%d chunks and %d parts are left, want 2 of both", n, parts)
	}
	if after, err := b.Revision(ctx); err != nil || after <= before {
		t.Errorf("the revision went from %d to %d, %v", before, after, err)
	}
	pages, err := b.wire.pages(ctx)
	if err != nil || len(pages) != 1 {
		t.Errorf("%d journals are left, %v", len(pages), err)
	}
}

// A library that is there is opened as it is, and not as what it is not.
func testSchema(t *testing.T, c *weaviatetest.Cluster) {
	a, _ := openTwo(t, c)
	at := a.wire.at
	again := "weaviate://" + at.hosts[0] + "?grpc=" + at.grpc[0] + "&prefix=" + at.prefix
	for asks, says := range map[string]string{"&shards=3": "1 shards, and the URL says shards=3", "&replicas=2": "1 replicas, and the URL says replicas=2"} {
		_, err := Open(t.Context(), again+asks, Options{})
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), at.hosts[0]) {
			t.Errorf("opened with %s: %v; want %q", asks, err, says)
		}
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			e, err := Open(t.Context(), strings.Replace(again, at.prefix, at.prefix+"New", 1), Options{})
			if err != nil {
				t.Errorf("opened by several at once: %v", err)
				return
			}
			t.Cleanup(func() { _ = e.Close() })
		})
	}
	all.Wait()
}

// What was acknowledged is there when the server is killed and comes back.
func testKilled(t *testing.T, c *weaviatetest.Cluster) {
	a, b := openTwo(t, c)
	a.wire.wait = time.Second
	const first = 40
	for n := range first {
		if err := numbered(t, a, n); err != nil {
			t.Fatal(err)
		}
	}
	c.Nodes[0].Kill()
	err := numbered(t, a, first)
	if !errors.Is(err, ErrAway) || !errors.Is(err, retrieve.ErrAway) || !strings.Contains(err.Error(), a.wire.at.hosts[0]) {
		t.Errorf("a write to a server that is away: %v", err)
	}
	limit, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := b.Dense(limit, enginetest.Vector(0), 1, retrieve.Filter{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a search that its caller waits for no longer: %v", err)
	}
	c.Nodes[0].Start()
	c.Nodes[0].Ready()
	for n := range first {
		if err := whole(t.Context(), b, n); err != nil {
			t.Errorf("document %d was acknowledged: %v", n, err)
		}
	}
	if err := numbered(t, b, first); err != nil {
		t.Errorf("a write when it is back: %v", err)
	}
}
