package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/fstest"

	"ibid/data/datatest"
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

func (m *memory) StoredDocuments(_ context.Context, root Root) (map[string]Stored, error) {
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
			t.Errorf("change = %+v", c)
		}
		last = c.Done
		lines = append(lines, changeLine(c))
	}
	return lines, nil
}

func changeLine(c Change) string {
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
	return line
}

func file1(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o644} }

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	datatest.Same(t, "changes", want, got)
}

func TestSyncStopsAfterCurrentDocument(t *testing.T) {
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
		t.Errorf("err = %v, %d stored; want canceled, 5", last, len(sink.docs))
	}
}

func TestSyncSinkFailure(t *testing.T) {
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
		t.Errorf("err = %v, want the sink's", err)
	}
}

// TestIgnoreLikeGit compares the results of ignore rules with git's.
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
			t.Errorf("%s: ignored by git = %v; seen = %v", f, ignored, seen[f])
		}
	}
}
