package answer

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"unicode"

	"ibid/answer/extract"
	"ibid/answer/prompt"
	"ibid/answer/statement"
	"ibid/cite/sentence"
	"ibid/cite/support"
	"ibid/ingest"
	"ibid/retrieve"
)

// Unproved says how to treat a statement to which the judge has said no twice.
type Unproved string

// The ways to treat it.
const (
	UnprovedDrop Unproved = "drop" // it is not shown
	UnprovedMark Unproved = "mark" // it is shown as doubtful, without a source that was found for it
	UnprovedOff  Unproved = "off"  // as empty: nothing is proved
)

// Prover returns what compares statements with passages.
func Prover() support.Prover {
	return support.Prover{Stem: retrieve.Stem, Sentences: func(text string) (spans []support.Span) {
		for s := range ingest.Sentences(text) {
			spans = append(spans, support.Span{Start: s.Start, End: s.End})
		}
		return spans
	}}
}

// A proof checks an answer statement by statement while it is being written. Code
// clears what repeats the passage that Ibid would quote first. A judge is asked about
// the rest while the model writes on, and nothing after that is shown until it has
// replied.
type proof struct {
	*asking
	ctx      context.Context // of the strategy that writes
	passages []retrieve.Passage
	prover   support.Prover
	best     int // the label of the passage that Ibid would quote first without a model; 0 for none

	units  *statement.Splitter
	next   []statement.Unit // of these, the one to prove next
	queue  statement.Queue
	claims int              // so far, with blocks of code and quotes
	cites  bool             // a statement has a label that the model wrote
	brief  []*openStatement // few words of an answer without claims so far
	lead   string           // what the last lead announces
	held   string           // what may be shown once a statement has a source
	source bool             // a statement that is shown has one, or none is needed: without a gate
	code   bool             // code is shown, which may be in no passage
	shown  bool             // some of the answer
	open   []*openStatement
	places chan struct{} // for as many calls at a time
	step   *Stepped      // that wrote the answer
}

// An openStatement is one that is not decided.
type openStatement struct {
	statement.Unit
	number  int // in the queue
	event   Verified
	cites   bool          // it, or a statement before it, has a label
	near    int           // the label of the nearest passage
	quote   support.Quote // of that
	verdict chan verdict  // of the judge
}

// proves reports whether the statements of the answer are proved.
func (r *asking) proves() bool {
	return r.writes && r.Unproved != "" && r.Unproved != UnprovedOff
}

// beginProof begins the proof of an answer from labelled passages.
func (r *asking) beginProof(ctx context.Context, passages []retrieve.Passage) {
	r.proof = nil
	if !r.proves() {
		return
	}
	p := &proof{
		asking: r, ctx: ctx, passages: passages, prover: Prover(), units: statement.NewSplitter(len(passages)),
		places: make(chan struct{}, r.parallel), source: r.Gate == GateOff,
	}
	if r.judge != nil {
		quotes, _, err := r.quotes(ctx, passages, nil)
		if err != nil {
			r.warn("the answer could not be compared with quotes: %s", err)
		} else if len(quotes) > 0 {
			p.best = quotes[0].Passage + 1
		}
	}
	r.proof = p
}

// say emits the next piece of the answer, or has it proved.
func (r *asking) say(text string) bool {
	p := r.proof
	if p == nil {
		return r.tell(Text{Text: text})
	}
	return p.add(p.units.Add(text), false) && p.showProved(false)
}

// A revised holds the events of an answer that may still be cut.
type revised struct {
	step     int
	text     string // that was shown as Revision
	verified []Event
}

// tell emits an event about the answer. One of a revision is held, and its text shown.
func (r *asking) tell(e Event) bool {
	v := r.revised
	if v == nil {
		return r.emit(e)
	}
	if t, ok := e.(Text); ok {
		v.text += t.Text
		return r.emit(Revision{Step: v.step, Text: t.Text})
	}
	v.verified = append(v.verified, e)
	return !r.stopped
}

// endRevision makes the revision the answer if it is whole, or forgets it: then the
// draft before it is the answer, or it is written again.
func (r *asking) endRevision(whole bool) bool {
	v := r.revised
	r.revised = nil
	if !whole {
		if v.text != "" {
			r.emit(Revision{Step: v.step, Cut: true})
		}
		r.restart()
		return false
	}
	for _, e := range v.verified {
		r.emit(e)
	}
	if v.text != "" {
		r.emit(Text{Text: v.text})
	}
	return true
}

