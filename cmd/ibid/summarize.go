package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

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
	Resume   string `help:"Go on with an interrupted run: the id that it printed when it began." placeholder:"RUN"`
	Steps    bool   `help:"Show what each call gave." name:"intermediate-steps"`
	Graph    bool   `help:"Show the run as a Mermaid diagram: every call, and what it was given."`
	JSON     bool   `help:"Print the whole summary as one JSON object." name:"json"`
	Source   string `help:"What counts as one source: ${enum}." enum:"document,page,section,url" default:"section" placeholder:"KIND"`
	modelConfig
	storeConfig
}

// A summarySpec is all that decides on a summary, as its run keeps it: who
// resumes it need not say any of it again.
type summarySpec struct {
	By            string `json:"by"`
	Path          string `json:"path,omitempty"` // absolute
	Text          []byte `json:"text,omitempty"` // of standard input
	Strategy      string `json:"strategy"`
	Words         int    `json:"words,omitempty"`
	Model         string `json:"model"`
	RefineModel   string `json:"refine_model,omitempty"`
	BaseURL       string `json:"base_url"`
	ContextTokens int    `json:"context_tokens"`
	StepTokens    int    `json:"step_tokens,omitempty"`
	Prompts       string `json:"prompts,omitempty"`
}

// commandRun tells the runs of the command line from those begun over HTTP.
const commandRun = "command"

// A summary is the object that --json prints.
type summary struct {
	cite.Answer
	Run   string `json:"run"`
	Graph string `json:"graph,omitempty"`
}

