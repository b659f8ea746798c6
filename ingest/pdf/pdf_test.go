package pdf

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	pdf "github.com/ledongthuc/pdf"
	"golang.org/x/tools/txtar"

	"ibid/data/datatest"
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

// A layout is a case of a test in testdata/layouts.txt.
type layout struct {
	name string
	page []line // glyphs as they are drawn
	want string // expected text, with " / " between lines
}

func layouts(t *testing.T, test string) (all []layout) {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/layouts.txt")
	datatest.Must(t, err)
	for _, f := range archive.Files {
		c, read := layout{name: strings.TrimPrefix(f.Name, test+": ")}, []string{}
		for row := range strings.Lines(string(f.Data)) {
			place, s, _ := strings.Cut(strings.TrimSuffix(row, "\n"), ": ")
			x, y, size, style := 0.0, 0.0, 10.0, ""
			if row[0] == '=' {
				read = append(read, strings.TrimSpace(row[2:]))
			} else if n, _ := fmt.Sscan(place, &x, &y, &size, &style); n >= 2 {
				l := text(x, y, s)
				l.size, l.bold, l.drawn, l.last = size, style == "bold", len(c.page), len(c.page)
				c.page = append(c.page, l)
			} else if row[0] != '#' {
				t.Fatalf("%s has the line %q, want a place and a text", f.Name, row)
			}
		}
		if c.want = strings.Join(read, " / "); c.name != f.Name {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		t.Fatalf("no layouts for %s", test)
	}
	return all
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
	if got := texts(orderPieces(in, 0)); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	// A box on the right, whose lines are at other heights, is read after the text.
	n := 7 // in the result
	for i, l := range in {
		if l.x0 == 300 {
			in[i].text, in[i].x1, in[i].y = fmt.Sprintf("box %d", i), 330, l.y-5
			want[n] = in[i].text
			n++
		}
	}
	if got := texts(orderPieces(in, 0)); !slices.Equal(got, want) {
		t.Errorf("with a box: lines = \n%s", strings.Join(got, "\n"))
	}
}

// TestOrderedByDrawing checks that shapes that are drawn together are read together:
// columns, cells and the rows of a form, however close they are, and two adjacent tables
// one after the other.
func TestOrderedByDrawing(t *testing.T) {
	for _, c := range layouts(t, "drawn") {
		for _, order := range []string{"as it is drawn", "from top to bottom"} {
			if got := strings.Join(texts(orderPieces(slices.Clone(c.page), 0)), " / "); got != c.want {
				t.Errorf("%s, %s: text = %q, want %q", c.name, order, got, c.want)
			}
			sortByTop(c.page)
		}
	}
}

func TestRowsReadTables(t *testing.T) {
	for _, c := range layouts(t, "grids") {
		if got := strings.Join(texts(replaceGrids(lineRows(c.page))), " / "); got != c.want {
			t.Errorf("rows = %q, want %q", got, c.want)
		}
	}
}

// TestJustifiedLines checks that two words that fill the width of a justified line are not
// cells.
func TestJustifiedLines(t *testing.T) {
	first, from := text(50, 700, "telecommunications infrastructure"), text(50, 688, "administrators")
	to := text(0, 688, "unquestionably")
	to.x0, to.x1 = first.x1-to.x1, first.x1
	if got := texts(replaceGrids(lineRows([]line{first, from, to}))); len(got) != 2 || got[1] != "administrators unquestionably" {
		t.Errorf("rows = %q", got)
	}
}

// TestWithoutNumbers checks that the numbers of lines in a margin are found. The numbers of
// a table's rows have a name above them, and other text may be in their place.
func TestWithoutNumbers(t *testing.T) {
	for name, tt := range map[string]struct {
		x    float64 // places of the numbers
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

// TestManyPieces checks that a line of many pieces needs no quadratic time.
func TestManyPieces(t *testing.T) {
	const pieces = 50_000
	var glyphs []glyph
	for i := range pieces {
		x := 14 * float64(i)
		glyphs = append(glyphs, glyph{Text: "x", X0: x, X1: x + 5, Y: 700, Size: 5, Begins: true})
	}
	got, _ := lines(glyphs, nil)
	if len(got) != 1 || got[0].text != strings.TrimSpace(strings.Repeat("x ", pieces)) || got[0].row {
		t.Errorf("%d lines, want one", len(got))
	}
}

// TestNarrowTables checks that cells that are as close as words are found if the file has
// drawn spaces.
func TestNarrowTables(t *testing.T) {
	table := [][]string{{"Type", "Fee", "Notes"}, {"Short one", "12", "up to eight metres"}}
	whole := []string{"Type: Short one | Fee: 12 | Notes: up to eight metres"}
	tests := []struct {
		name   string
		rows   [][]string
		spaces bool // spaces are drawn; otherwise the pen is moved
		want   []string
	}{
		{"spaces drawn", table, true, whole},
		{"the pen moved", table, false, []string{"Type Fee: Short one 12 | Notes: up to eight metres"}},
		{"other gaps", [][]string{{"a long line", "goes on"}, {"here", "and there"}}, true, []string{"a long line goes on", "here and there"}},
		{"list", [][]string{{"2.", "one of them"}, {"3.", "the other"}}, true, []string{"2. one of them", "3. the other"}},
	}
	for _, tt := range tests {
		var glyphs []glyph
		for i, row := range tt.rows {
			x := 0.0
			for j, cell := range row {
				if len(row) == 3 {
					x = []float64{0, 48, 68}[j] + float64(3-3*i) // names in the middle
				}
				moved := true
				for _, r := range cell {
					if r != ' ' || tt.spaces {
						glyphs = append(glyphs, glyph{Text: string(r), X0: x, X1: x + 5, Y: 700 - 14*float64(i), Size: 10, Begins: moved})
						glyphs[len(glyphs)-1].Bold = len(row) == 3 && i == 0
					}
					x, moved = x+5, r == ' ' && !tt.spaces
				}
				x += 4
			}
		}
		got, _ := lines(glyphs, nil)
		if got := texts(got); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q", tt.name, got)
		}
	}
}

// TestSmallSpaces checks that a small gap is a space if letters touch and the pen is moved
// only between words.
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
		if got, _ := lines(glyphs, nil); len(got) != 1 || got[0].text != want {
			t.Errorf("gap %g: lines = %+v", gap, got)
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
		{"טלפון -03", "1234567.", "טלפון 03-1234567."},
	}
	for _, tt := range tests {
		if got := p.joinLines(tt.a, tt.b); got != tt.want {
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
		if i%2 == 0 { // a header of left pages, in the shape of a table
			p = append([]line{side}, p...)
		}
		if i > 8 { // the names of columns
			p = append(p, row)
		}
		pages = append(pages, p)
	}
	dropRunning(pages)
	if got := texts(pages[0]); got[0] != "A plan | The house" || len(got) != 8 {
		t.Errorf("first page = %q", got)
	}
	if got := texts(pages[4]); got[0] != "Body e one" || len(got) != 4 {
		t.Errorf("fifth page = %q", got)
	}
	if got := texts(pages[10]); !slices.Contains(got, "Sail | Mast") {
		t.Errorf("eleventh page = %q", got)
	}
}

func TestNumbersOfRunningTitles(t *testing.T) {
	for _, c := range []struct {
		format  string
		size    float64
		row     bool
		perPage int // by how much the number in the line grows
		kept    int
	}{
		{"Chapter %d", 20, false, 1, 8}, // larger than the text, so they are headings
		{"%d Chapter about boats", 10, false, 2, 8},
		{"The manual, page %d", 10, false, 1, 1},
		{"file:///boats.html | %d/29", 10, true, 1, 1},
		{"3 Boats | %d", 10, true, 1, 1},
		{"– %d –", 10, false, 1, 0},
	} {
		var pages [][]line
		for i := range 8 {
			title := text(50, 800, fmt.Sprintf(c.format, 1+i*c.perPage))
			title.size, title.row = c.size, c.row
			pages = append(pages, []line{title, text(50, 700, fmt.Sprintf("The body of page %c, which is longer than its title", 'a'+i))})
		}
		dropRunning(pages)
		kept := -len(pages)
		for _, p := range pages {
			kept += len(p)
		}
		if kept != c.kept {
			t.Errorf("%q: %d of 8 are kept, want %d", c.format, kept, c.kept)
		}
	}
}

// TestOwnEncoding checks that a font's program names the letters of its codes, including
// ligatures.
func TestOwnEncoding(t *testing.T) {
	var f font
	f.simple['{'] = "{"
	f.readNames(ownEncoding([]byte("/Encoding 256 array\ndup 11 /ff put\ndup 123 /endash put readonly def\ncurrentfile eexec dup 65 /B put")))
	if f.simple[11] != "ff" && f.simple[11] != "\ufb00" || f.simple['{'] != "–" || f.simple['A'] != "" {
		t.Errorf("letters = %q %q %q", f.simple[11], f.simple['{'], f.simple['A'])
	}
}

// TestSymbolBullets checks that the bullet of a symbol font, which has no character, is
// read as a bullet.
func TestSymbolBullets(t *testing.T) {
	p := paragraphs{body: 10}
	got := p.blocks([]line{text(50, 700, "Bring"), text(50, 688, "\uf0b7 a rope"), text(50, 676, "\uf0a7 an oar")})
	want := []Block{{Text: "Bring"}, {Text: "• a rope", Kind: Item}, {Text: "• an oar", Kind: Item}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}

// TestPagesWithoutSpaces checks that words with gaps instead of spaces between them are not
// undecoded text.
func TestPagesWithoutSpaces(t *testing.T) {
	var page drawnPage
	for i, word := range strings.Fields(strings.Repeat("Анна Петрова, Фома Сольберг, Мария Кин, Пётр Лунд, ", 20)) {
		x, y := float64(100*(i%4)), 700-12*float64(i/4)
		for j, r := range word {
			from := x + 5*float64(j)
			page.Glyphs = append(page.Glyphs, glyph{Text: string(r), X0: from, X1: from + 5, Y: y, Size: 10})
		}
	}
	if got := page.dropUndecoded(false); len(got.Glyphs) == 0 {
		t.Error("the words were dropped as undecoded")
	}
	for i := range page.Glyphs { // the same letters without gaps
		page.Glyphs[i].X0, page.Glyphs[i].X1, page.Glyphs[i].Y = 5*float64(i), 5*float64(i+1), 700
	}
	if got := page.dropUndecoded(false); len(got.Glyphs) != 0 {
		t.Error("undecoded text was kept")
	}
}

// TestDecryptStrings checks that a string that gets longer when it is decrypted makes its
// object longer, and that other strings stay in place.
func TestDecryptStrings(t *testing.T) {
	open := func(s []byte) []byte {
		return bytes.ReplaceAll(s, []byte("x"), []byte(`\`))
	}
	for object, want := range map[string]string{
		"<</A (xx) /B <7878>>>":      `<</A (\\\\) /B (\\\\)>>`,
		"<</A (one) /B <61626364>>>": "",
	} {
		place := []byte(object)
		if got := string(decryptStrings(place, open)); got != want {
			t.Errorf("decrypted %s = %s, want %s", object, got, want)
		}
		if l := (lexer{src: place}); want == "" {
			if v, _ := l.value(0); v.items[1].str != "one" || v.items[3].str != "abcd" {
				t.Errorf("decrypted %s in place = %s, want the strings one and abcd", object, place)
			}
		}
	}
}

// drawnBy draws content in a font whose letters are half as wide as high.
func drawnBy(content string) *drawing {
	plain := &font{scale: 0.001, width: 500}
	for i := range plain.simple {
		plain.simple[i] = string(rune(i))
	}
	d := &drawing{state: state{ctm: identity, scale: 1, font: plain, size: 1}, fonts: map[string]*font{}, text: identity, line: identity}
	d.draw([]byte(content))
	return d
}

// TestRuledTables checks that cells of a table are between its rules, in whatever order
// they are drawn.
func TestRuledTables(t *testing.T) {
	at := func(x, y int, words ...string) (content string) {
		for i, s := range words {
			content += fmt.Sprintf("BT 10 0 0 10 %d %d Tm (%s) Tj ET\n", x, y-12*i, s)
		}
		return content
	}
	rules := "50 600 1 100 re f 150 600 1 100 re f 400 600 1 100 re f 50 700 351 1 re f 50 650 351 1 re f 50 600 m 400 600 l S\n"
	twoRows := at(160, 690, "No surgery.", "Consent.") + at(60, 675, "Criteria") + at(160, 640, "At week 12.") + at(160, 620, "Off duty.") +
		at(60, 640, "Endpoints")
	tests := []struct {
		name, content string
		want          []string
	}{
		{"labels and values", at(50, 750, "Protocol") + rules + twoRows + at(50, 550, "End"),
			[]string{"Protocol", "Criteria | No surgery. Consent.", "Endpoints | At week 12. Off duty.", "End"}},
		{"a cell that spans rows", "50 600 300 100 re S 150 600 m 150 700 l S 150 650 m 350 650 l S\n" +
			at(60, 680, "Screening") + at(160, 680, "Consent") + at(160, 620, "Blood"), []string{"Screening | Consent", "Screening | Blood"}},
		{"a cell that spans columns", "50 600 300 100 re S 150 600 m 150 650 l S 50 650 m 350 650 l S\n" +
			at(60, 680, "Crew of the boat") + at(60, 620, "Skipper") + at(160, 620, "Ann"), []string{"Crew of the boat", "Skipper | Ann"}},
		{"rules through words", "50 600 300 100 re S 82 600 m 82 700 l S\n" + at(60, 650, "Underlined words"), []string{"Underlined words"}},
		{"a path that is not drawn", "50 600 300 100 re 150 600 m 150 700 l n\n" + at(60, 680, "One") + at(160, 680, "Two", "Three"),
			[]string{"One | Two Three"}},
	}
	for _, tt := range tests {
		d := drawnBy(tt.content)
		got, _ := lines(d.glyphs, d.path.rules)
		if !slices.Equal(texts(got), tt.want) {
			t.Errorf("%s: rows = %q", tt.name, texts(got))
		}
	}
	d := drawnBy("50 600 300 100 re S 150 600 m 150 700 l S 250 600 m 250 680 l S 150 680 m 350 680 l S 50 650 m 350 650 l S\n" +
		at(60, 690, "Item") + at(160, 690, "Price") + at(160, 660, "Day") + at(260, 660, "Week") + at(60, 620, "Kayak") + at(160, 620, "15") +
		at(260, 620, "70"))
	for i := range d.glyphs {
		d.glyphs[i].Bold = d.glyphs[i].Y > 650
	}
	got, _ := lines(d.glyphs, d.path.rules)
	if want := []string{"Item: Kayak | Price Day: 15 | Price Week: 70"}; !slices.Equal(texts(got), want) {
		t.Errorf("rows = %q, want %q", texts(got), want)
	}
	// Column names also apply to rows below a row that spans all columns.
	d = drawnBy("50 600 300 100 re S 200 600 m 200 650 l S 200 675 m 200 700 l S " +
		"50 625 m 350 625 l S 50 650 m 350 650 l S 50 675 m 350 675 l S\n" +
		at(60, 682, "Item") + at(210, 682, "Price") + at(60, 657, "Inner harbour") + at(60, 632, "Berth") + at(210, 632, "12") +
		at(60, 607, "Power") + at(210, 607, "3"))
	for i := range d.glyphs {
		d.glyphs[i].Bold = d.glyphs[i].Y > 680
	}
	got, _ = lines(d.glyphs, d.path.rules)
	if got := strings.Join(texts(got), " / "); got != "Inner harbour / Item: Berth | Price: 12 / Item: Power | Price: 3" {
		t.Errorf("got %q", got)
	}
}

// TestNamesOfRuledTables checks that the cells of a ruled table are in its columns, even
// next to empty ones, whether its names are in bold or not. Labels and values in four
// columns have no names.
func TestNamesOfRuledTables(t *testing.T) {
	for _, tt := range []struct{ table, rules, want string }{
		{"Boat,Crew,Rate/Gull,2,12/Tern,,15", "", "Boat: Gull | Crew: 2 | Rate: 12 / Boat: Tern | Rate: 15"},
		{",2023,2024/Rent,12,13/Fuel,,7", "", "Rent | 2023: 12 | 2024: 13 / Fuel | 2024: 7"},
		{"Gull,2,12/Tern,,15/,3,18", "", "Gull | 2 | 12 / Tern | – | 15 / – | 3 | 18"},
		{"Name,Ann,Port,Velmere/Boat,Gull,Length,9 m/Sail,,Crew,2", "",
			"Name | Ann | Port | Velmere / Boat | Gull | Length | 9 m / Sail | – | Crew | 2"},
		{"Owner,Bo Lind/Boat,Gull/Berth,12", "", "Owner | Bo Lind / Boat | Gull / Berth | 12"},
		{"Boat,Crew,Rate/Gull,2,12/Tern,,15", "top", "Boat: Gull | Crew: 2 | Rate: 12 / Boat: Tern | Rate: 15"},
	} {
		rows := strings.Split(tt.table, "/")
		columns := 1 + strings.Count(rows[0], ",")
		content := fmt.Sprintf("50 %d %d %d re S\n", 700-20*len(rows), 100*columns, 20*len(rows))
		for i, row := range rows {
			y := 700 - 20*(i+1)
			content += fmt.Sprintf("50 %d m %d %d l S\n", y, 50+100*columns, y)
			for j, text := range strings.Split(row, ",") {
				content += fmt.Sprintf("BT 10 0 0 10 %d %d Tm (%s) Tj ET\n", 55+100*j, y+5, text)
				if j > 0 && (i == 0 || tt.rules == "") {
					content += fmt.Sprintf("%d %d m %d %d l S\n", 50+100*j, y, 50+100*j, y+20)
				}
			}
		}
		d := drawnBy(content)
		got, _ := lines(d.glyphs, d.path.rules)
		if got := strings.Join(texts(got), " / "); got != tt.want {
			t.Errorf("%s: got %q", tt.table, got)
		}
	}
}

// TestActualText checks that the actual text of a file is read instead of the drawn text if
// it is on one line.
func TestActualText(t *testing.T) {
	for content, want := range map[string]string{
		"/Span <</ActualText <FEFF05D105BC>>> BDC (/) Tj (0) Tj EMC (x) Tj": "בּx",
		"/Span <</ActualText (ab)>> BDC (c) Tj EMC":                         "c",
		"EMC /Span <</ActualText <FEFF0061>>> BDC EMC (c) Tj":               "c",
	} {
		got, _ := lines(drawnBy("BT 10 0 0 10 50 700 Tm "+content).glyphs, nil)
		if len(got) != 1 || got[0].text != want {
			t.Errorf("%s: got %q", content, texts(got))
		}
	}
}

// TestMarksBeforeLetters checks that in a line drawn from left to right, a mark is drawn
// before its letter.
func TestMarksBeforeLetters(t *testing.T) {
	var glyphs []glyph
	for _, g := range []glyph{{Text: "ى", X0: 10, X1: 20}, {Text: "ج", X0: 20, X1: 27}, {Text: "ر", X0: 27, X1: 34},
		{Text: "\u064f", X0: 33, X1: 33}, {Text: "ي", X0: 34, X1: 38}} {
		g.Y, g.Size = 700, 10
		glyphs = append(glyphs, g)
	}
	if got, _ := lines(glyphs, nil); len(got) != 1 || got[0].text != "يُرجى" {
		t.Errorf("got %q", texts(got))
	}
}

// TestStandardWidths checks that the letters of the standard fonts have the widths of their
// style.
func TestStandardWidths(t *testing.T) {
	for name, want := range map[string]float64{
		"Times-Roman": 889, "Times-Bold": 944, "Times-Italic": 833, "Times-BoldItalic": 889, "Helvetica-Oblique": 833,
		"Arial-Bold": 833, "Courier": 600,
	} {
		f := &font{widths: map[int]float64{}}
		f.readWidths(pdf.Value{}, name, pdf.Value{})
		if got := cmp.Or(f.widths['M'], f.width); got != want {
			t.Errorf("%s: width of M = %v, want %v", name, got, want)
		}
	}
	f := &font{widths: map[int]float64{}}
	if f.readWidths(pdf.Value{}, "Helvetica-Bold", pdf.Value{}); f.widths['a'] != 556 || f.widths['b'] != 611 {
		t.Errorf("widths of a and b = %v and %v", f.widths['a'], f.widths['b'])
	}
}

// FuzzLayout checks that no content makes the layout panic.
func FuzzLayout(f *testing.F) {
	f.Add([]byte("BT 10 0 0 10 50 700 Tm (One) Tj 200 0 Td (Two) Tj 0 -1.2 TD (-) ' ET q 0 1 -1 0 5 5 cm (x) Tj"))
	f.Fuzz(func(t *testing.T, src []byte) {
		d := drawnBy(string(src))
		page, _ := lines(d.glyphs, d.path.rules)
		pages := [][]line{page}
		dropRunning(pages)
		body := bodySize(pages)
		p := paragraphs{body: body, levels: headingSizes(pages, body), words: hyphenatedWords(pages)}
		for _, b := range p.blocks(pages[0]) {
			if strings.TrimSpace(b.Text) == "" {
				t.Fatal("empty block")
			}
		}
	})
}

// typeset returns the glyphs of a line as it is displayed, from left to right, with marks on the
// letter before them.
func typeset(seen string, y float64) (glyphs []glyph) {
	const width = 6
	x := 100.0
	for _, r := range seen {
		g := glyph{Text: string(r), X0: x, X1: x + width, Y: y, Size: 10}
		switch {
		case isMark(g.Text):
			g.X0, g.X1 = x-width/2, x-width/2
		case r == ' ':
			x += width
			continue // other programs move the pen instead
		default:
			x += width
		}
		glyphs = append(glyphs, g)
	}
	return glyphs
}

// TestReadingOrder checks that the drawing order of a line's glyphs does not matter if one
// of them is right-to-left.
func TestReadingOrder(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/order.txt", "reading order") {
		name, seen, want := row[0], row[1], row[2]
		t.Run(name, func(t *testing.T) {
			glyphs := typeset(seen, 700)
			random := rand.New(rand.NewPCG(1, 2))
			for range 20 {
				got, _ := lines(slices.Clone(glyphs), nil)
				if len(got) != 1 || got[0].text != want {
					t.Fatalf("%+v\nwant %q", got, want)
				}
				if want == seen {
					return // lines without right-to-left letters are read in drawing order
				}
				random.Shuffle(len(glyphs), func(i, j int) { glyphs[i], glyphs[j] = glyphs[j], glyphs[i] })
			}
		})
	}
}

// TestColumnsFromRightToLeft checks that the columns and cells of a right-to-left page
// begin on the right.
func TestColumnsFromRightToLeft(t *testing.T) {
	right, left := typeset("ריחמ", 700), typeset("הריס", 700)
	for i := range left {
		left[i].X0, left[i].X1 = left[i].X0+200, left[i].X1+200
	}
	got, _ := lines(append(right, left...), nil)
	if len(got) != 1 || got[0].text != "סירה | מחיר" {
		t.Errorf("lines = %+v, want one, with the right cell first", got)
	}

	var narrow []glyph // letters are drawn from left to right, cells and words from right to left
	draw := func(x, y float64, seen string) {
		for i, r := range []rune(seen) {
			x0 := x + 5*float64(i)
			narrow = append(narrow, glyph{Text: string(r), X0: x0, X1: x0 + 5, Y: y, Size: 10, Begins: i == 0, Bold: y == 700})
		}
	}
	draw(290, 700, "םש")
	draw(231, 700, "ריחמ")
	draw(255, 686, "הנטק הריס")
	draw(236, 686, "120")
	draw(290, 640, "-ל")
	draw(280, 640, "17")
	got, _ = lines(narrow, nil)
	if want := []string{"שם: סירה קטנה | מחיר: 120", "ל-17"}; !slices.Equal(texts(got), want) {
		t.Errorf("lines = %q, want %q", texts(got), want)
	}
}

// TestLinesOnPageFromRightToLeft checks that on a right-to-left page, lines in Latin
// letters are read from left to right, and that a space covered by a letter splits no word.
func TestLinesOnPageFromRightToLeft(t *testing.T) {
	glyphs := slices.Concat(typeset("ףסונ עדימ שיש בל ומיש תחנה ןמז לכב", 700), typeset("version 2.5, again", 680), typeset("דנכیم", 660))
	space := glyphs[len(glyphs)-2]
	space.Text = " "
	got, _ := lines(append(glyphs, space), nil)
	want := []string{"בכל זמן הנחת שימו לב שיש מידע נוסף", "version 2.5, again", "\u0645\u06cc\u200cכנד"}
	if got := texts(got); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLabelsAboveValues checks that a label above its value is not a heading, even if it is
// small or bold. Columns of such labels are read one after the other, each under its
// heading.
func TestLabelsAboveValues(t *testing.T) {
	for _, c := range layouts(t, "labels") {
		pages := [][]line{orderPieces(c.page, 0)}
		p := paragraphs{body: bodySize(pages), levels: headingSizes(pages, bodySize(pages))}
		p.levels[18] = 1
		var got []string
		for _, b := range p.blocks(pages[0]) {
			got = append(got, strings.TrimSpace(strings.Repeat("#", b.Heading)+" "+b.Text))
		}
		if got := strings.Join(got, " / "); got != c.want {
			t.Errorf("%s: got %q", c.name, got)
		}
	}
}

const table = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n" +
	"1\t1\t0\t0\t0\t0\t0\t0\t1000\t1400\t-1\t\n" +
	"5\t1\t1\t1\t1\t1\t100\t100\t80\t20\t96.5\tBerth\n" +
	"5\t1\t1\t1\t1\t2\t190\t104\t70\t22\t91\trates\n" +
	"5\t1\t1\t1\t2\t1\t100\t140\t90\t20\t12\t~~~~\n" +
	"5\t1\t1\t1\t2\t2\t200\t140\t90\t20\t88\tValid\n" +
	"5\t1\t1\t1\t2\t3\tx\t140\t90\t20\t88\tbroken\n"

func TestWords(t *testing.T) {
	glyphs := tesseractWords([]byte(table), 72)
	var got []string
	for _, g := range glyphs {
		got = append(got, g.Text)
	}
	if !slices.Equal(got, []string{"Berth", " ", "rates", "Valid"}) {
		t.Fatalf("words = %q, want three words and a blank", got)
	}
	// The words of a line have the same baseline.
	if a, b := glyphs[0], glyphs[2]; a.Y != -126 || a.Y != b.Y || a.Size != 26 || b.Size != 26 || !a.Begins || b.Begins {
		t.Errorf("words of a line = %+v, %+v; want the same baseline and size, and that only the first begins a line", a, b)
	}
}

func FuzzWords(f *testing.F) {
	f.Add([]byte(table))
	f.Fuzz(func(t *testing.T, table []byte) {
		for _, g := range tesseractWords(table, 300) {
			if !g.isValid() {
				t.Fatalf("invalid glyph %+v", g)
			}
		}
	})
}

// TestGridsKeepWords checks that no word of a grid is lost, wherever its cells are, and
// that only column names are repeated.
func TestGridsKeepWords(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		var in []line
		y := 700.0
		for range 1 + random.IntN(6) {
			x, bold := 50+20*float64(random.IntN(5)), random.IntN(3) == 0
			for range 1 + random.IntN(5) {
				l := text(x, y-float64(random.IntN(2)*5), fmt.Sprintf("w%d%s", len(in), strings.Repeat("x", random.IntN(12))))
				l.bold, l.drawn, l.last = bold, len(in), len(in)
				in, x = append(in, l), l.x1+5*float64(1+random.IntN(12))
			}
			y -= 11 + 3*float64(random.IntN(6))
		}
		count := map[string]int{}
		got := texts(orderPieces(slices.Clone(in), 0))
		for _, word := range strings.FieldsFunc(strings.Join(got, " "), func(r rune) bool { return strings.ContainsRune(" |:;", r) }) {
			count[word]++
		}
		for _, l := range in {
			if n := count[l.text]; n == 0 || n > 1 && !l.bold {
				t.Fatalf("%q occurs %d times in\n%s\nof %q", l.text, n, strings.Join(got, "\n"), texts(in))
			}
		}
	}
}
