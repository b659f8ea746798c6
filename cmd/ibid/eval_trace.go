package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"ibid/answer"
	"ibid/cite"
	"ibid/cmd/ibid/eval"
	"ibid/retrieve"
)

// A tracer records the events of one question before they are numbered.
type tracer struct {
	begun    time.Time
	passages []retrieve.Passage
	kept     map[string]bool // by passage id
	seconds  eval.Seconds
}

func (t *tracer) elapsed() float64 { return time.Since(t.begun).Seconds() }

// record passes the events on.
func (t *tracer) record(events iter.Seq2[answer.Event, error]) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		for e, err := range events {
			switch e := e.(type) {
			case answer.Retrieved:
				if len(t.passages) == 0 {
					t.seconds.Search = t.elapsed()
				}
				t.passages = withPassages(t.passages, e.Passages)
			case answer.Judged:
				t.seconds.Gate = t.elapsed() - t.seconds.Search
			case answer.Kept:
				for _, p := range e.Passages {
					t.kept[p.ID] = true
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// trace asks one question. Its error is that of the context or the store; an
// error of the answer is part of the outcome.
func (c *corpus) trace(
	ctx context.Context, answerer *answer.Answerer, asked answer.Question, q eval.Question, citing cite.Options,
) (*eval.Outcome, error) {
	t := &tracer{begun: time.Now(), kept: make(map[string]bool)}
	var fold cite.Fold
	var failed error
	for e, err := range cite.Number(t.record(answerer.Ask(ctx, asked)), citing) {
		if err != nil {
			failed = err
			break
		}
		if _, text := e.(answer.Text); text && t.seconds.First == 0 {
			t.seconds.First = t.elapsed()
		}
		fold.Add(e)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.seconds.Whole = t.elapsed()
	if t.passages != nil {
		t.seconds.Write = max(0, t.seconds.Whole-t.seconds.Search-t.seconds.Gate)
	}
	a := fold.Answer()
	out := t.outcome(a)
	out.Question, out.Missing = c.resolveDocuments(q)
	if failed != nil {
		out.Answered, out.Error = false, failed.Error()
	}
	var err error
	if out.Retrieved, err = c.tracedPassages(ctx, out.Question, t, a.Judged); err != nil {
		return nil, err
	}
	out.Check()
	return out, nil
}

// resolveDocuments replaces the names of a question's documents with their ids
// in the store, and returns the names that are not there.
func (c *corpus) resolveDocuments(q eval.Question) (_ eval.Question, missing []string) {
	q.Documents = slices.Clone(q.Documents)
	for i, d := range q.Documents {
		if stored, ok := c.stored[d]; ok {
			q.Documents[i] = stored
		} else {
			missing = append(missing, d)
		}
	}
	return q, missing
}

func (t *tracer) outcome(a cite.Answer) *eval.Outcome {
	out := &eval.Outcome{
		Answered: a.Answered, Incomplete: a.Incomplete, Reason: a.Reason, Text: a.Text, Warnings: a.Warnings, Seconds: t.seconds,
		Steps: []eval.Step{}, Sources: []eval.Source{}, Citations: []eval.Citation{}, Unsupported: []eval.Sentence{}, Drafts: []eval.Draft{},
		Cost: eval.Cost{
			Calls: a.Usage.Calls, JudgeCalls: a.Usage.JudgeCalls,
			PromptTokens: a.Usage.PromptTokens, CompletionTokens: a.Usage.CompletionTokens,
		},
	}
	for _, s := range a.Steps {
		out.Steps = append(out.Steps, eval.Step{Step: s.Step, Role: string(s.Role), Passages: len(s.Passages), Changed: s.Changed,
			Reason: s.Reason, Invented: s.Invented, Lost: s.Lost})
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
	for _, d := range a.Drafts {
		out.Drafts = append(out.Drafts, eval.Draft{Step: d.Step, Text: d.Text})
	}
	return out
}

func (c *corpus) tracedPassages(ctx context.Context, q eval.Question, t *tracer, verdicts []answer.Judged) ([]eval.Passage, error) {
	byPassage := make(map[string]answer.Judged)
	for _, j := range verdicts {
		byPassage[j.Passage] = j
	}
	passages := []eval.Passage{}
	for _, p := range t.passages {
		j, judged := byPassage[p.ID]
		out := eval.Passage{
			ID: p.ID, Document: p.Document, Title: p.Title, Heading: p.Heading, Page: p.Page, LastPage: p.Page, Text: p.Text,
			Score: p.Score, Dense: p.Scores.Dense, BM25: p.Scores.BM25, Rerank: p.Scores.Rerank,
			Chance: j.Chance, Verdict: string(j.Decision), By: j.By, Reason: j.Reason,
			Kept: t.kept[p.ID] || judged && j.Decision != answer.Irrelevant, // without a gate nothing is judged
		}
		if q.Pages != nil && p.Page > 0 && slices.Contains(q.Documents, p.Document) {
			doc, err := c.Document(ctx, p.Document)
			if err != nil {
				return nil, fmt.Errorf("reading the pages of %s: %w", p.Document, err)
			}
			out.LastPage = doc.PageAt(max(p.Start, p.End-1))
		}
		passages = append(passages, out)
	}
	return passages, nil
}
