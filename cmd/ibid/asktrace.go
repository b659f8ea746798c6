package main

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"ibid/answer"
	"ibid/cite"
	"ibid/cite/rewrite"
	"ibid/retrieve"
)

// keepRetrieved stores the passages that the search found, best first, and
// yields every event.
func keepRetrieved(events iter.Seq2[answer.Event, error], passages *[]retrieve.Passage) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		for e, err := range events {
			if r, ok := e.(answer.Retrieved); ok {
				*passages = r.Passages
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// showTrace prints what happened to each passage, in the order of the search,
// then the steps of a model and their drafts.
func showTrace(w io.Writer, passages []retrieve.Passage, a cite.Answer) error {
	judged := make(map[string]answer.Judged)
	for _, j := range a.Judged {
		judged[j.Passage] = j
	}
	cited := make(map[string][]int)
	for _, src := range a.Sources {
		for _, p := range src.Passages {
			if numbers := cited[p.ID]; !slices.Contains(numbers, src.Number) {
				cited[p.ID] = append(numbers, src.Number)
			}
		}
	}
	var b strings.Builder
	b.WriteString("\npassages, in the order of the search, with the chance of being on topic:\n")
	if len(passages) == 0 {
		b.WriteString("  none found\n")
	}
	for i, p := range passages {
		j, known := judged[p.ID]
		state := "kept"
		switch {
		case len(cited[p.ID]) > 0:
			state = "cited"
			for _, n := range cited[p.ID] {
				state += fmt.Sprintf(" [%d]", n)
			}
		case !known:
			state = "not judged"
		case j.Decision == answer.Irrelevant:
			state = "skipped"
		case j.Decision != answer.Relevant:
			state = "kept, " + string(j.Decision)
		}
		chance := ""
		if known {
			chance = fmt.Sprintf("%.3f", j.Chance)
		}
		fmt.Fprintf(&b, "%2d. %-10s %5s  %s\n", i+1, state, chance, rewrite.Neutral(passageName(p)))
		if known {
			by := "by " + j.By
			if j.By == "unjudged" {
				by = "by score, without a judge"
			}
			if j.Reason != "" {
				by += ": " + rewrite.Neutral(oneLine(j.Reason, 300))
			}
			b.WriteString("    " + by + "\n")
		}
	}
	b.WriteString(stepsText(a))
	_, err := io.WriteString(w, printable(b.String()))
	return err
}

// stepsText lists the steps of a model and their drafts.
func stepsText(a cite.Answer) string {
	var b strings.Builder
	if len(a.Steps) > 0 {
		b.WriteString("\nsteps of the model:\n")
	}
	for _, s := range a.Steps {
		fmt.Fprintf(&b, "%2d. %s of %s: %s\n", s.Step, s.Role, counted(len(s.Passages), "passage"), stepOutcome(s))
	}
	for _, d := range a.Drafts {
		fmt.Fprintf(&b, "\ndraft of step %d:\n%s\n", d.Step, strings.TrimSpace(d.Text))
	}
	return b.String()
}

// stepOutcome describes the outcome of a step.
func stepOutcome(s answer.Stepped) string {
	out := "nothing changed"
	if s.Changed {
		out = "changed the answer"
	}
	if s.Reason != "" {
		out += " (" + s.Reason + ")"
	}
	for _, l := range []struct {
		what   string
		labels []int
	}{{"invented", s.Invented}, {"lost", s.Lost}} {
		if len(l.labels) > 0 {
			out += fmt.Sprintf(", %s %v", l.what, l.labels)
		}
	}
	return out
}
