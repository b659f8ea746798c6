package extract

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ibid/answer/prompt"
	"ibid/cite/marker"
	"ibid/ingest"
	"ibid/retrieve"
)

// maxContinued is in how many more passages a list is quoted.
const maxContinued = 8

// A selection is the pieces that are quoted of the kept passages.
type selection struct {
	q      *query
	kept   []retrieve.Passage
	all    [][]sentence // of the passages
	pieces []piece
}

// quotes writes the pieces with what is between them.
func (s *selection) quotes() []Quote {
	pieces, quotes, rows := s.pieces, make([]Quote, len(s.pieces)), make([]bool, len(s.pieces))
	for i, p := range pieces {
		quotes[i] = Quote{p.passage, s.write(p)}
		rows[i] = isRow(s.all[p.passage][p.end-1].text)
	}
	for i, p := range pieces {
		next := i+1 < len(rows) && rows[i] && rows[i+1]
		if i > 0 && !(rows[i] && rows[i-1]) && p.passage == pieces[i-1].passage && p.start > pieces[i-1].end {
			gap := "… " // it may mean something in a sentence between
			if s.all[p.passage][p.start].code {
				gap = "…\n\n"
			}
			quotes[i].Text = gap + quotes[i].Text
		}
		if next || i > 0 && rows[i] && rows[i-1] {
			quotes[i].Text = "- " + quotes[i].Text // several rows are a list
		}
		switch {
		case next, i+1 < len(quotes) && pieces[i+1].continues:
			quotes[i].Text += "\n"
		case i+1 < len(quotes):
			quotes[i].Text += "\n\n"
		}
	}
	return quotes
}

// continueLists adds, after each piece that ends with its passage and within a list, the
// items that the next passage of the document begins with.
func (s *selection) continueLists(ctx context.Context, next Next) error {
	more := 0
	for i := 0; i < len(s.pieces) && more < maxContinued; i++ {
		p := s.pieces[i]
		if p.end < len(s.all[p.passage]) || !endsInList(p, s.all[p.passage]) {
			continue
		}
		after, ok, err := next(ctx, s.kept[p.passage])
		if err != nil {
			return err
		}
		at := slices.IndexFunc(s.kept, func(q retrieve.Passage) bool { return q.ID == after.ID })
		if at < 0 {
			at = len(s.kept)
		}
		in := split(s.q, at, after)
		start := slices.IndexFunc(in, func(c sentence) bool { return after.Start+c.span.Start >= s.kept[p.passage].End })
		if !ok || start < 0 || !isItem(in[start].text) {
			continue
		}
		if at == len(s.kept) {
			s.kept, s.all = append(s.kept, after), append(s.all, in)
		}
		whole := piece{passage: at, start: start, end: endOfList(in, start), continues: true}
		s.pieces = slices.DeleteFunc(s.pieces, func(o piece) bool { return o != p && o.passage == at && o.start < whole.end && o.end > start })
		i = slices.Index(s.pieces, p)
		s.pieces = slices.Insert(s.pieces, i+1, whole)
		more++
	}
	return nil
}

// maxCodeBytes is the size of a block of code that is quoted whole.
const maxCodeBytes = 600

var bodyless = regexp.MustCompile(`^\s*(?:export\s+)?(?:type|const|var|let|enum|interface|struct)\b`)

// codeLines are the lines of a block of code that are quoted: of a function its head,
// of anything else as many as fit.
func codeLines(s sentence) string {
	var lines []string
	for line := range strings.SplitSeq(s.text, "\n") {
		line = strings.TrimRight(strings.TrimPrefix(line, "    "), " \t\r")
		lines = append(lines, line)
		opens := strings.HasSuffix(line, "{") || strings.HasSuffix(line, ":")
		head := strings.HasPrefix(line, "package ") || opens && !bodyless.MatchString(s.text)
		if s.declares && head || len(strings.Join(lines, "\n")) > maxCodeBytes {
			break
		}
	}
	return strings.TrimRight(strings.Join(lines, "\n"), " {:")
}

// fenced puts code into a fenced block, whose fence is longer than any in it.
func fenced(code string) string {
	fence := "```"
	for strings.Contains(code, fence) {
		fence += "`"
	}
	return fence + "\n" + code + "\n" + fence
}

