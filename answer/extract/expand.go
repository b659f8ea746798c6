package extract

import (
	"slices"
	"strings"
)

// An expander finds the sentences of a passage that are quoted together with a given one.
type expander struct {
	q  *query
	in []sentence // of the passage
}

// pieceAround returns the piece that a sentence belongs to: the answer that begins after a question,
// a list with its lead-in, or the sentence with the one that its pronoun refers to.
func (e expander) pieceAround(s *sentence) piece {
	in, p := e.in, piece{passage: s.passage, start: s.index, end: s.index + 1}
	if s.declares {
		if whole := declaration(in, p); whole.end > 0 {
			return whole
		}
	}
	switch {
	case len(lowerWords(s.text)) == 1 && verdict.MatchString(plainLine(s.text)): // "Yes" needs its reason or its question
		if p.end < len(in) && in[p.end].joins && in[p.end].mayAnswer() {
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
		for in[p.start].other && p.start < s.index { // a yes or no that answers another question
			p.start++
		}
	}
	for p.start > 0 && p.end-p.start < 3 && refersBack(in[p.start].text) && in[p.start-1].mayAnswer() {
		p.start--
	}
	return p
}

// widen widens a piece to its section if the question asks how to do something, or if the
// section answers a question like the one asked.
func (e expander) widen(p piece) piece {
	in := e.in
	start, end := section(in, p.start)
	if !e.q.needs.kind.is("way") && !e.underSame(p.start) || in[p.start].declares {
		return p
	}
	headed := in[p.start].inAsked || start > 0 && e.q.needs.nearShare(in[start-1].covers) >= sectionCovers
	licensed := slices.ContainsFunc(in[start:end], func(s sentence) bool { return s.licensed })
	if headed && !licensed && size(in, start, end) <= maxListBytes {
		p.start, p.end = start, end
	}
	return p
}

// underSame reports whether sentence k is in the section under a question like the one asked.
func (e expander) underSame(k int) bool {
	start, _ := section(e.in, k)
	return start > 0 && e.in[start-1].asks && e.q.needs.nearShare(e.in[start-1].covers) >= asksSame
}

// declaration widens a sentence of source code to its declaration and comment. It returns an
// empty piece if the comment is too long.
func declaration(in []sentence, p piece) piece {
	whole, bytes := p, 0
	for whole.start > 0 && in[whole.start-1].mayAnswer() && !in[whole.start-1].code {
		whole.start--
	}
	headed := whole.start > 0 && in[whole.start-1].code && endsOpen(in[whole.start-1].text) // the comment is inside the declaration
	for whole.end < len(in) && !in[whole.end-1].code && !(headed && in[whole.end].code) && !in[whole.end].title &&
		(in[whole.end].mayAnswer() || in[whole.end].bare) {
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

// list returns the list of an item with its lead-in. It returns the item alone if the list is
// long, or has no lead-in and its items are statements; steps are statements only if the
// question asks for a fact, such as "how long".
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
	fact := e.q.needs.kind != nil && !e.q.needs.kind.is("way")
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
	if end == k && k < len(in) { // no list follows: take the next sentence
		end++
	}
	return end
}
