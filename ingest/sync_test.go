package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// A memory is a sink that keeps everything in maps.
type memory struct {
	docs     map[string]*Document
	chunks   map[string][]Chunk
	replaced []string // ids, in order
	fail     func(id string) error
}

func newMemory() *memory {
	return &memory{docs: make(map[string]*Document), chunks: make(map[string][]Chunk)}
}

func (m *memory) Known(_ context.Context, root Root) (map[string]Stored, error) {
	known := make(map[string]Stored)
	for _, d := range m.docs {
		if d.Root == root.Name {
			known[d.Path] = Stored{d.Digest, d.Meta}
		}
	}
	return known, nil
}

func (m *memory) Replace(ctx context.Context, doc *Document, chunks []Chunk) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.fail != nil {
		if err := m.fail(doc.ID); err != nil {
			return err
		}
	}
	m.docs[doc.ID], m.chunks[doc.ID] = doc, chunks
	m.replaced = append(m.replaced, doc.ID)
	return nil
}

func (m *memory) Rename(_ context.Context, from string, to *Document) error {
	if m.docs[from] == nil {
		return fmt.Errorf("no document %s", from)
	}
	m.chunks[to.ID] = m.chunks[from]
	delete(m.docs, from)
	delete(m.chunks, from)
	m.docs[to.ID] = to
	return nil
}

func (m *memory) Delete(_ context.Context, id string) error {
	delete(m.docs, id)
	delete(m.chunks, id)
	return nil
}

var harbour = Root{Name: "harbour", Path: "/srv/harbour", Collection: DefaultCollection}

// syncAll returns a line for each change.
func syncAll(t *testing.T, s *Syncer, fsys fs.FS) (lines []string, err error) {
	t.Helper()
	last := 0
	for c, e := range s.Sync(t.Context(), harbour, fsys) {
		if e != nil {
			return lines, e
		}
		if c.Document != "harbour/"+c.Path || c.Root != "harbour" || c.Done < last || c.Done > c.Total {
			t.Errorf("change %+v", c)
		}
		last = c.Done
		line := fmt.Sprintf("%s %s", c.Action, c.Path)
		if c.From != "" {
			line += " from " + c.From
		}
		if c.CopyOf != "" {
			line += " as a copy of " + c.CopyOf
		}
		if c.Reason != "" {
			line += ": " + c.Reason
		}
		lines = append(lines, line)
	}
	return lines, nil
}

func file1(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o644} }

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// goldenLines compares changes with a file of testdata/sync, which -update writes.
func goldenLines(t *testing.T, name string, got []string) {
	t.Helper()
	checkGolden(t, filepath.Join("testdata", "sync", name+".golden"), strings.Join(got, "\n")+"\n")
}

func TestSync(t *testing.T) {
	sink := newMemory()
	s := &Syncer{Sink: sink}
	fsys := fstest.MapFS{
		"a.md":             file1("# A\n\nFirst."),
		"b/b.txt":          file1("Second."),
		"b/c.html":         file1("<p>Third."),
		"b/.hidden.md":     file1("hidden"),
		".git/x.md":        file1("hidden"),
		"empty.md":         file1(""),
		"photo.jpeg":       file1("\xff\xd8"),
		"binary.md":        file1("\x7fELF\x00\x00"),
		"build/out.md":     file1("ignored"),
		"b/notes.log":      file1("ignored"),
		"b/keep.log":       file1("kept"),
		"link.md":          {Data: []byte("a.md"), Mode: fs.ModeSymlink},
		"pipe.md":          {Mode: fs.ModeNamedPipe},
		".gitignore":       file1("build/\n*.log\n!keep.log\n"),
		"b/sub/.gitignore": file1("/x.md\n"),
		"b/sub/x.md":       file1("ignored"),
		"b/sub/y/x.md":     file1("not ignored"),
	}
	got, err := syncAll(t, s, fsys)
	must(t, err)
	goldenLines(t, "folder", got)
	if c := sink.chunks["harbour/a.md"]; len(c) != 1 || c[0].ID != "harbour/a.md#1" || c[0].Heading != "A" {
		t.Errorf("stored chunks %+v", c)
	}

	sink.replaced = nil
	fsys["a.md"] = file1("# A\n\nChanged.")
	fsys["moved/b.txt"] = fsys["b/b.txt"]
	delete(fsys, "b/b.txt")
	delete(fsys, "b/c.html")
	fsys["b/keep.log"] = file1("")
	fsys["b/sub/y/x.md"] = file1("%PDF-1.4")
	delete(fsys, "photo.jpeg")
	got, err = syncAll(t, s, fsys)
	must(t, err)
	goldenLines(t, "folder2", got)
	wantLines(t, sink.replaced, "harbour/a.md")
	wantLines(t, slices.Sorted(maps.Keys(sink.docs)), "harbour/a.md", "harbour/b/sub/y/x.md", "harbour/moved/b.txt")

	delete(fsys, "b/sub/y/x.md")
	delete(fsys, "binary.md")
	got, err = syncAll(t, s, fsys)
	must(t, err)
	goldenLines(t, "folder3", got)
}

