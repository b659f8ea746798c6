package retrieve_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	_ "modernc.org/sqlite"

	"ibid/ingest"
	"ibid/retrieve"
	"ibid/retrieve/index"
	"ibid/retrieve/library"
	"ibid/retrieve/state"
)

var (
	_ ingest.Preparer = (*retrieve.Index)(nil)
)

// counting records every text that it embeds.
type counting struct {
	hashing
	mu    sync.Mutex
	texts []string
}

func (c *counting) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	c.mu.Lock()
	c.texts = append(c.texts, texts...)
	c.mu.Unlock()
	return c.hashing.Embed(ctx, texts)
}

// since returns the texts embedded since the last call, sorted.
func (c *counting) since() []string {
	texts := c.texts
	c.texts = nil
	slices.Sort(texts)
	return texts
}

func syncFolder(t *testing.T, x *retrieve.Index, root ingest.Root, files fstest.MapFS) (lines []string) {
	t.Helper()
	for c, err := range (&ingest.Syncer{Sink: x}).Sync(t.Context(), root, files) {
		must(t, err)
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%s %s %s", c.Action, c.Path, c.From), " "))
	}
	return lines
}

// TestSyncEmbedsOnlyChanges checks that a changed document embeds only its changed
// chunks, and a renamed one none.
func TestSyncEmbedsOnlyChanges(t *testing.T) {
	m := &counting{hashing: testSpace}
	dir := t.TempDir()
	e := openState(t, dir)
	x := newIndex(t, e, m)
	root, err := x.AddRoot(t.Context(), "/srv/harbour", "")
	must(t, err)
	section := func(heading, word string) string {
		return "## " + heading + "\n\n" + strings.Repeat("The "+word+" is seen to by the harbour master every morning. ", 4) + "\n\n"
	}
	text := func(words ...string) *fstest.MapFile {
		out := "# Handbook\n\n"
		for i, w := range words {
			out += section(fmt.Sprintf("Part %c", 'A'+i), w)
		}
		return &fstest.MapFile{Data: []byte(out)}
	}
	check := func(step string, lines []string, want []string, embedded int, with string) {
		t.Helper()
		got := m.since()
		if !slices.Equal(lines, want) || len(got) != embedded {
			t.Errorf("%s: changes = %q with %d texts embedded, want %q with %d: %q", step, lines, len(got), want, embedded, got)
		}
		for _, s := range got {
			if !strings.Contains(s, with) {
				t.Errorf("%s: embedded %q", step, s)
			}
		}
	}
	m.since()
	files := fstest.MapFS{"a.md": text("ferry", "crane", "buoy", "lamp")}
	check("new", syncFolder(t, x, root, files), []string{"added a.md"}, 4, "harbour master")
	before, vectors, err := e.DocumentChunks(t.Context(), "harbour/a.md")
	must(t, err)

	files["a.md"] = text("ferry", "crane", "mast", "lamp")
	check("one section changed", syncFolder(t, x, root, files), []string{"updated a.md"}, 1, "mast")
	after, now, err := e.DocumentChunks(t.Context(), "harbour/a.md")
	must(t, err)
	for i := range before {
		if same := before[i].Text == after[i].Text && slices.Equal(vectors[i], now[i]); same == (i == 2) {
			t.Errorf("vector of %s unchanged = %t", before[i].ID, same)
		}
	}

	// A heading is embedded with the text below it.
	files["a.md"].Data = bytes.Replace(files["a.md"].Data, []byte("Part B"), []byte("The quay"), 1)
	check("one heading changed", syncFolder(t, x, root, files), []string{"updated a.md"}, 1, "The quay")
	// A new section moves later sections, which keep their vectors.
	files["a.md"].Data = bytes.Replace(files["a.md"].Data, []byte("## The quay"), []byte(section("Opening", "gate")+"## The quay"), 1)
	check("one section more", syncFolder(t, x, root, files), []string{"updated a.md"}, 1, "gate")
	files["b/c.md"] = files["a.md"]
	delete(files, "a.md")
	check("renamed", syncFolder(t, x, root, files), []string{"renamed b/c.md a.md"}, 0, "")
	if ids := found(t, x, retrieve.Query{Text: "the gate in the morning", K: 1}); len(m.since()) != 1 ||
		!slices.Equal(ids, []string{"harbour/b/c.md#2"}) {
		t.Errorf("found = %q", ids)
	}
	// The vectors of a document that another process has stored are kept too.
	files["b/c.md"].Data = append(files["b/c.md"].Data, section("Part E", "oar")...)
	check("by another process", syncFolder(t, newIndex(t, openState(t, dir), m), root, files), []string{"updated b/c.md"}, 1, "oar")
}

