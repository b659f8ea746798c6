package retrieve_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"ibid/retrieve"
)

// rerankFunc is a reranker that is a function.
type rerankFunc func(question string, texts []string) ([]float64, error)

func (f rerankFunc) Rerank(_ context.Context, question string, texts []string) ([]float64, error) {
	return f(question, texts)
}

func TestReranker(t *testing.T) {
	byLength := func(question string, texts []string) ([]float64, error) {
		if question != "When is the harbour office open?" {
			t.Errorf("asked %q", question)
		}
		scores := make([]float64, len(texts))
		for i, text := range texts {
			if !strings.Contains(text, "\n") {
				t.Errorf("%q comes without its title", text)
			}
			scores[i] = -float64(len(text))
		}
		return scores, nil
	}
	broken := errors.New("the reranker is unreachable")
	for _, c := range []struct {
		name     string
		reranker rerankFunc
		warned   string
	}{
		{"orders again", byLength, ""},
		{"fails", func(string, []string) ([]float64, error) { return nil, broken }, "order of the search: the reranker is unreachable"},
		{"miscounts", func(string, []string) ([]float64, error) { return []float64{1}, nil }, "gave 1 scores for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := openState(t, t.TempDir())
			plain := harbourIn(t, e)
			q := retrieve.Query{Text: "When is the harbour office open?"}
			want, err := plain.Search(t.Context(), q)
			must(t, err)
			x := newIndexWith(t, e, testSpace, retrieve.Options{Reranker: c.reranker})
			var warned []string
			q.Warn = func(err error) { warned = append(warned, err.Error()) }
			got, err := x.Search(t.Context(), q)
			must(t, err)
			if c.warned != "" {
				if len(warned) != 1 || !strings.Contains(warned[0], c.warned) {
					t.Errorf("warned %q", warned)
				}
				if len(got) != len(want) || got[0].ID != want[0].ID || got[0].Scores.Rerank != nil {
					t.Errorf("the search itself is lost: %+v", got)
				}
				return
			}
			if len(warned) > 0 || len(got) != len(want) {
				t.Fatalf("%d passages of %d, warned %q", len(got), len(want), warned)
			}
			if !slices.IsSortedFunc(got, func(a, b retrieve.Passage) int { return len(a.Title+a.Text) - len(b.Title+b.Text) }) {
				t.Error("not in the reranker's order")
			}
			if got[0].Score != 1 || got[0].Scores.Rerank == nil || got[len(got)-1].Score != 0 {
				t.Errorf("scores %+v … %+v", got[0], got[len(got)-1])
			}
		})
	}
}
