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

// A tracer watches the events of one question on both sides of the citing.
type tracer struct {
	begun    time.Time
	passages []retrieve.Passage
	judged   []answer.Judged
	kept     map[string]bool // by id of the passage
	seconds  eval.Seconds
	steps    []answer.Stepped
}

func (t *tracer) since() float64 { return time.Since(t.begun).Seconds() }

// before notes the events as the answerer gives them.
func (t *tracer) before(events iter.Seq2[answer.Event, error]) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		for e, err := range events {
			switch e := e.(type) {
			case answer.Retrieved:
				t.passages, t.seconds.Search = e.Passages, t.since()
			case answer.Judged:
				t.judged = append(t.judged, e)
				t.seconds.Gate = t.since() - t.seconds.Search
			case answer.Kept:
				t.kept = make(map[string]bool)
				for _, p := range e.Passages {
					t.kept[p.ID] = true
				}
			case answer.Stepped:
				t.steps = append(t.steps, e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// trace asks one question. The error is that of the context; any other is the
// outcome of the question.
func (c *corpus) trace(ctx context.Context, answerer *answer.Answerer, asked answer.Question, q eval.Question, citing cite.Options) (*eval.Outcome, error) {
	t := &tracer{begun: time.Now()}
	var fold cite.Fold
	var failed error
	for e, err := range cite.Number(t.before(answerer.Ask(ctx, asked)), citing) {
		if err != nil {
			failed = err
			break
		}
		if _, text := e.(answer.Text); text && t.seconds.First == 0 {
			t.seconds.First = t.since()
		}
		fold.Add(e)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.seconds.Whole = t.since()
	if t.passages != nil {
		t.seconds.Write = max(0, t.seconds.Whole-t.seconds.Search-t.seconds.Gate)
	}
	out := outcomeOf(fold.Answer(), t)
	out.Question, out.Missing = c.named(q)
	if failed != nil {
		out.Answered, out.Error = false, failed.Error()
	}
	var err error
	if out.Retrieved, err = c.retrieved(ctx, out.Question, t); err != nil {
		return nil, err
	}
	out.Diagnose()
	if out.Cause == eval.Retrieval {
		if err := c.deeper(ctx, asked, out); ctx.Err() != nil {
			return nil, ctx.Err()
		} else if err != nil {
			out.Warnings = append(out.Warnings, err.Error())
		}
	}
	return out, nil
}

// deep is how many passages are looked at for one that was not retrieved.
const deep = 100

// deeper looks where what was not retrieved stands in a longer ranking.
func (c *corpus) deeper(ctx context.Context, asked answer.Question, out *eval.Outcome) error {
	passages, err := c.Search(ctx, retrieve.Query{Text: asked.Text, K: max(deep, 2*asked.TopK), Diversity: asked.Diversity, Filter: asked.Filter})
	if err != nil {
		return fmt.Errorf("searching deeper: %w", err)
	}
	t := &tracer{passages: passages}
	longer, err := c.retrieved(ctx, out.Question, t)
	if err == nil {
		out.Deeper(longer)
	}
	return err
}

// named gives the question with the documents as the store calls them, and
// those that it does not have.
func (c *corpus) named(q eval.Question) (_ eval.Question, missing []string) {
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

// outcomeOf is what an answer and its steps come to.
func outcomeOf(a cite.Answer, t *tracer) *eval.Outcome {
	out := &eval.Outcome{
		Answered: a.Answered, Incomplete: a.Incomplete, Reason: a.Reason, Text: a.Text, Warnings: a.Warnings, Seconds: t.seconds,
		Sources: []eval.Source{}, Citations: []eval.Citation{}, Unsupported: []eval.Sentence{}, Drafts: []eval.Draft{}, Steps: []eval.Step{},
		Cost: eval.Cost{Calls: a.Usage.Calls, JudgeCalls: a.Usage.JudgeCalls, PromptTokens: a.Usage.PromptTokens, CompletionTokens: a.Usage.CompletionTokens},
	}
	for _, s := range a.Sources {
		out.Sources = append(out.Sources, eval.Source{Number: s.Number, Document: s.Document, Title: s.Title})
	}
	for _, x := range a.Citations {
		out.Citations = append(out.Citations, eval.Citation{
			Number: x.Number, Document: x.Document, Page: x.Page, Quote: x.Quote, Support: x.Support, Verdict: string(x.Verdict), Start: x.TextStart, End: x.TextEnd,
		})
	}
	for _, u := range a.Unsupported {
		out.Unsupported = append(out.Unsupported, eval.Sentence{Start: u.TextStart, End: u.TextEnd, Reason: u.Reason})
	}
	for _, d := range a.Drafts {
		out.Drafts = append(out.Drafts, eval.Draft{Step: d.Step, Text: d.Text})
	}
	for _, s := range t.steps {
		out.Steps = append(out.Steps, eval.Step{
			Step: s.Step, Role: string(s.Role), Passages: len(s.Passages), Changed: s.Changed, Reason: s.Reason, Invented: s.Invented, Lost: s.Lost,
		})
	}
	return out
}

// retrieved gives the passages with what the gate said of them.
func (c *corpus) retrieved(ctx context.Context, q eval.Question, t *tracer) ([]eval.Passage, error) {
	verdicts := make(map[string]answer.Judged, len(t.judged))
	for _, j := range t.judged {
		verdicts[j.Passage] = j
	}
	passages := []eval.Passage{}
	for _, p := range t.passages {
		j, judged := verdicts[p.ID]
		out := eval.Passage{
			ID: p.ID, Document: p.Document, Title: p.Title, Heading: p.Heading, Page: p.Page, LastPage: p.Page,
			Score: p.Score, Dense: p.Scores.Dense, BM25: p.Scores.BM25, Rerank: p.Scores.Rerank,
			Chance: j.Chance, Verdict: string(j.Decision), By: j.By, Reason: j.Reason, Kept: t.kept[p.ID] || judged && j.Decision != answer.Irrelevant, // without a gate nothing is judged
			Text: p.Text,
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
