package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ibid/retrieve"
)

type searchCmd struct {
	Question []string `arg:"" help:"What to search for, quoted or as words."`
	JSON     bool     `help:"Print the passages as a JSON array." name:"json"`
	Full     bool     `help:"Print whole passages."`
	scopeConfig
	rerankConfig
	storeConfig
}

// Run shows the passages found for a question, best first.
func (c *searchCmd) Run(ctx context.Context, s surroundings) (err error) {
	text, err := question(c.Question)
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	options, err := c.index(c.endpointConfig, s.getenv)
	if err != nil {
		return err
	}
	lib, err := openLibrary(ctx, c.storeConfig, options, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lib.close()) }()
	if err := lib.refuseEmpty(ctx, c.filter()); err != nil {
		return err
	}
	passages, err := lib.Search(ctx, retrieve.Query{Text: text, K: c.TopK, Diversity: c.Diversity, Filter: c.filter(),
		Warn: func(err error) { fmt.Fprintf(s.stderr, "ibid: %s\n", printable(err.Error())) }})
	if err != nil {
		return err
	}
	var b strings.Builder
	for i, p := range passages {
		if c.Full && i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%2d. %.3f  %s\n", i+1, p.Score, passageName(p))
		if c.Full {
			b.WriteString("\n" + indented(p.Text))
		} else {
			fmt.Fprintf(&b, "    %s\n", oneLine(p.Text, 300))
		}
	}
	if len(passages) == 0 {
		b.WriteString("nothing found\n")
	}
	return s.print(c.JSON, append([]retrieve.Passage{}, passages...), b.String())
}

// indented puts four spaces before each non-empty line of a text.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		b.WriteString(strings.TrimRight("    "+line, " \t\r") + "\n")
	}
	return b.String()
}
