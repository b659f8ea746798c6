package format

import (
	"errors"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text keeps the lines of a text. Headings are underlined lines, and lines in capitals above
// indented text, as in manuals.
func Text(doc *Document, src string) error {
	if manualSource.MatchString(src) {
		return errors.New("it is the troff source of a manual page: convert it to text " +
			"('man -P cat ./FILE > FILE.txt') and ingest the result")
	}
	whole := Clean(withoutLeaders(src))
	doc.Text = strings.TrimLeft(whole, "\n")
	doc.Lines = []Line{{0, 1 + len(whole) - len(doc.Text)}}
	doc.Text = strings.TrimRight(doc.Text, "\n")
	if strings.TrimSpace(doc.Text) == "" {
		doc.Text = ""
	}
	levels := make(map[byte]int)
	titled := false // the first heading is underlined
	var above, previous string
	start, pos := 0, 0 // start of the previous and the current line
	for line := range strings.Lines(doc.Text) {
		bare := strings.TrimRight(line, "\n")
		c, ok := underline(bare)
		if ok = ok && isHeadingOver(previous, bare); !ok && strings.TrimSpace(above) == "" && isCapitalsOver(previous, bare) {
			c, ok = capitals, true
		}
		if ok {
			titled = titled || len(doc.Sections) == 0 && c != capitals
			if levels[c] == 0 {
				levels[c] = len(levels) + 1
			}
			if n := len(doc.Sections); n > 0 {
				doc.Sections[n-1].End = len(strings.TrimRight(doc.Text[:start], "\n"))
			}
			doc.Sections = append(doc.Sections, Section{Heading: strings.TrimSpace(previous), Level: levels[c], Start: start})
		}
		above, previous, start = previous, bare, pos
		pos += len(line)
	}
	if n := len(doc.Sections); n > 0 {
		doc.Sections[n-1].End = len(doc.Text)
		if titled && doc.Sections[0].Start == 0 {
			doc.Title = doc.Sections[0].Heading
			return nil
		}
	}
	// A short first line before a blank line is the title.
	first, rest, _ := strings.Cut(doc.Text, "\n")
	if strings.HasPrefix(rest, "\n") && len(first) <= 100 && !strings.ContainsAny(first, "|\t") && !strings.Contains(first, "   ") {
		if r, _ := utf8.DecodeLastRuneInString(first); r != '.' && r != ',' && r != ';' {
			doc.Title = strings.Trim(first, "#*=- ")
		}
	}
	return nil
}

// manualSource matches the troff source of a manual page: first a command or comment, then
// headings.
var manualSource = regexp.MustCompile(`(?s)\A\s*(?:[.']?\\"|[.'](?:TH|Dd|nr|de) ).*\n\.S[Hh] `)

// capitals is the sign of headings that are not underlined.
const capitals = 'A'

// isCapitalsOver reports whether a line is a heading in capitals above an indented line.
func isCapitalsOver(line, next string) bool {
	indented := (leadingSpace(next) >= 3 || strings.HasPrefix(next, "\t")) && strings.TrimSpace(next) != ""
	if line == "" || len(line) > 80 || leadingSpace(line) > 0 || !indented {
		return false
	}
	letters := 0
	for _, r := range line {
		if unicode.IsLower(r) || strings.ContainsRune("|\t.:;,=<>{}[]$", r) {
			return false
		}
		if unicode.IsUpper(r) {
			letters++
		}
	}
	return letters >= 3 && !strings.Contains(line, "   ")
}

// underline reports whether a line is an underline, and returns its sign.
func underline(line string) (byte, bool) {
	line = strings.TrimRight(line, " ")
	if len(line) < 3 || strings.IndexByte("=-~^\"'`#*+:.<>_", line[0]) < 0 || strings.Trim(line, line[:1]) != "" {
		return 0, false
	}
	return line[0], true
}

// isHeadingOver reports whether a line can be the heading above an underline.
func isHeadingOver(line, under string) bool {
	text := strings.TrimSpace(line)
	if text == "" || strings.Contains(line, "\t") || len(under) > 200 {
		return false
	}
	if _, ok := underline(text); ok {
		return false
	}
	width := 0
	letter := false
	for _, r := range text {
		width++
		if r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			width++
		}
		letter = letter || unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	return letter && width <= 120 && len(under) >= width-2 && leadingSpace(line) < 4
}

// unixLines ends the lines of a text with LF.
func unixLines(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// leadingSpace returns the number of bytes of white space at the start of a line.
func leadingSpace(s string) int { return len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace)) }

// set returns a set of the words in a text.
func set(words string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