// endProof shows what is left of the answer; broken says why its end is missing, failed
// how the model failed. If nothing is left, as when no statement has a source, it returns
// errNoAnswer; but errWordless, or failed, where the answer may be in the missing end.
func (r *asking) endProof(broken string, failed error) error {
	p := r.proof
	if p == nil {
		return nil
	}
	r.proof = nil
	err := p.end(broken, failed)
	if p.step != nil && !p.stopped {
		if errors.Is(err, errNoAnswer) || errors.Is(err, errWordless) {
			p.step.Changed, p.step.Reason, p.step.Lost = false, unproved, nil
		}
		r.emitStep(*p.step)
	}
	return err
}

func (p *proof) end(broken string, failed error) error {
	units, space := p.units.End()
	if last := len(units) - 1; broken != "" && last >= 0 && units[last].Unfinished() {
		units = units[:last]
	}
	if !p.add(units, true) {
		return nil
	}
	for i := 0; p.claims == 0 && i < len(p.brief); i++ { // "Two years.": these are the answer
		p.prove(p.brief[i].Unit, p.brief[i].number)
	}
	p.queue.Close()
	if !p.showProved(true) {
		return nil
	}
	if err := canceled(p.ctx); err != nil {
		return err
	}
	begun := false // the only statement
	if p.claims == 1 && len(units) > 0 {
		last := units[len(units)-1].Plain
		begun = strings.TrimRight(last, ".!?。！？") == last
	}
	switch left := p.queue.Kept() && (p.source || p.code); {
	case !left && broken == reachedLength && (begun || p.queue.Kept()):
		return callError(RoleAnswer, errWordless)
	case !left && failed != nil:
		return failed
	case !left:
		return errNoAnswer
	case !p.source:
		p.warn("the code of this answer is in none of the passages that were read")
	}
	p.held += space
	p.release()
	return nil
}

// release shows what may be shown.
func (p *proof) release() {
	if p.held != "" {
		p.tell(Text{Text: p.held})
	}
	p.held, p.shown = "", p.revised == nil
}

// add proves units, and reports whether to continue. Unless they are the last, code at
// their end waits for the next, which may be its references.
func (p *proof) add(units []statement.Unit, last bool) bool {
	units, p.next = append(p.next, units...), nil
	for i, u := range units {
		end := i == len(units)-1
		if end && !last && u.Kind == statement.Verbatim && !p.source {
			p.next = units[i:]
			break
		}
		u.States = u.Kind == statement.Claim || (u.Kind == statement.Lead || u.Kind == statement.Aside) && p.states(u)
		number := p.queue.Push(u)
		if u.Kind == statement.Lead && strings.ContainsFunc(u.Plain, unicode.IsLetter) { // not the row under the head of a table
			p.lead = u.Plain
		}
		switch {
		case u.Kind == statement.Verbatim:
			p.claims++
			p.keep(u, number, !end && units[i+1].Kind == statement.Trailer)
		case u.States:
			p.claims++
			if !p.prove(u, number) {
				return false
			}
		case u.Kind == statement.Aside && !asks(u.Plain) && !sentence.IsOffer(u.Plain) && !opens(u.Plain):
			p.brief = append(p.brief, &openStatement{Unit: u, number: number})
		}
	}
	return !p.stopped
}

// keep keeps code or a quote. While nothing has a source, it gets that of the passage
// that has it, unless it has references; a quote that none has is not a source.
func (p *proof) keep(u statement.Unit, number int, cited bool) {
	if p.source {
		return
	}
	f := p.find(u)
	p.source, p.code = f.borne || cited && !u.Quoted(), p.code || !u.Quoted()
	if f.found != 0 && !cited {
		p.conclude(&openStatement{Unit: u, number: number,
			event: Verified{Statement: u.Plain, Verdict: Cleared, By: byCode, Found: f.found}})
	}
}

