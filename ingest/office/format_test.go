package office

import (
	"slices"
	"testing"

	"ibid/data/datatest"
)

func TestFormatNumber(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/numbers.txt", "numbers") {
		if got := formatNumber(row[0], row[1], false); got != row[2] {
			t.Errorf("%s as %s: %q, want %q", row[0], row[1], got, row[2])
		}
	}
	if got := formatNumber("43920", "yyyy-mm-dd", true); got != "2024-03-31" {
		t.Errorf("since 1904: %s", got)
	}
}

func FuzzFormatNumber(f *testing.F) {
	for _, format := range []string{"#,##0.00_);[Red](#,##0.00)", "# ??/??", "[h]:mm:ss.000", "0.00E+00", "[<1]\"a\";;@", "yyyy\\-mm",
		"%%%", "General\" x\""} {
		f.Add("1234.5", format)
		f.Add("-1e-300", format)
	}
	f.Fuzz(func(t *testing.T, value, format string) {
		// A number stays short whatever the format says.
		if got := formatNumber(value, format, false); len(got) > len(value)+1000+10*len(format) {
			t.Errorf("%q as %q gives %d bytes", value, format, len(got))
		}
	})
}

func TestItemNumber(t *testing.T) {
	for _, tt := range []struct {
		format string
		n      int
		want   string
	}{
		{"decimal", 12, "12"}, {"lowerLetter", 1, "a"}, {"lowerLetter", 27, "aa"}, {"upperLetter", 28, "BB"}, {"lowerLetter", 0, "0"},
		{"upperRoman", 1994, "MCMXCIV"}, {"lowerRoman", 4, "iv"}, {"upperRoman", 5000, "5000"},
		{"unknown", 3, "3"}, {"none", 3, ""},
	} {
		if got := itemNumber(tt.format, tt.n); got != tt.want {
			t.Errorf("%d as %s: %q, want %q", tt.n, tt.format, got, tt.want)
		}
	}
}

func TestHeadingLevel(t *testing.T) {
	for name, want := range map[string]int{"heading 1": 1, "heading9": 9, "heading 10": 0, "heading": 0, "list 1": 0, "": 0, "1": 0} {
		if got := headingLevel(name); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
}

func TestUnescapeCell(t *testing.T) {
	for in, want := range map[string]string{"a_x000A_b": "a\nb", "_x005F_x000D_": "_x000D_", "_x": "_x", "a_xyz": "a_xyz",
		"_x00e9_": "é", "_x0041": "_x0041"} {
		if got := unescapeCell(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// A sheet's printed header has codes, and is written once.
func TestPrinted(t *testing.T) {
	b := &workbook{file: &file{}}
	got := b.printed(`&L&"Arial,Bold"&12For internal &KFF0000use only&C&A&RPage &P of &N`)
	if len(got) != 1 || got[0].Text != "Header or footer: For internal use only" {
		t.Errorf("%+v", got)
	}
	if again := b.printed("For internal use only"); len(again) != 0 {
		t.Errorf("again %+v", again)
	}
}

// What is left out of a text is named, and a table of names without rows is kept.
func TestLeftOut(t *testing.T) {
	var blocks []Block
	partial, err := Read([]byte(`{\rtf1{\header Of the house\par}{\footerf{Page 1}}{\deleted gone}`+
		`\pard Ke{\header Of the house}pt{\object{\*\objdata 00}}\par}`),
		func(b Block) { blocks = append(blocks, b) }, func(string, string) {})
	if err != nil || len(blocks) != 2 || blocks[0].Text != "Kept" || blocks[1].Text != "Header: Of the house" ||
		!slices.Equal(partial, []string{"files in it are not read: 1 embedded objects", "deletions of tracked changes are left out: 1"}) {
		t.Errorf("%v, %v, %q", blocks, err, partial)
	}
	if n := namesIn(Block{Rows: [][]string{{"a", "b"}, {"", ""}}, Names: 1}); n != 0 {
		t.Errorf("%d rows of names", n)
	}
}
