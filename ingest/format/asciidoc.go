package format

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	adocHeading   = regexp.MustCompile(`^(={1,6}|#{1,6})[ \t]+(\S.*?)(?:[ \t]+=+)?$`)
	adocAttribute = regexp.MustCompile(`^:(!?[\w][\w-]*!?):(?:[ \t]+(.*))?$`)
	adocAnchor    = regexp.MustCompile(`^\[\[([^\],]+)(?:,[^\]]*)?\]\]$|^\[(?:[\w-]*)#([^\],.%]+)[^\]]*\]$`)
	adocList      = regexp.MustCompile(`^[ \t]*(\*{1,5}|-|\.{1,5}|\d{1,3}[.)]|[a-zA-Z][.)])[ \t]+(\S.*)$`)
	adocTerm      = regexp.MustCompile(`^[ \t]*(\S.*?)(?::{2,4}|;;)(?:[ \t]+(.*))?$`)
	adocDirective = regexp.MustCompile(`^(ifdef|ifndef|ifeval|endif|include|toc|image|video|audio)::([^\[]*)\[(.*)\][ \t]*$`)
	adocMacro     = regexp.MustCompile(`(?:link|xref|mailto|image|icon|kbd|btn|footnote|stem|pass):([^\s\[\]]*)\[([^\]]*)\]`)
	adocURL       = regexp.MustCompile(`(https?://[^\s\[\]]+)\[([^\]]*)\]`)
	adocXref      = regexp.MustCompile(`<<([^<>,]+)(?:,\s*([^<>]+))?>>`)
	adocInline    = regexp.MustCompile(`\[\[[^\]]*\]\]|\[\.?[\w. -]*\]#|\(\(\([^()]*\)\)\)|[ \t]\+$`)
	adocMarks     = regexp.MustCompile("(^|[\\s(\\[\"'>—/-])(\\*{1,2}|_{1,2}|`{1,2}|#{1,2}|\\+{1,3})" +
		"([^\\s*_`#+](?:[^*_`#+]*[^\\s*_`#+])?)(\\*{1,2}|_{1,2}|`{1,2}|#{1,2}|\\+{1,3})")
	adocReference = regexp.MustCompile(`\{([\w][\w-]*)\}`)
	adocColumns   = regexp.MustCompile(`cols=("[^"]*"|[^,\]]*)`)
	adocCells     = regexp.MustCompile(`(?:^|[ \t])(?:[.\d]{1,6}\+)?[<^>.]{0,3}[aehlmds]?\|`)
)

// adocBlocks are the lines that begin and end a block, with its kind.
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
	r := adocReader{
		doc: doc, lines: strings.Split(rest, "\n"), attributes: make(map[string]string), slugs: make(map[string]int),
		room: len(src) + 1<<10, skipped: strings.Count(src[:len(src)-len(rest)], "\n"),
	}
	for ; r.at < len(r.lines); r.at++ {
		r.next(strings.TrimRight(r.lines[r.at], " \t"))
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
	at         int // index of the current line
	skipped    int // lines of front matter
	attributes map[string]string
	room       int // bytes that attributes may still add
	slugs      map[string]int
	anchor     string // of the next heading
	paragraph  []string
	began      int // index of the paragraph's first line
	item       listItem
	options    string // the last line in brackets, for the next block
	author     bool   // the title was read, and the next line may name the authors
}

// flush ends the current paragraph or list item.
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

func (r *adocReader) beginItem(item listItem, text string) {
	r.flush()
	r.item, r.began = item, r.at
	r.paragraph = append(r.paragraph, text)
}

// add writes a block that begins in the current line.
func (r *adocReader) add(text string) {
	r.flush()
	r.b.line = r.skipped + r.at + 1
	r.b.Paragraph(r.inline(text))
}

