// Package poppler parses the output of pdftotext, a program of the Poppler
// project. It does not run it.
package poppler

import (
	"bytes"
	"errors"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"ibid/ingest/pdf"
)

// Arguments returns the arguments with which pdftotext writes what [Parse]
// reads. The file name and "-" follow them.
func Arguments() []string { return []string{"-q", "-enc", "UTF-8", "-bbox-layout"} }

// maxWords limits the words of a page: more is drawing, or an attack.
const maxWords = 100_000

// Parse parses the output of pdftotext -bbox-layout. Pages are parsed while
// the source's sequence is iterated.
func Parse(out []byte) (*pdf.Source, error) {
	head, body, ok := bytes.Cut(out, []byte("<doc>"))
	if !ok {
		return nil, errors.New("pdftotext wrote no document")
	}
	s := &pdf.Source{Title: between(head, "<title>", "</title>"), Author: meta(head, "Author")}
	if date := meta(head, "CreationDate"); len(date) >= len("2006-01-02") {
		s.Date = date[:len("2006-01-02")]
	}
	s.Pages = func(yield func(pdf.Drawn) bool) {
		for {
			_, rest, ok := bytes.Cut(body, []byte("<page "))
			if !ok {
				return
			}
			page, after, whole := bytes.Cut(rest, []byte("</page>"))
			// There may be pictures on it, which pdftotext does not report.
			d := pdf.Drawn{Glyphs: words(page), Picture: true}
			if !whole {
				d.Err = errors.New("pdftotext did not finish the page")
			}
			if body = after; !yield(d) {
				return
			}
		}
	}
	return s, nil
}

func between(s []byte, start, end string) string {
	_, rest, _ := bytes.Cut(s, []byte(start))
	found, _, ok := bytes.Cut(rest, []byte(end))
	if !ok {
		return ""
	}
	return html.UnescapeString(string(found))
}

func meta(head []byte, name string) string {
	return between(head, `<meta name="`+name+`" content="`, `"/>`)
}

// words returns the words of a page, each followed by a space unless it is the
// last of its line.
func words(page []byte) []pdf.Glyph {
	var out []pdf.Glyph
	begins := true
	for line := range bytes.Lines(page) {
		line = bytes.TrimSpace(line)
		switch {
		case bytes.HasPrefix(line, []byte("<line ")):
			begins = true
		case bytes.HasPrefix(line, []byte("<word ")):
			g, ok := word(line)
			if !ok {
				continue
			}
			g.Begins = begins
			if n := len(out); n > 0 && !begins && out[n-1].Turn == g.Turn {
				space := out[n-1]
				space.Text, space.X0, space.Begins = " ", space.X1, false
				out = append(out, space)
			}
			if out, begins = append(out, g), false; len(out) >= 2*maxWords {
				return out
			}
		}
	}
	return out
}

// ascent is the share of a word's box above the base line. Poppler computes
// the box from the ascent and descent of the font.
const ascent = 0.8

func word(line []byte) (pdf.Glyph, bool) {
	tag, text, _ := bytes.Cut(line[len("<word "):], []byte(">"))
	text, _, ok := bytes.Cut(text, []byte("</word>"))
	if !ok {
		return pdf.Glyph{}, false
	}
	var box [4]float64 // xMin, yMin, xMax, yMax; y grows downwards
	for i, name := range []string{"xMin", "yMin", "xMax", "yMax"} {
		n, err := strconv.ParseFloat(between(tag, name+`="`, `"`), 64)
		if err != nil {
			return pdf.Glyph{}, false
		}
		box[i] = n
	}
	g := pdf.Glyph{Text: html.UnescapeString(string(text))}
	if strings.TrimSpace(g.Text) == "" {
		return pdf.Glyph{}, false
	}
	width, height := box[2]-box[0], box[3]-box[1]
	if height > 2*width && utf8.RuneCountInString(g.Text) >= 3 {
		// It runs up or down the page; Poppler does not say which.
		g.Turn = 1
		g.X0, g.X1, g.Y, g.Size = -box[3], -box[1], -box[0]-ascent*width, width
	} else {
		g.X0, g.X1, g.Y, g.Size = box[0], box[2], -box[1]-ascent*height, height
	}
	g.Size = math.Round(g.Size*10) / 10
	return g, g.Sound()
}
