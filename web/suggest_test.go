package web

import (
	"context"
	"slices"
	"testing"

	"ibid/answer"
	"ibid/retrieve"
)

// TestSuggestions checks that only questions that quotes answer are suggested, from
// headings or by the model, which is asked once for each state of the library.
func TestSuggestions(t *testing.T) {
	asked := 0
	answered := []any{answer.Text{Text: "240 crowns."}}
	h := newHandler(t, func(o *Options) {
		o.Asker = script{"What is the mooring fee?": answered, "What do the documents say about “Winter storage”?": answered,
			"Who built the moon?": {answer.Unanswered{Text: "They do not say."}}}
		o.Model = func(context.Context) string { return "scripted" }
		o.Suggest = func(_ context.Context, passages []retrieve.Passage, _ int) ([]string, error) {
			asked++
			if !slices.ContainsFunc(passages, func(p retrieve.Passage) bool { return p.Document == "club/handbook/mooring.md" }) {
				t.Errorf("the model was shown %+v", passages)
			}
			return []string{"Who built the moon?", "What is the mooring fee?"}, nil
		}
	})
	for query, want := range map[string]string{"": "What do the documents say about “Winter storage”?",
		"?model=1": "What is the mooring fee?"} {
		for range 2 {
			got := into[listedSuggestions](t, call(h, "GET", "/api/suggestions"+query, ""), 200)
			if !got.Model || !slices.Equal(got.Questions, []string{want}) {
				t.Errorf("%q: %+v, want %q", query, got, want)
			}
		}
	}
	if asked != 1 {
		t.Errorf("the model was asked %d times", asked)
	}
}
