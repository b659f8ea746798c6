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

// maxContinued is the number of further passages from which lists are continued.
const maxContinued = 8

// A selection is the pieces of the kept passages that are quoted.
type selection struct {
	q      *query
	kept   []retrieve.Passage
	all    [][]sentence // of the passages
	pieces []piece
}

// quotes writes the pieces and what separates them.
func (s *selection) quotes() []Quote {
	pieces, quotes, rows := s.pieces, make([]Quote, len(s.pieces)), make([]bool, len(s.pieces))
	for i, p := range pieces {
		quotes[i] = Quote{p.passage, s.write(p)}
		rows[i] = isRow(s.all[p.passage][p.end-1].text)
	}
	for i, p := range pieces {
		next := i+1 < len(rows) && rows[i] && rows[i+1]
		if i > 0 && !(rows[i] && rows[i-1]) && p.passage == pieces[i-1].passage && p.start > pieces[i-1].end {
			gap := "… " // the omitted sentences may matter
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

// continueLists follows each list that ends with its passage into the next passage of the
// document.
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

// maxCodeBytes limits a quoted block of code.
const maxCodeBytes = 600

var bodyless = regexp.MustCompile(`^\s*(?:export\s+)?(?:type|const|var|let|enum|interface|struct)\b`)

// codeLines returns the quoted lines of a block of code: the head of a function, or as many
// lines as fit.
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

// fenced returns code in a fenced block. The fence is longer than any in the code.
func fenced(code string) string {
	fence := "```"
	for strings.Contains(code, fence) {
		fence += "`"
	}
	return fence + "\n" + code + "\n" + fence
}

// write writes a piece with labels. List items and table rows are on their own lines. A heading
// above the piece precedes it if it may be the answer or leads in to code.
func (s *selection) write(p piece) string {
	var b strings.Builder
	in, highest := s.all[p.passage], len(s.kept)
	named := s.q.isNamedBy(in[0], in[p.start], s.kept[p.passage])
	labelled := p.start == 1 && named || in[p.start].headed
	if labelled {
		b.WriteString(Labelled(prompt.RoundLabels(plainLine(in[p.start-1].text), highest), p.passage+1, "\n") + "\n")
	}
	by := "" // author of the next sentence
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
			if !labelled { // otherwise the label before the block is enough
				label = fmt.Sprintf("\n[%d]", p.passage+1)
			}
			b.WriteString(fenced(codeLines(in[k])) + label + "\n")
			labelled = true
			continue
		}
		text, space, next := strings.TrimSpace(by+" "+s.writeLine(p, k)), "", ""
		by = ""
		if k+1 < p.end {
			space = spaceAfter(in[k], in[k+1], isItem(in[first(in, k)].text))
		}
		if space == " " {
			for _, c := range in[k+1 : p.end] { // they may close code or a formula that the sentence opens
				next += prompt.RoundLabels(plainLine(c.text), highest) + " "
			}
		}
		b.WriteString(labelledEach(prompt.RoundLabels(text, highest), p.passage+1, space+next) + space)
		labelled = true
	}
	return strings.TrimRight(b.String(), "\n")
}

// endsInList reports whether a piece ends with a list: two items, or one that continues a list.
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
		return "- " + s.q.writeRow(plainLine(text))
	case isRow(text):
		return s.q.writeRow(plainLine(text))
	case isItem(text) && (k > p.start || after(in, k) < p.end):
		mark := "-"
		if isStep(text) {
			mark, _, _ = strings.Cut(text, " ")
		}
		return mark + " " + plainLine(text)
	}
	return plainLine(text)
}

// spaceAfter returns the space between a sentence, which may be in a list item, and the next.
func spaceAfter(s, next sentence, item bool) string {
	row, toRow, toItem := isRow(s.text), isRow(next.text), isItem(next.text)
	switch {
	case s.reply != next.reply, !next.code && !toItem && (item && !next.joins || row && !toRow):
		return "\n\n" // otherwise Markdown makes it part of the item
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

// Labelled adds a label to a sentence, in a form that is read as a label regardless of the text
// before and after it.
func Labelled(text string, label int, after string) string {
	n := strconv.Itoa(label)
	// A line break ends code after a backtick and a formula after a dollar sign.
	for _, form := range []string{"[" + n + "]", "[" + n + "](id=" + n + ")", "\n[" + n + "](id=" + n + ")"} {
		if got := marker.Labels(text+form+after+"\n", label); len(got) == 1 && got[0] == label {
			return text + form
		}
	}
	// Inside an open code span the label would be code, so the text loses its backticks and bracketed numbers.
	return prompt.RoundLabels(strings.NewReplacer("`", "'", "~~~", "~").Replace(text), 1000) + "[" + n + "](id=" + n + ")"
}
