package retrieve_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"ibid/retrieve"
	"ibid/retrieve/state"
)

// A lengthEncoder ranks long texts first, and records the texts.
type lengthEncoder struct {
	mu    sync.Mutex
	seen  []string
	lack  int  // it returns too few rows
	few   bool // no candidate is encoded in time
	err   error
	knows string
}

func (e *lengthEncoder) EmbedQuestion(context.Context, string) ([]float32, error) {
	return []float32{1, 0}, e.err
}

func (e *lengthEncoder) EmbedPassages(_ context.Context, texts []string, _ int) (rows [][]float32, _ error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, texts...)
	for _, text := range texts {
		sin, cos := math.Sincos(1 - float64(len(text))/1000)
		rows = append(rows, []float32{float32(cos), float32(sin)})
	}
	return rows[e.lack:], nil
}

func (e *lengthEncoder) PassageTokens() int { return 100 }

func (e *lengthEncoder) Candidates() int {
	if e.few {
		return 0
	}
	return 38
}

func (e *lengthEncoder) Space() string {
	return fmt.Sprintf("length of %s, lacking %d/2", e.knows, e.lack)
}

func (e *lengthEncoder) Knows(language string) bool {
	return slices.Contains(strings.Fields(e.knows), language)
}

// TestEncoder checks that the encoder's scores are used only for known languages, that each text is
// encoded once, and that failures do not affect the search itself.
func TestEncoder(t *testing.T) {
	e := openState(t, t.TempDir())
	q := retrieve.Query{Text: "When is the harbour office open?"}
	plain, err := harbourIn(t, e).Search(t.Context(), q)
	must(t, err)
	ids := func(passages []retrieve.Passage) (ids []string) {
		for _, p := range passages {
			ids = append(ids, p.ID)
		}
		return ids
	}
	for _, c := range []*struct {
		name    string
		encoder lengthEncoder
		warned  string
	}{
		{"orders again", lengthEncoder{knows: "en"}, ""},
		{"does not know the language", lengthEncoder{knows: "de"}, ""},
		{"fails", lengthEncoder{knows: "en", err: errors.New("no memory")}, "built-in model searches: no memory"},
		{"miscounts", lengthEncoder{knows: "en", lack: 1}, "rows for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newIndexWith(t, e, testSpace, retrieve.Options{Encoder: &c.encoder})
			var warned []string
			q.Warn = func(err error) { warned = append(warned, err.Error()) }
			got, err := x.Search(t.Context(), q)
			must(t, err)
			again, err := x.Search(t.Context(), q)
			must(t, err)
			if !slices.Equal(ids(got), ids(again)) {
				t.Errorf("order = %q, then %q", ids(got), ids(again))
			}
			if texts := slices.Compact(slices.Sorted(slices.Values(c.encoder.seen))); c.warned == "" && len(texts) != len(c.encoder.seen) {
				t.Errorf("texts encoded more than once: %q", c.encoder.seen)
			}
			changed := !slices.Equal(ids(got), ids(plain))
			if wanted := c.name == "orders again"; changed != wanted || wanted != (len(c.encoder.seen) > 0 && c.encoder.lack == 0) {
				t.Errorf("order = %q, without the encoder %q; encoded %q", ids(got), ids(plain), c.encoder.seen)
			}
			if len(got) != len(plain) || got[0].Score != 1 || !slices.IsSortedFunc(got, func(a, b retrieve.Passage) int {
				return int(1e9 * (b.Score - a.Score))
			}) {
				t.Errorf("scores = %+v", got)
			}
			if (c.warned != "") != (len(warned) == 2) || !strings.Contains(strings.Join(warned, ""), c.warned) {
				t.Errorf("warnings = %q, want %q", warned, c.warned)
			}
		})
	}
}

// encodedIndex returns an index with a searcher for the encoder's vectors.
func encodedIndex(t *testing.T, s *state.Store, m retrieve.Encoder) *retrieve.Index {
	return encodedIndexOf(t, s, s, testSpace, m)
}

