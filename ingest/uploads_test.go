package ingest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"ibid/data/datatest"
)

func newUploads(t *testing.T) (*Uploads, *memory, func() []string) {
	t.Helper()
	dir, err := os.OpenRoot(t.TempDir())
	must(t, err)
	t.Cleanup(func() { dir.Close() })
	sink := newMemory()
	u := &Uploads{Dir: dir, Root: Root{Name: "uploads", Collection: DefaultCollection}, Syncer: &Syncer{Sink: sink},
		Lock: func(*os.File, bool) error { return nil }}
	u.All = func() []*Uploads { return []*Uploads{u} }
	return u, sink, func() []string {
		entries, err := fs.ReadDir(dir.FS(), ".")
		must(t, err)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
}

// TestUploadBrokenOff checks that an interrupted upload leaves no file.
func TestUploadBrokenOff(t *testing.T) {
	u, sink, files := newUploads(t)
	broken := errors.New("the connection is gone")
	_, err := u.Add(t.Context(), "a.md", io.MultiReader(strings.NewReader(strings.Repeat("Half. ", 1000)), iotest.ErrReader(broken)), nil)
	if !errors.Is(err, broken) || len(files()) != 0 || len(sink.docs) != 0 {
		t.Errorf("err = %v, files = %q", err, files())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := u.Add(ctx, "a.md", strings.NewReader("A."), nil); !errors.Is(err, context.Canceled) || len(files()) != 0 {
		t.Errorf("err = %v, files = %q", err, files())
	}
	// A full disk is the server's fault and not the file's, so the file can be sent again.
	for _, failure := range []error{broken, &fs.PathError{Op: "write", Path: "store", Err: syscall.ENOSPC}} {
		sink.fail = func(string) error { return failure }
		unreadable := (*UnreadableError)(nil)
		if _, err := u.Add(t.Context(), "a.md", strings.NewReader("A."), nil); err == nil || len(files()) != 0 ||
			errors.As(err, &unreadable) != (failure == broken) {
			t.Errorf("err = %v, files = %q", err, files())
		}
	}
	sink.fail = nil
	if c, err := u.Add(t.Context(), "a.md", strings.NewReader("A."), nil); err != nil || c.Action != Added {
		t.Errorf("second upload = %+v, %v", c, err)
	}
}

// TestUploadsAfterACrash checks that the next sync removes the leftovers of a crash, stores
// the uploads not yet stored, and ignores an upload that another process is receiving.
// Neither counts towards the limit.
func TestUploadsAfterACrash(t *testing.T) {
	u, sink, files := newUploads(t)
	u.MaxTotal = 100
	u.Lock = func(f *os.File, _ bool) error {
		if strings.HasSuffix(f.Name(), "receiving") {
			return errors.New("another process has locked it")
		}
		return nil
	}
	for name, size := range map[string]int{uploadPrefix + "left": 90, uploadPrefix + "receiving": 90, "a.md": 2} {
		must(t, u.Dir.WriteFile(name, []byte(strings.Repeat("A", size)), 0o600))
	}
	_, err := u.Add(t.Context(), "b.md", strings.NewReader("B."), nil)
	must(t, err)
	_, err = u.Sync(t.Context())
	must(t, err)
	if got := strings.Join(files(), " "); got != uploadPrefix+"receiving a.md b.md" || len(sink.docs) != 2 {
		t.Errorf("files = %q, %d stored", got, len(sink.docs))
	}
}

func TestUploadName(t *testing.T) {
	rows := append(datatest.Rows(t, "testdata/names.txt", "names"),
		[]string{strings.Repeat("a/", 16) + "b.md", strings.Repeat("a/", 16) + "b.md"}, []string{strings.Repeat("a/", 17) + "b.md", ""},
		[]string{strings.Repeat(strings.Repeat("a", 150)+"/", 7) + "b.md", ""},
		[]string{strings.Repeat("图", 100) + ".md", strings.Repeat("图", 65) + ".md"})
	for _, row := range rows {
		if got, err := uploadName(row[0]); got != row[1] || (err == nil) != (row[1] != "") {
			t.Errorf("uploadName(%q) = %q, %v; want %q", row[0], got, err, row[1])
		}
	}
}
