package eval

import (
	"fmt"
	"slices"
	"strings"
)

// A Price is what a million tokens cost, in any currency.
type Price struct {
	In  float64 `json:"in"`  // of prompts
	Out float64 `json:"out"` // of replies
}

// Of is what an answer cost.
func (p Price) Of(c Cost) float64 {
	return (p.In*float64(c.PromptTokens) + p.Out*float64(c.CompletionTokens)) / 1e6
}

// A Measure is one of the figures of a report.
type Measure struct {
	Name  string
	Group string
	// Says is what the figure tells, in a few words.
	Says string
	Unit Unit
	// Better is 1 where more is better, -1 where less is, else 0.
	Better   int
	quantile float64 // of the parts' Num; 0 where it is a ratio
	part     func(o *Outcome) Part
}

// A PlaceMetric is a [Metric] of the right documents, or with the level "page"
// or "quote" of the right pages or quotes.
type PlaceMetric struct {
	Level string
	Metric
}

// ParsePlaceMetric reads "recall@5", "page.recall@5" or "quote.mrr@10".
func ParsePlaceMetric(s string) (PlaceMetric, error) {
	level, rest := documentLevel, s
	for _, l := range []string{pageLevel, quoteLevel} {
		if cut, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(s)), l+"."); ok {
			level, rest = l, cut
		}
	}
	m, err := ParseMetric(rest)
	if err != nil {
		return PlaceMetric{}, err
	}
	if level != documentLevel && (m.Kind == "ndcg" || m.Kind == "p") {
		return PlaceMetric{}, fmt.Errorf("%q is no metric: of pages and quotes there are hit, recall and mrr", s)
	}
	return PlaceMetric{level, m}, nil
}

func (m PlaceMetric) String() string {
	if m.Level == documentLevel {
		return m.Metric.String()
	}
	return m.Level + "." + m.Metric.String()
}

// of measures what was retrieved for a question.
func (m PlaceMetric) of(o *Outcome) Part {
	if o.Error != "" && o.Retrieved == nil {
		return Part{}
	}
	if m.Level == documentLevel {
		if len(o.Question.Documents) == 0 {
			return Part{}
		}
		grades := make(Grades)
		for _, d := range o.Question.Documents {
			grades[d] = 1
		}
		return Part{m.Metric.Of(o.ranking(), grades), 1}
	}
	held, n := o.places(m.Level)
	if n == 0 {
		return Part{}
	}
	return Part{m.Metric.ofPlaces(held, n), 1}
}

// ofPlaces measures a ranking of passages, each of which holds some of n right
// places: recall is the share of the places that the first K passages hold, hit
// whether they hold any, mrr 1 / rank of the first that does.
func (m Metric) ofPlaces(held [][]int, n int) float64 {
	seen := make(map[int]bool)
	for i, places := range held[:min(m.K, len(held))] {
		for _, at := range places {
			seen[at] = true
		}
		if len(places) > 0 {
			switch m.Kind {
			case "mrr":
				return 1 / float64(i+1)
			case "hit":
				return 1
			}
		}
	}
	if m.Kind != "recall" {
		return 0
	}
	return Share(len(seen), n)
}

// The groups of figures, in the order in which they are shown.
const (
	overallGroup   = "overall"
	retrievalGroup = "retrieval"
	gateGroup      = "gate"
	answerGroup    = "answers"
	citationGroup  = "citations"
	refusalGroup   = "refusals"
	latencyGroup   = "latency"
	costGroup      = "cost"
)

func yes(is bool) Part {
	if is {
		return Part{1, 1}
	}
	return Part{0, 1}
}

// CostFigure is the name of the figure that is measured only with a price.
const CostFigure = "cost"

