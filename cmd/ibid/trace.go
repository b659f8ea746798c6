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

// A tracer records details of a question that its answer does not contain.
type tracer struct {
	passages []retrieve.Passage // found by all searches, best first
	first    int                // number of passages found by the first search
	searched string             // the question that was searched for, if it differs from the question asked
	kept     map[string]bool    // by passage id
	labelled []retrieve.Passage // passages kept by the last search, by label from 1
	verified []check            // including checks without a judge
}

// A check is the proof of a statement.
type check struct {
	answer.Verified
	step   int    // number of steps that ended before the check
	hidden bool   // no part of the reply is shown, since no part has a source
	source string // the passage found for it
}

// record records events while passing them on.
func (t *tracer) record(events iter.Seq2[answer.Event, error]) iter.Seq2[answer.Event, error] {
	t.kept = make(map[string]bool)
	return func(yield func(answer.Event, error) bool) {
		steps := 0
		for e, err := range events {
			switch e := e.(type) {
			case answer.Retrieved:
				for _, p := range e.Passages { // also of a wider search
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

// printTrace explains an answer: the search results, the passages that the model read, its
// replies, and the checks of its statements.
func (t *tracer) printTrace(w io.Writer, a cite.Answer) error {
	var b strings.Builder
	b.WriteByte('\n')
	if t.searched != "" {
		fmt.Fprintf(&b, "The question was rephrased for the search: “%s”.\n", oneLine(t.searched, 300))
	}
	switch {
	case a.Reason == "small_talk":
		b.WriteString("This is no question about the documents, so nothing was searched.\n")
	case t.first == 0:
		b.WriteString("The search found no passages.\n")
	default:
		fmt.Fprintf(&b, "The search found %s. Each shows the probability that it is about the question, and the reason.\n",
			countOf(t.first, "passage"))
	}
	unread := map[string]bool{} // ids of passages that were kept but shown to no model
	for _, s := range a.Steps { // a later step may read what an earlier step left out
		for _, id := range s.Passages {
			unread[id] = s.Role == ""
		}
	}
	for i, p := range t.passages {
		if i == t.first {
			b.WriteString("The model found no answer in these, so the search continued:\n")
		}
		b.WriteString(passageTrace(i+1, p, a, unread[p.ID]))
	}
	b.WriteString(stepsText(a))
	if len(t.verified) > 0 {
		b.WriteString("\nEach statement, and its check by code or a judge model before it was shown:\n")
	}
	for _, v := range t.verified {
		fmt.Fprintf(&b, "  - “%s”\n    %s\n", oneLine(v.Statement, 300), verifiedOutcome(v))
	}
	if a.Fallback != "" {
		b.WriteString("\nThe model gave no usable answer, so sentences of the passages were quoted instead.\n")
	}
	if u := a.Usage; u.Calls > 0 {
		judged := ""
		if u.JudgeCalls > 0 {
			judged = fmt.Sprintf(", %d of them for judging", u.JudgeCalls)
		}
		fmt.Fprintf(&b, "\nIn total: %s to the model%s, with %d input tokens and %d output tokens.\n",
			countOf(u.Calls, "call"), judged, u.PromptTokens, u.CompletionTokens)
	}
	_, err := io.WriteString(w, printable(b.String()))
	return err
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

// A readRound is a sequence of steps that read passages before the next search.
type readRound struct {
	steps    []answer.Stepped
	read     map[string]bool
	left     int    // number of unread passages
	leftSays string // why they were not read
}

// readRounds groups the steps by round. A step without role and labels lists the passages left
// out before the next round.
func readRounds(a cite.Answer) (rounds []*readRound) {
	var l *readRound
	last := 0
	for _, s := range a.Steps {
		began := l != nil && len(l.steps) > 0
		wider := began && s.Role != "" && s.Step <= last && slices.ContainsFunc(a.Judged, func(j answer.Judged) bool { return j.Wider })
		if l == nil || wider || began && s.Role == "" && len(s.Labels) == 0 {
			l = &readRound{read: map[string]bool{}}
			rounds = append(rounds, l)
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
	return rounds
}

func stepsText(a cite.Answer) string {
	var b strings.Builder
	for i, l := range readRounds(a) {
		b.WriteString([]string{"\nThe model read ", "Then it read "}[min(i, 1)])
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

// stepTask describes the task of a model in a step.
func stepTask(s answer.Stepped) string {
	switch passages := countOf(len(s.Passages), "passage"); s.Role {
	case answer.RoleRefine:
		return "improved with " + passages
	case answer.RoleCollapse:
		return fmt.Sprintf("shortened from the parts of steps %v", s.From)
	case answer.RoleCombine:
		return fmt.Sprintf("combined from the parts of steps %v", s.From)
	default:
		return "written from " + passages
	}
}

// unread explains why no step read passages.
var unread = map[string]string{
	"deferred":        "the other passages are less relevant and are read only if these contain no answer",
	"budget":          "the other passages do not fit in the context window or the budget",
	"calls":           "the question has used all its calls, so the other passages are not read",
	"answer_too_long": "the draft is too long to add the other passages to it",
}

// unchanged explains why a step did not change the answer.
var unchanged = map[string]string{
	"model_error": "the call failed",
	"empty_reply": "the reply was empty",
	"meta_remark": "the model found nothing to change",
	"unproved":    "the passages prove none of its statements, so it is not shown",
	"same":        "it repeated the draft",
	"no_answer":   "the model found no answer in them",
	"cut":         "the reply was cut off, so the previous draft is kept",
}

func stepOutcome(s answer.Stepped) string {
	out := cmp.Or(unchanged[s.Reason], s.Reason, "it changed nothing")
	if s.Changed {
		out = "its reply was used"
	}
	if len(s.Invented) > 0 {
		out += fmt.Sprintf("; unknown labels were removed: %v", s.Invented)
	}
	if len(s.Lost) > 0 {
		out += fmt.Sprintf("; labels no longer cited: %v", s.Lost)
	}
	return out
}

// verifiedOutcome returns the result of checking a statement.
func verifiedOutcome(v check) string {
	out, calls := "shown: ", "in "+countOf(v.Calls, "call")
	if v.Calls == 0 {
		calls = "when asked about the same statement"
	}
	if v.hidden {
		out = "not shown, since no part of this reply has a source: "
	}
	switch {
	case v.Verdict == answer.Dropped:
		out = "not shown: the judge rejected it " + calls
	case v.Verdict == answer.Marked:
		out = "shown as doubtful: the judge rejected it " + calls
	case v.By == "model":
		out += "the judge accepted it " + calls
	case v.By == "unjudged":
		out += "unchecked, since the judge gave no verdict"
	default:
		out += foundByCode(v)
	}
	if v.Found > 0 {
		out += "; it cited nothing, so a passage that supports it was added: " + cmp.Or(v.source, fmt.Sprint("label ", v.Found))
	}
	if len(v.Idle) > 0 {
		out += fmt.Sprintf("; labels of passages that do not support it were removed: %v", v.Idle)
	}
	return out
}

// foundByCode explains why code accepted a statement.
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
		return "a passage contains it verbatim"
	case says(support.Supported), v.Found > 0:
		return "a passage supports it"
	case len(v.Quotes) == 0:
		return "it cites nothing, so it is marked; no judge was used"
	}
	return "its citations do not support it, so it is marked; no judge was used"
}
