package extract

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"ibid/answer/prompt"
	"ibid/cite/marker"
	"ibid/ingest"
	"ibid/retrieve"
)

// How much is quoted.
const (
	maxQuoted     = 3    // pieces: sentences, or a lead-in with its list
	maxListBytes  = 1200 // of one that is quoted whole
	maxListed     = 64   // items of one list
	maxStepBytes  = 8000 // of one with numbers
	asksSame      = .6   // share of the question's weight in another question that says the same
	quotedWithin  = 3    // log-odds of the best sentence, for a further one
	sectionCovers = .15  // share of the question's weight in a heading whose section is quoted
	rowsWithin    = 1    // … for a row, which often differs from the best in a word, and after steps
)

// A Quote is a piece of an extractive answer: sentences of one passage, word
// for word, each with the label of the passage.
type Quote struct {
	Passage int // index of the kept passage; its label is one more
	Text    string
}

// Next finds the passage that follows another in its document, if one does.
type Next func(context.Context, retrieve.Passage) (p retrieve.Passage, ok bool, err error)

// Quote answers the question with sentences of the kept passages. A list that goes on
// in the next passage is quoted to its end: rest are such passages that were not kept,
// labelled after them; without next there are none. Without a result, the chance that the
// best of them is an answer is less than least, or not known: among a few passages in
// another language, one is near every question.
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
		return !d.query.demands() || slices.ContainsFunc(all[p.passage][p.start:p.end], d.query.givesKind)
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

// demands reports whether only something of the kind that is asked for answers.
func (q *query) demands() bool {
	return !q.foreign && q.needs.kind.demanded(q.text, q.language)
}

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

// maxContinued is in how many more passages a list is quoted.
const maxContinued = 8

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

// Best returns the n sentences of the kept passages that most likely answer, the best
// first, and the chance that the first of them does.
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

// asksSender reports whether the question asks who wrote something, or when it was sent.
func (q *query) asksSender() bool {
	kind := q.needs.kind
	return asksMail.MatchString(q.text) && kind != nil && (kind.named() || kind.name == "date")
}

// asksName matches a question that a heading may answer: "which knot ties …", "what is … called".
var asksName = regexp.MustCompile(`(?i)\b(?:which\b|what\b.*\b(?:called|names?)\b)`)

// A piece is a range of sentences of one passage that is quoted together.
type piece struct {
	passage    int
	start, end int  // sentences [start, end)
	continues  bool // the list of the piece before it
}

// ranking is the sentences that may be an answer, the best first.
func ranking(all [][]sentence) []*sentence {
	var ranked []*sentence
	for i := range all {
		for k := range all[i] {
			if all[i][k].answers() {
				ranked = append(ranked, &all[i][k])
			}
		}
	}
	slices.SortStableFunc(ranked, func(a, b *sentence) int { return cmp.Compare(b.score, a.score) })
	return ranked
}

// A chooser picks the pieces to quote.
type chooser struct {
	q       *query
	all     [][]sentence // of the kept passages
	best    []*sentence  // the ranking without outdated sentences
	chosen  []piece
	covered map[string]bool // terms of the chosen pieces
}

// choose picks what to quote: the best sentence first, with what belongs to
// it, then others that add to it. The pieces of one passage are next to each
// other, in the order of the text.
func choose(q *query, all [][]sentence) []piece {
	ranked := ranking(all)
	c := chooser{q: q, all: all, covered: map[string]bool{}}
	c.best = slices.DeleteFunc(slices.Clone(ranked), func(s *sentence) bool { return q.outdated(s, ranked) })
	for _, s := range c.best {
		if len(c.chosen) == maxQuoted || len(c.chosen) > 0 && s.score < c.best[0].score-quotedWithin {
			break
		}
		if s.reply && len(c.chosen) > 0 {
			continue // newer words are there
		}
		if s.together > 0 {
			c.chosen = together(all)
			break
		}
		e := expander{q, all[s.passage]}
		p := apart(c.chosen, e.widen(e.around(s)), s.index)
		if len(c.chosen) > 0 && !c.follows(p, s) {
			continue
		}
		if terms := termsOf(p, e.in); p.end > 0 && (len(c.chosen) == 0 || adds(c.covered, terms)) {
			c.chosen = append(c.chosen, p)
			maps.Copy(c.covered, terms)
		}
	}
	for _, p := range c.chosen { // what their pronouns refer to
		of := antecedent(all[p.passage], p.start)
		if subject := apart(c.chosen, piece{passage: p.passage, start: of, end: of + 1}, of); subject.end > 0 && all[p.passage][of].answers() {
			c.chosen = append(c.chosen, subject)
		}
	}
	return inOrder(c.chosen)
}

