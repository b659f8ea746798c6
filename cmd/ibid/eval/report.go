// Package eval computes the figures by which Ibid is measured, and reads public
// benchmark formats and files of questions. It imports no other package of Ibid:
// rankings, scores and texts are arguments, so that the tests of every package
// use the same measures as the command.
//
// Rankings are measured as trec_eval and BEIR measure them (see [Metric]), so
// figures are comparable with published ones.
//
// 'ibid eval report' is one path: [ReadQuestions] gives questions, asking each
// gives an [Outcome], and a [Report] of them is written as text, JSON or HTML.
package eval

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Format identifies a report in JSON.
const Format = "ibid eval report 1"

// A Report is the result of asking a folder its questions.
type Report struct {
	Format    string    `json:"format"`
	Made      time.Time `json:"made"`
	Version   string    `json:"version"`
	Folder    string    `json:"folder"`
	File      string    `json:"file"` // of the questions
	Documents int       `json:"documents"`
	Chunks    int       `json:"chunks"`
	// Library is a digest of the paths, contents, readers and chunk counts of the
	// documents, but not of the folder's name.
	Library string `json:"library"`
	// OtherDocuments is the number of documents of other folders in the store. They are not
	// searched, but word frequencies are counted over all documents.
	OtherDocuments int       `json:"beside"`
	Store          string    `json:"store"`
	Machine        string    `json:"machine"`  // system, architecture and processors
	Unread         []string  `json:"unread"`   // files that could not be read, with the reason
	Settings       []Setting `json:"settings"` // that affect the answers, in display order
	Price          *Price    `json:"price,omitempty"`
	// Wanted is the number of questions. Interrupted means that only those in
	// Outcomes were asked.
	Wanted      int              `json:"wanted"`
	Interrupted bool             `json:"interrupted"`
	Passed      int              `json:"passed"`
	Failed      int              `json:"failed"`
	Open        int              `json:"open"`
	Causes      []CauseCount     `json:"causes"` // of the failures, in the order of the stages
	Kinds       []KindCount      `json:"kinds"`
	Figures     []MeasuredFigure `json:"figures"`
	Total       Cost             `json:"total"` // of all questions
	Compared    *Compared        `json:"compared,omitempty"`
	Missed      []string         `json:"missed"` // thresholds, in words
	Outcomes    []Outcome        `json:"questions"`

	measures []Measure
}

// A Setting affects the answers.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A CauseCount is the number of failures with one cause.
type CauseCount struct {
	Cause Cause `json:"cause"`
	Count int   `json:"count"`
}

// A KindCount counts the outcomes of one kind of question.
type KindCount struct {
	Kind      string `json:"kind"`
	Questions int    `json:"questions"`
	Passed    int    `json:"passed"`
	Failed    int    `json:"failed"`
	Open      int    `json:"open"`
}

// A MeasuredFigure is a figure of a report.
type MeasuredFigure struct {
	Name      string  `json:"name"`
	Unit      Unit    `json:"unit"`
	Value     float64 `json:"value"`
	Questions int     `json:"questions"` // from which it is computed

	Group string `json:"-"`
	Says  string `json:"-"`
}

// Text is the value in its unit.
func (f MeasuredFigure) Text() string { return f.Unit.Write(f.Value) }

// Measure counts the outcomes and computes the figures.
func (r *Report) Measure(metrics []Metric) {
	r.Format, r.measures = Format, Measures(metrics, r.Price)
	r.Causes, r.Kinds = []CauseCount{}, []KindCount{}
	for _, list := range []*[]string{&r.Unread, &r.Missed} {
		if *list == nil {
			*list = []string{}
		}
	}
	failed := make(map[Cause]int)
	for _, o := range r.Outcomes {
		kind := r.kind(o.Question.Kind)
		kind.Questions++
		counters := map[Status][2]*int{Passed: {&r.Passed, &kind.Passed}, Failed: {&r.Failed, &kind.Failed}, Open: {&r.Open, &kind.Open}}
		for _, n := range counters[o.Status] {
			*n++
		}
		failed[o.Cause]++
		r.Total.add(o.Cost)
	}
	for _, c := range causes {
		if failed[c] > 0 {
			r.Causes = append(r.Causes, CauseCount{c, failed[c]})
		}
	}
	if len(r.Kinds) == 1 && r.Kinds[0].Kind == "" {
		r.Kinds = []KindCount{} // no question has a kind
	}
	for _, m := range r.measures {
		var parts []part
		for i := range r.Outcomes {
			if p := m.part(&r.Outcomes[i]); p.den > 0 {
				parts = append(parts, p)
			}
		}
		if len(parts) > 0 {
			r.Figures = append(r.Figures, MeasuredFigure{m.Name, m.Unit, m.compute(parts), len(parts), m.Group, m.Says})
		}
	}
}

// kind returns the counts of a kind, which it adds if it is new.
func (r *Report) kind(name string) *KindCount {
	at := slices.IndexFunc(r.Kinds, func(k KindCount) bool { return k.Kind == name })
	if at < 0 {
		at = len(r.Kinds)
		r.Kinds = append(r.Kinds, KindCount{Kind: name})
	}
	return &r.Kinds[at]
}

// Shown returns the figures to display: without a model, not the costs.
func (r *Report) Shown() []MeasuredFigure {
	return slices.DeleteFunc(slices.Clone(r.Figures), func(f MeasuredFigure) bool { return f.Group == costGroup && r.Total.Calls == 0 })
}

