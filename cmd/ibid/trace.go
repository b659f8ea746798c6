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
	"ibid/retrieve"
)

// A tracer records the passages of one question before they are numbered.
type tracer struct {
	passages []retrieve.Passage // that the search found, best first
	kept     map[string]bool    // by passage id
}

// record passes the events on.
func (t *tracer) record(events iter.Seq2[answer.Event, error]) iter.Seq2[answer.Event, error] {
	t.kept = make(map[string]bool)
	return func(yield func(answer.Event, error) bool) {
		for e, err := range events {
			switch e := e.(type) {
			case answer.Retrieved:
				for _, p := range e.Passages { // also of a wider look
					if !slices.ContainsFunc(t.passages, func(q retrieve.Passage) bool { return q.ID == p.ID }) {
						t.passages = append(t.passages, p)
					}
				}
			case answer.Kept:
				for _, p := range e.Passages {
					t.kept[p.ID] = true
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// showTrace explains an answer: the use of each passage, in the order of
// the search, the steps of the model, and the check of its statements.
func showTrace(w io.Writer, passages []retrieve.Passage, a cite.Answer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\nThe search found %s.", counted(len(passages), "passage"))
	if len(passages) > 0 {
		b.WriteString(" The number is the chance that a passage is about the question.")
	}
	b.WriteByte('\n')
	unread := unreadPassages(a)
	for i, p := range passages {
		b.WriteString(passageTrace(i+1, p, a, unread[p.ID]))
	}
	b.WriteString(stepsText(a))
	if u := a.Usage; u.Calls > 0 {
		fmt.Fprintf(&b, "\nAll in all %s to the model, %d of them to judge, with %d tokens in and %d out.\n",
			counted(u.Calls, "call"), u.JudgeCalls, u.PromptTokens, u.CompletionTokens)
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
		state = "left out"
	case at < 0:
		state = "not judged"
	default:
		j := a.Judged[at]
		chance = fmt.Sprintf("%.0f %%", 100*j.Chance)
		by := map[string]string{"score": "by its words", "model": "by the judge", "unjudged": "by its words, without the judge"}[j.By]
		switch {
		case j.Wider:
			by = "only when the others held no answer"
		case j.Decision == answer.Irrelevant:
			state = "skipped"
		case j.Decision != answer.Relevant:
			by += ", whose verdict is missing (" + string(j.Decision) + ")"
		}
		why = "    " + by
		if j.Reason != "" {
			why += ": " + oneLine(j.Reason, 300)
		}
		why += "\n"
		if unread { // the steps say why
			state, why = "left out", ""
		}
	}
	for _, src := range a.Sources {
		if slices.ContainsFunc(src.Passages, func(q cite.SourcePassage) bool { return q.ID == p.ID }) {
			state = fmt.Sprintf("%s [%d]", strings.Replace(state, "read", "cited", 1), src.Number)
		}
	}
	return fmt.Sprintf("%2d. %-10s %5s  %s\n%s", place, state, chance, passageName(p), why)
}

func stepsText(a cite.Answer) string {
	var b strings.Builder
	if len(a.Steps) > 0 {
		b.WriteString("\nThe model was asked:\n")
	}
	wider := slices.ContainsFunc(a.Judged, func(j answer.Judged) bool { return j.Wider })
	last, skipped := 0, ""
	for _, s := range a.Steps {
		if s.Role == "" {
			skipped += fmt.Sprintf("  - %s left out: %s\n", counted(len(s.Passages), "more passage"), cmp.Or(unread[s.Reason], s.Reason))
			continue
		}
		if s.Step <= last && wider {
			fmt.Fprintf(&b, "Then it looked again, at %s:\n", counted(len(s.Passages), "passage"))
		}
		fmt.Fprintf(&b, "%2d. %s of %s: %s\n%s", s.Step, s.Role, counted(len(s.Passages), "passage"), stepOutcome(s), skipped)
		last, skipped = s.Step, ""
	}
	b.WriteString(skipped)
	if len(a.Verified) > 0 {
		b.WriteString("\nStatements were held back until they were checked:\n")
	}
	for _, v := range a.Verified {
		fmt.Fprintf(&b, "  - “%s”\n    %s\n", oneLine(v.Statement, 300), verifiedOutcome(v))
	}
	for _, d := range a.Drafts {
		fmt.Fprintf(&b, "\ndraft of step %d:\n%s\n", d.Step, strings.TrimSpace(d.Text))
	}
	return b.String()
}

// unread says why passages went into no step.
var unread = map[string]string{
	"deferred":        "they are less likely, and are read if the others hold no answer",
	"budget":          "neither the context window nor the budget has room for them",
	"answer_too_long": "the draft has grown too long for more",
}

// unchanged says why a step did not change the answer.
var unchanged = map[string]string{
	"model_error": "the call failed",
	"empty_reply": "the reply was empty",
	"meta_remark": "it saw nothing to change",
	"unproved":    "no statement of it has a source and was proved, so none is shown",
	"same":        "it repeated the draft",
	"no_answer":   "they do not hold the answer, it said",
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
func verifiedOutcome(v answer.Verified) string {
	var out string
	switch {
	case v.Verdict == answer.Dropped:
		out = "left out: the judge said no, asked " + counted(v.Calls, "time")
	case v.Verdict == answer.Marked:
		out = "marked as doubtful: the judge said no, asked " + counted(v.Calls, "time")
	case v.By == "model" && v.Calls > 1:
		out = "passed: the judge said yes when it was asked again, in other words"
	case v.By == "model":
		out = "passed: the judge said yes"
	case v.By == "unjudged":
		out = "passed unchecked: the judge gave no verdict"
	default:
		out = "passed: the passages have it"
	}
	if v.Found > 0 {
		out += fmt.Sprintf("; it cited nothing, so the passage that has it was added, label %d", v.Found)
	}
	if len(v.Idle) > 0 {
		out += fmt.Sprintf("; labels whose passages add nothing to it were removed: %v", v.Idle)
	}
	return out
}
