package cite

import (
	"cmp"
	"errors"
	"iter"
	"slices"

	"ibid/answer"
	"ibid/cite/marker"
	"ibid/cite/rewrite"
	"ibid/cite/sentence"
	"ibid/cite/support"
	"ibid/retrieve"
)

// Options say how an answer is cited. The zero value numbers documents and
// makes no links.
type Options struct {
	// Source says what counts as one source. Nil means [ByDocument].
	Source SourceOf
	// Link returns the address of the bytes start to end of the passage's document, or of
	// the document if end is not after start; "" if it has no address. Addresses with a
	// scheme other than http or https are ignored.
	Link func(p retrieve.Passage, start, end int) string
	// LinkDocuments makes the address in a document's metadata ("url") the original of its
	// source, except for uploads.
	LinkDocuments bool
}

// Number turns the labels in an answer's events into numbered citations.
//
// In Text it replaces labels by [1], [2] … by first use, with [Cited] and [Placed] before the
// text that shows a number, and adds [Quoted] and [Unsupported] after each sentence. It removes
// the labels from Draft and lists the cited ones with its last piece; Revision becomes
// [Revised]. Other events pass unchanged, so the caller must escape text of models and
// documents before showing it. Text held back comes before Unanswered, Incomplete, Usage, an
// error and the end.
//
// The sequence is lazy and can be ranged over as often as events can.
func Number(events iter.Seq2[answer.Event, error], o Options) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		n := newNumbering(o)
		for e, err := range events {
			if err != nil {
				if n.emitEnd(yield) {
					yield(nil, err)
				}
				return
			}
			if !n.numberEvent(e, yield) {
				return
			}
		}
		n.emitEnd(yield)
	}
}

// A numbering is the state of [Number] for one answer.
type numbering struct {
	options   Options
	prover    support.Prover
	passages  []retrieve.Passage
	documents []rewrite.Document

	rewriter *rewrite.Rewriter
	text     []byte          // the answer so far
	isPlain  bool            // the answer is plain
	refs     []sentence.Span // printed references in text
	uses     int             // number of uses announced
	pending  []rewrite.Use   // uses in sentences that have not ended
	splitter sentence.Splitter
	last     proof
	verified []answer.Verified                // statements that were doubted, or for which a label was found
	proved   map[string]map[int]support.Quote // by statement and label
	finished bool

	revision     *revision
	draftSources []rewrite.Source // sources of the last whole draft
	settled      map[int]int      // passages by number, for numbers of a revision that may be shown before it is whole
	draft        *rewrite.Rewriter
	draftStep    int
}

type yielder func(answer.Event, error) bool

func newNumbering(o Options) *numbering {
	if o.Source == nil {
		o.Source = ByDocument
	}
	if o.Link == nil {
		o.Link = func(retrieve.Passage, int, int) string { return "" }
	}
	return &numbering{options: o, prover: answer.Prover(), settled: map[int]int{}, proved: map[string]map[int]support.Quote{}}
}

func (n *numbering) numberEvent(e answer.Event, yield yielder) bool {
	switch e := e.(type) {
	case answer.Kept:
		return n.keepPassages(e.Passages, yield) && yield(e, nil)
	case answer.Draft:
		return n.addDraft(e, yield)
	case answer.Revision:
		return n.addRevision(e, yield)
	case answer.Text:
		return n.addText(e, yield)
	case answer.Unanswered:
		e.Closest = append([]answer.Closest{}, e.Closest...)
		for i, c := range e.Closest {
			e.Closest[i].Link = n.link(c.Passage, c.Start, c.End)
		}
		return n.emitEnd(yield) && yield(e, nil)
	case answer.Incomplete, answer.Usage:
		return n.emitEnd(yield) && yield(e, nil)
	case answer.Verified:
		n.proved[e.Statement] = e.Quotes
		if e.Plain {
			return true
		}
		n.verified = append(n.verified, e)
	}
	return yield(e, nil)
}

func (n *numbering) keepPassages(passages []retrieve.Passage, yield yielder) bool {
	if n.rewriter != nil {
		yield(nil, errors.New("numbering the citations: the evidence changed after the answer had begun"))
		return false
	}
	n.passages = passages
	n.documents = make([]rewrite.Document, len(passages))
	for i, p := range passages {
		key, title := n.options.Source(p, cmp.Or(webAddress(p), n.link(p, 0, 0)))
		n.documents[i] = rewrite.Document{Source: key, Title: title}
	}
	return true
}

func (n *numbering) link(p retrieve.Passage, start, end int) string {
	return rewrite.Link(n.options.Link(p, start, end))
}

func (n *numbering) addText(t answer.Text, yield yielder) bool {
	if n.finished {
		yield(nil, errors.New("numbering the citations: text came after the end of the answer"))
		return false
	}
	if !n.breakDraft(yield) {
		return false
	}
	if n.rewriter == nil {
		n.rewriter = n.newRewriter()
	}
	n.isPlain = t.Plain
	return n.emit(n.rewriter.Append(nil, []byte(t.Text)), false, yield)
}

// emitEnd yields the text held back.
func (n *numbering) emitEnd(yield yielder) bool {
	if !n.breakDraft(yield) {
		return false
	}
	if n.finished || n.rewriter == nil {
		return true
	}
	n.finished = true
	return n.emit(n.rewriter.Close(nil), true, yield)
}

