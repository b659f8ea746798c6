package cite

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/answer"
	"ibid/cite/marker"
	"ibid/cite/rewrite"
	"ibid/cite/sentence"
	"ibid/cite/support"
	"ibid/retrieve"
)

// A proof is the state of the last sentence that has ended, including the references on
// separate lines after it.
type proof struct {
	span    sentence.Span
	claim   string                // without references, list signs and asides
	quotes  map[int]support.Quote // by label
	labels  []int                 // of quotes, in the order found
	states  func() bool           // reports whether it needs a source; nil after its use
	best    support.Verdict       // best verdict of the quotes; "" without quotes
	listing bool                  // the heading of a list of sources followed it
	doubted bool                  // a judge rejected it
	added   int                   // the label found for it
}

// endSentence yields the quotes of a sentence that has ended.
func (n *numbering) endSentence(s sentence.Span, yield yielder) bool {
	last := &n.last
	plain := n.plainText(s)
	claim := sentence.WithoutLead(plain)
	referred := len(plain) < s.End-s.Start
	switch words := sentence.Pointers(claim); {
	case last.span.End > 0 && words > 0 && !referred:
		// The sources listed under the heading belong to the sentence above.
		last.listing = true
		return true
	case last.span.End > 0 && referred && (words >= 0 || last.listing && n.isListEntry(s)):
		// References on a separate line or list item belong to the sentence before.
		s.Start = last.span.Start
		last.span = s
	default:
		if !n.yieldUnsupported(yield) {
			return false
		}
		prose := n.cutSpans(n.rewriter.Code(), s)
		verified := n.findVerified(claim)
		*last = proof{
			span: s, claim: sentence.WithoutAsides(claim), quotes: make(map[int]support.Quote),
			doubted: verified.Verdict == answer.Marked, added: verified.Found,
			states: func() bool {
				return verified.Statement != "" && letters(verified.Statement) == letters(claim) ||
					sentence.States(string(n.text[s.Start:s.End]), prose, plain)
			},
		}
	}

	cited := n.takePending(s)
	n.findQuotes(cited)
	for _, u := range cited {
		c := n.citation(u, s)
		if last.best == "" || c.Verdict != support.Weak {
			last.best = c.Verdict
		}
		if !yield(Quoted{c}, nil) {
			return false
		}
	}
	return true
}

// takePending removes the pending uses up to the end of a sentence and returns one for each
// label.
func (n *numbering) takePending(s sentence.Span) (cited []rewrite.Use) {
	for len(n.pending) > 0 && n.pending[0].Start <= s.End {
		u := n.pending[0]
		if u.Start == s.End && u.End > u.Start {
			break // printed directly after it, at the start of the next
		}
		n.pending = n.pending[1:]
		if !slices.ContainsFunc(cited, func(v rewrite.Use) bool { return v.ID == u.ID }) {
			cited = append(cited, u)
		}
	}
	return cited
}

// isListEntry reports whether a sentence is an entry of a list of sources: a line that begins
// or ends with a reference and has no full stop.
func (n *numbering) isListEntry(s sentence.Span) bool {
	before := bytes.TrimRight(n.text[:s.Start], " \t>")
	if len(before) > 0 && before[len(before)-1] != '\n' {
		return false
	}
	plain := strings.TrimRight(n.plainText(s), " ")
	if r, _ := utf8.DecodeLastRuneInString(plain); marker.IsStop(r) {
		return false
	}
	begin := s.End - len(sentence.WithoutLead(string(n.text[s.Start:s.End])))
	i, _ := slices.BinarySearchFunc(n.refs, s.End, func(r sentence.Span, at int) int { return r.Start - at })
	return sentence.RefAt(n.refs, begin) > 0 || i > 0 && n.refs[i-1].End == s.End
}

