package format

import (
	"regexp"
	"strings"
)

var (
	rstDirective = regexp.MustCompile(`^\.\. +(?:\|[^|]*\| +)?([\w:-]+)::\s*(.*)$`)
	rstTarget    = regexp.MustCompile(`^\.\. +_([^:]+):\s*(.*)$`)
	rstItem      = regexp.MustCompile(`^[ \t]*(?:[-*+•‣]|\d{1,3}[.)]|[a-z][.)]|#\.) `)
	rstField     = regexp.MustCompile(`^:([\w -]+):(\s.*)?$`)
	rstRole      = regexp.MustCompile(":[\\w:+.-]+:`([^`<]*?)(?:\\s*<[^`>]*>)?`")
	rstLink      = regexp.MustCompile("`([^`<]+?)\\s*<[^`>]*>`__?")
	rstLiteral   = regexp.MustCompile("``([^`]+)``")
	rstNamed     = regexp.MustCompile("`([^`]+)`_{0,2}")
	rstStrong    = regexp.MustCompile(`(^|[\s(\["'])\*{1,2}([^\s*](?:[^*]*[^\s*])?)\*{1,2}`)
)

// rstCode are directives whose content is preformatted.
var rstCode = map[string]bool{
	"code": true, "code-block": true, "sourcecode": true, "parsed-literal": true, "literalinclude": true,
	"highlight": true, "console": true, "prompt": true, "math": true, "command-output": true,
}

// rstDropped are directives without text.
var rstDropped = map[string]bool{
	"image": true, "toctree": true, "contents": true, "include": true, "raw": true, "index": true, "meta": true,
	"highlight": true, "default-role": true, "role": true, "sectnum": true, "literalinclude": true, "currentmodule": true,
}

// RST reads reStructuredText as text with headings, in linear time: inline markup
// is removed, directives are replaced by their content.
func RST(doc *Document, data []byte) error {
	src, err := sourceText(data)
	if err != nil {
		return err
	}
	s := rstScanner{lines: strings.Split(src, "\n"), levels: make(map[string]int), slugs: make(map[string]int)}
	for s.at < len(s.lines) {
		s.next()
	}
	s.b.into(doc)
	doc.titleFromHeading(anyLevel)
	return nil
}

type rstScanner struct {
	b       builder
	lines   []string
	at      int
	levels  map[string]int // of headings, by the signs around them
	slugs   map[string]int
	anchor  string // of a target right before
	inside  int    // directives around the lines, which then are not those of the file
	literal bool   // the last paragraph ended in "::"
}

func (s *rstScanner) line(i int) string {
	if i < 0 || i >= len(s.lines) {
		return ""
	}
	return strings.TrimRight(s.lines[i], " \t")
}

// next reads one block.
func (s *rstScanner) next() {
	line := s.line(s.at)
	if s.inside == 0 {
		s.b.line = s.at + 1
	}
	switch {
	case strings.TrimSpace(line) == "":
		s.at++
	case s.heading():
	case s.literal && leading(line) > 0:
		s.literal = false
		s.b.Code(dedent(s.indented(leading(line))))
	case strings.HasPrefix(strings.TrimSpace(line), ".."):
		s.explicit()
	case isTableBorder(line):
		s.table()
	default:
		s.paragraph()
	}
}

// heading reads a title with an underline, and maybe an overline.
func (s *rstScanner) heading() bool {
	over, isOver := underline(s.line(s.at))
	if isOver {
		c, ok := underline(s.line(s.at + 2))
		if !ok || c != over || !isHeadingOver(s.line(s.at+1), s.line(s.at+2)) {
			if !isTableBorder(s.line(s.at)) { // a transition
				s.at++
				return true
			}
			return false
		}
		s.addHeading(string([]byte{c, c}), s.line(s.at+1))
		s.at += 3
		return true
	}
	if c, ok := underline(s.line(s.at + 1)); ok && isHeadingOver(s.line(s.at), s.line(s.at+1)) {
		s.addHeading(string([]byte{c}), s.line(s.at))
		s.at += 2
		return true
	}
	return false
}