// Measures are the figures of a report: of retrieval those that are named, and
// what money was spent where there is a price.
func Measures(metrics []PlaceMetric, price *Price) []Measure {
	all := []Measure{{Name: "passed", Group: overallGroup, Says: "questions of which nothing is known to be wrong", Unit: ShareUnit, Better: 1,
		part: func(o *Outcome) Part {
			if o.Status == Open {
				return Part{}
			}
			return yes(o.Status == Passed)
		}}}
	for _, m := range metrics {
		all = append(all, Measure{Name: m.String(), Group: retrievalGroup, Says: m.says(), Unit: ShareUnit, Better: 1, part: m.of})
	}
	all = append(all, gateMeasures()...)
	all = append(all, answerMeasures()...)
	all = append(all, citationMeasures()...)
	for _, stage := range []struct {
		name, says string
		of         func(Seconds) float64
	}{
		{"", "the whole answer", func(s Seconds) float64 { return s.Whole }},
		{"first_", "the first text of an answer", func(s Seconds) float64 { return s.First }},
		{"search_", "the search", func(s Seconds) float64 { return s.Search }},
		{"gate_", "judging the passages", func(s Seconds) float64 { return s.Gate }},
		{"write_", "writing and citing", func(s Seconds) float64 { return s.Write }},
	} {
		for _, q := range []struct {
			name string
			of   float64
		}{{"p50", .5}, {"p95", .95}} {
			all = append(all, Measure{Name: stage.name + q.name, Group: latencyGroup, Says: fmt.Sprintf("%s took no longer for %s of the questions", stage.says, percent(q.of)),
				Unit: SecondsUnit, Better: -1, quantile: q.of, part: func(o *Outcome) Part {
					if s := stage.of(o.Seconds); s > 0 {
						return Part{s, 1}
					}
					return Part{}
				}})
		}
	}
	for _, c := range []struct {
		name, says string
		of         func(Cost) float64
	}{
		{"calls", "requests to a model", func(c Cost) float64 { return float64(c.Calls) }},
		{"judge_calls", "those of them that judged a passage", func(c Cost) float64 { return float64(c.JudgeCalls) }},
		{"prompt_tokens", "tokens in prompts", func(c Cost) float64 { return float64(c.PromptTokens) }},
		{"completion_tokens", "tokens in replies", func(c Cost) float64 { return float64(c.CompletionTokens) }},
	} {
		all = append(all, Measure{Name: c.name, Group: costGroup, Says: c.says + ", a question", Unit: CountUnit, Better: -1,
			part: func(o *Outcome) Part { return Part{c.of(o.Cost), 1} }})
	}
	if price != nil {
		all = append(all, Measure{Name: CostFigure, Group: costGroup, Says: "what a question cost", Unit: MoneyUnit, Better: -1,
			part: func(o *Outcome) Part { return Part{price.Of(o.Cost), 1} }})
	}
	return all
}

func (m PlaceMetric) says() string {
	thing := map[string]string{documentLevel: "document", pageLevel: "page", quoteLevel: "quote"}[m.Level]
	looked := "passage"
	if m.Level == documentLevel {
		looked = thing
	}
	first := "the first " + counted(m.K, looked)
	if m.K == 1 {
		first = "the first " + looked
	}
	switch m.Kind {
	case "hit":
		return fmt.Sprintf("any right %s in %s", thing, first)
	case "recall":
		return fmt.Sprintf("share of the right %ss in %s", thing, first)
	case "p":
		return fmt.Sprintf("share of %s that is right", first)
	case "mrr":
		return fmt.Sprintf("1 / rank of the first right one of %s", first)
	}
	return fmt.Sprintf("order of %s, next to the best there could be", first)
}

func gateMeasures() []Measure {
	count := func(o *Outcome, of func(Passage) bool) float64 {
		n := 0
		for _, p := range o.Retrieved {
			if of(p) {
				n++
			}
		}
		return float64(n)
	}
	right := func(p Passage) bool { return p.Right && p.Verdict != "" }
	kept := func(p Passage) bool { return p.Kept }
	return []Measure{
		{Name: "right_kept", Group: gateGroup, Says: "right passages that were kept, of those retrieved", Unit: ShareUnit, Better: 1, part: func(o *Outcome) Part {
			return Part{count(o, func(p Passage) bool { return right(p) && p.Kept }), count(o, right)}
		}},
		{Name: "gate_lost", Group: gateGroup, Says: "questions of which every right passage was skipped, of those with one retrieved", Unit: ShareUnit, Better: -1, part: func(o *Outcome) Part {
			if !slices.ContainsFunc(o.Retrieved, right) {
				return Part{}
			}
			return yes(!slices.ContainsFunc(o.Retrieved, func(p Passage) bool { return right(p) && p.Kept }))
		}},
		{Name: "off_skipped", Group: gateGroup, Says: "passages skipped, of questions without an answer", Unit: ShareUnit, Better: 1, part: func(o *Outcome) Part {
			if !o.Question.Unanswerable {
				return Part{}
			}
			judged := count(o, func(p Passage) bool { return p.Verdict != "" })
			return Part{judged - count(o, kept), judged}
		}},
		{Name: "kept", Group: gateGroup, Says: "passages kept, a question", Unit: CountUnit, part: func(o *Outcome) Part {
			if o.Error != "" {
				return Part{}
			}
			return Part{count(o, kept), 1}
		}},
	}
}

