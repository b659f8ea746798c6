package eval

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Measure computes one figure of a report.
type Measure struct {
	Name  string
	Group string
	Says  string // meaning, in a few words
	Unit  Unit
	// Better is 1 if more is better, -1 if less is better, else 0.
	Better int

	quantile float64 // of the numerators; 0: the figure is a ratio of sums
	part     func(o *Outcome) part
}

// A part is one question's share of a figure: the sum of the numerators is
// divided by the sum of the denominators. With a denominator of 0 the question
// does not count.
type part struct{ num, den float64 }

func (p part) value() float64 { return p.num / p.den }

// compute computes the figure of some parts, none of which has a denominator of 0.
func (m Measure) compute(parts []part) float64 {
	if m.quantile > 0 {
		values := make([]float64, len(parts))
		for i, p := range parts {
			values[i] = p.num
		}
		slices.Sort(values)
		return Quantile(values, m.quantile)
	}
	var sum part
	for _, p := range parts {
		sum.num += p.num
		sum.den += p.den
	}
	return sum.value()
}

// The groups of figures, in display order.
const (
	overallGroup   = "overall"
	retrievalGroup = "retrieval"
	gateGroup      = "gate"
	answerGroup    = "answers"
	refusalGroup   = "refusals"
	citationGroup  = "citations"
	latencyGroup   = "latency"
	costGroup      = "cost"
)

// CostFigure is the name of the figure that needs a price.
const CostFigure = "cost"

// share measures for how many of the questions something is so.
func share(group, name, says string, better int, among, is func(*Outcome) bool) Measure {
	return Measure{Name: name, Group: group, Says: says, Unit: ShareUnit, Better: better, part: func(o *Outcome) part {
		switch {
		case !among(o):
			return part{}
		case is(o):
			return part{1, 1}
		}
		return part{0, 1}
	}}
}

// ratio measures the quotient of two sums over the questions.
func ratio(group, name, says string, unit Unit, better int, among func(*Outcome) bool, num, den func(*Outcome) float64) Measure {
	return Measure{Name: name, Group: group, Says: says, Unit: unit, Better: better, part: func(o *Outcome) part {
		if !among(o) {
			return part{}
		}
		return part{num(o), den(o)}
	}}
}

// The questions among which figures are measured.
func (o *Outcome) known() bool    { return o.Status != Open }
func (o *Outcome) searched() bool { return o.Error == "" || o.Retrieved != nil }
func (o *Outcome) placed() bool   { return o.Question.placed() && o.searched() }
func (o *Outcome) answerable() bool {
	return !o.Question.Unanswerable && !o.Question.Open() && o.Error == ""
}
func (o *Outcome) unanswerable() bool { return o.Question.Unanswerable }
func (o *Outcome) ended() bool        { return o.Error == "" }
func (o *Outcome) answered() bool     { return o.Answered }
func (o *Outcome) answeredFrom() bool { return o.Answered && len(o.Question.Documents) > 0 }

func perQuestion(*Outcome) float64 { return 1 }

// Measures returns the measures of a report: the given ones of retrieval, and the
// cost if there is a price.
func Measures(metrics []Metric, price *Price) []Measure {
	all := []Measure{share(overallGroup, "passed", "questions with nothing known to be wrong", 1, (*Outcome).known,
		func(o *Outcome) bool { return o.Status == Passed })}
	for _, m := range metrics {
		all = append(all, ratio(retrievalGroup, m.String(), m.says(), ShareUnit, 1,
			func(o *Outcome) bool { return len(o.Question.Documents) > 0 && o.searched() }, m.ofOutcome, perQuestion))
	}
	all = append(all, share(retrievalGroup, "right_found", "questions with a right passage among those retrieved", 1, (*Outcome).placed,
		func(o *Outcome) bool {
			return slices.ContainsFunc(o.Retrieved, func(p Passage) bool { return p.Right })
		}))
	return slices.Concat(all, gateMeasures(), answerMeasures(), citationMeasures(), latencyMeasures(), costMeasures(price))
}

func gateMeasures() []Measure {
	count := func(of func(Passage) bool) func(*Outcome) float64 {
		return func(o *Outcome) float64 {
			return float64(len(o.Retrieved) - len(slices.DeleteFunc(slices.Clone(o.Retrieved), of)))
		}
	}
	judged := count(func(p Passage) bool { return p.Verdict != "" })
	kept := count(func(p Passage) bool { return p.Kept })
	skipped := func(o *Outcome) float64 { return judged(o) - kept(o) }
	right := count(func(p Passage) bool { return p.Right && p.Verdict != "" })
	rightKept := count(func(p Passage) bool { return p.Right && p.Verdict != "" && p.Kept })
	any := func(*Outcome) bool { return true }
	return []Measure{
		ratio(gateGroup, "right_kept", "right passages kept, of those retrieved", ShareUnit, 1, any, rightKept, right),
		share(gateGroup, "gate_lost", "questions whose right passages were all skipped", -1,
			func(o *Outcome) bool { return right(o) > 0 }, func(o *Outcome) bool { return rightKept(o) == 0 }),
		ratio(gateGroup, "off_skipped", "passages skipped, of questions without an answer", ShareUnit, 1, (*Outcome).unanswerable,
			skipped, judged),
		ratio(gateGroup, "kept", "passages kept per question", CountUnit, 0, (*Outcome).ended, kept, perQuestion),
	}
}

