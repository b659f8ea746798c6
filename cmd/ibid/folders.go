package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ibid/ingest"
	"ibid/ingest/site"
	"ibid/retrieve"
	"ibid/web"
)

// A folder is a folder or web site that is synced into the store.
type folder struct {
	lib              *openedLibrary
	path, collection string
	syncer           *ingest.Syncer
	watcher          *ingest.Watcher   // nil unless the folder is watched
	reported         map[string]string // reasons why files were skipped or failed, by path

	crawl     crawlConfig   // of a site
	attempted time.Time     // last time the site was read
	reread    chan struct{} // asks for the site to be read before it is due
	onPage    func(done, total int)
	onNotice  func(site.Notice) // for a site

	// onWait is called when another process is already syncing the root.
	onWait func(root, worker string, since time.Time)
}

// folders returns the folders to sync and, if watch is set, watches them.
func (c syncConfig) folders(lib *openedLibrary, paths []string, crawl crawlConfig, watch bool) (folders []*folder) {
	for _, path := range paths {
		f := c.folder(lib, path, crawl)
		if watch && !f.isSite() {
			f.watcher = &ingest.Watcher{Syncer: f.syncer, Folder: os.DirFS(path)}
		}
		folders = append(folders, f)
	}
	return folders
}

func (c syncConfig) folder(lib *openedLibrary, path string, crawl crawlConfig) *folder {
	return &folder{
		lib: lib, path: path, collection: c.Collection, reported: make(map[string]string), crawl: crawl,
		syncer: &ingest.Syncer{Sink: lib.Index, Reader: lib.reader, Writers: lib.writers(), Include: c.Include, Exclude: c.Exclude},
		onWait: func(string, string, time.Time) {}, onNotice: func(site.Notice) {},
	}
}

