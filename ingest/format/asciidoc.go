package format

import (
	"regexp"
	"strings"
	"unicode"
)

var (
	adocHeading   = regexp.MustCompile(`^(={1,6}|#{1,6})[ \t]+(\S.*?)(?:[ \t]+=+)?$`)
	adocAttribute = regexp.MustCompile(`^:(!?[\w][\w-]*!?):(?:[ \t]+(.*))?$`)
	adocAnchor    = regexp.MustCompile(`^\[\[([^\],]+)(?:,[^\]]*)?\]\]$|^\[(?:[\w-]*)#([^\],.%]+)[^\]]*\]$`)
	adocList      = regexp.MustCompile(`^[ \t]*(\*{1,5}|-|\.{1,5}|\d{1,3}[.)]|[a-zA-Z][.)]|<(?:\d{1,3}|\.)>)[ \t]+(\S.*)$`)
	adocTerm      = regexp.MustCompile(`^[ \t]*(\S.*?)(?::{2,4}|;;)(?:[ \t]+(.*))?$`)
	adocDirective = regexp.MustCompile(`^(ifdef|ifndef|ifeval|endif|include|toc|image|video|audio)::([^\[]*)\[(.*)\][ \t]*$`)
	adocMacro     = regexp.MustCompile(`(?:link|xref|mailto|image|icon|kbd|btn|menu|footnote|footnoteref|stem|latexmath|asciimath|pass):([^\s\[\]]*)\[([^\]]*)\]`)
	adocURL       = regexp.MustCompile(`(https?://[^\s\[\]]+)\[([^\]]*)\]`)
	adocXref      = regexp.MustCompile(`<<([^<>,]+)(?:,\s*([^<>]+))?>>`)
	adocInline    = regexp.MustCompile(`\[\[[^\]]*\]\]|\[\.?[\w. -]*\]#|\(\(\([^()]*\)\)\)|[ \t]\+$`)
	adocMarks     = regexp.MustCompile("(^|[\\s(\\[\"'>—/-])(\\*{1,2}|_{1,2}|`{1,2}|#{1,2}|\\+{1,3})([^\\s*_`#+](?:[^*_`#+]*[^\\s*_`#+])?)(\\*{1,2}|_{1,2}|`{1,2}|#{1,2}|\\+{1,3})")
	adocReference = regexp.MustCompile(`\{([\w][\w-]*)\}`)
	adocColumns   = regexp.MustCompile(`cols=("[^"]*"|[^,\]]*)`)
	adocCells     = regexp.MustCompile(`(?:^|[ \t])(?:\d{1,3}\*|[.\d]{1,6}\+)?[<^>.]{0,3}[aehlmds]?\|`)
)

// adocBlocks are the lines that begin and end a block, and what is in it.
var adocBlocks = map[string]string{
	"----": "code", "....": "code", "```": "code", "////": "comment", "++++": "comment",
	"====": "open", "****": "open", "____": "open", "--": "open", "|===": "table", ",===": "csv", ":===": "csv", "!===": "table",
}

// AsciiDoc reads AsciiDoc as text with headings, in linear time: marks
// inside lines are taken off, attributes are metadata and put in where they are
// named, and no other file is included.
func AsciiDoc(doc *Document, data []byte) error {
	src, err := sourceText(data)
	if err != nil {
		return err
	}
	matter, rest := cutFrontMatter(src)
	readFrontMatter(doc, matter)
	r := adocReader{
		doc: doc, lines: strings.Split(rest, "\n"), attributes: make(map[string]string), slugs: make(map[string]int),
		room: len(src) + 1<<10, skipped: strings.Count(src[:len(src)-len(rest)], "\n"),
	}
	for r.at < len(r.lines) {
		r.next()
	}
	r.flush()
	r.b.into(doc)
	doc.titleFromHeading(1)
	return nil
}

type adocReader struct {
	b          builder
	doc        *Document
	lines      []string
	at         int
	skipped    int // lines of front matter
	attributes map[string]string
	room       int // bytes that attributes may still put in
	slugs      map[string]int
	anchor     string // given right before
	paragraph  []string
	began      int // index of the paragraph's first line
	item       listItem
	options    string // what a line in brackets says of the next block
	header     bool   // the title has been read, and what belongs to it may follow
}

// flush writes the paragraph or list item in hand.
func (r *adocReader) flush() {
	if len(r.paragraph) == 0 {
		return
	}
	text := r.inline(strings.Join(r.paragraph, "\n"))
	r.b.line = r.skipped + r.began + 1
	if r.item.marker != "" {
		r.b.Item(r.item.depth, r.item.marker, text)
	} else {
		r.b.Paragraph(text)
	}
	r.paragraph, r.item = r.paragraph[:0], listItem{}
}