// TestEncode checks that the dense search uses the encoder's vectors once all chunks have one, that
// nothing is encoded twice, and that a document is found before it is encoded.
func TestEncode(t *testing.T) {
	s := openState(t, t.TempDir())
	harbourIn(t, s)
	m := &lengthEncoder{knows: "en"}
	x := encodedIndex(t, s, m)
	longest := "handbook/hours.md#1"
	q := retrieve.Query{Text: "Who wrote the novel?", K: 1}
	check := func(x *retrieve.Index, want string, encodings int) {
		t.Helper()
		if got := found(t, x, q); len(got) != 1 || got[0] != want || len(m.seen) != encodings {
			t.Errorf("found = %q, want %s; %d encodings, want %d", got, want, len(m.seen), encodings)
		}
	}
	var last, all int
	encode := func(x *retrieve.Index) {
		t.Helper()
		must(t, x.Encode(t.Context(), retrieve.Encoding{Workers: 2, Progress: func(done, total int) { last, all = done, total }}))
	}
	encode(x)
	if last != 5 || all != 5 {
		t.Errorf("%d of %d chunks are encoded, want 5 of 5", last, all)
	}
	check(x, longest, 5)
	check(encodedIndex(t, s, m), longest, 5) // stored by another process

	text := strings.Repeat("Ropes are kept in the shed. ", 10)
	store(t, x, "handbook", "ropes.md", "Ropes", text)
	if got := found(t, x, retrieve.Query{Text: "Where are ropes kept?"}); got[0] != "handbook/ropes.md#1" {
		t.Errorf("found = %q, want the document that is not encoded", got)
	}
	seen := len(m.seen) // the search encoded it
	if seen != 6 {
		t.Errorf("%d encodings", seen)
	}
	encode(x)
	check(x, "handbook/ropes.md#1", seen)
	must(t, x.Delete(t.Context(), "handbook/ropes.md"))
	encode(x)
	check(x, longest, seen)
}

// TestChangeEncoder checks that an encoder that is set while chunks are encoded continues with
// them, and orders the passages of the next search.
func TestChangeEncoder(t *testing.T) {
	s := openState(t, t.TempDir())
	harbourIn(t, s)
	first, second := &lengthEncoder{knows: "de"}, &lengthEncoder{knows: "en"}
	x := encodedIndex(t, s, first)
	q := retrieve.Query{Text: "Who wrote the novel?", K: 1}
	before := found(t, x, q)
	done := 0
	must(t, x.Encode(t.Context(), retrieve.Encoding{Workers: 1, Progress: func(now, _ int) {
		if done = now; done > 0 && x.Encoder() == first {
			must(t, x.ChangeEncoder(second, func() (retrieve.Searcher, error) { return newSearcher(t, s, retrieve.EncodedSpace(second)), nil }))
		}
	}}))
	if len(first.seen) != 5 || len(second.seen) != 5 || done != 5 {
		t.Errorf("encoded %q, then %q, %d in all", first.seen, second.seen, done)
	}
	if after := found(t, x, q); after[0] != "handbook/hours.md#1" || after[0] == before[0] {
		t.Errorf("found = %q, before %q", after, before)
	}
	err := x.ChangeEncoder(first, func() (retrieve.Searcher, error) { return nil, errors.New("no room") })
	if err == nil || x.Encoder() != nil {
		t.Errorf("encoder = %v, err = %v", x.Encoder(), err)
	}
	if after := found(t, x, q); !slices.Equal(after, before) {
		t.Errorf("found %q without an encoder, %q with one for another language", after, before)
	}
}

