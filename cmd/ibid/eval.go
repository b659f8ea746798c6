package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ibid/cmd/ibid/eval"
)

type evalCmd struct {
	Retrieval evalRetrievalCmd `cmd:"" help:"Measure search on a dataset in BEIR format: BM25 alone, vectors alone, and both."`
	Answers   evalAnswersCmd   `cmd:"" help:"Measure answers on a dataset in BEIR format whose queries have right answers."`
	Report    evalReportCmd    `cmd:"" help:"Ask your own questions about a folder: figures for every stage, a trace for every failure."`
}

// sample draws n of the items and keeps their order. It returns all if n is 0 or at least their
// number. The same items give the same sample.
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
	var done atomic.Int64
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(parallel)
	for i := range n {
		asking.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := ask(ctx, i)
			if err == nil {
				bar.update(int(done.Add(1)), n)
			}
			return err
		})
	}
	return asking.Wait()
}

func readSet(dir, split string) (*eval.Set, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, usageError("there is no folder %s: give one with corpus.jsonl, queries.jsonl and qrels.tsv", dir)
	}
	set, err := eval.ReadSet(os.DirFS(dir), split)
	if err != nil {
		return nil, fmt.Errorf("reading the set %s: %w", dir, err)
	}
	return set, nil
}

type thresholdConfig struct {
	Min []string `help:"Exit with code 4 if a figure is below a value: recall@5=.8, supported=95%; repeatable." placeholder:"FIGURE=VALUE"`
	Max []string `help:"Exit with code 4 if a figure is above a value: p95=3s, false_answers=5%; repeatable." placeholder:"FIGURE=VALUE"`
}

// A threshold is a value that a figure must reach or must not exceed.
type threshold struct {
	flag   string // --min or --max
	figure string
	value  float64
	text   string
}

type thresholds []threshold

// parse reads the thresholds, and rejects unknown figures.
func (c thresholdConfig) parse(known []eval.Figure) (all thresholds, err error) {
	var names []string
	for _, f := range known {
		names = append(names, f.Name)
	}
	for i, given := range slices.Concat(c.Min, c.Max) {
		t := threshold{flag: "--min"}
		if i >= len(c.Min) {
			t.flag = "--max"
		}
		t.figure, t.text, _ = strings.Cut(strings.ReplaceAll(given, " ", ""), "=")
		if t.value, err = thresholdValue(t.text); err != nil {
			return nil, usageError("%s %s: %w", t.flag, given, err)
		}
		if !slices.Contains(names, t.figure) {
			return nil, usageError("%s %s: unknown figure; known are %s", t.flag, t.figure, strings.Join(names, ", "))
		}
		all = append(all, t)
	}
	return all, nil
}

// thresholdValue parses a number, a share or a time.
func thresholdValue(text string) (value float64, err error) {
	share, isShare := strings.CutSuffix(text, "%")
	value, err = strconv.ParseFloat(share, 64)
	if isShare {
		value /= 100
	} else if d, wrong := time.ParseDuration(text); err != nil && wrong == nil {
		value, err = d.Seconds(), nil
	}
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, fmt.Errorf("%q is not a value: give a number, a percentage such as 80%% or a time such as 3s", text)
	}
	return value, nil
}

func missedError(missed []string) error {
	if len(missed) == 0 {
		return nil
	}
	return &exitError{exitDamage, errors.New(strings.Join(missed, "; "))}
}

// describeMissed describes the thresholds that are not met. A figure without a value
// meets none.
func (all thresholds) describeMissed(figures []eval.Figure) []string {
	missed := []string{}
	for _, t := range all {
		at := slices.IndexFunc(figures, func(f eval.Figure) bool { return f.Name == t.figure })
		if at < 0 {
			missed = append(missed, t.figure+" could not be measured: no question has the facts that it needs")
			continue
		}
		f := figures[at]
		text := f.Text()
		if f.Unit == eval.ShareUnit {
			text = fmt.Sprintf("%.4f", f.Value) // .6996 is below .7
		}
		if t.flag == "--min" && f.Value < t.value {
			missed = append(missed, fmt.Sprintf("%s is %s, below %s", t.figure, text, t.text))
		} else if t.flag == "--max" && f.Value > t.value {
			missed = append(missed, fmt.Sprintf("%s is %s, above %s", t.figure, text, t.text))
		}
	}
	return missed
}