func (r *adocReader) begin(item listItem, text string) {
	r.flush()
	r.item, r.began = item, r.at
	r.paragraph = append(r.paragraph, text)
}

// next reads the line in hand, and those of the block that it begins.
func (r *adocReader) next() {
	line := strings.TrimRight(r.lines[r.at], " \t")
	defer func() { r.at++ }()
	if r.header {
		r.header = r.headerLine(line)
		if r.header {
			return
		}
	}
	switch {
	case line == "":
		r.flush()
		return
	case strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "///"):
		return
	case line == "+" || line == "'''" || line == "<<<" || line == "---" || line == "***":
		r.flush()
		return
	}
	if kind, ok := blockOf(line); ok {
		r.block(line, kind)
		return
	}
	if len(line) < maxCodeLine {
		if r.structure(line) {
			return
		}
	}
	if len(r.paragraph) == 0 {
		r.began = r.at
		if line[0] == ' ' || line[0] == '\t' { // literal
			start := r.at
			for r.at+1 < len(r.lines) && strings.TrimSpace(r.lines[r.at+1]) != "" {
				r.at++
			}
			r.b.line = r.skipped + start + 1
			r.b.Code(strings.Join(r.lines[start:r.at+1], "\n"))
			return
		}
	}
	r.paragraph = append(r.paragraph, strings.TrimSpace(line))
}

// blockOf says what a line that delimits a block encloses.
func blockOf(line string) (kind string, ok bool) {
	if kind, ok := adocBlocks[line]; ok {
		return kind, true
	}
	if strings.HasPrefix(line, "```") && !strings.Contains(line[3:], "`") {
		return "code", true
	}
	if len(line) > 4 && strings.Trim(line, line[:1]) == "" {
		kind, ok = adocBlocks[line[:4]]
	}
	return kind, ok
}

// headerLine reads a line right under the title: author, revision, attributes.
func (r *adocReader) headerLine(line string) bool {
	switch {
	case line == "":
		return false
	case matchAt(adocAttribute, line, ":") != nil:
		r.structure(line)
		return true
	case strings.HasPrefix(line, "//"):
		return true
	case r.at > 0 && adocHeading.MatchString(strings.TrimRight(r.lines[r.at-1], " \t")):
		names, _, _ := strings.Cut(line, "<")
		r.doc.setMeta("author", strings.ReplaceAll(strings.TrimSpace(names), "_", " "))
		return true
	default: // v1.0, 2024-05-01: remark
		for part := range strings.FieldsFuncSeq(line, func(c rune) bool { return c == ',' || c == ':' }) {
			part = strings.TrimSpace(part)
			if strings.HasPrefix(part, "v") {
				r.doc.setMeta("version", part)
			} else if part != "" && unicode.IsDigit(rune(part[0])) {
				r.doc.setMeta("date", part)
			}
		}
		return true
	}
}

// structure reads a line that is more than a piece of a paragraph.
func (r *adocReader) structure(line string) bool {
	if m := matchAt(adocHeading, line, "=#"); m != nil && len(r.paragraph) == 0 {
		text := r.inline(m[2])
		anchor := r.anchor
		if anchor == "" {
			anchor = "_" + strings.ReplaceAll(slug(r.slugs, oneLine(Clean(text))), "-", "_")
		}
		first := len(r.b.sections) == 0 && r.b.text.Len() == 0
		r.b.line = r.skipped + r.at + 1
		r.b.Heading(len(m[1]), text, anchor)
		r.anchor, r.header = "", first && len(m[1]) == 1
		return true
	}
	if m := matchAt(adocAttribute, line, ":"); m != nil {
		name, value := strings.ToLower(m[1]), r.substitute(m[2])
		if strings.Contains(name, "!") {
			delete(r.attributes, strings.Trim(name, "!"))
			return true
		}
		r.attributes[name] = strings.ToValidUTF8(value[:min(len(value), 1000)], "")
		switch name {
		case "revdate", "docdate":
			name = "date"
		case "revnumber":
			name = "version"
		case "doctitle":
			name = "title"
		}
		r.doc.setMeta(name, value)
		return true
	}
	if m := matchAt(adocAnchor, line, "["); m != nil {
		r.flush()
		r.anchor = strings.TrimSpace(m[1] + m[2])
		return true
	}
	switch {
	case line[0] == '[' && line[len(line)-1] == ']':
		r.flush()
		r.options = line
		return true
	case line[0] == '.' && len(line) > 1 && line[1] != '.' && line[1] != ' ':
		r.flush()
		r.b.line = r.skipped + r.at + 1
		r.b.Paragraph(r.inline(line[1:]))
		return true
	}
	if m := matchAt(adocDirective, line, "eitva"); m != nil {
		r.flush()
		if m[1] == "image" {
			words, _, _ := strings.Cut(m[3], ",")
			r.b.line = r.skipped + r.at + 1
			r.b.Paragraph(r.inline(strings.Trim(words, `"`)))
		}
		return true
	}
	if m := adocList.FindStringSubmatch(line); m != nil {
		depth, marker := 0, m[1]
		switch marker[0] {
		case '*':
			depth, marker = len(marker)-1, "-"
		case '.':
			depth, marker = len(marker)-1, "-"
		case '<':
			marker = strings.Trim(marker, "<>") + "."
		}
		r.begin(listItem{depth, marker}, m[2])
		return true
	}
	if !strings.Contains(line, "::") && !strings.Contains(line, ";;") {
		return false
	}
	if m := adocTerm.FindStringSubmatch(line); m != nil && !strings.Contains(m[1], "://") && (len(r.paragraph) == 0 || r.item.marker != "") {
		text := m[1]
		if m[2] != "" {
			text += ": " + m[2]
		} else {
			text += ":"
		}
		r.begin(listItem{0, "-"}, text)
		return true
	}
	return false
}

