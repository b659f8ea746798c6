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
	// Wait returns when nothing has happened for watchQuiet, so that an editor has
	// finished its file, or watchLongest after the first change.
	watchQuiet   = 300 * time.Millisecond
	watchLongest = 5 * time.Second
	// It returns in any case after watchRescan, or after watchPoll in trouble.
	watchRescan = 5 * time.Minute
	watchPoll   = 30 * time.Second
)

// A Watcher reports that a folder may have changed; the next sync finds out how.
// A [Syncer] whose Enter is [Watcher.Enter] tells it which folders there are.
type Watcher struct {
	dir     string
	events  *fsnotify.Watcher // nil if the system has none
	changed chan struct{}     // holds one when something has happened
	done    chan struct{}     // closed when no more events come

	mu      sync.Mutex
	trouble error
}

// NewWatcher returns a watcher of a folder. It never fails: if the system does
// not report changes, [Watcher.Trouble] says why, and Wait returns every half
// minute.
func NewWatcher(dir string) *Watcher {
	w := &Watcher{dir: dir, changed: make(chan struct{}, 1), done: make(chan struct{})}
	var err error
	if w.events, err = fsnotify.NewWatcher(); err != nil {
		w.setTrouble(err)
	} else {
		go w.listen()
	}
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

// Enter starts watching a folder by its path in the watched one.
func (w *Watcher) Enter(dir string) {
	if w.events == nil {
		return
	}
	err := w.events.Add(filepath.Join(w.dir, filepath.FromSlash(dir)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.setTrouble(err)
	}
}

// Trouble returns why the system does not report all changes; nil if it does.
func (w *Watcher) Trouble() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trouble
}

func (w *Watcher) setTrouble(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble == nil {
		w.trouble = fmt.Errorf("the system does not report every change in %s (%w): it is scanned every %s", w.dir, err, watchPoll)
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
	for end := time.Now().Add(watchLongest); time.Now().Before(end); {
		select {
		case <-time.After(watchQuiet):
			return nil
		case <-w.changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// listen signals changes, many events at once.
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
		case err := <-w.events.Errors: // nil when it is closed
			// After an overflow the next sync still finds every change.
			if err != nil && !errors.Is(err, fsnotify.ErrEventOverflow) {
				w.setTrouble(err)
			}
		}
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}

// matters reports whether an event can change the result of a sync.
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
	// A file that is not read, such as a database, may change all the time.
	_, readable := formatOf(name)
	return readable || isContainer(name)
}
