package cite

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
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
	// Places has each printed number told of by [Placed].
	Places bool
}

// Number turns the labels in an answer's events into numbered citations.
//
// It takes out Kept; writes [1], [2] … by first use for the labels in Text,
// with [Cited] before the text that shows a number first; adds [Quoted] and
// [Unsupported] when a sentence has ended; takes the labels out of Draft, and
// puts those cited on its last piece. Whatever else a model may have written is
// made [Neutral], as Text and Draft are; the rest passes unchanged. Text held
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
			n.rewriter = n.newRewriter(Text)
		}
		return n.rewritten(n.rewriter.Append(nil, n.input.decode(e.Text)), false, yield)
	case answer.Unanswered:
		e.Text = Neutral(e.Text)
		return n.finish(yield) && yield(e, nil)
	case answer.Incomplete:
		e.Reason = Neutral(e.Reason)
		return n.finish(yield) && yield(e, nil)
	case answer.Usage:
		return n.finish(yield) && yield(e, nil)
	case answer.Retrieved:
		e.Question = Neutral(e.Question) // a model's, where there is a history
		return yield(e, nil)
	case answer.Judged:
		e.Reason = Neutral(e.Reason)
		return yield(e, nil)
	case answer.Warning:
		e.Message = Neutral(e.Message)
		return yield(e, nil)
	}
	return yield(e, nil)
}

func (n *numbering) newRewriter(s Style) *Rewriter {
	r := NewRewriter(n.documents, s, Default)
	r.record, r.neutral = true, new(neutralizer)
	return r
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
	if n.options.Places {
		for _, u := range n.rewriter.uses[n.uses:] {
			if u.end > u.start && !yield(Placed{Number: u.number, Start: u.start, End: u.end}, nil) {
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

// drafted passes a piece of a draft on without its labels.
func (n *numbering) drafted(d answer.Draft, yield yielder) bool {
	if n.draft != nil && n.draftStep != d.Step && !n.endDraft(yield) {
		return false
	}
	if n.draft == nil {
		n.draft = n.newRewriter(Empty)
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
// then hold in JSON too, which knows nothing else. It takes out what is not
// seen: neither may hide in a marker.
type decoder struct {
	held    []byte // an incomplete sequence
	cleaner cleaner
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
	return d.cleaner.clean(valid(b[:n]))
}

func (d *decoder) end() []byte {
	b := d.held
	d.held = nil
	return d.cleaner.clean(valid(b))
}

func valid(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return []byte(string([]rune(string(b))))
}
