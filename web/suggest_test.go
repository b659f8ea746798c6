package web

import (
	"context"
	"slices"
	"testing"

	"ibid/answer"
	"ibid/ingest"
	"ibid/retrieve"
)

// TestSuggestions checks that only questions that quotes answer are suggested, from
// headings or by the model, which is asked once for each state of the library.
func TestSuggestions(t *testing.T) {
	asked := 0
	answered := []any{answer.Text{Text: "240 crowns."}}
	h := newHandler(t, func(o *Options) {
		o.Asker = script{"What is the mooring fee?": answered, "What about winter storage?": answered,
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
	for query, want := range map[string]string{"": "What about winter storage?",
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
	// A model that fails costs nothing but its own questions.
	h = newHandler(t, func(o *Options) {
		o.Model = func(context.Context) string { return "scripted" }
		o.Suggest = func(context.Context, []retrieve.Passage, int) ([]string, error) { return nil, errBroken }
	})
	if got := into[listedSuggestions](t, call(h, "GET", "/api/suggestions?model=1", ""), 200); !got.Model || len(got.Questions) > 0 {
		t.Errorf("of a broken model: %+v", got)
	}
}

// TestSuggestionsOfDocuments checks that questions come from the chosen documents and are
// asked of them alone, in the language of their headings.
func TestSuggestionsOfDocuments(t *testing.T) {
	section := func(level int, heading string) ingest.Section { return ingest.Section{Heading: heading, Level: level} }
	lib := shelf{
		{ID: "a/rules.md", Title: "Rules", Text: "The duty officer and the winter storage of boats. A painter is a rope at the bow.",
			Sections: []ingest.Section{section(1, "Rules and duties"), section(2, "1. The Duty Officer"), section(2, "Winter storage"),
				section(2, "Before you sail"), section(2, "How is it paid?")}},
		{ID: "b/preise.md", Title: "Preise", Text: "Die Gebühren für das Lager sind im März fällig und werden an der Kasse bezahlt.",
			Sections: []ingest.Section{section(2, "Gebühren und Fristen")}},
		{ID: "c/other.md", Title: "Other", Text: "Nothing.", Sections: []ingest.Section{section(2, "Other matters here")}},
	}
	want := []string{"How is it paid?", "Was gibt es zu „Gebühren und Fristen“?", "What is a painter?", "What about the Duty Officer?"}
	h := newHandler(t, func(o *Options) {
		o.Library = lib
		o.Asker = asker(func(_ context.Context, yield func(answer.Event, error) bool) { yield(answer.Text{Text: "Yes."}, nil) })
	})
	got := into[listedSuggestions](t, call(h, "GET", "/api/suggestions?document=a/rules.md&document=b/preise.md", ""), 200)
	if !slices.Equal(got.Questions, want) {
		t.Errorf("suggested %q, want %q", got.Questions, want)
	}
	if got := questionsOf(lib[0]); !slices.Contains(got, "What about winter storage?") || len(got) != 4 {
		t.Errorf("the questions of a document are %q", got)
	}
}
