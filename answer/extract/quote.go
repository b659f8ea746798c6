package extract

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"unicode"

	"ibid/retrieve"
)

// Limits of an answer.
const (
	maxQuoted     = 3    // pieces in an answer
	maxListBytes  = 1200 // of a list, section or comment that is quoted whole
	maxListed     = 64   // items of a list
	maxStepBytes  = 8000 // of a numbered list
	asksSame      = .6   // share of the question's weight in a text that asks the same
	quotedWithin  = 3    // log-odds by which a further sentence may score less than the best
	sectionCovers = .15  // share of the question's weight in the heading of a section that is quoted
	rowsWithin    = 1    // quotedWithin for a row, which may differ from the best in one word, and after steps
)

// A Quote is a piece of an extractive answer: sentences of one passage, word for word, each
// followed by its label.
type Quote struct {
	Passage int // index of the kept passage; its label is one more
	Text    string
}

// Next returns the passage after another one in its document, if any.
type Next func(context.Context, retrieve.Passage) (p retrieve.Passage, ok bool, err error)

// Quote answers the question with sentences of the kept passages. If a list continues in a
// passage that next returns, Quote adds its items too; rest are the passages added in this way,
// labelled after kept. next may be nil. Quote returns nothing if the chance that its best
// sentence answers is below least. It also does so for a question in another language while
// parts of the library have no vectors: one of a few passages is near any question.
func (d *Reading) Quote(ctx context.Context, kept []retrieve.Passage, least float64, next Next) (
	quotes []Quote, rest []retrieve.Passage, err error) {
	if d.foreign != nil && d.partly {
		return nil, nil, nil
	}
	all, err := d.sentences(ctx, kept)
	if err != nil {
		return nil, nil, err
	}
	best, pieces := ranking(all), unsaid(choose(d.query, all), all)
	has := func(p piece) bool {
		return !d.query.demandsKind() || slices.ContainsFunc(all[p.passage][p.start:p.end], d.query.givesKind)
	}
	if len(pieces) == 0 || d.confidence(best) < least || !slices.ContainsFunc(pieces, has) {
		return nil, nil, nil
	}
	s := selection{d.query, slices.Clip(kept), all, pieces}
	if next != nil {
		if err := s.continueLists(ctx, next); err != nil {
			return nil, nil, err
		}
	}
	return s.quotes(), s.kept[len(kept):], nil
}

// Best returns the n sentences of the kept passages that most likely answer, best first, and the
// chance of the first.
func (d *Reading) Best(ctx context.Context, kept []retrieve.Passage, n int) (best []string, chance float64, err error) {
	all, err := d.sentences(ctx, kept)
	ranked := ranking(all)
	if err != nil || len(ranked) == 0 {
		return nil, 0, err
	}
	for _, s := range ranked[:min(n, len(ranked))] {
		best = append(best, plainLine(s.text))
	}
	return best, d.confidence(ranked), nil
}

// A piece is a range of sentences of one passage that are quoted together.
type piece struct {
	passage    int
	start, end int  // sentences [start, end)
	continues  bool // it continues the list of the previous piece
}

// A chooser picks the pieces to quote.
type chooser struct {
	q       *query
	all     [][]sentence // of the kept passages
	best    []*sentence  // without outdated ones, best first
	chosen  []piece
	covered map[string]bool // terms of the chosen pieces
}

