package retrieve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ibid/ingest"
	"ibid/retrieve"
)

// section returns a document of one section without an anchor, split at blank lines into chunks.
func section(path string, texts ...string) (*ingest.Document, []ingest.Chunk) {
	doc, chunks := document("a", path, "", texts...)
	doc.Text = strings.Join(texts, "\n\n")
	for i := range chunks {
		chunks[i].Anchor, chunks[i].Tokens = "", 100
		chunks[i].Start += i
		chunks[i].End += i
	}
	return doc, chunks
}

func TestNeighboursAreJoined(t *testing.T) {
	lines := []string{
		"The kestrel hovers over the meadow and looks for voles.",
		"A kestrel sees the voles by their traces.",
		"Nothing here is about birds at all.",
		"The kestrel nests in towers.",
	}
	for _, c := range []struct {
		name   string
		change func(chunks []ingest.Chunk)
		k      int
		want   []string
	}{
		{"joined", nil, 12, []string{"a/birds.md#1-4"}},
		{"another heading", func(c []ingest.Chunk) { c[1].Heading, c[2].Heading, c[3].Heading = "B", "B", "B" }, 12,
			[]string{"a/birds.md#1", "a/birds.md#2-4"}},
		{"another page", func(c []ingest.Chunk) { c[3].Page = 2 }, 12, []string{"a/birds.md#1-3", "a/birds.md#4"}},
		{"another row", func(c []ingest.Chunk) { c[0].Anchor = "row=1" }, 12, []string{"a/birds.md#1", "a/birds.md#2-4"}},
		{"too long together", func(c []ingest.Chunk) { c[0].Tokens, c[1].Tokens = 400, 401 }, 12, []string{"a/birds.md#1", "a/birds.md#2-4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newRoot(t)
			doc, chunks := section("birds.md", lines...)
			if c.change != nil {
				c.change(chunks)
			}
			must(t, x.Replace(t.Context(), doc, chunks))
			passages, err := x.Search(t.Context(), retrieve.Query{Text: "kestrel voles", K: c.k})
			must(t, err)
			var ids []string
			for _, p := range passages {
				ids = append(ids, p.ID)
				if doc.Text[p.Start:p.End] != p.Text {
					t.Errorf("%s differs from bytes %d to %d: %q", p.ID, p.Start, p.End, p.Text)
				}
				if p.Heading != chunks[p.Ordinal-1].Heading || p.Page != chunks[p.Ordinal-1].Page {
					t.Errorf("%s: heading = %q, page = %d", p.ID, p.Heading, p.Page)
				}
			}
			slices.Sort(ids)
			if !slices.Equal(ids, c.want) {
				t.Errorf("found = %q, want %q", ids, c.want)
			}
		})
	}
}

// TestJoinedTakesOnePlace checks that joined chunks count as one passage and leave room for
// other documents.
func TestJoinedTakesOnePlace(t *testing.T) {
	x := newRoot(t)
	doc, chunks := section("long.md", "The kestrel hovers.", "The kestrel hovers on.", "The kestrel hovers again.")
	must(t, x.Replace(t.Context(), doc, chunks))
	store(t, x, "a", "other.md", "", "Somebody once saw a kestrel from far away over there.")
	if got, want := found(t, x, retrieve.Query{Text: "kestrel hovers", K: 2}),
		[]string{"a/long.md#1-3", "a/other.md#1"}; !slices.Equal(got, want) {
		t.Errorf("found = %q, want %q", got, want)
	}
}

// TestTablesAreFoundByTheirRows checks that a table is found by its best row and its title,
// however many other rows it has.
func TestTablesAreFoundByTheirRows(t *testing.T) {
	x := newRoot(t)
	var rows strings.Builder
	for _, bird := range strings.Fields("Sparrow Heron Kestrel Wagtail Bittern Curlew Dipper Fulmar Gannet Osprey Plover Redstart") {
		fmt.Fprintf(&rows, "Bird: %s | Ring: 3 grams | Metal: aluminium, stamped with a number\n", bird)
	}
	store(t, x, "a", "rings.md", "Rings 2025", rows.String())
	store(t, x, "a", "walk.md", "A walk", "In the spring of 2025 somebody told us of a kestrel by the mill, and of two others.")
	if got := found(t, x, retrieve.Query{Text: "kestrel 2025"}); len(got) != 2 || got[0] != "a/rings.md#1" {
		t.Errorf("found = %q, want the table first", got)
	}
}

// TestCopies checks that copies are one passage, and that texts that differ in one word,
// number or sign are two.
func TestCopies(t *testing.T) {
	const text = "The kestrel fund had 30 crowns in May and 60 crowns in June, and it paid for the voles of the whole meadow in both of " +
		"the years, so that nobody had to go without."
	for _, c := range []struct {
		name, other string
		copy        bool
	}{
		{"the same", text, true},
		{"other breaks and case", strings.ReplaceAll(strings.ToUpper(text), " ", "\n"), true},
		{"another number", strings.Replace(text, "30", "31", 1), false},
		{"numbers change places", strings.NewReplacer("30", "60", "60", "30").Replace(text), false},
		{"a sign", strings.Replace(text, "30", "-30", 1), false},
		{"not", strings.Replace(text, "had to", "had not to", 1), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newRoot(t)
			store(t, x, "a", "1.md", "One", text)
			store(t, x, "a", "2.md", "Two", c.other)
			want := 2
			if c.copy {
				want = 1
			}
			if got := found(t, x, retrieve.Query{Text: "kestrel fund"}); len(got) != want {
				t.Errorf("found = %q, want %d passages", got, want)
			}
		})
	}
}

