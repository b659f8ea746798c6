package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"ibid/answer"
	"ibid/cite"
	"ibid/ingest"
	"ibid/retrieve"
)

type summarizeCmd struct {
	Input    string `arg:"" optional:"" name:"file" help:"File or folder to summarize, ingested or not; - for text on standard input."`
	Strategy string `help:"How the parts become a summary: auto, refine, map-reduce or stuff." default:"auto" placeholder:"NAME"`
	MaxWords int    `help:"About how long the summary should be, in words; 0 leaves it to the model." default:"0" placeholder:"N"`
	Parallel int    `help:"Calls to the model at a time." default:"4" placeholder:"N"`
	Steps    bool   `help:"Show what each call gave." name:"intermediate-steps"`
	Graph    bool   `help:"Show the run as a Mermaid diagram: every call, and what it was given."`
	JSON     bool   `help:"Print the whole summary as one JSON object." name:"json"`
	Source   string `help:"What counts as one source: ${enum}." enum:"document,page,section,url" default:"section" placeholder:"KIND"`
	resumeConfig
	modelConfig
	readConfig
	storeConfig
}

// A summarySpec is all that decides on a summary.
type summarySpec struct {
	Path     string // absolute
	Text     []byte // of standard input
	Strategy string
	Words    int
	modelSpec
}

// A summary is the object that --json prints.
type summary struct {
	cite.Answer
	Run   string `json:"run,omitempty"`
	Graph string `json:"graph,omitempty"`
}

