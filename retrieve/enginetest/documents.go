package enginetest

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"ibid/ingest"
	"ibid/retrieve"
)

func testEmpty(t *testing.T, e retrieve.Engine) {
	ctx := t.Context()
	if s, err := e.Space(ctx); s != "" || err != nil {
		t.Errorf("Space = %q, %v", s, err)
	}
	dense(t, e, 0, 5, retrieve.Filter{})
	lexical(t, e, "boat", 5, retrieve.Filter{})
	s, err := e.Stats(ctx, []string{"boat"})
	if err != nil || s.Chunks != 0 || s.Frequency["boat"] != 0 {
		t.Errorf("Stats = %+v, %v", s, err)
	}
	if _, err := e.Document(ctx, "a/b"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("Document of nothing: %v", err)
	}
	if _, err := e.DeleteRoot(ctx, "a"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("DeleteRoot of nothing: %v", err)
	}
	must(t, e.Delete(ctx, "a/b"))
	doc, chunks := Document("a", "b", "boat")
	if err := e.Replace(ctx, doc, chunks, [][]float32{Vector(0)}); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("Replace under an unknown root: %v", err)
	}
	if err := e.Rename(ctx, "a/c", doc); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("Rename of nothing: %v", err)
	}
	if c, err := e.Candidates(ctx, []string{"a/b#1", "nonsense", "#", "a/b#x"}); len(c) != 0 || err != nil {
		t.Errorf("Candidates of nothing: %v, %v", c, err)
	}
}

func testSpace(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	must(t, e.SetSpace(ctx, space))
	put(t, e, "a", "x", []float64{0}, "boat")
	if s, err := e.Space(ctx); s != space || err != nil {
		t.Errorf("Space = %q, %v", s, err)
	}
	must(t, e.SetSpace(ctx, space))
	var other *retrieve.SpaceError
	if err := e.SetSpace(ctx, "other/8"); !errors.As(err, &other) || other.Stored != space || other.Wanted != "other/8" {
		t.Errorf("SetSpace to another: %v", err)
	}
	must(t, e.Delete(ctx, "a/x"))
	if s, err := e.Space(ctx); s != "" || err != nil {
		t.Errorf("Space when empty again = %q, %v", s, err)
	}
	must(t, e.SetSpace(ctx, "other/8"))
	doc, chunks := Document("a", "x", "boat")
	must(t, e.Replace(ctx, doc, chunks, [][]float32{{1, 0, 0, 0, 0, 0, 0, 0}}))
	got, err := e.Dense(ctx, []float32{1, 0, 0, 0, 0, 0, 0, 1}, 3, retrieve.Filter{})
	wantIDs(t, "Dense in the other space", got, err, "a/x#1")
}

func testRoots(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e)
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
		got, err := e.AddRoot(ctx, c.path, c.collection)
		must(t, err)
		if got != c.want {
			t.Errorf("AddRoot(%q, %q) = %+v, want %+v", c.path, c.collection, got, c.want)
		}
	}
	if _, err := e.AddRoot(ctx, "relative/folder", ""); err == nil {
		t.Error("a relative path was accepted as a root")
	}
	put(t, e, "notes", "a", []float64{0}, "boat")
	put(t, e, "notes-2", "a", []float64{0}, "boat")
	n, err := e.DeleteRoot(ctx, "notes")
	if n != 1 || err != nil {
		t.Errorf("DeleteRoot = %d, %v", n, err)
	}
	dense(t, e, 0, 5, retrieve.Filter{}, "notes-2/a#1")
	roots, err := e.Roots(ctx)
	must(t, err)
	var names []string
	for _, r := range roots {
		names = append(names, r.Name)
	}
	wantIDs(t, "Roots", names, nil, "notes-2", "uploads", "uploads-2")
}

