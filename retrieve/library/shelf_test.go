package library_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
)

// A shelf is a library of different chunks of recombined text: each is two
// neighbouring pieces and a random one, 120 words in all. Ten chunks are a document.
type shelf struct {
	Texts     []string
	Questions []string
	Embedder  *embed.Model
}

// fillShelf makes a shelf of the texts of the evaluation sets in pieces of 40 words. It
// skips the benchmark if they do not exist.
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
