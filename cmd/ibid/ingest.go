package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/sync/errgroup"

	"ibid/ingest"
	"ibid/retrieve"
)

type ingestCmd struct {
	Folders []string `arg:"" name:"folder" help:"Folders to read, with all that is below them."`
	Watch   bool     `help:"Go on until Ctrl-C, and read what changes in the folders as it does."`
	Force   bool     `help:"Read every file anew, also those that have not changed since."`
	JSON    bool     `help:"Print a JSON object a file, then one with the totals." name:"json"`
	syncConfig
	readConfig
	storeConfig
}

// Help is what 'ibid ingest --help' says beside the flags.
func (ingestCmd) Help() string {
	return "What is read: " + ingest.Formats() + ". What is left out without a word: " + ingest.LeftOut + ". Every other file is named as skipped, or as failed, with the reason; --json prints a line for each file."
}

// Run reads the folders one after the other. One bad document never stops the rest.
func (c *ingestCmd) Run(ctx context.Context, s surroundings) (err error) {
	paths, err := checkFolders(c.Folders)
	if err != nil {
		return err
	}
	if err := c.syncConfig.check(); err != nil {
		return err
	}
	reader, err := c.reader(c.Data)
	if err != nil {
		return err
	}
	lib, err := openLibrary(ctx, c.storeConfig, retrieve.Options{}, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lib.close()) }()
	lib.reader = reader

	report := c.reporter(s)
	folders := c.folders(lib, paths, c.Watch)
	var total tally
	for _, f := range folders {
		before := total.Seen
		if err := report.begin(f.path); err != nil {
			return err
		}
		f.syncer.Force = c.Force
		f.waiting = func(root, worker string, since time.Time) {
			out := s.stderr
			if bar, ok := report.(*barReporter); ok {
				out = bar.progress // above the bar
			}
			fmt.Fprintf(out, "ibid: %s is being read by %s since %s: its changes appear as they are stored; this goes on when that has ended\n",
				printable(root), printable(retrieve.WhoIs(worker)), since.Format(time.TimeOnly))
		}
		err := f.sync(ctx, func(ch ingest.Change, _ bool) error {
			total.add(ch)
			return report.change(ch)
		})
		f.syncer.Force = false
		if err != nil {
			err = errors.Join(err, report.close())
			if errors.Is(err, context.Canceled) {
				fmt.Fprintf(s.stderr, "ibid: stopped after %s: the next run goes on there\n", counted(total.Seen, "file"))
			}
			return err
		}
		if total.Seen == before {
			fmt.Fprintf(s.stderr, "ibid: there is no file to read in %s: Ibid reads %s, and leaves out %s\n", f.path, ingest.Formats(), ingest.LeftOut)
		}
	}
	if err := report.total(total); err != nil {
		return err
	}
	if total.Skipped > 0 && !c.JSON {
		fmt.Fprintf(s.stderr, "ibid: the reason why a file was skipped stands behind its name; 'ibid ingest --help' says what is read\n")
	}
	if c.Watch {
		return c.watch(ctx, folders, s)
	}
	if total.Failed > 0 {
		return &exitError{code: exitPartial}
	}
	return nil
}

// watch follows the folders until ctx is done, and prints what is new in them.
func (c *ingestCmd) watch(ctx context.Context, folders []*folder, s surroundings) error {
	var report reporter = plainReporter{s.stdout}
	if c.JSON {
		report = jsonReporter{json.NewEncoder(s.stdout)}
	}
	fmt.Fprintln(s.stderr, "ibid: watching: Ctrl-C ends it")
	var printing sync.Mutex
	following, ctx := errgroup.WithContext(ctx)
	for _, f := range folders {
		if err := f.watcher.Trouble(); err != nil {
			fmt.Fprintf(s.stderr, "ibid: %s\n", printable(err.Error()))
		}
		following.Go(func() error {
			return f.follow(ctx, func() error {
				var failed error // to print
				err := f.sync(ctx, func(ch ingest.Change, isNew bool) error {
					if !isNew {
						return nil
					}
					printing.Lock()
					defer printing.Unlock()
					failed = report.change(ch)
					return failed
				})
				if err != nil && failed == nil && ctx.Err() == nil {
					printing.Lock()
					defer printing.Unlock()
					fmt.Fprintf(s.stderr, "ibid: %s\n", printable(err.Error()))
				}
				return failed
			})
		})
	}
	return following.Wait()
}

// A tally counts what a sync did. Seen is the sum of all but Removed.
type tally struct {
	Seen      int `json:"seen"`
	Added     int `json:"added"`
	Updated   int `json:"updated"`
	Unchanged int `json:"unchanged"`
	Renamed   int `json:"renamed"`
	Skipped   int `json:"skipped"`
	Failed    int `json:"failed"`
	Removed   int `json:"removed"`
	Chunks    int `json:"chunks"`
	Pages     int `json:"pages"`
}

