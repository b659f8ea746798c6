package main

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"ibid/ingest"
	"ibid/retrieve"
)

// syncProgress is the progress of the sync of a server's folders.
type syncProgress struct {
	onChange func(ingest.Change) // called for every file that is new, or read for the first time

	mu      sync.Mutex
	folders []folderProgress
	ready   bool // after the first sync of all
}

type folderProgress struct {
	done, total int
	trouble     []ingest.Change // the files that were skipped or failed
}

func (p *syncProgress) indexing() (done, total int, ready bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.folders {
		done, total = done+f.done, total+f.total
	}
	return done, total, p.ready
}

func (p *syncProgress) troubles() (all []ingest.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.folders {
		all = append(all, f.trouble...)
	}
	return all
}

func (p *syncProgress) set(i int, f folderProgress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.folders[i] = f
}

// sync brings the folders up to date one after the other, then keeps those that
// are watched up to date until ctx is done.
func (p *syncProgress) sync(ctx context.Context, folders []*folder, logger *slog.Logger) {
	p.mu.Lock()
	p.folders = make([]folderProgress, len(folders))
	p.mu.Unlock()
	for i, f := range folders {
		p.syncFolder(ctx, i, f, logger, true)
	}
	if ctx.Err() == nil {
		p.mu.Lock()
		p.ready = true
		p.mu.Unlock()
	}
	var watching sync.WaitGroup
	for i, f := range folders {
		if f.watcher == nil {
			continue
		}
		if err := f.watcher.Trouble(); err != nil {
			logger.Warn("folder not watched", "folder", f.path, "error", err)
		}
		watching.Go(func() {
			err := f.watch(ctx, func() error { p.syncFolder(ctx, i, f, logger, false); return nil })
			if err != nil {
				logger.Error("folder no longer watched", "folder", f.path, "error", err)
			}
		})
	}
	watching.Wait()
}

// catchUpFiles is after how many files the index catches up with the store, so
// that the next question does not have to wait for that.
const catchUpFiles = 256

// syncFolder brings one folder up to date. If it cannot be read, that is logged.
func (p *syncProgress) syncFolder(ctx context.Context, i int, f *folder, logger *slog.Logger, first bool) {
	var all, news tally
	var trouble []ingest.Change
	start := time.Now()
	f.onWait = func(root, worker string, since time.Time) {
		logger.Info("another process is reading the folder: its changes appear as they are stored",
			"root", root, "by", retrieve.WhoIs(worker), "since", since)
	}
	err := f.sync(ctx, func(ch ingest.Change, isNew bool) error {
		all.add(ch)
		if isNew {
			news.add(ch)
		}
		if isNew || first {
			p.onChange(ch)
		}
		if ch.Action == ingest.Failed || ch.Action == ingest.Skipped {
			trouble = append(trouble, ch)
		}
		if ch.Action == ingest.Failed && isNew {
			logger.Warn("document not read", "document", ch.Document, "reason", ch.Reason)
		}
		if ch.Done%catchUpFiles == 0 {
			if _, err := f.lib.Stats(ctx, nil); err != nil {
				return err
			}
		}
		if first {
			p.set(i, folderProgress{ch.Done, ch.Total, slices.Clip(trouble)})
		}
		return nil
	})
	if err == nil {
		_, err = f.lib.Stats(ctx, nil)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		logger.Error("folder not read", "folder", f.path, "error", err)
		return
	}
	p.set(i, folderProgress{all.Seen, all.Seen, trouble})
	took := time.Since(start).Round(time.Millisecond)
	if first {
		more := []any{"folder", f.path, "files", all.String(), "took", took}
		if all.Skipped+all.Failed > 0 {
			more = append(more, "why", "the page /documents lists the files that couldn't be read, with the reason; 'ibid ingest --help' lists what is read")
		}
		logger.Info("folder read", more...)
	} else if news != (tally{}) {
		logger.Info("folder read again", "folder", f.path, "files", news.String(), "took", took)
	}
}
