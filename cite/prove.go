package cite

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"ibid/retrieve"
)

// sentence gives the quotes of a sentence that has ended.
func (n *numbering) sentence(s span, yield yielder) bool {
	plain := n.plain(s)
	claim := withoutLead(plain)
	referred := len(plain) < s.end-s.start
	switch words := points(claim); {
	case n.last.end > 0 && words > 0 && !referred:
		// The heading of a list of sources says nothing of its own, and the list
		// is that of the sentence above.
		n.listing = true
		return true
	case n.last.end > 0 && referred && (words >= 0 || n.listing && n.listed(s)):
		// References on a line or in a list item of their own belong to the
		// sentence before them.
		s.start = n.last.start
	default:
		if !n.settle(yield) {
			return false
		}
		n.claim, n.found, n.labels = withoutAsides(claim), make(map[int]Quote), nil
		prose := n.without(n.rewriter.code, s)
		n.states = isClaim(prose) || len(prose) == s.end-s.start && isShortClaim(prose, plain)
		n.best = ""
		n.listing = false
	}
	n.last = s

	var cited []use
	for len(n.pending) > 0 && n.pending[0].start <= s.end {
		u := n.pending[0]
		if u.start == s.end && u.end > u.start {
			break // printed directly behind it, at the start of the next
		}
		n.pending = n.pending[1:]
		if !slices.ContainsFunc(cited, func(v use) bool { return v.id == u.id }) {
			cited = append(cited, u)
		}
	}
	n.find(cited)
	for _, u := range cited {
		c := n.citation(u, s)
		if n.best == "" || c.Verdict != VerdictWeak {
			n.best = c.Verdict
		}
		if !yield(Quoted{c}, nil) {
			return false
		}
	}
	return true
}

// listed says whether a sentence is an entry of a list of sources: a line that
// begins or ends with a reference, and is no sentence with a full stop.
func (n *numbering) listed(s span) bool {
	before := bytes.TrimRight(n.text[:s.start], " \t>")
	if len(before) > 0 && before[len(before)-1] != '\n' {
		return false
	}
	plain := strings.TrimRight(n.plain(s), " ")
	if r, _ := utf8.DecodeLastRuneInString(plain); isStop(r) {
		return false
	}
	begin := s.end - len(withoutLead(string(n.text[s.start:s.end])))
	i, _ := slices.BinarySearchFunc(n.refs, s.end, func(r span, at int) int { return r.start - at })
	return refAt(n.refs, begin) > 0 || i > 0 && n.refs[i-1].end == s.end
}

// find looks for the quotes of the last sentence. Where one of several is weak,
// those that bear the sentence out between them are not.
func (n *numbering) find(cited []use) {
	known := len(n.labels)
	weak := false
	for _, u := range cited {
		q, ok := n.found[u.id]
		if !ok {
			q = n.options.Find(n.claim, n.passages[u.id-1])
			n.found[u.id] = q
			n.labels = append(n.labels, u.id)
		}
		weak = weak || q.Verdict == VerdictWeak
	}
	if !weak || len(n.labels) == known || len(n.labels) < 2 {
		return
	}
	passages := make([]retrieve.Passage, len(n.labels))
	for i, id := range n.labels {
		passages[i] = n.passages[id-1]
	}
	together := n.options.Join(n.claim, passages)
	if together.Support < Supported {
		return
	}
	n.best = VerdictSupported
	for i, id := range n.labels {
		if q := n.found[id]; together.Parts[i] && q.Verdict == VerdictWeak {
			q.Support, q.Verdict = together.Support, VerdictSupported
			n.found[id] = q
		}
	}
}

// settle tells of the last sentence when it states something that nothing
// cited bears out. It waits until no further reference can belong to it.
func (n *numbering) settle(yield yielder) bool {
	states := n.states
	n.states = false
	switch {
	case states && n.best == "":
		return yield(Unsupported{n.last.start, n.last.end, "uncited"}, nil)
	case states && n.best == VerdictWeak:
		return yield(Unsupported{n.last.start, n.last.end, "weak"}, nil)
	}
	return true
}

func isWordRune(r rune) bool { return isLetter(r) || isDigit(r) }

// withoutLead takes off what stands before a sentence without being part of
// it: signs of quotes, headings and lists, the number of a list item, the
// border and the running number of a table's row. A number there is no fact
// that a source would have to hold.
func withoutLead(claim string) string {
	s := strings.TrimLeft(claim, " \t\r\n>#|")
	for _, bullet := range []string{"- ", "* ", "+ ", "• ", "– "} {
		s = strings.TrimPrefix(s, bullet)
	}
	item := strings.TrimLeft(s, "*_( \t")
	if len(item) >= 5 && strings.EqualFold(item[:5], "step ") {
		item = item[5:]
	}
	digits := len(item) - len(strings.TrimLeft(item, "0123456789"))
	if digits == 0 || digits > 3 {
		return s
	}
	rest := item[digits:]
	end := strings.TrimLeft(rest, ".)*_: \t")
	if sign := rest[:len(rest)-len(end)]; strings.ContainsAny(sign, ".):") && strings.ContainsAny(sign, " \t") {
		return end
	}
	if cell, ok := strings.CutPrefix(strings.TrimLeft(rest, " \t"), "|"); ok {
		return strings.TrimLeft(cell, " \t")
	}
	return s
}

// plain gives the text of a range without the references in it.
func (n *numbering) plain(s span) string { return n.without(n.refs, s) }

// without gives the text of a range without the parts of it that are listed,
// in order, in cut.
func (n *numbering) without(cut []span, s span) string {
	var b strings.Builder
	at := s.start
	i, _ := slices.BinarySearchFunc(cut, s.start, func(c span, at int) int { return c.end - at })
	for ; i < len(cut) && cut[i].start < s.end; i++ {
		b.Write(n.text[at:max(at, cut[i].start)])
		at = min(max(at, cut[i].end), s.end)
	}
	b.Write(n.text[at:s.end])
	return b.String()
}

// citation gives a citation whose quote was found.
func (n *numbering) citation(u use, s span) Citation {
	p, q := n.passages[u.id-1], n.found[u.id]
	p.Heading, p.Anchor = p.PlaceAt(p.Start + q.Start)
	return Citation{
		Number:    u.number,
		TextStart: s.start,
		TextEnd:   s.end,
		Passage:   p.ID,
		Document:  p.Document,
		Digest:    p.Digest,
		Page:      p.Page,
		Heading:   p.Heading,
		Start:     p.Start + q.Start,
		End:       p.Start + q.End,
		Quote:     p.Text[q.Start:q.End],
		Support:   q.Support,
		Verdict:   q.Verdict,
		Link:      n.link(p, p.Start+q.Start, p.Start+q.End),
		Original:  Original(webAddress(p), p, p.Text[q.Start:q.End]),
	}
}
