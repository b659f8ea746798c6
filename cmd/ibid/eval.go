package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"ibid/cmd/ibid/eval"
)

type evalCmd struct {
	Retrieval evalRetrievalCmd `cmd:"" help:"Measure the searches on a set in the format of BEIR: BM25 alone, vectors alone, and both."`
	Gate      evalGateCmd      `cmd:"" help:"Measure how well the relevance gate parts a set's own questions from those of another set."`
	Answers   evalAnswersCmd   `cmd:"" help:"Measure answers: the right words, the right document, refusals, citations."`
	Report    evalReportCmd    `cmd:"" help:"Ask a folder of yours your own questions: what is found, kept, written, cited and refused, how long it takes and what it costs, with a trace of every failure."`
}

// evalConfig is part of every measurement.
type evalConfig struct {
	JSON    bool               `help:"Print one JSON object." name:"json"`
	Min     map[string]float64 `help:"Exit with code 4 when a figure is below a value; may be given more than once." placeholder:"FIGURE=VALUE" mapsep:","`
	Sample  int                `help:"Ask only so many of the questions, drawn with a fixed seed; 0: all." default:"0" placeholder:"N"`
	Details string             `help:"File to write a JSON object a question into." placeholder:"FILE"`
}

// check refuses what cannot be measured, before a long run. The names are
// those that --min may give.
func (c evalConfig) check(names []string) error {
	if c.Sample < 0 {
		return usageError("--sample %d: give a number of questions, or 0 for all", c.Sample)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Min)) {
		if !slices.Contains(names, name) {
			return usageError("--min %s: there is no such figure; there are %s", name, strings.Join(names, ", "))
		}
		if v := c.Min[name]; v != v {
			return usageError("--min %s: give a number", name)
		}
	}
	return nil
}

// missed is the error of the figures that are below their least value; nil when
// there are none.
func (c evalConfig) missed(figures eval.Figures) error {
	var below []string
	for _, name := range slices.Sorted(maps.Keys(c.Min)) {
		if got, _ := figures.Get(name); got < c.Min[name] {
			below = append(below, fmt.Sprintf("%s is %.4f, below %g", name, got, c.Min[name]))
		}
	}
	if below == nil {
		return nil
	}
	return &exitError{exitDamage, errors.New(strings.Join(below, "; "))}
}

// sample draws n of the items, in their order; all when n is 0 or there are no
// more. The same items give the same sample.
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

// writeDetails writes an object a line, when there is a file to write to.
func (c evalConfig) writeDetails(count int, object func(i int) any) (err error) {
	if c.Details == "" {
		return nil
	}
	f, err := os.Create(c.Details)
	if err != nil {
		return fmt.Errorf("writing the details (--details): %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	enc := json.NewEncoder(f)
	for i := range count {
		if err := enc.Encode(object(i)); err != nil {
			return fmt.Errorf("writing the details (--details): %w", err)
		}
	}
	return nil
}

// readSet reads a set, and says what in it will not be measured.
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
	for _, stray := range []struct {
		n         int
		what, why string
	}{
		{queries, "queries", "they are not asked"},
		{documents, "documents", "no search can find them, and they count as missed"},
	} {
		if stray.n > 0 {
			fmt.Fprintf(s.stderr, "ibid: %s judges %d %s that the set does not have: %s\n", set.Judgements, stray.n, stray.what, stray.why)
		}
	}
	return set, nil
}

// showFigures prints a table, a row for each name.
func showFigures(w io.Writer, rows []string, figures []eval.Figures) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s", "")
	for _, f := range figures[0] {
		fmt.Fprintf(&b, " %10s", f.Name)
	}
	b.WriteByte('\n')
	for i, row := range rows {
		fmt.Fprintf(&b, "%-8s", row)
		for _, f := range figures[i] {
			fmt.Fprintf(&b, " %10.4f", f.Value)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// listFigures prints a line a figure.
func listFigures(w io.Writer, figures eval.Figures) error {
	var b strings.Builder
	for _, f := range figures {
		fmt.Fprintf(&b, "%-27s %.4f\n", f.Name, f.Value)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
