package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// What a still of the terminal is drawn by: columns, and pixels.
const (
	stillColumns = 108
	stillAdvance = 8.4 // of a letter of a typeface of one width, at a size of 14
	stillLeading = 21
	stillMargin  = 24
	stillBar     = 40 // the top of the window
)

// A palette is what a theme paints a window in; the colours are those of the page.
type palette struct{ paper, bar, ink, soft, line, accent string }

// The stills of the terminal in the README show its console block, which
// TestPages holds against what the program prints: no word more or less.
// 'go test ./cmd/ibid -run TestStills -update' draws them anew.
func TestStills(t *testing.T) {
	var session string
	for _, b := range blocksOf(t, "README.md") {
		if b.kind == "console" {
			session = b.text
			break
		}
	}
	if !strings.HasPrefix(session, "$ ibid ask ") {
		t.Fatalf("the first console block of the README is no question: %q", session)
	}
	for theme, colours := range map[string]palette{
		"light": {"#ffffff", "#f2efe8", "#1f1e1b", "#5f5c55", "#d8d3c7", "#0f6b5c"},
		"dark":  {"#1f211e", "#2a2d28", "#e9e6df", "#a5a197", "#3d403a", "#74cdb9"},
	} {
		name := filepath.Join(moduleRoot(t), "web", "pictures", "terminal-"+theme+".svg")
		drawn := drawStill(session, colours)
		if *update {
			if err := os.WriteFile(name, []byte(drawn), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if string(kept) != drawn {
			t.Errorf("%s is not what the README shows: draw it anew with web/pictures/make", name)
		}
		if got, want := strings.Fields(wordsOfStill(t, kept)), strings.Fields(session); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s shows %q, and not %q", name, got, want)
		}
	}
}

// drawStill draws a window with a session in it. A line that is longer than the
// window goes on below, at the end of a word.
func drawStill(session string, colours palette) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSuffix(session, "\n"), "\n") {
		if strings.HasPrefix(line, "$ ") && len(lines) > 0 {
			lines = append(lines, "") // between two commands
		}
		lines = append(lines, folded(line, stillColumns)...)
	}
	width := int(math.Ceil(stillColumns*stillAdvance)) + 2*stillMargin
	height := stillBar + len(lines)*stillLeading + stillMargin + stillMargin/2
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect x=".5" y=".5" width="%d" height="%d" rx="10" fill="%s" stroke="%s"/>`+"\n", width-1, height-1, colours.paper, colours.line)
	fmt.Fprintf(&b, `<path d="M1 %d V10.5 A9.5 9.5 0 0 1 10.5 1 H%.1f A9.5 9.5 0 0 1 %d 10.5 V%[1]d Z" fill="%[4]s"/>`+"\n", stillBar-6, float64(width)-10.5, width-1, colours.bar)
	for i := range 3 {
		fmt.Fprintf(&b, `<circle cx="%d" cy="%d" r="5.5" fill="%s"/>`+"\n", stillMargin-2+20*i, (stillBar-6)/2, colours.line)
	}
	fmt.Fprintf(&b, `<g font-family="ui-monospace, SFMono-Regular, 'SF Mono', Menlo, 'Cascadia Mono', Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace" font-size="14" fill="%s" style="white-space:pre">`+"\n", colours.ink)
	for i, line := range lines {
		words := strings.TrimLeft(line, " ")
		if words == "" {
			continue
		}
		x := float64(stillMargin) + stillAdvance*float64(len(line)-len(words))
		// The length holds the columns where the typeface is a little wider or narrower.
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" textLength="%.1f" xml:space="preserve">`, x, stillBar+stillMargin/2+(i+1)*stillLeading-6, stillAdvance*float64(utf8.RuneCountInString(words)))
		if command, is := strings.CutPrefix(line, "$ "); is {
			fmt.Fprintf(&b, `<tspan fill="%s">$</tspan> <tspan font-weight="bold" fill="%s">%s</tspan>`, colours.soft, colours.accent, escapedXML(command))
		} else {
			b.WriteString(escapedXML(words))
		}
		b.WriteString("</text>\n")
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// folded breaks a line where words end, into pieces of at most so many columns.
func folded(line string, columns int) (pieces []string) {
	for utf8.RuneCountInString(line) > columns {
		upto := len(string([]rune(line)[:columns+1]))
		space := strings.LastIndexByte(line[:upto], ' ')
		if strings.TrimSpace(line[:max(space, 0)]) == "" {
			space = len(string([]rune(line)[:columns])) // one long word
		}
		pieces = append(pieces, strings.TrimRight(line[:space], " "))
		line = strings.TrimPrefix(line[space:], " ")
	}
	return append(pieces, line)
}

func escapedXML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// wordsOfStill is what stands in a picture, line by line.
func wordsOfStill(t *testing.T, svg []byte) string {
	t.Helper()
	var b strings.Builder
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if words, is := token.(xml.CharData); is {
			b.Write(words)
		}
	}
}