// findQuotes finds the quotes of the last sentence. A weak quote counts as supported if all
// quotes together support the sentence and it adds to them.
func (n *numbering) findQuotes(cited []rewrite.Use) {
	s := &n.last
	known := len(s.labels)
	weak := false
	for _, u := range cited {
		q, ok := s.quotes[u.ID]
		if !ok {
			if q, ok = n.proved[strings.TrimSpace(s.claim)][u.ID]; !ok { // it was not found when the statement was proved
				q = n.prover.Find(s.claim, evidence(n.passages[u.ID-1]))
			}
			s.quotes[u.ID] = q
			s.labels = append(s.labels, u.ID)
		}
		weak = weak || q.Verdict == support.Weak
	}
	if !weak || len(s.labels) == known || len(s.labels) < 2 {
		return
	}
	passages := make([]support.Passage, len(s.labels))
	for i, id := range s.labels {
		passages[i] = evidence(n.passages[id-1])
	}
	together := n.prover.Join(s.claim, passages)
	if together.Support < support.Threshold {
		return
	}
	s.best = support.Supported
	for i, id := range s.labels {
		if q := s.quotes[id]; together.Parts[i] && q.Verdict == support.Weak {
			q.Support, q.Verdict = together.Support, support.Supported
			s.quotes[id] = q
		}
	}
}

func evidence(p retrieve.Passage) support.Passage {
	return support.Passage{Text: p.Text, Title: p.Title, Heading: p.Heading}
}

// yieldUnsupported yields an [Unsupported] if the last sentence makes a claim that no citation
// supports. It is called when no further reference can belong to the sentence.
func (n *numbering) yieldUnsupported(yield yielder) bool {
	s := &n.last
	states := s.states
	s.states = nil
	switch {
	case s.doubted:
		s.doubted = false
		return yield(Unsupported{s.span.Start, s.span.End, "doubted"}, nil)
	case states == nil || s.best != "" && s.best != support.Weak || !states():
		return true
	case s.best == "":
		return yield(Unsupported{s.span.Start, s.span.End, "uncited"}, nil)
	}
	return yield(Unsupported{s.span.Start, s.span.End, "weak"}, nil)
}

// findVerified returns the verified statement that equals or contains a sentence.
func (n *numbering) findVerified(claim string) (found answer.Verified) {
	words := letters(claim)
	if words == "" {
		return found
	}
	for _, v := range n.verified {
		statement := letters(v.Statement)
		if words == statement || (v.Found != 0 || v.Verdict == answer.Marked) && strings.Contains(statement, words) {
			found = v
		}
	}
	return found
}

// letters returns the letters and digits of a text.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			return r
		}
		return -1
	}, s)
}

// plainText returns the text of a range without its references.
func (n *numbering) plainText(s sentence.Span) string { return n.cutSpans(n.refs, s) }

// cutSpans returns the text of a range without the spans in cut, which are sorted.
func (n *numbering) cutSpans(cut []sentence.Span, s sentence.Span) string {
	var b strings.Builder
	at := s.Start
	i, _ := slices.BinarySearchFunc(cut, s.Start, func(c sentence.Span, at int) int { return c.End - at })
	for ; i < len(cut) && cut[i].Start < s.End; i++ {
		b.Write(n.text[at:max(at, cut[i].Start)])
		at = min(max(at, cut[i].End), s.End)
	}
	b.Write(n.text[at:s.End])
	return b.String()
}

// citation returns the citation of a use whose quote was found.
func (n *numbering) citation(u rewrite.Use, s sentence.Span) Citation {
	p, q := n.passages[u.ID-1], n.last.quotes[u.ID]
	p.Heading, p.Anchor = p.PlaceAt(p.Start + q.Start)
	p.Page = p.PageAt(p.Start + q.Start)
	by := Written
	if u.ID == n.last.added {
		by = Found
	}
	return Citation{
		Number:    u.Number,
		By:        by,
		TextStart: s.Start,
		TextEnd:   s.End,
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
		Original:  n.original(p, p.Text[q.Start:q.End]),
	}
}
