package format

import (
	"regexp"
	"strings"
)

var (
	orgHeading = regexp.MustCompile(`^(\*{1,20})[ \t]+` +
		`(?:(?:TODO|DONE|NEXT|WAITING)[ \t]+)?(?:\[#[A-Z]\][ \t]+)?(\S.*?)(?:[ \t]+(:[\w@:]+:))?$`)
	orgKeyword  = regexp.MustCompile(`(?i)^[ \t]*#\+(\w+)(?:\[[^\]]*\])?:[ \t]*(.*)$`)
	orgBegin    = regexp.MustCompile(`(?i)^[ \t]*#\+begin_(\w+)`)
	orgEnd      = regexp.MustCompile(`(?i)^[ \t]*#\+end_\w+`)
	orgList     = regexp.MustCompile(`^([ \t]*)([-+]|\*|\d{1,3}[.)])[ \t]+(?:\[[ X-]\][ \t]+)?(\S.*)$`)
	orgLink     = regexp.MustCompile(`\[\[([^\[\]]+)\](?:\[([^\[\]]+)\])?\]`)
	orgEmphasis = regexp.MustCompile(`(^|[\s({'"-])[*/_=~+]([^\s*/_=~+](?:[^*/_=~+\n]*[^\s*/_=~+])?)[*/_=~+]`)
)

// Org reads Org as text with headings, in linear time.
func Org(doc *Document, data []byte) error {
	src, err := sourceText(data)
	if err != nil {
		return err
	}
	r := orgReader{doc: doc, slugs: make(map[string]int)}
	for line := range strings.SplitSeq(src, "\n") {
		r.number++
		r.next(strings.TrimRight(line, " \t"))
	}
	r.flush()
	r.b.into(doc)
	doc.titleFromHeading(anyLevel)
	return nil
}

type orgReader struct {
	b         builder
	doc       *Document
	slugs     map[string]int
	number    int // of the current line
	paragraph []string
	began     int
	item      listItem
	header    []string // of the current table
	table     bool
	rows      int
	block     string   // the kind of the current block; empty outside
	code      []string // its lines
	drawer    bool
}

func (r *orgReader) flush() {
	if r.table {
		if r.rows == 0 {
			r.b.Row(nil, r.header)
		}
		r.b.last, r.header, r.table, r.rows = kindNone, nil, false, 0
	}
	if len(r.paragraph) == 0 {
		return
	}
	text := orgInline(strings.Join(r.paragraph, "\n"))
	r.b.line = r.began
	if r.item.marker != "" {
		r.b.Item(r.item.depth, r.item.marker, text)
	} else {
		r.b.Paragraph(text)
	}
	r.paragraph, r.item = r.paragraph[:0], listItem{}
}

// next reads a line.
func (r *orgReader) next(line string) {
	trimmed := strings.TrimSpace(line)
	switch {
	case r.block != "" && r.blockLine(line):
		return
	case r.drawer:
		r.drawer = !strings.EqualFold(trimmed, ":END:")
		return
	case trimmed == "":
		r.flush()
		return
	case len(line) <= maxCodeLine && r.structure(line, trimmed):
		return
	}
	if m := orgList.FindStringSubmatch(line[:min(len(line), maxCodeLine)]); m != nil && len(line) <= maxCodeLine {
		r.flush()
		marker := strings.TrimRight(m[2], ")")
		if marker == m[2] && len(marker) == 1 {
			marker = "-"
		} else {
			marker = strings.TrimSuffix(marker, ".") + "."
		}
		r.item = listItem{width(m[1]) / 2, marker}
		trimmed = strings.Replace(m[3], " :: ", ": ", 1)
	}
	if len(r.paragraph) == 0 {
		if r.table {
			item := r.item
			r.item = listItem{}
			r.flush()
			r.item = item
		}
		r.began = r.number
	}
	r.paragraph = append(r.paragraph, trimmed)
}

// blockLine reads a line inside a block; false if it is text like any other.
func (r *orgReader) blockLine(line string) bool {
	code := r.block == "src" || r.block == "example" || r.block == "export"
	switch {
	case orgEnd.MatchString(line):
		if code {
			r.b.line = r.began
			r.b.Code(strings.Join(r.code, "\n"))
		} else {
			r.flush()
		}
		r.block, r.code = "", nil
	case code:
		r.code = append(r.code, line)
	default:
		return r.block == "comment"
	}
	return true
}

// structure reads a line that is more than a part of a paragraph or list.
func (r *orgReader) structure(line, trimmed string) bool {
	switch {
	case strings.EqualFold(trimmed, ":PROPERTIES:") || strings.EqualFold(trimmed, ":LOGBOOK:"):
		r.flush()
		r.drawer = true
	case line[0] == '*' && orgHeading.MatchString(line):
		r.flush()
		m := orgHeading.FindStringSubmatch(line)
		heading := orgInline(m[2])
		r.b.line = r.number
		r.b.Heading(len(m[1]), heading, slug(r.slugs, oneLine(Clean(heading))))
	case trimmed[0] == '#':
		r.flush()
		r.keyword(line)
	case trimmed[0] == '|':
		r.row(trimmed)
	case strings.HasPrefix(trimmed, ": "):
		r.flush()
		r.b.line = r.number
		r.b.Code(trimmed[2:])
	default:
		return false
	}
	return true
}

// keyword reads the beginning of a block, or metadata.
func (r *orgReader) keyword(line string) {
	if m := orgBegin.FindStringSubmatch(line); m != nil {
		r.block, r.began = strings.ToLower(m[1]), r.number+1
		return
	}
	m := orgKeyword.FindStringSubmatch(line)
	if m == nil {
		return
	}
	switch key := strings.ToLower(m[1]); key {
	case "filetags":
		r.doc.setMeta("tags", strings.Trim(strings.ReplaceAll(m[2], ":", ", "), ", "))
	case "caption":
		r.b.line = r.number
		r.b.Paragraph(orgInline(m[2]))
	default:
		r.doc.setMeta(key, m[2])
	}
}

// row reads a line of a table. The first one names the columns.
func (r *orgReader) row(line string) {
	if !r.table {
		r.flush()
		r.table = true
	}
	r.b.line = r.number
	if strings.HasPrefix(line, "|-") {
		return
	}
	var cells []string
	for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
		cells = append(cells, oneLine(Clean(orgInline(cell))))
	}
	if r.header == nil {
		r.header = cells
		return
	}
	r.b.Row(r.header, cells)
	r.rows++
}

// orgInline removes the markup in a block.
func orgInline(text string) string {
	if strings.Contains(text, "[[") {
		text = orgLink.ReplaceAllStringFunc(text, func(s string) string {
			m := orgLink.FindStringSubmatch(s)
			if m[2] != "" {
				return m[2]
			}
			return m[1]
		})
	}
	return orgEmphasis.ReplaceAllString(text, "$1$2")
}
