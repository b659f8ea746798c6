package eval

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Figure is one number of a report.
type Figure struct {
	Name      string  `json:"name"`
	Unit      Unit    `json:"unit"`
	Value     float64 `json:"value"`
	Questions int     `json:"questions"` // from which it is computed
	Says      string  `json:"-"`         // meaning, in a few words
}

// Text is the value in its unit.
func (f Figure) Text() string { return f.Unit.Write(f.Value) }

type measure struct {
	Figure
	quantile float64 // of the numerators; 0: the figure is a ratio of sums
	part     func(o *Outcome) part
}

// A part is one question's share of a figure: the sum of the numerators is
// divided by the sum of the denominators. With a denominator of 0 the question
// does not count.
type part struct{ num, den float64 }

// of computes the figure; without a question that counts for it, Questions is 0.
func (m measure) of(outcomes []Outcome) Figure {
	var sum part
	var values []float64
	for i := range outcomes {
		p := m.part(&outcomes[i])
		if p.den == 0 {
			continue
		}
		sum.num += p.num
		sum.den += p.den
		values = append(values, p.num)
	}
	f := m.Figure
	if f.Questions = len(values); m.quantile > 0 && len(values) > 0 {
		slices.Sort(values) // nearest rank, type 1 of Hyndman and Fan 1996
		f.Value = values[max(1, int(math.Ceil(m.quantile*float64(len(values))-1e-9)))-1]
	} else if sum.den > 0 {
		f.Value = sum.num / sum.den
	}
	return f
}

func share(name, says string, among, is func(*Outcome) bool) measure {
	return ratio(name, says, ShareUnit, among, func(o *Outcome) float64 {
		if is(o) {
			return 1
		}
		return 0
	}, perQuestion)
}

