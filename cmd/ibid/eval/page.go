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

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"plain":      plain,
	"excerpt":    func(n int, s string) string { return plain(excerpt(s, n)) },
	"counted":    func(n int, thing string) string { return counted(n, thing) },
	"or":         func(a, b string) string { return cmp.Or(a, b) },
	"date":       func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
	"clock":      func(s float64) string { return SecondsUnit.Write(s) },
	"two":        two,
	"inc":        func(i int) int { return i + 1 },
	"causeIs":    func(c Cause) string { return causeIs[c] },
	"allTheSame": func() string { return strings.ToUpper(allTheSame[:1]) + allTheSame[1:] },
}).Parse(pageSource))

// causeIs says what each cause means.
var causeIs = map[Cause]string{
	Retrieval:  "What is right was not among the passages that the search found.",
	Gate:       "The search found what is right, and the gate skipped all of it.",
	Generation: "What is right was kept, and the answer does not say it.",
	Citations:  "The answer rests on no source, on none of the right ones, or on one that does not bear it out.",
	Refusal:    "There is an answer and it was refused, or there is none and it was answered.",
	Trouble:    "The question ended in an error.",
}

// two writes a number, or what a pointer to one leads to, with two decimals.
func two(x any) string {
	if p, ok := x.(*float64); ok {
		x = *p
	}
	return fmt.Sprintf("%.2f", x)
}

// plain shows controls, and the invisible characters that can hide or reorder
// what is shown, by their names: what documents and models write may be hostile.
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

// A page is what the template shows.
type page struct {
	*Report
	Style    template.CSS
	Policy   string // Content-Security-Policy
	Outcome  stackedBar
	Stages   []stage
	Groups   []figureGroup
	Charts   []lineChart
	Failures []failures
	Changes  []changeRow
	Caution  string
	Spent    string
	Listed   []listed
}

// A figureGroup is a table of figures.
type figureGroup struct {
	Name string
	Rows []figureRow
}

type figureRow struct {
	Name, Says, Value, Low, High string
	Questions                    int
	Interval                     *interval // nil where there is no scale for it
}

// A failures is the failed questions of one cause.
type failures struct {
	Cause    Cause
	Outcomes []listed
}

// A listed outcome has a place in the report, by which it is linked to.
type listed struct {
	*Outcome
	Place string
}

// Right is the rank of the first right passage; 0 where there is none.
func (l listed) Right() int {
	return 1 + slices.IndexFunc(l.Retrieved, func(p Passage) bool { return p.Right })
}

// Kept counts the passages that the gate kept.
func (l listed) Kept() int {
	n := 0
	for _, p := range l.Retrieved {
		if p.Kept {
			n++
		}
	}
	return n
}

// PageNames names the right pages.
func (l listed) PageNames() string { return l.Question.pageNames() }

// A segment is a piece of an answer; Doubt says why nothing bears it out.
type segment struct{ Text, Doubt string }

// Segments are the text of the answer, parted where it is not borne out.
func (l listed) Segments() []segment {
	var out []segment
	at := 0
	unsupported := slices.Clone(l.Unsupported)
	slices.SortFunc(unsupported, func(a, b Sentence) int { return a.Start - b.Start })
	for _, s := range unsupported {
		if s.Start < at || s.End <= s.Start || s.End > len(l.Text) {
			continue
		}
		out = append(out, segment{cut(l.Text, at, s.Start), ""}, segment{cut(l.Text, s.Start, s.End), map[bool]string{true: "nothing cited bears this out", false: "nothing is cited for this"}[s.Reason == weak]})
		at = s.End
	}
	return append(out, segment{cut(l.Text, at, len(l.Text)), ""})
}

// Sentence is what a citation stands behind.
func (l listed) Sentence(c Citation) string { return cut(l.Text, c.Start, c.End) }

type changeRow struct {
	Difference
	ThenText, NowText, Change, LowText, HighText string
	Interval                                     *interval
}

// WriteHTML writes the report as one page that asks nothing of anywhere: no
// script, no picture, no font; its policy forbids them. What documents, models
// and questions say is text in it, whatever they say.
func (r *Report) WriteHTML(w io.Writer) error {
	sum := sha256.Sum256([]byte(pageStyle))
	p := page{
		Report: r, Style: template.CSS(pageStyle),
		Policy:  "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'",
		Outcome: r.outcomeBar(), Stages: r.stages(), Charts: r.lineCharts(),
	}
	for _, f := range r.shown() {
		if len(p.Groups) == 0 || p.Groups[len(p.Groups)-1].Name != f.group {
			p.Groups = append(p.Groups, figureGroup{Name: f.group})
		}
		row := figureRow{Name: f.Name, Says: f.says, Value: f.Unit.Write(f.Value), Low: f.Unit.Write(f.Low), High: f.Unit.Write(f.High), Questions: f.Questions}
		if f.Unit == ShareUnit {
			row.Interval = newInterval(f.Low, f.Value, f.High, 0, 1)
		}
		group := &p.Groups[len(p.Groups)-1]
		group.Rows = append(group.Rows, row)
	}
	for i := range r.Outcomes {
		p.Listed = append(p.Listed, listed{&r.Outcomes[i], fmt.Sprintf("question-%d", i+1)})
	}
	for _, c := range r.Causes {
		f := failures{Cause: c.Cause}
		for _, l := range p.Listed {
			if l.Status == Failed && l.Cause == c.Cause {
				f.Outcomes = append(f.Outcomes, l)
			}
		}
		p.Failures = append(p.Failures, f)
	}
	if r.Price != nil {
		p.Spent = MoneyUnit.Write(r.Money())
	}
	if c := r.Compared; c != nil {
		p.Caution = c.caution()
		p.Changes = c.rows()
	}
	return pageTemplate.Execute(w, p)
}

// rows are the differences as they are shown; those of shares have one scale.
func (c *Compared) rows() []changeRow {
	scale := .05
	for _, d := range c.Differences {
		if d.Unit == ShareUnit {
			scale = max(scale, -d.Low, d.High, d.Value, -d.Value)
		}
	}
	var rows []changeRow
	for _, d := range c.Differences {
		if d.same() {
			continue
		}
		row := changeRow{Difference: d, ThenText: d.Unit.Write(d.Then), NowText: d.Unit.Write(d.Now), Change: d.Unit.WriteChange(d.Value),
			LowText: d.Unit.WriteChange(d.Low), HighText: d.Unit.WriteChange(d.High)}
		if d.Unit == ShareUnit {
			row.Interval = newInterval(d.Low, d.Value, d.High, -scale, scale)
		}
		rows = append(rows, row)
	}
	return rows
}
