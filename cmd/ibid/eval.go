package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"ibid/cmd/ibid/eval"
)

type evalCmd struct {
	Retrieval evalRetrievalCmd `cmd:"" help:"Measure search on a set in BEIR's format: BM25 alone, vectors alone, and both."`
	Gate      evalGateCmd      `cmd:"" help:"Measure how well the relevance gate separates a set's own questions from those of another set."`
	Answers   evalAnswersCmd   `cmd:"" help:"Measure answers: the right words, the right document, refusals, citations."`
	Report    evalReportCmd    `cmd:"" help:"Ask your own folder your own questions: figures of every stage, time and cost, a trace of every failure."`
}

// evalConfig is common to the measurements on public sets.
type evalConfig struct {
	JSON    bool   `help:"Print one JSON object." name:"json"`
	Sample  int    `help:"Ask only N of the questions, drawn with a fixed seed; 0: all." default:"0" placeholder:"N"`
	Details string `help:"File to write one JSON object per question to." placeholder:"FILE"`
	thresholdConfig
}

// check rejects invalid flags before a long run. Names are the figures that a
// threshold may have.
func (c evalConfig) check(names []string) (thresholds, error) {
	if c.Sample < 0 {
		return nil, usageError("--sample %d: give a number of questions, or 0 for all", c.Sample)
	}
	limits, err := c.parse()
	if err != nil {
		return nil, err
	}
	return limits, limits.check(names, func(string) eval.Unit { return eval.ShareUnit })
}

// A shower writes a report as text.
type shower interface{ show(s surroundings) error }

// finish writes the details and the result, and compares the figures with the
// thresholds.
func (c evalConfig) finish(s surroundings, report shower, details []any, limits thresholds, figures eval.Figures) error {
	if err := c.writeDetails(details); err != nil {
		return err
	}
	var err error
	if c.JSON {
		err = json.NewEncoder(s.stdout).Encode(report)
	} else {
		err = report.show(s)
	}
	missed := limits.missed(func(name string) (float64, eval.Unit, bool) {
		value, ok := figures.Get(name)
		return value, eval.ShareUnit, ok
	})
	if len(missed) > 0 {
		err = errors.Join(err, &exitError{exitDamage, errors.New(strings.Join(missed, "; "))})
	}
	return err
}

func (c evalConfig) writeDetails(details []any) (err error) {
	if c.Details == "" {
		return nil
	}
	f, err := os.Create(c.Details)
	if err != nil {
		return fmt.Errorf("writing the details (--details): %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	enc := json.NewEncoder(f)
	for _, d := range details {
		if err := enc.Encode(d); err != nil {
			return fmt.Errorf("writing the details (--details): %w", err)
		}
	}
	return nil
}

// anySlice returns the items as values of any type.
func anySlice[T any](items []T) []any {
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = item
	}
	return out
}

// sample draws n of the items and keeps their order, or returns all if n is 0 or
// there are fewer. The same items give the same sample.
func sample[T any](items []T, n int) []T {
	if n == 0 || n >= len(items) {
		return items
	}
	picked := rand.New(rand.NewPCG(1, 2)).Perm(len(items))[:n]
	slices.Sort(picked)
	out := make([]T, n)
	for i, at := range picked {
		out[i] = items[at]
	}
	return out
}

// askAll calls ask with 0 to n-1, several at a time, until the first error.
func askAll(ctx context.Context, s surroundings, what string, n, parallel int, ask func(ctx context.Context, i int) error) error {
	bar := newMeter(s.stderr, what, n)
	defer bar.end()
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(parallel)
	for i := range n {
		asking.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := ask(ctx, i)
			if err == nil {
				bar.add()
			}
			return err
		})
	}
	return asking.Wait()
}

// readSet reads a set, and prints which of its judgements cannot be measured.
func readSet(dir, split string, s surroundings) (*eval.Set, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, usageError("there is no folder %s: give one with corpus.jsonl, queries.jsonl and qrels.tsv", dir)
	} else if !info.IsDir() {
		return nil, usageError("%s is a file: give the folder that holds corpus.jsonl, queries.jsonl and qrels.tsv", dir)
	}
	set, err := eval.ReadSet(os.DirFS(dir), split)
	if err != nil {
		return nil, fmt.Errorf("reading the set %s: %w", dir, err)
	}
	queries, documents := set.Strays()
	if queries > 0 {
		fmt.Fprintf(s.stderr, "ibid: %s judges %d queries that are not in the set; they are not asked\n", set.Judgements, queries)
	}
	if documents > 0 {
		fmt.Fprintf(s.stderr, "ibid: %s judges %d documents that are not in the set; they count as missed\n", set.Judgements, documents)
	}
	return set, nil
}

// listFigures writes one figure per line.
func listFigures(b *strings.Builder, figures eval.Figures) {
	for _, f := range figures {
		fmt.Fprintf(b, "%-27s %.4f\n", f.Name, f.Value)
	}
}
