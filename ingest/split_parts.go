package ingest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A part is a range of the text with its headings.
type part struct {
	Span
	path   []string // headings, outermost first
	anchor string
	level  int
	row    int    // 1-based row of a table; 0 elsewhere
	sheet  string // sheet of the row, in a workbook
	tokens int
	bare   bool // nothing but its heading
}

// parts cuts the text at headings and pages.
func (s *splitter) parts(ctx context.Context) []part {
	var parts []part
	text := s.doc.Text
	add := func(p part) {
		if p.Span = trim(text, p.Span); p.Start < p.End && ctx.Err() == nil {
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
		if sec.Heading == "" {
			p.sheet, p.row = rowOf(sec.Anchor)
		}
		body := strings.TrimPrefix(text[sec.Start:end], sec.Heading)
		p.bare = sec.Heading != "" && strings.TrimSpace(body) == ""
		add(p)
	}
	return s.cutAtPages(parts)
}

// rowOf returns the sheet and row of an anchor, or the 1-based list index that ends a JSON pointer.
// For other anchors, row is 0.
func rowOf(anchor string) (sheet string, row int) {
	sheet, number, ok := RowAnchor(anchor)
	if !ok && strings.HasPrefix(anchor, "/") {
		number, row = anchor[strings.LastIndexByte(anchor, '/')+1:], 1
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return sheet, 0
	}
	return sheet, n + row
}

// A Trail is a section with its ancestors, outermost first. The zero value is the position before
// all sections.
type Trail []Section

// Enter moves to the next section of the document.
func (t *Trail) Enter(s Section) {
	over := *t
	for len(over) > 0 && over[len(over)-1].Level >= s.Level {
		over = over[:len(over)-1]
	}
	*t = append(over, s)
}

// Path returns the non-empty headings of the trail.
func (t Trail) Path() []string {
	var path []string
	for _, s := range t {
		if s.Heading != "" {
			path = append(path, s.Heading)
		}
	}
	return path
}

// count returns the number of tokens in a range, or an estimate if it is far over the budget.
func (s *splitter) count(r Span) int {
	if n := r.End - r.Start; n > 12*s.max {
		return max(n/4, s.max+1)
	}
	return CountTokens(s.doc.Text[r.Start:r.End])
}

// Sizes in tokens: a part below minPart is joined with a neighbour under the same heading, a part
// below least with any neighbour on its page.
const (
	minPart = 40
	least   = 30
)

// manyRows is the number of rows above which a table is cut into chunks of the target size, to have
// fewer chunks. In a smaller table only small rows share a chunk, so that a search finds the row.
const manyRows = 5000

// join joins headings with the text after them, small parts with their neighbours under one
// heading, and rows.
func (s *splitter) join(parts []part) (out []part) {
	rows := 0
	for _, p := range parts {
		if p.row > 0 {
			rows++
		}
	}
	belong := func(q, p part) bool {
		small := q.tokens < minPart
		switch {
		case q.tokens+p.tokens > s.target && !q.bare:
			return false
		case sameTable(q, p):
			return small || rows > manyRows
		}
		return small && (s.areRelated(q, p) || q.bare && p.level > q.level)
	}
	for _, p := range parts {
		if n := len(out); n > 0 && belong(out[n-1], p) && s.canJoin(out[n-1], p) {
			out[n-1] = s.joinParts(out[n-1], p)
			continue
		}
		out = append(out, p)
	}
	return out
}

// joinSmall joins parts that are still too small with the neighbour that shares more headings.
func (s *splitter) joinSmall(parts []part) (out []part) {
	for i, p := range parts {
		n := len(out)
		if n == 0 || p.tokens >= least && out[n-1].tokens >= least || !s.canJoin(out[n-1], p) ||
			p.tokens < least && i+1 < len(parts) && s.canJoin(p, parts[i+1]) && nearness(p, parts[i+1]) > nearness(out[n-1], p) {
			out = append(out, p)
			continue
		}
		out[n-1] = s.joinParts(out[n-1], p)
	}
	return out
}

func nearness(q, p part) int { return len(commonPath(q.path, p.path)) }

// canJoin reports whether two neighbours fit into one chunk and are in the same sheet or message,
// and on the same page unless one of them is small.
func (s *splitter) canJoin(q, p part) bool {
	const slack = 16 // token counts of parts need not add up to the count of the whole
	tokens := q.tokens + p.tokens
	if tokens > s.max-slack {
		tokens = s.count(Span{q.Start, p.End})
	}
	small := q.tokens < least || p.tokens < least
	return tokens <= s.max && (small || s.doc.PageAt(q.Start) == s.doc.PageAt(p.Start)) && placeOf(q) == placeOf(p)
}

// placeOf returns the sheet or message of a part, or "".
func placeOf(p part) string {
	if sheet, _, ok := RowAnchor(p.anchor); ok && sheet != "" {
		return "sheet=" + sheet
	}
	if strings.HasPrefix(p.anchor, "sheet=") || strings.HasPrefix(p.anchor, "message=") {
		return p.anchor
	}
	return ""
}

// joinParts joins two neighbours.
func (s *splitter) joinParts(q, p part) part {
	switch {
	case sameTable(q, p):
		if _, rows, ok := RowAnchor(p.anchor); ok { // a pointer names the first row
			last := rows[strings.LastIndexByte(rows, '-')+1:]
			q.anchor = fmt.Sprintf("%s%d-%s", strings.TrimSuffix(p.anchor, rows), q.row, last)
		}
	case q.bare && (p.level > q.level || s.areRelated(q, p)):
		q.path, q.anchor, q.level, q.bare, q.row, q.sheet = p.path, p.anchor, p.level, p.bare, p.row, p.sheet
	default:
		switch {
		case len(q.path) == 0, (q.tokens < least) == (p.tokens < least):
			q.path = commonPath(q.path, p.path)
		case q.tokens < least:
			q.path = p.path
		}
		if _, rows, ok := RowAnchor(q.anchor); ok && !strings.Contains(rows, "-") {
			q.anchor = placeOf(q) // it spans several rows
		}
		q.level, q.bare, q.row = min(q.level, p.level), false, 0
	}
	q.End, q.tokens = p.End, q.tokens+p.tokens
	return q
}

// sameTable reports whether two parts are rows of one table.
func sameTable(q, p part) bool {
	return p.row > 0 && q.row > 0 && p.sheet == q.sheet && p.level == q.level
}

// areRelated reports whether two parts are under one heading, or both at the outermost level.
func (s *splitter) areRelated(q, p part) bool {
	return q.row == 0 && p.row == 0 && len(q.path) > 0 && (nearness(q, p) > 0 || q.level == p.level)
}

func commonPath(a, b []string) []string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// cutAtPages cuts parts at the end of each page, or at the end of a sentence that spans two pages.
func (s *splitter) cutAtPages(parts []part) []part {
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

// sentenceEnd returns the end of the sentence around a position, or the position itself if it is
// between sentences.
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