// together are the rows that are asked for together, in the order of their table.
func together(all [][]sentence) (rows []piece) {
	for _, s := range slices.Concat(all...) {
		if s.together > 0 && s.answers() {
			rows = append(rows, piece{passage: s.passage, start: s.index, end: s.index + 1})
		}
	}
	slices.SortFunc(rows, func(a, b piece) int {
		return cmp.Compare(all[a.passage][a.start].together, all[b.passage][b.start].together)
	})
	return rows
}

// follows reports whether the piece of a sentence may be quoted after the first piece,
// which is the best sentence's. A row, what comes after steps that are quoted
// whole or after the answer under the same question, and what says less of what is asked
// for, must have a term that no quote has yet.
func (c *chooser) follows(p piece, s *sentence) bool {
	first, best := c.chosen[0], c.best[0]
	whole := c.q.needs.kind.isWay() && first.end > first.start+1 || expander{c.q, c.all[first.passage]}.underSame(first.start)
	strict := whole || isRow(s.text)
	if strict && s.score < best.score-rowsWithin {
		return false
	}
	code := func(n need) bool { // as E11, of which the others are not
		return n.number && strings.ContainsFunc(n.stem, unicode.IsLetter) && best.terms[n.stem] && !s.terms[n.stem]
	}
	lacks := c.ofKind(p) < c.ofKind(first) || slices.ContainsFunc(c.q.needs.terms, code)
	completes := func(n need) bool { return s.terms[n.stem] && !c.covered[n.stem] }
	return !strict && !lacks || slices.ContainsFunc(c.q.needs.terms, completes)
}

// inOrder puts pieces of one passage next to each other, in the order of the text.
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

// outdated reports whether a later mail of the same thread, or a document whose name has a
// later year, has a sentence with all words that it has of a question without a year. The
// subject and the sentences around it count in one that has a word of the question, or a pronoun.
func (q *query) outdated(s *sentence, best []*sentence) bool {
	demanded := q.demands()
	other := func(s *sentence) float64 { return s.score - sentenceModel[sigKind]*s.signals[sigKind] }
	return s.about.letter.thread != "" && len(q.years) == 0 && slices.ContainsFunc(best, func(t *sentence) bool {
		from, to, covers := s.about.letter, t.about.letter, t.covers
		if q.needs.count(covers) > 0 || pronouns.anywhere(lowerWords(t.text)) {
			covers = t.window
		}
		return to.thread == from.thread && to.sent.After(from.sent) && !t.reply && other(t) >= other(s)-quotedWithin &&
			(demanded && q.givesKind(*t) || !demanded && t.signals[sigKind] >= s.signals[sigKind]) &&
			q.needs.count(s.covers.with(covers)) == q.needs.count(covers)
	})
}

// unsaid cuts pieces where a sentence has the words of one that is quoted before it.
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

// ofKind is how far a piece has something of the kind that is asked for: 1 for yes, 0 for
// no; 1 too where that cannot be told.
func (c *chooser) ofKind(p piece) (most float64) {
	if c.q.foreign || !c.q.needs.kind.tells() {
		return 1
	}
	for _, s := range c.all[p.passage][p.start:p.end] {
		most = max(most, s.signals[sigKind])
	}
	return most
}

// adds reports whether a third of a piece's terms are not in the quoted ones.
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

// squeeze lowers s, trims it and makes every run of white space one space.
func squeeze(s string) string {
	return strings.Join(strings.Fields(strings.ToLower(s)), " ")
}

// apart returns the part of a piece around sentence k that has not been chosen; nothing
// where k itself has. What k refers back to may have been.
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

// An expander finds what is quoted with a sentence of a passage.
type expander struct {
	q  *query
	in []sentence // of the passage
}

