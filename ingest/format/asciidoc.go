package format

import (
	"regexp"
	"strings"
)

var (
	adocHeading   = regexp.MustCompile(`^(={1,6}|#{1,6})[ \t]+(\S.*?)(?:[ \t]+=+)?$`)
	adocAttribute = regexp.MustCompile(`^:([\w][\w-]*):(?:[ \t]+(.*))?$`)
	adocAnchor    = regexp.MustCompile(`^\[\[([^\],]+)(?:,[^\]]*)?\]\]$|^\[(?:[\w-]*)#([^\],.%]+)[^\]]*\]$`)
	adocList      = regexp.MustCompile(`^[ \t]*(\*{1,5}|-|\.{1,5}|\d{1,3}[.)]|[a-zA-Z][.)])[ \t]+(\S.*)$`)
	adocTerm      = regexp.MustCompile(`^[ \t]*(\S.*?)(?::{2,4}|;;)(?:[ \t]+(.*))?$`)
	adocDirective = regexp.MustCompile(`^(ifdef|ifndef|ifeval|endif|include|toc|image|video|audio)::[^\[]*\[([^,]*).*\]$`)
	adocMacro     = regexp.MustCompile(`(?:(?:link|xref|mailto|image|icon|kbd|btn|stem|pass):([^\s\[\]]*)|(https?://[^\s\[\]]+))\[([^\]]*)\]`)
	adocFootnote  = regexp.MustCompile(`footnote:[\w-]*\[([^\]]*)\]`)
	adocXref      = regexp.MustCompile(`<<_?([^<>,]+)(?:,\s*([^<>]+))?>>`)
	adocInline    = regexp.MustCompile(`\[\[[^\]]*\]\]|\[\.?[\w. -]*\]#|\(\(\([^()]*\)\)\)|[ \t]\+$`)
	adocMarks     = regexp.MustCompile("(^|[\\s(\\[\"'>—/-])(\\*{1,2}|_{1,2}|`{1,2}|#{1,2}|\\+{1,3})" +
		"([^\\s*_`#+](?:[^*_`#+]*[^\\s*_`#+])?)(\\*{1,2}|_{1,2}|`{1,2}|#{1,2}|\\+{1,3})")
	adocReference = regexp.MustCompile(`\{([\w][\w-]*)\}`)
	adocColumns   = regexp.MustCompile(`cols=(?:"([^"]*)"|(\d))`)
	adocCells     = regexp.MustCompile(`(?:^|[ \t])(?:[.\d]{1,6}\+)?[<^>.]{0,3}[aehlmds]?\|`)
)

// adocBlocks are the lines that begin and end a block, with its kind. The content
// of an open block is read like any other text.
var adocBlocks = map[string]string{
	"----": "code", "....": "code", "```": "code", "////": "dropped", "++++": "dropped",
	"====": "open", "****": "open", "____": "open", "--": "open", "|===": "table",
}

// AsciiDoc reads AsciiDoc as text with headings, in linear time: inline markup
// is removed, attributes are metadata and are filled in where they are used.
// No other file is included.
func AsciiDoc(doc *Document, data []byte) error {
	src, err := sourceText(data)
	if err != nil {
		return err
	}
	matter, rest := cutFrontMatter(src)
	readFrontMatter(doc, matter)
	r := adocReader{attributes: make(map[string]string), room: len(src) + 1<<10}
	r.lineReader = newLineReader(doc, rest, r.inlineText)
	r.skipped = strings.Count(src[:len(src)-len(rest)], "\n")
	r.read(r.next, 1)
	return nil
}

type adocReader struct {
	lineReader
	attributes map[string]string
	room       int    // bytes that attributes may still add
	anchor     string // of the next heading
	options    string // the last line in brackets, for the next block
}

// next reads a line, and those of the block that it begins.
func (r *adocReader) next(line string) {
	switch {
	case strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "///"):
		return
	case line == "" || line == "+" || line == "'''" || line == "<<<" || line == "---" || line == "***":
		r.flush()
		return
	}
	delimiter := line[:min(len(line), 4)]
	if strings.HasPrefix(line, "```") {
		line, delimiter = "```", "```"
	}
	if kind, ok := adocBlocks[delimiter]; ok && (line == delimiter || strings.Trim(line, line[:1]) == "") {
		r.block(line, kind)
		return
	}
	if len(line) < maxCodeLine && (r.structure(line) || r.listLine(line)) {
		return
	}
	if len(r.paragraph) == 0 && (line[0] == ' ' || line[0] == '\t') { // literal
		r.at--
		code := r.until(func(line string) bool { return line == "" })
		r.b.Code(strings.Join(code, "\n"))
		return
	}
	r.add(line)
}

