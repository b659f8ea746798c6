package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"

	"ibid/answer"
	"ibid/answer/replay"
	"ibid/cite"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/state"
)

type summarizeCmd struct {
	Input    string `arg:"" optional:"" name:"file" help:"File or folder to summarize, ingested or not; - for text on standard input."`
	Strategy string `help:"How the parts become a summary: auto, refine, map-reduce or stuff." default:"auto" placeholder:"NAME"`
	MaxWords int    `help:"Approximate length of the summary in words; 0: the model decides." default:"0" placeholder:"N"`
	Parallel int    `help:"Concurrent calls to the model." default:"4" placeholder:"N"`
	Steps    bool   `help:"Also show the result of each call, after the summary." name:"intermediate-steps"`
	JSON     bool   `help:"Print the whole summary as one JSON object." name:"json"`
	Source   string `help:"What counts as one source: ${enum}." enum:"document,page,section,url" default:"section" placeholder:"KIND"`
	Resume   bool   `help:"Resume an interrupted run: the last one, or the one whose id is given as the argument."`
	modelConfig
	readConfig
	storeConfig
}

// A summarySpec is everything that decides on a summary, so that resuming it needs none
// of the flags again. Keys and timeouts are those of the command that resumes it.
type summarySpec struct {
	Path        string // absolute
	Text        []byte // of standard input
	Strategy    string
	Words       int
	modelConfig // its folder of prompts is absolute
	BaseURL     string
	Chosen      bool // on the page, so that a key in the environment is for another endpoint
}

type summary struct {
	cite.Answer
	Run string `json:"run,omitempty"`
}

const summaryRun = "ibid summarize"

