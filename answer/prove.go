package answer

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"ibid/answer/extract"
	"ibid/answer/prompt"
	"ibid/answer/replies"
	"ibid/answer/statement"
	"ibid/cite/marker"
	"ibid/cite/sentence"
	"ibid/cite/support"
	"ibid/ingest"
	"ibid/retrieve"
)

// Unproved says how to treat a statement about which the judge has said no twice.
type Unproved string

// The ways to treat it.
const (
	UnprovedDrop Unproved = "drop" // it is not shown
	UnprovedMark Unproved = "mark" // it is shown as doubtful, without a source that was found for it
	UnprovedOff  Unproved = "off"  // like empty: statements are not checked
)

// Prover returns the prover that compares statements with passages.
func Prover() support.Prover {
	return support.Prover{Stem: retrieve.Stem, Sentences: func(text string) (spans []support.Span) {
		for s := range ingest.Sentences(text) {
			spans = append(spans, support.Span(s))
		}
		return spans
	}}
}

// A proof checks an answer statement by statement while it is being written. Code
// clears statements that repeat the passage that Ibid would quote first. The judge is
// asked about all other statements while the model keeps writing; later text is held
// until the judge has replied.
type proof struct {
	*comparer
	judge *judge // nil if no model judges

	units     *statement.Splitter
	next      []statement.Unit // a unit that waits for the next one
	queue     statement.Queue
	claims    int    // statements, blocks of code and quotes so far
	cites     bool   // the model has cited a passage in a statement, or in the statement after an aside
	lead      string // the last lead
	afterLead bool   // the previous unit is a lead that ends in a colon
	heldText  string // text that may be shown once a statement has a source
	hasSource bool   // some statement has a source, or none is needed because the gate is off
	shown     bool   // part of the answer was shown
	open      []*openStatement
	places    chan struct{}           // limits the calls that run at a time
	verdicts  map[string]chan verdict // by the statement and its nearest passages
	step      *Stepped                // the step that wrote the answer
}

// An openStatement is a statement that waits for its verdict.
type openStatement struct {
	statement.Unit
	number  int // in the queue
	event   Verified
	cites   bool          // it, or a statement before it, has a label
	nearest int           // the label of the nearest passage
	quote   support.Quote // from the nearest passage
	verdict chan verdict  // shared by repetitions of the statement
}

// endUnits decides about the last statements, and shows the end of the answer.
func (p *proof) endUnits(broken string, failed error) error {
	units, space := p.units.End()
	if last := len(units) - 1; broken != "" && last >= 0 && units[last].IsUnfinished() {
		units = units[:last]
	}
	if !p.addUnits(units, true) {
		return nil
	}
	p.queue.Close()
	if !p.showProved(true) {
		return nil
	}
	if err := wasCanceled(p.ctx); err != nil {
		return err
	}
	begun := false // the only statement has no final punctuation mark
	if p.claims == 1 && len(units) > 0 {
		last := units[len(units)-1].Plain
		begun = strings.TrimRight(last, ".!?。！？") == last
	}
	switch left := p.queue.HasContent() && p.hasSource; {
	case !left && broken == reachedLength && (begun || p.queue.HasContent()):
		return callError(RoleAnswer, errWordless)
	case !left && failed != nil:
		return failed
	case !left:
		return errNoAnswer
	}
	p.heldText += space
	p.showHeld()
	return nil
}

func (p *proof) showHeld() {
	if p.heldText != "" {
		p.emitAnswer(Text{Text: p.heldText})
	}
	p.heldText, p.shown = "", p.revised == nil
}

// addUnits proves units, and reports whether to continue. Unless last is set, the final unit may wait
// for the next: code for its references, a lead for the unit that it introduces, and an aside for a
// statement with a label, since it then needs no label itself.
func (p *proof) addUnits(units []statement.Unit, last bool) bool {
	units, p.next = append(p.next, units...), nil
	for i, u := range units {
		var next statement.Unit
		if i+1 < len(units) {
			next = units[i+1]
		} else if !last && (u.Kind == statement.Lead || u.Kind == statement.Aside && !p.cites || u.Kind == statement.Verbatim && !p.hasSource) {
			p.next = units[i:]
			break
		}
		u = withoutRefusal(u)
		u.States = p.statesSomething(u, next)
		if u.States && u.Kind == statement.Lead && (u.IsHeading() || !u.IsLeadOf(next)) {
			u.Kind = statement.Claim
		}
		number := p.queue.Push(u)
		switch {
		case !u.States && sentence.IsNoAnswer(u.Plain):
			p.queue.Decide(number, statement.Drop, "")
		case u.Kind == statement.Verbatim:
			p.claims++
			p.keepVerbatim(u, number, next.Kind == statement.Trailer)
		case u.States:
			p.claims++
			p.cites = p.cites || len(u.Labels()) > 0 || u.Kind == statement.Aside && next.Kind == statement.Claim && len(next.Labels()) > 0
			if !p.proveStatement(u, number) {
				return false
			}
		}
		p.afterLead = u.Kind == statement.Lead && !u.IsHeading()
		if u.Kind == statement.Lead && strings.ContainsFunc(u.Plain, unicode.IsLetter) { // not a table's delimiter row
			p.lead = u.Plain
		}
	}
	return !p.stopped
}