func answerMeasures() []Measure {
	listed := func(o *Outcome) bool { _, known := o.wrongWords(); return o.answerable() && known }
	expected := func(o *Outcome) []string {
		if o.Question.Expected != "" {
			return []string{o.Question.Expected}
		}
		return o.Question.Answers
	}
	return []Measure{
		share(answerGroup, "answered", "answered, of the questions with an answer", 1, (*Outcome).answerable, (*Outcome).answered),
		share(answerGroup, "right", "answers with the right words, of the questions that list them", 1, listed,
			func(o *Outcome) bool { wrong, _ := o.wrongWords(); return wrong == "" }),
		ratio(answerGroup, "word_recall", "share of the words of the expected answer", ShareUnit, 1,
			func(o *Outcome) bool { return o.answerable() && len(expected(o)) > 0 },
			func(o *Outcome) float64 { return WordRecall(o.answerText(), expected(o)) }, perQuestion),
		share(refusalGroup, "false_refusals", "refused, of the questions with an answer", -1, (*Outcome).answerable,
			func(o *Outcome) bool { return !o.Answered }),
		share(refusalGroup, "closest", "shown only the closest passages, of the questions with an answer", -1, (*Outcome).answerable,
			func(o *Outcome) bool { return len(o.Closest) > 0 }),
		share(refusalGroup, "closest_right", "those of them with the right words, of the questions that list them", 1,
			func(o *Outcome) bool { return listed(o) && len(o.Closest) > 0 },
			func(o *Outcome) bool { wrong, _ := o.wrongIn(strings.Join(o.Closest, "\n")); return wrong == "" }),
		share(refusalGroup, "false_answers", "answered, of the questions without an answer", -1,
			func(o *Outcome) bool { return o.unanswerable() && o.ended() }, (*Outcome).answered),
	}
}

func citationMeasures() []Measure {
	sources := func(o *Outcome) float64 { return float64(len(o.Sources)) }
	labels := func(name, says string, of func(Step) []int) Measure {
		return ratio(citationGroup, name, says, CountUnit, -1, (*Outcome).answered, func(o *Outcome) (n float64) {
			for _, s := range o.Steps {
				n += float64(len(of(s)))
			}
			return n
		}, perQuestion)
	}
	return []Measure{
		share(citationGroup, "cited", "answers that cite a source", 1, (*Outcome).answered,
			func(o *Outcome) bool { return len(o.Sources) > 0 }),
		ratio(citationGroup, "supported", "citations whose quote supports the sentence", ShareUnit, 1, (*Outcome).answered,
			func(o *Outcome) (n float64) {
				for _, c := range o.Citations {
					if c.Verdict != weak {
						n++
					}
				}
				return n
			}, func(o *Outcome) float64 { return float64(len(o.Citations)) }),
		ratio(citationGroup, "unsupported", "statements that nothing cited supports", ShareUnit, -1, (*Outcome).answered,
			func(o *Outcome) float64 { return float64(len(o.Unsupported)) }, (*Outcome).statements),
		share(citationGroup, "right_cited", "answers that cite a right document", 1, (*Outcome).answeredFrom,
			func(o *Outcome) bool { return o.rightSources() > 0 }),
		ratio(citationGroup, "right_sources", "sources that are right documents", ShareUnit, 1, (*Outcome).answeredFrom,
			func(o *Outcome) float64 { return float64(o.rightSources()) }, sources),
		share(citationGroup, "page_cited", "answers that cite a right page", 1,
			func(o *Outcome) bool { return o.Answered && o.Question.Pages != nil },
			func(o *Outcome) bool {
				return slices.ContainsFunc(o.Citations, func(c Citation) bool {
					i := slices.Index(o.Question.Documents, c.Document)
					return i >= 0 && (o.Question.Pages[i] == nil || slices.Contains(o.Question.Pages[i], c.Page))
				})
			}),
		labels("invented", "cited labels that no passage has, per answer", func(s Step) []int { return s.Invented }),
		labels("lost", "labels that a later step no longer cites, per answer", func(s Step) []int { return s.Lost }),
	}
}

// statements counts the sentences of the answer that cite or should.
func (o *Outcome) statements() float64 {
	ranges := make(map[[2]int]bool)
	for _, c := range o.Citations {
		ranges[[2]int{c.Start, c.End}] = true
	}
	for _, s := range o.Unsupported {
		ranges[[2]int{s.Start, s.End}] = true
	}
	return float64(len(ranges))
}

