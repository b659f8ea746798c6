package library_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/embed"
)

// corpora returns the names of the sets of texts, in the format of BEIR, for
// benchmarks.
func corpora() []string {
	return []string{
		"anthropic-docs", "clapnq-a", "cranfield", "financebench-a", "kgrag-10q-a",
		"msmarco-dl-5k", "rgb-en-fact-a", "scifact-train", "squad2-a", "wice-dev",
	}
}

// readCorpora returns the texts of the corpora in pieces of 40 words, and their
// questions. It skips the benchmark if they do not exist.
func readCorpora(t testing.TB, base string) (pieces, questions []string) {
	t.Helper()
	if base == "" {
		base = "../../../shared/data"
	}
	for _, name := range corpora() {
		for _, text := range readTexts(t, filepath.Join(base, name, "corpus.jsonl")) {
			for words := range slices.Chunk(strings.Fields(text), 40) {
				pieces = append(pieces, strings.Join(words, " "))
			}
		}
		questions = append(questions, readTexts(t, filepath.Join(base, name, "queries.jsonl"))...)
	}
	return pieces, questions
}

func readTexts(t testing.TB, path string) (texts []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Skipf("no real texts: %v: set IBID_DATASETS to the folder that holds them", err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var e struct{ Title, Text string }
		must(t, json.Unmarshal(s.Bytes(), &e))
		texts = append(texts, strings.TrimSpace(e.Title+" "+e.Text))
	}
	must(t, s.Err())
	return texts
}

// A shelf is a library of different chunks of recombined text: each is two
// neighbouring pieces and a random one, 120 words in all. Ten chunks are a document.
type shelf struct {
	Texts     []string
	Questions []string // 2,000
	Embedder  *embed.Model
}

const questionsAsked = 2000

// fillShelf makes a shelf of the texts in the folder datasets; if that is empty, in
// the default folder as seen from a package two folders below go.mod. It skips the
// benchmark if they do not exist.
func fillShelf(t testing.TB, datasets string, chunks int) *shelf {
	t.Helper()
	pieces, questions := readCorpora(t, datasets)
	r := rand.New(rand.NewPCG(1, 2))
	s := &shelf{Texts: make([]string, chunks)}
	for i := range s.Texts {
		at := i % (len(pieces) - 1)
		s.Texts[i] = pieces[at] + " " + pieces[at+1] + " " + pieces[r.IntN(len(pieces))]
	}
	r.Shuffle(len(questions), func(i, j int) { questions[i], questions[j] = questions[j], questions[i] })
	s.Questions = questions[:questionsAsked]
	var err error
	if s.Embedder, err = embed.New(); err != nil {
		t.Fatal(err)
	}
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