func ratio(name, says string, unit Unit, among func(*Outcome) bool, num, den func(*Outcome) float64) measure {
	return measure{Figure: Figure{Name: name, Says: says, Unit: unit}, part: func(o *Outcome) part {
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
func (o *Outcome) named() bool    { return len(o.Question.Documents) > 0 && o.searched() }
func (o *Outcome) answerable() bool {
	return !o.Question.Unanswerable && !o.Question.Open() && o.Error == ""
}
func (o *Outcome) listed() bool   { _, known := o.wrongWords(); return o.answerable() && known }
func (o *Outcome) ranked() bool   { return o.listed() && o.Confidence != nil }
func (o *Outcome) answered() bool { return o.Answered }
func (o *Outcome) asked() bool    { return true }

func perQuestion(*Outcome) float64 { return 1 }

const recallRank = 5

func measures() []measure {
	p50 := ratio("p50", "time to the end of the answer, at most, for half of the questions", SecondsUnit,
		(*Outcome).asked, func(o *Outcome) float64 { return o.Seconds }, perQuestion)
	p95 := p50
	p50.quantile, p95.quantile = .50, .95
	p95.Name, p95.Says = "p95", "the same for 95 % of the questions"
	return slices.Concat([]measure{
		share("passed", "questions with nothing known to be wrong", (*Outcome).known, func(o *Outcome) bool { return o.Status == Passed }),
		ratio(fmt.Sprintf("recall@%d", recallRank), fmt.Sprintf("right documents among the first %d", recallRank), ShareUnit,
			(*Outcome).named, (*Outcome).recall, perQuestion),
		share("right_found", "questions with a right passage among those retrieved", (*Outcome).placed,
			func(o *Outcome) bool {
				return slices.ContainsFunc(o.Retrieved, func(p Passage) bool { return p.Right })
			}),
		share("gate_lost", "questions whose right passages were all skipped",
			func(o *Outcome) bool { return slices.ContainsFunc(o.Retrieved, Passage.judgedRight) },
			func(o *Outcome) bool {
				return !slices.ContainsFunc(o.Retrieved, func(p Passage) bool { return p.judgedRight() && p.Kept })
			}),
		share("right", "answers with the right words, of the questions that list them", (*Outcome).listed,
			func(o *Outcome) bool { wrong, _ := o.wrongWords(); return wrong == "" }),
		share("best@1", "best sentence with the right words, of the questions that list them", (*Outcome).ranked,
			func(o *Outcome) bool { return o.foundBest(1) }),
		share(fmt.Sprintf("best@%d", BestSentences), "one of the best sentences with the right words", (*Outcome).ranked,
			func(o *Outcome) bool { return o.foundBest(BestSentences) }),
		share("false_refusals", "refused, of the questions with an answer", (*Outcome).answerable,
			func(o *Outcome) bool { return !o.Answered }),
		share("closest", "shown only the closest passages, of the questions with an answer", (*Outcome).answerable,
			func(o *Outcome) bool { return len(o.Closest) > 0 }),
		share("closest_right", "those of them with the right words, of the questions that list them",
			func(o *Outcome) bool { return o.listed() && len(o.Closest) > 0 },
			func(o *Outcome) bool { wrong, _ := o.wrongIn(strings.Join(o.Closest, "\n")); return wrong == "" }),
		share("false_answers", "answered, of the questions without an answer",
			func(o *Outcome) bool { return o.Question.Unanswerable && o.Error == "" }, (*Outcome).answered),
	}, citationMeasures(), []measure{
		p50, p95,
		ratio("calls", "requests to a model, per question", CountUnit, (*Outcome).asked,
			func(o *Outcome) float64 { return float64(o.Cost.Calls) }, perQuestion),
		ratio("prompt_tokens", "tokens in prompts, per question", CountUnit, (*Outcome).asked,
			func(o *Outcome) float64 { return float64(o.Cost.PromptTokens) }, perQuestion),
		ratio("completion_tokens", "tokens in replies, per question", CountUnit, (*Outcome).asked,
			func(o *Outcome) float64 { return float64(o.Cost.CompletionTokens) }, perQuestion),
	})
}

func citationMeasures() []measure {
	return []measure{
		share("cited", "answers that cite a source", (*Outcome).answered, func(o *Outcome) bool { return len(o.Sources) > 0 }),
		ratio("supported", "citations whose quote supports the sentence", ShareUnit, (*Outcome).answered,
			func(o *Outcome) (n float64) {
				for _, c := range o.Citations {
					if c.Verdict != weak {
						n++
					}
				}
				return n
			}, func(o *Outcome) float64 { return float64(len(o.Citations)) }),
		ratio("unsupported", "statements that nothing cited supports", ShareUnit, (*Outcome).answered,
			func(o *Outcome) float64 { return float64(len(o.Unsupported)) }, (*Outcome).statements),
		share("right_cited", "answers that cite a right document",
			func(o *Outcome) bool { return o.Answered && len(o.Question.Documents) > 0 },
			func(o *Outcome) bool { return o.citesRight() }),
	}
}

// BestSentences is how many sentences of a question are looked at for an answer.
const BestSentences = 3

func (o *Outcome) foundBest(n int) bool {
	return slices.ContainsFunc(o.Best[:min(n, len(o.Best))], func(s string) bool { wrong, _ := o.wrongIn(s); return wrong == "" })
}

// told is the area under the ROC curve of the confidence, of questions with an
// answer against those without.
func told(outcomes []Outcome) Figure {
	var with, without []float64
	for i := range outcomes {
		switch o := &outcomes[i]; {
		case o.Confidence == nil:
		case o.Question.Unanswerable:
			without = append(without, *o.Confidence)
		case o.answerable():
			with = append(with, *o.Confidence)
		}
	}
	f := Figure{Name: "auroc", Unit: ShareUnit, Says: "chance that a question with an answer has the higher confidence"}
	if len(with) > 0 && len(without) > 0 {
		f.Questions, f.Value = len(with)+len(without), AUROC(with, without)
	}
	return f
}

func (p Passage) judgedRight() bool { return p.Right && p.Verdict != "" }

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

// recall measures the retrieved documents, each at the rank of its best passage.
func (o *Outcome) recall() float64 {
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
	return Metric{"recall", recallRank}.Of(ranking, grades)
}

// A Unit says what a figure counts and how it is written.
type Unit string

const (
	ShareUnit   Unit = "share"   // 0 to 1
	SecondsUnit Unit = "seconds" // written as ms or s
	CountUnit   Unit = "count"   // a mean count
)

// Write writes a value in its unit.
func (u Unit) Write(x float64) string {
	switch {
	case u == ShareUnit:
		return fmt.Sprintf("%.3f", x)
	case u == CountUnit && x == math.Trunc(x):
		return fmt.Sprintf("%.0f", x)
	case u == SecondsUnit && x < .0995:
		return fmt.Sprintf("%.1f ms", x*1e3)
	case u == SecondsUnit && x < .9995:
		return fmt.Sprintf("%.0f ms", x*1e3)
	case u == SecondsUnit:
		return fmt.Sprintf("%.2f s", x)
	}
	return fmt.Sprintf("%.2f", x)
}

func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

func quoted(texts []string) string { return "“" + strings.Join(texts, "”, “") + "”" }

func excerpt(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n]) + "…"
}
