package pdf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestInterpret(t *testing.T) {
	src := `/F1 12 Tf % a comment
[(a\)b\101) -20.5 <48 65 6>] TJ << /Key [1 2] /ActualText (x) >> BDC
BI /W 2 /H 2 ID ` + "\x00\xffEI\x80\x01" + ` EI (after) Tj 1 0 0 1 --5 .5 cm ] > } (open`
	var got []string
	interpret([]byte(src), func(op string, args []operand) {
		var parts []string
		for _, a := range args {
			switch a.kind {
			case opNumber:
				parts = append(parts, fmt.Sprint(a.num))
			case opArray, opDict:
				parts = append(parts, fmt.Sprintf("%d items", len(a.items)))
			default:
				parts = append(parts, fmt.Sprintf("%q", a.str))
			}
		}
		got = append(got, op+" "+strings.Join(parts, " "))
	})
	want := []string{`Tf "F1" 12`, `TJ 3 items`, `BDC 4 items`, `Tj "after"`, `cm 1 0 0 1 -5 0.5`}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// text returns a line of text of size 10 at a place.
func text(x, y float64, s string) line {
	return line{text: s, x0: x, x1: x + 5*float64(len(s)), y: y, size: 10, glyphs: len(s)}
}

func texts(in []line) []string {
	var out []string
	for _, l := range in {
		out = append(out, l.text)
	}
	return out
}

func TestOrderedReadsColumns(t *testing.T) {
	var in []line
	in = append(in, text(50, 800, "A title that runs over both of the columns of the page, as titles do"))
	var want []string
	want = append(want, in[0].text)
	for _, side := range []string{"left", "right"} {
		x := 50.0
		if side == "right" {
			x = 300
		}
		for i := range 6 {
			s := fmt.Sprintf("%-5s column, line %d, words words words", side, i)
			in = append(in, text(x, 780-12*float64(i)-x/100, s)) // base lines differ
			want = append(want, s)
		}
	}
	if got := texts(ordered(in, 0)); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	// A box on the right whose lines are at other heights is read after the text.
	n := 7 // in the result
	for i, l := range in {
		if l.x0 == 300 {
			in[i].text, in[i].x1, in[i].y = fmt.Sprintf("box %d", i), 330, l.y-5
			want[n] = in[i].text
			n++
		}
	}
	if got := texts(ordered(in, 0)); !slices.Equal(got, want) {
		t.Errorf("with a box: got\n%s", strings.Join(got, "\n"))
	}
}

func TestRowsReadTables(t *testing.T) {
	bold := func(l line) line { l.bold = true; return l }
	in := []line{
		bold(text(50, 700, "Berth")), bold(text(150, 700, "What")), bold(text(400, 700, "Rate")),
		text(50, 680, "Short"), text(150, 680, "Up to eight metres, with"), text(400, 680, "£12"),
		text(150, 669, "power"),
		text(50, 650, "Long"), text(400, 650, "£20"),
		text(50, 610, "A paragraph after it."),
		// The names of columns without cells are kept,
		bold(text(50, 500, "Berth")), bold(text(150, 500, "Rate")), bold(text(400, 500, "Notes")),
		text(50, 480, "Short"), text(150, 480, "£12"),
		text(50, 440, "Between."),
		// and a cell that is bold in part names no column.
		bold(text(50, 400, "Total")), bold(text(400, 400, "Cost")), text(400, 389, "5,738"),
		text(50, 370, "Paid"), text(400, 370, "no"), text(50, 359, "by card"),
		text(50, 320, "Between."),
		// A number next to its name begins a row, however close the lines are.
		text(50, 300, "Parts"), text(400, 300, "2,100"), text(50, 289, "Labour"), text(400, 289, "300"),
		text(50, 260, "Total"), text(400, 260, "2,400"),
	}
	want := []string{"Berth: Short | What: Up to eight metres, with power | Rate: £12", "Berth: Long | Rate: £20", "A paragraph after it.",
		"Notes", "Berth: Short | Rate: £12", "Between.", "Total | Cost 5,738", "Paid by card | no",
		"Between.", "Parts | 2,100", "Labour | 300", "Total | 2,400"}
	if got := texts(rows(in)); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// The numbers of lines in a margin are found; those of a table's rows have a name
// above them, and other text may be at their place.
func TestWithoutNumbers(t *testing.T) {
	for name, tt := range map[string]struct {
		x    float64 // of the numbers
		step int
		also []line
		want bool
	}{
		"left":        {x: 30, step: 1, want: true},
		"right":       {x: 560, step: 5, want: true},
		"falling":     {x: 30, step: -1},
		"rows":        {x: 50, step: 1, also: []line{text(50, 712, "No.")}},
		"beside":      {x: 300, step: 1},
		"page number": {x: 30, step: 1, also: []line{text(30, 60, "17")}, want: true},
		"short rows":  {x: 30, step: 1, also: []line{text(400, 690, "12")}},
	} {
		in := tt.also
		for i := range 8 {
			beside := "a line of the text, which is as long as lines are, or so"
			if name == "short rows" {
				beside = "a cell"
			}
			in = append(in, text(tt.x, 700-12*float64(i), strconv.Itoa(60+i*tt.step)), text(70, 700-12*float64(i), beside))
		}
		rest, ok := withoutNumbers(in)
		if ok != tt.want || ok && len(rest) != 8+len(tt.also) {
			t.Errorf("%s: %t, %d pieces", name, ok, len(rest))
		}
	}
}

// A line of many pieces takes no quadratic time.
func TestManyPieces(t *testing.T) {
	const pieces = 50_000
	var glyphs []glyph
	for i := range pieces {
		x := 14 * float64(i)
		glyphs = append(glyphs, glyph{Text: "x", X0: x, X1: x + 5, Y: 700, Size: 5, Begins: true})
	}
	got, _ := lines(glyphs)
	if len(got) != 1 || got[0].text != strings.TrimSpace(strings.Repeat("x ", pieces)) || got[0].row {
		t.Errorf("%d lines", len(got))
	}
}

// Where letters touch and the pen is moved only between words, a small gap is a space.
func TestSmallSpaces(t *testing.T) {
	for gap, want := range map[float64]string{0.03: "a ship at sea now", 0.01: "a shipatsea now"} {
		var glyphs []glyph
		x := 0.0
		for i, word := range []string{"a", "ship", "at", "sea", "now"} {
			x += 10 * []float64{0, 0.2, gap, gap, 0.2}[i]
			for j, c := range word {
				glyphs = append(glyphs, glyph{Text: string(c), X0: x, X1: x + 5, Y: 700, Size: 10, Begins: j == 0})
				x += 5
			}
		}
		if got, _ := lines(glyphs); len(got) != 1 || got[0].text != want {
			t.Errorf("%g: %+v", gap, got)
		}
	}
}

func TestJoinedMendsHyphens(t *testing.T) {
	p := paragraphs{words: map[string]bool{"well-known": true}}
	tests := []struct{ a, b, want string }{
		{"the inter-", "national law", "the international law"},
		{"a well-", "known one", "a well-known one"},
		{"the GPT-", "4o model", "the GPT-4o model"},
		{"Doctor Pryce-", "Solberg", "Doctor Pryce-Solberg"},
		{"soft\u00ad", "ware", "software"},
		{"this -", "that", "this - that"},
		{"二つの", "行", "二つの行"},
		{"two", "lines", "two lines"},
	}
	for _, tt := range tests {
		if got := p.joined(tt.a, tt.b); got != tt.want {
			t.Errorf("%q + %q = %q, want %q", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestRunningTitlesAreDropped(t *testing.T) {
	var pages [][]line
	for i := range 12 {
		row := text(50, 650, "Sail | Mast")
		side := text(50, 810, "A plan | The house")
		row.row, side.row = true, true
		p := []line{
			text(50, 800, "The running title"), text(50, 790, "A line of it"), text(50, 780, "And one more"),
			text(50, 700, fmt.Sprintf("Body %c one", 'a'+i)), text(50, 690, "Same on each page"),
			text(50, 680, "More"), text(50, 100, fmt.Sprintf("Note %c", 'a'+i)), text(250, 50, fmt.Sprint(i+1)),
		}
		if i%2 == 0 { // a head of left pages, in a table's shape
			p = append([]line{side}, p...)
		}
		if i > 8 { // the names of columns
			p = append(p, row)
		}
		pages = append(pages, p)
	}
	dropRunning(pages)
	if got := texts(pages[0]); got[0] != "A plan | The house" || len(got) != 8 {
		t.Errorf("first page %q", got)
	}
	if got := texts(pages[4]); got[0] != "Body e one" || len(got) != 4 {
		t.Errorf("fifth page %q", got)
	}
	if got := texts(pages[10]); !slices.Contains(got, "Sail | Mast") {
		t.Errorf("eleventh page %q", got)
	}
}

// The program of a font says which letters its codes are, ligatures too.
func TestOwnEncoding(t *testing.T) {
	var f font
	f.simple['{'] = "{"
	f.readNames(ownEncoding([]byte("/Encoding 256 array\ndup 11 /ff put\ndup 123 /endash put readonly def\ncurrentfile eexec dup 65 /B put")))
	if f.simple[11] != "ff" && f.simple[11] != "\ufb00" || f.simple['{'] != "–" || f.simple['A'] != "" {
		t.Errorf("%q %q %q", f.simple[11], f.simple['{'], f.simple['A'])
	}
}

// Words that are apart without a space between them are no soup.
func TestPagesWithoutSpaces(t *testing.T) {
	var page drawn
	for i, word := range strings.Fields(strings.Repeat("Анна Петрова, Фома Сольберг, Мария Кин, Пётр Лунд, ", 20)) {
		x, y := float64(100*(i%4)), 700-12*float64(i/4)
		for j, r := range word {
			from := x + 5*float64(j)
			page.Glyphs = append(page.Glyphs, glyph{Text: string(r), X0: from, X1: from + 5, Y: y, Size: 10})
		}
	}
	if got := page.withoutSoup(false); len(got.Glyphs) == 0 {
		t.Error("the page has no text")
	}
	for i := range page.Glyphs { // the same letters without gaps
		page.Glyphs[i].X0, page.Glyphs[i].X1, page.Glyphs[i].Y = 5*float64(i), 5*float64(i+1), 700
	}
	if got := page.withoutSoup(false); len(got.Glyphs) != 0 {
		t.Error("soup is read as text")
	}
}

// The layout of any content must not panic.
func FuzzLayout(f *testing.F) {
	f.Add([]byte("BT 10 0 0 10 50 700 Tm (One) Tj 200 0 Td (Two) Tj 0 -1.2 TD (-) ' ET q 0 1 -1 0 5 5 cm (x) Tj"))
	f.Fuzz(func(t *testing.T, src []byte) {
		d := drawing{state: state{ctm: identity, scale: 1}, fonts: map[string]*font{}, text: identity, line: identity}
		plain := &font{scale: 0.001, width: 500}
		for i := range plain.simple {
			plain.simple[i] = string(rune(i))
		}
		d.font, d.size = plain, 1
		d.draw(src)
		page, _ := lines(d.glyphs)
		pages := [][]line{page}
		dropRunning(pages)
		body := bodySize(pages)
		p := paragraphs{body: body, levels: headingSizes(pages, body), words: hyphenated(pages)}
		for _, b := range p.blocks(pages[0]) {
			if strings.TrimSpace(b.Text) == "" {
				t.Fatal("an empty block")
			}
		}
	})
}