// checkFolders makes the folders' paths absolute. It refuses paths that are not folders and
// addresses that are not fetched.
func (c crawlConfig) checkFolders(folders []string, data string) ([]string, error) {
	var paths []string
	for _, f := range folders {
		var path string
		info, err := os.Stat(f)
		switch {
		case strings.Contains(f, "://"):
			if path, err = c.address(f, data); err != nil {
				return nil, err
			}
		case errors.Is(err, fs.ErrNotExist):
			return nil, usageError("there is no folder %s", f)
		case err == nil && !info.IsDir():
			return nil, usageError("%s is a file, not a folder: give the folder that contains it", f)
		case err == nil:
			path, err = filepath.Abs(f)
		}
		if err != nil {
			return nil, fmt.Errorf("checking the folder %s: %w", f, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// sync brings the store up to date with the folder, after waiting for any other process that
// syncs it. It calls each for every file; isNew reports whether the outcome differs from the
// last sync.
func (f *folder) sync(ctx context.Context, each func(c ingest.Change, isNew bool) error) (err error) {
	files, closer, err := f.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	if f.syncer.Reader != nil {
		defer f.syncer.Reader.Close() // until the next sync
	}
	root, err := f.lib.AddRoot(ctx, f.path, f.collection)
	if err != nil {
		return fmt.Errorf("adding the folder %s: %w", f.path, err)
	}
	ctx, release, err := claimRoot(ctx, f.lib.State.Ledger(), root.Name, f.onWait)
	if err != nil {
		return err
	}
	defer func() {
		if cause := context.Cause(ctx); retrieve.IsLost(cause) {
			err = fmt.Errorf("another process took over the sync of %s, because this one was suspended for too long: %w", root.Name, cause)
		}
		release()
	}()
	if s, ok := files.(*site.Site); ok {
		if err := f.fetch(ctx, s, root); err != nil {
			return err
		}
	}
	for change, err := range f.syncer.Sync(ctx, root, files) {
		if err != nil {
			return fmt.Errorf("reading the folder %s: %w", f.path, err)
		}
		if err := each(change, f.isNew(change)); err != nil {
			return err
		}
	}
	return f.lib.followIndex(ctx) // so that the next question does not wait for it
}

// isNew records the outcome for a file, and reports whether it is new.
func (f *folder) isNew(c ingest.Change) bool {
	before, known := f.reported[c.Path]
	if c.Action == ingest.Skipped || c.Action == ingest.Failed {
		f.reported[c.Path] = c.Reason
		return !known || before != c.Reason
	}
	delete(f.reported, c.Path)
	return c.Action != ingest.Unchanged
}

// claimRoot claims the right to sync a root. Only one process using a store may hold it, since
// two would do all the work twice. The claim is a job in the ledger, so it expires when its
// process dies. While another process holds it, claimRoot waits, and calls onWait once. The
// returned context ends when another process takes over; release ends the claim.
func claimRoot(ctx context.Context, l retrieve.Ledger, root string, onWait func(root, worker string, since time.Time)) (
	_ context.Context, release func(), err error) {
	job := "sync of " + root
	claimed, release, err := retrieve.HoldJob(ctx, ctx, l, job, "sync", func(held *retrieve.HeldError) {
		if j, err := l.Job(ctx, job); err == nil {
			onWait(root, held.Worker, j.Started)
		}
	})
	if err != nil {
		return nil, nil, fmt.Errorf("claiming %s for reading: %w", root, err)
	}
	return claimed, release, nil
}

// syncProgress is the progress of the sync of a server's folders and sites.
type syncProgress struct {
	onEnd    func(root string, all tally, err error) // called after a folder was read
	onChange func(ingest.Change)                     // called for every file that is new or read for the first time

	mu       sync.Mutex
	folders  map[string]folderProgress // by path
	sites    map[string]web.SiteState  // by address
	followed map[string]*folder        // sites being read, by address
	ready    bool                      // every folder was synced once
}

type folderProgress struct {
	done, total int
	trouble     []ingest.Change // the files that were skipped or failed
}

func (p *syncProgress) indexing() web.Indexing {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := web.Indexing{Ready: p.ready}
	for _, f := range p.folders {
		i.Done, i.Total = i.Done+f.done, i.Total+f.total
	}
	return i
}

func (p *syncProgress) listFailures() (all []ingest.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(p.folders)) {
		all = append(all, p.folders[path].trouble...)
	}
	return all
}

func (p *syncProgress) set(path string, f folderProgress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.folders[path] = f
}

// clearFailures forgets the failures of a file of a folder, and of the files packed in it.
func (p *syncProgress) clearFailures(path, document string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.folders[path]
	f.trouble = slices.DeleteFunc(slices.Clone(f.trouble), func(c ingest.Change) bool {
		return c.Document == document || strings.HasPrefix(c.Document, document+"/")
	})
	p.folders[path] = f
}

// sync syncs the folders in turn, then keeps the watched ones up to date until ctx is done.
func (p *syncProgress) sync(ctx context.Context, folders []*folder, logger *slog.Logger) {
	for _, f := range folders {
		_, _ = p.syncFolder(ctx, f, logger, true) // it logs errors
	}
	p.mu.Lock()
	p.ready = ctx.Err() == nil
	p.mu.Unlock()
	var watching sync.WaitGroup
	for _, f := range folders {
		if f.watcher == nil {
			continue
		}
		watching.Go(func() {
			for f.watcher.Wait(ctx) == nil {
				_, _ = p.syncFolder(ctx, f, logger, false)
			}
		})
	}
	watching.Wait()
}

// syncFolder syncs one folder and counts its files. It also logs errors.
func (p *syncProgress) syncFolder(ctx context.Context, f *folder, logger *slog.Logger, first bool) (all tally, err error) {
	var news tally
	var trouble []ingest.Change
	var root string
	defer func() {
		if ctx.Err() == nil && (first || err != nil || news != (tally{})) {
			p.onEnd(root, all, err)
		}
	}()
	start := time.Now()
	f.onWait = func(root, worker string, since time.Time) {
		logger.Info("another process is reading the folder; its changes appear as they are stored",
			"root", root, "by", retrieve.DescribeWorker(worker), "since", since)
	}
	err = f.sync(ctx, func(ch ingest.Change, isNew bool) error {
		root = ch.Root
		all.add(ch)
		if isNew || first {
			news.add(ch)
			p.onChange(ch)
		}
		if ch.Action == ingest.Failed || ch.Action == ingest.Skipped {
			trouble = append(trouble, ch)
		}
		if ch.Action == ingest.Failed && isNew {
			logger.Warn("a document could not be read", "document", ch.Document, "reason", ch.Reason)
		}
		if first {
			p.set(f.path, folderProgress{ch.Done, ch.Total, slices.Clip(trouble)})
		}
		if ch.Done%256 != 0 {
			return nil
		}
		_, err := f.lib.Stats(ctx, nil) // so that the next question does not wait for the index
		return err
	})
	if err == nil {
		_, err = f.lib.Stats(ctx, nil)
	}
	if err = cmp.Or(ctx.Err(), err); err != nil {
		if ctx.Err() == nil {
			logger.Error("a folder could not be read", "folder", f.path, "error", err)
		}
		return all, err
	}
	p.set(f.path, folderProgress{all.Seen, all.Seen, trouble})
	if first || news != (tally{}) {
		logger = logger.With("folder", f.path, "files", news.String(), "took_ms", time.Since(start).Milliseconds())
		if first && all.Skipped+all.Failed > 0 {
			logger = logger.With("why", "the page /documents lists the files that couldn't be read, with the reason; "+
				"'ibid ingest --help' lists the formats")
		}
		logger.Info("folder read")
	}
	return all, nil
}
