package cite_test

import (
	"fmt"
	"strings"

	"ibid/answer"
	"ibid/cite"
	"ibid/ingest"
	"ibid/retrieve"
)

// Each number is announced before it is shown, and each citation gets its quote
// when its sentence has ended.
func ExampleNumber() {
	hours := retrieve.Passage{
		Chunk: ingest.Chunk{ID: "library/hours.md#2", Document: "library/hours.md", Start: 40, End: 116,
			Text: "The library is closed on Mondays. On Sundays the reading room opens at noon."},
		Title: "Opening hours",
	}
	events := func(yield func(answer.Event, error) bool) {
		_ = yield(answer.Kept{Passages: []retrieve.Passage{hours}}, nil) &&
			yield(answer.Text{Text: "The reading room opens at noon on Sundays [1"}, nil) &&
			yield(answer.Text{Text: "]. Bring cake."}, nil)
	}
	for e, err := range cite.Number(events, cite.Options{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch e := e.(type) {
		case cite.Cited:
			fmt.Printf("cited   [%d] %s\n", e.Number, e.Title)
		case answer.Text:
			fmt.Printf("text    %q\n", e.Text)
		case cite.Quoted:
			fmt.Printf("quoted  [%d] %s bytes %d to %d, %s: %q\n", e.Number, e.Document, e.Start, e.End, e.Verdict, e.Quote)
		}
	}
	fmt.Println(strings.Repeat("-", 3))
	a, err := cite.Collect(cite.Number(events, cite.Options{}))
	fmt.Printf("%s%s%v", a.Text, a.List, err)
	// Output:
	// text    "The reading room opens at noon on Sundays"
	// cited   [1] Opening hours
	// text    " [1]. Bring cake."
	// quoted  [1] library/hours.md bytes 74 to 116, supported: "On Sundays the reading room opens at noon."
	// ---
	// The reading room opens at noon on Sundays [1]. Bring cake.
	//
	// - [1] Opening hours (library/hours.md)
	// <nil>
}

// Each row of a table, or all texts by one author, can be a source.
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
