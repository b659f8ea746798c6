package pdf

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// TesseractArguments returns the arguments for tesseract to read a picture from standard input and
// write a table of its words. languages are tesseract's names joined by "+", or "" for its default.
func TesseractArguments(languages string) []string {
	args := []string{"stdin", "stdout"}
	if languages != "" {
		args = append(args, "-l", languages)
	}
	return append(args, "--psm", "3", "-c", "tessedit_create_tsv=1")
}

const (
	// leastSure is the least confidence of a word. Specks and rules have less.
	leastSure = 30
	maxWords  = 50_000 // per page
)

// Columns of tesseract's table, and the level of its rows that are words.
const (
	columnLevel, columnBlock, columnParagraph, columnLine = 0, 2, 3, 4
	columnLeft, columnTop, columnWidth, columnHeight      = 6, 7, 8, 9
	columnConfidence, columnText, columns                 = 10, 11, 12
	levelWord                                             = "5"
)

// tesseractWords reads tesseract's table of a picture of dpi dots per inch.
func tesseractWords(table []byte, dpi float64) (out []glyph) {
	scale := 72 / dpi
	line, from := "", 0 // index in out
	for row := range bytes.Lines(table) {
		cell := strings.Split(strings.TrimRight(string(row), "\r\n"), "\t")
		if len(cell) < columns || cell[columnLevel] != levelWord {
			continue
		}
		var n [columns]float64
		for i := range columnText {
			var err error
			if n[i], err = strconv.ParseFloat(cell[i], 64); err != nil {
				n[i] = math.NaN()
			}
		}
		x, y, height := n[columnLeft]*scale, n[columnTop]*scale, n[columnHeight]*scale
		g := glyph{Text: cell[columnText], X0: x, X1: x + n[columnWidth]*scale, Y: -y - height, Size: height}
		if !(n[columnConfidence] >= leastSure) || !g.isValid() || g.X1 <= g.X0 || isBlank(g.Text) {
			continue
		}
		if now := strings.Join(cell[columnBlock:columnLine+1], "."); now != line {
			levelWords(out[from:])
			line, from = now, len(out)
		} else if n := len(out); n > 0 {
			space := out[n-1]
			space.Text, space.X0, space.Begins = " ", space.X1, false
			out = append(out, space)
		}
		g.Begins = len(out) == from
		out = append(out, g)
		if len(out) >= 2*maxWords {
			break
		}
	}
	levelWords(out[from:])
	return out
}

// levelWords gives the words of a line one baseline and size, since a box is only as high as its
// letters.
func levelWords(line []glyph) {
	if len(line) == 0 {
		return
	}
	base, top := math.Inf(1), math.Inf(-1)
	for _, g := range line {
		base, top = min(base, g.Y), max(top, g.Y+g.Size)
	}
	for i := range line {
		line[i].Y, line[i].Size = base, top-base
	}
}
