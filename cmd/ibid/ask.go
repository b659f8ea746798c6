package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"ibid/answer"
	"ibid/cite"
	"ibid/cite/rewrite"
	"ibid/cite/support"
	"ibid/ingest"
	"ibid/retrieve"
)

type askCmd struct {
	Question []string `arg:"" help:"The question, quoted or as words."`
	JSON     bool     `help:"Print the whole answer as one JSON object." name:"json"`
	Trace    bool     `help:"Also print what happened to each passage and why, and each call to a model. --json always includes this."`
	Strategy string   `help:"How passages become an answer: ${strategies}." default:"auto" placeholder:"NAME"`
	citeConfig
	scopeConfig
	rerankConfig
	modelConfig
	storeConfig
}

// Run answers one question on the terminal.
func (c *askCmd) Run(ctx context.Context, s surroundings) (err error) {
	text, err := c.question(c.Question)
	if err != nil {
		return err
	}
	lib, answerer, err := openAnswerer(ctx, c.storeConfig, c.rerankConfig, c.modelConfig, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lib.close()) }()
	if err := lib.refuseEmpty(ctx, c.filter()); err != nil {
		return err
	}
	a, err := c.print(cite.Number(answerer.Ask(ctx, answer.Question{
		Text: text, Strategy: c.Strategy, TopK: c.TopK, Filter: c.filter(),
	}), c.options()), s)
	if err == nil && a.Incomplete {
		err = &exitError{code: exitFailed}
	}
	return err
}

func (c *askCmd) print(events iter.Seq2[answer.Event, error], s surroundings) (cite.Answer, error) {
	if c.JSON {
		a, err := cite.Collect(events)
		if err == nil {
			err = json.NewEncoder(s.stdout).Encode(a)
		}
		return a, err
	}
	t := &tracer{}
	a, err := cite.Collect(printAnswer(t.record(events), s))
	if err == nil {
		err = showSources(s.stdout, s.stderr, a)
	}
	if c.Trace {
		err = errors.Join(err, t.printTrace(s.stdout, a))
	}
	return a, err
}

// printAnswer prints an answer as it arrives, then the warnings that arrived after its first
// word.
func printAnswer(events iter.Seq2[answer.Event, error], s surroundings) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		shown, late := false, []string{}
		defer func() {
			if shown {
				fmt.Fprintln(s.stdout)
			}
			for _, message := range late {
				s.printMessage("%s", message)
			}
		}()
		for e, err := range events {
			if err == nil {
				switch e := e.(type) {
				case answer.Text:
					_, err = io.WriteString(s.stdout, printable(e.Text))
					shown = true
				case answer.Unanswered:
					_, err = fmt.Fprint(s.stdout, printable(e.Text))
					shown = true
				case answer.Incomplete:
					late = append(late, "the answer is incomplete: "+e.Reason)
				case answer.Warning:
					if late = append(late, e.Message); !shown {
						s.printMessage("%s", e.Message)
						late = nil
					}
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func showSources(stdout, stderr io.Writer, a cite.Answer) error {
	var b strings.Builder
	if len(a.Sources) > 0 {
		b.WriteByte('\n')
	}
	for _, src := range a.Sources {
		fmt.Fprintf(&b, "[%d] %s (%s)\n", src.Number, src.Title, cmp.Or(src.Original, rewrite.VisibleName(src.Document)))
		b.WriteString(copiesLine(src.AlsoIn))
		for _, p := range src.Passages {
			if p.Quote == "" {
				continue
			}
			mark := ""
			if slices.ContainsFunc(a.Citations, func(c cite.Citation) bool {
				return c.Verdict == support.Weak && c.Passage == p.ID && c.Start == p.Start && c.End == p.End
			}) {
				mark = "weak: "
			}
			fmt.Fprintf(&b, "    %s%s“%s”\n", mark, placePrefix(p.Page, p.Heading), oneLine(p.Quote, 160))
		}
	}
	if len(a.Closest)+len(a.Nearest) > 0 {
		b.WriteString("\n" + answer.ClosestWords(a.Text) + "\n")
	}
	for _, c := range a.Closest {
		b.WriteString("\n" + passageName(c.Passage) + "\n" + markedText(c))
	}
	if len(a.Closest) == 0 {
		for _, p := range a.Nearest {
			fmt.Fprintf(&b, "  - %s\n", passageName(p))
		}
	}
	if _, err := io.WriteString(stdout, printable(b.String())); err != nil {
		return err
	}
	for _, u := range a.Unsupported {
		fmt.Fprintf(stderr, "ibid: no cited passage supports this (%s): %s\n", u.Reason, printable(oneLine(a.Text[u.TextStart:u.TextEnd], 120)))
	}
	if a.Usage.Looked == 0 {
		return nil
	}
	_, err := fmt.Fprintf(stderr, "considered %s, used %d\n", countOf(a.Usage.Looked, "passage"), a.Usage.Used)
	return err
}

// markedText is a part of a document, indented, with the words nearest to the
// question between asterisks.
func markedText(c answer.Closest) string {
	text := c.Text
	for _, m := range slices.Backward(c.Marks) {
		text = text[:m.Start] + "*" + text[m.Start:m.End] + "*" + text[m.End:]
	}
	return indentText(text)
}

// copiesLine returns the line that names the copies of a source, or "" without copies.
func copiesLine(copies []string) string {
	if len(copies) == 0 {
		return ""
	}
	names := rewrite.VisibleName(strings.Join(copies[:min(3, len(copies))], ", "))
	if len(copies) > 3 {
		names += ", …"
	}
	return "    also in " + names + "\n"
}

// placePrefix returns the place in a document as a prefix: "page 3, Fees: ".
func placePrefix(page int, heading string) string {
	if page > 0 {
		heading = strings.TrimSuffix(fmt.Sprintf("page %d, %s", page, heading), ", ")
	}
	if heading == "" {
		return ""
	}
	return heading + ": "
}

// passageName names a passage and its document. Rows of a table have no heading,
// only anchors.
func passageName(p retrieve.Passage) string {
	document := rewrite.VisibleName(p.Document)
	if _, _, ok := ingest.RowAnchor(p.Anchor); ok {
		document += "#" + p.Anchor
	}
	return strings.TrimSuffix(fmt.Sprintf("%s (%s) %s", p.Title, document, strings.TrimSuffix(placePrefix(p.Page, p.Heading), ": ")), " ")
}

// oneLine collapses white space and cuts a text after n runes.
func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}

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
	text, err := c.question(c.Question)
	if err != nil {
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
	passages, err := lib.Search(ctx, retrieve.Query{Text: text, K: c.TopK, Filter: c.filter(),
		Warn: func(err error) { s.printMessage("%s", err) }})
	if err != nil {
		return err
	}
	var b strings.Builder
	for i, p := range passages {
		if c.Full && i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%2d. %.3f  %s\n", i+1, p.Score, passageName(p))
		b.WriteString(copiesLine(p.AlsoIn))
		if c.Full {
			b.WriteString("\n" + indentText(p.Text))
		} else {
			fmt.Fprintf(&b, "    %s\n", oneLine(p.Text, 300))
		}
	}
	if len(passages) == 0 {
		b.WriteString("nothing found\n")
	}
	return s.print(c.JSON, append([]retrieve.Passage{}, passages...), b.String())
}

func indentText(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		b.WriteString(strings.TrimRight("    "+line, " \t\r") + "\n")
	}
	return b.String()
}
