package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"

	"ibid/cmd/ibid/eval"
)

type evalCmd struct {
	Retrieval evalRetrievalCmd `cmd:"" help:"Measure search on a set in BEIR's format: BM25 alone, vectors alone, and both."`
	Report    evalReportCmd    `cmd:"" help:"Ask your own folder your own questions, or a set its own: figures of every stage, time and cost, a trace of every failure."`
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
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, usageError("there is no folder %s: give one with corpus.jsonl, queries.jsonl and qrels.tsv", dir)
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
