package baselines

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ibid/retrieve"
)

// The texts are pieces of the English evaluation sets in random combinations, so
// that any number of chunks has the word frequencies of a language.
const (
	pieceWords  = 30
	chunkPieces = 4
)

// pieces skips the benchmark if the sets are absent. One piece in twenty is held
// out for questions.
func pieces(b *testing.B) (stored, held [][]string) {
	b.Helper()
	base := os.Getenv("IBID_DATASETS")
	if base == "" {
		base = "../../../shared/data"
	}
	for _, set := range []string{"clapnq-a", "scifact-train", "msmarco-dl-5k", "cranfield", "squad2-a", "wice-dev", "financebench-a"} {
		f, err := os.Open(filepath.Join(base, set, "corpus.jsonl"))
		if errors.Is(err, fs.ErrNotExist) {
			b.Skipf("no evaluation data: %v: set IBID_DATASETS to the folder that holds it", err)
		}
		if err != nil {
			b.Fatal(err)
		}
		s := bufio.NewScanner(f)
		s.Buffer(nil, 16<<20)
		for s.Scan() {
			var entry struct{ Title, Text string }
			if err := json.Unmarshal(s.Bytes(), &entry); err != nil {
				b.Fatal(err)
			}
			words := strings.Fields(entry.Title + " " + entry.Text)
			for len(words) >= pieceWords {
				if len(stored) >= 20*(len(held)+1) {
					held = append(held, words[:pieceWords])
				} else {
					stored = append(stored, words[:pieceWords])
				}
				words = words[pieceWords:]
			}
		}
		if err := errors.Join(s.Err(), f.Close()); err != nil {
			b.Fatal(err)
		}
	}
	return stored, held
}

// chunks makes so many of the pieces, the same ones every time.
func chunks(pieces [][]string, n int) []string {
	r := rand.New(rand.NewPCG(11, 12))
	out := make([]string, n)
	for i := range out {
		var words []string
		for range chunkPieces {
			words = append(words, pieces[r.IntN(len(pieces))]...)
		}
		out[i] = strings.Join(words, " ")
	}
	return out
}

// questions gives the terms of so many runs of words from held-out pieces, as
// long as leaves so many terms of each.
func questions(held [][]string, n, terms int) [][]string {
	r := rand.New(rand.NewPCG(13, 14))
	var out [][]string
	for len(out) < n {
		piece := held[r.IntN(len(held))]
		found := retrieve.Terms(strings.Join(piece, " "))
		seen := make(map[string]bool)
		var distinct []string
		for _, t := range found {
			if !seen[t] && len(distinct) < terms {
				seen[t] = true
				distinct = append(distinct, t)
			}
		}
		if len(distinct) == terms {
			out = append(out, distinct)
		}
	}
	return out
}
