package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"ibid/answer"
	"ibid/cmd/ibid/eval"
)

// evalSupportCmd measures how citations are checked.
type evalSupportCmd struct {
	Dir    string `arg:"" help:"Folder of documents, or a set with corpus.jsonl and judged claims in queries.jsonl."`
	JSON   bool   `help:"Print the figures as one JSON object." name:"json"`
	Sample int    `help:"Change only N of the sentences, drawn with a fixed seed; 0: all." default:"2000" placeholder:"N"`
	thresholdConfig
}

// Run measures the support of claims and of changed sentences.
func (c *evalSupportCmd) Run(ctx context.Context, s surroundings) error {
	prover := answer.Prover()
	known := append(eval.MeasureEdits(prover, nil, eval.Edits), eval.MeasureClaims(prover, nil)...)
	limits, err := c.parse(known)
	if err != nil {
		return err
	}
	claims, texts, err := c.read(ctx, s)
	if err != nil {
		return err
	}
	var places []eval.Place
	for _, text := range texts {
		places = append(places, eval.Places(prover, text)...)
	}
	if len(places) == 0 {
		return usageError("%s has no longer sentence: give a folder of documents in prose", c.Dir)
	}
	figures := eval.MeasureEdits(prover, sample(places, c.Sample), eval.Edits)
	if len(claims) > 0 {
		figures = append(figures, eval.MeasureClaims(prover, claims)...)
	}
	if c.JSON {
		err = json.NewEncoder(s.stdout).Encode(map[string]any{"figures": figures})
	} else {
		err = table(s, false, figures, "", "", func(f eval.Figure) string {
			return fmt.Sprintf("%s\t%s\tof %d\t%s", f.Name, f.Text(), f.Questions, f.Says)
		})
	}
	return errors.Join(err, missedError(limits.missed(figures)))
}

// read returns the claims of a set and its texts, or the texts of a folder.
func (c *evalSupportCmd) read(ctx context.Context, s surroundings) (claims []eval.Claim, texts []string, err error) {
	if _, err := os.Stat(filepath.Join(c.Dir, "corpus.jsonl")); err == nil {
		set := os.DirFS(c.Dir)
		entries, err := eval.ReadCorpus(set)
		if err == nil {
			claims, err = eval.ReadClaims(set)
		}
		if err != nil {
			return nil, nil, usageError("reading the set %s: %w", c.Dir, err)
		}
		for _, e := range entries {
			texts = append(texts, e.Text)
		}
		return claims, texts, nil
	}
	corpus, err := corpusConfig{}.open(ctx, s, func(out *corpus) error {
		_, err := out.readFolder(ctx, c.Dir, syncConfig{}, readConfig{})
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, corpus.close()) }()
	documents, err := corpus.Documents(ctx, corpus.filter)
	if err != nil {
		return nil, nil, fmt.Errorf("listing the documents of %s: %w", c.Dir, err)
	}
	for _, d := range documents {
		doc, err := corpus.Document(ctx, d.ID)
		if err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", d.ID, err)
		}
		texts = append(texts, doc.Text)
	}
	return nil, texts, nil
}