func (s *rstScanner) addHeading(signs, text string) {
	if s.levels[signs] == 0 {
		s.levels[signs] = len(s.levels) + 1
	}
	text = oneLine(Clean(rstInline(text)))
	anchor := s.anchor
	if anchor == "" {
		anchor = docutilsID(text)
	}
	s.b.Heading(s.levels[signs], text, anchor)
	s.anchor, s.literal = "", false
}

// docutilsID returns the id that docutils gives a section.
func docutilsID(text string) string {
	var out strings.Builder
	for _, r := range strings.ToLower(text) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			out.WriteRune(r)
		} else if out.Len() > 0 && !strings.HasSuffix(out.String(), "-") {
			out.WriteByte('-')
		}
	}
	return strings.Trim(out.String(), "-")
}

// explicit reads a directive, a target or a comment.
func (s *rstScanner) explicit() {
	line := strings.TrimSpace(s.line(s.at))
	indent := leading(s.line(s.at))
	s.at++
	if m := rstDirective.FindStringSubmatch(line); m != nil {
		name := strings.ToLower(m[1])
		content := s.indented(indent + 1)
		// Options precede the first blank line.
		for len(content) > 0 && rstField.MatchString(strings.TrimSpace(content[0])) {
			content = content[1:]
		}
		switch {
		case rstDropped[name]:
		case rstCode[name]:
			s.b.Code(dedent(content))
		case name == "figure":
			s.inner(content)
		default: // note, warning, tip, versionadded, table …
			if m[2] != "" {
				content = append([]string{m[2], ""}, strings.Split(dedent(content), "\n")...)
				s.inner(content)
			} else {
				s.inner(strings.Split(dedent(content), "\n"))
			}
		}
		return
	}
	if m := rstTarget.FindStringSubmatch(line); m != nil {
		if m[2] == "" {
			s.anchor = docutilsID(m[1])
		}
		return
	}
	if strings.HasPrefix(line, ".. [") { // a footnote or citation
		s.b.Paragraph(rstInline(oneLine(strings.TrimPrefix(line, ".. ") + " " + strings.Join(s.indented(indent+1), " "))))
		return
	}
	if line == ".." || strings.HasPrefix(line, ".. ") {
		s.indented(indent + 1) // a comment
		return
	}
	s.b.Paragraph(rstInline(line))
}

// inner reads the content of a directive.
func (s *rstScanner) inner(lines []string) {
	rest, at := s.lines, s.at
	s.lines, s.at = lines, 0
	s.inside++
	for s.at < len(s.lines) {
		s.next()
	}
	s.lines, s.at = rest, at
	s.inside--
}

// indented reads the next lines that are blank or indented by at least n, without
// the blank ones at the end.
func (s *rstScanner) indented(n int) []string {
	start, end := s.at, s.at
	for s.at < len(s.lines) {
		if l := s.line(s.at); l != "" {
			if leading(l) < n {
				break
			}
			end = s.at + 1
		}
		s.at++
	}
	return s.lines[start:end]
}

// dedent joins lines without their common indentation.
func dedent(lines []string) string {
	least := -1
	for _, l := range lines {
		if n := leading(l); strings.TrimSpace(l) != "" && (least < 0 || n < least) {
			least = n
		}
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		if strings.TrimSpace(l) != "" {
			out[i] = l[least:]
		}
	}
	return strings.Trim(strings.Join(out, "\n"), "\n")
}

