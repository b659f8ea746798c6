package retrieve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ibid/ingest"
	"ibid/retrieve"
)

// sectioned returns a document of sections. A heading begins with its level in number signs, which
// are not part of the text.
func sectioned(id string, lines ...string) *ingest.Document {
	doc := &ingest.Document{ID: id, Digest: "d" + id, Format: "markdown"}
	doc.Root, doc.Path, _ = strings.Cut(id, "/")
	for _, line := range lines {
		heading := strings.TrimLeft(line, "#")
		if level := len(line) - len(heading); level > 0 {
			line = strings.TrimSpace(heading)
			doc.Sections = append(doc.Sections, ingest.Section{Heading: line, Level: level, Anchor: strings.ToLower(line), Start: len(doc.Text)})
		}
		doc.Text += line + "\n\n"
	}
	return doc
}

// placesOf returns the place of the first occurrence of every word of a document.
func placesOf(t *testing.T, doc *ingest.Document, passages []retrieve.Passage) string {
	t.Helper()
	var b strings.Builder
	words := strings.Fields(doc.Text)
	for i, word := range words {
		if slices.Contains(words[:i], word) {
			continue
		}
		at := strings.Index(doc.Text, word)
		for _, p := range passages {
			if p.Document == doc.ID && p.Start <= at && at < p.End {
				heading, anchor := p.PlaceAt(at)
				fmt.Fprintf(&b, "%s: %s (%s)\n", word, heading, anchor)
			}
		}
	}
	return b.String()
}

func TestPlaces(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("Much.more.is.said.about.it. ", 80))
	doc := sectioned("a/kites.md", "Before.", "# Kites", "Silk.", "## Tails", "Long.", "### Knots", "Bow.", "## Lines", "Hemp.",
		"# Winds", long, "Breeze.")
	var want strings.Builder
	for _, c := range []struct{ lines, place string }{
		{"Before.", " ()"},
		{"Kites Silk.", "Kites (kites)"},
		{"Tails Long.", "Kites › Tails (tails)"},
		{"Knots Bow.", "Kites › Tails › Knots (knots)"},
		{"Lines Hemp.", "Kites › Lines (lines)"},
		{"Winds", "Winds (winds)"},
		{"Much.more.is.said.about.it.", "Winds (winds)"},
		{"Breeze.", "Winds (winds)"},
	} {
		for line := range strings.FieldsSeq(c.lines) {
			fmt.Fprintf(&want, "%s: %s\n", line, c.place)
		}
	}
	chunks := ingest.Split(doc)
	whole := retrieve.Passages(doc, chunks)
	if len(whole[0].Places) < 4 || len(whole) < 3 {
		t.Fatalf("small sections do not share a passage: %+v", whole[0])
	}
	if got := placesOf(t, doc, whole); got != want.String() {
		t.Errorf("places in the whole document:\n%s\nwant:\n%s", got, want.String())
	}

	x := newRoot(t)
	must(t, x.Replace(t.Context(), doc, chunks))
	other := sectioned("a/boats.md", "# Boats", "Oak.", "## Sails", "Hemp.")
	must(t, x.Replace(t.Context(), other, ingest.Split(other)))
	found, err := x.Search(t.Context(), retrieve.Query{Text: "Silk hemp breeze knots before much", K: 50})
	must(t, err)
	if got := placesOf(t, doc, found); got != want.String() {
		t.Errorf("places in the found passages:\n%s\nwant:\n%s", got, want.String())
	}
	if got, want := placesOf(t, other, found),
		"Boats: Boats (boats)\nOak.: Boats (boats)\nSails: Boats › Sails (sails)\nHemp.: Boats › Sails (sails)\n"; got != want {
		t.Errorf("places in the other document:\n%s\nwant:\n%s", got, want)
	}
}

// TestPlacesOfRows checks that rows of a table are sections too: small rows share a
// passage, and each has its own place in it.
func TestPlacesOfRows(t *testing.T) {
	doc := &ingest.Document{ID: "a/fees.csv", Text: "card 5\n\nboat 9"}
	doc.Sections = []ingest.Section{{Level: 1, Anchor: "row=1", End: 8}, {Level: 1, Anchor: "row=2", Start: 8, End: 14}}
	for _, p := range retrieve.Passages(doc, ingest.Split(doc)) {
		_, first := p.PlaceAt(0)
		if _, second := p.PlaceAt(9); p.Anchor != "row=1-2" || first != "row=1" || second != "row=2" {
			t.Errorf("%s at %s: its rows are at %s and %s", p.ID, p.Anchor, first, second)
		}
	}
	book := &ingest.Document{ID: "a/fees.xlsx", Text: "Fees\n\ncard 5\nboat 9"}
	book.Sections = []ingest.Section{{Level: 1, Heading: "Fees", Anchor: "sheet=Fees", End: 4},
		{Level: 2, Anchor: "sheet=Fees&row=1", Start: 6, End: 12}, {Level: 2, Anchor: "sheet=Fees&row=2", Start: 13, End: 19}}
	for _, p := range retrieve.Passages(book, ingest.Split(book)) {
		if heading, anchor := p.PlaceAt(14); p.Anchor != "sheet=Fees&row=1-2" || heading != "Fees" || anchor != "sheet=Fees&row=2" {
			t.Errorf("%s at %s: its second row is at %s under %q", p.ID, p.Anchor, anchor, heading)
		}
	}
	if !slices.Equal(ingest.Trail(doc.Sections).Path(), nil) {
		t.Error("a row has a heading")
	}
}

// TestPlacesOnPages checks that a passage of small pages has the page of each place.
func TestPlacesOnPages(t *testing.T) {
	doc := sectioned("a/talk.pptx", "# Kites", "# Tails", "# Lines")
	for i, s := range doc.Sections {
		doc.Pages = append(doc.Pages, ingest.Page{Number: i + 1, Start: s.Start, End: s.Start + len(s.Heading)})
	}
	chunks := ingest.Split(doc)
	x := newRoot(t)
	must(t, x.Replace(t.Context(), doc, chunks))
	for range 2 { // the second search reads from memory
		found, err := x.Search(t.Context(), retrieve.Query{Text: "Tails"})
		must(t, err)
		for _, p := range append(found, retrieve.Passages(doc, chunks)...) {
			var pages []int
			for _, word := range strings.Fields(doc.Text) {
				pages = append(pages, p.PageAt(strings.Index(doc.Text, word)))
			}
			if !slices.Equal(pages, []int{1, 2, 3}) || len(found) != 1 {
				t.Errorf("%d passages found; pages of %s = %v", len(found), p.ID, pages)
			}
		}
	}
}