// Run summarizes a file, a folder or standard input.
func (c *summarizeCmd) Run(ctx context.Context, s surroundings) (err error) {
	if (c.Input == "") == (c.Resume == "") {
		return usageError("say what to summarize, a file, a folder or - for standard input, or which run to --resume")
	}
	if c.Resume == "" && c.Model == "" {
		return usageError("a summary needs a model: choose one with --model (and --base-url, if it is not OpenAI's)")
	}
	if c.Parallel < 1 {
		return usageError("--parallel %d: give the number of calls at a time, 1 or more", c.Parallel)
	}
	engine, err := openEngine(ctx, c.storeConfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	ledger := engine.Ledger()
	run, spec, err := c.begin(ctx, s, ledger)
	if err != nil {
		return err
	}
	read, err := readWhole(ctx, spec)
	if err != nil {
		return err
	}
	for _, t := range read.troubles {
		fmt.Fprintf(s.stderr, "ibid: %s", t)
	}
	if len(read.passages) == 0 {
		return fmt.Errorf("there is no text to summarize in %s: Ibid reads %s", spec.Path, ingest.Formats())
	}
	if c.Resume == "" {
		if err := ledger.Begin(ctx, run); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.stderr, "ibid: run %s\n", run.ID)
	done := false
	defer func() {
		if !done {
			fmt.Fprintf(s.stderr, "ibid: 'ibid summarize --resume %s' goes on behind the calls that have been made\n", run.ID)
		}
	}()

	answerer, err := newAnswerer(spec.modelConfig(), endpointConfig{BaseURL: spec.BaseURL, APIKeyFile: c.APIKeyFile}, s.getenv)
	if err != nil {
		return err
	}
	answerer.Parallel = c.Parallel
	citing, err := citeConfig{Source: c.Source}.citing()
	if err != nil {
		return err
	}
	events := answerer.Summarize(ctx, answer.Summary{
		Passages: read.passages, Strategy: spec.Strategy, Words: spec.Words,
		Run: &answer.Run{ID: run.ID, Secret: run.Secret, Journal: ledger},
	})
	events = cite.Number(events, citing)
	if !c.JSON {
		events = show(c.showSteps(c.progress(events, len(read.passages), s), s), s)
	}
	a, err := cite.Collect(events)
	var wrong *answer.QuestionError
	if errors.As(err, &wrong) { // no call was made
		done = true
		return errors.Join(usageError("%w", err), ledger.End(ctx, run.ID))
	}
	if err != nil {
		return err
	}
	if err := c.print(s, a, run.ID); err != nil {
		return err
	}
	if a.Incomplete {
		return &exitError{code: exitFailed}
	}
	done = true
	if err := ledger.End(ctx, run.ID); err != nil {
		return err
	}
	if read.failed {
		return &exitError{code: exitPartial}
	}
	return nil
}

func (c *summarizeCmd) print(s surroundings, a cite.Answer, run string) error {
	graph := ""
	if c.Graph {
		graph = answer.Graph(a.Steps)
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(summary{a, run, graph})
	}
	if err := showSources(s.stdout, s.stderr, a); err != nil || graph == "" {
		return err
	}
	_, err := fmt.Fprintf(s.stdout, "\n```mermaid\n%s```\n", graph)
	return err
}

func (spec summarySpec) modelConfig() modelConfig {
	return modelConfig{Model: spec.Model, RefineModel: spec.RefineModel, ContextTokens: spec.ContextTokens, StepTokens: spec.StepTokens, Prompts: spec.Prompts}
}

// begin makes a run of what was asked for, or finds the one to be resumed.
func (c *summarizeCmd) begin(ctx context.Context, s surroundings, ledger retrieve.Ledger) (retrieve.Run, summarySpec, error) {
	var spec summarySpec
	if c.Resume != "" {
		run, err := ledger.Run(ctx, c.Resume)
		if errors.Is(err, retrieve.ErrNotFound) {
			return run, spec, fmt.Errorf("there is no unfinished run %q in %s: it has ended, or began more than %d days ago", c.Resume, c.Data, int(retrieve.MaxRunAge.Hours()/24))
		}
		if err != nil {
			return run, spec, err
		}
		if err := json.Unmarshal(run.Spec, &spec); err != nil {
			return run, spec, fmt.Errorf("reading what the run %s is to do: %w", run.ID, err)
		}
		if spec.By != commandRun {
			return run, spec, usageError("the run %s was begun over HTTP: go on with it there, by POST /api/summarize", run.ID)
		}
		return run, spec, nil
	}
	spec = summarySpec{
		By: commandRun, Strategy: c.Strategy, Words: c.MaxWords, Model: c.Model, RefineModel: c.RefineModel, BaseURL: c.BaseURL,
		ContextTokens: c.ContextTokens, StepTokens: c.StepTokens,
	}
	var err error
	if c.Prompts != "" {
		if spec.Prompts, err = filepath.Abs(c.Prompts); err != nil {
			return retrieve.Run{}, spec, fmt.Errorf("finding the prompts folder %s: %w", c.Prompts, err)
		}
	}
	if c.Input == "-" {
		spec.Text, err = io.ReadAll(io.LimitReader(s.stdin, ingest.DefaultMaxBytes+1))
		if err != nil {
			return retrieve.Run{}, spec, fmt.Errorf("reading standard input: %w", err)
		}
	} else if spec.Path, err = filepath.Abs(c.Input); err != nil {
		return retrieve.Run{}, spec, fmt.Errorf("finding %s: %w", c.Input, err)
	}
	b, err := json.Marshal(spec)
	if err != nil {
		return retrieve.Run{}, spec, fmt.Errorf("writing down what the run is to do: %w", err)
	}
	secret := make([]byte, 32)
	rand.Read(secret) // never fails
	return retrieve.Run{ID: strings.ToLower(rand.Text()[:10]), Started: time.Now(), Secret: secret, Spec: b}, spec, nil
}

// showSteps prints what each call gave, before the summary itself.
func (c *summarizeCmd) showSteps(events iter.Seq2[answer.Event, error], s surroundings) iter.Seq2[answer.Event, error] {
	if !c.Steps {
		return events
	}
	return func(yield func(answer.Event, error) bool) {
		open := 0 // the step whose text is being printed
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
				if e.Final {
					_, werr = io.WriteString(s.stdout, "\n\n")
				}
			case answer.Text:
				if open >= 0 {
					open = -1
					_, werr = io.WriteString(s.stdout, "--- summary\n")
				}
			case answer.Stepped:
				if !e.Changed && e.Step > 0 {
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
func readWhole(ctx context.Context, spec summarySpec) (*whole, error) {
	w := &whole{}
	if spec.Path == "" {
		doc, err := new(ingest.Reader).Read(ctx, "standard input", spec.Text)
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
		doc, err := new(ingest.Reader).Read(ctx, name, data)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", spec.Path, err)
		}
		doc.Root, doc.ID = root.Name, root.Name+"/"+name
		w.add(doc, ingest.Split(doc, ingest.SplitOptions{}))
		return w, nil
	}
	syncer := &ingest.Syncer{Sink: w}
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

func (w *whole) Known(context.Context, ingest.Root) (map[string]string, error) { return nil, nil }

func (w *whole) Replace(_ context.Context, doc *ingest.Document, chunks []ingest.Chunk) error {
	w.add(doc, chunks)
	return nil
}

func (w *whole) Rename(_ context.Context, from string, _ *ingest.Document) error {
	return fmt.Errorf("renaming %s: nothing was read before", from)
}

func (w *whole) Delete(context.Context, string) error { return nil }