// Run summarizes a file, a folder or standard input.
func (c *summarizeCmd) Run(ctx context.Context, s surroundings) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	store, err := openStore(ctx, c.placeConfig, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	var spec summarySpec
	var run *replay.Recorder
	if c.Resume {
		run, err = c.resume(ctx, store, &spec)
	} else {
		spec, err = c.spec(ctx, store, s)
	}
	if err != nil {
		return err
	}
	input, err := c.readInput(ctx, spec, s)
	if err != nil {
		return err
	}
	answerer, err := c.answerer(spec, s)
	if err != nil {
		return err
	}
	if run == nil {
		if run, err = replay.Begin(ctx, store.Ledger(), summaryRun, spec); err != nil && ctx.Err() == nil {
			s.say("if this is interrupted, it cannot be resumed: %v", err)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx) // when another process has taken over the run
	if err := run.Hold(ctx, cancel); err != nil {
		return err
	}
	if run != nil {
		s.say("run %s", run.ID)
	}
	events := cite.Number(answer.Watch(run, answerer.Summarize(ctx, answer.Summary{
		Passages: input.passages, Strategy: spec.Strategy, Words: spec.Words, Recorder: run,
	})), citeConfig{Source: c.Source}.citing())
	if !c.JSON {
		events = c.show(events, len(input.passages), s)
	}
	a, err := cite.Collect(events)
	if err == nil {
		err = c.print(s, a, run)
	}
	if err := finishRun(ctx, run, err, s); err != nil {
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

func (c *summarizeCmd) check() error {
	if c.Input == "" && !c.Resume {
		return usageError("name what to summarize, a file, a folder or - for standard input, or --resume the last interrupted run")
	}
	if c.Parallel < 1 {
		return usageError("--parallel %d: give the number of concurrent calls, 1 or more", c.Parallel)
	}
	return nil
}

// answerer returns the answerer with the spec's model.
func (c *summarizeCmd) answerer(spec summarySpec, s surroundings) (*answer.Answerer, error) {
	e := c.endpointConfig
	if e.BaseURL = spec.BaseURL; spec.Chosen {
		e.NoVariable, e.APIKeyFile = true, storedKey(c.Data, e.BaseURL)
	}
	answerer, err := newAnswerer(spec.modelConfig, e, s.getenv)
	if err == nil {
		answerer.Parallel = c.Parallel
	}
	return answerer, err
}

// finishRun deletes the record of a finished run. Of an unfinished one it prints
// how to resume it.
func finishRun(ctx context.Context, run *replay.Recorder, err error, s surroundings) error {
	if cause := context.Cause(ctx); retrieve.IsLost(cause) {
		err = cause
	}
	lost := run.Lost(ctx)
	kept, failed := run.Settle(ctx, err)
	if kept && !lost {
		s.say("'%s --resume %s' resumes after the last completed call", summaryRun, run.ID)
	}
	return errors.Join(err, failed)
}

// resume finds the record of an id, or the last interrupted one for "".
func (c *summarizeCmd) resume(ctx context.Context, store *state.Store, spec any) (*replay.Recorder, error) {
	run, err := replay.Resume(ctx, store.Ledger(), summaryRun, c.Input, spec)
	switch other := (*replay.KindError)(nil); {
	case errors.As(err, &other):
		return nil, usageError("%w", err)
	case errors.Is(err, retrieve.ErrNotFound):
		which := "run"
		if c.Input != "" {
			which = fmt.Sprintf("run %q", c.Input)
		}
		return nil, fmt.Errorf("there is no unfinished %s of '%s' in %s: it has ended, or began more than %d days ago",
			which, summaryRun, c.placeConfig, int(retrieve.MaxRunAge.Hours()/24))
	}
	return run, err
}

func (c *summarizeCmd) print(s surroundings, a cite.Answer, run *replay.Recorder) error {
	if c.JSON {
		whole := summary{Answer: a}
		if run != nil {
			whole.Run = run.ID
		}
		return json.NewEncoder(s.stdout).Encode(whole)
	}
	if err := showSources(s.stdout, s.stderr, a); err != nil || !c.Steps {
		return err
	}
	_, err := io.WriteString(s.stdout, printable(stepsText(a)))
	return err
}

func (c *summarizeCmd) spec(ctx context.Context, store *state.Store, s surroundings) (summarySpec, error) {
	spec := summarySpec{Strategy: c.Strategy, Words: c.MaxWords}
	model, endpoint, err := s.chooseFrom(ctx, store, c.Data, c.modelConfig, c.endpointConfig)
	if err == nil && model.Model == "" {
		err = usageError("a summary needs a model: select one with --model (and --base-url, if it is not OpenAI's), or on the page")
	}
	if err == nil && model.Prompts != "" {
		model.Prompts, err = filepath.Abs(model.Prompts)
	}
	if err != nil {
		return spec, err
	}
	spec.modelConfig, spec.BaseURL, spec.Chosen = model, endpoint.BaseURL, endpoint.NoVariable
	if c.Input == "-" {
		spec.Text, err = io.ReadAll(io.LimitReader(s.stdin, ingest.DefaultMaxBytes+1))
	} else {
		spec.Path, err = filepath.Abs(c.Input)
	}
	if err != nil {
		return spec, fmt.Errorf("reading %s: %w", c.Input, err)
	}
	return spec, nil
}

func (c *summarizeCmd) show(events iter.Seq2[answer.Event, error], passages int, s surroundings) iter.Seq2[answer.Event, error] {
	if !isTerminal(s.stderr) {
		return show(events, s)
	}
	reading := newMeter(s.stderr, "passages", passages)
	s.stderr = reading // messages go above the bar
	return show(func(yield func(answer.Event, error) bool) {
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

// An inputText is a text with all its passages in order. As an [ingest.Sink] it
// has no documents at first, and adds those of a folder.
type inputText struct {
	passages []retrieve.Passage
	failed   bool // a file could not be read
}

func (c *summarizeCmd) readInput(ctx context.Context, spec summarySpec, s surroundings) (*inputText, error) {
	reader := c.reader(c.Data)
	defer reader.Close()
	w := &inputText{}
	var err error
	switch info, serr := os.Stat(spec.Path); {
	case spec.Path == "":
		err = w.readBytes(ctx, reader, "standard input", "", spec.Text)
	case serr != nil:
		return nil, fmt.Errorf("looking at what to summarize: %w", serr)
	case info.IsDir():
		err = w.readFolder(ctx, reader, spec.Path, s)
	case !info.Mode().IsRegular():
		return nil, usageError("%s is neither a file nor a folder", spec.Path)
	case info.Size() > ingest.DefaultMaxBytes:
		return nil, fmt.Errorf("reading %s: it is larger than %d MB: split it", spec.Path, ingest.DefaultMaxBytes>>20)
	default:
		var data []byte
		if data, err = os.ReadFile(spec.Path); err == nil {
			err = w.readBytes(ctx, reader, filepath.Base(spec.Path), filepath.Base(filepath.Dir(spec.Path)), data)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", cmp.Or(spec.Path, "standard input as text"), err)
	}
	if len(w.passages) == 0 {
		return nil, fmt.Errorf("there is no text to summarize in %s: Ibid reads %s", spec.Path, ingest.Formats())
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

func (w *inputText) Known(context.Context, ingest.Root) (map[string]ingest.Stored, error) {
	return nil, nil
}

// Replace adds a document, unless it is a copy of one.
func (w *inputText) Replace(_ context.Context, doc *ingest.Document, chunks []ingest.Chunk) error {
	if slices.ContainsFunc(w.passages, func(p retrieve.Passage) bool { return p.Digest == doc.Digest && p.Format == doc.Format }) {
		return nil
	}
	w.passages = append(w.passages, retrieve.Passages(doc, chunks)...)
	return nil
}

func (w *inputText) Rename(_ context.Context, from string, _ *ingest.Document) error {
	return fmt.Errorf("renaming %s: it is not known", from)
}

func (w *inputText) Delete(context.Context, string) error { return nil }