func testReplace(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	put(t, e, "a", "x.md", []float64{0, 90}, "a boat in the harbour", "a train in the station")
	doc, _ := Document("a", "x.md", "a boat in the harbour", "a train in the station")
	got, err := e.Document(ctx, "a/x.md")
	must(t, err)
	if got.Text != doc.Text || got.Title != doc.Title || got.Format != "markdown" || got.Digest != doc.Digest ||
		len(got.Sections) != 1 || got.Sections[0] != doc.Sections[0] || got.Meta["author"] != "Ann <b>" {
		t.Errorf("Document = %+v, want %+v", got, doc)
	}
	put(t, e, "a", "x.md", []float64{45}, "a plane at the airport")
	dense(t, e, 0, 5, retrieve.Filter{}, "a/x.md#1")
	lexical(t, e, "boat", 5, retrieve.Filter{})
	lexical(t, e, "planes", 5, retrieve.Filter{}, "a/x.md#1")
	digests, err := e.Documents(ctx, retrieve.Filter{Root: "a"})
	must(t, err)
	if want, _ := Document("a", "x.md", "a plane at the airport"); len(digests) != 1 || digests[0].Path != "x.md" || digests[0].Digest != want.Digest {
		t.Errorf("Documents of a root = %v", digests)
	}
	// A document without chunks is stored too.
	empty, _ := Document("a", "empty")
	must(t, e.Replace(ctx, empty, nil, nil))
	list, err := e.Documents(ctx, retrieve.Filter{})
	must(t, err)
	if len(list) != 2 || list[0].ID != "a/empty" || list[0].Chunks != 0 || list[1].Chunks != 1 || list[1].Bytes != len("a plane at the airport") || list[1].Collection != "default" {
		t.Errorf("Documents = %+v", list)
	}
}

func testDelete(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	put(t, e, "a", "x", []float64{0}, "boat")
	put(t, e, "a", "y", []float64{10}, "boat")
	must(t, e.Delete(ctx, "a/x"))
	must(t, e.Delete(ctx, "a/x"))
	dense(t, e, 0, 5, retrieve.Filter{}, "a/y#1")
	lexical(t, e, "boat", 5, retrieve.Filter{}, "a/y#1")
	if s, err := e.Stats(ctx, []string{"boat"}); err != nil || s.Chunks != 1 || s.Frequency["boat"] != 1 {
		t.Errorf("Stats = %+v, %v", s, err)
	}
	if _, err := e.Document(ctx, "a/x"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a deleted document: %v", err)
	}
	if c, err := e.Candidates(ctx, []string{"a/x#1"}); len(c) != 0 || err != nil {
		t.Errorf("a chunk of a deleted document: %v, %v", c, err)
	}
}

func testRename(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a", "b")
	put(t, e, "a", "x", []float64{0, 30}, "boat", "harbour")
	put(t, e, "a", "taken", []float64{60}, "train")
	to, _ := Document("b", "taken", "boat", "harbour")
	must(t, e.Rename(ctx, "a/x", to))
	dense(t, e, 0, 5, retrieve.Filter{}, "b/taken#1", "b/taken#2", "a/taken#1")
	lexical(t, e, "harbour", 5, retrieve.Filter{}, "b/taken#2")
	// The title is searched with the text, so the new one counts.
	lexical(t, e, "x", 5, retrieve.Filter{})
	if _, err := e.Document(ctx, "a/x"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("the old id: %v", err)
	}
	doc, err := e.Document(ctx, "b/taken")
	must(t, err)
	if doc.Text != "boat\nharbour" || doc.Title != "Title of taken" {
		t.Errorf("the new id: %+v", doc)
	}
	onto, _ := Document("a", "taken", "boat", "harbour")
	must(t, e.Rename(ctx, "b/taken", onto))
	dense(t, e, 60, 5, retrieve.Filter{}, "a/taken#2", "a/taken#1")
	changed, _ := Document("a", "z", "another text")
	if err := e.Rename(ctx, "a/taken", changed); err == nil {
		t.Error("a file with another content passed for a renamed one")
	}
}