// Figure returns a figure by name; false if no question counts for it.
func (r *Report) Figure(name string) (MeasuredFigure, bool) {
	i := slices.IndexFunc(r.Figures, func(f MeasuredFigure) bool { return f.Name == name })
	if i < 0 {
		return MeasuredFigure{}, false
	}
	return r.Figures[i], true
}

// Spent describes the use of models, or is empty.
func (r *Report) Spent() string {
	t := r.Total
	if t.Calls == 0 {
		return ""
	}
	s := fmt.Sprintf("%s, %d by the judge; %d tokens in prompts, %d in replies",
		counted(t.Calls, "model call"), t.JudgeCalls, t.PromptTokens, t.CompletionTokens)
	if r.Price != nil {
		s += "; price " + MoneyUnit.Write(r.Price.Of(t))
	}
	return s
}

// Conditions are what must be the same, apart from the settings, for two reports
// to be comparable.
func (r *Report) Conditions() []Setting {
	return []Setting{
		{"folder", r.Folder}, {"questions", r.File}, {"documents", strconv.Itoa(r.Documents)}, {"chunks", strconv.Itoa(r.Chunks)},
		{"library", r.Library}, {"other documents in the store", strconv.Itoa(r.OtherDocuments)}, {"store", r.Store},
		{"version", r.Version}, {"machine", r.Machine},
	}
}

// ReadReport reads a report in JSON.
func ReadReport(in io.Reader) (*Report, error) {
	var r Report
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return nil, fmt.Errorf("not a report in JSON: %w", err)
	}
	switch {
	case r.Format != Format:
		return nil, fmt.Errorf("not a report of this version: its format is %q, not %q", clip(r.Format), Format)
	case len(r.Outcomes) == 0:
		return nil, errors.New("it has no questions")
	}
	for i, o := range r.Outcomes {
		if o.Question.Pages != nil && len(o.Question.Pages) != len(o.Question.Documents) {
			return nil, fmt.Errorf("its question %d has pages of %d documents but names %d", i+1, len(o.Question.Pages), len(o.Question.Documents))
		}
	}
	return &r, nil
}

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

//go:embed page.html
var pageSource string

//go:embed page.css
var pageStyle string

func pageTemplate() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"plain":   plain,
		"excerpt": func(n int, s string) string { return plain(excerpt(s, n)) },
		"counted": counted,
		"or":      func(a, b string) string { return cmp.Or(a, b) },
		"date":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
		"clock":   SecondsUnit.Write,
		"two":     func(x float64) string { return fmt.Sprintf("%.2f", x) },
		"inc":     func(i int) int { return i + 1 },
		"causeIs": func(c Cause) string { return causeIs[c] },
	}).Parse(pageSource))
}

var causeIs = map[Cause]string{
	Retrieval:  "The search found none of the right passages.",
	Gate:       "The search found right passages, and the gate skipped all of them.",
	Generation: "A right passage was kept, but the answer does not contain what it must, or is incomplete.",
	Citations:  "The answer cites no source, no right one, or one that does not support it.",
	Refusal:    "There is an answer and it was refused, or there is none and it was answered.",
	Trouble:    "The question ended in an error.",
}

// plain makes control characters, and invisible characters that can hide or
// reorder text, visible: documents and models may be hostile.
func plain(s string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\ufffd") {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d') {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// A page is the data of the template.
type page struct {
	*Report
	Style  template.CSS
	Policy string // Content-Security-Policy
	Listed []listed
}

// A listed outcome has a place on the page to which links lead.
type listed struct {
	*Outcome
	Place string
}

// FailedBy returns the failed questions with one cause.
func (p page) FailedBy(c Cause) []listed {
	return slices.DeleteFunc(slices.Clone(p.Listed), func(l listed) bool { return l.Status != Failed || l.Cause != c })
}

// FirstRight is the rank of the first right passage, or 0.
func (l listed) FirstRight() int {
	return 1 + slices.IndexFunc(l.Retrieved, func(p Passage) bool { return p.Right })
}

// Kept counts the passages that the gate kept.
func (l listed) Kept() int {
	return len(slices.DeleteFunc(slices.Clone(l.Retrieved), func(p Passage) bool { return !p.Kept }))
}

// A segment is a part of an answer; Doubt says why nothing supports it.
type segment struct{ Text, Doubt string }

// Segments are the parts of the answer, split around unsupported statements.
func (l listed) Segments() []segment {
	var out []segment
	at := 0
	unsupported := slices.Clone(l.Unsupported)
	slices.SortFunc(unsupported, func(a, b Sentence) int { return a.Start - b.Start })
	for _, s := range unsupported {
		if s.Start < at || s.End <= s.Start || s.End > len(l.Text) {
			continue
		}
		doubt := "no citation"
		if s.Reason == weak {
			doubt = "nothing cited supports this"
		}
		out = append(out, segment{slice(l.Text, at, s.Start), ""}, segment{slice(l.Text, s.Start, s.End), doubt})
		at = s.End
	}
	return append(out, segment{slice(l.Text, at, len(l.Text)), ""})
}

// Sentence is the sentence with a citation.
func (l listed) Sentence(c Citation) string { return slice(l.Text, c.Start, c.End) }

// WriteHTML writes the report as one page. Its policy forbids scripts and
// requests; the text of documents, models and questions is escaped.
func (r *Report) WriteHTML(w io.Writer) error {
	sum := sha256.Sum256([]byte(pageStyle))
	p := page{
		Report: r, Style: template.CSS(pageStyle),
		Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'",
	}
	for i := range r.Outcomes {
		p.Listed = append(p.Listed, listed{&r.Outcomes[i], fmt.Sprintf("question-%d", i+1)})
	}
	return pageTemplate().Execute(w, p)
}
