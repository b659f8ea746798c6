package main

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"ibid/answer"
	"ibid/cite"
	"ibid/cite/support"
	"ibid/retrieve"
)

// A tracer records of one question what an answer does not have.
type tracer struct {
	passages []retrieve.Passage // that the searches found, best first
	first    int                // of these, how many the first one found
	searched string             // the question that was searched for, where it is not the one asked
	kept     map[string]bool    // by passage id
	labelled []retrieve.Passage // those kept last, by their labels from 1
	verified []check            // also without a judge
}

// A check is the proof of a statement.
type check struct {
	answer.Verified
	step   int    // how many steps ended before it
	hidden bool   // nothing of the reply is shown, since none of it has a source
	source string // the passage that was found for it
}

// record passes the events on.
func (t *tracer) record(events iter.Seq2[answer.Event, error]) iter.Seq2[answer.Event, error] {
	t.kept = make(map[string]bool)
	return func(yield func(answer.Event, error) bool) {
		steps := 0
		for e, err := range events {
			switch e := e.(type) {
			case answer.Retrieved:
				for _, p := range e.Passages { // also of a wider look
					if !slices.ContainsFunc(t.passages, func(q retrieve.Passage) bool { return q.ID == p.ID }) {
						t.passages = append(t.passages, p)
					}
				}
				t.first = cmp.Or(t.first, len(t.passages))
				if e.Reworded {
					t.searched = e.Question
				}
			case answer.Kept:
				t.labelled = e.Passages
				for _, p := range e.Passages {
					t.kept[p.ID] = true
				}
			case answer.Verified:
				c := check{Verified: e, step: steps}
				if 0 < e.Found && e.Found <= len(t.labelled) {
					c.source = passageName(t.labelled[e.Found-1])
				}
				t.verified = append(t.verified, c)
			case answer.Stepped:
				for i := range t.verified {
					c := &t.verified[i]
					c.hidden = c.hidden || c.step == steps && e.Reason == "unproved"
				}
				steps++
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// printTrace explains an answer: what the searches found, what the model read and made of it,
// and the check of its statements.
func (t *tracer) printTrace(w io.Writer, a cite.Answer) error {
	var b strings.Builder
	b.WriteByte('\n')
	if t.searched != "" {
		fmt.Fprintf(&b, "The question was searched for as “%s”.\n", oneLine(t.searched, 300))
	}
	switch {
	case a.Reason == "small_talk":
		b.WriteString("This asks nothing about the documents, so nothing was searched.\n")
	case t.first == 0:
		b.WriteString("The search found 0 passages.\n")
	default:
		fmt.Fprintf(&b, "The search found %s. Before each is the chance that it is about the question, below it why.\n",
			countOf(t.first, "passage"))
	}
	unread := unreadPassages(a)
	for i, p := range t.passages {
		if i == t.first {
			b.WriteString("Since the model found no answer in what it read of these, the search looked further down:\n")
		}
		b.WriteString(passageTrace(i+1, p, a, unread[p.ID]))
	}
	b.WriteString(stepsText(a))
	if len(t.verified) > 0 {
		b.WriteString("\nEach statement, and what code or a model as judge found before it could be shown:\n")
	}
	for _, v := range t.verified {
		fmt.Fprintf(&b, "  - “%s”\n    %s\n", oneLine(v.Statement, 300), verifiedOutcome(v))
	}
	if a.Fallback != "" {
		b.WriteString("\nThe model gave no answer that could be used, so sentences of the passages were quoted without it.\n")
	}
	if u := a.Usage; u.Calls > 0 {
		judged := ""
		if u.JudgeCalls > 0 {
			judged = fmt.Sprintf(", %d of them to judge", u.JudgeCalls)
		}
		fmt.Fprintf(&b, "\nAll in all %s to the model%s, with %d tokens in and %d out.\n",
			countOf(u.Calls, "call"), judged, u.PromptTokens, u.CompletionTokens)
	}
	_, err := io.WriteString(w, printable(b.String()))
	return err
}

// unreadPassages returns the ids of passages that were kept and shown to no model.
func unreadPassages(a cite.Answer) map[string]bool {
	unread := map[string]bool{}
	for _, s := range a.Steps { // a wider look may read what an earlier step left out
		for _, id := range s.Passages {
			unread[id] = s.Role == ""
		}
	}
	return unread
}

// passageTrace returns the lines about one passage: its use, and the reason.
func passageTrace(place int, p retrieve.Passage, a cite.Answer, unread bool) string {
	state, chance, why := "read", "", ""
	at := slices.IndexFunc(a.Judged, func(j answer.Judged) bool { return j.Passage == p.ID })
	switch {
	case at < 0 && unread:
		state = "not read"
	case at < 0:
		state = "not judged"
	default:
		j := a.Judged[at]
		chance, why = fmt.Sprintf("%.0f %%", 100*j.Chance), oneLine(j.Reason, 300)
		switch {
		case unread:
			state = "not read"
		case j.Wider:
			state = "read later"
		case j.Decision == answer.Irrelevant:
			state = "skipped"
		case j.Decision != answer.Relevant:
			why = strings.TrimSuffix(fmt.Sprintf("the judge gave no verdict (%s): %s", j.Decision, why), ": ")
		case j.By == "model" && !j.IsRejected():
			why = strings.TrimSuffix("the judge said yes: "+why, ": ")
		}
	}
	for _, src := range a.Sources {
		if slices.ContainsFunc(src.Passages, func(q cite.SourcePassage) bool { return q.ID == p.ID }) {
			state = fmt.Sprintf("%s [%d]", strings.NewReplacer("read later", "cited", "read", "cited").Replace(state), src.Number)
		}
	}
	if why != "" {
		why = "    " + why + "\n"
	}
	return fmt.Sprintf("%2d. %-10s %5s  %s\n%s", place, state, chance, passageName(p), why)
}

// A look is at passages: those that steps have read, and the others.
type look struct {
	steps    []answer.Stepped
	read     map[string]bool
	left     int    // the number of the others
	leftSays string // why they were
}

// looksOf returns the steps by their look. What has no labels was left out before the
// look at the others began.
func looksOf(a cite.Answer) (looks []*look) {
	var l *look
	last := 0
	for _, s := range a.Steps {
		began := l != nil && len(l.steps) > 0
		wider := began && s.Role != "" && s.Step <= last && slices.ContainsFunc(a.Judged, func(j answer.Judged) bool { return j.Wider })
		if l == nil || wider || began && s.Role == "" && len(s.Labels) == 0 {
			l = &look{read: map[string]bool{}}
			looks = append(looks, l)
		}
		if s.Role == "" {
			l.left += len(s.Passages)
			l.leftSays = cmp.Or(unread[s.Reason], s.Reason)
			continue
		}
		l.steps, last = append(l.steps, s), s.Step
		for _, id := range s.Passages {
			l.read[id] = true
		}
	}
	return looks
}

func stepsText(a cite.Answer) string {
	var b strings.Builder
	for i, l := range looksOf(a) {
		b.WriteString([]string{"\nThe model read ", "Then it looked again, at "}[min(i, 1)])
		if l.left > 0 {
			fmt.Fprintf(&b, "%d of %s; %s.\n", len(l.read), countOf(len(l.read)+l.left, "passage"), l.leftSays)
		} else {
			b.WriteString(countOf(len(l.read), "passage") + ".\n")
		}
		for _, s := range l.steps {
			fmt.Fprintf(&b, "%2d. %s: %s\n", s.Step, stepTask(s), stepOutcome(s))
		}
	}
	for _, d := range a.Drafts {
		fmt.Fprintf(&b, "\nThe draft of step %d:\n%s\n", d.Step, strings.TrimSpace(d.Text))
	}
	return b.String()
}

// stepTask says what the model was asked for in a step.
func stepTask(s answer.Stepped) string {
	switch passages := countOf(len(s.Passages), "passage"); s.Role {
	case answer.RoleRefine:
		return "improved with " + passages
	case answer.RoleCollapse:
		return fmt.Sprintf("shortened, of the parts of the steps %v", s.From)
	case answer.RoleCombine:
		return fmt.Sprintf("combined, of the parts of the steps %v", s.From)
	default:
		return "written from " + passages
	}
}

// unread says why passages went into no step.
var unread = map[string]string{
	"deferred":        "the others are less likely, and were kept back for a second look, if these hold no answer",
	"budget":          "the context window, or the budget, has no room for the others",
	"calls":           "a question has no more calls for the others",
	"answer_too_long": "the draft has grown too long for the others",
}

// unchanged says why a step did not change the answer.
var unchanged = map[string]string{
	"model_error": "the call failed",
	"empty_reply": "the reply was empty",
	"meta_remark": "it saw nothing to change",
	"unproved":    "no statement of it is proved by a passage, so nothing of it is shown",
	"same":        "it repeated the draft",
	"no_answer":   "it said that they do not hold the answer",
	"cut":         "the reply was cut off, so the draft before it stays",
}

func stepOutcome(s answer.Stepped) string {
	out := cmp.Or(unchanged[s.Reason], s.Reason, "it changed nothing")
	if s.Changed {
		out = "its reply was used"
	}
	if len(s.Invented) > 0 {
		out += fmt.Sprintf("; labels that no passage has were removed: %v", s.Invented)
	}
	if len(s.Lost) > 0 {
		out += fmt.Sprintf("; labels that it no longer cites: %v", s.Lost)
	}
	return out
}

// verifiedOutcome returns the result of the check of a statement.
func verifiedOutcome(v check) string {
	out, calls := "shown: ", "in "+countOf(v.Calls, "call")
	if v.Calls == 0 {
		calls = "when it was asked about the same statement"
	}
	if v.hidden {
		out = "not shown, since nothing of this reply has a source: "
	}
	switch {
	case v.Verdict == answer.Dropped:
		out = "not shown: the judge decided no, " + calls
	case v.Verdict == answer.Marked:
		out = "shown as doubtful: the judge decided no, " + calls
	case v.By == "model":
		out += "the judge decided yes, " + calls
	case v.By == "unjudged":
		out += "unchecked, since the judge gave no verdict"
	default:
		out += foundByCode(v)
	}
	if v.Found > 0 {
		out += "; it cited nothing, so the passage that bears it out was added: " + cmp.Or(v.source, fmt.Sprint("label ", v.Found))
	}
	if len(v.Idle) > 0 {
		out += fmt.Sprintf("; labels whose passages add nothing to it were removed: %v", v.Idle)
	}
	return out
}

// foundByCode says why code has cleared a statement.
func foundByCode(v check) string {
	says := func(verdict support.Verdict) bool {
		for _, q := range v.Quotes {
			if q.Verdict == verdict {
				return true
			}
		}
		return false
	}
	switch {
	case says(support.Quoted), !v.Plain && v.Found == 0:
		return "a passage says it word for word"
	case says(support.Supported), v.Found > 0:
		return "a passage bears it out"
	case len(v.Quotes) == 0:
		return "it cites nothing, so it is marked; no judge was asked"
	}
	return "what it cites does not bear it out, so it is marked; no judge was asked"
}