// withoutRefusal turns a unit that only says that the documents lack something into an aside
// without labels.
func withoutRefusal(u statement.Unit) statement.Unit {
	if u.Kind == statement.Claim && sentence.IsRefusal(u.Plain) {
		u.Text, u.Marks, u.Kind = relabelUnit(u, u.Labels(), 0), nil, statement.Aside
	}
	return u
}

// keepVerbatim keeps code or a quote. If no statement has a source yet and no references follow,
// it gets the label at the end of a line of the code, or the label of the passage that has its
// text. A quote that no passage contains does not count as a source.
func (p *proof) keepVerbatim(u statement.Unit, number int, cited bool) {
	if p.hasSource {
		return
	}
	labels := []int{}
	if !u.IsQuoted() && !cited {
		labels = marker.Labels(strings.Join(codeLabel.FindAllString(u.Text, -1), ""), len(p.passages))
		u.Text, u.Plain = codeLabel.ReplaceAllString(u.Text, ""), codeLabel.ReplaceAllString(u.Plain, "")
	}
	f := p.findSupport(u)
	if len(labels) > 0 {
		f.foundLabel = labels[0]
	}
	p.hasSource = f.supported || cited && !u.IsQuoted()
	if f.foundLabel != 0 && !cited {
		p.concludeStatement(&openStatement{Unit: u, number: number,
			event: Verified{Statement: u.Plain, Verdict: Cleared, By: byCode, Found: f.foundLabel}})
	}
}

var codeLabel = regexp.MustCompile(`(?m)[ \t]\[\d+\]$`)

// showProved decides about the statements whose verdicts have arrived, and shows the
// text that is ready. If all is set, it waits for all verdicts.
func (p *proof) showProved(all bool) bool {
	waiting := p.open[:0]
	for _, o := range p.open {
		if all {
			p.recordVerdict(o, <-o.verdict)
			continue
		}
		select {
		case v := <-o.verdict:
			p.recordVerdict(o, v)
		default:
			waiting = append(waiting, o)
		}
	}
	p.open = waiting
	for text, ok := p.queue.Next(); ok; text, ok = p.queue.Next() {
		p.heldText += text
	}
	if p.hasSource && p.heldText != "" {
		p.showHeld()
	}
	return !p.stopped
}

// proveStatement clears a statement, or asks the judge about it. The judge also gets the lead of
// the statement or of its list, which may change the meaning.
func (p *proof) proveStatement(u statement.Unit, number int) bool {
	f, lead := p.findSupport(u), ""
	if u.IsListed() || p.afterLead {
		lead = p.lead
	}
	o := &openStatement{Unit: u, number: number, cites: p.cites, nearest: f.nearest[0], quote: f.quotes[f.nearest[0]-1], event: Verified{
		Statement: u.Plain, Verdict: Cleared, By: byCode, Found: f.foundLabel, Idle: f.idle, Quotes: map[int]support.Quote{},
	}}
	for _, label := range u.Labels() {
		o.event.Quotes[label] = f.quotes[label-1]
	}
	if p.judge == nil || f.verbatim && p.newWords(lead) == 0 {
		p.concludeStatement(o)
		return !p.stopped
	}
	o.event.By = unjudged // until a verdict comes
	stated := strings.TrimSpace(p.fitStatement(lead) + " " + p.fitStatement(u.Plain))
	key := fmt.Sprint(f.nearest[:min(len(f.nearest), 2)], stated)
	if o.verdict = p.verdicts[key]; o.verdict == nil {
		calls := p.verdictCalls(stated, f)
		if calls == nil {
			p.concludeStatement(o)
			return !p.stopped
		}
		o.verdict = make(chan verdict, 1)
		p.verdicts[key] = o.verdict
		unlikely := p.isUnlikely(p.passages[f.nearest[0]-1])
		p.verifying.Go(func() { o.verdict <- p.askJudge(calls, unlikely) })
	}
	p.open = append(p.open, o)
	return true
}