// emit yields the next piece of the numbered text, after the numbers that it shows and before
// the quotes of the sentences that it ends.
func (n *numbering) emit(out []byte, final bool, yield yielder) bool {
	uses := n.rewriter.Uses()[n.uses:]
	n.uses += len(uses)
	for _, u := range uses {
		n.pending = append(n.pending, u)
		if u.End > u.Start {
			n.refs = append(n.refs, u.Span)
		}
		if u.First && !yield(n.citedBy(u), nil) {
			return false
		}
	}
	for _, u := range uses {
		if u.End > u.Start && !yield(Placed{Number: u.Number, Start: u.Start, End: u.End}, nil) {
			return false
		}
	}
	if len(out) > 0 {
		n.text = append(n.text, out...)
		if !yield(answer.Text{Text: string(out), Plain: n.isPlain}, nil) {
			return false
		}
	}
	for {
		s, ok := n.splitter.Next(n.text, n.refs, n.rewriter.Code(), final)
		if !ok {
			return !final || n.yieldUnsupported(yield)
		}
		if !n.endSentence(s, yield) {
			return false
		}
	}
}

func (n *numbering) citedBy(u rewrite.Use) Cited {
	p := n.passages[u.ID-1]
	return Cited{Number: u.Number, Document: p.Document, Title: n.documents[u.ID-1].Title, AlsoIn: p.AlsoIn,
		Link: n.link(p, p.Start, p.End), Original: n.original(p, "")}
}

// A revision is the state of a revision that may become the answer.
type revision struct {
	rewriter *rewrite.Rewriter
	uses     int // number of uses announced
}

// addRevision yields the next piece of a revision, numbered as if the revision were the answer.
func (n *numbering) addRevision(e answer.Revision, yield yielder) bool {
	if !n.breakDraft(yield) {
		return false
	}
	if n.revision == nil {
		n.revision = &revision{rewriter: n.newRewriter()}
	}
	v := n.revision
	out := Revised{Revision: e, Places: []Placed{}, Cited: []Cited{}, Settled: []int{}}
	out.Text = string(v.rewriter.Append(nil, []byte(e.Text)))
	for _, u := range v.rewriter.Uses()[v.uses:] {
		if v.uses++; u.End > u.Start {
			out.Places = append(out.Places, Placed{Number: u.Number, Start: u.Start, End: u.End})
		}
		if !u.First {
			continue
		}
		out.Cited = append(out.Cited, n.citedBy(u))
		if n.settled[u.Number] > 0 || n.isSettled(u) {
			n.settled[u.Number] = u.ID
			out.Settled = append(out.Settled, u.Number)
		}
	}
	if e.Cut {
		n.revision = nil
	}
	return out.Text == "" && len(out.Cited) == 0 && !e.Cut || yield(out, nil)
}

// isSettled reports whether a number of a revision stays correct if the revision is cut and the
// draft before it is the answer: the draft gives its source the same number, or cites neither
// the source nor the number.
func (n *numbering) isSettled(u rewrite.Use) bool {
	i := slices.IndexFunc(n.draftSources, func(s rewrite.Source) bool {
		return slices.Contains(s.IDs, u.ID) || s.Source != "" && s.Source == n.documents[u.ID-1].Source
	})
	return i+1 == u.Number || i < 0 && u.Number > len(n.draftSources)
}

// newRewriter returns a rewriter for a possible answer. Numbers already shown keep their
// sources.
func (n *numbering) newRewriter() *rewrite.Rewriter {
	r := NewRewriter(n.documents, rewrite.Text)
	for number, id := range n.settled {
		r.Reserve(id, number)
	}
	return r
}

// addDraft yields a piece of a draft without its labels.
func (n *numbering) addDraft(d answer.Draft, yield yielder) bool {
	if n.draft != nil && n.draftStep != d.Step && !n.breakDraft(yield) {
		return false
	}
	if n.draft == nil {
		n.draft = NewRewriter(n.documents, rewrite.Empty)
		n.draftStep = d.Step
	}
	out := n.draft.Append(nil, []byte(d.Text))
	if d.Final {
		return n.closeDraft(out, true, yield)
	}
	return len(out) == 0 || yield(answer.Draft{Step: d.Step, Text: string(out)}, nil)
}

// breakDraft yields the held-back text of a draft that broke off.
func (n *numbering) breakDraft(yield yielder) bool {
	return n.draft == nil || n.closeDraft(nil, false, yield)
}

func (n *numbering) closeDraft(out []byte, final bool, yield yielder) bool {
	d := answer.Draft{Step: n.draftStep, Text: string(n.draft.Close(out)), Final: final}
	for _, u := range n.draft.Uses() {
		if !slices.Contains(d.Labels, u.ID) {
			d.Labels = append(d.Labels, u.ID)
		}
	}
	if final {
		n.draftSources = n.draft.Sources()
	}
	n.draft = nil
	return !final && d.Text == "" || yield(d, nil)
}

// NewRewriter returns a rewriter for a text with citations in any form that models write.
func NewRewriter(documents []rewrite.Document, style rewrite.Style) *rewrite.Rewriter {
	return rewrite.New(documents, style, marker.Default)
}