// TestSyncRemovesDeletedDocuments checks that a deleted document is in no table, no
// index and no byte of the library.
func TestSyncRemovesDeletedDocuments(t *testing.T) {
	dir := t.TempDir()
	lib, err := library.Open(t.Context(), library.Place{Data: dir}, testSpace, library.Options{})
	must(t, err)
	x := lib.Index
	root, err := x.AddRoot(t.Context(), "/srv/harbour", "")
	must(t, err)
	secret := func(word string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("---\nauthor: " + word + "author\n---\n# " + word + "title\n\n" +
			strings.Repeat("The "+word+"word is spoken at dusk. ", 200))}
	}
	files := fstest.MapFS{"kept.md": secret("kept"), "gone.md": secret("gone"), "emptied.md": secret("emptied"),
		"changed.md": secret("changed"), "hidden/h.md": secret("hidden")}
	syncFolder(t, x, root, files)
	delete(files, "gone.md")
	files["emptied.md"] = &fstest.MapFile{}
	files["changed.md"] = secret("fresh")
	files[".ibidignore"] = &fstest.MapFile{Data: []byte("hidden/\n")}
	lines := syncFolder(t, x, root, files)
	if want := []string{"updated changed.md", "skipped emptied.md", "unchanged kept.md", "removed gone.md",
		"removed hidden/h.md"}; !slices.Equal(lines, want) {
		t.Fatalf("changes = %q, want %q", lines, want)
	}
	for _, word := range []string{"gone", "emptied", "changed", "hidden"} {
		if ids := found(t, x, retrieve.Query{Text: word + "word", K: 5,
			Filter: retrieve.Filter{Document: "harbour/" + word + ".md"}}); word != "changed" && len(ids) > 0 {
			t.Errorf("%s is found: %q", word, ids)
		}
		stats, err := x.Stats(t.Context(), retrieve.Terms(word+"word"))
		must(t, err)
		for term, n := range stats.Frequency {
			if n != 0 {
				t.Errorf("the term %q is counted in %d chunks", term, n)
			}
		}
	}
	must(t, lib.Close())
	e := openState(t, dir)
	must(t, library.Purge(t.Context(), library.Place{Data: dir}, e))
	must(t, e.Close())

	db, err := sql.Open("sqlite", filepath.Join(dir, state.FileName))
	must(t, err)
	defer db.Close()
	count := func(query string) (n int) {
		t.Helper()
		must(t, db.QueryRowContext(t.Context(), query).Scan(&n))
		return n
	}
	if n := count(`SELECT count(*) FROM documents`); n != 2 {
		t.Errorf("%d documents, want 2", n)
	}
	for table, rows := range map[string]string{
		"chunks": "key >> 20 NOT IN (SELECT number FROM documents)", "texts": "number NOT IN (SELECT number FROM documents)",
		"vectors": "digest NOT IN (SELECT digest FROM chunks)",
	} {
		if n := count(`SELECT count(*) FROM ` + table + ` WHERE ` + rows); n != 0 {
			t.Errorf("%d rows without a document in %s", n, table)
		}
	}
	if n := count(`SELECT count(*) FROM vectors`); n == 0 {
		t.Error("no vectors")
	}
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, word := range []string{"gone", "emptied", "changed", "hidden"} {
			for _, kind := range []string{"word", "title", "author"} {
				if bytes.Contains(data, []byte(word+kind)) {
					t.Errorf("%s still contains %q", entry.Name(), word+kind)
				}
			}
		}
		if entry.Name() == state.FileName && !bytes.Contains(data, []byte("keptword")) {
			t.Error("the store does not contain its words in plain text, so the test shows nothing")
		}
		return nil
	}))
}

