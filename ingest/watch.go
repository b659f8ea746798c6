package ingest

import (
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"time"
)

const (
	// A Watcher looks at its folder every watchPause. If a look needs long, it looks
	// less often, so that looking needs a hundredth of the time of a processor.
	watchPause = 2 * time.Second
	watchShare = 100
	// watchRescan is the time after which it reports a change in any case: on some
	// file systems a second change leaves the time of a file as it is.
	watchRescan = 5 * time.Minute
)

// A Watcher reports that a folder may have changed; the next sync finds out how. It
// compares the names, sizes and times of the files, and so works on any file system.
type Watcher struct {
	Syncer *Syncer // knows which files are of the folder
	Folder fs.FS

	seen uint64 // the state that was reported last
}

// Wait returns nil when the folder may have changed since the last call, else the
// error of ctx. The first call always finds a change.
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
		changed = now != w.seen // the next look gives an editor time to finish its file
		pause = min(max(watchPause, watchShare*time.Since(begun)), watchRescan)
	}
}

// state returns a digest of the files. A folder that cannot be listed has none.
func (w *Watcher) state(ctx context.Context) uint64 {
	folder, end := w.Syncer.start(Root{}, w.Folder)
	defer end()
	sum := fnv.New64a()
	err := folder.walk(ctx, ".", nil)
	for _, f := range folder.files {
		if f.err != nil { // it may change all the time
			f.size, f.modified = 0, time.Time{}
		}
		fmt.Fprintf(sum, "%q %d %d %v\n", f.path, f.size, f.modified.UnixNano(), f.err)
	}
	fmt.Fprint(sum, err)
	return sum.Sum64()
}
