package web

import (
	"context"
	"slices"
	"strings"
	"testing"

	"ibid/answer"
	"ibid/ingest"
	"ibid/retrieve"
)

// TestSuggestions checks that only questions that quotes answer are suggested, from
// headings or by the model, which is asked once per state of the library.
func TestSuggestions(t *testing.T) {
	asked := 0
	storage := newShelf().passage("club/handbook/mooring.md", "Boats may stay ashore from October to March.")
	h := newHandler(t, func(o *Options) {
		o.Asker = script{"What is the mooring fee?": {answer.Text{Text: "240 crowns."}},
			"What about “Winter storage”?": {answer.Kept{Passages: []retrieve.Passage{storage}}, answer.Text{Text: storage.Text + "[1]"}},
			"Who built the moon?":          {answer.Unanswered{Text: "They do not say."}}}
		o.Model = func(context.Context) string { return "scripted" }
		o.Suggest = func(_ context.Context, passages []retrieve.Passage, _ int) ([]string, error) {
			asked++
			if !slices.ContainsFunc(passages, func(p retrieve.Passage) bool { return p.Document == "club/handbook/mooring.md" }) {
				t.Errorf("the model was shown %+v, want the moorings", passages)
			}
			return []string{"Who built the moon?", "What is the mooring fee?"}, nil
		}
	})
	for query, want := range map[string]string{"": "What about “Winter storage”?",
		"?model=1": "What is the mooring fee?"} {
		for range 2 {
			got := into[suggestionList](t, call(h, "GET", "/api/suggestions"+query, ""), 200)
			if !got.Model || !slices.Equal(got.Questions, []string{want}) {
				t.Errorf("%q: suggestions = %+v, want %q", query, got, want)
			}
		}
	}
	if asked != 1 {
		t.Errorf("the model was asked %d times, want once", asked)
	}
	// A failing model only loses its own questions.
	h = newHandler(t, func(o *Options) {
		o.Model = func(context.Context) string { return "scripted" }
		o.Suggest = func(context.Context, []retrieve.Passage, int) ([]string, error) { return nil, errBroken }
	})
	if got := into[suggestionList](t, call(h, "GET", "/api/suggestions?model=1", ""), 200); !got.Model || len(got.Questions) > 0 {
		t.Errorf("suggestions of a broken model = %+v", got)
	}
}

// TestSuggestionsOfDocuments checks that questions come from the chosen documents in the
// language of their headings, that they are asked about these documents only, and that the
// answers begin with words of the part that the question is about.
func TestSuggestionsOfDocuments(t *testing.T) {
	doc := func(name, title, text string, headings ...string) *ingest.Document {
		d := &ingest.Document{ID: name, Title: title, Text: text}
		for _, heading := range headings {
			start := strings.Index(text, heading)
			if n := len(d.Sections); n > 0 {
				d.Sections[n-1].End = start
			}
			d.Sections = append(d.Sections, ingest.Section{Heading: heading, Level: min(2, 1+len(d.Sections)), Start: start, End: len(text)})
		}
		return d
	}
	rules := "Rules and duties\nThe duty officer sails. A painter is a rope at the bow. Yeast is a fungus. " +
		"This yeast is a gift. It is a sin.\n" +
		"1. The Duty Officer\nShe has the key.\nWinter storage\nBoats stay ashore.\nBefore you sail\nEat.\nHow is it paid?\nIn cash.\n" +
		"Getting Started\nCome at eight.\nWhich boat is mine?\n- *I am new.* The red one.\n"
	lib := shelf{
		doc("a/rules.md", "Rules", rules, "Rules and duties", "1. The Duty Officer", "Winter storage", "Before you sail", "How is it paid?",
			"Getting Started", "Which boat is mine?"),
		doc("b/preise.md", "Preise", "Preise\nDie Gebühren für das Lager sind im März fällig und werden an der Kasse bezahlt. "+
			"Ein Palstek ist ein Knoten mit einem Auge.\n"+
			"Gebühren und Fristen\nAm ersten März.", "Preise", "Gebühren und Fristen"),
		doc("c/other.md", "Other", "Other\nOther matters here\nNothing.", "Other", "Other matters here"),
	}
	all := []string{"How is it paid?", "What is a painter?", "What about “The Duty Officer”?", "What is yeast?",
		"What about “Winter storage”?", "What about “Before you sail”?", "What about “Getting Started”?"}
	var asked []string
	kinds := questionsOf(lib[0])
	for _, q := range interleave(kinds[:]) {
		asked = append(asked, q.text)
	}
	if !slices.Equal(asked, all) {
		t.Errorf("questions about a document = %q, want %q", asked, all)
	}
	says := func(id, words string) []any {
		return []any{answer.Kept{Passages: []retrieve.Passage{lib.passage("c/other.md", "Nothing."), lib.passage(id, words)}},
			answer.Text{Text: "- " + words + "[2] Nothing.[1]"}}
	}
	h := newHandler(t, func(o *Options) {
		o.Library = lib
		o.Asker = script{
			"How is it paid?": says("a/rules.md", "In cash."),
			"Was gibt es zu „Gebühren und Fristen“?": says("b/preise.md", "Am ersten März."),
			"What is a painter?":                     says("a/rules.md", "A painter is a rope at the bow."),
			"Was ist ein Palstek?":                   says("b/preise.md", "Ein Palstek ist ein Knoten mit einem Auge."),
			"What is yeast?":                         says("a/rules.md", "This yeast is a gift."),
			"What about “The Duty Officer”?":         says("b/preise.md", "Am ersten März."),
			"What about “Winter storage”?":           {answer.Text{Text: "Boats stay ashore."}},
			"What about “Before you sail”?":          {answer.Text{Text: "Eat."}},
			"What about “Getting Started”?":          says("a/rules.md", "Come at eight."),
		}
	})
	want := []string{"How is it paid?", "What is a painter?", "Was ist ein Palstek?", "Was gibt es zu „Gebühren und Fristen“?"}
	got := into[suggestionList](t, call(h, "GET", "/api/suggestions?document=a/rules.md&document=b/preise.md", ""), 200)
	if !slices.Equal(got.Questions, want) {
		t.Errorf("suggestions = %q, want %q", got.Questions, want)
	}
}
