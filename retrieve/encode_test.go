package retrieve_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"ibid/retrieve"
)

// A lengthEncoder takes long texts for the most relevant ones, and notes the texts.
type lengthEncoder struct {
	seen  []string
	lack  int // rows too few
	err   error
	knows string
}

func (e *lengthEncoder) EmbedQuestion(context.Context, string) ([]float32, error) {
	return []float32{1, 0}, e.err
}

func (e *lengthEncoder) EmbedPassages(_ context.Context, texts []string, _ int) (rows [][]float32, _ error) {
	e.seen = append(e.seen, texts...)
	for _, text := range texts {
		rows = append(rows, []float32{float32(len(text)) / 1000, 0})
	}
	return rows[e.lack:], nil
}

func (e *lengthEncoder) Knows(language string) bool { return language == e.knows }

// TestEncoder checks how the encoder's scores are used: only of known languages,
// each text once, and never at the expense of the search itself.
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
	for _, c := range []struct {
		name    string
		encoder lengthEncoder
		warned  string
	}{
		{"orders again", lengthEncoder{knows: "en"}, ""},
		{"does not know the language", lengthEncoder{knows: "de"}, ""},
		{"fails", lengthEncoder{knows: "en", err: errors.New("no memory")}, "order of the search: no memory"},
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
				t.Errorf("%q, and then %q", ids(got), ids(again))
			}
			if texts := slices.Compact(slices.Sorted(slices.Values(c.encoder.seen))); c.warned == "" && len(texts) != len(c.encoder.seen) {
				t.Errorf("encoded more than once: %q", c.encoder.seen)
			}
			changed := !slices.Equal(ids(got), ids(plain))
			if wanted := c.name == "orders again"; changed != wanted || wanted != (len(c.encoder.seen) > 0 && c.encoder.lack == 0) {
				t.Errorf("the order is %q instead of %q, and encoded was %q", ids(got), ids(plain), c.encoder.seen)
			}
			if len(got) != len(plain) || got[0].Score != 1 || !slices.IsSortedFunc(got, func(a, b retrieve.Passage) int {
				return int(1e9 * (b.Score - a.Score))
			}) {
				t.Errorf("scores %+v", got)
			}
			if (c.warned != "") != (len(warned) == 2) || !strings.Contains(strings.Join(warned, ""), c.warned) {
				t.Errorf("warned %q, want %q", warned, c.warned)
			}
		})
	}
}
