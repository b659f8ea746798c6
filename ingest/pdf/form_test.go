package pdf

import "testing"

// The labels of a form are centred in their rows: each goes with its whole value.
func TestLabelsAndValues(t *testing.T) {
	put := func(text string, x, y float64) line {
		return line{text: text, x0: x, x1: x + 5*float64(len(text)), y: y, size: 10, glyphs: len(text)}
	}
	page := []line{
		put("Protocol", 50, 760),
		put("A study of two splints", 200, 720), put("Title", 50, 713), put("for broken thumbs", 200, 706),
		put("Sponsor", 50, 682), put("A school", 200, 682),
		put("Sailors who are older", 200, 658), put("than twelve years and", 200, 644), put("Criteria", 50, 644), put("swim well", 200, 630),
		put("What follows is a paragraph that runs across the page.", 50, 600),
	}
	want := []string{
		"Protocol", "Title | A study of two splints for broken thumbs", "Sponsor | A school",
		"Criteria | Sailors who are older than twelve years and swim well", "What follows is a paragraph that runs across the page.",
	}
	got := ordered(page, 0)
	if len(got) != len(want) {
		t.Fatalf("%d lines: %+v", len(got), got)
	}
	for i, l := range got {
		if l.text != want[i] || l.row != (i > 0 && i < 4) {
			t.Errorf("%d: %q (row: %v), want %q", i, l.text, l.row, want[i])
		}
	}

	// With a third column it is a table like any other.
	page = append(page, put("12", 500, 720), put("13", 500, 682), put("14", 500, 658))
	if _, table, _ := labelled(page); table != nil {
		t.Errorf("a table of three columns is %+v", table)
	}
}
