// Package enginetest is the contract of [retrieve.Store] as tests for any
// implementation.
package enginetest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ibid/ingest"
	"ibid/retrieve"
)

const (
	space = "enginetest/4"
	dims  = 4
)

// A Backend is a kind of store under test.
type Backend struct {
	// New creates an empty store with [Limits] for one test. Each call of open
	// returns another handle on that store, as another process would have. New
	// closes the handles when the test ends; the test may close them before.
	New func(t *testing.T) (open func() retrieve.Store)
	// Recall is the least share that Dense and Lexical find of the k best of an
	// exact search, on average over questions; 1 if they are exact. Their order
	// must always be exact.
	Recall float64
	// Unbroken, if not empty, is the reason why changes must not be cancelled on
	// this server; tests that do so are skipped.
	Unbroken string
}

// Run runs the contract of the engine against a backend.
func Run(t *testing.T, b Backend) {
	run(t, b, []contract{
		{"Empty", alone(testEmpty)},
		{"Close", testClose},
		{"Space", alone(testSpace)},
		{"Roots", alone(testRoots)},
		{"Collections", testCollections},
		{"Replace", alone(testReplace)},
		{"Refuse", alone(testRefuse)},
		{"Delete", alone(testDelete)},
		{"Rename", alone(testRename)},
		{"Excerpt", alone(testExcerpt)},
		{"Sections", alone(testSections)},
		{"Listings", alone(testListings)},
		{"Revision", testRevision},
		{"Odd", testOdd},
		{"Large", testLarge},
		{"Filter", alone(testFilter)},
		{"Ties", alone(testTies)},
		{"ManyTies", func(t *testing.T, open func() retrieve.Store) { testManyTies(t, b, open()) }},
		{"TiesOfNames", func(t *testing.T, open func() retrieve.Store) { testTiesOfNames(t, b, open()) }},
		{"Lexical", alone(testLexical)},
		{"Stats", alone(testStats)},
		{"Candidates", alone(testCandidates)},
		{"Oracle", func(t *testing.T, open func() retrieve.Store) { testOracle(t, b, open) }},
		{"Recall", func(t *testing.T, open func() retrieve.Store) { testRecall(t, b, open) }},
		{"Hybrid", func(t *testing.T, open func() retrieve.Store) { testHybrid(t, b, open) }},
		{"Concurrent", testConcurrent},
		{"Abandoned", testAbandoned},
		{"Prepare", testPrepare},
		{"Reembed", testReembed},
		{"LateWriter", testLateWriter},
		{"ReembedTogether", testReembedTogether},
		{"Emptied", testEmptied},
	})
}

// A contract is a test of one promise of a store, which is empty at first.
type contract struct {
	name string
	test func(t *testing.T, open func() retrieve.Store)
}

func run(t *testing.T, b Backend, all []contract) {
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			if b.Unbroken != "" && strings.HasSuffix(c.name, "Abandoned") {
				t.Skip(b.Unbroken)
			}
			c.test(t, b.New(t))
		})
	}
}

// alone makes a contract of a test that needs one handle.
func alone(test func(t *testing.T, e retrieve.Engine)) func(t *testing.T, open func() retrieve.Store) {
	return func(t *testing.T, open func() retrieve.Store) { test(t, open()) }
}

// Document returns a document of the root with one chunk for each text.
func Document(root, path string, texts ...string) (*ingest.Document, []ingest.Chunk) {
	doc := &ingest.Document{
		ID: root + "/" + path, Root: root, Path: path, Title: "Title of " + path, Format: "text",
		Digest: fmt.Sprintf("%x", strings.Join(texts, "|")), Text: strings.Join(texts, "\n"),
		Sections: []ingest.Section{{Heading: "All", Level: 1, Anchor: "all", End: len(strings.Join(texts, "\n"))}},
		Meta:     map[string]string{"author": "Ann <b>"},
	}
	if strings.HasSuffix(path, ".md") {
		doc.Format = "markdown"
	}
	var chunks []ingest.Chunk
	at := 0
	for i, text := range texts {
		chunks = append(chunks, ingest.Chunk{
			ID: fmt.Sprintf("%s#%d", doc.ID, i+1), Document: doc.ID, Ordinal: i + 1, Start: at, End: at + len(text),
			Heading: "All", Anchor: "all", Line: i + 1, Text: text, Tokens: len(strings.Fields(text)),
		})
		at += len(text) + 1
	}
	return doc, chunks
}

// Vector returns the unit vector at an angle in degrees.
func Vector(angle float64) []float32 {
	sin, cos := math.Sincos(angle * math.Pi / 180)
	return []float32{float32(cos), float32(sin), 0, 0}
}

func ready(t *testing.T, e retrieve.Engine, roots ...string) context.Context {
	t.Helper()
	ctx := t.Context()
	must(t, e.SetSpace(ctx, space))
	for _, r := range roots {
		root, err := e.AddRoot(ctx, "/srv/"+r, "")
		must(t, err)
		if root.Name != r {
			t.Fatalf("root %q got the name %q", r, root.Name)
		}
	}
	return ctx
}

func put(t *testing.T, e retrieve.Engine, root, path string, angles []float64, texts ...string) {
	t.Helper()
	doc, chunks := Document(root, path, texts...)
	vectors := make([][]float32, len(angles))
	for i, a := range angles {
		vectors[i] = Vector(a)
	}
	must(t, e.Replace(t.Context(), doc, chunks, vectors))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantIDs(t *testing.T, what string, got []string, err error, want ...string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s = %q, want %q", what, got, want)
	}
}

func dense(t *testing.T, e retrieve.Engine, angle float64, k int, f retrieve.Filter, want ...string) {
	t.Helper()
	got, err := e.Dense(t.Context(), Vector(angle), k, f)
	wantIDs(t, fmt.Sprintf("Dense(%v°, %d, %+v)", angle, k, f), got, err, want...)
}

func lexical(t *testing.T, e retrieve.Engine, question string, k int, f retrieve.Filter, want ...string) {
	t.Helper()
	got, err := e.Lexical(t.Context(), retrieve.Terms(question), k, f)
	wantIDs(t, fmt.Sprintf("Lexical(%q, %d, %+v)", question, k, f), got, err, want...)
}

func renamed(root, path string, texts ...string) *ingest.Document {
	doc, _ := Document(root, path, texts...)
	return doc
}