// TestPartlyEncoded checks that new chunks without encoder vectors do not keep the dense search
// from using the vectors of other chunks, and that Encode begins with the chunks that searches
// found most often.
func TestPartlyEncoded(t *testing.T) {
	s := openState(t, t.TempDir())
	m := &lengthEncoder{knows: "en", few: true}
	x := encodedIndex(t, s, m)
	_, err := x.AddRoot(t.Context(), "/srv/a", "")
	must(t, err)
	for i := range 2 * retrieve.DefaultCandidates {
		store(t, x, "a", fmt.Sprintf("%d.md", i), "Ropes", fmt.Sprintf("The rope number %d is %s.", i, strings.Repeat("very ", i)))
	}
	nearest := "a/99.md#1" // only for the encoder
	q := retrieve.Query{Text: "Where is the rope number 7?", K: 3}
	if got := found(t, x, q); slices.Contains(got, nearest) || got[0] != "a/7.md#1" {
		t.Errorf("found = %q before any chunk was encoded", got)
	}
	must(t, x.Encode(t.Context(), retrieve.Encoding{Workers: 2}))
	store(t, x, "a", "new.md", "Ropes", "The new rope number 700 is here.")
	store(t, x, "a", "wanted.md", "Ropes", "Where is the rope number 7? Here, says the second new text.")
	for _, other := range []*retrieve.Index{x, encodedIndex(t, s, m)} {
		if got := found(t, other, q); !slices.Contains(got, nearest) || !slices.Contains(got, "a/wanted.md#1") {
			t.Errorf("found = %q with two chunks that are not encoded", got)
		}
	}
	if done, total, err := s.CountEmbedded(t.Context(), retrieve.EncodedSpace(m)); done != 100 || total != 102 || err != nil {
		t.Errorf("%d of %d chunks are encoded, err = %v", done, total, err)
	}
	for i := range 80 {
		store(t, x, "a", fmt.Sprintf("later%d.md", i), "Buoys", fmt.Sprintf("Buoy %d is green.", i))
	}
	m.seen = nil
	must(t, x.Encode(t.Context(), retrieve.Encoding{Workers: 1}))
	if at := slices.IndexFunc(m.seen, func(text string) bool { return strings.Contains(text, "second new text") }); at != 64 {
		t.Errorf("the chunk that searches found was encoded as number %d", at)
	}
}

// TestWarnOfLanguage searches English documents. The warning stops when an encoder that knows both
// languages has encoded all of them.
func TestWarnOfLanguage(t *testing.T) {
	s := openState(t, t.TempDir())
	harbourIn(t, s)
	const german, english = "Wann ist das Büro des Hafens am Sonntag geöffnet?", "When does the harbour office open?"
	const more = "'ibid setup multilingual'"
	const later = "asking in English finds more, or ask again later"
	ask := func(x *retrieve.Index, question, says string) {
		t.Helper()
		var warned []error
		_, err := x.Search(t.Context(), retrieve.Query{Text: question, Warn: func(err error) { warned = append(warned, err) }})
		must(t, err)
		if (len(warned) == 1) != (says != "") || len(warned) > 0 && !strings.Contains(warned[0].Error(), says) {
			t.Errorf("%q: warnings = %v", question, warned)
		}
	}
	for question, says := range map[string]string{
		german: more, "Quando abre o escritório?": more, "Combien coûte un cours ?": more, english: "",
		"Sonntag?": "", "hotels of Las Vegas": "",
	} {
		ask(newIndexWith(t, s, testSpace, retrieve.Options{}), question, says)
	}
	mixed := openState(t, t.TempDir())
	x := harbourIn(t, mixed)
	for i := range 8 {
		store(t, x, "handbook", fmt.Sprintf("ropes%d.md", i), "Ropes", fmt.Sprintf("The rope number %d is in the shed of the harbour.", i))
	}
	store(t, x, "handbook", "hunde.md", "Hunde", "Die Hunde sind im Laden nicht erlaubt.")
	store(t, x, "handbook", "perros.md", "Perros", "Los perros no pueden entrar en la tienda.")
	for question, says := range map[string]string{
		german: "mostly in English", "Когда открывается бюро?": "mostly in English", "Sind Hunde im Laden erlaubt?": "",
	} {
		ask(x, question, says)
	}
	for i := range 4 { // more than a few
		store(t, x, "handbook", fmt.Sprintf("seile%d.md", i), "Seile", fmt.Sprintf("Das Seil %d ist am Sonntag im Schuppen.", i))
	}
	ask(x, german, "")
	stats, err := encodedIndex(t, s, &lengthEncoder{knows: "de en"}).Stats(t.Context(), nil)
	if must(t, err); !stats.Unencoded {
		t.Errorf("no chunk is encoded, but Stats = %+v", stats)
	}
	for knows, says := range map[string]string{"en": more, "de": more, "de en": later} {
		x := encodedIndex(t, s, &lengthEncoder{knows: knows})
		ask(x, german, says)
		if knows == "de en" {
			must(t, x.Encode(t.Context(), retrieve.Encoding{}))
			ask(x, german, "")
			if stats, err := x.Stats(t.Context(), nil); err != nil || stats.Unencoded {
				t.Errorf("all chunks are encoded, but Stats = %+v, %v", stats, err)
			}
		}
	}
}
