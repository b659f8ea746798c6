package pdf

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"ibid/ingest/charset"
)

// ScanDPI is the resolution of pages drawn for tesseract in dots per inch.
const ScanDPI = 300

// Options configure [Read].
type Options struct {
	// Recognised maps page numbers, from 1, to tesseract's tables, which are read instead of the
	// pages.
	Recognised map[int][]byte
	// Late, if set, reports whether the deadline has passed. The next page then fails and is the
	// last.
	Late func() bool
}

// A drawnPage is the content of a page in drawing order.
type drawnPage struct {
	Glyphs []glyph
	Rules  []rule // straight lines
	// Picture reports whether the page has a picture that may contain text, or letters of unknown
	// text; Ink whether it has any drawing.
	Picture, Ink bool
	// Unknown is the number of characters without text in their fonts.
	Unknown int
	// Err is the reason why the page was not read completely.
	Err error
}

// A glyph is a piece of text in a frame rotated so that its line runs to the right. Y grows
// upwards. Lengths are in points.
type glyph struct {
	Text   string
	X0, X1 float64
	Y      float64 // of the baseline
	Size   float64 // height of the font
	Turn   int     // quarter turns of the line, 0 to 3
	Bold   bool
	Begins bool // the pen was moved before it
}

// turnPoint converts a point on the page to the frame of a line with this number of quarter turns.
func turnPoint(turn int, x, y float64) (float64, float64) {
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

// isValid reports whether a glyph has a valid position and size.
func (g glyph) isValid() bool {
	for _, n := range []float64{g.X0, g.X1, g.Y, g.Size} {
		if math.IsNaN(n) || math.Abs(n) > 1e6 {
			return false
		}
	}
	return g.Size >= 0.5
}

// dropUndecoded returns the page without its text if its fonts don't map glyphs to letters. The
// page is then read as a picture.
func (page drawnPage) dropUndecoded(rebuilt bool) drawnPage {
	var text strings.Builder
	var last glyph
	for _, g := range page.Glyphs {
		// Many files have no spaces, only gaps between words.
		if g.Begins || math.Abs(g.Y-last.Y) > sameLine*g.Size || g.X0-last.X1 > wordGap*g.Size {
			text.WriteByte(' ')
		}
		text.WriteString(g.Text)
		last = g
	}
	if page.Unknown > len(page.Glyphs) || charset.IsGarbled(text.String()) {
		page.Glyphs, page.Picture = nil, true
		if rebuilt {
			page.Err = cmp.Or(page.Err, errNoFonts)
		}
	}
	return page
}

var errNoFonts = errors.New("it is damaged or cut off, and the fonts of its text are missing")

// errLate is the error of a page after the deadline.
var errLate = errors.New("reading it takes too long: split it to read the remaining pages")

// leastPicture is the smallest area, in square points, of a picture that may contain the text of a
// page: two inches by two.
const leastPicture = 144 * 144

// layOut fills in the pages of a file: it arranges the drawn content as lines, paragraphs, headings
// and tables. The error is a [*NoTextError] if no page has text.
func (file *File) layOut(pages iter.Seq[drawnPage], o Options) error {
	var all, bare [][]line // bare omits line numbers
	glyphs, unknown, numbered, ink := 0, 0, 0, false
	var damage error // the first
	for p := range pages {
		if table, ok := o.Recognised[len(all)+1]; ok {
			p = drawnPage{Glyphs: tesseractWords(table, ScanDPI), Err: p.Err}
		}
		late := o.Late != nil && o.Late()
		if late {
			p = drawnPage{Err: errLate}
		}
		if p.Err != nil {
			file.Damaged, damage = append(file.Damaged, len(all)+1), cmp.Or(damage, p.Err)
			var f filterError
			if errors.As(p.Err, &f) && !slices.Contains(file.Unsupported, string(f)) {
				file.Unsupported = append(file.Unsupported, string(f))
			}
		}
		if len(p.Glyphs) == 0 && p.Picture {
			file.Scanned = append(file.Scanned, len(all)+1)
		}
		glyphs, ink = glyphs+len(p.Glyphs), ink || p.Ink
		for _, g := range p.Glyphs {
			if strings.ContainsRune(g.Text, '\ufffd') {
				unknown++
			}
		}
		page, without := lines(p.Glyphs, p.Rules)
		all, bare = append(all, page), append(bare, without)
		if without != nil {
			numbered++
		}
		if late {
			break
		}
	}
	if glyphs == 0 || unknown*2 > glyphs {
		if damage != nil {
			return fmt.Errorf("%d of its %d pages cannot be read: %w", len(file.Damaged), len(all), damage)
		}
		return &NoTextError{Pages: len(all), Blank: !ink}
	}
	if numbered >= 3 && 2*numbered >= len(all) {
		for i, page := range bare {
			if page != nil {
				all[i] = page
			}
		}
	}
	dropRunning(all)
	body := bodySize(all)
	p := paragraphs{body: body, levels: headingSizes(all, body), words: hyphenatedWords(all)}
	for _, page := range all {
		file.Pages = append(file.Pages, Page{Blocks: p.blocks(page)})
	}
	return nil
}