func (t *tally) add(c ingest.Change) {
	if c.Action != ingest.Removed {
		t.Seen++
	}
	t.Chunks += c.Chunks
	t.Pages += c.Pages
	switch c.Action {
	case ingest.Added:
		t.Added++
	case ingest.Updated:
		t.Updated++
	case ingest.Unchanged:
		t.Unchanged++
	case ingest.Renamed:
		t.Renamed++
	case ingest.Skipped:
		t.Skipped++
	case ingest.Failed:
		t.Failed++
	case ingest.Removed:
		t.Removed++
	}
}

func (t tally) String() string {
	return fmt.Sprintf("%s: %d added, %d updated, %d unchanged, %d renamed, %d skipped, %d failed; %d removed",
		counted(t.Seen, "file"), t.Added, t.Updated, t.Unchanged, t.Renamed, t.Skipped, t.Failed, t.Removed)
}

// A reporter shows an ingest as it goes.
type reporter interface {
	begin(folder string) error
	change(ingest.Change) error
	total(tally) error
	close() error // when no total comes
}

func (c *ingestCmd) reporter(s surroundings) reporter {
	switch {
	case c.JSON:
		return jsonReporter{json.NewEncoder(s.stdout)}
	case terminalWidth(s.stderr) > 0:
		return &barReporter{plain: plainReporter{s.stdout}, out: s.stderr}
	}
	return plainReporter{s.stdout}
}

type jsonReporter struct{ *json.Encoder }

func (r jsonReporter) begin(string) error           { return nil }
func (r jsonReporter) change(c ingest.Change) error { return r.Encode(c) }
func (r jsonReporter) total(t tally) error {
	return r.Encode(struct {
		Total tally `json:"total"`
	}{t})
}
func (r jsonReporter) close() error { return nil }

// plainReporter prints a line for every file that is not as it was.
type plainReporter struct{ out io.Writer }

func (r plainReporter) begin(string) error { return nil }

func (r plainReporter) change(c ingest.Change) error {
	if c.Action == ingest.Unchanged {
		return nil
	}
	_, err := io.WriteString(r.out, changeLine(c))
	return err
}

func changeLine(c ingest.Change) string {
	line := fmt.Sprintf("%-9s %s", c.Action, c.Document)
	switch {
	case c.Reason != "":
		line += ": " + c.Reason
	case c.From != "":
		line += " (was " + c.From + ")"
	case c.Pages > 0:
		line += fmt.Sprintf(" (%s, %s)", counted(c.Pages, "page"), counted(c.Chunks, "chunk"))
	case c.Chunks > 0:
		line += fmt.Sprintf(" (%s)", counted(c.Chunks, "chunk"))
	}
	return printable(line) + "\n"
}

// counted is a number of things, with the word for one of them.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

func (r plainReporter) total(t tally) error {
	_, err := fmt.Fprintln(r.out, t)
	return err
}
func (r plainReporter) close() error { return nil }

// barReporter shows a progress bar, and above it the files that failed or were
// skipped; the rest is in the bar.
type barReporter struct {
	plain    plainReporter
	out      io.Writer
	progress *mpb.Progress
	bar      *mpb.Bar
}

// begin shows a bar before anything is known of the folder: the first file may
// be a long one.
func (r *barReporter) begin(folder string) error {
	if err := r.close(); err != nil {
		return err
	}
	begun := time.Now()
	r.progress = mpb.New(mpb.WithOutput(r.out), mpb.WithWidth(48))
	r.bar = r.progress.AddBar(0,
		mpb.PrependDecorators(decor.Name(printable(filepath.Base(folder))+" "), decor.Any(func(s decor.Statistics) string {
			if s.Total == 0 {
				return "reading"
			}
			return fmt.Sprintf("%d of %d files", s.Current, s.Total)
		})),
		mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string {
			if s.Current == 0 {
				return ""
			}
			took := time.Since(begun)
			left := took / time.Duration(s.Current) * time.Duration(s.Total-s.Current)
			return fmt.Sprintf("%.1f/s, %s left", float64(s.Current)/took.Seconds(), left.Round(time.Second))
		})))
	return nil
}

func (r *barReporter) change(c ingest.Change) error {
	if c.Action == ingest.Failed || c.Action == ingest.Skipped {
		if _, err := io.WriteString(r.progress, changeLine(c)); err != nil {
			return err
		}
	}
	r.bar.SetTotal(int64(c.Total), false)
	r.bar.SetCurrent(int64(c.Done))
	return nil
}

func (r *barReporter) total(t tally) error {
	return errors.Join(r.close(), r.plain.total(t))
}

func (r *barReporter) close() error {
	if r.bar == nil {
		return nil
	}
	r.bar.Abort(r.bar.Current() == 0) // where the ingest was interrupted it is not full
	r.progress.Wait()
	r.bar, r.progress = nil, nil
	return nil
}