// structure reads a heading, an attribute, an anchor, options, a block's title or
// a directive.
func (r *adocReader) structure(line string) bool {
	switch line[0] {
	case '=', '#':
		m := adocHeading.FindStringSubmatch(line)
		if m == nil || len(r.paragraph) > 0 {
			return false
		}
		first := r.b.text.Len() == 0 && len(m[1]) == 1
		r.heading(len(m[1]), m[2], r.anchor, func(text string) string { return "_" + strings.ReplaceAll(r.slug(text), "-", "_") })
		r.anchor = ""
		if first {
			r.author()
		}
		return true
	case ':':
		m := adocAttribute.FindStringSubmatch(line)
		if m != nil {
			r.setAttribute(strings.ToLower(m[1]), r.substitute(m[2]))
		}
		return m != nil
	case '[':
		if line[len(line)-1] != ']' {
			return false
		}
		r.flush()
		if m := adocAnchor.FindStringSubmatch(line); m != nil {
			r.anchor = strings.TrimSpace(m[1] + m[2])
		} else {
			r.options = line
		}
		return true
	case '.':
		if len(line) == 1 || line[1] == '.' || line[1] == ' ' {
			return false
		}
		r.begin(listItem{}, line[1:])
		r.flush()
		return true
	}
	m := adocDirective.FindStringSubmatch(line)
	if m != nil && m[1] == "image" {
		r.begin(listItem{}, strings.Trim(m[2], `"`))
		r.flush()
	}
	return m != nil
}

// author reads the lines right after the title: the authors and the revision.
func (r *adocReader) author() {
	for i := 0; r.line(r.at+1) != "" && r.line(r.at + 1)[0] != ':'; i++ {
		r.at++
		if names, _, _ := strings.Cut(r.line(r.at), "<"); i == 0 {
			r.doc.setMeta("author", strings.ReplaceAll(strings.TrimSpace(names), "_", " "))
		}
	}
}

func (r *adocReader) setAttribute(name, value string) {
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
}

// listLine reads the beginning of a list item or of a description.
func (r *adocReader) listLine(line string) bool {
	if m := adocList.FindStringSubmatch(line); m != nil {
		depth, marker := 0, m[1]
		if marker[0] == '*' || marker[0] == '.' {
			depth, marker = len(marker)-1, "-"
		}
		r.begin(listItem{depth, marker}, m[2])
		return true
	}
	if !strings.Contains(line, "::") && !strings.Contains(line, ";;") {
		return false
	}
	m := adocTerm.FindStringSubmatch(line)
	if m == nil || strings.Contains(m[1], "://") || len(r.paragraph) > 0 && r.item.marker == "" {
		return false
	}
	r.begin(listItem{0, "-"}, m[1]+": "+m[2])
	return true
}

// block reads the lines up to the one that ends a block.
func (r *adocReader) block(delimiter, kind string) {
	r.flush()
	if kind == "open" {
		return
	}
	start := r.at + 1
	lines := r.until(func(line string) bool { return line == delimiter })
	switch kind {
	case "code":
		r.b.Code(strings.Join(lines, "\n"))
	case "table":
		r.cells(lines, start)
	}
	r.options = ""
}

// cells reads the cells of a table. The columns are those of its options, or of
// the first line with more than one cell.
func (r *adocReader) cells(lines []string, start int) {
	columns := 0
	if m := adocColumns.FindStringSubmatch(r.options); m != nil && m[1] != "" {
		columns = 1 + strings.Count(m[1], ",")
	} else if m != nil {
		columns = int(m[2][0] - '0')
	}
	var rows []tableRow
	headed := strings.Contains(r.options, "header")
	for i, line := range lines {
		places := adocCells.FindAllStringIndex(line, -1)
		before := line
		if len(places) > 0 {
			before = line[:places[0][0]]
		}
		if n := len(rows); n > 0 && strings.TrimSpace(before) != "" {
			cells := rows[n-1].cells
			cells[len(cells)-1] += "\n" + before
		}
		if columns == 0 && len(places) > 0 {
			columns = len(places)
			headed = headed || i+1 < len(lines) && strings.TrimSpace(lines[i+1]) == "" && len(places) > 1
		}
		for j, p := range places {
			end := len(line)
			if j+1 < len(places) {
				end = places[j+1][0]
			}
			if n := len(rows); n == 0 || len(rows[n-1].cells) >= columns {
				rows = append(rows, tableRow{at: start + i})
			}
			rows[len(rows)-1].cells = append(rows[len(rows)-1].cells, line[p[1]:end])
		}
	}
	r.table(rows, headed)
}

// substitute fills in the values of attributes, as far as a document of this
// size may grow.
func (r *adocReader) substitute(text string) string {
	return replaceMatches(adocReference, text, func(reference string, m []string) string {
		value, ok := r.attributes[strings.ToLower(m[1])]
		if !ok || len(value) > r.room {
			return reference
		}
		r.room -= len(value)
		return value
	})
}

// inlineText removes the markup in a block.
func (r *adocReader) inlineText(text string) string {
	text = adocFootnote.ReplaceAllString(r.substitute(text), " ($1)")
	text = replaceMatches(adocMacro, text, func(_ string, m []string) string { return linkWords(m[3], m[1]+m[2]) })
	text = replaceMatches(adocXref, text, func(_ string, m []string) string {
		return linkWords(m[2], strings.ReplaceAll(m[1], "_", " "))
	})
	text = adocInline.ReplaceAllString(text, "")
	if !strings.ContainsAny(text, "*_`#+") {
		return text
	}
	for range 2 { // marks nest
		text = adocMarks.ReplaceAllString(text, "$1$3")
	}
	return text
}

// linkWords returns the words of a link, or its target when it has none.
func linkWords(words, target string) string {
	if words, _, _ = strings.Cut(words, ",role="); strings.TrimSpace(words) == "" {
		return target
	}
	return strings.Trim(strings.TrimSuffix(words, "^"), `"`)
}