// Run summarizes a file, a folder or standard input.
func (c *summarizeCmd) Run(ctx context.Context, s surroundings) (err error) {
	if c.Input == "" && !c.Resume {
		return usageError("say what to summarize, a file, a folder or - for standard input, or --resume the run that was interrupted last")
	}
	if !c.Resume && c.Model == "" {
		return usageError("a summary needs a model: choose one with --model (and --base-url, if it is not OpenAI's)")
	}
	if c.Parallel < 1 {
		return usageError("--parallel %d: give the number of calls at a time, 1 or more", c.Parallel)
	}
	citing, err := citeConfig{Source: c.Source}.citing()
	if err != nil {
		return err
	}
	store, err := openStore(ctx, c.placeConfig, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	runs := runner{"ibid summarize", c.placeConfig, store.Ledger(), s}
	var run *answer.Run
	var spec summarySpec
	if c.Resume {
		run, err = runs.resume(ctx, c.Input, &spec)
	} else {
		spec, err = c.spec(s)
	}
	if err != nil {
		return err
	}
	reader, err := c.reader(c.Data)
	if err != nil {
		return err
	}
	defer reader.Close()
	read, err := readWhole(ctx, reader, spec)
	if err != nil {
		return err
	}
	for _, t := range read.troubles {
		fmt.Fprintf(s.stderr, "ibid: %s", t)
	}
	if len(read.passages) == 0 {
		return fmt.Errorf("there is no text to summarize in %s: Ibid reads %s", spec.Path, ingest.Formats())
	}
	c.BaseURL = spec.BaseURL
	answerer, err := newAnswerer(spec.modelConfig, c.endpointConfig, s.getenv)
	if err != nil {
		return err
	}
	answerer.Parallel = c.Parallel
	if run == nil {
		run = runs.begin(ctx, spec)
	}
	if ctx, err = runs.hold(ctx, run); err != nil {
		return err
	}
	if run != nil {
		fmt.Fprintf(s.stderr, "ibid: run %s\n", run.ID)
	}
	events := run.Watch(answerer.Summarize(ctx, answer.Summary{Passages: read.passages, Strategy: spec.Strategy, Words: spec.Words, Run: run}))
	events = cite.Number(events, citing)
	if !c.JSON {
		events = show(c.showSteps(c.progress(events, len(read.passages), s), s), s)
	}
	a, err := cite.Collect(events)
	if err == nil {
		err = c.print(s, a, run)
	}
	if err := runs.settle(ctx, run, err); err != nil {
		return err
	}
	if a.Incomplete {
		return &exitError{code: exitFailed}
	}
	if read.failed {
		return &exitError{code: exitPartial}
	}
	return nil
}

func (c *summarizeCmd) print(s surroundings, a cite.Answer, run *answer.Run) error {
	graph := ""
	if c.Graph {
		graph = answer.Graph(a.Steps)
	}
	if c.JSON {
		whole := summary{Answer: a, Graph: graph}
		if run != nil {
			whole.Run = run.ID
		}
		return json.NewEncoder(s.stdout).Encode(whole)
	}
	if err := showSources(s.stdout, s.stderr, a); err != nil || graph == "" {
		return err
	}
	_, err := fmt.Fprintf(s.stdout, "\n```mermaid\n%s```\n", graph)
	return err
}

// spec writes down what was asked for.
func (c *summarizeCmd) spec(s surroundings) (summarySpec, error) {
	spec := summarySpec{Strategy: c.Strategy, Words: c.MaxWords}
	var err error
	if spec.modelSpec, err = newModelSpec(c.modelConfig, c.endpointConfig); err != nil {
		return spec, err
	}
	if c.Input == "-" {
		if spec.Text, err = io.ReadAll(io.LimitReader(s.stdin, ingest.DefaultMaxBytes+1)); err != nil {
			return spec, fmt.Errorf("reading standard input: %w", err)
		}
	} else if spec.Path, err = filepath.Abs(c.Input); err != nil {
		return spec, fmt.Errorf("finding %s: %w", c.Input, err)
	}
	return spec, nil
}

// showSteps prints what each call gave, before the summary itself.
func (c *summarizeCmd) showSteps(events iter.Seq2[answer.Event, error], s surroundings) iter.Seq2[answer.Event, error] {
	if !c.Steps {
		return events
	}
	return func(yield func(answer.Event, error) bool) {
		open := 0     // the step whose text is being printed, -1 for the summary
		ended := true // so is the line
		for e, err := range events {
			var werr error
			switch e := e.(type) {
			case answer.Draft:
				if e.Step != open {
					open = e.Step
					_, werr = fmt.Fprintf(s.stdout, "--- step %d\n", e.Step)
				}
				if _, err := io.WriteString(s.stdout, printable(e.Text)); err != nil {
					werr = err
				}
				if ended = e.Final; ended && werr == nil {
					_, werr = io.WriteString(s.stdout, "\n\n")
				}
			case answer.Text:
				if open >= 0 {
					open = -1
					_, werr = io.WriteString(s.stdout, "--- summary\n")
				}
			case answer.Stepped:
				if e.Changed || e.Step == 0 || open < 0 { // nothing stands inside the summary
					break
				}
				if !ended {
					_, werr = io.WriteString(s.stdout, "\n\n")
					ended = true
				}
				if werr == nil {
					_, werr = fmt.Fprintf(s.stdout, "--- step %d: %s\n\n", e.Step, e.Reason)
				}
			}
			if werr != nil {
				yield(nil, werr)
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// progress shows on a terminal how much of the text has been read, until the
// summary itself comes.
func (c *summarizeCmd) progress(events iter.Seq2[answer.Event, error], passages int, s surroundings) iter.Seq2[answer.Event, error] {
	if !isTerminal(s.stderr) || c.Steps {
		return events
	}
	return func(yield func(answer.Event, error) bool) {
		p := mpb.New(mpb.WithOutput(s.stderr), mpb.WithWidth(48))
		bar := p.AddBar(int64(passages), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.CountersNoUnit("%d of %d passages read")),
			mpb.AppendDecorators(decor.AverageETA(decor.ET_STYLE_GO)))
		closed := false
		end := func() {
			if !closed {
				closed = true
				bar.Abort(true)
				p.Wait()
			}
		}
		defer end()
		var held []answer.Event // what would be printed into the bar
		for e, err := range events {
			switch e := e.(type) {
			case answer.Warning:
				if !closed {
					held = append(held, e)
					continue
				}
			case answer.Stepped:
				if e.Role != answer.RoleCollapse && e.Role != answer.RoleCombine {
					bar.IncrBy(len(e.Passages))
				}
			case answer.Text, answer.Incomplete, answer.Usage:
				end()
			}
			if err != nil {
				end()
			}
			for ; closed && len(held) > 0; held = held[1:] {
				if !yield(held[0], nil) {
					return
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// whole is a text with all its passages in order.
type whole struct {
	passages []retrieve.Passage
	troubles []string // a line each
	failed   bool     // a file could not be read
}

// readWhole reads what is to be summarized, in place.
func readWhole(ctx context.Context, reader *ingest.Reader, spec summarySpec) (*whole, error) {
	w := &whole{}
	if spec.Path == "" {
		doc, err := reader.Read(ctx, "standard input", spec.Text)
		if err != nil {
			return nil, fmt.Errorf("reading standard input as text: %w", err)
		}
		doc.ID = doc.Path
		w.add(doc, ingest.Split(doc, ingest.SplitOptions{}))
		return w, nil
	}
	info, err := os.Stat(spec.Path)
	if err != nil {
		return nil, fmt.Errorf("looking at what is to be summarized: %w", err)
	}
	folder, name := spec.Path, ""
	if !info.IsDir() {
		folder, name = filepath.Split(spec.Path)
		if !info.Mode().IsRegular() {
			return nil, usageError("%s is neither a file nor a folder", spec.Path)
		}
	}
	dir, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("opening the folder %s: %w", folder, err)
	}
	defer dir.Close()
	root := ingest.Root{Name: filepath.Base(folder), Path: folder}
	if name != "" {
		if info.Size() > ingest.DefaultMaxBytes {
			return nil, fmt.Errorf("reading %s: it is larger than %d MB: split it", spec.Path, ingest.DefaultMaxBytes>>20)
		}
		data, err := dir.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", spec.Path, err)
		}
		doc, err := reader.Read(ctx, name, data)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", spec.Path, err)
		}
		doc.Root, doc.ID = root.Name, root.Name+"/"+name
		w.add(doc, ingest.Split(doc, ingest.SplitOptions{}))
		return w, nil
	}
	syncer := &ingest.Syncer{Sink: w, Reader: reader}
	for change, err := range syncer.Sync(ctx, root, dir.FS()) {
		if err != nil {
			return nil, fmt.Errorf("reading the folder %s: %w", folder, err)
		}
		if change.Action == ingest.Failed || change.Action == ingest.Skipped {
			w.failed = w.failed || change.Action == ingest.Failed
			w.troubles = append(w.troubles, changeLine(change))
		}
	}
	return w, nil
}

func (w *whole) add(doc *ingest.Document, chunks []ingest.Chunk) {
	w.passages = append(w.passages, retrieve.Passages(doc, chunks)...)
}

// A whole is an ingest.Sink that holds nothing beforehand: all that a folder
// holds is added to it.

func (w *whole) Known(context.Context, ingest.Root) (map[string]ingest.Stored, error) {
	return nil, nil
}

func (w *whole) Replace(_ context.Context, doc *ingest.Document, chunks []ingest.Chunk) error {
	w.add(doc, chunks)
	return nil
}

func (w *whole) Rename(_ context.Context, from string, _ *ingest.Document) error {
	return fmt.Errorf("renaming %s: nothing was read before", from)
}

func (w *whole) Delete(context.Context, string) error { return nil }
