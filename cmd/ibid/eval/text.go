package eval

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxListed is the number of questions that a list in the text shows.
const maxListed = 20

// WriteText writes the report for a terminal. It does not escape the text of
// documents and models.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s of %s; %s\n", r.Folder, counted(len(r.Outcomes), "question"), r.File, counted(r.Documents, "document"))
	if r.Interrupted {
		fmt.Fprintf(&b, "interrupted: %d of %d questions were asked\n", len(r.Outcomes), r.Wanted)
	}
	if len(r.Unread) > 0 {
		fmt.Fprintf(&b, "%s could not be read; --html lists the reasons\n", counted(len(r.Unread), "file"))
	}
	fmt.Fprintf(&b, "passed %d, failed %d", r.Passed, r.Failed)
	for i, c := range r.Causes {
		fmt.Fprintf(&b, "%s %s %d", map[bool]string{true: ":", false: ","}[i == 0], c.Cause, c.Count)
	}
	if r.Open > 0 {
		fmt.Fprintf(&b, "; open %d: no right answer is known", r.Open)
	}
	fmt.Fprintf(&b, "\n\n%-20s %10s %9s\n", "", "", "questions")
	group := overallGroup
	for _, f := range r.Shown() {
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(&b, "%s\n", group)
		}
		fmt.Fprintf(&b, "  %-18s %s %9d\n", f.Name, alignRight(f.Text(), 10), f.Questions)
	}
	if len(r.Kinds) > 0 {
		fmt.Fprintf(&b, "\n%-18s %9s %9s %9s %9s\n", "kind", "questions", "passed", "failed", "open")
	}
	for _, k := range r.Kinds {
		fmt.Fprintf(&b, "%-18s %9d %9d %9d %9d\n", cmp.Or(excerpt(k.Kind, 18), "-"), k.Questions, k.Passed, k.Failed, k.Open)
	}
	if spent := r.Spent(); spent != "" {
		fmt.Fprintf(&b, "\n%s\n", spent)
	}
	if r.Compared != nil {
		r.Compared.write(&b)
	}
	r.writeFailed(&b)
	for _, m := range r.Missed {
		fmt.Fprintf(&b, "missed: %s\n", m)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// alignRight pads by characters; Printf counts the bytes of µ and −.
func alignRight(s string, n int) string {
	return strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s))) + s
}

func (c *Compared) write(b *strings.Builder) {
	fmt.Fprintf(b, "\ncompared with %s: %s\n", c.With, c.Summary())
	for _, d := range c.Doubts {
		fmt.Fprintf(b, "  not comparable: %s\n", d)
	}
	for _, s := range c.Changes() {
		fmt.Fprintf(b, "  %s: %s, was %s\n", s.Name, s.Now, s.Then)
	}
	fmt.Fprintf(b, "%-20s %10s %10s %11s %6s %6s %7s\n", "", "then", "now", "difference", "better", "worse", "p")
	for _, d := range c.Changed() {
		line := fmt.Sprintf("  %-18s %s %s %s %6d %6d %7s %s", d.Name, alignRight(d.ThenText(), 10), alignRight(d.NowText(), 10),
			alignRight(d.Change(), 11), d.Better, d.Worse, d.PText(), d.Verdict)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	if same := c.Same(); same != "" {
		fmt.Fprintf(b, "  the same for every question: %s\n", same)
	}
	for i, m := range c.Moved {
		if i == maxListed {
			fmt.Fprintf(b, "and %d more questions with another outcome\n", len(c.Moved)-maxListed)
			break
		}
		fmt.Fprintf(b, "  %s: %s: %s\n", m.ID, m, excerpt(m.Text, 80))
	}
}

func (r *Report) writeFailed(b *strings.Builder) {
	listed := 0
	for _, o := range r.Outcomes {
		if o.Status != Failed {
			continue
		}
		if listed == 0 {
			b.WriteString("\nfailed\n")
		}
		if listed++; listed > maxListed {
			fmt.Fprintf(b, "and %d more: --html and --json have all of them with their traces\n", r.Failed-maxListed)
			return
		}
		fmt.Fprintf(b, "  %s (%s) %s\n    %s\n", o.Question.ID, o.Cause, excerpt(o.Question.Text, 100), excerpt(o.Why[0], 200))
		if o.Text != "" {
			fmt.Fprintf(b, "    answer: %s\n", excerpt(o.Text, 200))
		}
	}
}
