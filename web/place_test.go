package web

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"ibid/ingest"
)

// words returns a text without its white space.
func words(s string) string { return strings.Join(strings.Fields(s), "") }

// TestRows checks that the rows of a table are shown as paragraphs.
func TestRows(t *testing.T) {
	d := &ingest.Document{Text: "name: Acorn\nname: Bramble\nname: Conker\n"}
	for start := 0; start < len(d.Text); start = lineEnd(d.Text, start) {
		d.Sections = append(d.Sections, ingest.Section{Start: start, End: lineEnd(d.Text, start), Anchor: "row=1"})
	}
	want := []block{{Kind: "text", Runs: []span{{Text: "name: Acorn"}}},
		{Kind: "text", At: 12, Runs: []span{{Text: "name: Bramble", Mark: true, First: true}}},
		{Kind: "text", At: 26, Runs: []span{{Text: "name: Conker"}}}}
	if diff := cmp.Diff(want, excerptOf(d, textRange{Start: 12, End: 25}).Blocks); diff != "" {
		t.Error(diff)
	}
}

// FuzzExcerpt checks that excerpts of any document lose and repeat no words,
// mark the right ones, and cut no UTF-8 sequence.
func FuzzExcerpt(f *testing.F) {
	f.Add("Fees\n\nThe fee is 240.\nDue in April.\n\nStorage\nNinety.\n", 6, 21, 0, 4, 20)
	f.Add("日本語\n\n\n né ", 1, 5, 3, 2, 9)
	f.Add(strings.Repeat("A line of some words.\n\n", 9000), 100_000, 100_050, 0, 50_000, 90_000)
	f.Add("0    0", 1, 5, 39, -96, 34)
	f.Add(strings.Repeat("x", 3*window), 2*window, 2*window+9, 7, 5, 8)
	f.Fuzz(func(t *testing.T, text string, start, end, at, section, page int) {
		if !utf8.ValidString(text) || start < 0 || end < 0 || at < 0 {
			t.Skip()
		}
		d := &ingest.Document{ID: "a/b", Text: text}
		inside := func(i int) int { return lineStart(text, runeStart(text, min(max(i, 0), len(text)))) }
		d.Sections = []ingest.Section{{Heading: "h", Level: 1, Start: inside(section), End: len(text)}}
		d.Pages = []ingest.Page{{Number: 1, Start: 0, End: inside(page)}, {Number: 2, Start: inside(page), End: len(text)}}
		x := excerptOf(d, textRange{Start: start, End: end, At: at})

		var all, marked strings.Builder
		first := 0
		for _, b := range x.Blocks {
			if (b.Kind == "page") != (len(b.Runs) == 0) {
				t.Fatalf("block %+v", b)
			}
			for _, r := range b.Runs {
				if r.Text == "" || !utf8.ValidString(r.Text) {
					t.Fatalf("run %q", r.Text)
				}
				all.WriteString(r.Text)
				if r.Mark {
					marked.WriteString(r.Text)
				}
				if r.First {
					first++
				}
			}
		}
		if x.Earlier < 0 && x.Later < 0 && words(all.String()) != words(text) {
			t.Fatalf("the text %q became %q", text, all.String())
		}
		if !strings.Contains(words(text), words(all.String())) {
			t.Fatalf("the excerpt is not a part of the text")
		}
		if x.Missing != (end > start && end > len(text)) {
			t.Fatalf("place %d to %d of %d bytes: missing is %t", start, end, len(text), x.Missing)
		}
		if words(marked.String()) != words(text[x.Start:x.End]) {
			t.Fatalf("marked %q, want %q", marked.String(), text[x.Start:x.End])
		}
		if !x.Missing && end > start && (x.Start > start || x.End < end) {
			t.Fatalf("marked %d to %d, want %d to %d", x.Start, x.End, start, end)
		}
		// A mark of spaces within a line has a first run too: it is where the page scrolls to.
		if first > 1 || first == 0 && words(text[x.Start:x.End]) != "" {
			t.Fatalf("%d first marks of %q", first, text[x.Start:x.End])
		}
		for _, n := range []int{x.Earlier, x.Later} {
			if n > len(text) {
				t.Fatalf("leads to %d of %d bytes", n, len(text))
			}
		}
	})
}
