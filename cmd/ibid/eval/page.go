package eval

import (
	"cmp"
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
