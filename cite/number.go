package cite

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ibid/answer"
	"ibid/retrieve"
)

// Options say how an answer is cited. The zero value numbers documents, makes
// no links and finds quotes by the zero [Support].
type Options struct {
	// Source says what counts as one source. Nil means [ByDocument].
	Source SourceOf
	// Link gives the address of the bytes start to end of the passage's
	// document, or of the document if end is not behind start; "" if there is
	// none to give. An address with a scheme other than http or https is not used.
	Link func(p retrieve.Passage, start, end int) string
	// Find finds the quotes. Nil means that of the zero [Support].
	Find Finder
	// Join judges sentences by all their citations together. Nil means that of
	// the zero [Support].
	Join Joiner
}

// Number turns the labels in an answer's events into numbered citations.
//
// It takes out Kept; writes [1], [2] … by first use for the labels in Text,
// with [Cited] before the text that shows a number first; adds [Quoted] and
// [Unsupported] when a sentence has ended; takes the labels out of Draft, and
// puts those cited on its last piece. What else comes passes unchanged. Text held
// back is given before Unanswered, Incomplete, Usage, an error and the end.
//
// The sequence is lazy and as often usable as events is. Breaking out of it
// breaks out of events.
func Number(events iter.Seq2[answer.Event, error], o Options) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		n := newNumbering(o)
		for e, err := range events {
			if err != nil {
				if n.finish(yield) {
					yield(nil, err)
				}
				return
			}
			if !n.event(e, yield) {
				return
			}
		}
		n.finish(yield)
	}
}

// A numbering is the state of one answer on its way through [Number].
type numbering struct {
	options   Options
	passages  []retrieve.Passage
	documents []Document

	rewriter *Rewriter
	input    decoder
	text     []byte // the answer so far
	refs     []span // the printed references in it
	uses     int    // uses of the rewriter looked at
	cited    int    // numbers announced
	pending  []use  // of sentences that have not ended
	splitter splitter
	last     span // the last sentence, with references on lines of their own behind it
	claim    string
	found    map[int]Quote // the quotes of the last sentence, by label
	labels   []int         // of found, in order
	states   bool          // it states something that would need a source
	best     Verdict       // the best of its quotes; empty without any
	listing  bool          // the heading of a list of sources came behind it
	finished bool

	draft      *Rewriter
	draftInput decoder
	draftStep  int
}

type yielder func(answer.Event, error) bool

func newNumbering(o Options) *numbering {
	if o.Source == nil {
		o.Source = ByDocument
	}
	if o.Link == nil {
		o.Link = func(retrieve.Passage, int, int) string { return "" }
	}
	if o.Find == nil {
		o.Find = Support{}.Find
	}
	if o.Join == nil {
		o.Join = Support{}.Join
	}
	return &numbering{options: o}
}

func (n *numbering) event(e answer.Event, yield yielder) bool {
	switch e := e.(type) {
	case answer.Kept:
		if n.rewriter != nil {
			yield(nil, fmt.Errorf("numbering the citations: the evidence changed after the answer had begun"))
			return false
		}
		n.passages = e.Passages
		n.documents = make([]Document, len(e.Passages))
		for i, p := range e.Passages {
			key, title := n.source(p)
			n.documents[i] = Document{Source: key, Title: title}
		}
		return true
	case answer.Draft:
		return n.drafted(e, yield)
	case answer.Text:
		if n.finished {
			yield(nil, fmt.Errorf("numbering the citations: text came after the end of the answer"))
			return false
		}
		if !n.endDraft(yield) {
			return false
		}
		if n.rewriter == nil {
			n.rewriter = NewRewriter(n.documents, Text, Default)
			n.rewriter.record = true
		}
		return n.rewritten(n.rewriter.Append(nil, n.input.decode(e.Text)), false, yield)
	case answer.Unanswered, answer.Incomplete, answer.Usage:
		return n.finish(yield) && yield(e, nil)
	}
	return yield(e, nil)
}

// finish gives what is held back.
func (n *numbering) finish(yield yielder) bool {
	if !n.endDraft(yield) {
		return false
	}
	if n.finished || n.rewriter == nil {
		return true
	}
	n.finished = true
	out := n.rewriter.Append(nil, n.input.end())
	return n.rewritten(n.rewriter.Close(out), true, yield)
}

