package ingest

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// folders are the states of a folder in consecutive scans; the last state is repeated.
type folders []fstest.MapFS

func (f *folders) Open(name string) (fs.File, error) {
	now := (*f)[0]
	if name == "." && len(*f) > 1 {
		*f = (*f)[1:]
	}
	return now.Open(name)
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(text string, modified time.Time) *fstest.MapFile {
			return &fstest.MapFile{Data: []byte(text), ModTime: modified}
		}
		begun := time.Now()
		a, later := at("A.", begun), at("A.", begun.Add(time.Second))
		before := fstest.MapFS{"a.md": a, "sub/b.md": a, ".gitignore": at("out/\n", begun), "out/c.md": a, "library.db": a}
		with := func(name string, file *fstest.MapFile) fstest.MapFS {
			now := fstest.MapFS{}
			for n, f := range before {
				now[n] = f
			}
			if delete(now, name); file != nil {
				now[name] = file
			}
			return now
		}
		for name, tt := range map[string]struct {
			looks folders
			after time.Duration
		}{
			"nothing":                           {folders{before}, watchRescan + watchPause},
			"a new file":                        {folders{with("c.md", a)}, 2 * watchPause},
			"a file that is gone":               {folders{with("sub/b.md", nil)}, 2 * watchPause},
			"another size":                      {folders{with("a.md", at("Longer.", begun))}, 2 * watchPause},
			"another time":                      {folders{with("sub/b.md", later)}, 2 * watchPause},
			"later":                             {folders{before, before, with("a.md", later)}, 4 * watchPause},
			"a file that is written for long":   {folders{with("a.md", at("B", begun)), with("a.md", at("B and", begun))}, 2 * watchPause},
			"a file that is there for a moment": {folders{with("c.md", a), before}, watchRescan + watchPause},
			"rules":                             {folders{with(".gitignore", nil)}, 2 * watchPause},
			"ignored and hidden files":          {folders{with("out/c.md", later), with(".swp", a)}, watchRescan + watchPause},
			"a file that is not read":           {folders{with("library.db", later)}, watchRescan + watchPause},
			"a folder that cannot be listed":    {folders{nil}, 2 * watchPause},
		} {
			w := &Watcher{Syncer: new(Syncer), Folder: &folders{before}}
			must(t, w.Wait(t.Context()))
			w.Folder = &tt.looks
			start := time.Now()
			must(t, w.Wait(t.Context()))
			if took := time.Since(start); took != tt.after {
				t.Errorf("%s: noticed after %v, want %v", name, took, tt.after)
			}
		}
		ended, cancel := context.WithTimeout(t.Context(), watchPause)
		defer cancel()
		if err := (&Watcher{Syncer: new(Syncer), Folder: before}).Wait(ended); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting without a change: err = %v, want the deadline", err)
		}
	})
}

// TestWatchedSync checks that the documents of a watched folder match its files after each
// change and sync.
func TestWatchedSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder, s := fstest.MapFS{}, &Syncer{Sink: newMemory()}
		w := &Watcher{Syncer: s, Folder: folder}
		write := func(name, text string) { folder[name] = &fstest.MapFile{Data: []byte(text), ModTime: time.Now()} }
		for _, step := range []struct {
			change func()
			want   string
		}{
			{func() { write("a.md", "A.") }, "added a.md"},
			{func() { write("a.md", "B.") }, "updated a.md"},
			{func() { write("b.md", "B, too.") }, "unchanged a.md, added b.md"},
			{func() { write(".ibidignore", "b.md\n") }, "unchanged a.md, removed b.md"},
		} {
			step.change()
			must(t, w.Wait(t.Context()))
			lines, err := syncAll(t, s, folder)
			must(t, err)
			wantLines(t, lines, strings.Split(step.want, ", ")...)
		}
	})
}
