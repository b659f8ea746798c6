package format

import (
	"regexp"
	"strings"
)

var (
	rstDirective = regexp.MustCompile(`^\.\. +(?:\|[^|]*\| +)?([\w:-]+)::\s*(.*)$`)
	rstItem      = regexp.MustCompile(`^[ \t]*([-*+•‣]|\d{1,3}[.)]|[a-z][.)]|#\.) +(.*)$`)
	rstField     = regexp.MustCompile(`^:([\w -]+):(\s.*)?$`)
	rstRole      = regexp.MustCompile(":[\\w:+.-]+:`[~!]?([^`<]*?)(?:\\s*<[^`>]*>)?`")
	rstLink      = regexp.MustCompile("`([^`<]+?)\\s*<[^`>]*>`__?")
	rstLiteral   = regexp.MustCompile("``([^`]+)``")
	rstNamed     = regexp.MustCompile("`([^`]+)`_{0,2}")
	rstStrong    = regexp.MustCompile(`(^|[\s(\["'])\*{1,2}([^\s*](?:[^*]*[^\s*])?)\*{1,2}`)
)

// rstCode are directives whose content is preformatted, rstDropped those without
// text.
var (
	rstCode    = set(`code code-block sourcecode parsed-literal console prompt math command-output`)
	rstDropped = set(`image toctree contents include raw index meta highlight default-role role sectnum literalinclude currentmodule`)
)

// RST reads reStructuredText as text with headings, in linear time: inline markup
// is removed, directives are replaced by their content, and tables are kept as
// written.
func RST(doc *Document, data []byte) error {
	src, err := sourceText(data)
	if err != nil {
		return err
	}
	r := rstReader{lineReader: newLineReader(doc, src, rstInline), levels: make(map[string]int)}
	r.read(r.next)
	return nil
}

type rstReader struct {
	lineReader
	levels  map[string]int // of headings, by the signs around them
	literal bool           // the last paragraph ended in "::"
}

// next reads a line, and those of the block that it begins.
func (r *rstReader) next(line string) {
	trimmed := strings.TrimSpace(line)
	if trimmed == "" {
		if n := len(r.paragraph); n > 0 && strings.HasSuffix(r.paragraph[n-1], "::") {
			r.literal = true
			if r.paragraph[n-1] = strings.TrimSuffix(strings.TrimSuffix(r.paragraph[n-1], ":"), " :"); r.paragraph[n-1] == ":" {
				r.paragraph[n-1] = ""
			}
		}
		r.flush()
		return
	}
	literal := r.literal
	r.literal = false
	if literal && leading(line) > 0 {
		r.at--
		text := r.indented(leading(line))
		r.b.Code(text)
		return
	}
	if r.title(line) {
		return
	}
	switch {
	case strings.HasPrefix(trimmed, ".. ") || trimmed == "..":
		r.explicit(trimmed, leading(line))
		return
	case isTableBorder(line):
		r.at--
		rows := r.until(func(line string) bool { return line == "" })
		r.b.Code(strings.Join(rows, "\n"))
		return
	case strings.HasPrefix(trimmed, "| "): // a line block
		r.begin(listItem{}, trimmed[2:])
		return
	}
	if m := rstItem.FindStringSubmatch(line); m != nil {
		marker := m[1]
		if !strings.ContainsAny(marker, "0123456789") {
			marker = "-"
		}
		r.begin(listItem{leading(line) / 2, marker}, m[2])
	} else if m := rstField.FindStringSubmatch(trimmed); m != nil {
		r.begin(listItem{}, m[1]+":"+m[2])
	} else {
		r.add(line)
	}
}

// title reads a heading with an underline, and maybe an overline, or a transition.
func (r *rstReader) title(line string) bool {
	signs, text, under := "", line, 1
	if over, ok := underline(line); ok {
		if isTableBorder(line) {
			return false
		}
		if c, ok := underline(r.line(r.at + 2)); !ok || c != over || !isHeadingOver(r.line(r.at+1), r.line(r.at+2)) {
			r.flush()
			return true
		}
		signs, text, under = string(over), r.line(r.at+1), 2
	} else if _, ok := underline(r.line(r.at + 1)); !ok || !isHeadingOver(line, r.line(r.at+1)) {
		return false
	}
	signs += r.line(r.at + under)[:1]
	if r.levels[signs] == 0 {
		r.levels[signs] = len(r.levels) + 1
	}
	r.heading(r.levels[signs], text, "")
	r.at += under
	return true
}

// explicit reads a directive, a footnote or a comment.
func (r *rstReader) explicit(line string, indent int) {
	r.flush()
	if m := rstDirective.FindStringSubmatch(line); m != nil {
		for rstField.MatchString(strings.TrimSpace(r.line(r.at + 1))) { // options
			r.at++
		}
		switch name := strings.ToLower(m[1]); {
		case rstDropped[name]:
			r.indented(indent + 1)
		case rstCode[name]:
			text := r.indented(indent + 1)
			r.b.Code(text)
		case name != "figure" && m[2] != "":
			r.add(m[2])
		}
	} else if strings.HasPrefix(line, ".. [") {
		r.add(line[len(".. "):])
	} else {
		r.indented(indent + 1) // a comment
	}
}

// rstInline removes the markup from text.
func rstInline(text string) string {
	text = oneLine(text)
	for _, pattern := range []*regexp.Regexp{rstRole, rstLink, rstLiteral, rstNamed} {
		text = pattern.ReplaceAllString(text, "$1")
	}
	return rstStrong.ReplaceAllString(text, "$1$2")
}

// isTableBorder reports whether a line is the border of a simple table
// ("=== ====") or of a grid ("+---+---+").
func isTableBorder(line string) bool {
	t := strings.TrimSpace(line)
	if len(t) < 5 {
		return false
	}
	if t[0] == '+' {
		return strings.Trim(t, "+-=") == "" && strings.ContainsAny(t, "-=")
	}
	return t[0] == '=' && strings.Trim(t, "= ") == "" && strings.Contains(t, " ")
}
