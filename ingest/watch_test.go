package ingest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A watched folder follows the ways in which programs write files.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	w := NewWatcher(dir)
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := w.Trouble(); err != nil {
		t.Skip(err)
	}
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	write := func(name, text string) {
		t.Helper()
		must(t, errors.Join(os.MkdirAll(filepath.Dir(at(name)), 0o700), os.WriteFile(at(name), []byte(text), 0o600)))
	}
	sink := newMemory()
	s := &Syncer{Sink: sink, Enter: w.Enter}
	run := func() (changes []string) {
		t.Helper()
		lines, err := syncAll(t, s, os.DirFS(dir))
		must(t, err)
		return slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "unchanged") })
	}
	// until syncs after each change until it has the wanted ones.
	until := func(want ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var got []string
		for len(got) < len(want) {
			if err := w.Wait(ctx); err != nil {
				t.Fatalf("%v: %q, want %q", err, got, want)
			}
			got = append(got, run()...)
		}
		wantLines(t, got, want...)
	}
	write("a.md", "A.")
	wantLines(t, run(), "added a.md")

	write("b.md", "B.")
	until("added b.md")
	write("b.md", "Changed.")
	until("updated b.md")
	// One editor writes a temporary file and renames it.
	write(".a.md.swp", "Edited.")
	must(t, os.Rename(at(".a.md.swp"), at("a.md")))
	until("updated a.md")
	// Another moves the file and writes a new one.
	must(t, os.Rename(at("a.md"), at("a.md~")))
	write("a.md", "Edited again.")
	until("updated a.md", "skipped a.md~: .md~ files are not read")
	must(t, os.Remove(at("a.md~")))
	// A folder is added with its files, and changes later.
	write("sub/deep/c.md", "C.")
	until("added sub/deep/c.md")
	write("sub/deep/d.md", "D.")
	until("added sub/deep/d.md")
	must(t, os.Rename(at("sub"), at("moved")))
	until("renamed moved/deep/c.md from sub/deep/c.md", "renamed moved/deep/d.md from sub/deep/d.md")
	write("moved/deep/c.md", "Changed below a folder that was moved.")
	until("updated moved/deep/c.md")
	must(t, os.RemoveAll(at("moved")))
	until("removed moved/deep/c.md", "removed moved/deep/d.md")
	write(".ibidignore", "b.md\n")
	until("removed b.md")
}

func TestWatcherWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Watcher{dir: "folder", changed: make(chan struct{}, 1), done: make(chan struct{})}
		wait := func() time.Duration {
			begun := time.Now()
			if err := w.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			return time.Since(begun)
		}
		if took := wait(); took != watchRescan {
			t.Errorf("without a change after %v", took)
		}
		w.changed <- struct{}{}
		if took := wait(); took != watchQuiet {
			t.Errorf("after a change %v", took)
		}
		// A file is written to without a pause.
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for ctx.Err() == nil {
				select {
				case w.changed <- struct{}{}:
				default:
				}
				time.Sleep(watchQuiet / 3)
			}
		}()
		if took := wait(); took != watchLongest {
			t.Errorf("amid changes after %v", took)
		}
		cancel()
		time.Sleep(watchQuiet)
		select {
		case <-w.changed:
		default:
		}
		w.setTrouble(errors.New("too many files are watched"))
		if took := wait(); took != watchPoll {
			t.Errorf("without notice after %v", took)
		}
		ended, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.Wait(ended); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

func TestEventsThatMatter(t *testing.T) {
	for _, tt := range []struct {
		name string
		op   fsnotify.Op
		want bool
	}{
		{"a.md", fsnotify.Write, true}, {"a.md", fsnotify.Chmod, false}, {"a.md", fsnotify.Chmod | fsnotify.Write, true},
		{"a.md", fsnotify.Remove, true}, {"folder", fsnotify.Rename, true}, {"folder", fsnotify.Create, true},
		{"library.db", fsnotify.Write, false}, {".a.md.swp", fsnotify.Create, false}, {".gitignore", fsnotify.Write, true},
		{"sub/.ibidignore", fsnotify.Remove, true},
	} {
		if got := matters(fsnotify.Event{Name: tt.name, Op: tt.op}); got != tt.want {
			t.Errorf("%s of %s: %v", tt.op, tt.name, got)
		}
	}
}
