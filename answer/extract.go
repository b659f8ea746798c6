package answer

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/cite/marker"
	"ibid/ingest"
	"ibid/retrieve"
)

// How much is quoted.
const (
	maxQuoted    = 4  // pieces: sentences, or a lead-in with its list
	maxListed    = 8  // items of one list
	quotedWithin = .8 // log-odds of the best sentence, for a further one
)

// extract answers without a model: with the sentences that hold the answer,
// word for word and each with its label, or not at all.
func (r *run) extract(ctx context.Context, kept, found []retrieve.Passage) error {
	all, err := r.sentences(ctx, kept)
	if err != nil {
		return err
	}
	pieces := r.choose(all)
	if len(pieces) == 0 || r.answerable(kept, all) < answerableAt {
		r.unanswered(noAnswer, kept)
		return nil
	}
	if !r.emit(Kept{Passages: kept}) {
		return nil
	}
	asked := spaced(r.asked)
	naming := strings.Contains(asked, " which ") || strings.Contains(asked, " what ")
	cited := map[int]bool{}
	for i, p := range pieces {
		cited[p.passage] = true
		if !r.emit(Text{Text: quote(p, all[p.passage], naming && !titled(all[p.passage], kept[p.passage]), i == len(pieces)-1)}) {
			return nil
		}
	}
	r.usage.Used = len(cited)
	r.finish()
	return nil
}

// A piece is a range of sentences of one passage that is quoted together.
type piece struct {
	passage    int
	start, end int // sentences [start, end)
	score      float64
}

