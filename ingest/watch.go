package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// How a [Watcher] waits.
const (
	// A change is told when nothing more has happened for watchQuiet, so that
	// an editor has done with its file, or watchLongest after the first.
	watchQuiet   = 300 * time.Millisecond
	watchLongest = 5 * time.Second
	// The folder is looked through in any case after watchRescan, or after
	// watchPoll where the system does not tell of all changes.
	watchRescan = 5 * time.Minute
	watchPoll   = 30 * time.Second
)

// A Watcher tells when a folder may have changed. It is told of the folders in
// it by a [Syncer] whose Enter is [Watcher.Enter], and knows no more of a change
// than that there was one: the next sync finds what it was.
type Watcher struct {
	dir     string
	events  *fsnotify.Watcher // nil where there is none to be had
	changed chan struct{}     // holds one when something has happened
	done    chan struct{}     // closed when no more events come

	mu      sync.Mutex
	trouble error
}

// NewWatcher makes a watcher of a folder. It never fails: where the system
// gives no notice of changes, [Watcher.Trouble] says why, and the folder is
// looked through every half minute.
func NewWatcher(dir string) *Watcher {
	w := &Watcher{dir: dir, changed: make(chan struct{}, 1), done: make(chan struct{})}
	var err error
	if w.events, err = fsnotify.NewWatcher(); err != nil {
		w.troubled(err)
		close(w.done)
		return w
	}
	go w.listen()
	return w
}

// Close ends the watcher.
func (w *Watcher) Close() error {
	if w.events == nil {
		return nil
	}
	err := w.events.Close()
	<-w.done
	return err
}

// Enter watches a folder by its path in the watched one.
func (w *Watcher) Enter(dir string) {
	if w.events == nil {
		return
	}
	err := w.events.Add(filepath.Join(w.dir, filepath.FromSlash(dir)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.troubled(err)
	}
}

// Trouble says why the system does not tell of all changes; nil if it does.
func (w *Watcher) Trouble() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trouble
}

func (w *Watcher) troubled(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble == nil {
		w.trouble = fmt.Errorf("the system does not tell of every change in %s (%w): it is looked through every %s", w.dir, err, watchPoll)
	}
}

// Wait returns nil when the folder may have changed since the last call, else
// the error of ctx.
func (w *Watcher) Wait(ctx context.Context) error {
	rescan := watchRescan
	if w.Trouble() != nil {
		rescan = watchPoll
	}
	again := time.NewTimer(rescan)
	defer again.Stop()
	select {
	case <-again.C:
		return nil
	case <-w.changed:
	case <-ctx.Done():
		return ctx.Err()
	}
	longest, quiet := time.NewTimer(watchLongest), time.NewTimer(watchQuiet)
	defer longest.Stop()
	defer quiet.Stop()
	for {
		select {
		case <-quiet.C:
			return nil
		case <-longest.C:
			return nil
		case <-w.changed:
			quiet.Reset(watchQuiet)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// listen makes one sign of many events.
func (w *Watcher) listen() {
	defer close(w.done)
	for {
		select {
		case e, ok := <-w.events.Events:
			if !ok {
				return
			}
			if !matters(e) {
				continue
			}
		case err, ok := <-w.events.Errors:
			if !ok {
				return
			}
			// Too many at a time to be told of each: the next sync finds them all.
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				w.troubled(err)
			}
		}
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// matters says whether an event can change what a sync makes of a folder.
func matters(e fsnotify.Event) bool {
	name := filepath.Base(e.Name)
	switch {
	case name == ".gitignore" || name == ".ibidignore":
		return true
	case strings.HasPrefix(name, "."):
		return false
	case e.Has(fsnotify.Create) || e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename):
		return true
	case !e.Has(fsnotify.Write):
		return false
	}
	// A file that nothing reads may change all the time: a log, a database.
	_, readable := formatOf(name)
	return readable || isContainer(name)
}
