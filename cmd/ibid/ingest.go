package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"ibid/cite/rewrite"
	"ibid/ingest"
	"ibid/ingest/site"
	"ibid/retrieve"
)

type ingestCmd struct {
	Folders []string `arg:"" name:"folder" help:"Folders to read, with their subfolders, and addresses of web sites and pages."`
	Force   bool     `help:"Read every file again, even if it has not changed."`
	Encode  bool     `help:"After reading, encode all chunks instead of leaving this to the server." noenv:""`
	JSON    bool     `help:"Print a JSON object per file, then one with the totals." name:"json"`
	syncConfig
	crawlConfig
	encodeConfig
	readConfig
	storeConfig
}

// Help is what 'ibid ingest --help' says in addition to the flags.
func (ingestCmd) Help() string {
	return "Ibid reads " + ingest.Formats() + ". It silently ignores " + ingest.LeftOut +
		". Every other file is listed as skipped or failed, with the reason; --json prints a line for each file or page."
}

// Run reads the folders in turn. A bad document does not stop it.
func (c *ingestCmd) Run(ctx context.Context, s surroundings) (err error) {
	paths, err := c.checkFolders(c.Folders, c.Data)
	if err != nil {
		return err
	}
	if err := errors.Join(c.syncConfig.check(), c.crawlConfig.check()); err != nil {
		return err
	}
	reader := c.reader(c.Data)
	lib, err := openLibrary(ctx, c.storeConfig, retrieve.Options{}, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lib.close()) }()
	lib.reader = reader
	if c.Encode && lib.Encoder() == nil {
		return usageError("--encode: there is no encoder in the data directory: run 'ibid setup english' first")
	}

	folders := c.folders(lib, paths, c.crawlConfig, false)
	report := &ingestReport{out: s.stdout}
	if c.JSON {
		report.json = json.NewEncoder(s.stdout)
	}
	total, err := c.readOnce(ctx, folders, report, s)
	if err != nil {
		return err
	}
	if total.Skipped > 0 && !c.JSON {
		s.printMessage("the reason follows the name of each skipped file; 'ibid ingest --help' lists the formats")
	}
	if c.Encode {
		work := retrieve.Encoding{Workers: c.workers(), Progress: newProgress(s.stderr, "chunks encoded")}
		if err := lib.Encode(ctx, work); err != nil {
			return fmt.Errorf("encoding: %w", err)
		}
	}
	if total.Failed > 0 {
		return &exitError{code: exitPartial}
	}
	return nil
}

func (c *ingestCmd) readOnce(ctx context.Context, folders []*folder, report *ingestReport, s surroundings) (total tally, err error) {
	for _, f := range folders {
		before := total.Seen
		messages := report.begin(f.path, s.stderr)
		f.syncer.Force = c.Force
		f.onWait = func(root, worker string, since time.Time) {
			fmt.Fprintf(messages, "ibid: %s has been reading %s since %s: waiting for it to finish; its changes appear as they are stored\n",
				printable(retrieve.DescribeWorker(worker)), printable(root), since.Format(time.TimeOnly))
		}
		f.onPage = func(done, total int) {
			if report.meter != nil {
				report.meter.update(done, total)
			}
		}
		var unsaid error
		f.onNotice = func(n site.Notice) {
			fmt.Fprintf(messages, "ibid: %s: %s\n", printable(f.path), printable(n.Detail))
			unsaid = errors.Join(unsaid, report.notice(f.path, n))
		}
		err := f.sync(ctx, func(ch ingest.Change, _ bool) error {
			total.add(ch)
			return report.change(ch)
		})
		err = errors.Join(err, unsaid)
		f.syncer.Force = false
		if report.meter != nil {
			report.meter.clear()
			report.meter = nil
		}
		if err != nil {
			if errors.Is(err, context.Canceled) {
				s.printMessage("stopped after %s; the next run resumes there", countOf(total.Seen, "file"))
			}
			return total, err
		}
		if total.Seen == before {
			fmt.Fprintf(s.stderr, "ibid: there is no file to read in %s: Ibid reads %s, and ignores %s\n",
				f.path, ingest.Formats(), ingest.LeftOut)
		}
	}
	return total, report.total(total)
}

// A tally counts the changes of a sync. Seen is the sum of all but Removed.
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
	*map[ingest.Action]*int{
		ingest.Added: &t.Added, ingest.Updated: &t.Updated, ingest.Unchanged: &t.Unchanged, ingest.Renamed: &t.Renamed,
		ingest.Skipped: &t.Skipped, ingest.Failed: &t.Failed, ingest.Removed: &t.Removed,
	}[c.Action]++
}

func (t tally) String() string {
	return fmt.Sprintf("%s: %d added, %d updated, %d unchanged, %d renamed, %d skipped, %d failed; %d removed",
		countOf(t.Seen, "file"), t.Added, t.Updated, t.Unchanged, t.Renamed, t.Skipped, t.Failed, t.Removed)
}

// An ingestReport prints the progress of an ingest: as JSON, as one line per changed file, or
// on a terminal as a bar below the list of files that could not be read.
type ingestReport struct {
	out   io.Writer
	json  *json.Encoder // nil for people
	meter *meter        // nil except while a folder is read on a terminal
}

// begin prepares for a folder and returns the writer for messages. The bar appears at once,
// since the first file may take long.
func (r *ingestReport) begin(folder string, stderr io.Writer) (messages io.Writer) {
	if r.json != nil || terminalWidth(stderr) == 0 {
		return stderr
	}
	r.meter = newMeter(stderr, "files of "+printable(filepath.Base(folder)), 0)
	return r.meter
}

func (r *ingestReport) change(c ingest.Change) error {
	if r.json != nil {
		return r.json.Encode(c)
	}
	out, listed := r.out, c.Action != ingest.Unchanged
	if r.meter != nil {
		r.meter.update(c.Done, c.Total)
		out, listed = r.meter, c.Action == ingest.Failed || c.Action == ingest.Skipped
	}
	if !listed {
		return nil
	}
	_, err := io.WriteString(out, changeLine(c))
	return err
}

// notice reports a part of a site that was left out, to people as a message.
func (r *ingestReport) notice(address string, n site.Notice) error {
	if r.json == nil {
		return nil
	}
	type notice struct {
		Site string `json:"site"`
		site.Notice
	}
	return r.json.Encode(map[string]notice{"notice": {address, n}})
}

func (r *ingestReport) total(t tally) error {
	if r.json != nil {
		return r.json.Encode(map[string]tally{"total": t})
	}
	_, err := fmt.Fprintln(r.out, t)
	return err
}

func changeLine(c ingest.Change) string {
	line := fmt.Sprintf("%-9s %s", c.Action, rewrite.VisibleName(c.Document))
	switch {
	case c.Reason != "":
		line += ": " + c.Reason
	case c.From != "":
		line += " (was " + rewrite.VisibleName(c.From) + ")"
	case c.CopyOf != "":
		line += " (a copy of " + rewrite.VisibleName(c.Root+"/"+c.CopyOf) + ")"
	case c.Pages > 0:
		line += fmt.Sprintf(" (%s, %s)", countOf(c.Pages, "page"), countOf(c.Chunks, "chunk"))
	case c.Chunks > 0:
		line += fmt.Sprintf(" (%s)", countOf(c.Chunks, "chunk"))
	}
	return printable(line) + "\n"
}

func countOf(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
