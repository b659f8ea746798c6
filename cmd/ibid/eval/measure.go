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
	Says  string // what the figure means, in a few words
	Unit  Unit
	// Better is 1 if more is better, -1 if less is better, else 0.
	Better int

	quantile float64 // of the numerators; 0: the figure is a ratio of sums
	part     func(o *Outcome) part
}

// A part is what one question adds to a figure: the sum of the numerators is
// divided by the sum of the denominators. With a denominator of 0 the question
// does not count.
type part struct{ num, den float64 }

// value is the question's own figure.
func (p part) value() float64 { return p.num / p.den }

func share(is bool) part {
	if is {
		return part{1, 1}
	}
	return part{0, 1}
}

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

// Measures returns the measures of a report: the given ones of retrieval, and the
// cost if there is a price.
func Measures(metrics []Metric, price *Price) []Measure {
	all := []Measure{{"passed", overallGroup, "questions with nothing known to be wrong", ShareUnit, 1, 0, func(o *Outcome) part {
		if o.Status == Open {
			return part{}
		}
		return share(o.Status == Passed)
	}}}
	for _, m := range metrics {
		all = append(all, Measure{m.String(), retrievalGroup, m.says(), ShareUnit, 1, 0, m.ofOutcome})
	}
	all = append(all, Measure{"right_found", retrievalGroup, "questions with a right passage among those retrieved", ShareUnit, 1, 0, func(o *Outcome) part {
		if !o.Question.placed() || o.Error != "" && o.Retrieved == nil {
			return part{}
		}
		return share(slices.ContainsFunc(o.Retrieved, func(p Passage) bool { return p.Right }))
	}})
	all = append(all, gateMeasures()...)
	all = append(all, answerMeasures()...)
	all = append(all, citationMeasures()...)
	return append(all, costMeasures(price)...)
}

func gateMeasures() []Measure {
	count := func(o *Outcome, of func(Passage) bool) float64 {
		n := 0.0
		for _, p := range o.Retrieved {
			if of(p) {
				n++
			}
		}
		return n
	}
	judged := func(p Passage) bool { return p.Verdict != "" }
	kept := func(p Passage) bool { return p.Kept }
	right := func(p Passage) bool { return p.Right && judged(p) }
	rightKept := func(p Passage) bool { return right(p) && p.Kept }
	return []Measure{
		{"right_kept", gateGroup, "right passages kept, of those retrieved", ShareUnit, 1, 0, func(o *Outcome) part {
			return part{count(o, rightKept), count(o, right)}
		}},
		{"gate_lost", gateGroup, "questions whose right passages were all skipped", ShareUnit, -1, 0, func(o *Outcome) part {
			if count(o, right) == 0 {
				return part{}
			}
			return share(count(o, rightKept) == 0)
		}},
		{"off_skipped", gateGroup, "passages skipped, of questions without an answer", ShareUnit, 1, 0, func(o *Outcome) part {
			if !o.Question.Unanswerable {
				return part{}
			}
			return part{count(o, judged) - count(o, kept), count(o, judged)}
		}},
		{"kept", gateGroup, "passages kept per question", CountUnit, 0, 0, func(o *Outcome) part {
			if o.Error != "" {
				return part{}
			}
			return part{count(o, kept), 1}
		}},
	}
}

func answerMeasures() []Measure {
	answerable := func(o *Outcome) bool { return !o.Question.Unanswerable && !o.Question.Open() && o.Error == "" }
	// among restricts a measure to some questions.
	among := func(which func(*Outcome) bool, of func(*Outcome) part) func(*Outcome) part {
		return func(o *Outcome) part {
			if !which(o) {
				return part{}
			}
			return of(o)
		}
	}
	return []Measure{
		{"answered", answerGroup, "answered, of the questions with an answer", ShareUnit, 1, 0,
			among(answerable, func(o *Outcome) part { return share(o.Answered) })},
		{"right", answerGroup, "answers with the right words, of the questions that list them", ShareUnit, 1, 0,
			among(answerable, func(o *Outcome) part {
				wrong, known := o.wrongWords()
				if !known {
					return part{}
				}
				return share(wrong == "")
			})},
		{"word_recall", answerGroup, "share of the words of the expected answer", ShareUnit, 1, 0,
			among(answerable, func(o *Outcome) part {
				expected := o.Question.Answers
				if o.Question.Expected != "" {
					expected = []string{o.Question.Expected}
				}
				if len(expected) == 0 {
					return part{}
				}
				return part{WordRecall(o.answerText(), expected), 1}
			})},
		{"false_refusals", refusalGroup, "refused, of the questions with an answer", ShareUnit, -1, 0,
			among(answerable, func(o *Outcome) part { return share(!o.Answered) })},
		{"false_answers", refusalGroup, "answered, of the questions without an answer", ShareUnit, -1, 0,
			among(func(o *Outcome) bool { return o.Question.Unanswerable && o.Error == "" }, func(o *Outcome) part { return share(o.Answered) })},
	}
}

