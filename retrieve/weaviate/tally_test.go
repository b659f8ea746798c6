package weaviate

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
)

var must = datatest.Must

func TestTally(t *testing.T) {
	all := &tally{revision: 7, era: -3, chunksByTerm: make(map[uint32]int)}
	all.add("boat boat sea", 3, 1)
	all.add("sea", 1, 1)
	all.add("land", 1, 1)
	all.add("land", 1, -1)
	again, err := unpackTally(all.pack())
	must(t, err)
	want := map[uint32]int{hashOf("boat"): 1, hashOf("sea"): 2}
	if again.revision != 7 || again.era != -3 || again.chunks != 2 || again.terms != 4 || !maps.Equal(again.chunksByTerm, want) {
		t.Errorf("tally = %+v", again)
	}
	packed := all.pack()
	for n := range len(packed) {
		if short, err := unpackTally(packed[:n]); err == nil && len(short.chunksByTerm) == len(want) {
			t.Errorf("%d of %d bytes unpack as %+v", n, len(packed), short)
		}
	}
}

// change returns a change to a document of equal chunks.
func change(revision, document int64, text string, chunks int) retrieve.Change {
	chunk := retrieve.IndexChunk{Text: text, Vector: []float32{.6, .8}}
	return retrieve.Change{Revision: revision, Era: 5, Document: document, Chunks: slices.Repeat([]retrieve.IndexChunk{chunk}, chunks),
		Info: retrieve.DocumentInfo{Document: ingest.Document{ID: fmt.Sprint("a/", document), Root: "a", Path: fmt.Sprint(document)}}}
}

// TestTallyOfLongDocument replaces a document with more chunks than Weaviate returns at once. All
// of them must be deleted, and no chunks of other documents.
func TestTallyOfLongDocument(t *testing.T) {
	x := inCluster(t)
	for _, c := range []retrieve.Change{change(1, 1, "boat", 3), change(2, 2, "boat", maxResults+200), change(3, 2, "ship", 2)} {
		must(t, x.Apply(t.Context(), []retrieve.Change{c}))
	}
	stats, err := x.Stats(t.Context(), []string{"boat", "ship"})
	if err != nil || stats.Chunks != 5 || stats.Frequency["boat"] != 3 || stats.Frequency["ship"] != 2 {
		t.Errorf("Stats = %+v, %v; of 5 chunks 3 have a boat and 2 a ship", stats, err)
	}
}

// inCluster returns a new index in the tests' cluster.
func inCluster(t *testing.T) *Index {
	address := os.Getenv("IBID_TEST_WEAVIATE")
	if address == "" {
		t.Skip("IBID_TEST_WEAVIATE is not set: '.ci/weaviate DIR' starts a server and prints the variables")
	}
	at, err := ParseAddress(address)
	must(t, err)
	empty := func(context.Context) (revision int64, chunks int, err error) { return 0, 0, nil }
	x := Open(at, Options{Library: rand.Text(), Space: "test", Size: empty})
	t.Cleanup(func() { must(t, x.Reset(context.Background())) })
	return x
}

// TestCompare changes a chunk in the cluster: the first field that differs must be named.
func TestCompare(t *testing.T) {
	x := inCluster(t)
	c := change(1, 1, "The boat sails.", 1)
	c.Info.Meta = map[string]string{"date": "2024-05-06", "language": "de-AT", "tags": "sea, \"Über\" uns"}
	must(t, x.Apply(t.Context(), []retrieve.Change{c}))
	objects, err := x.objectsOf(&c, &mark{})
	must(t, err)
	path := objectPath(x.collection, objects[0].ID)
	compare := func(want string) {
		t.Helper()
		if got, err := x.Compare(t.Context(), &c); err != nil || (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("Compare = %q, %v; want %q", got, err, want)
		}
	}
	compare("")
	for field, value := range map[string]any{"labels": []string{"collection=secret"}, "path": "/d", "from": 20240505, "terms": "boat"} {
		o := objects[0]
		o.Properties = maps.Clone(o.Properties)
		o.Properties[field] = value
		must(t, x.client.call(t.Context(), http.MethodPut, path, o, nil))
		compare(strconv.Quote(field))
	}
	objects[0].Vector = []float32{-.6, -.8}
	must(t, x.client.call(t.Context(), http.MethodPut, path, objects[0], nil))
	compare("the vector")
	must(t, x.client.call(t.Context(), http.MethodDelete, path, nil, nil))
	compare("lacks its chunk 1")
}

// TestTallyOfEndedProcess has a process apply changes without counting them in the stored tally:
// the next process must apply them again, and count everything once. Only the terms of chunks that
// were replaced meanwhile stay counted.
func TestTallyOfEndedProcess(t *testing.T) {
	ended := inCluster(t)
	const n = storedAlways + 100
	var first []retrieve.Change
	for i := range int64(n) {
		first = append(first, change(i+1, i+1, "boat", 1))
	}
	last := []retrieve.Change{change(n+1, 1, "ship", 1), change(n+2, 2, "ship ship", 1), change(n+3, n+1, "ship boat", 1)}
	next := []retrieve.Change{change(n+4, 3, "ship", 1)}

	for _, changes := range [][]retrieve.Change{first, last} {
		must(t, ended.Apply(t.Context(), changes))
	}
	x := Open(ended.client.at, ended.options)
	err := x.Apply(t.Context(), next)
	have, era, _ := x.Revision(t.Context())
	if err == nil || !strings.Contains(err.Error(), "continues after") || have != n || era != 5 {
		t.Fatalf("Apply = %v, revision = %d", err, have)
	}
	must(t, x.Apply(t.Context(), append(last, next...)))
	stats, err := x.Stats(t.Context(), []string{"boat", "ship"})
	if err != nil || stats.Chunks != n+1 || stats.Frequency["ship"] != 4 {
		t.Errorf("Stats = %+v, %v; of %d chunks 4 have a ship", stats, err, n+1)
	}
}
