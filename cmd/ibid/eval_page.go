package main

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"ibid/answer"
	"ibid/cmd/ibid/eval"
)

// reportFormat identifies a report in JSON.
const reportFormat = "ibid eval report 4"

// An evalReport is the result of asking questions about a folder.
type evalReport struct {
	Format    string        `json:"format"`
	Made      time.Time     `json:"made"`
	Version   string        `json:"version"`
	Folder    string        `json:"folder"`
	File      string        `json:"file"` // of the questions
	Documents int           `json:"documents"`
	Chunks    int           `json:"chunks"`
	Unread    []string      `json:"unread"`   // files that could not be read, with the reason
	Settings  []setting     `json:"settings"` // only settings that affect the answers, in display order
	Passed    int           `json:"passed"`
	Failed    int           `json:"failed"`
	Open      int           `json:"open"`
	Figures   []eval.Figure `json:"figures"`
	Total     answer.Usage  `json:"total"`  // of all questions
	Missed    []string      `json:"missed"` // thresholds, in words
	Outcomes  []outcome     `json:"questions"`
}

// A setting affects the answers.
type setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// knownFigures returns the figures of a report in display order, without values.
func knownFigures() []eval.Figure {
	var all []eval.Figure
	for _, m := range measures() {
		all = append(all, m.Figure)
	}
	return append(all, auroc(nil))
}

// measure counts the outcomes and computes the figures for which a question counts.
func (r *evalReport) measure() {
	r.Format = reportFormat
	r.Unread, r.Missed = append([]string{}, r.Unread...), []string{}
	counts := make(map[status]int)
	for _, o := range r.Outcomes {
		counts[o.Status]++
		r.Total.Calls += o.Usage.Calls
		r.Total.PromptTokens += o.Usage.PromptTokens
		r.Total.CompletionTokens += o.Usage.CompletionTokens
	}
	r.Passed, r.Failed, r.Open = counts[passedStatus], counts[failedStatus], counts[openStatus]
	for _, m := range measures() {
		r.Figures = append(r.Figures, m.compute(r.Outcomes))
	}
	r.Figures = slices.DeleteFunc(append(r.Figures, auroc(r.Outcomes)), func(f eval.Figure) bool { return f.Questions == 0 })
}

// text returns the report for a terminal. It does not escape text of documents and models.
func (r *evalReport) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s of %s; %s\n", r.Folder, countOf(len(r.Outcomes), "question"), r.File, countOf(r.Documents, "document"))
	if len(r.Unread) > 0 {
		fmt.Fprintf(&b, "%s could not be read; --html lists the reasons\n", countOf(len(r.Unread), "file"))
	}
	fmt.Fprintf(&b, "passed %d, failed %d", r.Passed, r.Failed)
	if r.Open > 0 {
		fmt.Fprintf(&b, "; open %d, without a known right answer", r.Open)
	}
	fmt.Fprintf(&b, "\n\n%-18s %8s %9s\n", "figure", "value", "questions")
	for _, f := range r.Figures {
		fmt.Fprintf(&b, "%-18s %8s %9d  %s\n", f.Name, f.Text(), f.Questions, f.Says)
	}
	for i, o := range slices.DeleteFunc(slices.Clone(r.Outcomes), func(o outcome) bool { return o.Status != failedStatus }) {
		if i == 0 {
			b.WriteString("\nfailed\n")
		}
		fmt.Fprintf(&b, "  %s: %s\n    %s\n", o.Question.ID, oneLine(o.Question.Text, 100), oneLine(o.Why[0], 200))
		if o.Text != "" {
			fmt.Fprintf(&b, "    answer: %s\n", oneLine(o.Text, 200))
		}
	}
	for _, m := range r.Missed {
		fmt.Fprintf(&b, "missed: %s\n", m)
	}
	return b.String()
}

//go:embed eval/page.html
var pageSource string

//go:embed eval/page.css
var pageStyle string

// writeHTML writes the report as one page. Its policy forbids scripts and
// requests; the text of documents, models and questions is escaped.
func (r *evalReport) writeHTML(w io.Writer) error {
	page := template.Must(template.New("page").Funcs(template.FuncMap{
		"plain":   printable, // documents and models may be hostile
		"excerpt": func(n int, s string) string { return printable(oneLine(s, n)) },
		"counted": countOf,
		"date":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
		"clock":   eval.SecondsUnit.Write,
		"two":     func(x float64) string { return fmt.Sprintf("%.2f", x) },
		"inc":     func(i int) int { return i + 1 },
	}).Parse(pageSource))
	sum := sha256.Sum256([]byte(pageStyle))
	return page.Execute(w, struct {
		*evalReport
		Style  template.CSS
		Policy string // Content-Security-Policy
	}{r, template.CSS(pageStyle),
		"default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"})
}