// write writes a piece with labels. List items and table rows get lines of
// their own, with the cells of a row that are asked for. A title above the piece that
// may be the answer, or that leads in to code, goes before it.
func (s *selection) write(p piece) string {
	var b strings.Builder
	in, highest := s.all[p.passage], len(s.kept)
	named := s.q.isNamedBy(in[0], in[p.start], s.kept[p.passage])
	labelled := p.start == 1 && named || in[p.start].headed
	if labelled {
		b.WriteString(Labelled(prompt.RoundLabels(plainLine(in[p.start-1].text), highest), p.passage+1, "\n") + "\n")
	}
	by := "" // who wrote the sentence that comes next
	if first := in[p.start]; first.by != "" && (first.reply || s.q.asksSender()) {
		by = strings.TrimSuffix(prompt.RoundLabels(first.by, highest), ":") + ":"
		if first.reply || first.code || isItem(first.text) || isRow(first.text) {
			b.WriteString(Labelled(by, p.passage+1, "\n") + "\n\n")
			by = ""
		}
	}
	for k := p.start; k < p.end; k++ {
		if in[k].code {
			label := ""
			if !labelled { // otherwise the block belongs to the sentence before it
				label = fmt.Sprintf("\n[%d]", p.passage+1)
			}
			b.WriteString(fenced(codeLines(in[k])) + label + "\n")
			labelled = true
			continue
		}
		text, space, next := strings.TrimSpace(by+" "+s.writeLine(p, k)), "", ""
		by = ""
		switch {
		case k+1 < p.end:
			space = spaceAfter(in[k], in[k+1], isItem(in[first(in, k)].text))
		}
		if space == " " {
			for _, c := range in[k+1 : p.end] { // what may close the code or formula that a sentence opens
				next += prompt.RoundLabels(plainLine(c.text), highest) + " "
			}
		}
		b.WriteString(labelledEach(prompt.RoundLabels(text, highest), p.passage+1, space+next) + space)
		labelled = true
	}
	return strings.TrimRight(b.String(), "\n")
}

// endsInList reports whether a piece ends with a list of which it has two items or more,
// or one that continues another's.
func endsInList(p piece, in []sentence) bool {
	last := first(in, p.end-1)
	return isItem(in[last].text) && (p.continues || last > p.start && isItem(in[first(in, last-1)].text))
}

// writeLine writes sentence k of a piece.
func (s *selection) writeLine(p piece, k int) string {
	in := s.all[p.passage]
	text := strings.TrimSpace(in[k].text)
	if in[k].reply {
		text = quoteMarks.ReplaceAllString(text, "")
	}
	switch {
	case isRow(text) && p.end-p.start > 1:
		return "- " + rowReader{s.q}.writeRow(plainLine(text))
	case isRow(text):
		return rowReader{s.q}.writeRow(plainLine(text))
	case isItem(text) && (k > p.start || after(in, k) < p.end):
		mark := "-"
		if isStep(text) {
			mark, _, _ = strings.Cut(text, " ")
		}
		return mark + " " + plainLine(text)
	}
	return plainLine(text)
}

// spaceAfter is what is written between a sentence, which may be in a list item, and the next.
func spaceAfter(s, next sentence, item bool) string {
	row, toRow, toItem := isRow(s.text), isRow(next.text), isItem(next.text)
	switch {
	case s.reply != next.reply, !next.code && !toItem && (item && !next.joins || row && !toRow):
		return "\n\n" // otherwise readers of Markdown take it into the item
	case !next.joins && (s.title && !s.asks || item || row || toRow || toItem || next.code):
		return "\n"
	}
	return " "
}

// labelledEach adds a label to each sentence of a line.
func labelledEach(line string, label int, after string) string {
	spans := slices.Collect(ingest.Sentences(line))
	if len(spans) < 2 {
		return Labelled(line, label, after)
	}
	var b strings.Builder
	start := 0
	for i, s := range spans {
		next := after
		if i+1 < len(spans) {
			next = line[s.End:]
		}
		b.WriteString(line[start:s.Start] + Labelled(line[s.Start:s.End], label, next))
		start = s.End
	}
	return b.String()
}

// Labelled adds a label to a sentence in a form that is always read as one,
// whatever the sentence ends with and whatever comes after it.
func Labelled(text string, label int, after string) string {
	n := strconv.Itoa(label)
	// A line break ends the code or the formula that a backtick or a dollar sign opens.
	for _, form := range []string{"[" + n + "]", "[" + n + "](id=" + n + ")", "\n[" + n + "](id=" + n + ")"} {
		if got := marker.Labels(text+form+after+"\n", label); len(got) == 1 && got[0] == label {
			return text + form
		}
	}
	// After an open backtick the label would be read as code, and without it those in the text not.
	return prompt.RoundLabels(strings.NewReplacer("`", "'", "~~~", "~").Replace(text), 1000) + "[" + n + "](id=" + n + ")"
}
