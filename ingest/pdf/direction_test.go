package pdf

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// typeset returns the glyphs of a line as they are seen, from left to right, marks
// on the letter before them.
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
			continue // writers of files move the pen instead
		default:
			x += width
		}
		glyphs = append(glyphs, g)
	}
	return glyphs
}

// The order in which the glyphs of a line are drawn does not matter where one of
// them is read from right to left.
func TestReadingOrder(t *testing.T) {
	tests := []struct{ name, seen, want string }{
		{"Hebrew", "רוגס למנה", "הנמל סגור"},
		{"numbers", ".םירטמ 15 ךרואב לבח", "חבל באורך 15 מטרים."},
		{"a time and a share", "12.5% דעו 9:30 העשב", "בשעה 9:30 ועד 12.5%"},
		{"Arabic digits", "رتم ۱۵ لوط", "طول ۱۵ متر"},
		{"an address", "הזה ספוטה תא office@example.com לא חולשל שי", "יש לשלוח אל office@example.com את הטופס הזה"},
		{"brackets", "(ןטק) הריס", "סירה (קטן)"},
		{"a mark", "احًابص", "صباحًا"},
		{"a lam-alef ligature", "لاوأ", "أوال"},
		{"in an English line", "the sign reads רוגס למנה today", "the sign reads הנמל סגור today"},
		{"numbers in an English line", "it says ךרואב 15 לבח there", "it says חבל 15 באורך there"},
		{"English", "nothing to turn", "nothing to turn"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			glyphs := typeset(tt.seen, 700)
			random := rand.New(rand.NewPCG(1, 2))
			for range 20 {
				got, _ := lines(slices.Clone(glyphs))
				if len(got) != 1 || got[0].text != tt.want {
					t.Fatalf("%+v\nwant %q", got, tt.want)
				}
				if tt.want == tt.seen {
					return // lines without such letters are read as they are drawn
				}
				random.Shuffle(len(glyphs), func(i, j int) { glyphs[i], glyphs[j] = glyphs[j], glyphs[i] })
			}
		})
	}
}

// The columns and cells of a page in such a script begin on the right.
func TestColumnsFromRightToLeft(t *testing.T) {
	right, left := typeset("ריחמ", 700), typeset("הריס", 700)
	for i := range left {
		left[i].X0, left[i].X1 = left[i].X0+200, left[i].X1+200
	}
	got, _ := lines(append(right, left...))
	if len(got) != 1 || got[0].text != "סירה | מחיר" {
		t.Errorf("%+v", got)
	}
}

// On such a page, lines in Latin letters are read from left to right, and a space that
// a letter covers parts no words.
func TestLinesOnPageFromRightToLeft(t *testing.T) {
	glyphs := slices.Concat(typeset("ףסונ עדימ שיש בל ומיש תחנה ןמז לכב", 700), typeset("version 2.5, again", 680), typeset("דנכیم", 660))
	space := glyphs[len(glyphs)-2]
	space.Text = " "
	got, _ := lines(append(glyphs, space))
	want := []string{"בכל זמן הנחת שימו לב שיש מידע נוסף", "version 2.5, again", "\u0645\u06cc\u200cכנד"}
	if got := texts(got); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