// choose picks what to quote: the best sentence first, with what belongs to
// it, then others that add to it. Pieces of one passage stand together in the
// order of the text.
func (r *run) choose(all [][]sentence) []piece {
	var ranked []*sentence
	for i := range all {
		for k := range all[i] {
			if all[i][k].fits[sigAsks] == 0 || followed(all[i], k) {
				ranked = append(ranked, &all[i][k])
			}
		}
	}
	slices.SortStableFunc(ranked, func(a, b *sentence) int { return cmp.Compare(b.score, a.score) })
	var chosen []piece
	said := map[string]bool{}
	covered := map[string]bool{}
	for _, s := range ranked {
		if len(chosen) == maxQuoted {
			break
		}
		if len(chosen) > 0 && s.score < chosen[0].score-quotedWithin {
			break
		}
		p := around(all[s.passage], s)
		if overlaps(chosen, p) {
			continue
		}
		text := strings.Join(piecesText(p, all[p.passage]), " ")
		if said[squeeze(text)] {
			continue
		}
		// A further sentence must tell of something the quoted ones do not.
		if len(chosen) > 0 && !r.adds(chosen, covered, p, all[p.passage]) {
			continue
		}
		said[squeeze(text)] = true
		for k := p.start; k < p.end; k++ {
			for t := range all[p.passage][k].terms {
				covered[t] = true
			}
		}
		if len(chosen) == 0 {
			p = underFact(all[p.passage], p)
		}
		chosen = append(chosen, p)
	}
	if len(chosen) == 0 {
		return nil
	}
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

// underFact adds to a piece the heading over it, where that states what is asked
// for and the piece does not: it has more of the question's words, and a number.
func underFact(in []sentence, p piece) piece {
	if p.start == 0 {
		return p
	}
	over := in[p.start-1]
	if !over.title || isAsking(over.text) || over.fits[sigPrecise] == 1 || !strings.ContainsFunc(over.text, unicode.IsDigit) {
		return p
	}
	for _, s := range in[p.start:p.end] {
		if s.fits[sigExact] >= over.fits[sigExact] || s.fits[sigKind] > over.fits[sigKind] {
			return p
		}
	}
	p.start--
	return p
}

// adds tells whether a further piece is worth quoting: it covers a term of the
// question that the quoted ones do not, or it stands by the first and says
// mostly new things.
func (r *run) adds(chosen []piece, covered map[string]bool, p piece, in []sentence) bool {
	typical := 0.0 // what a term of the question weighs on average
	for _, n := range r.reading.needs.terms {
		typical += n.weight / float64(len(r.reading.needs.terms))
	}
	fresh, total := 0, 0
	for k := p.start; k < p.end; k++ {
		for t := range in[k].terms {
			total++
			if !covered[t] {
				fresh++
			}
		}
		for _, n := range r.reading.needs.terms {
			if in[k].terms[n.stem] && !covered[n.stem] && n.weight >= typical {
				return true
			}
		}
	}
	first := chosen[0]
	return p.passage == first.passage && p.start <= first.end && first.start <= p.end && fresh*2 > total
}

func overlaps(chosen []piece, p piece) bool {
	for _, c := range chosen {
		if c.passage == p.passage && c.start < p.end && p.start < c.end {
			return true
		}
	}
	return false
}

// followed tells whether a question stands before something that may be its answer.
func followed(in []sentence, k int) bool { return k+1 < len(in) && in[k+1].fits[sigAsks] == 0 }

// around gives the piece that a sentence belongs to: a question with the
// sentences after it, a lead-in with its list, a list item with its lead-in.
func around(in []sentence, s *sentence) piece {
	p := piece{passage: s.passage, start: s.index, end: s.index + 1, score: s.score}
	switch {
	case s.fits[sigAsks] == 1:
		p.start++
		p.end = p.start
		for p.end < len(in) && p.end-p.start < 2 && in[p.end].fits[sigAsks] == 0 {
			p.end++
		}
		if isItem(in[p.start].text) {
			p.end = list(in, p.start)
		} else if endsOpen(in[p.end-1].text) {
			p.end = list(in, p.end)
		}
	case s.goesOn || s.index > 0 && in[s.index-1].goesOn:
		for p.start > 0 && in[p.start-1].goesOn {
			p.start--
		}
		for p.end < len(in) && in[p.end-1].goesOn {
			p.end++
		}
	case endsOpen(s.text):
		p.end = list(in, p.end)
	case isItem(s.text):
		for k := s.index - 1; k >= 0 && s.index-k <= maxListed; k-- {
			if endsOpen(in[k].text) {
				p.start = k
				p.end = max(p.end, list(in, k+1))
				break
			}
			if !isItem(in[k].text) {
				break
			}
		}
	}
	return p
}

// list gives the end of the list that begins at k.
func list(in []sentence, k int) int {
	end := k
	for end < len(in) && end-k < maxListed && isItem(in[end].text) {
		end++
	}
	if end == k && k < len(in) { // a lead-in to an ordinary sentence
		end++
	}
	return end
}

func endsOpen(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasSuffix(s, ":") || strings.HasSuffix(s, "：")
}

func isItem(s string) bool {
	_, ok := cutBullet(strings.TrimSpace(s))
	return ok
}

func piecesText(p piece, in []sentence) []string {
	var out []string
	for k := p.start; k < p.end; k++ {
		out = append(out, plainLine(in[k].text))
	}
	return out
}

// quote writes a piece with labels. Lists and rows of tables get lines of
// their own. Where the question asks for the name of something (naming), a
// title over the piece may be the answer and goes before it.
func quote(p piece, in []sentence, naming, last bool) string {
	var b strings.Builder
	if p.start == 1 && naming && names(in[0]) {
		b.WriteString(roundLabels(plainLine(in[0].text)) + "\n")
	}
	for k := p.start; k < p.end; k++ {
		text := strings.TrimSpace(in[k].text)
		if isItem(text) && p.end-p.start > 1 {
			text = "- " + plainLine(text)
		} else {
			text = plainLine(text)
		}
		// Lines that carry one another on are joined, and the labels stand
		// behind the sentences in them.
		for in[k].goesOn && k+1 < p.end {
			k++
			more := plainLine(in[k].text)
			if first, _ := utf8.DecodeRuneInString(more); !hyphenated(text) || !unicode.IsLetter(first) {
				text += " "
			}
			text += more
		}
		after, next := " ", ""
		switch {
		case k+1 == p.end && last:
			after = ""
		case in[k].title, isRow(text), isItem(text), isEntry(text), endsOpen(text) && k+1 < p.end && isItem(in[k+1].text):
			after = "\n"
		case k+1 == p.end:
			after = "\n\n"
		default:
			next = roundLabels(plainLine(in[k+1].text))
		}
		b.WriteString(labelledEach(roundLabels(text), p.passage+1, after+next) + after)
	}
	return b.String()
}

// titled tells whether a passage begins with the title of its document.
func titled(in []sentence, p retrieve.Passage) bool {
	return squeeze(in[0].text) == squeeze(p.Title)
}

// names tells whether a heading names what the text under it is about, in few
// words and in others than the question's: it may be the answer itself.
func names(heading sentence) bool {
	if !heading.title || isAsking(heading.text) || len(heading.terms) > 6 {
		return false
	}
	return heading.fits[sigPrecise] < .9
}

// labelledEach puts a label behind each sentence of a line.
func labelledEach(line string, label int, behind string) string {
	spans := slices.Collect(ingest.Sentences(line))
	if len(spans) < 2 {
		return labelled(line, label, behind)
	}
	var b strings.Builder
	start := 0
	for i, s := range spans {
		next := behind
		if i+1 < len(spans) {
			next = line[s.End:]
		}
		b.WriteString(line[start:s.Start] + labelled(line[s.Start:s.End], label, next))
		start = s.End
	}
	return b.String()
}

// labelled puts a label behind a sentence in a form that is sure to be read
// as one, whatever the sentence ends with and whatever stands behind it.
func labelled(text string, label int, behind string) string {
	n := strconv.Itoa(label)
	for _, form := range []string{"[" + n + "]", "[" + n + "](id=" + n + ")"} {
		if got := marker.Labels(text+form+behind+"\n", label); len(got) == 1 && got[0] == label {
			return text + form
		}
	}
	// An open backtick would take the label for code.
	return strings.NewReplacer("`", "'", "~~~", "~").Replace(text) + "[" + n + "](id=" + n + ")"
}
