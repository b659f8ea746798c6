package office

import (
	"slices"
	"strings"
	"testing"
)

// The first row of a form is not a row of names: each row is a label and its value.
func TestLabels(t *testing.T) {
	for _, tt := range []struct {
		names int
		rows  string // cells, and the rows
		want  string // with the names in brackets
	}{
		{unknown, "Name:|Ann Osborne, 12 Quay/Born:|1970-03-04/Boat:|Atlas", "Name: Ann Osborne, 12 Quay/Born: 1970-03-04/Boat: Atlas"},
		{unknown, "Study Title|A trial of warm sails/Sponsor|Velmere/|and others/Number of Subjects|120",
			"Study Title: A trial of warm sails/Sponsor: Velmere/and others/Number of Subjects: 120"},
		{likely, "Study Title|A trial of warm sails/Sponsor|Velmere/Number of Subjects|120",
			"Study Title: A trial of warm sails/Sponsor: Velmere/Number of Subjects: 120"},
		{unknown, "Fee|120 €/Length|8 m/Berth|B 4", "Fee: 120 €/Length: 8 m/Berth: B 4"},
		{unknown, "Town|Velmere/Chair|Ann", "Town: Velmere/Chair: Ann"},
		{unknown, "Name:|Ann", "Name: Ann"},
		{likely, "Project|Harbour/Owner|Ann/Budget|25000", "Project: Harbour/Owner: Ann/Budget: 25000"},
		// Records.
		{likely, "Boat|Fee/Atlas|120/Gull|85/Tern|none", "[Boat|Fee]/Atlas|120/Gull|85/Tern|none"},
		{unknown, "Boat|Price/Atlas|120/Gull|85", "[Boat|Price]/Atlas|120/Gull|85"},
		{unknown, "Place|1998/Velmere|41 t/Quay|17 t", "[Place|1998]/Velmere|41 t/Quay|17 t"},
		{likely, "Town|Chair/Velmere|Ann/Quay|Bo", "[Town|Chair]/Velmere|Ann/Quay|Bo"},
		{1, "Name:|Chair of it:/Velmere:|Ann/Quay:|Bo", "[Name:|Chair of it:]/Velmere:|Ann/Quay:|Bo"},
		{unknown, "Day|Boat/Monday|Atlas/Monday|Gull", "[Day|Boat]/Monday|Atlas/Monday|Gull"},
		{unknown, "Boat|Price|Notes/Atlas|120|fast/Gull|85|slow", "[Boat|Price|Notes]/Atlas|120|fast/Gull|85|slow"},
	} {
		b := Block{Names: tt.names}
		for row := range strings.SplitSeq(tt.rows, "/") {
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
		if want := strings.Split(tt.want, "/"); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", tt.rows, got, want)
		}
	}
}

// Bold words tell labels from names.
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

// A sheet is read in blocks: names are those of the table below them only.
func TestSheetBlocks(t *testing.T) {
	for rows, want := range map[string]string{
		"Protocol/Study Title|A trial of warm sails/Sponsor|Velmere/Subjects|120": "Protocol/Study Title: A trial of warm sails/" +
			"Sponsor: Velmere/Subjects: 120",
		"Velmere Ltd|||Invoice/|||Number|V-14/|||Due|2025-03-01//Bill to/Ann Osborne/3 Quay//" +
			"Item|Fee/Berth|120/Rope|3//Tar|8//Thanks/to all": "Velmere Ltd|Invoice/Number|V-14/Due|2025-03-01/Bill to/Ann Osborne/3 Quay/" +
			"Item=Berth|Fee=120/Item=Rope|Fee=3/Item=Tar|Fee=8/Thanks/to all",
	} {
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
