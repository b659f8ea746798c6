package ingest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A part is a range that no chunk crosses, with its headings.
type part struct {
	Span
	path   []string // headings, outermost first
	anchor string
	level  int
	row    int    // of a table, 1-based; 0 elsewhere
	sheet  string // that the row is of, in a workbook
	tokens int
	bare   bool // nothing but its heading
}

// parts cuts the text at headings and pages, and joins parts that are too small.
func (s *splitter) parts(ctx context.Context) []part {
	var parts []part
	text := s.doc.Text
	add := func(p part) {
		if p.Span = trim(text, p.Span); p.Start < p.End && ctx.Err() == nil {
			p.tokens = s.count(p.Span)
			parts = append(parts, p)
		}
	}
	sections := s.doc.Sections
	first := len(text)
	if len(sections) > 0 {
		first = sections[0].Start
	}
	add(part{Span: Span{0, first}})
	var trail Trail
	for i, sec := range sections {
		end := len(text)
		if i+1 < len(sections) {
			end = sections[i+1].Start
		}
		trail.Enter(sec)
		p := part{Span: Span{sec.Start, end}, anchor: sec.Anchor, level: sec.Level, path: trail.Path()}
		if sheet, n, ok := RowAnchor(sec.Anchor); ok && sec.Heading == "" {
			p.sheet = sheet
			p.row, _ = strconv.Atoi(n)
		} else if sec.Heading == "" {
			p.row = memberNumber(sec.Anchor)
		}
		body := text[min(end, sec.Start+len(sec.Heading)):end]
		p.bare = sec.Heading != "" && strings.TrimSpace(body) == ""
		add(p)
	}
	return s.join(s.atPages(parts))
}

// memberNumber returns the 1-based place in a list that a JSON pointer ends with;
// 0 for any other anchor.
func memberNumber(anchor string) int {
	if !strings.HasPrefix(anchor, "/") {
		return 0
	}
	n, err := strconv.Atoi(anchor[strings.LastIndexByte(anchor, '/')+1:])
	if err != nil || n < 0 {
		return 0
	}
	return n + 1
}

// A Trail is a section with those around it, outermost first. The zero value is
// the place before all sections.
type Trail []Section

// Enter moves to the next section of the document.
func (t *Trail) Enter(s Section) {
	over := *t
	for len(over) > 0 && over[len(over)-1].Level >= s.Level {
		over = over[:len(over)-1]
	}
	*t = append(over, s)
}

// Path returns the headings of the trail, without empty ones.
func (t Trail) Path() []string {
	var path []string
	for _, s := range t {
		if s.Heading != "" {
			path = append(path, s.Heading)
		}
	}
	return path
}

// count returns the tokens of a range, or for one far over the budget an estimate
// over it.
func (s *splitter) count(r Span) int {
	if n := r.End - r.Start; n > 12*s.max {
		return max(n/4, s.max+1)
	}
	return CountTokens(s.doc.Text[r.Start:r.End])
}

// minPart is the size below which a part is joined with a neighbour.
const minPart = 40

// A table of more rows than this has chunks of the target size, which are fewer; in
// a smaller one only small rows share a chunk, so that a search finds the row.
const manyRows = 5000

// join joins headings with the text after them, small parts with their neighbours
// under one heading, and rows.
func (s *splitter) join(parts []part) []part {
	rows := 0
	for _, p := range parts {
		if p.row > 0 {
			rows++
		}
	}
	var out []part
	for i, p := range parts {
		last := p.tokens < minPart && (i+1 == len(parts) || !s.related(p, parts[i+1]) && (p.row == 0 || !sameTable(p, parts[i+1])))
		if n := len(out); n > 0 && s.joinTo(&out[n-1], p, rows > manyRows, last) {
			out[n-1].End = p.End
			out[n-1].tokens += p.tokens
			continue
		}
		out = append(out, p)
	}
	return out
}

// joinTo joins the headings and rows of p to those of the part before it; false
// if they are not to be joined. A last part is small and cannot be joined with the
// next one.
func (s *splitter) joinTo(q *part, p part, many, last bool) bool {
	small := q.tokens < minPart || last
	switch tokens := q.tokens + p.tokens; {
	case tokens > s.max || tokens > s.target && !q.bare && !last:
		return false
	case sameTable(*q, p):
		if !many && !small {
			return false
		}
		if !strings.HasPrefix(p.anchor, "/") { // a pointer names the first of them
			q.anchor = fmt.Sprintf("%srow=%d-%d", strings.TrimSuffix(p.anchor, "row="+strconv.Itoa(p.row)), q.row, p.row)
		}
	case q.bare && small && s.doc.PageAt(q.Start) == s.doc.PageAt(p.Start) && (p.level > q.level || p.row == 0 && s.related(*q, p)):
		q.path, q.anchor, q.level, q.bare, q.row, q.sheet = p.path, p.anchor, p.level, p.bare, p.row, p.sheet
	case !small || !s.related(*q, p), last && len(commonPath(q.path, p.path)) == 0:
		return false
	default:
		q.path = commonPath(q.path, p.path)
		q.level, q.bare = min(q.level, p.level), false
	}
	return true
}

// sameTable reports whether two parts are rows of one table.
func sameTable(q, p part) bool {
	return p.row > 0 && q.row > 0 && p.sheet == q.sheet && p.level == q.level
}

// related reports whether two parts are on one page and under one heading, or both
// are sections of the outermost level.
func (s *splitter) related(q, p part) bool {
	return s.doc.PageAt(q.Start) == s.doc.PageAt(p.Start) && q.row == 0 && p.row == 0 && len(q.path) > 0 &&
		(len(commonPath(q.path, p.path)) > 0 || q.level == p.level)
}

func commonPath(a, b []string) []string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// atPages cuts parts where a page ends, or at the end of the sentence that spans
// two pages.
func (s *splitter) atPages(parts []part) []part {
	if len(s.doc.Pages) < 2 {
		return parts
	}
	var cuts []int
	for _, p := range s.doc.Pages[1:] {
		cuts = append(cuts, s.sentenceEnd(p.Start))
	}
	var out []part
	for _, p := range parts {
		for _, cut := range cuts {
			if cut <= p.Start || cut >= p.End {
				continue
			}
			head := p
			if head.Span = trim(s.doc.Text, Span{p.Start, cut}); head.Start < head.End {
				out = append(out, head)
			}
			p.Span = trim(s.doc.Text, Span{cut, p.End})
		}
		if p.Start < p.End {
			out = append(out, p)
		}
	}
	return out
}

// sentenceEnd returns the end of the sentence that contains the place, or the
// place itself between sentences.
func (s *splitter) sentenceEnd(at int) int {
	const window = 600
	text := s.doc.Text
	start, end := max(0, at-window), min(len(text), at+window)
	for !utf8.RuneStart(text[start]) {
		start++
	}
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	for sp := range Sentences(text[start:end]) {
		if sp.Start+start < at && sp.End+start > at {
			return sp.End + start
		}
	}
	return at
}