// showProved decides about the statements whose verdicts have come, all of them if
// all is set, and shows what may be shown.
func (p *proof) showProved(all bool) bool {
	waiting := p.open[:0]
	for _, o := range p.open {
		if all {
			p.decide(o, <-o.verdict)
			continue
		}
		select {
		case v := <-o.verdict:
			p.decide(o, v)
		default:
			waiting = append(waiting, o)
		}
	}
	p.open = waiting
	for text, ok := p.queue.Next(); ok; text, ok = p.queue.Next() {
		p.held += text
	}
	if (p.source || p.code) && p.held != "" {
		p.release()
	}
	return !p.stopped
}

// restart forgets the answer so far, since its reply broke off and is asked for once
// more. It reports whether that could be done: nobody has seen any of it.
func (r *asking) restart() bool {
	p := r.proof
	if p == nil || p.shown {
		return false
	}
	for _, o := range p.open {
		v := <-o.verdict
		r.addUsage(v.calls...)
	}
	r.beginProof(p.ctx, p.passages)
	return true
}

// A finding is what code finds about a statement.
type finding struct {
	quotes []support.Quote // by passage
	near   []int           // the labels that it cites, or of all passages; the best first
	borne  bool            // by what it cites, or by the passage found for it
	found  int             // the label of that
	idle   []int           // cited labels that add nothing
	said   bool            // it is a whole sentence of the passage that Ibid would quote first
}

// find compares a statement with the passages that it cites, or with all if it
// cites none.
func (p *proof) find(u statement.Unit) finding {
	f := finding{quotes: make([]support.Quote, len(p.passages)), near: u.Labels()}
	cited := len(f.near) > 0
	short := !cited && isShort(u)
	for i := 0; !cited && i < len(p.passages); i++ {
		f.near = append(f.near, i+1)
	}
	evidence := make([]support.Passage, len(f.near))
	for i, label := range f.near {
		passage := p.passages[label-1]
		evidence[i] = support.Passage{Text: passage.Text, Title: passage.Title, Heading: passage.Heading}
		if short {
			f.quotes[label-1] = p.findShort(u.Plain, evidence[i])
		} else {
			f.quotes[label-1] = p.prover.Find(u.Plain, evidence[i])
		}
	}
	if !cited && !short {
		p.compare(u.Plain, f.quotes)
	}
	for _, label := range f.near {
		f.borne = f.borne || f.quotes[label-1].Verdict != support.Weak
	}
	weak := func(label int) bool { return f.quotes[label-1].Verdict == support.Weak }
	if cited && len(f.near) > 1 && slices.ContainsFunc(f.near, weak) {
		together := p.prover.Join(u.Plain, evidence)
		joined := together.Support >= support.Threshold && !slices.ContainsFunc(f.near, func(label int) bool {
			return f.quotes[label-1].Verdict == support.Quoted // which needs no other
		})
		f.borne = f.borne || joined
		for i, label := range f.near {
			if f.borne && weak(label) && !(joined && together.Parts[i]) &&
				retrieve.Language(p.passages[label-1].Text) == retrieve.Language(u.Plain) {
				f.idle = append(f.idle, label)
			}
		}
	}
	slices.SortStableFunc(f.near, func(a, b int) int { return cmp.Compare(f.quotes[b-1].Support, f.quotes[a-1].Support) })
	if !cited && f.borne {
		f.found = f.near[0]
	}
	f.said = slices.Contains(f.near, p.best) && quotesWhole(p.passages[p.best-1].Text, u.Plain, f.quotes[p.best-1])
	return f
}

// isShort reports whether a statement has too few words to say what it is about.
func isShort(u statement.Unit) bool {
	const sentence = 4 // words
	few := len(spoken(u.Plain)) < sentence && !strings.ContainsFunc(u.Plain, isUnspaced)
	return u.Kind == statement.Aside || few && !u.Listed()
}

// findShort compares a few words with a passage as the answer to the question, since they
// do not say what they are about. The passage bears them out if a sentence has them word
// for word, the better the more words of the question it has.
func (p *proof) findShort(plain string, passage support.Passage) support.Quote {
	q := p.prover.Find(p.asked+" "+plain, passage)
	q.Support, q.Verdict = q.Support/2, support.Weak
	for s := range ingest.Sentences(passage.Text) {
		if sentence := passage.Text[s.Start:s.End]; hasInRow(sentence, plain) {
			near := p.prover.Find(p.asked+" "+plain, support.Passage{Text: sentence, Title: passage.Title, Heading: passage.Heading})
			if borne := (1 + near.Support) / 2; borne > q.Support {
				q = support.Quote{Span: support.Span{Start: s.Start, End: s.End}, Support: borne, Verdict: support.Supported}
			}
		}
	}
	return q
}

