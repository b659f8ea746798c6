package cite_test

import (
	"fmt"
	"testing"

	"ibid/answer"
	"ibid/cite"
	"ibid/ingest"
	"ibid/retrieve"
)

func TestNumberOriginal(t *testing.T) {
	const text = "The reading room opens at noon on Sundays."
	at := func(id, address string) retrieve.Passage {
		return retrieve.Passage{Title: id, Format: "pdf", Meta: map[string]string{"url": address},
			Chunk: ingest.Chunk{ID: id + "#1", Document: id, Page: 3, End: len(text), Text: text}}
	}
	events := func(yield func(answer.Event, error) bool) {
		_ = yield(answer.Kept{Passages: []retrieve.Passage{
			at("a", "https://example.org/a.pdf"), at("b", "https://example.org/a.pdf"), at("c", "javascript:alert(1)"),
		}}, nil) && yield(answer.Text{Text: text[:len(text)-1] + " [1][2][3]."}, nil)
	}
	a, err := cite.Collect(cite.Number(events, cite.Options{Source: cite.ByURL}))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Sources) != 2 || len(a.Citations) != 3 {
		t.Fatalf("%d sources and %d citations, want 2 and 3: %+v", len(a.Sources), len(a.Citations), a.Sources)
	}
	const want = "https://example.org/a.pdf#page=3"
	s := a.Sources[0]
	if s.Original != want || s.Passages[0].Original != want || a.Citations[0].Original != want {
		t.Errorf("originals %q, %q, %q, want %q", s.Original, s.Passages[0].Original, a.Citations[0].Original, want)
	}
	if s.Link != "" || a.Sources[1].Original != "" {
		t.Errorf("link %q, original of a script %q, want none", s.Link, a.Sources[1].Original)
	}
}

// A source can be each row of a table, or all that one author wrote.
func ExampleSourceOf() {
	row := func(p retrieve.Passage, _ string) (key, title string) {
		return p.Document + "#" + p.Anchor, p.Title + ", " + p.Anchor
	}
	author := func(p retrieve.Passage, _ string) (key, title string) {
		return p.Meta["author"], p.Meta["author"]
	}
	p := retrieve.Passage{Title: "Loans", Meta: map[string]string{"author": "Ann"},
		Chunk: ingest.Chunk{Document: "library/loans.csv", Anchor: "row=12"}}
	for _, source := range []cite.SourceOf{row, author} {
		fmt.Println(source(p, ""))
	}
	// Output:
	// library/loans.csv#row=12 Loans, row=12
	// Ann Ann
}
