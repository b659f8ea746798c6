package rewrite_test

import (
	"strings"
	"testing"

	"ibid/cite/marker"
	"ibid/cite/rewrite"
	"ibid/data/datatest"
)

var must = datatest.Must

var library = []rewrite.Document{
	{Source: "hours.md", Title: "Hours"}, {Source: "fees.pdf", Title: "Fees"}, {Source: "rooms.html", Title: "Rooms"},
}

// prose is about 1 MB of an answer: English with a marker every other sentence.
var prose = strings.Repeat("The library is closed on Mondays [1]. On other days it opens at nine, and on Sundays the reading "+
	"room (not the lending desk) opens at noon[3](id=3).\n\nA lost card costs 5 €, and `arr[1]` is code. Größe und Straße. ", 4500)

func BenchmarkRewriter(b *testing.B) {
	cjk := strings.Repeat("図書館は月曜日に休館します[1]。日曜日は正午に閲覧室が開きます【3】。", 10000)
	plain := strings.Repeat("The library is closed on Mondays. On other days it opens at nine, and on Sundays at noon. ", 11000)
	for _, bb := range []struct {
		name string
		text string
		size int // bytes per piece
	}{
		{"prose/tokens", prose, 4},
		{"prose/pieces", prose, 64},
		{"prose/whole", prose, len(prose)},
		{"plain/tokens", plain, 4},
		{"plain/pieces", plain, 64},
		{"plain/whole", plain, len(plain)},
		{"cjk/pieces", cjk, 64},
	} {
		b.Run(bb.name, func(b *testing.B) {
			text := []byte(bb.text)
			var out []byte
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			tokens := 0
			for b.Loop() {
				r := rewrite.New(library, rewrite.Text, marker.Default)
				for i := 0; i < len(text); i += bb.size {
					out = r.Append(out[:0], text[i:min(i+bb.size, len(text))])
					tokens++
				}
				out = r.Close(out[:0])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(tokens), "ns/piece")
		})
	}
}

func TestPlainPiecesAllocateNothing(t *testing.T) {
	r := rewrite.New(library, rewrite.Text, marker.Default)
	out := make([]byte, 0, 1024)
	for _, piece := range []string{"plain", " words, and more of them ", "ends in a space ", "Größe 図書館", "`code[1]` ", "half [",
		"1 no marker"} {
		b := []byte(piece)
		r.Append(out, b) // the text held back may grow once
		if n := testing.AllocsPerRun(100, func() { r.Append(out, b) }); n != 0 {
			t.Errorf("%q: %v allocations", piece, n)
		}
	}
}

// feed passes a text through a rewriter in pieces of n bytes.
func feed(text []byte, n int) string {
	r := rewrite.New(library, rewrite.Text, marker.Default)
	var out []byte
	for i := 0; i < len(text); i += n {
		out = r.Append(out, text[i:min(i+n, len(text))])
	}
	return string(r.Close(out))
}

// TestHostile rewrites hostile texts whole and byte by byte.
func TestHostile(t *testing.T) {
	size := datatest.Cases(t, 1<<17)
	for _, row := range datatest.Rows(t, "testdata/hostile.txt", "units") {
		name, unit := row[0], row[1]
		text := []byte(strings.Repeat(unit, size/len(unit)))
		if feed(text, 1) != feed(text, len(text)) {
			t.Errorf("%s: output differs if written byte by byte", name)
		}
	}
}