// How the encoder's second score of a quote moves the log-odds of its support: by
// comparedWeight for each unit above comparedMiddle. WiCE's claims have an AUROC of .841
// and .878 with it, and of .828 and .872 without, one half and the other. Only quotes from
// leastCompared up, which nothing contradicts, are compared, and so many of them.
const (
	comparedWeight = 3
	comparedMiddle = .65
	leastCompared  = .201
	mostCompared   = 8
)

// compare adds what the encoder says to the supports of a statement that cites nothing.
func (p *proof) compare(plain string, quotes []support.Quote) {
	var near []*support.Quote
	var texts []string
	for i := range quotes {
		q, text := &quotes[i], p.passages[i].Text
		if q.Verdict != support.Quoted && q.Support >= leastCompared && len(near) < mostCompared {
			near, texts = append(near, q), append(texts, text[q.Start:q.End])
		}
	}
	encoder := p.encoder()
	if encoder == nil || len(near) == 0 || !encoder.Knows(retrieve.Language(plain)) {
		return
	}
	scores, err := extract.SecondScores(p.ctx, encoder, plain, retrieve.Language(texts[0]), texts)
	if err != nil {
		p.warn("a statement was compared by its words alone: %s", err)
		return
	}
	for i, q := range near {
		odds := q.Support / (1 - q.Support) * math.Exp(comparedWeight*(scores[i]-comparedMiddle))
		q.Support, q.Verdict = odds/(1+odds), support.Weak
		if q.Support >= support.Threshold {
			q.Verdict = support.Supported
		}
	}
}

// prove clears a statement, or has the judge asked about it, together with the lead of
// its list: a lead that says something may change what an item means.
func (p *proof) prove(u statement.Unit, number int) bool {
	f, lead := p.find(u), ""
	if u.Listed() {
		lead = p.lead
	}
	p.cites = p.cites || len(u.Labels()) > 0
	o := &openStatement{Unit: u, number: number, cites: p.cites, near: f.near[0], quote: f.quotes[f.near[0]-1], event: Verified{
		Statement: u.Plain, Verdict: Cleared, By: byCode, Found: f.found, Idle: f.idle, Quotes: map[int]support.Quote{},
	}}
	for _, label := range u.Labels() {
		o.event.Quotes[label] = f.quotes[label-1]
	}
	if p.judge == nil || f.said && p.news(lead) == 0 {
		p.conclude(o)
		return !p.stopped
	}
	calls := p.calls(strings.TrimSpace(p.fit(lead)+" "+p.fit(u.Plain)), f)
	if calls == nil {
		o.event.By = unjudged
		p.conclude(o)
		return !p.stopped
	}
	o.verdict = make(chan verdict, 1)
	p.open = append(p.open, o)
	unlikely := p.unlikely(p.passages[f.near[0]-1])
	p.proving.Go(func() { o.verdict <- p.ask(calls, unlikely) })
	return true
}

// excerpt is the most tokens of a passage that the judge is shown, where its quote
// is not longer.
const excerpt = 80

// fit shortens a part of a statement for the judge.
func (p *proof) fit(text string) string { return p.writer.Fit(text, p.writer.Window()/8) }

// calls returns the calls about a statement, both of which must say no; none without a
// budget.
func (p *proof) calls(stated string, f finding) (calls []call) {
	s, tokens := prompt.Slots{Statement: stated}, 0
	for i, label := range f.near[:min(len(f.near), 2)] {
		if i == 0 || !p.trust.OnePassage {
			s.Evidence = append(s.Evidence, p.excerpt(label, f.quotes[label-1].Span))
		}
	}
	for _, s.Again = range []bool{false, true} {
		c, err := p.verdictCall(RoleVerify, s)
		if err != nil {
			p.warn("a statement could not be checked: %s", err)
			return nil
		}
		calls = append(calls, *c)
		tokens += p.size(c.prompt)
	}
	if !p.judge.take(p.caller, tokens, 1) {
		p.warnUnchecked("its budget is used up: raise --gate-calls, --gate-tokens or --budget-tokens")
		return nil
	}
	return calls
}

