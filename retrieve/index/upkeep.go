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
	"syscall"
)

// worthwhile is how many chunks and deleted documents Close writes to a file. It
// takes less time to apply fewer again.
const worthwhile = 64

// A worker writes what is in memory to files, and merges files, in the
// background. Its fields are changed with the index locked.
type worker struct {
	running sync.WaitGroup
	ctx     context.Context // ends the merges
	cancel  context.CancelFunc
	paused  int

	flushing chan struct{} // closed when what is being written is written; nil for nothing
	merging  bool
	next     int   // flush when there are so many chunks
	failed   error // by the last flush or merge
}

// Err returns the error of the last attempt to write to the directory. After an
// error everything new remains in memory, and the next attempt follows when there
// is more of it.
func (x *Index) Err() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failed
}

// pause stops the work in the background, until resume.
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

// tend starts what is due. x.mu is held.
func (x *Index) tend() {
	if x.closed || x.paused > 0 {
		return
	}
	if x.flushing == nil && x.unwritten() >= x.next {
		// With the lock may come a manifest that has it all.
		if owned, err := x.own(); owned && x.unwritten() >= x.next {
			x.flushing = make(chan struct{})
			x.running.Go(x.flushLater)
		} else if err != nil {
			x.failed = err
		}
	}
	if x.lock != nil && !x.merging && x.failed == nil && due(x.base.files, maxChunks) != nil {
		x.merging = true
		x.running.Go(x.mergeLater)
	}
}

// unwritten is how much there is in memory.
func (x *Index) unwritten() int { return liveChunks(x.memory) + len(x.recent) }

func (x *Index) flushLater() {
	err := x.note(guard(func() error { return x.flush(context.Background()) }))
	x.mu.Lock()
	defer x.mu.Unlock()
	x.failed, x.next = err, x.options.Flush
	if err != nil {
		x.next += x.unwritten()
	}
	close(x.flushing)
	x.flushing = nil
	x.tend()
}

func (x *Index) mergeLater() {
	err := x.note(guard(func() error {
		return x.merge(x.ctx, func(files []part) []int { return due(files, maxChunks) })
	}))
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.merging = false; err != nil && x.ctx.Err() == nil {
		x.failed = err
	}
	x.tend()
}