func testRefuse(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	put(t, e, "a", "x", []float64{0}, "boat")
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, vector := range map[string][]float32{
		"short": {1, 0}, "long": {1, 0, 0, 0, 0}, "none": {}, "zero": {0, 0, 0, 0},
		"NaN": {nan, 0, 0, 1}, "Inf": {inf, 0, 0, 1},
	} {
		doc, chunks := Document("a", "x", "train")
		if err := e.Replace(ctx, doc, chunks, [][]float32{vector}); err == nil {
			t.Errorf("a vector with %s was stored", name)
		}
		doc, chunks = Document("a", "x", "train", "plane")
		if err := e.Replace(ctx, doc, chunks, [][]float32{Vector(0), vector}); err == nil {
			t.Errorf("a second vector with %s was stored", name)
		}
	}
	for name, spoil := range map[string]func(*ingest.Document, []ingest.Chunk){
		"another text":     func(_ *ingest.Document, c []ingest.Chunk) { c[0].Text = "trail" },
		"an end too far":   func(_ *ingest.Document, c []ingest.Chunk) { c[0].End++ },
		"a wrong ordinal":  func(_ *ingest.Document, c []ingest.Chunk) { c[0].Ordinal = 2 },
		"a foreign parent": func(_ *ingest.Document, c []ingest.Chunk) { c[0].Document = "a/y" },
		"a wrong id":       func(d *ingest.Document, _ []ingest.Chunk) { d.ID = "a/y" },
	} {
		doc, chunks := Document("a", "x", "train")
		spoil(doc, chunks)
		if err := e.Replace(ctx, doc, chunks, [][]float32{Vector(0)}); err == nil {
			t.Errorf("a chunk with %s was stored", name)
		}
	}
	doc, chunks := Document("a", "x", "train")
	if err := e.Replace(ctx, doc, chunks, nil); err == nil {
		t.Error("a chunk without a vector was stored")
	}
	lexical(t, e, "boat", 5, retrieve.Filter{}, "a/x#1")
	dense(t, e, 0, 5, retrieve.Filter{}, "a/x#1")
}

func testExcerpt(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	put(t, e, "a", "x.md", []float64{1, 2}, "Grüße aus", "Öland")
	const text = "Grüße aus\nÖland"
	for _, r := range [][2]int{{0, len(text)}, {0, 3}, {2, 4}, {3, 4}, {11, 14}, {len(text) - 1, len(text)}, {5, 5}} {
		got, err := e.Excerpt(ctx, "a/x.md", r[0], r[1])
		if err != nil || got != text[r[0]:r[1]] {
			t.Errorf("bytes %d to %d are %q: %v", r[0], r[1], got, err)
		}
	}
	for _, c := range []struct {
		id         string
		start, end int
	}{{"a/x.md", 0, len(text) + 1}, {"a/y.md", 0, 1}} {
		if got, err := e.Excerpt(ctx, c.id, c.start, c.end); !errors.Is(err, retrieve.ErrNotFound) {
			t.Errorf("bytes %d to %d of %s are %q: %v", c.start, c.end, c.id, got, err)
		}
	}
}

func testSections(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a")
	doc, chunks := Document("a", "x.md", "Grüße aus", "Öland")
	doc.Sections = append(doc.Sections, ingest.Section{Heading: "Öland", Level: 2, Anchor: "oland", Start: 12, End: len(doc.Text)})
	must(t, e.Replace(ctx, doc, chunks, [][]float32{Vector(1), Vector(2)}))
	bare, chunks := Document("a", "y.txt", "Grüße")
	bare.Sections = nil
	must(t, e.Replace(ctx, bare, chunks, [][]float32{Vector(1)}))
	for _, d := range []*ingest.Document{doc, bare} {
		if got, err := e.Sections(ctx, d.ID, d.Digest); err != nil || !slices.Equal(got, d.Sections) {
			t.Errorf("the sections of %s are %v, want %v: %v", d.ID, got, d.Sections, err)
		}
	}
	for _, c := range [][2]string{{doc.ID, "another"}, {doc.ID, bare.Digest}, {"a/z.md", doc.Digest}} {
		if got, err := e.Sections(ctx, c[0], c[1]); !errors.Is(err, retrieve.ErrNotFound) {
			t.Errorf("the sections of %s with the digest %s are %v: %v", c[0], c[1], got, err)
		}
	}
}

func testListings(t *testing.T, e retrieve.Engine) {
	ctx := ready(t, e, "a", "b")
	check := func(id, want string, root string, ids ...string) {
		t.Helper()
		listing, err := e.Listing(ctx, id)
		must(t, err)
		if string(listing) != want {
			t.Errorf("Listing(%s) = %q, want %q", id, listing, want)
		}
		got, err := e.Listings(ctx, root)
		must(t, err)
		slices.Sort(got)
		wantIDs(t, "Listings of "+root, got, nil, ids...)
	}
	check("a/x.zip", "", "a")
	must(t, e.Delete(ctx, "a/x.zip"))
	must(t, e.KeepListing(ctx, "a", "a/x.zip", []byte("first")))
	must(t, e.KeepListing(ctx, "a", "a/x.zip", []byte("second")))
	must(t, e.KeepListing(ctx, "a", "a/y.zip", []byte("third")))
	must(t, e.KeepListing(ctx, "b", "b/x.zip", []byte("fourth")))
	check("a/x.zip", "second", "a", "a/x.zip", "a/y.zip")
	check("b/x.zip", "fourth", "b", "b/x.zip")
	// It is deleted with the archive or mail, even if that is no document.
	must(t, e.Delete(ctx, "a/x.zip"))
	check("a/x.zip", "", "a", "a/y.zip")
	_, err := e.DeleteRoot(ctx, "a")
	must(t, err)
	check("a/y.zip", "", "a")
	check("b/x.zip", "fourth", "b", "b/x.zip")
}

