package cite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ibid/answer"
	"ibid/cite"
)

var library = []cite.Document{
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
		size int // bytes a piece
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
				r := cite.NewRewriter(library, cite.Text, cite.Default)
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

// A piece without a marker costs no allocation.
func TestPlainPiecesAllocateNothing(t *testing.T) {
	r := cite.NewRewriter(library, cite.Text, cite.Default)
	out := make([]byte, 0, 1024)
	for _, piece := range []string{"plain", " words, and more of them ", "ends in a space ", "Größe 図書館", "`code[1]` ", "half [", "1 no marker"} {
		b := []byte(piece)
		r.Append(out, b) // what is held back may grow once
		if n := testing.AllocsPerRun(100, func() { r.Append(out, b) }); n != 0 {
			t.Errorf("%q: %v allocations", piece, n)
		}
	}
}

// hostile texts make a careless scanner quadratic.
var hostile = map[string]string{
	"brackets":    "[",
	"backticks":   "`",
	"spaced":      "` ",
	"ticks":       "` `` ``` ```` ````` `````` ``````` ```````` ````````` `````````` ",
	"half":        "[1](id=",
	"halves":      "[1,2,3,1,2,3,1,2,3,1,2,3,1,2,3,1,2,3,1,2,3,1,2,3,1,2,3,1,2,3 ",
	"chain":       "a[1][2][3]",
	"chains":      "[1]",
	"glued":       "a[1]",
	"spaces":      " ",
	"tildes":      "~",
	"marks":       "́",
	"wide":        "【",
	"invalid":     "\x80",
	"cut":         "\xe3\x80",
	"backslashes": `\`,
	"silent":      " [1](id=9)",
	"quotes":      "> ",
}

// feed passes a text through a rewriter in pieces of n bytes.
func feed(text []byte, n int) string {
	r := cite.NewRewriter(library, cite.Text, cite.Default)
	var out []byte
	for i := 0; i < len(text); i += n {
		out = r.Append(out, text[i:min(i+n, len(text))])
	}
	return string(r.Close(out))
}

// Hostile texts come out the same however they are cut, and come to an end on any
// machine; how the time grows is measured by BenchmarkHostile.
func TestHostile(t *testing.T) {
	for name, unit := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := []byte(strings.Repeat(unit, 1<<17/len(unit)))
			start := time.Now()
			want := feed(text, len(text))
			if got := feed(text, 1); got != want {
				t.Errorf("byte by byte the text comes out differently")
			}
			if d := time.Since(start); d > 5*time.Minute {
				t.Errorf("%d bytes took %v", len(text), d)
			}
		})
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, unit := range hostile {
		for _, size := range []int{1 << 18, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%dK", name, size>>10), func(b *testing.B) {
				text := []byte(strings.Repeat(unit, size/len(unit)))
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					feed(text, 1)
				}
			})
		}
	}
}

// An answer's events may be as hostile.
func TestNumberHostile(t *testing.T) {
	for name, unit := range map[string]string{
		"reference line": ".\n" + strings.Repeat("[1]", 40000),
		"wrapped":        strings.Repeat("[1]", 20000) + strings.Repeat("w\n", 30000),
		"pointers":       "Sources: [1]\n", "asides": "(see )", "listed": "Sources:\n- a [1]\n", "one list": "A b c d.\nSources:\n" + strings.Repeat("- a [1]\n", 16000),
		"together": "The closed library costs nine euros [1][2][3]. ", "emphasis": "x" + strings.Repeat("*", 60000) + "\n" + strings.Repeat("x*\n", 20000),
		"citations": "a[1] ", "sentences": "A b c d [1]. ", "words": "word ", "stops": ".", "spaced stops": ". ",
		"lines": "a\n", "references": "[1]", "lists": "\n- ", "blanks": ".  ", "closers": ".)", "closer": ")", "stop references": ".[1][2]", "spaces": " ", "newlines": "\n", "dots": "a.b",
	} {
		for _, size := range []int{3, 1 << 18} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				t.Parallel()
				text := strings.Repeat(unit, max(1, 1<<17/len(unit)))
				events := append([]answer.Event{answer.Kept{Passages: evidence}}, pieces(text, size)...)
				start := time.Now()
				if _, err := cite.Collect(cite.Number(stream(events...), options)); err != nil {
					t.Fatal(err)
				}
				if d := time.Since(start); d > 5*time.Minute {
					t.Errorf("%d bytes took %v", len(text), d)
				}
			})
		}
	}
}