// choose picks the best sentence with its surroundings, then others that add to it. The pieces
// of a passage are consecutive and in the order of the text.
func choose(q *query, all [][]sentence) []piece {
	ranked := ranking(all)
	c := chooser{q: q, all: all, covered: map[string]bool{}}
	c.best = slices.DeleteFunc(slices.Clone(ranked), func(s *sentence) bool { return q.outdated(s, ranked) })
	for _, s := range c.best {
		if len(c.chosen) == maxQuoted || len(c.chosen) > 0 && s.score < c.best[0].score-quotedWithin {
			break
		}
		if s.reply && len(c.chosen) > 0 {
			continue // the mail itself is quoted already
		}
		if s.together > 0 {
			c.chosen = together(all)
			break
		}
		if rows := c.findTiedRows(s); len(c.chosen) == 0 && len(rows) > 1 {
			c.chosen = rows
			break
		}
		e := expander{q, all[s.passage]}
		p := apart(c.chosen, e.widen(e.pieceAround(s)), s.index)
		if len(c.chosen) > 0 && !c.mayFollow(p, s) {
			continue
		}
		if terms := termsOf(p, e.in); p.end > 0 && (len(c.chosen) == 0 || adds(c.covered, terms)) {
			c.chosen = append(c.chosen, p)
			maps.Copy(c.covered, terms)
		}
	}
	for _, p := range c.chosen { // add the sentences that their pronouns refer to
		of := antecedent(all[p.passage], p.start)
		if subject := apart(c.chosen, piece{passage: p.passage, start: of, end: of + 1}, of); subject.end > 0 && all[p.passage][of].mayAnswer() {
			c.chosen = append(c.chosen, subject)
		}
	}
	return inOrder(c.chosen)
}

// ranking returns the sentences that may answer, best first.
func ranking(all [][]sentence) []*sentence {
	var ranked []*sentence
	for i := range all {
		for k := range all[i] {
			if all[i][k].mayAnswer() {
				ranked = append(ranked, &all[i][k])
			}
		}
	}
	slices.SortStableFunc(ranked, func(a, b *sentence) int { return cmp.Compare(b.score, a.score) })
	return ranked
}

// together returns the rows that are asked for together, in the order of their table.
func together(all [][]sentence) (rows []piece) {
	for _, s := range slices.Concat(all...) {
		if s.together > 0 && s.mayAnswer() {
			rows = append(rows, piece{passage: s.passage, start: s.index, end: s.index + 1})
		}
	}
	slices.SortFunc(rows, func(a, b piece) int {
		return cmp.Compare(all[a.passage][a.start].together, all[b.passage][b.start].together)
	})
	return rows
}

// findTiedRows returns the rows of row's table that have the same words of the question in their cells
// and nearly the same score, or nil if row has no such words.
func (c *chooser) findTiedRows(row *sentence) (rows []piece) {
	read := func(s *sentence) (columns, values string) {
		for _, cell := range cellsOf(s.text) {
			columns, values = columns+"\n"+cell.name, values+"\n"+cell.value
		}
		return columns, strings.Join(c.q.needs.askedOf(termSet(values)), " ")
	}
	columns, has := read(row)
	for _, s := range c.best {
		if has == "" || !isRow(s.text) || s.about.source != row.about.source || s.score < row.score-rowsWithin || len(rows) == maxRows {
			continue
		}
		if names, also := read(s); names == columns && also == has {
			rows = append(rows, piece{passage: s.passage, start: s.index, end: s.index + 1})
		}
	}
	return rows
}

// mayFollow reports whether the piece of a sentence may be quoted after the first piece. It must
// have a term of the question that no piece has yet if it is a row, if it comes after steps or
// an answer under the same question, or if it says less of what is asked. In another document, it
// must be topical if the best sentence is.
func (c *chooser) mayFollow(p piece, s *sentence) bool {
	first, best := c.chosen[0], c.best[0]
	topical := func(s *sentence) bool { return c.q.needs.isTopical(s.about.head.union(s.covers)) }
	if s.about.source != best.about.source && topical(best) && !topical(s) {
		return false
	}
	whole := c.q.needs.kind.is("way") && first.end > first.start+1 || expander{c.q, c.all[first.passage]}.underSame(first.start)
	strict := whole || isRow(s.text)
	if strict && s.score < best.score-rowsWithin {
		return false
	}
	code := func(n need) bool { // the best has a code such as E11, and this one lacks it
		return n.number && strings.ContainsFunc(n.stem, unicode.IsLetter) && best.terms[n.stem] && !s.terms[n.stem]
	}
	lacks := c.rateKind(p) < c.rateKind(first) || slices.ContainsFunc(c.q.needs.terms, code)
	completes := func(n need) bool { return s.terms[n.stem] && !c.covered[n.stem] }
	return !strict && !lacks || slices.ContainsFunc(c.q.needs.terms, completes)
}

