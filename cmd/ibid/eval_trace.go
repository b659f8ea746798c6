package main

import (
	"context"
	"slices"
	"time"

	"ibid/answer"
	"ibid/cite"
	"ibid/cmd/ibid/eval"
	"ibid/retrieve"
)

// trace asks one question. Its error is that of the context or the store; an
// error of the answer is part of the outcome.
func (c *corpus) trace(
	ctx context.Context, answerer *answer.Answerer, asked answer.Question, q eval.Question,
) (*eval.Outcome, error) {
	t := &tracer{}
	begun := time.Now()
	var fold cite.Fold
	var failed error
	for e, err := range cite.Number(t.record(answerer.Ask(ctx, asked)), cite.Options{}) {
		if err != nil {
			failed = err
			break
		}
		fold.Add(e)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a := fold.Answer()
	out := outcome(a)
	out.Seconds = time.Since(begun).Seconds()
	out.Question = q
	out.Question.Documents = slices.Clone(q.Documents)
	for i, d := range q.Documents {
		if stored, ok := c.stored[d]; ok {
			out.Question.Documents[i] = stored
		} else {
			out.Missing = append(out.Missing, d)
		}
	}
	if failed != nil {
		out.Answered, out.Error = false, failed.Error()
	}
	out.Retrieved = t.tracedPassages(a.Judged)
	if answerer.Model == nil && failed == nil {
		kept := slices.DeleteFunc(slices.Clone(t.passages), func(p retrieve.Passage) bool {
			return !slices.ContainsFunc(out.Retrieved, func(r eval.Passage) bool { return r.ID == p.ID && r.Kept })
		})
		best, chance, err := answerer.Best(ctx, q.Text, kept, eval.BestSentences)
		if err != nil {
			return nil, err
		}
		out.Best, out.Confidence = best, &chance
	}
	out.Check()
	return out, nil
}

func outcome(a cite.Answer) *eval.Outcome {
	out := &eval.Outcome{
		Answered: a.Answered, Incomplete: a.Incomplete, Reason: a.Reason, Text: a.Text,
		Sources: []eval.Source{}, Citations: []eval.Citation{}, Unsupported: []eval.Sentence{},
		Cost: eval.Cost{Calls: a.Usage.Calls, PromptTokens: a.Usage.PromptTokens, CompletionTokens: a.Usage.CompletionTokens},
	}
	for _, c := range a.Closest {
		out.Closest = append(out.Closest, c.Text)
	}
	for _, s := range a.Sources {
		out.Sources = append(out.Sources, eval.Source{Number: s.Number, Document: s.Document, Title: s.Title})
	}
	for _, x := range a.Citations {
		out.Citations = append(out.Citations, eval.Citation{
			Number: x.Number, Document: x.Document, Page: x.Page, Quote: x.Quote,
			Support: x.Support, Verdict: string(x.Verdict), Start: x.TextStart, End: x.TextEnd,
		})
	}
	for _, u := range a.Unsupported {
		out.Unsupported = append(out.Unsupported, eval.Sentence{Start: u.TextStart, End: u.TextEnd, Reason: u.Reason})
	}
	return out
}

func (t *tracer) tracedPassages(verdicts []answer.Judged) []eval.Passage {
	byPassage := make(map[string]answer.Judged)
	for _, j := range verdicts {
		byPassage[j.Passage] = j
	}
	passages := []eval.Passage{}
	for _, p := range t.passages {
		j, judged := byPassage[p.ID]
		passages = append(passages, eval.Passage{
			ID: p.ID, Document: p.Document, Title: p.Title, Heading: p.Heading, Page: p.Page, Text: p.Text,
			Score: p.Score, Dense: p.Scores.Dense, BM25: p.Scores.BM25, Rerank: p.Scores.Rerank,
			Chance: j.Chance, Verdict: string(j.Decision), By: j.By, Reason: j.Reason,
			Kept: t.kept[p.ID] || judged && j.Decision != answer.Irrelevant, // without a gate nothing is judged
		})
	}
	return passages
}