// TestAlsoIn checks that the first of several equal files has the passage and that it names the
// other files in the key's collections, whatever filter the question has.
func TestAlsoIn(t *testing.T) {
	x := newIndex(t, openState(t, t.TempDir()), testSpace)
	for _, name := range []string{"a", "b", "c"} {
		_, err := x.AddRoot(t.Context(), "/srv/"+name, name)
		must(t, err)
		store(t, x, name, "1.md", strings.ToUpper(name), "The kestrel fund had 30 crowns in May.")
	}
	store(t, x, "a", "2.md", "A", "The kestrel fund had 60 crowns in June.")
	for _, c := range []struct {
		filter retrieve.Filter
		want   []string
	}{
		{retrieve.Filter{}, []string{"a/1.md b/1.md c/1.md", "a/2.md"}},
		{retrieve.Filter{Collections: []string{"a", "c"}}, []string{"a/1.md c/1.md", "a/2.md"}},
		{retrieve.Filter{Collections: []string{"c"}}, []string{"c/1.md"}},
		{retrieve.Filter{Collection: "c"}, []string{"c/1.md a/1.md b/1.md"}},
		{retrieve.Filter{Collection: "b", Collections: []string{"b", "c"}}, []string{"b/1.md c/1.md"}},
	} {
		passages, err := x.Search(t.Context(), retrieve.Query{Text: "kestrel fund", Filter: c.filter})
		must(t, err)
		var got []string
		for _, p := range passages {
			if p.Title != strings.ToUpper(p.Root) || !strings.HasPrefix(p.ID, p.Document+"#1") {
				t.Errorf("passage = %+v, want the title and ID of its root", p)
			}
			got = append(got, strings.Join(append([]string{p.Document}, p.AlsoIn...), " "))
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%+v: other files = %q, want %q", c.filter, got, c.want)
		}
	}
}

// TestManyCopies checks that many copies of one text do not displace other documents.
func TestManyCopies(t *testing.T) {
	x := newRoot(t)
	for i := range 120 {
		store(t, x, "a", fmt.Sprintf("copy-%d.md", i), "", "The policy of parental leave gives twelve weeks.")
	}
	store(t, x, "a", "other.md", "", "Somebody asked about leave once, and about much else besides.")
	if got := found(t, x, retrieve.Query{Text: "parental leave policy", K: 5}); len(got) != 2 || got[1] != "a/other.md#1" {
		t.Errorf("found = %q, want the other document second", got)
	}
}

// TestRenamedTitle: a title is embedded with each chunk, so a document whose file name is
// its title is embedded again if the name changes.
func TestRenamedTitle(t *testing.T) {
	x := newRoot(t)
	doc, chunks := document("a", "p.txt", "p", "Stripes are for hiding.", "Hooves are for running.")
	must(t, x.Replace(t.Context(), doc, chunks))
	search := func(text string) retrieve.Passage {
		passages, err := x.Search(t.Context(), retrieve.Query{Text: text})
		must(t, err)
		return passages[0]
	}
	before := search("zebra").Scores.Dense
	to, _ := document("a", "zebra.txt", "zebra")
	to.Digest, to.Meta = doc.Digest, map[string]string{"author": "Ann"}
	must(t, x.Rename(t.Context(), doc.ID, to))
	p := search("zebra")
	if p.Document != "a/zebra.txt" || p.Title != "zebra" || p.Meta["author"] != "Ann" || p.Scores.Dense < before+0.2 {
		t.Errorf("found = %+v; dense score before = %g", p, before)
	}
	if list, err := x.Documents(t.Context(), retrieve.Filter{}); err != nil || len(list) != 1 || list[0].Chunks != 2 {
		t.Errorf("Documents = %+v, %v", list, err)
	}
	stored, err := x.Document(t.Context(), "a/zebra.txt")
	if err != nil || stored.Text != doc.Text {
		t.Errorf("stored text = %+v, %v", stored, err)
	}
}

// TestRowsLeaveRoom checks that rows of one table that all match do not fill the whole
// result.
func TestRowsLeaveRoom(t *testing.T) {
	x := newRoot(t)
	var rows []string
	for i := range 8 {
		rows = append(rows, fmt.Sprintf("kestrel | tower %d | voles", i))
	}
	doc, chunks := section("table.csv", rows...)
	for i := range chunks {
		chunks[i].Anchor = fmt.Sprintf("row=%d", i+1)
	}
	must(t, x.Replace(t.Context(), doc, chunks))
	search := func() (n int) {
		passages, err := x.Search(t.Context(), retrieve.Query{Text: "kestrel voles", K: 4})
		must(t, err)
		for _, p := range passages {
			if p.Document == doc.ID {
				n++
			}
		}
		return n
	}
	if got := search(); got != 4 {
		t.Errorf("%d rows of the only table found, want 4", got)
	}
	for i, text := range []string{"A kestrel sees voles from far away.", "The nest of a kestrel is in a tower."} {
		doc, chunks := section(fmt.Sprintf("birds-%d.md", i), text)
		must(t, x.Replace(t.Context(), doc, chunks))
	}
	if got := search(); got != 2 {
		t.Errorf("%d of 4 passages are rows of one table, want 2", got)
	}
}
