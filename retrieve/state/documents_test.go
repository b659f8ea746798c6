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

	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
)

const testSpace = "test/4"

// vectorsFor returns a vector for each chunk that depends only on its embedding text.
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

// onStore runs a test over both dialects, on a library with the given roots.
func onStore(t *testing.T, test func(ctx context.Context, t *testing.T, s *Store), roots ...string) {
	onBothDialects(t, func(t *testing.T, address string) {
		s := openTest(t, address)
		test(ready(t, s, roots...), t, s)
	})
}

// A follower keeps the same data as a searcher would.
type follower struct {
	revision  int64
	documents map[int64]retrieve.Change
}

// follow applies new changes, and checks the guarantees that every follower has.
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
			t.Errorf("document %d comes again with revision %d", c.Document, before)
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

// same checks that a store and a follower have the same documents, and that a new follower gets
// them.
func (f *follower) same(t testing.TB, s *Store) {
	t.Helper()
	ctx := context.Background()
	f.follow(t, s)
	var fresh follower
	fresh.follow(t, s)
	datatest.Same(t, "documents of a follower from the start and of a new one", f.documents, fresh.documents)
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
		t.Errorf("Count = %d documents and %d chunks, %v; listed %d and %d", d, c, err, len(list), chunks)
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
		t.Errorf("revision = %d, %v; followed to %d", revision, err, f.revision)
	}
}

// count returns the result of a counting query.
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
			t.Errorf("vectors of another space: err = %v, want a SpaceError", err)
		}
		if doc, err := s.Document(ctx, "a/x"); err != nil || doc.Text != "boat" {
			t.Errorf("document = %+v, %v", doc, err)
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
			datatest.Same(t, fmt.Sprintf("excerpt %d", i), want, e)
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

// TestOdd stores texts that databases cannot store as text.
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
