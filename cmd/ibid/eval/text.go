package eval

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// maxListed is how many failed questions the text names.
const maxListed = 20

// WriteText writes the report for a terminal. What documents and models wrote
// is in it as it is.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s of %s; %s\n", r.Folder, counted(len(r.Outcomes), "question"), r.File, counted(r.Documents, "document"))
	if r.Interrupted {
		fmt.Fprintf(&b, "interrupted: %d of %d questions were asked, and all figures are of these\n", len(r.Outcomes), r.Wanted)
	}
	if len(r.Unread) > 0 {
		fmt.Fprintf(&b, "%s could not be read: standard error and --html name each with the reason, and 'ibid ingest --help' says what is read\n", counted(len(r.Unread), "file"))
	}
	fmt.Fprintf(&b, "passed %d, failed %d", r.Passed, r.Failed)
	for i, c := range r.Causes {
		fmt.Fprintf(&b, "%s %s %d", map[bool]string{true: ":", false: ","}[i == 0], c.Cause, c.Count)
	}
	if r.Open > 0 {
		fmt.Fprintf(&b, "; open %d: nothing says what is right", r.Open)
	}
	b.WriteByte('\n')
	r.writeFigures(&b)
	if len(r.Kinds) > 0 {
		fmt.Fprintf(&b, "\n%-18s %9s %9s %9s %9s\n", "kind", "questions", "passed", "failed", "open")
		for _, k := range r.Kinds {
			fmt.Fprintf(&b, "%-18s %9d %9d %9d %9d\n", cmp.Or(excerpt(k.Kind, 18), "-"), k.Questions, k.Passed, k.Failed, k.Open)
		}
	}
	if r.Total.Calls > 0 {
		fmt.Fprintf(&b, "\n%d model calls, %d of them of the judge; %d tokens in prompts, %d in replies", r.Total.Calls, r.Total.JudgeCalls, r.Total.PromptTokens, r.Total.CompletionTokens)
		if r.Price != nil {
			fmt.Fprintf(&b, "; %s in all", MoneyUnit.Write(r.Money()))
		}
		b.WriteByte('\n')
	}
	r.writeCompared(&b)
	r.writeFailed(&b)
	for _, m := range r.Missed {
		fmt.Fprintf(&b, "missed: %s\n", m)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) writeFigures(b *strings.Builder) {
	fmt.Fprintf(b, "\n%-20s %10s   %-22s %9s\n", "", "", "95 % interval", "questions")
	group := overallGroup
	for _, f := range r.shown() {
		if f.group != group {
			group = f.group
			fmt.Fprintf(b, "%s\n", group)
		}
		fmt.Fprintf(b, "  %-18s %s   %-22s %9d\n", f.Name, right(f.Unit.Write(f.Value), 10), left(f.Unit.Write(f.Low)+" to "+f.Unit.Write(f.High), 22), f.Questions)
	}
	fmt.Fprintf(b, "(intervals: bootstrap over questions, Wilson's of shares; seed %d)\n", r.Seed)
}

// right and left put a text into columns; Printf counts bytes of µ and − as such.
func right(s string, n int) string { return strings.Repeat(" ", max(0, n-width(s))) + s }
func left(s string, n int) string  { return s + strings.Repeat(" ", max(0, n-width(s))) }

func (r *Report) writeCompared(b *strings.Builder) {
	c := r.Compared
	if c == nil {
		return
	}
	fmt.Fprintf(b, "\ncompared with %s: %s in both", c.With, counted(c.Questions, "question"))
	if c.OnlyNow+c.OnlyThen > 0 {
		fmt.Fprintf(b, ", %d only now, %d only then", c.OnlyNow, c.OnlyThen)
	}
	b.WriteByte('\n')
	if len(c.Doubts) > 0 {
		b.WriteString("warning: this is not like with like\n")
	}
	for _, d := range c.Doubts {
		fmt.Fprintf(b, "  %s\n", d)
	}
	if changed := c.Changes(); len(changed) > 0 {
		b.WriteString("what differs\n")
		for _, s := range changed {
			fmt.Fprintf(b, "  %s: %s, was %s\n", s.Name, s.Now, s.Then)
		}
	} else if c.AllTheSame() {
		fmt.Fprintf(b, "%s\n", allTheSame)
	}
	fmt.Fprintf(b, "%-20s %10s %10s %11s   %-24s %6s %6s\n", "", "then", "now", "difference", "95 % interval", "better", "worse")
	for _, d := range c.Differences {
		if d.same() {
			continue
		}
		fmt.Fprintf(b, "  %-18s %s %s %s   %s %6d %6d  %s\n", d.Name, right(d.Unit.Write(d.Then), 10), right(d.Unit.Write(d.Now), 10), right(d.Unit.WriteChange(d.Value), 11),
			left(d.Unit.WriteChange(d.Low)+" to "+d.Unit.WriteChange(d.High), 24), d.Better, d.Worse, d.Note())
	}
	if same := c.Same(); same != "" {
		fmt.Fprintf(b, "  the same for every question: %s\n", same)
	}
	fmt.Fprintf(b, "%s\n", c.caution())
	for i, m := range c.Moved {
		if i == maxListed {
			fmt.Fprintf(b, "and %d more that came out in another way\n", len(c.Moved)-maxListed)
			break
		}
		fmt.Fprintf(b, "  %s: %s, was %s: %s\n", m.ID, outcome(m.Now, m.NowCause), outcome(m.Then, m.ThenCause), excerpt(m.Text, 80))
	}
}

// allTheSame says that nothing is another that a report knows of.
const allTheSame = "the folder, its documents, the questions, the settings, the store, the version and the machine are the same"

// AllTheSame says whether nothing is another that a report knows of.
func (c *Compared) AllTheSame() bool {
	return len(c.Doubts)+len(c.Conditions)+len(c.Settings) == 0
}

// Changes are the conditions and settings that differ, in words.
func (c *Compared) Changes() []Changed {
	var all []Changed
	for _, x := range c.Conditions {
		all = append(all, Changed{x.Name, cmp.Or(x.Then, "not told"), cmp.Or(x.Now, "not told")})
	}
	for _, x := range c.Settings {
		all = append(all, Changed{x.Name, cmp.Or(x.Then, "none"), cmp.Or(x.Now, "none")})
	}
	return all
}

// Same names the figures that are the same for every question.
func (c *Compared) Same() string {
	var names []string
	for _, d := range c.Differences {
		if d.same() {
			names = append(names, d.Name)
		}
	}
	return strings.Join(names, ", ")
}

// caution says how much of a comparison may be chance.
func (c *Compared) caution() string {
	sure := 0
	for _, d := range c.Differences {
		if d.Verdict != "" {
			sure++
		}
	}
	if sure == 0 {
		return "no figure differs by more than chance may bring about"
	}
	return fmt.Sprintf("%d of %s differ by more than chance would in 19 of 20 cases; of so many, about %.0f would seem to by chance alone",
		sure, counted(len(c.Differences), "figure"), max(1, float64(len(c.Differences))*(1-confidence)))
}

func outcome(s Status, c Cause) string {
	if c != "" {
		return string(s) + " (" + string(c) + ")"
	}
	return string(s)
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
			fmt.Fprintf(b, "and %d more: --html and --json have them all, with their traces\n", r.Failed-maxListed)
			return
		}
		fmt.Fprintf(b, "  %s (%s) %s\n    %s\n", o.Question.ID, o.Cause, excerpt(o.Question.Text, 100), excerpt(o.Why[0], 200))
		if o.Text != "" {
			fmt.Fprintf(b, "    answer: %s\n", excerpt(o.Text, 200))
		}
	}
}
