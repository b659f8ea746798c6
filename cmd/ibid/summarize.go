package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"

	"ibid/answer"
	"ibid/cite"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/state"
)

type summarizeCmd struct {
	Input    string `arg:"" name:"file" help:"File or folder to summarize, ingested or not; - for text on standard input."`
	Strategy string `help:"How the parts become a summary: ${summary_strategies}." default:"auto" placeholder:"NAME"`
	MaxWords int    `help:"Approximate length of the summary in words; 0: the model decides." default:"0" placeholder:"N"`
	Parallel int    `help:"Concurrent calls to the model." default:"4" placeholder:"N"`
	Steps    bool   `help:"Also show the result of each call, after the summary." name:"intermediate-steps"`
	JSON     bool   `help:"Print the whole summary as one JSON object." name:"json"`
	Source   string `help:"What counts as one source: ${enum}." enum:"document,page,section,url" default:"section" placeholder:"KIND"`
	modelConfig
	readConfig
	storeConfig
}

// Run summarizes a file, a folder or standard input.
func (c *summarizeCmd) Run(ctx context.Context, s surroundings) error {
	if c.Parallel < 1 {
		return usageError("--parallel %d: give the number of concurrent calls, 1 or more", c.Parallel)
	}
	answerer, err := c.answerer(ctx, s)
	if err != nil {
		return err
	}
	input, err := c.readInput(ctx, s)
	if err != nil {
		return err
	}
	events := cite.Number(answerer.Summarize(ctx, answer.Summary{
		Passages: input.passages, Strategy: c.Strategy, Words: c.MaxWords,
	}), citeConfig{Source: c.Source}.options())
	if !c.JSON {
		events = c.printAnswer(events, len(input.passages), s)
	}
	a, err := cite.Collect(events)
	if err == nil {
		err = c.print(s, a)
	}
	if err != nil {
		return err
	}
	if a.Incomplete {
		return &exitError{code: exitFailed}
	}
	if input.failed {
		return &exitError{code: exitPartial}
	}
	return nil
}

// answerer returns the answerer with the model chosen by flags or on the page.
func (c *summarizeCmd) answerer(ctx context.Context, s surroundings) (a *answer.Answerer, err error) {
	m, e := c.modelConfig, c.endpointConfig
	err = c.withStore(ctx, s, func(store *state.Store) (err error) {
		m, e, err = s.chooseFrom(ctx, store, c.Data, m, e)
		return err
	})
	if err == nil && m.Model == "" {
		err = usageError("a summary needs a model: select one with --model (and --base-url, if it is not OpenAI's), or on the page")
	}
	if err == nil {
		a, err = newAnswerer(m, e, s.getenv)
	}
	if err == nil {
		a.Parallel = c.Parallel
	}
	return a, err
}

func (c *summarizeCmd) print(s surroundings, a cite.Answer) error {
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(a)
	}
	if err := showSources(s.stdout, s.stderr, a); err != nil || !c.Steps {
		return err
	}
	_, err := io.WriteString(s.stdout, printable(stepsText(a)))
	return err
}

func (c *summarizeCmd) printAnswer(events iter.Seq2[answer.Event, error], passages int, s surroundings) iter.Seq2[answer.Event, error] {
	if !isTerminal(s.stderr) {
		return printAnswer(events, s)
	}
	reading := newMeter(s.stderr, "passages", passages)
	s.stderr = reading // print messages above the bar
	return printAnswer(func(yield func(answer.Event, error) bool) {
		defer reading.clear()
		done := 0
		for e, err := range events {
			if step, ok := e.(answer.Stepped); ok && err == nil {
				if step.Role != answer.RoleCollapse && step.Role != answer.RoleCombine {
					done += len(step.Passages)
					reading.update(done, passages)
				}
			} else if _, draft := e.(answer.Draft); !draft {
				reading.clear()
			}
			if !yield(e, err) {
				return
			}
		}
	}, s)
}

// An inputText is a text with all its passages in order. As an [ingest.Sink] it starts empty,
// and adds the documents of a folder.
type inputText struct {
	passages []retrieve.Passage
	failed   bool // a file could not be read
}

func (c *summarizeCmd) readInput(ctx context.Context, s surroundings) (*inputText, error) {
	reader := c.reader(c.Data)
	defer reader.Close()
	w := &inputText{}
	input, err := filepath.Abs(c.Input)
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", c.Input, err)
	}
	var data []byte
	switch info, missing := os.Stat(input); {
	case c.Input == "-":
		input = "standard input as text"
		if data, err = io.ReadAll(io.LimitReader(s.stdin, ingest.DefaultMaxBytes+1)); err == nil {
			err = w.readBytes(ctx, reader, "standard input", "", data)
		}
	case errors.Is(missing, fs.ErrNotExist):
		return nil, usageError("there is no file or folder %s", c.Input)
	case missing != nil:
		return nil, fmt.Errorf("opening the text to summarize: %w", missing)
	case info.IsDir():
		err = w.readFolder(ctx, reader, input, s)
	case !info.Mode().IsRegular():
		return nil, usageError("%s is neither a file nor a folder", input)
	case info.Size() > ingest.DefaultMaxBytes:
		return nil, fmt.Errorf("reading %s: it is larger than %d MB: split it", input, ingest.DefaultMaxBytes>>20)
	default:
		if data, err = os.ReadFile(input); err == nil {
			err = w.readBytes(ctx, reader, filepath.Base(input), filepath.Base(filepath.Dir(input)), data)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", input, err)
	}
	if len(w.passages) == 0 {
		return nil, fmt.Errorf("there is no text to summarize in %s: Ibid reads %s", input, ingest.Formats())
	}
	return w, nil
}

func (w *inputText) readBytes(ctx context.Context, reader *ingest.Reader, name, root string, data []byte) error {
	doc, err := reader.Read(ctx, name, data)
	if err != nil {
		return err
	}
	doc.Root, doc.ID = root, path.Join(root, name)
	return w.Replace(ctx, doc, ingest.Split(doc))
}

func (w *inputText) readFolder(ctx context.Context, reader *ingest.Reader, folder string, s surroundings) error {
	dir, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	syncer := &ingest.Syncer{Sink: w, Reader: reader}
	for change, err := range syncer.Sync(ctx, ingest.Root{Name: filepath.Base(folder), Path: folder}, dir.FS()) {
		if err != nil {
			return err
		}
		if change.Action == ingest.Failed || change.Action == ingest.Skipped {
			w.failed = w.failed || change.Action == ingest.Failed
			fmt.Fprintf(s.stderr, "ibid: %s", changeLine(change))
		}
	}
	return nil
}

func (w *inputText) StoredDocuments(context.Context, ingest.Root) (map[string]ingest.Stored, error) {
	return nil, nil
}

// Replace adds a document, unless it already has a copy.
func (w *inputText) Replace(_ context.Context, doc *ingest.Document, chunks []ingest.Chunk) error {
	if slices.ContainsFunc(w.passages, func(p retrieve.Passage) bool { return p.Digest == doc.Digest && p.Format == doc.Format }) {
		return nil
	}
	w.passages = append(w.passages, retrieve.Passages(doc, chunks)...)
	return nil
}

func (w *inputText) Rename(_ context.Context, from string, _ *ingest.Document) error {
	return fmt.Errorf("renaming %s: there is no such document", from)
}

func (w *inputText) Delete(context.Context, string) error { return nil }
