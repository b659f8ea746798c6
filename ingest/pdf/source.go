package pdf

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"
)

// A Source is what was drawn on the pages of a file, before it is layed out:
// what every way to read a file comes to. [Lay] makes a [File] of it.
type Source struct {
	Title, Author, Date string
	Outline             []Entry
	// Pages draws the pages, one at a time. It is for one use.
	Pages iter.Seq[Drawn]
	// Rebuilt is set when the file's own list of its objects is damaged.
	Rebuilt bool
	// Damaged is set when content of some page is broken, and which is not known.
	Damaged bool
}

// Drawn is what was drawn on one page, in the order in which it was drawn.
type Drawn struct {
	Glyphs []Glyph
	// Picture is set when there is a picture on the page that may hold text.
	Picture bool
	// Err says why the page was read in part or not at all.
	Err error
}

// An Entry is a bookmark: a title that leads to a page.
type Entry struct {
	Title string
	Level int // 1 is the outermost
	Page  int // counted from 1; 0 when it leads to none
}

// A Glyph is a piece of text that was drawn, in a frame turned so that its
// line runs to the right; Y grows upwards. Lengths are in points.
type Glyph struct {
	Text   string
	X0, X1 float64
	Y      float64 // of the base line
	Size   float64 // height of the font
	Turn   int     // quarter turns of the line, 0 to 3
	Bold   bool
	Begins bool // the pen was set down anew before it
}

// Turn gives the quarter turns of a line that runs in the direction (x, y).
func Turn(x, y float64) int { return int(math.Round(math.Atan2(y, x)/(math.Pi/2))+4) % 4 }

// Turned moves a place on the page into the frame of a line with these
// quarter turns.
func Turned(turn int, x, y float64) (float64, float64) {
	switch turn {
	case 1:
		return y, -x
	case 2:
		return -x, -y
	case 3:
		return -y, x
	}
	return x, y
}

// Sound reports whether a glyph stands at a place and has a size.
func (g Glyph) Sound() bool {
	for _, n := range []float64{g.X0, g.X1, g.Y, g.Size} {
		if math.IsNaN(n) || math.Abs(n) > 1e6 {
			return false
		}
	}
	return g.Size >= 0.5
}

// Until gives the source with an end to its pages: those that are drawn later
// are not there, with a reason.
func (s *Source) Until(end time.Time) *Source {
	timed, pages := *s, s.Pages
	timed.Pages = func(yield func(Drawn) bool) {
		for p := range pages {
			if time.Now().After(end) {
				yield(Drawn{Err: errLate})
				return
			}
			if !yield(p) {
				return
			}
		}
	}
	return &timed
}

// errLate is the reason of pages for which there was no time.
var errLate = errors.New("reading it takes too long: split it, and what is behind this page is read too")

// LeastPicture is the area in square points, two inches by two, from which
// pictures on a page may hold its text.
const LeastPicture = 144 * 144

// Lay puts what was drawn into lines, paragraphs, headings and tables. The
// error is a [*NoTextError] when there is nothing to read on any page.
func Lay(source *Source) (*File, error) {
	file := &File{Title: source.Title, Author: source.Author, Date: source.Date, Rebuilt: source.Rebuilt, Damaged: source.Damaged}
	var all [][]line
	glyphs, unknown := 0, 0
	var damage error // the first
	for p := range source.Pages {
		if p.Err != nil {
			file.Torn, damage = append(file.Torn, len(all)+1), cmp.Or(damage, p.Err)
			var f filterError
			if errors.As(p.Err, &f) && !slices.Contains(file.Unsupported, string(f)) {
				file.Unsupported = append(file.Unsupported, string(f))
			}
		}
		if len(p.Glyphs) == 0 && p.Picture {
			file.Scanned = append(file.Scanned, len(all)+1)
		}
		glyphs += len(p.Glyphs)
		for _, g := range p.Glyphs {
			if strings.ContainsRune(g.Text, '\ufffd') {
				unknown++
			}
		}
		all = append(all, lines(p.Glyphs))
	}
	if glyphs == 0 || unknown*2 > glyphs {
		if damage != nil {
			return nil, fmt.Errorf("%d of its %d pages cannot be read: %w", len(file.Torn), len(all), damage)
		}
		return nil, &NoTextError{Pages: len(all)}
	}
	dropRunning(all)
	markEntries(all, source.Outline)
	body := bodySize(all)
	p := paragraphs{body: body, levels: headingSizes(all, body), words: hyphenated(all)}
	for _, page := range all {
		file.Pages = append(file.Pages, Page{Blocks: p.blocks(page)})
	}
	return file, nil
}
