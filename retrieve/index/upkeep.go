package index

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"ibid/retrieve/disk"
)

// A worker writes segments in memory to files and merges files, in the background. Its fields are
// changed with the index locked.
type worker struct {
	running sync.WaitGroup
	ctx     context.Context // ends the work
	cancel  context.CancelFunc
	paused  int

	flushing, merging chan struct{} // closed when the work ends; nil while no work runs
	next              int           // number of unwritten chunks at which to flush
	// failed is the error of the last attempt to write, after which all new documents remain in
	// memory until there are enough for the next attempt.
	failed error
}

// pause stops the work in the background until resume is called.
func (x *Index) pause() {
	x.mu.Lock()
	x.paused++
	x.cancel()
	x.mu.Unlock()
	x.running.Wait()
}

func (x *Index) resume() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.paused--; x.paused == 0 {
		x.ctx, x.cancel = context.WithCancel(context.Background())
	}
}

// countUnwritten returns the number of chunks and deleted documents that are only in memory.
func (x *Index) countUnwritten() int {
	n := len(x.recent)
	for i := range x.memory {
		n += x.memory[i].liveChunks()
	}
	return n
}

// startWork starts the work that is due. The caller must hold x.mu.
func (x *Index) startWork() {
	if x.closed || x.paused > 0 {
		return
	}
	// Locking may adopt a manifest that already includes these changes.
	if x.flushing == nil && x.countUnwritten() >= x.next && x.lockForWriting(true) && x.countUnwritten() >= x.next {
		x.startCompact(&x.flushing, nil)
	}
	if x.merging == nil && x.lock != nil && x.failed == nil && partsToMerge(x.base.files, maxChunks) != nil {
		x.startCompact(&x.merging, func(files []part) []int { return partsToMerge(files, maxChunks) })
	}
}

// startCompact calls compact in the background. The caller must hold x.mu.
func (x *Index) startCompact(busy *chan struct{}, choose func(files []part) []int) {
	done, ctx := make(chan struct{}), x.ctx
	*busy = done
	x.running.Go(func() {
		err := x.recordFault(catchDamage(func() error { return x.compact(ctx, choose) }))
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.failed, x.next = err, x.options.Flush; err != nil {
			x.next += x.countUnwritten()
		}
		close(done)
		*busy = nil
		x.startWork()
	})
}

// waitForRoom waits while segments in memory are being written and memory holds too many chunks.
func (x *Index) waitForRoom(ctx context.Context) error {
	for {
		x.mu.Lock()
		wait, full := x.flushing, x.countUnwritten() >= 4*x.options.Flush
		x.mu.Unlock()
		if wait == nil || !full {
			return nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lockForWriting locks the directory for writing and, if adopt is set, adopts the latest manifest.
// It reports whether the directory is locked. The caller must hold x.mu.
func (x *Index) lockForWriting(adopt bool) bool {
	if x.lock != nil {
		return true
	}
	f, err := os.OpenFile(filepath.Join(x.dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		if x.failed = err; disk.IsReadOnly(err) {
			x.failed = nil
		}
		return false
	}
	err = disk.Lock(f, true)
	locked := err == nil
	if errors.Is(err, disk.ErrLocked) {
		err = nil
	}
	if locked && adopt {
		err = x.recordFault(catchDamage(x.follow))
		for i := range x.base.files {
			if err == nil {
				_, err = os.Stat(filepath.Join(x.dir, x.base.files[i].file))
			}
		}
		if errors.Is(err, fs.ErrNotExist) { // another process has removed the files, for another index
			locked, err = false, nil
		}
	}
	if !locked || err != nil {
		x.failed = errors.Join(err, f.Close())
		return false
	}
	removeFiles(x.dir, tempPrefix, func(string) bool { return true })
	x.lock = f
	return true
}

// Purge removes all data of deleted documents from the files by merging them. If another process
// writes the index, Purge does nothing.
func (x *Index) Purge(ctx context.Context) error {
	x.pause()
	defer x.resume()
	x.mu.Lock()
	owned, files := x.lockForWriting(true), len(x.base.files)
	x.mu.Unlock()
	if !owned || files == 0 {
		return nil
	}
	err := x.recordFault(catchDamage(func() error {
		err := x.compact(ctx, nil)
		for rest := true; rest && err == nil; {
			err = x.compact(ctx, func(files []part) []int {
				at := slices.IndexFunc(files, func(p part) bool { return p.deaths != nil })
				if rest = at >= 0; rest {
					return []int{at}
				}
				return nil
			})
		}
		return err
	}))
	if err != nil {
		return fmt.Errorf("removing deleted documents from the search index in %s: %w", x.dir, err)
	}
	return nil
}

// compact writes one file that replaces the files at the indices that choose returns or, if choose
// is nil, the segments in memory. Then it writes the manifest.
func (x *Index) compact(ctx context.Context, choose func(files []part) []int) error {
	x.mu.Lock()
	from, at := x.memory, x.current.Load().position
	if choose != nil {
		from, _ = splitParts(x.base.files, choose(x.base.files))
	}
	x.mu.Unlock()
	temp, sum, err := "", uint32(0), error(nil)
	if c := merged(from); c != nil {
		temp, err = writeTemp(x.dir, func(w io.Writer) error {
			return catchDamage(func() (err error) {
				sum, err = c.write(ctx, w)
				return err
			})
		})
	}
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if choose != nil {
		at = x.base.position // a flush may also have ended meanwhile
	}
	until := slices.IndexFunc(x.recent, func(d deletion) bool { return d.revision > at.Revision })
	if until < 0 {
		until = len(x.recent)
	}
	var files []part
	var gone []deletion // deletions meanwhile
	for _, p := range applyDeletions(x.base.files, x.recent[:until]) {
		at := slices.IndexFunc(from, func(q part) bool { return p.segment == q.segment })
		if at < 0 {
			files = append(files, p)
			continue
		}
		for _, document := range from[at].selectDocuments(func(document int) bool { return !p.isLive(document) }) {
			gone = append(gone, deletion{p.number(document), math.MaxInt64})
		}
	}
	if temp != "" {
		name := segmentPrefix + rand.Text()
		if err := rename(x.dir, temp, name); err != nil {
			return err
		}
		info, err := os.Stat(filepath.Join(x.dir, name))
		if err != nil {
			return err
		}
		s, err := openSegment(x.dir, name, info.Size(), sum)
		if err != nil {
			return err
		}
		files = append(files, applyDeletions([]part{{segment: s}}, gone)...)
	}
	return x.publish(at, files)
}

// publish writes the manifest of files that contain the changes up to a position, and makes them
// the base of the index. The caller must hold x.mu and the lock of the directory.
func (x *Index) publish(at position, files []part) error {
	m := manifest{identity: x.identity, position: at}
	slices.SortFunc(files, func(a, b part) int { return b.liveChunks() - a.liveChunks() })
	for _, p := range files {
		if p.liveChunks() == 0 {
			continue // it remains in files, because a merge may be reading it
		}
		all := part{segment: p.segment}
		m.Segments = append(m.Segments, entry{File: p.file, Bytes: int64(len(p.data)), Sum: p.Sum,
			Deleted: all.selectDocuments(func(document int) bool { return !p.isLive(document) })})
	}
	if err := writeManifest(x.dir, &m); err != nil {
		return err
	}
	if info, err := os.Stat(filepath.Join(x.dir, manifestName)); err == nil {
		x.lastManifest.Store(&info)
	}
	x.setBase(at, files)
	return nil
}
