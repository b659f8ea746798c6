package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ibid/retrieve"
)

func TestBackup(t *testing.T) { onBothDialects(t, testBackup) }

func testBackup(t *testing.T, dir string) {
	into := t.TempDir()
	s := openTest(t, dir)
	ctx := ready(t, s, "a")
	for _, path := range []string{"1", "2", "3"} {
		put(t, s, "a", path, "boat", path)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				put(t, s, "a", "4", "train")
			}
		}
	}()
	file := filepath.Join(into, "copy", FileName)
	if _, err := Backup(ctx, dir, file, Options{}, nil); !errors.Is(err, ErrTarget) {
		t.Errorf("backup into a missing folder: err = %v, want ErrTarget", err)
	}
	must(t, os.Mkdir(filepath.Dir(file), 0o700))
	r, err := Backup(ctx, dir, file, Options{}, nil)
	close(stop)
	<-done
	must(t, err)
	if r.Documents < 3 || len(r.Damaged) > 0 {
		t.Errorf("Backup = %+v", r)
	}
	refused := map[string]error{file: fs.ErrExist, into: fs.ErrExist}
	if !isServer(dir) {
		refused[filepath.Join(dir, FileName)], refused[filepath.Join(dir, FileName+".bak")] = ErrTarget, ErrTarget
	}
	for name, want := range refused {
		if _, err := Backup(ctx, dir, name, Options{}, nil); !errors.Is(err, want) {
			t.Errorf("backup to %s: err = %v, want %v", name, err, want)
		}
	}
	left, err := os.ReadDir(filepath.Dir(file))
	must(t, err)
	if len(left) != 1 {
		t.Errorf("files with the backup = %v, want one", left)
	}
	var f follower
	f.same(t, openTest(t, filepath.Dir(file)))
	if len(f.documents) < 3 {
		t.Errorf("documents in the backup = %q", f.ids())
	}
}

func TestCompact(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := openTest(t, dir)
	ctx := ready(t, s, "a", "b")
	for i := range 50 {
		put(t, s, "a", strings.Repeat("x", i+1), strings.Repeat("many words ", 500))
	}
	put(t, s, "b", "kept", "boat")
	_, err := s.DeleteRoot(ctx, "a", false)
	must(t, err)
	var f follower
	f.same(t, s)
	before, after, err := Compact(ctx, dir, Options{})
	if err != nil || after > before/2 {
		t.Errorf("Compact = %d, %d, %v", before, after, err)
	}
	f.same(t, s)
	data, err := os.ReadFile(filepath.Join(dir, FileName))
	must(t, err)
	if strings.Contains(string(data), "many words") {
		t.Error("the file has words of deleted documents")
	}
}

// TestReadOnly opens a read-only library.
func TestReadOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := openTest(t, dir)
	ctx := ready(t, s, "a")
	put(t, s, "a", "x", "boat")
	var f follower
	f.same(t, s)
	must(t, s.Close())
	must(t, os.Chmod(filepath.Join(dir, FileName), 0o400))
	must(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { must(t, os.Chmod(dir, 0o700)) })
	if readOnly, err := isReadOnly(dir, filepath.Join(dir, FileName)); err != nil || !readOnly {
		// The superuser may write everything.
		t.Logf("the folder is writable (%v): only the mode of opening is tested", err)
	}
	s, err := attach(ctx, dir, Options{})
	must(t, err)
	s.readOnly = true
	must(t, s.start(ctx))
	t.Cleanup(func() { must(t, s.Close()) })
	f.same(t, s)
	for what, err := range map[string]error{
		"AddRoot": func() error { _, err := s.AddRoot(ctx, "/srv/b", ""); return err }(),
		"Delete":  s.Delete(ctx, "a/x"),
	} {
		if !errors.Is(err, retrieve.ErrReadOnly) || !strings.Contains(err.Error(), s.place) {
			t.Errorf("%s in a store opened to read: err = %v, want one that names %s", what, err, s.place)
		}
	}
	if r, err := s.verify(ctx, nil); err != nil || r.Documents != 1 || len(r.Damaged) > 0 {
		t.Errorf("verify = %+v, %v", r, err)
	}
	if r, err := s.backup(ctx, filepath.Join(t.TempDir(), "copy"), nil); err != nil || r.Documents != 1 {
		t.Errorf("backup = %+v, %v", r, err)
	}
	writer, err := attach(ctx, dir, Options{})
	must(t, err)
	if !writer.readOnly { // the superuser may write
		must(t, writer.start(ctx))
		put(t, writer, "a", "y", "ship")
		f.same(t, s)
	}
	must(t, writer.Close())
	if list, err := os.ReadDir(dir); err != nil || len(list) != 2 { // the database and the lock
		t.Errorf("files = %v, %v; want 2", list, err)
	}
}

// TestErrors checks that no driver messages reach users.
func TestErrors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	must(t, os.WriteFile(dir, nil, 0o600))
	_, err := Open(t.Context(), dir, Options{})
	if err == nil {
		t.Error("a file was opened as a data directory")
	}
	_, err = Open(t.Context(), "postgres://someone:secret@127.0.0.1:1/none?connect_timeout=1", Options{Wait: 1})
	if !errors.Is(err, retrieve.ErrUnavailable) || strings.Contains(err.Error(), "secret") ||
		!strings.Contains(err.Error(), "check that the server runs") {
		t.Errorf("unreachable server: err = %v", err)
	}
	for _, address := range []string{"postgres://a:b@c:d@host/x", "postgres://a:p#q@host/x", "postgres://host/x?search_path=a,b"} {
		if _, err := Open(t.Context(), address, Options{Wait: 1}); err == nil || strings.Contains(err.Error(), "c:d") {
			t.Errorf("%s: err = %v", address, err)
		}
	}
}

// TestNoRoom checks that the error of a copy names the full disk of the copy, not the
// library's disk.
func TestNoRoom(t *testing.T) {
	s := openTest(t, t.TempDir())
	err := s.roomError(&failure{message: "the disk of " + s.place + " is full", full: true}, "/elsewhere/copy.db")
	if text := fmt.Sprint(err); !strings.HasPrefix(text, "the disk of /elsewhere is full: ") || strings.Contains(text, s.place) ||
		!errors.Is(err, syscall.ENOSPC) {
		t.Errorf("copy to a full disk: err = %v", err)
	}
}
