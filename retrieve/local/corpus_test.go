package local

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

// corpora are sets of real texts, in the format of BEIR, that benchmarks are
// made of.
var corpora = []string{
	"anthropic-docs", "clapnq-a", "cranfield", "financebench-a", "kgrag-10q-a",
	"msmarco-dl-5k", "rgb-en-fact-a", "scifact-train", "squad2-a", "wice-dev",
}

// readCorpora gives the texts of the corpora cut into pieces of 40 words, and
// their questions. It skips the benchmark, saying why, when they are not there.
func readCorpora(t testing.TB) (pieces, questions []string) {
	t.Helper()
	base := os.Getenv("IBID_DATASETS")
	if base == "" {
		base = "../../../shared/data"
	}
	for _, name := range corpora {
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
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, strings.TrimSpace(e.Title+" "+e.Text))
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return texts
}

// A shelf is so many chunks of real text, recombined: two neighbouring pieces
// and one from elsewhere, 120 words in all and no chunk twice. Ten chunks are a
// document.
type shelf struct {
	texts     []string
	questions []string // 2,000
	embedder  *embed.Model
}

const questionsAsked = 2000

func fillShelf(t testing.TB, chunks int) *shelf {
	t.Helper()
	pieces, questions := readCorpora(t)
	r := rand.New(rand.NewPCG(1, 2))
	s := &shelf{texts: make([]string, chunks)}
	for i := range s.texts {
		at := i % (len(pieces) - 1)
		s.texts[i] = pieces[at] + " " + pieces[at+1] + " " + pieces[r.IntN(len(pieces))]
	}
	r.Shuffle(len(questions), func(i, j int) { questions[i], questions[j] = questions[j], questions[i] })
	s.questions = questions[:questionsAsked]
	var err error
	if s.embedder, err = embed.New(); err != nil {
		t.Fatal(err)
	}
	return s
}

// documents gives the chunks in documents of ten.
func (s *shelf) document(n int) (*ingest.Document, []ingest.Chunk) {
	doc := &ingest.Document{Root: "a", Path: fmt.Sprint("folder", n%50, "/", n), Title: fmt.Sprint("Document ", n), Format: "text", Digest: fmt.Sprint(n)}
	doc.ID = doc.Root + "/" + doc.Path
	var chunks []ingest.Chunk
	for i, text := range s.texts[10*n : 10*n+10] {
		chunks = append(chunks, ingest.Chunk{ID: retrieve.ChunkID(doc.ID, i+1), Document: doc.ID, Ordinal: i + 1,
			Start: len(doc.Text), End: len(doc.Text) + len(text), Text: text})
		doc.Text += text
	}
	return doc, chunks
}

func (s *shelf) embed(t testing.TB, texts []string) [][]float32 {
	t.Helper()
	rows, err := s.embedder.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
