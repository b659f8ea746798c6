package ingest

import (
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"time"
)

const (
	// watchPause is the pause between two scans of the folder. After a long scan the pause is
	// longer, so that scanning needs at most 1/watchShare of a processor's time.
	watchPause = 2 * time.Second
	watchShare = 100
	// watchRescan is the time after which a change is reported in any case, since on some file
	// systems a second change may leave the modification time unchanged.
	watchRescan = 5 * time.Minute
)

// A Watcher reports that a folder may have changed; the next sync finds the changes. It compares
// names, sizes and times of files, so it works on any file system.
type Watcher struct {
	Syncer *Syncer // decides which files belong to the folder
	Folder fs.FS

	seen uint64 // the state last reported
}

// Wait returns nil when the folder may have changed since the last call, or the error of ctx. The
// first call always reports a change.
func (w *Watcher) Wait(ctx context.Context) error {
	end := time.Now().Add(watchRescan)
	changed := false
	for pause := watchPause; ; {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		begun := time.Now()
		now := w.state(ctx)
		if now != w.seen && changed || begun.After(end) {
			w.seen = now
			return nil
		}
		changed = now != w.seen // wait one more scan, so that an editor can finish its file
		pause = min(max(watchPause, watchShare*time.Since(begun)), watchRescan)
	}
}

// state returns a digest of the files, or a constant if the folder can't be listed.
func (w *Watcher) state(ctx context.Context) uint64 {
	folder, end := w.Syncer.start(Root{}, w.Folder)
	defer end()
	sum := fnv.New64a()
	err := folder.listing.walk(ctx, ".", nil)
	for _, f := range folder.listing.files {
		if f.err != nil { // it may change all the time
			f.size, f.modified = 0, time.Time{}
		}
		fmt.Fprintf(sum, "%q %d %d %v\n", f.path, f.size, f.modified.UnixNano(), f.err)
	}
	fmt.Fprint(sum, err)
	return sum.Sum64()
}