func citationMeasures() []Measure {
	measure := func(name, says string, unit Unit, better int, of func(*Outcome) part) Measure {
		return Measure{name, citationGroup, says, unit, better, 0, func(o *Outcome) part {
			if !o.Answered {
				return part{}
			}
			return of(o)
		}}
	}
	return []Measure{
		measure("cited", "answers that cite a source", ShareUnit, 1, func(o *Outcome) part { return share(len(o.Sources) > 0) }),
		measure("supported", "citations whose quote supports the sentence", ShareUnit, 1, func(o *Outcome) part {
			n := 0
			for _, c := range o.Citations {
				if c.Verdict != weak {
					n++
				}
			}
			return part{float64(n), float64(len(o.Citations))}
		}),
		measure("unsupported", "statements that nothing cited supports", ShareUnit, -1, func(o *Outcome) part {
			return part{float64(len(o.Unsupported)), float64(o.statements())}
		}),
		measure("right_cited", "answers that cite a right document", ShareUnit, 1, func(o *Outcome) part {
			if len(o.Question.Documents) == 0 {
				return part{}
			}
			return share(o.rightSources() > 0)
		}),
		measure("right_sources", "sources that are right documents", ShareUnit, 1, func(o *Outcome) part {
			if len(o.Question.Documents) == 0 {
				return part{}
			}
			return part{float64(o.rightSources()), float64(len(o.Sources))}
		}),
		measure("page_cited", "answers that cite a right page", ShareUnit, 1, func(o *Outcome) part {
			if o.Question.Pages == nil {
				return part{}
			}
			return share(slices.ContainsFunc(o.Citations, func(c Citation) bool {
				i := slices.Index(o.Question.Documents, c.Document)
				return i >= 0 && (o.Question.Pages[i] == nil || slices.Contains(o.Question.Pages[i], c.Page))
			}))
		}),
		measure("invented", "cited labels that no passage has, per answer", CountUnit, -1, func(o *Outcome) part {
			return part{o.countLabels(func(s Step) []int { return s.Invented }), 1}
		}),
		measure("lost", "labels that a later step no longer cites, per answer", CountUnit, -1, func(o *Outcome) part {
			return part{o.countLabels(func(s Step) []int { return s.Lost }), 1}
		}),
	}
}

// statements counts the sentences of the answer that cite or should.
func (o *Outcome) statements() int {
	ranges := make(map[[2]int]bool)
	for _, c := range o.Citations {
		ranges[[2]int{c.Start, c.End}] = true
	}
	for _, s := range o.Unsupported {
		ranges[[2]int{s.Start, s.End}] = true
	}
	return len(ranges)
}

func (o *Outcome) countLabels(of func(Step) []int) float64 {
	n := 0
	for _, s := range o.Steps {
		n += len(of(s))
	}
	return float64(n)
}

// costMeasures are the times and costs.
func costMeasures(price *Price) (all []Measure) {
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
			says := fmt.Sprintf("%s, at most, for %d %% of the questions", stage.says, percent)
			all = append(all, Measure{fmt.Sprintf("%sp%d", stage.name, percent), latencyGroup, says, SecondsUnit, -1, float64(percent) / 100,
				func(o *Outcome) part {
					if s := stage.of(o.Seconds); s > 0 {
						return part{s, 1}
					}
					return part{}
				}})
		}
	}
	for _, c := range []struct {
		name, says string
		of         func(Cost) int
	}{
		{"calls", "requests to a model", func(c Cost) int { return c.Calls }},
		{"judge_calls", "those of them that judged a passage", func(c Cost) int { return c.JudgeCalls }},
		{"prompt_tokens", "tokens in prompts", func(c Cost) int { return c.PromptTokens }},
		{"completion_tokens", "tokens in replies", func(c Cost) int { return c.CompletionTokens }},
	} {
		all = append(all, Measure{c.name, costGroup, c.says + ", per question", CountUnit, -1, 0,
			func(o *Outcome) part { return part{float64(c.of(o.Cost)), 1} }})
	}
	if price != nil {
		all = append(all, Measure{CostFigure, costGroup, "price of a question", MoneyUnit, -1, 0,
			func(o *Outcome) part { return part{price.Of(o.Cost), 1} }})
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
func (m Metric) ofOutcome(o *Outcome) part {
	if len(o.Question.Documents) == 0 || o.Error != "" && o.Retrieved == nil {
		return part{}
	}
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
	return part{m.Of(ranking, grades), 1}
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

// counted writes a number of things.
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