// matchAt matches a line that begins with one of the signs.
func matchAt(pattern *regexp.Regexp, line, signs string) []string {
	if strings.IndexByte(signs, line[0]) < 0 {
		return nil
	}
	return pattern.FindStringSubmatch(line)
}

// block reads the lines up to the one that ends a block.
func (r *adocReader) block(delimiter, kind string) {
	r.flush()
	if kind == "open" {
		return // what is in it is read like anything else
	}
	if strings.HasPrefix(delimiter, "```") {
		delimiter = "```"
	}
	start := r.at + 1
	end := start
	for end < len(r.lines) && strings.TrimRight(r.lines[end], " \t") != delimiter {
		end++
	}
	r.at = end
	r.b.line = r.skipped + start + 1
	inside := r.lines[min(start, len(r.lines)):min(end, len(r.lines))]
	switch kind {
	case "code":
		r.b.Code(strings.Join(inside, "\n"))
	case "table":
		r.table(inside, start)
	case "csv":
		for i, line := range inside {
			r.b.line = r.skipped + start + i + 1
			r.b.Row(nil, strings.FieldsFunc(r.inline(line), func(c rune) bool { return c == ',' || c == ':' && delimiter[0] == ':' }))
		}
		r.b.last = kindNone
	}
}

// substitute puts the values of attributes in, within what a document of this
// size may grow by.
func (r *adocReader) substitute(text string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	return adocReference.ReplaceAllStringFunc(text, func(reference string) string {
		value, ok := r.attributes[strings.ToLower(reference[1:len(reference)-1])]
		if !ok || len(value) > r.room {
			return reference
		}
		r.room -= len(value)
		return value
	})
}

// inline takes the marks off the words of a block.
func (r *adocReader) inline(text string) string {
	text = r.substitute(text)
	if strings.Contains(text, "[") {
		text = adocURL.ReplaceAllStringFunc(text, func(s string) string {
			m := adocURL.FindStringSubmatch(s)
			return linkWords(m[2], m[1])
		})
		text = adocMacro.ReplaceAllStringFunc(text, func(s string) string {
			m := adocMacro.FindStringSubmatch(s)
			switch kind, _, _ := strings.Cut(s, ":"); kind {
			case "footnote", "footnoteref":
				return " (" + m[2] + ")"
			case "menu":
				return m[1] + " > " + m[2]
			}
			return linkWords(m[2], m[1])
		})
	}
	if strings.Contains(text, "<<") {
		text = adocXref.ReplaceAllStringFunc(text, func(s string) string {
			m := adocXref.FindStringSubmatch(s)
			return linkWords(m[2], strings.ReplaceAll(strings.TrimPrefix(m[1], "_"), "_", " "))
		})
	}
	if strings.ContainsAny(text, "[(+") {
		text = adocInline.ReplaceAllString(text, "")
	}
	if !strings.ContainsAny(text, "*_`#+") {
		return text
	}
	for range 2 { // one mark may stand inside another
		text = adocMarks.ReplaceAllString(text, "$1$3")
	}
	return text
}

// linkWords gives the words of a link, or its target when it has none.
func linkWords(words, target string) string {
	if words, _, _ = strings.Cut(words, ",role="); strings.TrimSpace(words) == "" {
		return target
	}
	return strings.Trim(strings.TrimSuffix(words, "^"), `"`)
}
