package state

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"ibid/ingest"
	"ibid/retrieve"
)

const testSpace = "test/4"

// vectorsFor returns a vector for each chunk, that of its embedding text alone.
func vectorsFor(doc *ingest.Document, chunks []ingest.Chunk) [][]float32 {
	vectors := make([][]float32, len(chunks))
	for i, c := range chunks {
		d := retrieve.DigestOf(ingest.EmbeddingText(doc.Title, c))
		vectors[i] = vectorAt(float64(d[0]) + float64(d[1])/256)
	}
	return vectors
}

func put(t testing.TB, s *Store, root, path string, texts ...string) *ingest.Document {
	t.Helper()
	must(t, replace(s, root, path, texts...))
	doc, _ := newDocument(root, path, texts...)
	return doc
}

func replace(s *Store, root, path string, texts ...string) error {
	doc, chunks := newDocument(root, path, texts...)
	return s.Replace(context.Background(), testSpace, doc, chunks, vectorsFor(doc, chunks))
}

func ready(t testing.TB, s *Store, roots ...string) context.Context {
	t.Helper()
	ctx := context.Background()
	for _, r := range roots {
		_, err := s.AddRoot(ctx, "/srv/"+r, "")
		must(t, err)
	}
	return ctx
}

// onStore runs a test over both dialects, on a library with these roots.
func onStore(t *testing.T, test func(ctx context.Context, t *testing.T, s *Store), roots ...string) {
	onBoth(t, func(t *testing.T, address string) {
		s := openTest(t, address)
		test(ready(t, s, roots...), t, s)
	})
}

// A follower keeps the same data as a searcher.
type follower struct {
	revision  int64
	documents map[int64]retrieve.Change
}

// follow applies new changes, and checks the guarantees to every follower.
func (f *follower) follow(t testing.TB, s *Store) {
	t.Helper()
	if f.documents == nil {
		f.documents = make(map[int64]retrieve.Change)
	}
	seen := make(map[int64]int64)
	for c, err := range s.Changes(context.Background(), testSpace, f.revision) {
		must(t, err)
		if c.Revision <= f.revision {
			t.Errorf("revision %d after %d", c.Revision, f.revision)
		}
		if before, ok := seen[c.Document]; ok && before == c.Revision {
			t.Errorf("document %d comes twice with revision %d", c.Document, before)
		}
		seen[c.Document], f.revision = c.Revision, c.Revision
		delete(f.documents, c.Document)
		if !c.Deleted && c.Document != 0 {
			f.documents[c.Document] = c
		}
	}
}

// ids returns the ids of the documents in order.
func (f *follower) ids() (ids []string) {
	for _, c := range f.documents {
		ids = append(ids, c.Info.ID)
	}
	slices.Sort(ids)
	return ids
}

// same checks that a store and a follower have the same documents, and that a
// new follower gets them.
func (f *follower) same(t testing.TB, s *Store) {
	t.Helper()
	ctx := context.Background()
	f.follow(t, s)
	var fresh follower
	fresh.follow(t, s)
	if diff := gocmp.Diff(f.documents, fresh.documents); diff != "" {
		t.Errorf("a new follower (-old +new):\n%s", diff)
	}
	list, err := s.Documents(ctx, retrieve.Filter{})
	must(t, err)
	var ids []string
	chunks := 0
	for _, d := range list {
		ids, chunks = append(ids, d.ID), chunks+d.Chunks
	}
	if got := f.ids(); !slices.Equal(got, ids) {
		t.Errorf("followed %q, listed %q", got, ids)
	}
	if d, c, err := s.Count(ctx, retrieve.Filter{}); d != len(list) || c != chunks || err != nil {
		t.Errorf("counted %d documents and %d chunks, %v; listed %d and %d", d, c, err, len(list), chunks)
	}
	for number, c := range f.documents {
		var hits []retrieve.Hit
		for i := range c.Chunks {
			hits = append(hits, retrieve.Hit{Document: number, Generation: c.Revision, Ordinal: i + 1})
		}
		found, err := s.Chunks(ctx, hits)
		must(t, err)
		whole, vectors, err := s.DocumentChunks(ctx, c.Info.ID)
		must(t, err)
		doc, err := s.Document(ctx, c.Info.ID)
		must(t, err)
		if len(found) != len(hits) || len(whole) != len(hits) {
			t.Errorf("%s has %d chunks, %d found and %d listed", c.Info.ID, len(hits), len(found), len(whole))
			continue
		}
		for i, x := range found {
			if diff := gocmp.Diff(x.Chunk, whole[i]); diff != "" || doc.Text[x.Start:x.End] != x.Text ||
				ingest.EmbeddingText(doc.Title, x.Chunk) != c.Chunks[i].Text || !slices.Equal(vectors[i], c.Chunks[i].Vector) {
				t.Errorf("chunk %d of %s: %s", i+1, c.Info.ID, diff)
			}
		}
	}
	if revision, _, err := s.Revision(ctx); revision != f.revision || err != nil {
		t.Errorf("the revision is %d, %v; followed to %d", revision, err, f.revision)
	}
}