func (p *proof) fitStatement(text string) string { return p.writer.Fit(text, p.writer.Window()/8) }

// verdictCalls returns the two calls about a statement, which is unproved if both say no. It returns
// nil if the budget has no room for them.
func (p *proof) verdictCalls(stated string, f finding) (calls []call) {
	s, tokens := prompt.Slots{Statement: stated}, 0
	for i, label := range f.nearest[:min(len(f.nearest), 2)] {
		if i == 0 || !p.judge.trust.OnePassage {
			s.Evidence = append(s.Evidence, p.excerpt(label, f.quotes[label-1].Span))
		}
	}
	for _, s.Again = range []bool{false, true} {
		c, err := p.newVerdictCall(RoleVerify, s)
		if err != nil {
			p.warn("a statement could not be checked: %s", err)
			return nil
		}
		calls = append(calls, *c)
		tokens += p.promptSize(c.prompt)
	}
	if !p.judge.reserveCall(tokens, 1) {
		p.warnUnchecked("its budget is used up: raise --gate-calls, --gate-tokens or --budget-tokens")
		return nil
	}
	return calls
}

// isUnlikely reports whether a passage is so unlikely to be on topic that one yes about a
// statement from it is not enough. A yes changes the odds as much as a no.
func (p *proof) isUnlikely(passage retrieve.Passage) bool {
	chance, _ := p.reading.Chance(passage)
	return !p.isForeign(passage) && p.judge.trust.chanceAfterNo(1-chance) > .5
}

// askJudge asks the judge about a statement. After a no it asks again in other words, and one
// yes is enough; if unlikely is set, both replies must be yes.
func (p *proof) askJudge(calls []call, unlikely bool) (v verdict) {
	select {
	case p.places <- struct{}{}:
		defer func() { <-p.places }()
	case <-p.ctx.Done():
		return verdict{err: p.ctx.Err()}
	}
	said := Relevant
	for _, c := range calls {
		ctx, stop := p.judge.limitTime(p.ctx, 1)
		next := p.judge.makeCall(ctx, c)
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

func (p *proof) recordVerdict(o *openStatement, v verdict) {
	o.event.Calls, o.event.Tokens = p.addUsage(v.calls...)
	v.calls = nil // so that a repetition of the statement does not count them again
	o.verdict <- v
	o.event.By = byModel
	switch {
	case v.decision == Relevant:
		if !o.cites {
			o.event.Found = o.nearest
		}
	case v.decision != Irrelevant || v.late:
		o.event.By = unjudged
		if p.ctx.Err() == nil {
			p.warnUnchecked(cmp.Or(v.reason, "it failed or took too long"))
		}
	default:
		o.event.Verdict, o.event.Found, o.event.Idle = Dropped, 0, nil
		if p.Unproved == UnprovedMark {
			o.event.Verdict = Marked
		}
	}
	p.concludeStatement(o)
}

func (p *proof) warnUnchecked(why string) {
	p.warnOnce("proof", "statements of the answer could not be checked by the judge: %s", why)
}

// concludeStatement passes the decision about a statement to the queue and emits it.
func (p *proof) concludeStatement(o *openStatement) {
	e, v := &o.event, statement.Keep
	if e.Verdict == Dropped {
		v = statement.Drop
	}
	cites := e.Found != 0 || len(o.Labels()) > len(e.Idle)
	p.hasSource = p.hasSource || v == statement.Keep && (cites || p.Unproved == UnprovedMark)
	if e.Found != 0 && e.Found == o.nearest {
		e.Quotes = map[int]support.Quote{o.nearest: o.quote}
	}
	p.queue.Decide(o.number, v, relabelUnit(o.Unit, e.Idle, e.Found))
	e.Plain = p.judge == nil && e.Found == 0 && len(e.Idle) == 0
	p.emitAnswer(*e)
}

// relabelUnit returns the text of a unit with a found label added, or, if found is 0,
// without idle labels.
func relabelUnit(u statement.Unit, idle []int, found int) string {
	if found != 0 {
		text, border := u.Text, ""
		if u.IsListed() {
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
		kept := difference(m.Labels, idle)
		if len(kept) == len(m.Labels) {
			continue
		}
		out.WriteString(u.Text[at:m.Start])
		out.Write(replies.AppendLabels(nil, kept))
		at = m.End
	}
	out.WriteString(u.Text[at:])
	return out.String()
}