func TestSyncStopsAfterTheDocumentInHand(t *testing.T) {
	sink := newMemory()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sink.fail = func(id string) error {
		if id == "harbour/004.md" {
			cancel() // while it is being stored
		}
		return nil
	}
	var seen []string
	var last error
	for c, err := range (&Syncer{Sink: sink}).Sync(ctx, harbour, manyFiles(50)) {
		if err != nil {
			last = err
			continue
		}
		seen = append(seen, c.Path)
	}
	wantLines(t, seen, "000.md", "001.md", "002.md", "003.md", "004.md")
	if !errors.Is(last, context.Canceled) || len(sink.docs) != 5 {
		t.Errorf("ended with %v, %d stored", last, len(sink.docs))
	}
}

func TestSyncTellsTheSinksFailureFromADocuments(t *testing.T) {
	sink := newMemory()
	refused := errors.New("no space left")
	sink.fail = func(id string) error {
		if id == "harbour/b.md" {
			return refused
		}
		return nil
	}
	fsys := fstest.MapFS{"a.md": file1("A."), "b.md": file1("B."), "c.md": file1("C."), "d.md": file1("D."), "e.md": file1("E.")}
	got, err := syncAll(t, &Syncer{Sink: sink}, fsys)
	must(t, err)
	wantLines(t, got, "added a.md", "failed b.md: storing it: no space left", "added c.md", "added d.md", "added e.md")

	sink = newMemory()
	sink.fail = func(string) error { return refused }
	got, err = syncAll(t, &Syncer{Sink: sink}, fsys)
	wantLines(t, got, "failed a.md: storing it: no space left", "failed b.md: storing it: no space left")
	if !errors.Is(err, refused) {
		t.Errorf("ended with %v", err)
	}
}

// A walled FS has folders that cannot be listed and files that cannot be opened.
type walled struct {
	fstest.MapFS
	closed string
}

