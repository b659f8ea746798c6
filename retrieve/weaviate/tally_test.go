package weaviate

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"

	"ibid/ingest"
	"ibid/retrieve"
)

func TestTally(t *testing.T) {
	all := &tally{revision: 7, era: -3, of: make(map[uint32]int)}
	all.add("boat boat sea", 3, 1)
	all.add("sea", 1, 1)
	all.add("land", 1, 1)
	all.add("land", 1, -1)
	again, err := unpackTally(all.pack())
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint32]int{hashOf("boat"): 1, hashOf("sea"): 2}
	if again.revision != 7 || again.era != -3 || again.chunks != 2 || again.terms != 4 || !maps.Equal(again.of, want) {
		t.Errorf("the tally is %+v", again)
	}
	packed := all.pack()
	for n := range len(packed) {
		if short, err := unpackTally(packed[:n]); err == nil && len(short.of) == len(want) {
			t.Errorf("%d of %d bytes give %+v", n, len(packed), short)
		}
	}
}

// TestTallyOfLongDocument replaces a document of more chunks than Weaviate returns at once,
// all of which are gone afterwards, and those of no other.
func TestTallyOfLongDocument(t *testing.T) {
	x := inCluster(t)
	change := func(revision, document int64, text string, chunks int) []retrieve.Change {
		c := retrieve.Change{Revision: revision, Era: 5, Document: document,
			Info: retrieve.DocumentInfo{Document: ingest.Document{ID: "a/b", Root: "a"}}}
		for range chunks {
			c.Chunks = append(c.Chunks, retrieve.IndexChunk{Text: text, Vector: []float32{1, 0}})
		}
		return []retrieve.Change{c}
	}
	for _, changes := range [][]retrieve.Change{change(1, 1, "boat", 3), change(2, 2, "boat", maxResults+200), change(3, 2, "ship", 2)} {
		if err := x.Apply(t.Context(), changes); err != nil {
			t.Fatal(err)
		}
	}
	stats, err := x.Stats(t.Context(), []string{"boat", "ship"})
	if err != nil || stats.Chunks != 5 || stats.Frequency["boat"] != 3 || stats.Frequency["ship"] != 2 {
		t.Errorf("Stats = %+v, %v; of 5 chunks 3 have a boat and 2 a ship", stats, err)
	}
}

// inCluster returns a new index in the cluster that tests are given.
func inCluster(t *testing.T) *Index {
	address := os.Getenv("IBID_TEST_WEAVIATE")
	if address == "" {
		t.Skip("IBID_TEST_WEAVIATE is not set: '.ci/weaviate DIR' starts a server and prints what to set")
	}
	at, err := ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	empty := func(context.Context) (revision int64, chunks int, err error) { return 0, 0, nil }
	x := Open(at, Options{Library: rand.Text(), Space: "test", Size: empty})
	t.Cleanup(func() {
		if err := x.Reset(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return x
}

// TestCompare changes a chunk in the cluster: the first field that differs is named.
func TestCompare(t *testing.T) {
	x := inCluster(t)
	c := retrieve.Change{Revision: 1, Era: 5, Document: 1,
		Info:   retrieve.DocumentInfo{Document: ingest.Document{ID: "a/b \"c\"", Root: "a", Path: "b \"c\""}, Collection: "open"},
		Chunks: []retrieve.IndexChunk{{Text: "The boat sails.", Vector: []float32{.6, .8}}}}
	c.Info.Meta = map[string]string{"date": "2024-05-06", "language": "de-AT", "tags": "sea, Über uns"}
	if err := x.Apply(t.Context(), []retrieve.Change{c}); err != nil {
		t.Fatal(err)
	}
	objects, err := x.objectsOf(&c, &mark{})
	if err != nil {
		t.Fatal(err)
	}
	path := objectPath(x.collection, objects[0].ID)
	for _, tt := range []struct {
		name  string // of a field; empty for the vector
		value any
		want  string
	}{
		{"ordinal", 1, ""}, // as it is
		{"labels", []string{"collection=secret"}, `"labels"`},
		{"path", "/d", `"path"`},
		{"from", 20240505, `"from"`},
		{"terms", "boat", `"terms"`},
		{"", []float32{-.6, -.8}, "the vector"},
	} {
		o := objects[0]
		o.Properties = maps.Clone(o.Properties)
		if tt.name == "" {
			o.Vector = tt.value.([]float32)
		} else {
			o.Properties[tt.name] = tt.value
		}
		if err := x.client.call(t.Context(), http.MethodPut, path, o, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := x.Compare(t.Context(), &c); err != nil || (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("with another %s: %q, %v", tt.name, got, err)
		}
	}
	if err := x.client.call(t.Context(), http.MethodDelete, path, nil, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := x.Compare(t.Context(), &c); !strings.Contains(got, "lacks its chunk 1") {
		t.Errorf("without the chunk: %q, %v", got, err)
	}
}

// TestTallyOfEndedProcess has one process apply changes that it does not count in the stored
// tally: the next one applies them again, and counts everything once. Only the terms of
// chunks that were replaced meanwhile stay counted.
func TestTallyOfEndedProcess(t *testing.T) {
	ended := inCluster(t)
	revision := int64(0)
	change := func(document int, text string) retrieve.Change {
		revision++
		id := fmt.Sprint("a/", document)
		return retrieve.Change{Revision: revision, Era: 5, Document: int64(document),
			Info:   retrieve.DocumentInfo{Document: ingest.Document{ID: id, Root: "a"}},
			Chunks: []retrieve.IndexChunk{{Text: text, Vector: []float32{1, 0}}}}
	}
	var first []retrieve.Change
	for i := range storedAlways + 100 {
		first = append(first, change(i+1, "boat"))
	}
	last := []retrieve.Change{change(1, "ship"), change(2, "ship ship"), change(storedAlways+101, "ship boat")}
	next := []retrieve.Change{change(3, "ship")}

	for _, changes := range [][]retrieve.Change{first, last} {
		if err := ended.Apply(t.Context(), changes); err != nil {
			t.Fatal(err)
		}
	}
	x := Open(ended.client.at, ended.options)
	err := x.Apply(t.Context(), next)
	have, era, _ := x.Revision(t.Context())
	if err == nil || !strings.Contains(err.Error(), "goes on") || have != int64(len(first)) || era != 5 {
		t.Fatalf("Apply = %v, and the revision is %d", err, have)
	}
	if err := x.Apply(t.Context(), append(last, next...)); err != nil {
		t.Fatal(err)
	}
	stats, err := x.Stats(t.Context(), []string{"boat", "ship"})
	if chunks := storedAlways + 101; err != nil || stats.Chunks != chunks || stats.Frequency["ship"] != 4 {
		t.Errorf("Stats = %+v, %v; of %d chunks 4 have a ship", stats, err, chunks)
	}
}
