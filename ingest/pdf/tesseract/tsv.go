// Package tesseract parses the output of tesseract, which recognises text in
// pictures. It does not run it.
package tesseract

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"ibid/ingest/pdf"
)

// Arguments returns the arguments with which tesseract reads a picture from
// standard input and writes what [Words] reads. languages are its language
// names joined by "+"; empty for its default.
func Arguments(languages string) []string {
	args := []string{"stdin", "stdout"}
	if languages != "" {
		args = append(args, "-l", languages)
	}
	return append(args, "--psm", "3", "-c", "tessedit_create_tsv=1")
}

const (
	// leastSure is the least confidence, out of 100, of a word that counts:
	// below it are mostly specks and rules.
	leastSure = 30
	maxWords  = 50_000 // of a page
)

// The columns of tesseract's table, and the level of its rows that are words.
const (
	columnLevel, columnBlock, columnParagraph, columnLine = 0, 2, 3, 4
	columnLeft, columnTop, columnWidth, columnHeight      = 6, 7, 8, 9
	columnConfidence, columnText, columns                 = 10, 11, 12
	levelWord                                             = "5"
)

// Words reads the table of a page or picture of dpi dots per inch. Lengths are in
// points.
func Words(table []byte, dpi float64) []pdf.Glyph {
	out := words(table)
	for i := range out {
		g := &out[i]
		for _, length := range []*float64{&g.X0, &g.X1, &g.Y, &g.Size} {
			*length *= 72 / dpi
		}
	}
	return out
}

// words returns the words of a page. Lengths are in pixels.
func words(table []byte) []pdf.Glyph {
	var out []pdf.Glyph
	line, from := "", 0 // index in out
	for row := range bytes.Lines(table) {
		cell := strings.Split(strings.TrimRight(string(row), "\r\n"), "\t")
		if len(cell) < columns || cell[columnLevel] != levelWord {
			continue
		}
		sure, err := strconv.ParseFloat(cell[columnConfidence], 64)
		if err != nil || sure < leastSure {
			continue
		}
		var box [4]float64
		for i, c := range []int{columnLeft, columnTop, columnWidth, columnHeight} {
			n, err := strconv.Atoi(cell[c])
			if err != nil {
				box[2] = 0
				break
			}
			box[i] = float64(n)
		}
		if box[2] <= 0 || strings.TrimSpace(cell[columnText]) == "" {
			continue
		}
		if now := strings.Join(cell[columnBlock:columnLine+1], "."); now != line {
			level(out[from:])
			line, from = now, len(out)
		} else if n := len(out); n > 0 {
			space := out[n-1]
			space.Text, space.X0, space.Begins = " ", space.X1, false
			out = append(out, space)
		}
		g := pdf.Glyph{Text: cell[columnText], X0: box[0], X1: box[0] + box[2], Y: -box[1] - box[3], Size: box[3], Begins: len(out) == from}
		if g.Sound() {
			out = append(out, g)
		}
		if len(out) >= 2*maxWords {
			break
		}
	}
	level(out[from:])
	return out
}

// level gives the words of a line the same base line and size, as a word's box
// is only as high as its letters.
func level(line []pdf.Glyph) {
	if len(line) == 0 {
		return
	}
	base, top := math.Inf(1), math.Inf(-1)
	for _, g := range line {
		base, top = min(base, g.Y), max(top, g.Y+g.Size)
	}
	size := math.Round(top - base)
	for i := range line {
		line[i].Y, line[i].Size = base, size
	}
}