// count returns a number that a query counts.
func count(t testing.TB, s *Store, query string, args ...any) (n int) {
	t.Helper()
	must(t, s.view(context.Background(), func(tx *tx) { n = value[int](tx, query, args...) }))
	return n
}

// execute runs a statement.
func execute(t testing.TB, s *Store, query string, args ...any) (rows int64) {
	t.Helper()
	must(t, s.update(context.Background(), func(tx *tx) { rows = tx.exec(query, args...) }))
	return rows
}

func TestEmpty(t *testing.T) {
	onBoth(t, func(t *testing.T, address string) {
		s, ctx := openTest(t, address), t.Context()
		if space, err := s.Space(ctx); space != "" || err != nil {
			t.Errorf("Space = %q, %v", space, err)
		}
		for name, f := range map[string]func() error{
			"Document":       func() error { _, err := s.Document(ctx, "a/b"); return err },
			"DocumentChunks": func() error { _, _, err := s.DocumentChunks(ctx, "a/b"); return err },
			"DeleteRoot":     func() error { _, err := s.DeleteRoot(ctx, "a", false); return err },
			"Rename": func() error {
				doc, _ := newDocument("a", "b", "boat")
				return s.Rename(ctx, "a/c", doc)
			},
			"Replace": func() error { return replace(s, "a", "b", "boat") },
		} {
			if err := f(); !errors.Is(err, retrieve.ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
		must(t, s.Delete(ctx, "a/b"))
		if found, err := s.Chunks(ctx, []retrieve.Hit{{Document: 1, Generation: 1, Ordinal: 1}, {}}); len(found) > 0 || err != nil {
			t.Errorf("Chunks = %v, %v", found, err)
		}
		for c, err := range s.Changes(ctx, "any", 0) {
			t.Errorf("a change: %+v, %v", c, err)
		}
		ready(t, s, "a")
		put(t, s, "a", "b", "boat")
		if space, err := s.Space(ctx); space != testSpace || err != nil {
			t.Errorf("the space of the first document is %q, %v", space, err)
		}
	})
}

// refuseRename renames the stored document to itself with another title or
// content.
func refuseRename(t *testing.T, s *Store, to *ingest.Document) {
	t.Helper()
	for what, spoil := range map[string]func(*ingest.Document){
		"title": func(d *ingest.Document) { d.Title += "." }, "content": func(d *ingest.Document) { d.Digest += "." },
	} {
		wrong := *to
		spoil(&wrong)
		if err := s.Rename(t.Context(), to.ID, &wrong); err == nil {
			t.Errorf("a document with another %s was renamed", what)
		}
	}
}

func TestDocuments(t *testing.T) {
	onBoth(t, func(t *testing.T, address string) {
		s, other := openTest(t, address), openTest(t, address)
		ctx := ready(t, s, "a", "b")
		var f follower
		doc := put(t, s, "a", "x.md", "a boat in the harbour", "a train in the station")
		f.same(t, other)
		number := count(t, s, `SELECT number FROM ibid.documents`)
		got, err := other.Document(ctx, "a/x.md")
		must(t, err)
		if diff := gocmp.Diff(doc, got); diff != "" {
			t.Errorf("Document (-want +got):\n%s", diff)
		}
		old := f.revision
		put(t, s, "a", "x.md", "a plane at the airport", "a train in the station")
		put(t, s, "a", "y.md", "a train in the station") // another title: another text
		f.same(t, other)
		if n := count(t, s, `SELECT number FROM ibid.documents WHERE id = ?`, "a/x.md"); n != number {
			t.Errorf("a document that was replaced has number %d, before it was %d", n, number)
		}
		if found, err := s.Chunks(ctx, []retrieve.Hit{{Document: int64(number), Generation: old, Ordinal: 1}}); len(found) > 0 || err != nil {
			t.Errorf("a hit of an old generation: %v, %v", found, err)
		}
		if n := count(t, s, `SELECT count(*) FROM ibid.vectors`); n != 3 {
			t.Errorf("%d vectors for 3 different chunks", n)
		}
		empty, _ := newDocument("a", "empty")
		must(t, s.Replace(ctx, testSpace, empty, nil, nil))
		f.same(t, other)

		to, _ := newDocument("b", "y.md", "a train in the station")
		to.Meta = map[string]string{"author": "Bob"}
		must(t, s.Rename(ctx, "a/y.md", to))
		f.same(t, other)
		if got, err := other.Document(ctx, "b/y.md"); err != nil || got.Meta["author"] != "Bob" || got.Root != "b" {
			t.Errorf("the document renamed is %+v, %v", got, err)
		}
		refuseRename(t, s, to)
		must(t, s.Delete(ctx, "a/x.md"))
		f.same(t, other)
		put(t, s, "a", "x.md", "a plane at the airport")
		if n := count(t, s, `SELECT number FROM ibid.documents WHERE id = ?`, "a/x.md"); n <= number {
			t.Errorf("a new document got the number %d, and %d is the number of a deleted one", n, number)
		}
		n, err := s.DeleteRoot(ctx, "a", false)
		if n != 2 || err != nil {
			t.Errorf("DeleteRoot = %d, %v", n, err)
		}
		f.same(t, other)
		if c, v := count(t, s, `SELECT count(*) FROM ibid.chunks`), count(t, s, `SELECT count(*) FROM ibid.vectors`); c != 1 || v != 1 {
			t.Errorf("%d chunks and %d vectors are left", c, v)
		}
	})
}

// TestShared checks that a vector stays as long as any chunk has it.
func TestShared(t *testing.T) {
	onStore(t, func(ctx context.Context, t *testing.T, s *Store) {
		put2 := func(path string, texts ...string) {
			doc, chunks := newDocument("a", path, texts...)
			doc.Title = "One title"
			must(t, s.Replace(ctx, testSpace, doc, chunks, vectorsFor(doc, chunks)))
		}
		put2("1", "boat", "boat", "ship")
		put2("2", "boat")
		var f follower
		for _, step := range []struct {
			do   func() error
			want int
		}{
			{func() error { return nil }, 2},
			{func() error { return s.Delete(ctx, "a/1") }, 1},
			{func() error { put2("2", "boat", "train"); return nil }, 2},
			{func() error { return s.Delete(ctx, "a/2") }, 0},
		} {
			must(t, step.do())
			if n := count(t, s, `SELECT count(*) FROM ibid.vectors`); n != step.want {
				t.Errorf("%d vectors, want %d", n, step.want)
			}
			f.same(t, s)
		}
	}, "a")
}

func TestRefuse(t *testing.T) {
	onStore(t, func(ctx context.Context, t *testing.T, s *Store) {
		put(t, s, "a", "x", "boat")
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		for name, vector := range map[string][]float32{"short": {1, 0}, "long": {1, 0, 0, 0, 0}, "none": {}, "zero": {0, 0, 0, 0},
			"NaN": {nan, 0, 0, 1}, "Inf": {inf, 0, 0, 1}} {
			doc, chunks := newDocument("a", "x", "train")
			if err := s.Replace(ctx, testSpace, doc, chunks, [][]float32{vector}); err == nil {
				t.Errorf("a vector with %s was stored", name)
			}
		}
		for name, spoil := range map[string]func(*ingest.Document, []ingest.Chunk){
			"another text":     func(_ *ingest.Document, c []ingest.Chunk) { c[0].Text = "trail" },
			"an end too far":   func(_ *ingest.Document, c []ingest.Chunk) { c[0].End++ },
			"a wrong ordinal":  func(_ *ingest.Document, c []ingest.Chunk) { c[0].Ordinal = 2 },
			"a foreign parent": func(_ *ingest.Document, c []ingest.Chunk) { c[0].Document = "a/y" },
			"a wrong id":       func(d *ingest.Document, _ []ingest.Chunk) { d.ID = "a/y" },
		} {
			doc, chunks := newDocument("a", "x", "train")
			spoil(doc, chunks)
			if err := s.Replace(ctx, testSpace, doc, chunks, [][]float32{vectorAt(0)}); err == nil {
				t.Errorf("a chunk with %s was stored", name)
			}
		}
		doc, chunks := newDocument("a", "x", "train")
		var other *retrieve.SpaceError
		if err := s.Replace(ctx, "other/4", doc, chunks, vectorsFor(doc, chunks)); !errors.As(err, &other) || other.Stored != testSpace {
			t.Errorf("vectors of another space: %v", err)
		}
		if doc, err := s.Document(ctx, "a/x"); err != nil || doc.Text != "boat" {
			t.Errorf("the document is %+v, %v", doc, err)
		}
	}, "a")
}

func TestParts(t *testing.T) {
	onStore(t, func(ctx context.Context, t *testing.T, s *Store) {
		doc, chunks := newDocument("a", "x.md", "Grüße aus", "Öland")
		doc.Sections = append(doc.Sections, ingest.Section{Heading: "Öland", Level: 2, Anchor: "oland", Start: 12, End: len(doc.Text)})
		must(t, s.Replace(ctx, testSpace, doc, chunks, vectorsFor(doc, chunks)))
		revision, _, err := s.Revision(ctx)
		must(t, err)
		stored := retrieve.Version{Document: int64(count(t, s, `SELECT number FROM ibid.documents`)), Generation: revision}
		var spans []retrieve.Span
		for _, r := range [][2]int{{0, len(doc.Text)}, {0, 3}, {2, 4}, {3, 4}, {11, 14}, {len(doc.Text) - 1, len(doc.Text)}, {0, 0}} {
			spans = append(spans, retrieve.Span{Version: stored, Start: r[0], End: r[1], Outline: r[0] == 0})
		}
		lacking := []retrieve.Span{{Version: stored, End: len(doc.Text) + 1},
			{Version: retrieve.Version{Document: stored.Document, Generation: revision - 1}, End: 3, Outline: true},
			{Version: retrieve.Version{}, End: 3}}
		excerpts, err := s.Excerpts(ctx, append(lacking, spans...))
		must(t, err)
		for i, e := range excerpts {
			var want retrieve.Excerpt
			if i >= len(lacking) {
				span := spans[i-len(lacking)]
				if want = (retrieve.Excerpt{Stored: true, Text: doc.Text[span.Start:span.End]}); span.Outline {
					want.Outline = retrieve.Outline{Sections: doc.Sections, Pages: doc.Pages}
				}
			}
			if diff := gocmp.Diff(want, e); diff != "" {
				t.Errorf("excerpt %d: %s", i, diff)
			}
		}
		digest := retrieve.DigestOf(ingest.EmbeddingText(doc.Title, chunks[0]))
		got, err := s.Vectors(ctx, testSpace, []retrieve.Digest{digest, {1}, digest})
		if err != nil || len(got) != 3 || got[1] != nil || !slices.Equal(got[0], vectorsFor(doc, chunks)[0]) || !slices.Equal(got[0], got[2]) {
			t.Errorf("Vectors = %v, %v", got, err)
		}
		if got, err := s.Vectors(ctx, "none", []retrieve.Digest{digest}); err != nil || got[0] != nil {
			t.Errorf("Vectors of an unknown space = %v, %v", got, err)
		}
	}, "a")
}

// TestOdd stores what texts of databases cannot hold.
func TestOdd(t *testing.T) {
	onStore(t, func(ctx context.Context, t *testing.T, s *Store) {
		var f follower
		for _, path := range []string{"\xff\xfe.md", "a\x00b", "ü 💧 '\"%_\\?$1", strings.Repeat("long/", 2000), "#1#2"} {
			put(t, s, "a", path, "odd \x00 text \xff\xfe", "'; DROP TABLE documents; --")
		}
		put(t, s, "a", "many", slices.Repeat([]string{"row"}, 3000)...)
		f.same(t, s)
		list, err := s.Documents(ctx, retrieve.Filter{PathPrefix: "\xff"})
		if len(list) != 1 || err != nil {
			t.Errorf("%d documents below a prefix, %v", len(list), err)
		}
		if !slices.IsSortedFunc(f.ids(), strings.Compare) || len(f.documents) != 6 {
			t.Errorf("documents: %q", f.ids())
		}
	}, "a")
}

func TestRoots(t *testing.T) {
	onStore(t, func(ctx context.Context, t *testing.T, s *Store) {
		for _, c := range []struct {
			path, collection string
			want             ingest.Root
		}{
			{"/srv/notes", "", ingest.Root{Name: "notes", Path: "/srv/notes", Collection: "default"}},
			{"/home/notes", "work", ingest.Root{Name: "notes-2", Path: "/home/notes", Collection: "work"}},
			{"/srv/notes", "other", ingest.Root{Name: "notes", Path: "/srv/notes", Collection: "default"}},
			{"/srv/uploads", "", ingest.Root{Name: "uploads-2", Path: "/srv/uploads", Collection: "default"}},
			{"", "", ingest.Root{Name: "uploads", Collection: "default"}},
			{"", "", ingest.Root{Name: "uploads", Collection: "default"}},
		} {
			if got, err := s.AddRoot(ctx, c.path, c.collection); got != c.want || err != nil {
				t.Errorf("AddRoot(%q, %q) = %+v, %v", c.path, c.collection, got, err)
			}
		}
		if _, err := s.AddRoot(ctx, "relative/folder", ""); err == nil {
			t.Error("a relative path was accepted as a root")
		}
		roots, err := s.Roots(ctx)
		var names []string
		for _, r := range roots {
			names = append(names, r.Name)
		}
		if want := []string{"notes", "notes-2", "uploads", "uploads-2"}; err != nil || !slices.Equal(names, want) {
			t.Errorf("Roots = %q, %v", names, err)
		}
	})
}

func TestFilter(t *testing.T) {
	onStore(t, func(ctx context.Context, t *testing.T, s *Store) {
		for path, collection := range map[string]string{"/srv/a": "law", "/srv/b": "tax"} {
			root, err := s.AddRoot(ctx, path, collection)
			must(t, err)
			for i, name := range []string{"x.md", "sub/y.txt", "sub/z.md"} {
				doc, chunks := newDocument(root.Name, name, "boat")
				doc.Meta = map[string]string{"tags": fmt.Sprint("t", i), "author": "Ann Öl", "language": "de-AT", "date": fmt.Sprint(2020 + i)}
				must(t, s.Replace(ctx, testSpace, doc, chunks, vectorsFor(doc, chunks)))
			}
		}
		for _, c := range []struct {
			f    retrieve.Filter
			want string
		}{
			{retrieve.Filter{}, "a/sub/y.txt a/sub/z.md a/x.md b/sub/y.txt b/sub/z.md b/x.md"},
			{retrieve.Filter{Collection: "law"}, "a/sub/y.txt a/sub/z.md a/x.md"},
			{retrieve.Filter{Collections: []string{"tax", "none"}}, "b/sub/y.txt b/sub/z.md b/x.md"},
			{retrieve.Filter{Collection: "law", Collections: []string{"tax"}}, ""},
			{retrieve.Filter{Root: "a", PathPrefix: "sub/"}, "a/sub/y.txt a/sub/z.md"},
			{retrieve.Filter{PathPrefix: "su"}, "a/sub/y.txt a/sub/z.md b/sub/y.txt b/sub/z.md"},
			{retrieve.Filter{Document: "b/x.md"}, "b/x.md"},
			{retrieve.Filter{Format: "markdown", Root: "b"}, "b/sub/z.md b/x.md"},
			{retrieve.Filter{Tags: []string{"#T1"}}, "a/sub/y.txt b/sub/y.txt"},
			{retrieve.Filter{Author: "ol", Language: "de", Since: "2022"}, "a/sub/z.md b/sub/z.md"},
			{retrieve.Filter{Until: "2020-05", Root: "a"}, "a/x.md"},
			{retrieve.Filter{Root: "none"}, ""},
		} {
			list, err := s.Documents(ctx, c.f)
			must(t, err)
			var ids []string
			for _, d := range list {
				ids = append(ids, d.ID)
			}
			if got := strings.Join(ids, " "); got != c.want {
				t.Errorf("Documents(%+v) = %s, want %s", c.f, got, c.want)
			}
			if holds, err := s.Holds(ctx, c.f); holds != (c.want != "") || err != nil {
				t.Errorf("Holds(%+v) = %v, %v", c.f, holds, err)
			}
			if d, n, err := s.Count(ctx, c.f); d != len(ids) || n != len(ids) || err != nil {
				t.Errorf("Count(%+v) = %d, %d, %v", c.f, d, n, err)
			}
		}
	})
}

// TestLostRevisions loses changes while a process is connected, as restoring a dump
// does: the next change of this process begins a new era.
func TestLostRevisions(t *testing.T) {
	onStore(t, func(ctx context.Context, t *testing.T, s *Store) {
		for i := range 6 {
			put(t, s, "a", fmt.Sprint(i), "boat")
		}
		before, era, err := s.Revision(ctx)
		must(t, err)
		put(t, s, "a", "6", "boat")
		if _, same, err := s.Revision(ctx); same != era || err != nil {
			t.Errorf("the era went from %d to %d without a loss: %v", era, same, err)
		}
		execute(t, s, `DELETE FROM ibid.changes WHERE revision > ?`, before-3)
		if s.dialect.name == "postgres" {
			execute(t, s, `UPDATE ibid.clock SET revision = ?`, before-3)
		}
		put(t, s, "a", "0", "dinghy")
		if after, now, err := s.Revision(ctx); after != before-2 || now == era || err != nil {
			t.Errorf("after %d in the era %d comes %d in %d: %v", before, era, after, now, err)
		}
	}, "a")
}

// TestRenameCollection renames the collection of two roots, with their documents and keys.
func TestRenameCollection(t *testing.T) {
	onStore(t, func(ctx context.Context, t *testing.T, s *Store) {
		for path, collection := range map[string]string{"/a": "old", "/b": "old", "/c": "kept"} {
			_, err := s.AddRoot(ctx, path, collection)
			must(t, err)
		}
		must(t, s.Keyring().Add(ctx, retrieve.Key{ID: "k", Name: "k", Collections: []string{"kept", "old"}}))
		before, err := s.Keyring().Revision(ctx)
		must(t, err)
		for _, wrong := range []struct {
			from, to string
			want     error
		}{{"old", "kept", retrieve.ErrTaken}, {"none", "new", retrieve.ErrNotFound}} {
			if err := s.RenameCollection(ctx, wrong.from, wrong.to); !errors.Is(err, wrong.want) {
				t.Errorf("from %s to %s: %v", wrong.from, wrong.to, err)
			}
		}
		must(t, s.RenameCollection(ctx, "old", "new"))
		roots, err := s.Roots(ctx)
		must(t, err)
		for _, r := range roots {
			if want := map[string]string{"/a": "new", "/b": "new", "/c": "kept"}[r.Path]; r.Collection != want {
				t.Errorf("%s is in %s", r.Path, r.Collection)
			}
		}
		ring, err := s.Keyring().Ring(ctx)
		must(t, err)
		if ring.Revision <= before || len(ring.Keys) != 1 || !slices.Equal(ring.Keys[0].Collections, []string{"kept", "new"}) {
			t.Errorf("the keys: %+v", ring)
		}
	})
}