func latencyMeasures() (all []Measure) {
	for _, stage := range []struct {
		name, says string
		of         func(Seconds) float64
	}{
		{"", "time to the end of the answer", func(s Seconds) float64 { return s.Whole }},
		{"first_", "time to the first text of an answer", func(s Seconds) float64 { return s.First }},
		{"search_", "time of the search", func(s Seconds) float64 { return s.Search }},
		{"gate_", "time of judging the passages", func(s Seconds) float64 { return s.Gate }},
		{"write_", "time of writing and citing", func(s Seconds) float64 { return s.Write }},
	} {
		for _, percent := range []int{50, 95} {
			m := ratio(latencyGroup, fmt.Sprintf("%sp%d", stage.name, percent),
				fmt.Sprintf("%s, at most, for %d %% of the questions", stage.says, percent), SecondsUnit, -1,
				func(o *Outcome) bool { return stage.of(o.Seconds) > 0 },
				func(o *Outcome) float64 { return stage.of(o.Seconds) }, perQuestion)
			m.quantile = float64(percent) / 100
			all = append(all, m)
		}
	}
	return all
}

func costMeasures(price *Price) (all []Measure) {
	add := func(name, says string, unit Unit, of func(Cost) float64) {
		all = append(all, ratio(costGroup, name, says, unit, -1, func(*Outcome) bool { return true },
			func(o *Outcome) float64 { return of(o.Cost) }, perQuestion))
	}
	add("calls", "requests to a model, per question", CountUnit, func(c Cost) float64 { return float64(c.Calls) })
	add("judge_calls", "those of them that judged a passage, per question", CountUnit, func(c Cost) float64 { return float64(c.JudgeCalls) })
	add("prompt_tokens", "tokens in prompts, per question", CountUnit, func(c Cost) float64 { return float64(c.PromptTokens) })
	add("completion_tokens", "tokens in replies, per question", CountUnit, func(c Cost) float64 { return float64(c.CompletionTokens) })
	if price != nil {
		add(CostFigure, "price of a question", MoneyUnit, price.Of)
	}
	return all
}

func (m Metric) says() string {
	return fmt.Sprintf(map[string]string{
		"hit":    "a right document is among the first %d",
		"recall": "share of the right documents among the first %d",
		"p":      "share of the first %d ranks with a right document",
		"mrr":    "1 / rank of the first right document among the first %d",
		"ndcg":   "order of the first %d documents, relative to the best possible",
	}[m.Kind], m.K)
}

// ofOutcome measures the retrieved documents, each at the rank of its best passage.
func (m Metric) ofOutcome(o *Outcome) float64 {
	grades := make(Grades)
	for _, d := range o.Question.Documents {
		grades[d] = 1
	}
	var ranking []string
	for _, p := range o.Retrieved {
		if !slices.Contains(ranking, p.Document) {
			ranking = append(ranking, p.Document)
		}
	}
	return m.Of(ranking, grades)
}

// A Unit says what a figure counts and how it is written.
type Unit string

const (
	ShareUnit   Unit = "share"   // 0 to 1
	SecondsUnit Unit = "seconds" // written as µs, ms or s
	CountUnit   Unit = "count"   // a mean count
	MoneyUnit   Unit = "money"   // in the currency of the prices
)

// Write writes a value in its unit.
func (u Unit) Write(x float64) string {
	a := math.Abs(x)
	switch {
	case u == ShareUnit:
		return fmt.Sprintf("%.3f", x)
	case u == MoneyUnit:
		return fmt.Sprintf("%.6f", x)
	case u == CountUnit && x == math.Trunc(x):
		return fmt.Sprintf("%.0f", x)
	case u == SecondsUnit && a < .0005:
		return fmt.Sprintf("%.0f µs", x*1e6)
	case u == SecondsUnit && a < .0995:
		return fmt.Sprintf("%.1f ms", x*1e3)
	case u == SecondsUnit && a < .9995:
		return fmt.Sprintf("%.0f ms", x*1e3)
	case u == SecondsUnit:
		return fmt.Sprintf("%.2f s", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// WriteChange writes a difference with its sign.
func (u Unit) WriteChange(x float64) string {
	sign := map[bool]string{true: "+", false: "−"}[x > 0]
	if x == 0 {
		sign = ""
	}
	return sign + u.Write(math.Abs(x))
}

func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

func quoted(texts []string) string { return "“" + strings.Join(texts, "”, “") + "”" }

// excerpt returns the first n characters of a text, with white space folded.
func excerpt(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n]) + "…"
}

// slice returns the bytes of a text from start to end, as far as they exist.
func slice(s string, start, end int) string {
	start = max(0, min(start, len(s)))
	end = max(start, min(end, len(s)))
	return strings.ToValidUTF8(s[start:end], "")
}