// excerpt returns the part of a passage around a quote.
func (p *proof) excerpt(label int, quote support.Span) prompt.Evidence {
	passage := p.passages[label-1]
	from, to := quote.Start, quote.End
	for s := range ingest.Sentences(passage.Text) {
		if s.End > quote.Start && s.Start < quote.End || p.writer.Count(passage.Text[min(from, s.Start):max(to, s.End)]) <= excerpt {
			from, to = min(from, s.Start), max(to, s.End)
		}
	}
	passage.Text = p.writer.Fit(passage.Text[from:to], 2*excerpt)
	return prompt.NewEvidence(label, passage)
}

// unlikely reports whether a passage is so unlikely to be on topic that one yes about a
// statement from it is not believed: odds multiply, and a yes counts as much as a no.
func (p *proof) unlikely(passage retrieve.Passage) bool {
	chance, _ := p.reading.Chance(passage)
	return !p.foreign(passage) && p.trust.afterNo(1-chance) > .5
}

// ask has the judge decide about a statement: a second time, in other words, after a
// no, or after a yes about what is unlikely, which needs both.
func (p *proof) ask(calls []call, unlikely bool) (v verdict) {
	select {
	case p.places <- struct{}{}:
		defer func() { <-p.places }()
	case <-p.ctx.Done():
		return verdict{err: p.ctx.Err()}
	}
	said := Relevant
	for _, c := range calls {
		ctx, stop := p.judge.within(p.ctx, 1)
		next := p.judge.ask(ctx, c)
		stop()
		next.calls = append(v.calls, next.calls...)
		if v = next; v.late || v.decision != Irrelevant && (v.decision != Relevant || !unlikely) {
			return v
		}
		if v.decision == Irrelevant {
			said = Irrelevant
		}
	}
	v.decision = said
	return v
}

// decide takes a verdict.
func (p *proof) decide(o *openStatement, v verdict) {
	o.event.Calls, o.event.Tokens = p.addUsage(v.calls...)
	o.event.By = byModel
	switch {
	case v.decision == Relevant:
		if !o.cites {
			o.event.Found = o.near
		}
	case v.decision != Irrelevant || v.late:
		o.event.By = unjudged
		if p.ctx.Err() == nil {
			p.warnUnchecked(cmp.Or(v.reason, "it failed, or took too long"))
		}
	default:
		o.event.Verdict, o.event.Found, o.event.Idle = Dropped, 0, nil
		if p.Unproved == UnprovedMark {
			o.event.Verdict = Marked
		}
	}
	p.conclude(o)
}

func (p *proof) warnUnchecked(why string) {
	p.warnOnce("proof", "statements of the answer could not be checked by the judge: %s", why)
}

// conclude reports a decision.
func (p *proof) conclude(o *openStatement) {
	e, v := &o.event, statement.Keep
	if e.Verdict == Dropped {
		v = statement.Drop
	}
	cites := e.Found != 0 || len(o.Labels()) > len(e.Idle)
	p.source = p.source || v == statement.Keep && (cites || p.Unproved == UnprovedMark)
	if e.Found != 0 && e.Found == o.near {
		e.Quotes = map[int]support.Quote{o.near: o.quote}
	}
	p.queue.Decide(o.number, v, relabel(o.Unit, e.Idle, e.Found))
	e.Plain = p.judge == nil && e.Found == 0 && len(e.Idle) == 0
	p.tell(*e)
}

// relabel returns the text of a unit without idle labels, and with one that was
// found.
func relabel(u statement.Unit, idle []int, found int) string {
	if found != 0 {
		text, border := u.Text, ""
		if u.Listed() {
			text = strings.TrimRight(text, "| \t")
			border = u.Text[len(text):]
		}
		return extract.Labelled(text, found, border) + border
	}
	if len(idle) == 0 {
		return u.Text
	}
	var out strings.Builder
	at := 0
	for _, m := range u.Marks {
		kept := without(m.Labels, idle)
		if len(kept) == len(m.Labels) {
			continue
		}
		out.WriteString(u.Text[at:m.Start])
		out.Write(appendLabels(nil, kept))
		at = m.End
	}
	out.WriteString(u.Text[at:])
	return out.String()
}
