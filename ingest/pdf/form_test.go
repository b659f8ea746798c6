package pdf

import (
	"slices"
	"testing"
)

// A form is drawn cell by cell: what was drawn for a row is read together, wherever in
// the row its label is.
func TestForms(t *testing.T) {
	var page []line
	put := func(text string, x, y float64) *line {
		page = append(page, line{text: text, x0: x, x1: x + 5*float64(len(text)), y: y, size: 10, glyphs: len(text), drawn: len(page)})
		return &page[len(page)-1]
	}
	put("Protocol", 50, 780).bold = true
	put("Title", 50, 753)
	put("A study of two splints", 200, 760)
	put("for broken thumbs", 200, 746)
	put("Sponsor", 50, 722)
	put("A school", 200, 722)
	put("Crew", 50, 698).bold = true // in a row of its own
	put("Criteria", 50, 674)
	put("Sailors who are older", 200, 688)
	put("than twelve years and", 200, 674)
	put("swim well", 200, 660)
	put("What follows is a paragraph that runs across the page.", 50, 630)
	// With names in bold, and a cell of two lines, each column is named in each row.
	put("Berth", 50, 580).bold = true
	put("Rate", 150, 580).bold = true
	put("Notes", 250, 580).bold = true
	put("Short", 50, 560)
	put("12", 150, 560)
	put("Up to eight metres,", 250, 560)
	put("with power", 250, 548)
	// A table that was drawn column by column is read by its lines.
	for i, label := range []string{"Long", "Wide", "Deep"} {
		put(label, 50, 500-16*float64(i))
	}
	for i, value := range []string{"20", "24", "30"} {
		put(value, 150, 500-16*float64(i))
	}
	want := []string{
		"Protocol", "Title | A study of two splints for broken thumbs", "Sponsor | A school",
		"Crew", "Criteria | Sailors who are older than twelve years and swim well",
		"What follows is a paragraph that runs across the page.",
		"Berth: Short | Rate: 12 | Notes: Up to eight metres, with power",
		"Long | 20", "Wide | 24", "Deep | 30",
	}
	if got := texts(ordered(page, 0)); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