func answerMeasures() []Measure {
	answerable := func(o *Outcome) bool { return !o.Question.Unanswerable && !o.Question.Open() && o.Error == "" }
	return []Measure{
		{Name: "answered", Group: answerGroup, Says: "answered, of the questions with an answer", Unit: ShareUnit, Better: 1, part: func(o *Outcome) Part {
			if !answerable(o) {
				return Part{}
			}
			return yes(o.Answered)
		}},
		{Name: "right", Group: answerGroup, Says: "the right words stand in the answer, of the questions that say which", Unit: ShareUnit, Better: 1, part: func(o *Outcome) Part {
			lacking, known := o.lacking()
			if !known || !answerable(o) {
				return Part{}
			}
			return yes(lacking == "")
		}},
		{Name: "word_recall", Group: answerGroup, Says: "share of the words of the expected answer that stand in the answer", Unit: ShareUnit, Better: 1, part: func(o *Outcome) Part {
			expected := o.Question.Answers
			if o.Question.Expected != "" {
				expected = []string{o.Question.Expected}
			}
			if len(expected) == 0 || !answerable(o) {
				return Part{}
			}
			return Part{WordRecall(o.said(), expected), 1}
		}},
		{Name: "false_refusals", Group: refusalGroup, Says: "refused, of the questions with an answer", Unit: ShareUnit, Better: -1, part: func(o *Outcome) Part {
			if !answerable(o) {
				return Part{}
			}
			return yes(!o.Answered)
		}},
		{Name: "false_answers", Group: refusalGroup, Says: "answered, of the questions without an answer", Unit: ShareUnit, Better: -1, part: func(o *Outcome) Part {
			if !o.Question.Unanswerable || o.Error != "" {
				return Part{}
			}
			return yes(o.Answered)
		}},
	}
}

func citationMeasures() []Measure {
	// of gives a part of those questions that were answered.
	of := func(part func(o *Outcome) Part) func(*Outcome) Part {
		return func(o *Outcome) Part {
			if !o.Answered {
				return Part{}
			}
			return part(o)
		}
	}
	rightSources := func(o *Outcome) int {
		n := 0
		for _, s := range o.Sources {
			if slices.Contains(o.Question.Documents, s.Document) {
				n++
			}
		}
		return n
	}
	labels := func(of func(Step) []int) func(o *Outcome) Part {
		return func(o *Outcome) Part {
			n := 0
			for _, s := range o.Steps {
				n += len(of(s))
			}
			return Part{float64(n), 1}
		}
	}
	all := []Measure{
		{Name: "cited", Says: "answers that cite a source", Unit: ShareUnit, Better: 1, part: func(o *Outcome) Part { return yes(len(o.Sources) > 0) }},
		{Name: "supported", Says: "citations whose quote bears the sentence out", Unit: ShareUnit, Better: 1, part: func(o *Outcome) Part {
			n := 0
			for _, c := range o.Citations {
				if c.Verdict != weak {
					n++
				}
			}
			return Part{float64(n), float64(len(o.Citations))}
		}},
		{Name: "unsupported", Says: "statements that nothing cited bears out", Unit: ShareUnit, Better: -1, part: func(o *Outcome) Part {
			return Part{float64(len(o.Unsupported)), float64(o.statements())}
		}},
		{Name: "right_cited", Says: "answers that cite a right document, where it is known", Unit: ShareUnit, Better: 1, part: func(o *Outcome) Part {
			if len(o.Question.Documents) == 0 {
				return Part{}
			}
			return yes(rightSources(o) > 0)
		}},
		{Name: "right_sources", Says: "sources that are right documents, where they are known", Unit: ShareUnit, Better: 1, part: func(o *Outcome) Part {
			if len(o.Question.Documents) == 0 {
				return Part{}
			}
			return Part{float64(rightSources(o)), float64(len(o.Sources))}
		}},
		{Name: "page_cited", Says: "answers that cite a right page, where it is known", Unit: ShareUnit, Better: 1, part: func(o *Outcome) Part {
			if o.Question.Pages == nil {
				return Part{}
			}
			return yes(slices.ContainsFunc(o.Citations, func(c Citation) bool {
				i := slices.Index(o.Question.Documents, c.Document)
				return i >= 0 && (o.Question.Pages[i] == nil || slices.Contains(o.Question.Pages[i], c.Page))
			}))
		}},
		{Name: "invented", Says: "labels cited that no passage has, taken out, an answer", Unit: CountUnit, Better: -1, part: labels(func(s Step) []int { return s.Invented })},
		{Name: "lost", Says: "labels that a later step no longer cites, an answer", Unit: CountUnit, Better: -1, part: labels(func(s Step) []int { return s.Lost })},
	}
	for i := range all {
		all[i].Group, all[i].part = citationGroup, of(all[i].part)
	}
	return all
}