func (w walled) Open(name string) (fs.File, error) {
	if name == w.closed {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return w.MapFS.Open(name)
}

func (w walled) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == w.closed {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return w.MapFS.ReadDir(name)
}

func TestSyncKeepsWhatItCannotSee(t *testing.T) {
	sink := newMemory()
	s := &Syncer{Sink: sink}
	fsys := fstest.MapFS{"a.md": file1("A."), "sub/b.md": file1("B."), "sub/deep/c.md": file1("C.")}
	if _, err := syncAll(t, s, fsys); err != nil {
		t.Fatal(err)
	}
	got, err := syncAll(t, s, walled{fsys, "sub"})
	must(t, err)
	wantLines(t, got, "unchanged a.md", "failed sub: the folder cannot be listed (permission denied); its stored documents are kept")
	got, err = syncAll(t, s, walled{fsys, "sub/b.md"})
	must(t, err)
	wantLines(t, got, "unchanged a.md", "failed sub/b.md: it cannot be opened: permission denied; the stored version is kept",
		"unchanged sub/deep/c.md")
	if len(sink.docs) != 3 {
		t.Errorf("%d stored", len(sink.docs))
	}
	if _, err := syncAll(t, s, walled{fsys, "."}); !errors.Is(err, fs.ErrPermission) || len(sink.docs) != 3 {
		t.Errorf("an unreadable root: %v, %d stored", err, len(sink.docs))
	}
}

// An unchanged file is read again if a newer version of the reader is available,
// but not if only an older one is.
func TestBetterReader(t *testing.T) {
	fsys := fstest.MapFS{
		"rates.pdf": {Data: testPDF(t, "rates.pdf"), Mode: 0o644},
		"note.md":   file1("# Note\n\nNot a PDF file."),
	}
	sink := newMemory()
	for _, step := range []struct {
		what, stored string // stored documents are marked as read by stored before
		want         Action
		reader       string
	}{
		{"first", "", Added, readerName()},
		{"the same", readerName(), Unchanged, readerName()},
		{"newer", "go 1", Updated, readerName()},
		{"older", "go 99", Unchanged, "go 99"},
		{"stored before it was noted", " ", Updated, readerName()},
	} {
		if step.stored != "" {
			sink.docs["harbour/rates.pdf"].Meta[ReaderKey] = step.stored
		}
		s := &Syncer{Sink: sink}
		for c, err := range s.Sync(t.Context(), harbour, fsys) {
			must(t, err)
			if c.Path == "rates.pdf" && c.Action != step.want || c.Path == "note.md" && step.stored != "" && c.Action != Unchanged {
				t.Errorf("%s: %s %s", step.what, c.Path, c.Action)
			}
		}
		if got := sink.docs["harbour/rates.pdf"].Meta[ReaderKey]; got != step.reader {
			t.Errorf("%s: stored as read by %q, want %q", step.what, got, step.reader)
		}
	}

	// A renamed document keeps its text and the name of its reader, unless it would
	// be read better.
	fsys["moved.pdf"] = fsys["rates.pdf"]
	delete(fsys, "rates.pdf")
	sink.docs["harbour/rates.pdf"].Meta[ReaderKey] = "pdftotext 99"
	lines, err := syncAll(t, &Syncer{Sink: sink}, fsys)
	must(t, err)
	wantLines(t, lines, "renamed moved.pdf from rates.pdf", "unchanged note.md")
	if got := sink.docs["harbour/moved.pdf"].Meta[ReaderKey]; got != "pdftotext 99" {
		t.Errorf("renamed, it is stored as read by %q", got)
	}
	fsys["again.pdf"] = fsys["moved.pdf"]
	delete(fsys, "moved.pdf")
	sink.docs["harbour/moved.pdf"].Meta[ReaderKey] = "go 0"
	if lines, err = syncAll(t, &Syncer{Sink: sink}, fsys); err != nil {
		t.Fatal(err)
	}
	wantLines(t, lines, "added again.pdf", "unchanged note.md", "removed moved.pdf")
}

// TestSyncFormerIDs checks that a document keeps the ids that it had, also when it is
// edited, and that its file cannot set them.
func TestSyncFormerIDs(t *testing.T) {
	sink := newMemory()
	s := &Syncer{Sink: sink}
	fsys := fstest.MapFS{"a.md": file1("---\nformer_ids: harbour/secret.md\n---\nFirst.")}
	move := func(from, to string) {
		fsys[to] = fsys[from]
		delete(fsys, from)
	}
	edit := func(name, text string) { fsys[name] = file1(text) }
	for _, step := range []struct {
		change func()
		want   map[string][]string
	}{
		{func() {}, map[string][]string{"harbour/a.md": nil}},
		{func() { edit("a.md", "Second.") }, map[string][]string{"harbour/a.md": nil}},
		{func() { move("a.md", "b.md") }, map[string][]string{"harbour/b.md": {"harbour/a.md"}}},
		{func() { edit("b.md", "Third.") }, map[string][]string{"harbour/b.md": {"harbour/a.md"}}},
		{func() { move("b.md", "c.md"); edit("a.md", "Another.") },
			map[string][]string{"harbour/a.md": nil, "harbour/c.md": {"harbour/b.md", "harbour/a.md"}}},
		{func() { move("c.md", "b.md") }, map[string][]string{"harbour/a.md": nil, "harbour/b.md": {"harbour/c.md", "harbour/a.md"}}},
		{func() { delete(fsys, "b.md") }, map[string][]string{"harbour/a.md": nil}},
	} {
		step.change()
		_, err := syncAll(t, s, fsys)
		must(t, err)
		got := map[string][]string{}
		for id, d := range sink.docs {
			got[id] = FormerIDs(d.Meta)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// TestIgnoreLikeGit compares the rules with those of git.
func TestIgnoreLikeGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		p := filepath.Join(dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(p), 0o700))
		must(t, os.WriteFile(p, []byte(text), 0o600))
	}
	write(".gitignore", "# comment\n*.log\n!keep.log\n/top.md\nbuild/\ndocs/*.txt\n**/deep/x.md\na[bc].md\n\\#odd.md\nspace.md "+
		"\nfoo/**\n!foo/keep\n{brace}.md\nq?.md\n")
	write("docs/.gitignore", "local.md\n/anchored.md\n!keep.txt\n")
	files := []string{
		"a.log", "keep.log", "docs/b.log", "top.md", "docs/top.md", "build/x.md", "docs/build/y.md", "docs/a.txt", "docs/keep.txt",
		"docs/sub/a.txt", "deep/x.md", "docs/deep/x.md", "ab.md", "ad.md", "#odd.md", "space.md", "docs/local.md", "docs/sub/local.md",
		"local.md", "docs/anchored.md", "docs/sub/anchored.md", "foo/keep", "foo/other.md", "{brace}.md", "brace.md", "q1.md", "q12.md",
	}
	for _, f := range files {
		write(f, "Text.")
	}
	if out, err := exec.CommandContext(t.Context(), git, "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Skipf("git init: %v %s", err, out)
	}
	seen := map[string]bool{}
	for c, err := range (&Syncer{Sink: newMemory()}).Sync(t.Context(), harbour, os.DirFS(dir)) {
		must(t, err)
		seen[c.Path] = true
	}
	for _, f := range files {
		err := exec.CommandContext(t.Context(), git, "-C", dir, "check-ignore", "-q", "--no-index", f).Run()
		if ignored := err == nil; ignored == seen[f] {
			t.Errorf("%s: git leaves it out: %v; seen: %v", f, ignored, seen[f])
		}
	}
}