// TestRenameTwice checks that if two servers follow one folder, the second finds a file
// already renamed.
func TestRenameTwice(t *testing.T) {
	e := openState(t, t.TempDir())
	x, y := newIndex(t, e, testSpace), newIndex(t, e, testSpace)
	_, err := x.AddRoot(t.Context(), "/srv/a", "")
	must(t, err)
	store(t, x, "a", "old", "Title", "one text")
	for _, title := range []string{"Title", "Another"} {
		to, _ := document("a", "new "+title, title, "one text")
		must(t, x.Rename(t.Context(), "a/old", to))
		must(t, y.Rename(t.Context(), "a/old", to))
		other := *to
		other.Digest = "another"
		if err := y.Rename(t.Context(), "a/old", &other); !errors.Is(err, retrieve.ErrNotFound) {
			t.Errorf("file with other content: err = %v, want ErrNotFound", err)
		}
		must(t, x.Rename(t.Context(), to.ID, &ingest.Document{ID: "a/old", Root: "a", Path: "old", Title: "Title", Digest: to.Digest}))
	}
}

// TestLostHistory replaces the library with an older copy, and stores fewer, as many and more
// documents than were lost, which get the numbers and revisions of the lost ones. The search index
// of the lost documents must not be used for them.
func TestLostHistory(t *testing.T) {
	for _, n := range []int{10, 81, 90} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { loseHistory(t, n) })
	}
}

func loseHistory(t *testing.T, n int) {
	dir, indexDir := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, state.FileName)
	ctx := t.Context()
	with := func(indexDir string, f func(s *state.Store, x *retrieve.Index)) {
		t.Helper()
		s, err := state.Open(ctx, dir, state.Options{})
		must(t, err)
		name, err := s.Library(ctx)
		must(t, err)
		searcher := index.Open(indexDir, index.Options{Library: name, Space: testSpace.Space(), Flush: 4})
		x, err := retrieve.NewIndex(ctx, s, searcher, testSpace, retrieve.Options{})
		must(t, err)
		f(s, x)
		must(t, searcher.Close())
		must(t, s.Close())
	}
	add := func(x *retrieve.Index, word string, n int) {
		t.Helper()
		for i := range n {
			store(t, x, "a", fmt.Sprint(word, i), "Title", fmt.Sprintf("%s number%d", word, i))
		}
	}
	with(indexDir, func(s *state.Store, x *retrieve.Index) {
		_, err := x.AddRoot(ctx, "/srv/a", "")
		must(t, err)
		add(x, "alpha", 30)
		must(t, x.Follow(ctx))
	})
	older, err := os.ReadFile(file)
	must(t, err)
	with(indexDir, func(s *state.Store, x *retrieve.Index) {
		add(x, "beta", 80)
		must(t, s.Delete(ctx, "a/alpha3"))
		must(t, x.Follow(ctx))
	})
	must(t, os.WriteFile(file, older, 0o600))
	with(t.TempDir(), func(_ *state.Store, x *retrieve.Index) { add(x, "gamma", n) })
	with(indexDir, func(_ *state.Store, x *retrieve.Index) {
		for _, want := range []struct {
			word   string
			number int
		}{{"gamma", 7}, {"alpha", 3}, {"gamma", 9}, {"alpha", 29}} {
			got := found(t, x, retrieve.Query{Text: fmt.Sprintf("%s number%d", want.word, want.number), K: 3})
			if id := fmt.Sprintf("a/%s%d#1", want.word, want.number); len(got) == 0 || got[0] != id {
				t.Errorf("found = %q, want %s", got, id)
			}
		}
	})
}
