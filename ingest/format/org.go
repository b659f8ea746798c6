package format

import (
	"cmp"
	"regexp"
	"strings"
)

var (
	orgHeading = regexp.MustCompile(`^(\*+)[ \t]+` +
		`(?:(?:TODO|DONE|NEXT|WAITING)[ \t]+)?(?:\[#[A-Z]\][ \t]+)?(\S.*?)(?:[ \t]+(:[\w@:]+:))?$`)
	orgKeyword  = regexp.MustCompile(`(?i)^[ \t]*#\+(\w+)(?:\[[^\]]*\])?:[ \t]*(.*)$`)
	orgCode     = regexp.MustCompile(`(?i)^[ \t]*#\+begin_(src|example|export|comment)`)
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
	r := orgReader{newLineReader(doc, src, orgInline)}
	r.read(r.next)
	return nil
}

type orgReader struct{ lineReader }

// next reads a line, and those of the block that it begins.
func (r *orgReader) next(line string) {
	trimmed := strings.TrimSpace(line)
	switch {
	case trimmed == "":
		r.flush()
	case len(line) > maxCodeLine:
		r.add(line)
	case strings.EqualFold(trimmed, ":PROPERTIES:") || strings.EqualFold(trimmed, ":LOGBOOK:"):
		r.until(func(line string) bool { return strings.EqualFold(strings.TrimSpace(line), ":END:") })
	case trimmed[0] == '#':
		r.keyword(line)
	case trimmed[0] == '|':
		r.rows()
	case strings.HasPrefix(trimmed, ": "):
		r.flush()
		r.mark(r.at)
		r.b.Code(trimmed[2:])
	default:
		if m := orgHeading.FindStringSubmatch(line); m != nil {
			r.heading(len(m[1]), m[2], "")
		} else if m := orgList.FindStringSubmatch(line); m != nil {
			marker := "-"
			if m[2][0] >= '0' && m[2][0] <= '9' {
				marker = strings.TrimRight(m[2], ".)") + "."
			}
			r.begin(listItem{width(m[1]) / 2, marker}, strings.Replace(m[3], " :: ", ": ", 1))
		} else {
			r.add(line)
		}
	}
}

// keyword reads a block, or metadata.
func (r *orgReader) keyword(line string) {
	r.flush()
	if m := orgCode.FindStringSubmatch(line); m != nil {
		code := r.until(func(line string) bool {
			return strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "#+end_")
		})
		if !strings.EqualFold(m[1], "comment") {
			r.b.Code(strings.Join(code, "\n"))
		}
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
		r.begin(listItem{}, m[2])
		r.flush()
	default:
		r.doc.setMeta(key, m[2])
	}
}

// rows reads the lines of a table, the first of which names the columns.
func (r *orgReader) rows() {
	var rows []tableRow
	for ; strings.HasPrefix(strings.TrimSpace(r.line(r.at)), "|"); r.at++ {
		if line := strings.TrimSpace(r.line(r.at)); !strings.HasPrefix(line, "|-") {
			rows = append(rows, tableRow{strings.Split(strings.Trim(line, "|"), "|"), r.at})
		}
	}
	r.at--
	r.table(rows, true)
}

// orgInline removes the markup in a block.
func orgInline(text string) string {
	text = replaceMatches(orgLink, text, func(_ string, m []string) string { return cmp.Or(m[2], m[1]) })
	return orgEmphasis.ReplaceAllString(text, "$1$2")
}
