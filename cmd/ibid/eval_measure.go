package main

import (
	"fmt"
	"math"
	"slices"

	"ibid/cite/support"
	"ibid/cmd/ibid/eval"
)

// A reportMeasure computes a figure of a report.
type reportMeasure struct {
	eval.Figure
	quantile float64 // of the numerators; 0 if the figure is a ratio of sums
	ratio    func(o *outcome) ratio
}

// A ratio is one question's part of a figure: the sum of the numerators is divided by the sum
// of the denominators. A question with a denominator of 0 does not count.
type ratio struct{ num, den float64 }

// compute computes the figure. Questions is 0 if no question counts.
func (m reportMeasure) compute(outcomes []outcome) eval.Figure {
	var sum ratio
	var values []float64
	for i := range outcomes {
		p := m.ratio(&outcomes[i])
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

func shareOf(name, says string, among, is func(*outcome) bool) reportMeasure {
	return ratioOf(name, says, eval.ShareUnit, among, func(o *outcome) float64 {
		if is(o) {
			return 1
		}
		return 0
	}, perQuestion)
}

func ratioOf(name, says string, unit eval.Unit, among func(*outcome) bool, num, den func(*outcome) float64) reportMeasure {
	return reportMeasure{Figure: eval.Figure{Name: name, Says: says, Unit: unit}, ratio: func(o *outcome) ratio {
		if !among(o) {
			return ratio{}
		}
		return ratio{num(o), den(o)}
	}}
}

// Conditions under which a question counts for a figure.
func (o *outcome) isKnown() bool      { return o.Status != openStatus }
func (o *outcome) wasSearched() bool  { return o.Error == "" || o.Retrieved != nil }
func (o *outcome) hasPlace() bool     { return o.Question.HasPlace() && o.wasSearched() }
func (o *outcome) hasDocuments() bool { return len(o.Question.Documents) > 0 && o.wasSearched() }
func (o *outcome) isAnswerable() bool {
	return !o.Question.Unanswerable && !o.Question.Open() && o.Error == ""
}
func (o *outcome) hasVerdict() bool    { _, known := o.wrongWords(); return o.isAnswerable() && known }
func (o *outcome) hasConfidence() bool { return o.hasVerdict() && o.Confidence != nil }
func (o *outcome) wasAnswered() bool   { return o.Answered }
func (o *outcome) isAny() bool         { return true }

func perQuestion(*outcome) float64 { return 1 }

const recallRank = 5

func measures() []reportMeasure {
	p50 := ratioOf("p50", "median time to the end of the answer", eval.SecondsUnit,
		(*outcome).isAny, func(o *outcome) float64 { return o.Seconds }, perQuestion)
	p95 := p50
	p50.quantile, p95.quantile = .50, .95
	p95.Name, p95.Says = "p95", "95th percentile of the time to the end of the answer"
	return slices.Concat([]reportMeasure{
		shareOf("passed", "questions without a known fault", (*outcome).isKnown,
			func(o *outcome) bool { return o.Status == passedStatus }),
		ratioOf(fmt.Sprintf("recall@%d", recallRank), fmt.Sprintf("right documents among the first %d retrieved", recallRank), eval.ShareUnit,
			(*outcome).hasDocuments, (*outcome).recall, perQuestion),
		shareOf("right_found", "questions for which a right passage was retrieved", (*outcome).hasPlace,
			func(o *outcome) bool {
				return slices.ContainsFunc(o.Retrieved, func(p tracedPassage) bool { return p.Right })
			}),
		shareOf("gate_lost", "questions for which the gate skipped every right passage",
			func(o *outcome) bool { return slices.ContainsFunc(o.Retrieved, tracedPassage.judgedRight) },
			func(o *outcome) bool {
				return !slices.ContainsFunc(o.Retrieved, func(p tracedPassage) bool { return p.judgedRight() && p.Kept })
			}),
		shareOf("right", "answers with the right words, of the questions that list them", (*outcome).hasVerdict,
			func(o *outcome) bool { wrong, _ := o.wrongWords(); return wrong == "" }),
		shareOf("best@1", "best sentence with the right words, of the questions that list them", (*outcome).hasConfidence,
			func(o *outcome) bool { return o.foundBest(1) }),
		shareOf(fmt.Sprintf("best@%d", bestSentences), "one of the best sentences with the right words", (*outcome).hasConfidence,
			func(o *outcome) bool { return o.foundBest(bestSentences) }),
		shareOf("false_refusals", "questions with an answer that were refused", (*outcome).isAnswerable,
			func(o *outcome) bool { return !o.Answered }),
		shareOf("closest", "questions with an answer that got only the closest passages", (*outcome).isAnswerable,
			func(o *outcome) bool { return len(o.Closest) > 0 }),
		shareOf("false_answers", "questions without an answer that were answered",
			func(o *outcome) bool { return o.Question.Unanswerable && o.Error == "" }, (*outcome).wasAnswered),
	}, citationMeasures(), []reportMeasure{
		p50, p95,
		ratioOf("calls", "requests to a model, per question", eval.CountUnit, (*outcome).isAny,
			func(o *outcome) float64 { return float64(o.Usage.Calls) }, perQuestion),
		ratioOf("prompt_tokens", "tokens in prompts, per question", eval.CountUnit, (*outcome).isAny,
			func(o *outcome) float64 { return float64(o.Usage.PromptTokens) }, perQuestion),
		ratioOf("completion_tokens", "tokens in replies, per question", eval.CountUnit, (*outcome).isAny,
			func(o *outcome) float64 { return float64(o.Usage.CompletionTokens) }, perQuestion),
	})
}

func citationMeasures() []reportMeasure {
	return []reportMeasure{
		shareOf("cited", "answers that cite a source", (*outcome).wasAnswered, func(o *outcome) bool { return len(o.Sources) > 0 }),
		ratioOf("supported", "citations whose quote supports the sentence", eval.ShareUnit, (*outcome).wasAnswered,
			func(o *outcome) (n float64) {
				for _, c := range o.Citations {
					if c.Verdict != support.Weak {
						n++
					}
				}
				return n
			}, func(o *outcome) float64 { return float64(len(o.Citations)) }),
		ratioOf("unsupported", "statements that no cited passage supports", eval.ShareUnit, (*outcome).wasAnswered,
			func(o *outcome) float64 { return float64(len(o.Unsupported)) }, (*outcome).statements),
		shareOf("right_cited", "answers that cite a right document",
			func(o *outcome) bool { return o.Answered && len(o.Question.Documents) > 0 },
			func(o *outcome) bool { return o.citesRight() }),
	}
}

func (o *outcome) foundBest(n int) bool {
	return slices.ContainsFunc(o.Best[:min(n, len(o.Best))], func(s string) bool { wrong, _ := o.wrongIn(s); return wrong == "" })
}

// auroc is the area under the ROC curve of the confidence, for questions with an answer against
// questions without.
func auroc(outcomes []outcome) eval.Figure {
	var with, without []float64
	for i := range outcomes {
		switch o := &outcomes[i]; {
		case o.Confidence == nil:
		case o.Question.Unanswerable:
			without = append(without, *o.Confidence)
		case o.isAnswerable():
			with = append(with, *o.Confidence)
		}
	}
	f := eval.Figure{Name: "auroc", Unit: eval.ShareUnit, Says: "chance that the confidence is higher with an answer than without"}
	if len(with) > 0 && len(without) > 0 {
		f.Questions, f.Value = len(with)+len(without), eval.AUROC(with, without)
	}
	return f
}

func (p tracedPassage) judgedRight() bool { return p.Right && p.Verdict != "" }

func (o *outcome) statements() float64 {
	ranges := make(map[[2]int]bool)
	for _, c := range o.Citations {
		ranges[[2]int{c.TextStart, c.TextEnd}] = true
	}
	for _, s := range o.Unsupported {
		ranges[[2]int{s.TextStart, s.TextEnd}] = true
	}
	return float64(len(ranges))
}

// recall measures the retrieved documents, each at the rank of its best passage.
func (o *outcome) recall() float64 {
	grades := make(eval.Grades)
	for _, d := range o.Question.Documents {
		grades[d] = 1
	}
	var ranking []string
	for _, p := range o.Retrieved {
		if !slices.Contains(ranking, p.Document) {
			ranking = append(ranking, p.Document)
		}
	}
	return eval.Metric{Kind: "recall", K: recallRank}.Measure(ranking, grades)
}