// around returns the piece that a sentence belongs to: the answer that begins
// after a question, a lead-in with its list, a list item with its lead-in, the
// sentence that a pronoun refers to.
func (e expander) around(s *sentence) piece {
	in, p := e.in, piece{passage: s.passage, start: s.index, end: s.index + 1}
	if s.declares {
		if whole := declaration(in, p); whole.end > 0 {
			return whole
		}
	}
	switch {
	case len(lowerWords(s.text)) == 1 && verdict.MatchString(plainLine(s.text)): // with its reason, or its question
		if p.end < len(in) && in[p.end].joins && in[p.end].answers() {
			p.end++
		} else if p.start > 0 {
			p.start--
		}
		return p
	case endsOpen(s.text):
		p.end = endOfList(in, p.end)
	case isItem(in[first(in, s.index)].text):
		p.start, p.end = e.list(s.index)
	default:
		for back := 1; back <= 2 && s.index-back >= 0; back++ {
			if in[s.index-back].asks {
				p.start = s.index - back + 1
			}
		}
		for in[p.start].other && p.start < s.index { // a yes or no to another question
			p.start++
		}
	}
	for p.start > 0 && p.end-p.start < 3 && refersBack(in[p.start].text) && in[p.start-1].answers() {
		p.start--
	}
	return p
}

// widen widens a piece to the whole section that it is in, where the question asks
// for a way to do something: the steps, the command and what to do after it.
func (e expander) widen(p piece) piece {
	in := e.in
	start, end := section(in, p.start)
	if !e.q.needs.kind.isWay() && !e.underSame(p.start) || in[p.start].declares {
		return p
	}
	headed := in[p.start].inAsked || start > 0 && e.q.needs.near(in[start-1].covers) >= sectionCovers
	licensed := slices.ContainsFunc(in[start:end], func(s sentence) bool { return s.licensed })
	if headed && !licensed && size(in, start, end) <= maxListBytes {
		p.start, p.end = start, end
	}
	return p
}

// underSame reports whether sentence k is in the section under a question like the one asked.
func (e expander) underSame(k int) bool {
	start, _ := section(e.in, k)
	return start > 0 && e.in[start-1].asks && e.q.needs.near(e.in[start-1].covers) >= asksSame
}