func testRevision(t *testing.T, open func() retrieve.Store) {
	handles := []retrieve.Store{open(), open()}
	e, other := handles[0], handles[1]
	ctx := ready(t, e)
	last := int64(-1)
	grew := func(what string) {
		t.Helper()
		n := int64(-1)
		for i, e := range append(handles, open()) {
			got, err := e.Revision(ctx)
			must(t, err)
			if i == 0 {
				n = got
			}
			if got <= last || got != n {
				t.Errorf("the revision after %s is %d, elsewhere %d, before it was %d", what, got, n, last)
			}
		}
		last = n
	}
	grew("the start")
	_, err := e.AddRoot(ctx, "/srv/a", "")
	must(t, err)
	grew("adding a root")
	put(t, other, "a", "1", []float64{0}, "boat")
	grew("adding")
	put(t, e, "a", "1", []float64{0}, "ship")
	grew("replacing")
	must(t, other.Rename(ctx, "a/1", renamed("a", "2", "ship")))
	grew("renaming")
	must(t, e.Delete(ctx, "a/2"))
	grew("deleting")
	_, err = other.DeleteRoot(ctx, "a")
	must(t, err)
	grew("deleting the root")
	// Reading changes nothing.
	dense(t, e, 0, 5, retrieve.Filter{})
	if _, err := other.Documents(ctx, retrieve.Filter{}); err != nil {
		t.Error(err)
	}
	for _, e := range handles {
		if n, err := e.Revision(ctx); n != last || err != nil {
			t.Errorf("the revision after reading is %d, before it was %d: %v", n, last, err)
		}
	}
}

func testClose(t *testing.T, open func() retrieve.Store) {
	e, other := open(), open()
	ctx := ready(t, e, "a")
	put(t, e, "a", "x", []float64{0}, "boat")
	must(t, e.Close())
	must(t, e.Close())
	if _, err := e.Documents(ctx, retrieve.Filter{}); err == nil {
		t.Error("a closed engine lists documents")
	}
	if _, err := e.Ledger().Job(ctx, "a"); err == nil || errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a closed engine looks for runs: %v", err)
	}
	dense(t, other, 0, 5, retrieve.Filter{}, "a/x#1")
	must(t, other.Close())
	dense(t, open(), 0, 5, retrieve.Filter{}, "a/x#1")
}