// rewritten gives the next piece of the numbered text, with what it shows and ends.
func (n *numbering) rewritten(out []byte, final bool, yield yielder) bool {
	for _, u := range n.rewriter.uses[n.uses:] {
		n.pending = append(n.pending, u)
		if u.end > u.start {
			n.refs = append(n.refs, span{u.start, u.end})
		}
		if u.number > n.cited {
			n.cited = u.number
			p := n.passages[u.id-1]
			c := Cited{Number: u.number, Document: p.Document, Title: n.documents[u.id-1].Title, Link: n.link(p, p.Start, p.End), Original: Original(webAddress(p), p, "")}
			if !yield(c, nil) {
				return false
			}
		}
	}
	n.uses = len(n.rewriter.uses)
	if len(out) > 0 {
		n.text = append(n.text, out...)
		if !yield(answer.Text{Text: string(out)}, nil) {
			return false
		}
	}
	for {
		s, ok := n.splitter.next(n.text, n.refs, final)
		if !ok {
			return !final || n.settle(yield)
		}
		if !n.sentence(s, yield) {
			return false
		}
	}
}

func (n *numbering) source(p retrieve.Passage) (key, title string) {
	return n.options.Source(p, cmp.Or(webAddress(p), n.link(p, 0, 0)))
}

func (n *numbering) link(p retrieve.Passage, start, end int) string {
	return link(n.options.Link(p, start, end))
}

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
		n.states = isClaim(n.without(n.rewriter.code, s))
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

// isClaim says whether a sentence states something that would need a source:
// it has at least four words (or as many ideographs), asks nothing, and is
// neither a heading nor the announcement of a list.
func isClaim(sentence string) bool {
	s := strings.TrimFunc(sentence, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("*_\"'”’)", r)
	})
	if s == "" || s[0] == '#' || s[0] == '`' || strings.HasPrefix(s, "~~~") {
		return false
	}
	if r, _ := utf8.DecodeLastRuneInString(s); strings.ContainsRune("?？:：", r) {
		return false
	}
	const least = 4
	words, ideographs := 0, 0
	for _, f := range strings.Fields(s) {
		if strings.IndexFunc(f, unicode.IsLetter) >= 0 {
			words++
		}
		for _, r := range f {
			if isIdeograph(r) {
				ideographs++
			}
		}
	}
	return words >= least || ideographs >= least
}

// drafted passes a piece of a draft on without its labels.
func (n *numbering) drafted(d answer.Draft, yield yielder) bool {
	if n.draft != nil && n.draftStep != d.Step && !n.endDraft(yield) {
		return false
	}
	if n.draft == nil {
		n.draft = NewRewriter(n.documents, Empty, Default)
		n.draft.record = true
		n.draftInput = decoder{}
		n.draftStep = d.Step
	}
	out := n.draft.Append(nil, n.draftInput.decode(d.Text))
	if d.Final {
		return n.closeDraft(out, true, yield)
	}
	if len(out) == 0 {
		return true
	}
	return yield(answer.Draft{Step: d.Step, Text: string(out)}, nil)
}

// endDraft gives what is held of a draft that broke off.
func (n *numbering) endDraft(yield yielder) bool {
	if n.draft == nil {
		return true
	}
	return n.closeDraft(nil, false, yield)
}

func (n *numbering) closeDraft(out []byte, final bool, yield yielder) bool {
	out = n.draft.Append(out, n.draftInput.end())
	out = n.draft.Close(out)
	d := answer.Draft{Step: n.draftStep, Text: string(out), Final: final}
	for _, u := range n.draft.uses {
		if !slices.Contains(d.Labels, u.id) {
			d.Labels = append(d.Labels, u.id)
		}
	}
	n.draft = nil
	if !final && d.Text == "" {
		return true
	}
	return yield(d, nil)
}

// A decoder makes valid UTF-8 of text that comes in pieces: offsets into it
// then hold in JSON too, which knows nothing else.
type decoder struct {
	held []byte // an incomplete sequence
}

func (d *decoder) decode(piece string) []byte {
	b := append(d.held, piece...)
	n := len(b)
	for k := 1; k < utf8.UTFMax && k <= len(b); k++ {
		if c := b[len(b)-k]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-k:]) {
				n -= k
			}
			break
		}
	}
	d.held = slices.Clone(b[n:])
	return valid(b[:n])
}

func (d *decoder) end() []byte {
	b := d.held
	d.held = nil
	return valid(b)
}

func valid(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return []byte(string([]rune(string(b))))
}