// inOrder moves the pieces of each passage together, in the order of the text.
func inOrder(chosen []piece) []piece {
	order := map[int]int{}
	for i, p := range chosen {
		if _, ok := order[p.passage]; !ok {
			order[p.passage] = i
		}
	}
	slices.SortStableFunc(chosen, func(a, b piece) int {
		return cmp.Or(cmp.Compare(order[a.passage], order[b.passage]), cmp.Compare(a.start, b.start))
	})
	return chosen
}

// outdated reports whether a later mail of the same thread, or a document with a later year in
// its name, has all the words of the question that a sentence has. It is false if the question
// names a year. Headings and neighbours of the later sentence count if it has a word of the
// question or a pronoun.
func (q *query) outdated(s *sentence, best []*sentence) bool {
	demanded := q.demandsKind()
	other := func(s *sentence) float64 { return s.score - sentenceModel[sigKind]*s.signals[sigKind] }
	return s.about.letter.thread != "" && len(q.years) == 0 && slices.ContainsFunc(best, func(t *sentence) bool {
		from, to, covers := s.about.letter, t.about.letter, t.covers
		if q.needs.count(covers) > 0 || pronouns.occurIn(lowerWords(t.text)) {
			covers = t.window
		}
		return to.thread == from.thread && to.sent.After(from.sent) && !t.reply && other(t) >= other(s)-quotedWithin &&
			(demanded && q.givesKind(*t) || !demanded && t.signals[sigKind] >= s.signals[sigKind]) &&
			q.needs.count(s.covers.union(covers)) == q.needs.count(covers)
	})
}

// unsaid removes sentences that repeat a quoted one.
func unsaid(pieces []piece, all [][]sentence) (cut []piece) {
	said := map[string]bool{}
	for _, p := range pieces {
		start := p.start
		for k := p.start; k < p.end; k++ {
			words := strings.Join(lowerWords(all[p.passage][k].text), " ")
			again := said[words] && strings.Count(words, " ") >= 4
			if said[words] = true; !again {
				continue
			}
			if k > start {
				cut = append(cut, piece{passage: p.passage, start: start, end: k})
			}
			start = k + 1
		}
		if start < p.end {
			cut = append(cut, piece{passage: p.passage, start: start, end: p.end})
		}
	}
	return cut
}

// rateKind returns how far a piece has something of the asked kind: 1 for yes, 0 for no, and 1 if
// unknown.
func (c *chooser) rateKind(p piece) (most float64) {
	if c.q.foreign || !c.q.needs.kind.isDistinctive() {
		return 1
	}
	for _, s := range c.all[p.passage][p.start:p.end] {
		most = max(most, s.signals[sigKind])
	}
	return most
}

// adds reports whether at least a third of the terms are not covered.
func adds(covered, terms map[string]bool) bool {
	fresh := maps.Clone(terms)
	maps.DeleteFunc(fresh, func(t string, _ bool) bool { return covered[t] })
	return len(fresh)*3 >= len(terms)
}

func termsOf(p piece, in []sentence) map[string]bool {
	terms := map[string]bool{}
	for k := p.start; k < p.end; k++ {
		maps.Copy(terms, in[k].terms)
	}
	return terms
}

// apart returns the part of a piece around sentence k that is not chosen yet, or an empty piece
// if k is chosen.
func apart(chosen []piece, p piece, k int) piece {
	for _, c := range chosen {
		switch {
		case c.passage != p.passage:
		case c.end <= k:
			p.start = max(p.start, c.end)
		case c.start > k:
			p.end = min(p.end, c.start)
		default:
			return piece{}
		}
	}
	return p
}
