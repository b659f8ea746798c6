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
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Format identifies a report in JSON.
const Format = "ibid eval report 2"

// A Report is the result of asking a folder its questions.
type Report struct {
	Format    string       `json:"format"`
	Made      time.Time    `json:"made"`
	Version   string       `json:"version"`
	Folder    string       `json:"folder"`
	File      string       `json:"file"` // of the questions
	Documents int          `json:"documents"`
	Chunks    int          `json:"chunks"`
	Unread    []string     `json:"unread"`   // files that could not be read, with the reason
	Settings  []Setting    `json:"settings"` // that affect the answers, in display order
	Passed    int          `json:"passed"`
	Failed    int          `json:"failed"`
	Open      int          `json:"open"`
	Causes    []CauseCount `json:"causes"` // of the failures, in the order of the stages
	Figures   []Figure     `json:"figures"`
	Total     Cost         `json:"total"`  // of all questions
	Missed    []string     `json:"missed"` // thresholds, in words
	Outcomes  []Outcome    `json:"questions"`
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

// KnownFigures are the figures of a report in display order, without values.
func KnownFigures() []Figure {
	var all []Figure
	for _, m := range measures() {
		all = append(all, m.Figure)
	}
	return append(all, told(nil))
}

// Measure counts the outcomes and computes the figures for which a question counts.
func (r *Report) Measure() {
	r.Format, r.Causes = Format, []CauseCount{}
	for _, list := range []*[]string{&r.Unread, &r.Missed} {
		if *list == nil {
			*list = []string{}
		}
	}
	failed := make(map[Cause]int)
	for _, o := range r.Outcomes {
		switch o.Status {
		case Passed:
			r.Passed++
		case Failed:
			r.Failed++
		case Open:
			r.Open++
		}
		failed[o.Cause]++
		r.Total.add(o.Cost)
	}
	for _, c := range causes {
		if failed[c] > 0 {
			r.Causes = append(r.Causes, CauseCount{c, failed[c]})
		}
	}
	for _, m := range measures() {
		if f := m.of(r.Outcomes); f.Questions > 0 {
			r.Figures = append(r.Figures, f)
		}
	}
	if f := told(r.Outcomes); f.Questions > 0 {
		r.Figures = append(r.Figures, f)
	}
}

// Text is the report for a terminal. It does not escape the text of documents and
// models.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s of %s; %s\n", r.Folder, counted(len(r.Outcomes), "question"), r.File, counted(r.Documents, "document"))
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
	fmt.Fprintf(&b, "\n\n%-18s %8s %9s\n", "figure", "value", "questions")
	for _, f := range r.Figures {
		fmt.Fprintf(&b, "%-18s %8s %9d  %s\n", f.Name, f.Text(), f.Questions, f.Says)
	}
	for i, o := range slices.DeleteFunc(slices.Clone(r.Outcomes), func(o Outcome) bool { return o.Status != Failed }) {
		if i == 0 {
			b.WriteString("\nfailed\n")
		}
		fmt.Fprintf(&b, "  %s (%s) %s\n    %s\n", o.Question.ID, o.Cause, excerpt(o.Question.Text, 100), excerpt(o.Why[0], 200))
		if o.Text != "" {
			fmt.Fprintf(&b, "    answer: %s\n", excerpt(o.Text, 200))
		}
	}
	for _, m := range r.Missed {
		fmt.Fprintf(&b, "missed: %s\n", m)
	}
	return b.String()
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

// WriteHTML writes the report as one page. Its policy forbids scripts and
// requests; the text of documents, models and questions is escaped.
func (r *Report) WriteHTML(w io.Writer) error {
	sum := sha256.Sum256([]byte(pageStyle))
	return pageTemplate().Execute(w, struct {
		*Report
		Style  template.CSS
		Policy string // Content-Security-Policy
	}{r, template.CSS(pageStyle),
		"default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"})
}
