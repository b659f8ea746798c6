package retrieve_test

import (
	"context"
	"strings"
	"testing"

	"ibid/retrieve"
	"ibid/retrieve/index"
)

// An altered searcher has something else than was applied.
type altered struct {
	retrieve.Searcher
	alter func([]retrieve.Evidence) []retrieve.Evidence
	extra int
}

func (a *altered) Evidence(ctx context.Context, hits []retrieve.Hit, terms []string) ([]retrieve.Evidence, error) {
	all, err := a.Searcher.Evidence(ctx, hits, terms)
	if err != nil || a.alter == nil || hits[0].Ordinal != 2 {
		return all, err
	}
	return a.alter(all), nil
}

func (a *altered) Stats(ctx context.Context, terms []string) (retrieve.Stats, error) {
	stats, err := a.Searcher.Stats(ctx, terms)
	stats.Chunks += a.extra
	return stats, err
}

func TestCheckSearcher(t *testing.T) {
	s := openState(t, t.TempDir())
	x := newIndex(t, s, testSpace)
	_, err := x.AddRoot(t.Context(), "/srv/a", "")
	must(t, err)
	store(t, x, "a", "1", "One", "words", "more words", "and the last ones")
	name, err := s.Library(t.Context())
	must(t, err)
	searcher := index.Open(t.TempDir(), index.Options{Library: name, Space: testSpace.Space()})
	defer searcher.Close()
	for want, a := range map[string]*altered{
		"":                  {},
		"lacks its chunk 2": {alter: func([]retrieve.Evidence) []retrieve.Evidence { return nil }},
		"the vector of its chunk 2": {alter: func(all []retrieve.Evidence) []retrieve.Evidence {
			all[0].Vector = append([]float32{1}, all[0].Vector[1:]...)
			return all
		}},
		"the terms of its chunk 2": {alter: func(all []retrieve.Evidence) []retrieve.Evidence {
			all[0].Counts[0]++
			return all
		}},
		"extra": {extra: 2},
	} {
		a.Searcher = searcher
		r, err := retrieve.CheckSearcher(t.Context(), s, a, nil)
		must(t, err)
		got := ""
		for _, d := range r.Differing {
			got += d.Document + ": " + d.Reason
		}
		if r.Extra > 0 {
			got += "extra"
		}
		if r.Documents != 1 || r.Chunks != 3 || (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%+v, want %q", r, want)
		}
	}
}