// next reads a line, and those of the block that it begins.
func (r *adocReader) next(line string) {
	author := r.author
	r.author = false
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
	if kind, ok := adocBlock(line); ok {
		r.block(line, kind)
		return
	}
	if len(line) < maxCodeLine && (r.structure(line) || r.listLine(line)) {
		return
	}
	if author {
		names, _, _ := strings.Cut(line, "<")
		r.doc.setMeta("author", strings.ReplaceAll(strings.TrimSpace(names), "_", " "))
		for r.at+1 < len(r.lines) && strings.TrimSpace(r.lines[r.at+1]) != "" && r.lines[r.at+1][0] != ':' {
			r.at++ // the revision
		}
		return
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

// adocBlock returns the kind of block that a line delimits.
func adocBlock(line string) (kind string, ok bool) {
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

// structure reads a heading, an attribute, an anchor, options, a block's title or
// a directive.
func (r *adocReader) structure(line string) bool {
	switch line[0] {
	case '=', '#':
		m := adocHeading.FindStringSubmatch(line)
		if m == nil || len(r.paragraph) > 0 {
			return false
		}
		text := r.inline(m[2])
		if r.anchor == "" {
			r.anchor = "_" + strings.ReplaceAll(slug(r.slugs, oneLine(Clean(text))), "-", "_")
		}
		r.author = r.b.text.Len() == 0 && len(m[1]) == 1
		r.b.line = r.skipped + r.at + 1
		r.b.Heading(len(m[1]), text, r.anchor)
		r.anchor = ""
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
		r.add(line[1:])
		return true
	}
	m := adocDirective.FindStringSubmatch(line)
	if m != nil {
		r.flush()
		if m[1] == "image" {
			words, _, _ := strings.Cut(m[3], ",")
			r.add(strings.Trim(words, `"`))
		}
	}
	return m != nil
}

func (r *adocReader) setAttribute(name, value string) {
	if strings.Contains(name, "!") {
		delete(r.attributes, strings.Trim(name, "!"))
		return
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
}

// listLine reads the beginning of a list item or of a description.
func (r *adocReader) listLine(line string) bool {
	if m := adocList.FindStringSubmatch(line); m != nil {
		depth, marker := 0, m[1]
		if marker[0] == '*' || marker[0] == '.' {
			depth, marker = len(marker)-1, "-"
		}
		r.beginItem(listItem{depth, marker}, m[2])
		return true
	}
	if !strings.Contains(line, "::") && !strings.Contains(line, ";;") {
		return false
	}
	m := adocTerm.FindStringSubmatch(line)
	if m == nil || strings.Contains(m[1], "://") || len(r.paragraph) > 0 && r.item.marker == "" {
		return false
	}
	r.beginItem(listItem{0, "-"}, strings.TrimSpace(m[1]+": "+m[2]))
	return true
}

// block reads the lines up to the one that ends a block.
func (r *adocReader) block(delimiter, kind string) {
	r.flush()
	if kind == "open" {
		return // its content is read like any other
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
	}
}

// table writes the rows of a table.
func (r *adocReader) table(lines []string, start int) {
	var cells []string
	var at []int // line of each cell
	columns := r.columns()
	headed := strings.Contains(r.options, "header")
	for i, line := range lines {
		places := adocCells.FindAllStringIndex(line, -1)
		before := line
		if len(places) > 0 {
			before = line[:places[0][0]]
		}
		if n := len(cells); n > 0 && strings.TrimSpace(before) != "" {
			cells[n-1] += "\n" + before
		}
		if len(cells) == 0 && len(places) > 1 { // the first row
			if columns == 0 {
				columns = len(places)
			}
			headed = headed || i+1 < len(lines) && strings.TrimSpace(lines[i+1]) == "" && !strings.Contains(r.options, "noheader")
		}
		for j, p := range places {
			end := len(line)
			if j+1 < len(places) {
				end = places[j+1][0]
			}
			cells, at = append(cells, line[p[1]:end]), append(at, i)
		}
	}
	if columns == 0 {
		columns = max(1, len(cells))
	}
	for i := range cells {
		cells[i] = oneLine(Clean(r.inline(cells[i])))
	}
	var header []string
	if headed && len(cells) > columns {
		header, cells, at = cells[:columns], cells[columns:], at[columns:]
	}
	for len(cells) > 0 {
		n := min(columns, len(cells))
		r.b.line = r.skipped + start + at[0] + 1
		r.b.Row(header, cells[:n])
		cells, at = cells[n:], at[n:]
	}
	r.b.last = kindNone // rows of the next table are not of this one
	r.options = ""
}

// columns returns the number of columns that the options of a table give; 0 if
// they give none.
func (r *adocReader) columns() int {
	m := adocColumns.FindStringSubmatch(r.options)
	if m == nil {
		return 0
	}
	columns := 0
	for column := range strings.SplitSeq(strings.Trim(m[1], `"`), ",") {
		repeat, _, repeated := strings.Cut(column, "*")
		n, err := strconv.Atoi(repeat)
		if err != nil || !repeated {
			n = 1
		}
		columns += min(n, 100)
	}
	return columns
}

// substitute fills in the values of attributes, as far as a document of this
// size may grow.
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

// inline removes the markup in a block.
func (r *adocReader) inline(text string) string {
	text = r.substitute(text)
	if strings.Contains(text, "[") {
		text = replaceMatches(adocURL, text, func(_ string, m []string) string { return linkWords(m[2], m[1]) })
		text = replaceMatches(adocMacro, text, func(whole string, m []string) string {
			if strings.HasPrefix(whole, "footnote:") {
				return " (" + m[2] + ")"
			}
			return linkWords(m[2], m[1])
		})
	}
	if strings.Contains(text, "<<") {
		text = replaceMatches(adocXref, text, func(_ string, m []string) string {
			return linkWords(m[2], strings.ReplaceAll(strings.TrimPrefix(m[1], "_"), "_", " "))
		})
	}
	if strings.ContainsAny(text, "[(+") {
		text = adocInline.ReplaceAllString(text, "")
	}
	if !strings.ContainsAny(text, "*_`#+") {
		return text
	}
	for range 2 { // marks nest
		text = adocMarks.ReplaceAllString(text, "$1$3")
	}
	return text
}

// replaceMatches replaces each match of a pattern, given its groups.
func replaceMatches(pattern *regexp.Regexp, text string, replace func(whole string, groups []string) string) string {
	return pattern.ReplaceAllStringFunc(text, func(whole string) string {
		return replace(whole, pattern.FindStringSubmatch(whole))
	})
}

// linkWords returns the words of a link, or its target when it has none.
func linkWords(words, target string) string {
	if words, _, _ = strings.Cut(words, ",role="); strings.TrimSpace(words) == "" {
		return target
	}
	return strings.Trim(strings.TrimSuffix(words, "^"), `"`)
}
