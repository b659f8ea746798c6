package office

import (
	"slices"
	"strings"
	"testing"

	"ibid/data/datatest"
)

// TestLabels checks that the first row of a form is not taken for column names: each row is
// a label and its value.
func TestLabels(t *testing.T) {
	for _, c := range datatest.Rows(t, "testdata/tables.txt", "labels") {
		b := Block{Names: map[string]int{"unknown": unknown, "likely": likely, "1": 1}[c[0]]}
		for row := range strings.SplitSeq(c[1], "/") {
			b.Rows = append(b.Rows, strings.Split(row, "|"))
		}
		b.setNames()
		var got []string
		for i, row := range b.Rows {
			line := strings.Join(row, "|")
			if i < b.Names {
				line = "[" + line + "]"
			}
			got = append(got, line)
		}
		if want := strings.Split(c[2], "/"); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", c[1], got, want)
		}
	}
}

// TestBoldNames checks that bold type distinguishes labels from column names.
func TestBoldNames(t *testing.T) {
	for rows, want := range map[string]int{
		"*Town|Velmere/*Chair|Ann/*Fee|12": labels,
		"*Town|*Chair/Velmere|Ann/Quay|Bo": 1,
		"*Town|*Chair/*Velmere|*Ann":       0,
		"Town|Chair/Velmere|Ann":           0,
	} {
		var cells [][]cell
		for row := range strings.SplitSeq(rows, "/") {
			var in []cell
			for text := range strings.SplitSeq(row, "|") {
				text, bold := strings.CutPrefix(text, "*")
				in = append(in, cell{blocks: []Block{{Text: text, bold: bold}}, span: 1})
			}
			cells = append(cells, in)
		}
		if got := boldNames(cells); got != want {
			t.Errorf("%s: %d, want %d", rows, got, want)
		}
	}
}

// TestSheetBlocks checks that a sheet is read region by region, and that column names apply
// only to the table below them.
func TestSheetBlocks(t *testing.T) {
	for _, c := range datatest.Rows(t, "testdata/tables.txt", "blocks") {
		rows, want := c[0], c[1]
		var got []string
		f := &file{archive: &archive{}, size: 1000, out: func(b Block) {
			var cells []string
			for i, text := range b.Rows[len(b.Rows)-1] {
				if name := b.Rows[0][i]; name != "" {
					text = name + "=" + text
				}
				cells = append(cells, text)
			}
			got = append(got, strings.Join(cells, "|"))
		}}
		s := newSheet(f, "Form")
		s.hasHeading = true
		for i, row := range strings.Split(rows, "/") {
			s.row(i+1, textRow(strings.Split(row, "|")).cells)
		}
		s.writeTop()
		if got := strings.Join(got, "/"); got != want {
			t.Errorf("%s:\n%q, want\n%q", rows, got, want)
		}
	}
}