// paragraph reads lines up to a blank one: a paragraph, or list items.
func (s *rstScanner) paragraph() {
	var words []string
	marker, depth := "", 0
	flush := func() {
		text := strings.Join(words, " ")
		words = words[:0]
		if t, ok := strings.CutSuffix(text, "::"); ok {
			s.literal = true
			if text = strings.TrimRight(t, " "); text != "" && text == t {
				text += ":"
			}
		}
		if marker != "" {
			s.b.Item(depth, marker, rstInline(text))
		} else {
			s.b.Paragraph(rstInline(text))
		}
		marker = ""
	}
	s.literal = false
	begin := s.at
	for ; s.at < len(s.lines); s.at++ {
		line := s.line(s.at)
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || s.at > begin && (isTableBorder(line) || strings.HasPrefix(trimmed, ".. ")) {
			break
		}
		if s.at > begin {
			if _, ok := underline(s.line(s.at + 1)); ok && isHeadingOver(line, s.line(s.at+1)) {
				break
			}
		}
		if strings.HasPrefix(trimmed, "| ") { // a line block
			flush()
			words = append(words, trimmed[2:])
			continue
		}
		if rstItem.MatchString(line) {
			flush()
			sign, rest, _ := strings.Cut(trimmed, " ")
			marker, depth = sign, leading(line)/2
			if !strings.ContainsAny(sign, "0123456789") {
				marker = "-"
			}
			words = append(words, strings.TrimSpace(rest))
			continue
		}
		if m := rstField.FindStringSubmatch(trimmed); m != nil {
			flush()
			words = append(words, m[1]+":"+m[2])
			continue
		}
		words = append(words, trimmed)
	}
	flush()
}

// rstInline removes the markup from text.
func rstInline(text string) string {
	text = rstRole.ReplaceAllStringFunc(text, func(m string) string {
		words := rstRole.FindStringSubmatch(m)[1]
		return strings.TrimLeft(words, "~!")
	})
	text = rstLink.ReplaceAllString(text, "$1")
	text = rstLiteral.ReplaceAllString(text, "$1")
	text = rstNamed.ReplaceAllString(text, "$1")
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

// table reads a simple or a grid table.
func (s *rstScanner) table() {
	border := s.line(s.at)
	grid := strings.TrimSpace(border)[0] == '+'
	columns := tableColumns(border, grid)
	var header, cells []string
	borders := 0
	flush := func(asHeader bool) {
		if len(cells) == 0 {
			return
		}
		for i := range cells {
			cells[i] = oneLine(Clean(rstInline(cells[i])))
		}
		if asHeader {
			header = cells
		} else {
			s.b.Row(header, cells)
		}
		cells = nil
	}
	for ; s.at < len(s.lines); s.at++ {
		line := s.line(s.at)
		if isTableBorder(line) {
			borders++
			flush(grid && strings.Contains(line, "=") || !grid && borders == 2 && s.rowsFollow())
			if !grid && (borders == 3 || borders == 2 && header == nil) {
				s.at++
				break
			}
			continue
		}
		if grid && !strings.HasPrefix(strings.TrimSpace(line), "|") {
			break
		}
		if line == "" {
			if !grid && !s.rowsFollow() {
				break
			}
			continue
		}
		row := make([]string, len(columns))
		for i, c := range columns {
			row[i] = cell(line, c, i == len(columns)-1, grid)
		}
		if !grid && row[0] != "" { // a new row, which an empty first column continues
			flush(false)
		}
		if cells == nil {
			cells = row
		} else {
			for i := range row {
				cells[i] += " " + row[i]
			}
		}
	}
	flush(false)
	s.b.last = kindNone
}

// rowsFollow reports whether another border follows before the table ends.
func (s *rstScanner) rowsFollow() bool {
	for i := s.at + 1; i < min(len(s.lines), s.at+1000); i++ {
		if isTableBorder(s.lines[i]) {
			return true
		}
		if s.line(i) == "" && s.line(i+1) == "" {
			return false
		}
	}
	return false
}

func tableColumns(border string, grid bool) []span {
	var columns []span
	sep := byte(' ')
	if grid {
		sep = '+'
	}
	start := -1
	for i := 0; i <= len(border); i++ {
		if i == len(border) || border[i] == sep || border[i] == ' ' {
			if start >= 0 {
				columns = append(columns, span{start, i})
			}
			start = -1
		} else if start < 0 {
			start = i
		}
	}
	return columns
}

// cell returns a column of a line. Columns are counted in characters.
func cell(line string, column span, last, grid bool) string {
	runes := []rune(line)
	if column.Start >= len(runes) {
		return ""
	}
	end := min(column.End, len(runes))
	if last && !grid {
		end = len(runes)
	}
	return strings.Trim(string(runes[column.Start:end]), " |")
}