// declaration widens a sentence of source code to the declaration with its whole
// comment. It is empty where that is long.
func declaration(in []sentence, p piece) piece {
	whole, bytes := p, 0
	for whole.start > 0 && in[whole.start-1].answers() && !in[whole.start-1].code {
		whole.start--
	}
	headed := whole.start > 0 && in[whole.start-1].code && endsOpen(in[whole.start-1].text) // the comment is within it
	for whole.end < len(in) && !in[whole.end-1].code && !(headed && in[whole.end].code) && !in[whole.end].title &&
		(in[whole.end].answers() || in[whole.end].bare) {
		whole.end++
	}
	for k := whole.start; k < whole.end && !in[k].code; k++ {
		bytes += len(in[k].text)
	}
	if headed {
		whole.start--
	}
	if bytes > maxListBytes {
		return piece{}
	}
	return whole
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

// refersBack reports whether a sentence begins with a pronoun, also after a preposition or
// a short phrase, so that only the one before it tells what it is about.
func refersBack(s string) bool {
	s = plainLine(s)
	words := lowerWords(s)
	return pronouns.at(words, 0) || wordsOf("place").at(words, 0) && pronouns.at(words, 1) || pronounForm.MatchString(s)
}

// pronounForm matches a pronoun after a verb, as in "Gebaut wurde es von …", and one that is
// an article too, before a verb of the past, as in "La fundó …", or where no article is, as in "Lo dirige …".
// Its last alternative is a pronoun after a time, as in "During the war he …" and "In May 1903 she …".
var pronounForm = regexp.MustCompile(`^(?i:\pL+ (?:wird|wurden?|werden|ist|sind|war|waren|hat|haben|werd|is|was) (?:er|sie|es|ihn|hij|zij|het)\b|` +
	`(?:se|lo|la|los|las|le|les) \pL+(?:[óòì]|aron|ieron|aba|aban)(?:[^\pL]|$)|` +
	`lo (?:[^szgpxy\P{L}]|s[aeiouàèéìòùáíóú]|g[^n\P{L}]|p[^s\P{L}]))|` +
	`^(?:In|On|At|By|Since|After|Before|From|Until|During|For) (?:(?:\d+|\p{Ll}+|` + months + `),? ){1,4}(?:he|she|they)\b`)

// months are the English names of the months.
const months = `January|February|March|April|May|June|July|August|September|October|November|December`

var pronouns = phrases(words(`he she it they him her them his hers its their theirs this that these those
	er sie es ihn ihm ihr ihnen sein seine seinen seinem seiner ihre ihren ihrem ihrer deren dessen dieser diese dieses diesen diesem
	dort dabei dafür dagegen damit danach daran darauf daraus darin darüber davon davor dazu
	il elle ils elles cela ceci ce cet cette ces celui-ci celle-ci son sa ses leur leurs lui
	él ella ellos ellas su sus este esta esto estos estas ese esa eso esos esas aquel aquella allí ahí fue fueron
	он она оно они его её ее ему ей им их него неё нее нему ней ним нём нем них ими там туда здесь
	это этот эта эти этого этой этому этим этом эту этих
	hij zij dit deze zijn haar hun daar hem
	lui lei essi loro suo sua suoi sue questo questa questi queste ciò fu furono
	ele ela eles elas dele dela seu seus suas isso isto esse essa este esta foi foram
	هو هي هم هذا هذه ذلك تلك वह वे यह ये इस इसका इसकी इसके इसे उस उसका उसकी उसके उसे इनका उनका उन्होंने उसने 它 他 她 这 那 此 これ それ この その 彼`))

// list returns the list that an item belongs to, with its lead-in, or the item
// alone where the list is long or its items are statements of their own. Steps are quoted
// whole, unless a fact is asked for, as in "how long".
func (e expander) list(item int) (start, end int) {
	in := e.in
	item = first(in, item)
	start = item
	for start > 0 && isItem(in[first(in, start-1)].text) {
		start = first(in, start-1)
	}
	items := 0
	for end = start; end < len(in) && isItem(in[end].text); items++ {
		end = after(in, end)
	}
	led := start > 0 && endsOpen(in[start-1].text)
	fact := e.q.needs.kind != nil && !e.q.needs.kind.isWay()
	stated := !led && (fact || !isStep(in[item].text)) && strings.HasSuffix(strings.TrimSpace(in[after(in, item)-1].text), ".")
	most := maxListBytes
	if isStep(in[item].text) {
		most = maxStepBytes
	}
	if items > maxListed || size(in, start, end) > most || stated {
		return item, after(in, item)
	}
	if led {
		start--
	}
	return start, end
}

// endOfList returns the end of the list that begins at k.
func endOfList(in []sentence, k int) int {
	end := k
	for items := 0; end < len(in) && items < maxListed && isItem(in[end].text); items++ {
		end = after(in, end)
	}
	if end == k && k < len(in) { // a lead-in to an ordinary sentence
		end++
	}
	return end
}

// first and after return where the paragraph or item that a sentence is in begins,
// and where it has ended.
func first(in []sentence, k int) int {
	for in[k].joins {
		k--
	}
	return k
}

func after(in []sentence, k int) int {
	for k++; k < len(in) && in[k].joins; k++ {
	}
	return k
}

func size(in []sentence, start, end int) int { return in[end-1].span.End - in[start].span.Start }

func isStep(s string) bool {
	s = strings.TrimSpace(s)
	return isItem(s) && unicode.IsDigit(rune(s[0]))
}

func endsOpen(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasSuffix(s, ":") || strings.HasSuffix(s, "：")
}

func isItem(s string) bool { return bullet.MatchString(strings.TrimSpace(s)) }

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

// isNamedBy reports whether the question asks which one thing of a kind it is, as in "which
// knot ties …", and a heading may be its name: it is in a document or section about that
// kind ("Knots"), is short, is not in the question's words, asks nothing, and the sentence under
// it has no word for the kind.
func (q *query) isNamedBy(heading, s sentence, p retrieve.Passage) bool {
	words := lowerWords(heading.text)
	asks := slices.ContainsFunc(kinds, func(k kind) bool { return k.opens.at(words, 0) })
	if k := q.needs.kind; !asksName.MatchString(q.text) || k != nil && k.name != "any" || !heading.title ||
		asks || isAsking(heading.text) || squeeze(heading.text) == squeeze(p.Title) ||
		len(heading.terms) > 6 || q.precision(heading.terms) >= .9 {
		return false
	}
	asked := slices.IndexFunc(q.needs.terms, func(n need) bool { return !n.asks })
	above := q.coverageOf(termSet(p.Title + "\n" + p.Heading))
	return asked >= 0 && s.covers[asked] < 1 && above[asked] == 1
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