// testCollections checks filters by collection and by permitted collections.
func testCollections(t *testing.T, open func() retrieve.Store) {
	e, other := open(), open()
	ctx := ready(t, e)
	for path, collection := range map[string]string{"/srv/a": "law", "/srv/b": "law", "/srv/c": "tax", "/srv/d": ""} {
		root, err := e.AddRoot(ctx, path, collection)
		must(t, err)
		put(t, other, root.Name, "x", []float64{float64(root.Name[0])}, "boat")
		put(t, other, root.Name, "empty", nil)
	}
	check := func(f retrieve.Filter, roots ...string) {
		t.Helper()
		var chunks, documents []string
		for _, r := range roots {
			chunks = append(chunks, r+"/x#1")
			documents = append(documents, r+"/empty", r+"/x")
		}
		for _, e := range []retrieve.Engine{e, other} {
			dense(t, e, 90, 9, f, chunks...)
			lexical(t, e, "boat", 9, f, chunks...)
			list, err := e.Documents(ctx, f)
			must(t, err)
			var got []string
			for _, d := range list {
				got = append(got, d.ID)
			}
			wantIDs(t, fmt.Sprintf("Documents(%+v)", f), got, nil, documents...)
			if any, err := e.Holds(ctx, f); err != nil || any != (len(roots) > 0) {
				t.Errorf("Holds(%+v) = %v, %v", f, any, err)
			}
		}
	}
	check(retrieve.Filter{Collection: "law"}, "a", "b")
	check(retrieve.Filter{Collections: []string{"law"}}, "a", "b")
	check(retrieve.Filter{Collections: []string{"law", "default", "none"}}, "a", "b", "d")
	check(retrieve.Filter{Collections: []string{"none"}})
	check(retrieve.Filter{Collection: "law", Collections: []string{"tax", "default"}})
	check(retrieve.Filter{Collection: "tax", Collections: []string{"tax", "law"}}, "c")
	check(retrieve.Filter{Collections: []string{"law"}, Root: "b"}, "b")
	check(retrieve.Filter{Collections: []string{"law"}, Root: "c"})
	if n, err := other.DeleteRoot(ctx, "a"); n != 2 || err != nil {
		t.Errorf("DeleteRoot = %d, %v", n, err)
	}
	check(retrieve.Filter{Collection: "law"}, "b")
	// A renamed document gets the collection of its new root.
	must(t, e.Rename(ctx, "b/x", renamed("c", "y", "boat")))
	list, err := other.Documents(ctx, retrieve.Filter{Collection: "tax"})
	must(t, err)
	if len(list) != 3 || list[2].ID != "c/y" || list[2].Collection != "tax" {
		t.Errorf("the documents about taxes are %+v", list)
	}
	lexical(t, other, "boat", 9, retrieve.Filter{Collection: "tax"}, "c/x#1", "c/y#1")
	// A root that is added again may be in another collection.
	root, err := e.AddRoot(ctx, "/srv/a", "tax")
	must(t, err)
	if want := (ingest.Root{Name: "a", Path: "/srv/a", Collection: "tax"}); root != want {
		t.Errorf("the root came back as %+v", root)
	}
}

// testOdd checks names and questions with signs that mean something in a query
// language.
func testOdd(t *testing.T, open func() retrieve.Store) {
	e, other := open(), open()
	ctx := ready(t, e, "a")
	paths := []string{
		"100%/under_score", "100x/underXscore", `back\slash "quoted" 'single'.md`, "Grüße/日本語/🙂.txt", "new\nline\ttab", "-- ; DROP TABLE documents", "{\"$ne\":1} :x $1 ?", "UPPER", "upper", "é", "e\u0301",
	}
	for i, path := range paths {
		doc, chunks := Document("a", path, "boat 🙂 "+path)
		doc.Title, doc.Meta = path, map[string]string{"tags": "x,'" + path, "author": path, `key "é"`: "v"}
		chunks[0].Heading, chunks[0].Anchor, chunks[0].Page, chunks[0].Line = path, "a&b="+path, 0, i+1
		must(t, e.Replace(ctx, doc, chunks, [][]float32{Vector(float64(i))}))
		got, err := other.Document(ctx, doc.ID)
		must(t, err)
		if got.Text != doc.Text || got.Title != doc.Title || got.Path != path || !maps.Equal(got.Meta, doc.Meta) {
			t.Errorf("stored %+v, got %+v", doc, got)
		}
		found, err := other.Candidates(ctx, []string{chunks[0].ID})
		if err != nil || len(found) != 1 || found[0].Chunk != chunks[0] || !maps.Equal(found[0].Meta, doc.Meta) {
			t.Errorf("stored %+v, got %+v, %v", chunks[0], found, err)
		}
		for _, f := range []retrieve.Filter{{Document: doc.ID}, {PathPrefix: path}} {
			dense(t, other, 0, 20, f, chunks[0].ID)
			lexical(t, other, "boat", 20, f, chunks[0].ID)
		}
	}
	list, err := e.Documents(ctx, retrieve.Filter{})
	must(t, err)
	var got []string
	for _, d := range list {
		got = append(got, d.Path)
	}
	slices.Sort(paths)
	wantIDs(t, "the paths", got, nil, paths...)
	for _, f := range []retrieve.Filter{
		{PathPrefix: "%"}, {PathPrefix: "100_"}, {PathPrefix: "1*"}, {PathPrefix: "\x00"}, {PathPrefix: "\xff"}, {Root: "a'"}, {Root: "\x00"}, {Document: "a/\x00"},
		{Collection: "\x00"}, {Collections: []string{"\x00"}}, {Format: "\xff"}, {Author: "\x00"}, {Tags: []string{"\x00"}}, {Language: "\x00"}, {PathPrefix: "U", Root: "A"},
	} {
		dense(t, e, 0, 20, f)
		lexical(t, e, "boat", 20, f)
		if any, err := e.Holds(ctx, f); any || err != nil {
			t.Errorf("Holds(%+v) = %t, %v", f, any, err)
		}
	}
	for _, id := range []string{"a/\x00", "a/\xff", "", "/", "a", "a/UPPER/", "A/UPPER"} {
		if _, err := e.Document(ctx, id); !errors.Is(err, retrieve.ErrNotFound) {
			t.Errorf("the document %q: %v", id, err)
		}
		if found, err := e.Candidates(ctx, []string{id, id + "#1", id + "#-1", id + "#99999999999999999999"}); len(found) > 0 || err != nil {
			t.Errorf("the chunks of %q: %+v, %v", id, found, err)
		}
		must(t, e.Delete(ctx, id))
	}
	lexical(t, e, "'; DROP \" (boat & !ship) | * :* \\", 20, retrieve.Filter{PathPrefix: "upper"}, "a/upper#1")
	if got, err := e.Lexical(ctx, []string{"'", "\\", "\x00", "\xff", "a b", ":*", ""}, 20, retrieve.Filter{}); len(got) > 0 || err != nil {
		t.Errorf("terms that nothing holds find %q, %v", got, err)
	}
	if s, err := e.Stats(ctx, []string{"'", "\x00", "\xff", ""}); err != nil || s.Chunks != len(paths) {
		t.Errorf("Stats = %+v, %v", s, err)
	}
}

