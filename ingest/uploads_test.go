package ingest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
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

func TestUploads(t *testing.T) {
	u, sink, files := newUploads(t)
	u.MaxBytes, u.MaxTotal = 100, 150
	add := func(name, text string) (Action, error) {
		c, err := u.Add(t.Context(), name, strings.NewReader(text), nil)
		return c.Action, err
	}
	long := strings.Repeat("A long text. ", 8)
	for _, step := range []struct {
		name, text string
		want       Action
		err        error
		files      string
	}{
		{"a.md", "First.", Added, nil, "a.md"},
		{"/etc/a.md", "Second.", Updated, nil, "a.md"},
		{"../../etc/a.md", "Third.", "", ErrUploadPath, "a.md"},
		{"a.md", "Second.", Unchanged, nil, "a.md"},
		{`C:\temp\b.txt`, "B.", Added, nil, "a.md b.txt"},
		{"c.txt", long, "", ErrUploadSize, "a.md b.txt"},
		{"d.txt", long[:80], Added, nil, "a.md b.txt d.txt"},
		{"e.txt", long[:80], "", ErrUploadSize, "a.md b.txt d.txt"}, // there is not so much room left
		{"d.txt", long[:90], Updated, nil, "a.md b.txt d.txt"},      // except for its replacement
		{"...", "A.", "", ErrUploadName, "a.md b.txt d.txt"},
		{"a/", "A.", "", ErrUploadName, "a.md b.txt d.txt"},
	} {
		got, err := add(step.name, step.text)
		if got != step.want || !errors.Is(err, step.err) || strings.Join(files(), " ") != step.files {
			t.Errorf("%s: %s, %v, files %q", step.name, got, err, files())
		}
	}
	if sink.docs["uploads/a.md"].Text != "Second." || len(sink.docs) != 3 {
		t.Errorf("stored %v", sink.docs)
	}

	// A file that cannot be read leaves the stored one unchanged.
	var skip *SkipError
	if _, err := add("x.exe", "A."); !errors.As(err, &skip) {
		t.Errorf("%v", err)
	}
	for name, text := range map[string]string{"a.md": "%PDF-1.4", "b.txt": " ", "new.md": "\x7fELF"} {
		var unreadable *UnreadableError
		if _, err := add(name, text); !errors.As(err, &unreadable) || unreadable.Reason == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := strings.Join(files(), " "); got != "a.md b.txt d.txt" || len(sink.docs) != 3 || sink.docs["uploads/b.txt"].Text != "B." {
		t.Errorf("files %q, %d stored", got, len(sink.docs))
	}

	if c, err := u.Reread(t.Context(), "a.md", nil); err != nil || c.Action != Updated {
		t.Errorf("%+v, %v", c, err)
	}
	for _, name := range []string{"gone.md", "../a.md", ".upload-x", ""} {
		if err := u.Remove(t.Context(), name); err == nil {
			t.Errorf("%q was removed", name)
		}
	}
	if err := u.Remove(t.Context(), "a.md"); err != nil || sink.docs["uploads/a.md"] != nil || slices.Contains(files(), "a.md") {
		t.Errorf("%v, files %q", err, files())
	}
}

// Files of equal names in different folders are different uploads, which are read again,
// counted and deleted as others are.
func TestUploadFolders(t *testing.T) {
	u, sink, files := newUploads(t)
	add := func(name string) (Change, error) {
		return u.Add(t.Context(), name, strings.NewReader("About "+name), nil)
	}
	for _, name := range []string{"proj/a/README.md", "proj/b/README.md", "README.md", "LICENSE"} {
		if c, err := add(name); err != nil || c.Action != Added || c.Path != name {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	for _, name := range []string{"README.md/a.md", "proj/a/README.md/b/c.md", "proj"} {
		if _, err := add(name); !errors.Is(err, ErrUploadPath) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if c, err := u.Reread(t.Context(), "proj/a/README.md", map[string]string{"tags": "x"}); err != nil || c.Action != Updated {
		t.Errorf("read again: %+v, %v", c, err)
	}
	must(t, u.Sync(t.Context()))
	size, err := u.sizeWithout("")
	if want := int64(len("About proj/a/README.md")*2 + len("About README.md") + len("About LICENSE")); err != nil || size != want ||
		len(sink.docs) != 4 {
		t.Errorf("%d bytes, want %d, %v; %d stored", size, want, err, len(sink.docs))
	}
	for _, name := range []string{"proj", "proj/a", "proj/c/README.md"} {
		if err := u.Remove(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("removing %s: %v", name, err)
		}
	}
	must(t, u.Remove(t.Context(), "proj/a/README.md"))
	if sink.docs["uploads/proj/b/README.md"] == nil || len(sink.docs) != 3 {
		t.Errorf("stored %v", sink.docs)
	}
	must(t, u.Remove(t.Context(), "proj/b/README.md")) // with the folders, now empty
	if got := strings.Join(files(), " "); got != "LICENSE README.md" || len(sink.docs) != 2 {
		t.Errorf("files %q, %d stored", got, len(sink.docs))
	}
}

// An interrupted upload leaves nothing.
func TestUploadBrokenOff(t *testing.T) {
	u, sink, files := newUploads(t)
	broken := errors.New("the connection is gone")
	_, err := u.Add(t.Context(), "a.md", io.MultiReader(strings.NewReader(strings.Repeat("Half. ", 1000)), iotest.ErrReader(broken)), nil)
	if !errors.Is(err, broken) || len(files()) != 0 || len(sink.docs) != 0 {
		t.Errorf("%v, files %q", err, files())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := u.Add(ctx, "a.md", strings.NewReader("A."), nil); !errors.Is(err, context.Canceled) || len(files()) != 0 {
		t.Errorf("%v, files %q", err, files())
	}
	// A full disk is the server's fault, not that of the file, which can be sent again.
	for _, failure := range []error{broken, &fs.PathError{Op: "write", Path: "store", Err: syscall.ENOSPC}} {
		sink.fail = func(string) error { return failure }
		unreadable := (*UnreadableError)(nil)
		if _, err := u.Add(t.Context(), "a.md", strings.NewReader("A."), nil); err == nil || len(files()) != 0 ||
			errors.As(err, &unreadable) != (failure == broken) {
			t.Errorf("%v, files %q", err, files())
		}
	}
	sink.fail = nil
	if c, err := u.Add(t.Context(), "a.md", strings.NewReader("A."), nil); err != nil || c.Action != Added {
		t.Errorf("sent again: %+v, %v", c, err)
	}
}

// The next sync removes the leftovers of a crash, and stores the uploads that
// were not stored. It leaves an upload alone that another process receives, and
// neither counts.
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
	if _, err := u.Add(t.Context(), "b.md", strings.NewReader("B."), nil); err != nil {
		t.Error(err)
	}
	must(t, u.Sync(t.Context()))
	if got := strings.Join(files(), " "); got != uploadPrefix+"receiving a.md b.md" || len(sink.docs) != 2 {
		t.Errorf("files %q, %d stored", got, len(sink.docs))
	}
}

func TestUploadName(t *testing.T) {
	rows := append(datatest.Rows(t, "testdata/names.txt", "names"),
		[]string{strings.Repeat("a/", 16) + "b.md", strings.Repeat("a/", 16) + "b.md"}, []string{strings.Repeat("a/", 17) + "b.md", ""},
		[]string{strings.Repeat(strings.Repeat("a", 150)+"/", 7) + "b.md", ""},
		[]string{strings.Repeat("图", 100) + ".md", strings.Repeat("图", 65) + ".md"})
	for _, row := range rows {
		if got, err := uploadName(row[0]); got != row[1] || (err == nil) != (row[1] != "") {
			t.Errorf("%q: %q, %v; want %q", row[0], got, err, row[1])
		}
	}
}

// A file that can no longer be read is a failure until it is replaced, read or
// deleted.
func TestUploadTroubles(t *testing.T) {
	u, _, _ := newUploads(t)
	spoil := func(names ...string) {
		t.Helper()
		for _, name := range names {
			must(t, u.Dir.WriteFile(name, []byte("%PDF-1.4"), 0o600))
		}
		must(t, u.Sync(t.Context()))
	}
	told := func() (paths []string) {
		for _, c := range u.Failures() {
			if c.Reason == "" || c.Action != Failed && c.Action != Skipped {
				t.Errorf("%+v", c)
			}
			paths = append(paths, c.Path)
		}
		return paths
	}
	spoil("a.md", "b.md", "c.md")
	if got := told(); len(got) != 3 {
		t.Fatalf("troubles %v", got)
	}
	if _, err := u.Add(t.Context(), "a.md", strings.NewReader("Good."), nil); err != nil {
		t.Fatal(err)
	}
	must(t, u.Remove(t.Context(), "b.md"))
	if got := told(); !slices.Equal(got, []string{"c.md"}) {
		t.Errorf("troubles %v", got)
	}
	if _, err := u.Reread(t.Context(), "c.md", nil); err == nil || len(told()) != 1 {
		t.Errorf("read anew: %v, troubles %v", err, told())
	}
	must(t, u.Dir.WriteFile("c.md", []byte("Good."), 0o600))
	if _, err := u.Reread(t.Context(), "c.md", nil); err != nil || len(told()) != 0 {
		t.Errorf("read anew: %v, troubles %v", err, told())
	}
}

// Metadata that was given with an upload holds over that of its file, for as long as it
// is stored.
func TestGivenMetadata(t *testing.T) {
	u, sink, _ := newUploads(t)
	add := func(name, text string, meta map[string]string) func() (Change, error) {
		return func() (Change, error) { return u.Add(t.Context(), name, strings.NewReader(text), meta) }
	}
	reread := func(name string, meta map[string]string) func() (Change, error) {
		return func() (Change, error) { return u.Reread(t.Context(), name, meta) }
	}
	note := func(text string) string { return "---\nauthor: Ada\ntags: [a]\n---\n" + text }
	archive := func(pairs ...string) string { return string(zipped(t, pairs...).Data) }
	for _, step := range []struct {
		what string
		do   func() (Change, error)
		id   string
		want string // tags, author and the names of those given
	}{
		{"added", add("a.md", note("First."), map[string]string{"tags": "x, y"}), "a.md", "x, y|Ada|tags"},
		{"replaced", add("a.md", note("Second."), nil), "a.md", "x, y|Ada|tags"},
		{"given more", add("a.md", note("Second."), map[string]string{"author": " Grace\n Hopper\x00"}), "a.md",
			"x, y|Grace Hopper|author, tags"},
		{"reread", reread("a.md", nil), "a.md", "x, y|Grace Hopper|author, tags"},
		{"taken", reread("a.md", map[string]string{"tags": ""}), "a.md", "a|Grace Hopper|author"},
		{"refused", add("a.md", "\x7fELF", map[string]string{"author": "Eve"}), "a.md", "a|Grace Hopper|author"},
		{"synced", func() (Change, error) {
			u.Syncer.Force = true
			defer func() { u.Syncer.Force = false }()
			return Change{}, u.Sync(t.Context())
		}, "a.md", "a|Grace Hopper|author"},
		{"renamed in its folder", func() (Change, error) {
			must(t, u.Dir.Rename("a.md", "b.md"))
			return Change{}, u.Sync(t.Context())
		}, "b.md", "a|Grace Hopper|author"},
		{"an archive", add("z.zip", archive("one.md", note("One.")), map[string]string{"tags": "z"}), "z.zip/one.md", "z|Ada|tags"},
		{"a file more", add("z.zip", archive("one.md", note("One."), "two.md", "Two."), nil), "z.zip/two.md", "z||tags"},
		{"relabelled", reread("z.zip", map[string]string{"tags": "zz"}), "z.zip/one.md", "zz|Ada|tags"},
	} {
		_, err := step.do()
		if unreadable := (*UnreadableError)(nil); err != nil && !errors.As(err, &unreadable) {
			t.Errorf("%s: %v", step.what, err)
		}
		doc := sink.docs["uploads/"+step.id]
		if doc == nil {
			t.Fatalf("%s: it is not stored", step.what)
		}
		if got := doc.Meta["tags"] + "|" + doc.Meta["author"] + "|" + doc.Meta[GivenKey]; got != step.want {
			t.Errorf("%s: %q, want %q", step.what, got, step.want)
		}
	}
}
