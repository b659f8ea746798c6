package library_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
	"ibid/retrieve/library"
)

// other is an embedder of another space.
type other struct{ retrieve.Embedder }

func (other) Space() string { return "other/1" }

// TestRebuilt replaces an index in Weaviate of an earlier layout, and then of another space.
// Searches use the earlier index until the later one has been built.
func TestRebuilt(t *testing.T) {
	if os.Getenv(clusterEnv) == "" {
		t.Skipf("%s names no cluster: '.ci/weaviate DIR' starts one", clusterEnv)
	}
	ctx := t.Context()
	model, err := embed.New()
	must(t, err)
	embedded := newPlace(t, "PostgreSQL")
	open := func(place library.Place, m retrieve.Embedder) *library.Library {
		lib, err := library.Open(ctx, place, m, library.Options{})
		must(t, err)
		t.Cleanup(func() { lib.Close() })
		return lib
	}
	writer := open(embedded, model) // has no data in the cluster
	_, err = writer.AddRoot(ctx, "/srv/a", "")
	must(t, err)
	for i := range 20 {
		must(t, storeWord(ctx, writer, fmt.Sprint(i), fmt.Sprintf("zyx%dq", i)))
	}
	place := library.Place{Data: t.TempDir(), URL: embedded.URL, Cluster: cluster(t)}
	index, err := library.Cluster(ctx, place, writer.State)
	must(t, err)
	defer index.Close()
	earlier := index.EarlierLayouts()[0]
	must(t, retrieve.Follow(ctx, writer.State, earlier, model.Space()))
	hold := func(collection, space string) (release func()) { // as if another server had fed it for a long time
		worker, job := retrieve.NewWorker(), "index "+collection+" of "+space
		held, err := retrieve.ClaimJob(ctx, writer.State.Ledger(), job, "index", worker, time.Minute)
		if err != nil || held != nil {
			t.Fatalf("claiming %s: %v, held by %v", job, err, held)
		}
		return func() { must(t, writer.State.Ledger().Release(ctx, job, worker)) }
	}
	release, leave := hold(index.Collection(), model.Space()), hold(earlier.Collection(), model.Space())
	reader := open(place, model)
	search := func(lib *library.Library, i int) (string, error) {
		paths, err := pathsOf(ctx, lib, fmt.Sprintf("zyx%dq", i))
		return strings.Join(paths, " "), err
	}
	finds := func(lib *library.Library, i int, want string) {
		t.Helper()
		if got, err := search(lib, i); got != want || err != nil {
			t.Errorf("zyx%dq is found in %q, %v", i, got, err)
		}
	}
	finds(reader, 7, "7")
	building := (*retrieve.BuildingError)(nil)
	if err := reader.Clustered.Searchable(ctx); !errors.As(err, &building) || !building.Earlier || building.Total != 20 {
		t.Errorf("Searchable = %v, want the earlier index", err)
	}
	must(t, writer.Delete(ctx, "a/7"))
	finds(reader, 7, "") // the earlier index still has it
	var searches errgroup.Group
	var switched atomic.Bool
	for range 4 { // no search may notice the switch
		searches.Go(func() error {
			for !switched.Load() {
				if got, err := search(reader, 8); got != "8" || err != nil {
					return fmt.Errorf("during the switch, zyx8q is found in %q, %w", got, err)
				}
			}
			return nil
		})
	}
	release()
	must(t, reader.Follow(ctx))
	must(t, reader.Clustered.Searchable(ctx))
	finds(reader, 8, "8")
	gone := func() bool {
		revision, _, err := earlier.Revision(ctx)
		return err == nil && revision == 0
	}
	time.Sleep(3 * time.Second)
	if gone() {
		t.Error("the earlier index is deleted while a server of an earlier version feeds it")
	}
	leave()
	for end := time.Now().Add(time.Minute); !gone(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the earlier index is not deleted")
		}
	}
	switched.Store(true)
	must(t, searches.Wait())

	// The other space's index is built while the first one's is searched.
	must(t, retrieve.Reembed(ctx, writer.State, other{model}, nil, func(ctx context.Context) error {
		must(t, errors.Join(library.Build(ctx, place, writer.State, "other/1"), reader.Follow(ctx)))
		finds(reader, 8, "8")
		return reader.Clustered.Searchable(ctx)
	}))
	index, err = library.Cluster(ctx, place, writer.State)
	must(t, err)
	defer index.Close()
	release = hold(index.Collection(), "other/1")
	renewed := open(place, other{model})
	finds(renewed, 8, "8")
	must(t, renewed.Clustered.Searchable(ctx))
	release()
	must(t, renewed.Follow(ctx))
	space := (*retrieve.SpaceError)(nil)
	for end := time.Now().Add(time.Minute); !errors.As(err, &space); time.Sleep(50 * time.Millisecond) {
		if _, err = search(reader, 8); time.Now().After(end) {
			t.Fatalf("server of the first space: %v", err)
		}
	}
	must(t, index.Reset(ctx))
}

// A shelf is a library of distinct chunks of recombined text: each consists of two neighbouring
// pieces and a random one, 120 words in all. A document has ten chunks.
type shelf struct {
	Texts     []string
	Questions []string
	Embedder  *embed.Model
}

// fillShelf makes a shelf from the texts of the evaluation sets in pieces of 40 words. It skips the
// benchmark if the sets are missing.
func fillShelf(t testing.TB, chunks int) *shelf {
	t.Helper()
	var pieces, questions []string
	for _, name := range []string{"anthropic-docs", "clapnq-a", "cranfield", "financebench-a", "kgrag-10q-a",
		"msmarco-dl-5k", "rgb-en-fact-a", "scifact-train", "squad2-a", "wice-dev"} {
		type entry struct{ Title, Text string }
		for _, e := range datatest.Lines[entry](t, datatest.Sets(t, name, "corpus.jsonl")) {
			for words := range slices.Chunk(strings.Fields(e.Title+" "+e.Text), 40) {
				pieces = append(pieces, strings.Join(words, " "))
			}
		}
		for _, q := range datatest.Lines[entry](t, datatest.Sets(t, name, "queries.jsonl")) {
			questions = append(questions, q.Text)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	s := &shelf{Texts: make([]string, chunks)}
	for i := range s.Texts {
		at := i % (len(pieces) - 1)
		s.Texts[i] = pieces[at] + " " + pieces[at+1] + " " + pieces[r.IntN(len(pieces))]
	}
	r.Shuffle(len(questions), func(i, j int) { questions[i], questions[j] = questions[j], questions[i] })
	s.Questions = questions[:2000]
	var err error
	s.Embedder, err = embed.New()
	must(t, err)
	return s
}

// Document returns ten of the chunks as a document.
func (s *shelf) Document(n int) (*ingest.Document, []ingest.Chunk) {
	doc := &ingest.Document{Root: "a", Path: fmt.Sprint("folder", n%50, "/", n), Title: fmt.Sprint("Document ", n), Format: "text",
		Digest: fmt.Sprint(n)}
	doc.ID = doc.Root + "/" + doc.Path
	var chunks []ingest.Chunk
	for i, text := range s.Texts[10*n : 10*n+10] {
		chunks = append(chunks, ingest.Chunk{ID: retrieve.ChunkID(doc.ID, i+1), Document: doc.ID, Ordinal: i + 1,
			Start: len(doc.Text), End: len(doc.Text) + len(text), Text: text})
		doc.Text += text
	}
	return doc, chunks
}