// testLarge checks a document with as many chunks as a search reads at most.
func testLarge(t *testing.T, open func() retrieve.Store) {
	e, other := open(), open()
	ctx := ready(t, e, "a")
	const n = 3200
	texts, vectors := make([]string, n), make([][]float32, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("boat number%d %s", i, strings.Repeat("of the fleet ", 20))
		vectors[i] = Vector(float64(i) / 20)
	}
	doc, chunks := Document("a", "x", texts...)
	for i := range chunks {
		doc.Pages = append(doc.Pages, ingest.Page{Number: i + 1, Start: chunks[i].Start, End: chunks[i].End})
		doc.Sections = append(doc.Sections, ingest.Section{Heading: fmt.Sprint(i), Level: 2, Anchor: "s", Start: chunks[i].Start, End: chunks[i].End})
		chunks[i].Page, chunks[i].Line = i+1, 0
	}
	doc.Sections = doc.Sections[1:]
	must(t, e.Replace(ctx, doc, chunks, vectors))
	want := make([]string, n)
	for i, c := range chunks {
		want[i] = c.ID
	}
	found, err := other.Candidates(ctx, want)
	must(t, err)
	if len(found) != n {
		t.Fatalf("%d of %d chunks", len(found), n)
	}
	for i, c := range found {
		if c.Chunk != chunks[i] {
			t.Fatalf("chunk %d is %+v, want %+v", i, c.Chunk, chunks[i])
		}
	}
	got, err := other.Lexical(ctx, retrieve.Terms("boat"), n, retrieve.Filter{})
	must(t, err)
	if len(got) != n {
		t.Errorf("%d of %d chunks match", len(got), n)
	}
	dense(t, other, 0, 3, retrieve.Filter{}, want[:3]...)
	lexical(t, other, "number3199", 1, retrieve.Filter{}, want[3199])
	list, err := other.Documents(ctx, retrieve.Filter{})
	must(t, err)
	if len(list) != 1 || list[0].Chunks != n || list[0].Pages != n || list[0].Bytes != len(doc.Text) {
		t.Errorf("Documents = %+v", list)
	}
	stored, err := other.Document(ctx, doc.ID)
	must(t, err)
	if stored.Text != doc.Text || !slices.Equal(stored.Pages, doc.Pages) || !slices.Equal(stored.Sections, doc.Sections) {
		t.Errorf("the document is not what was stored")
	}
	put(t, other, "a", "x", []float64{0}, "ship")
	lexical(t, e, "boat", 5, retrieve.Filter{})
	if s, err := e.Stats(ctx, retrieve.Terms("boat")); err != nil || s.Chunks != 1 {
		t.Errorf("Stats = %+v, %v", s, err)
	}
}