// room waits while too much is in memory and is being written.
func (x *Index) room(ctx context.Context) error {
	for {
		x.mu.Lock()
		wait := x.flushing
		if x.unwritten() < 4*x.options.Flush {
			wait = nil
		}
		x.mu.Unlock()
		if wait == nil {
			return nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// acquire locks the directory for writing; it reports whether that is possible.
// x.mu is held.
func (x *Index) acquire() (bool, error) {
	if x.lock != nil {
		return true, nil
	}
	f, err := os.OpenFile(filepath.Join(x.dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) || isReadOnly(err) {
			err = nil
		}
		return false, err
	}
	if locked, err := tryLock(f); !locked || err != nil {
		return false, errors.Join(err, f.Close())
	}
	x.lock = f
	return true, nil
}

// own acquires the lock and the latest manifest. x.mu is held.
func (x *Index) own() (bool, error) {
	if x.lock != nil {
		return true, nil
	}
	if locked, err := x.acquire(); !locked {
		return false, err
	}
	err := x.note(guard(x.follow))
	for i := range x.base.files {
		if err == nil { // another process may have removed the files, for an index of another space
			_, err = os.Stat(filepath.Join(x.dir, x.base.files[i].file))
		}
	}
	if err != nil {
		err = errors.Join(err, x.lock.Close())
		x.lock = nil
		return false, err
	}
	m, _, _ := readManifest(x.dir)
	if m == nil {
		m = new(manifest)
	}
	clean(x.dir, m, true)
	return true, nil
}

// flush writes what is in memory to a file.
func (x *Index) flush(ctx context.Context) error {
	x.mu.Lock()
	memory, revision := x.memory, x.current.Load().revision
	x.mu.Unlock()
	temp, err := x.write(ctx, memory)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	until := slices.IndexFunc(x.recent, func(d death) bool { return d.revision > revision })
	if until < 0 {
		until = len(x.recent)
	}
	files := kill(x.base.files, x.recent[:until])
	if temp != "" {
		p, err := x.install(temp)
		if err != nil {
			return err
		}
		files = append(files, p)
	}
	return x.publish(revision, files)
}

// Purge removes every trace of deleted documents from the files. It does nothing
// if another process writes the index: files lose what is deleted when they are
// merged.
func (x *Index) Purge(ctx context.Context) error {
	x.pause()
	defer x.resume()
	x.mu.Lock()
	owned, err := x.own()
	files := len(x.base.files)
	x.mu.Unlock()
	if err != nil || !owned {
		return err
	}
	err = x.note(guard(func() error {
		if files > 0 {
			if err := x.flush(ctx); err != nil {
				return err
			}
		}
		for {
			rest := false
			err := x.merge(ctx, func(files []part) []int {
				i := slices.IndexFunc(files, func(p part) bool { return p.live() < int(p.Chunks) })
				if rest = i >= 0; !rest {
					return nil
				}
				return []int{i}
			})
			if err != nil || !rest {
				return err
			}
		}
	}))
	if err != nil {
		return fmt.Errorf("removing what is deleted from the search index in %s: %w", x.dir, err)
	}
	return nil
}

// merge merges the files that pick chooses by their position.
func (x *Index) merge(ctx context.Context, pick func(files []part) []int) error {
	x.mu.Lock()
	var from []part
	for _, i := range pick(x.base.files) {
		from = append(from, x.base.files[i])
	}
	x.mu.Unlock()
	temp, err := x.write(ctx, from)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var files []part
	var gone []death // meanwhile
	for _, p := range x.base.files {
		at := slices.IndexFunc(from, func(q part) bool { return p.segment == q.segment })
		if at < 0 {
			files = append(files, p)
			continue
		}
		for document := range int(p.Documents) {
			if first, _ := p.chunksOf(document); from[at].alive(first) && !p.alive(first) {
				gone = append(gone, death{item[int64](p.segment, secNumbers, document), math.MaxInt64})
			}
		}
	}
	if temp != "" {
		p, err := x.install(temp)
		if err != nil {
			return err
		}
		files = append(files, kill([]part{p}, gone)...)
	}
	return x.publish(x.base.revision, files)
}

// write writes the parts to a temporary file without what is deleted, and returns
// its name; it is empty if nothing is left.
func (x *Index) write(ctx context.Context, parts []part) (temp string, err error) {
	c := merged(parts)
	if c == nil {
		return "", nil
	}
	return writeTemp(x.dir, func(w io.Writer) error { return guard(func() error { return c.write(ctx, w) }) })
}

// install gives a temporary file the name of a segment, and opens it. x.mu is held.
func (x *Index) install(temp string) (part, error) {
	name := segmentPrefix + rand.Text()
	if err := rename(x.dir, temp, name); err != nil {
		return part{}, err
	}
	path := filepath.Join(x.dir, name)
	info, err := os.Stat(path)
	if err != nil {
		return part{}, err
	}
	s, err := openSegment(path, name, info.Size(), nil)
	return part{segment: s}, err
}

// publish writes the manifest of files that hold the changes up to a revision, and
// makes them the base of the index. x.mu is held, and the directory is locked.
func (x *Index) publish(revision int64, files []part) error {
	m := x.options.identity()
	m.Revision = revision
	slices.SortFunc(files, func(a, b part) int { return b.live() - a.live() })
	for i := range files {
		if files[i].live() > 0 {
			m.Segments = append(m.Segments, describe(&files[i]))
		}
	}
	if err := writeManifest(x.dir, &m); err != nil {
		return err
	}
	if info, err := os.Stat(filepath.Join(x.dir, manifestName)); err == nil {
		x.seen.Store(&seen{info})
	}
	x.adopt(revision, files)
	clean(x.dir, &m, false)
	return nil
}

// isReadOnly reports whether an error is that of a read-only file system.
func isReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
