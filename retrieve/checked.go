package retrieve

import (
	"context"
	"fmt"
	"slices"
)

// A SearcherReport is the result of [CheckSearcher].
type SearcherReport struct {
	Documents int `json:"documents"` // compared
	Chunks    int `json:"chunks"`
	// Differing lists the documents whose copy in the searcher differs from the state, by id.
	Differing []Difference `json:"differing"`
	// Extra is the number of chunks that only the searcher has.
	Extra int `json:"extra"`
}

// A Difference is a document whose copy in a searcher differs from the state.
type Difference struct {
	Document string `json:"document"`
	Reason   string `json:"reason"`
}

// CheckSearcher compares the searcher with the state: every chunk with its vector and its terms,
// and also its other fields if the searcher has a method Compare. If progress is not nil, it is
// called with the number of documents compared so far and in total.
func CheckSearcher(ctx context.Context, s State, searcher Searcher, progress func(done, total int)) (report SearcherReport, err error) {
	report.Differing = []Difference{}
	space, err := s.Space(ctx)
	if err != nil || space == "" {
		return report, err
	}
	if err := newFollower(s, searcher, space, Options{}).follow(ctx); err != nil {
		return report, err
	}
	total, _, err := s.Count(ctx, Filter{})
	if err != nil {
		return report, err
	}
	compare := func(ctx context.Context, c *Change) (string, error) { return compareDocument(ctx, searcher, c) }
	if own, ok := searcher.(interface {
		Compare(context.Context, *Change) (string, error)
	}); ok {
		compare = own.Compare
	}
	for c, err := range s.Changes(ctx, space, 0) {
		if err != nil {
			return report, err
		}
		if c.Document == 0 || c.Deleted {
			continue
		}
		what, err := compare(ctx, &c)
		if err != nil {
			return report, fmt.Errorf("compare %s with the search index: %w", c.Info.ID, err)
		}
		if what != "" {
			report.Differing = append(report.Differing, Difference{c.Info.ID, what})
		}
		report.Documents, report.Chunks = report.Documents+1, report.Chunks+len(c.Chunks)
		if progress != nil {
			progress(report.Documents, total)
		}
	}
	if whole, ok := searcher.(interface{ Check(context.Context) error }); ok {
		if err := whole.Check(ctx); err != nil { // checks the data that no comparison has read
			return report, err
		}
	}
	stats, err := searcher.Stats(ctx, nil)
	report.Extra = max(0, stats.Chunks-report.Chunks)
	return report, err
}

// compareDocument describes the first difference between a document and the searcher's copy, or
// returns "".
func compareDocument(ctx context.Context, searcher Searcher, c *Change) (string, error) {
	for i, chunk := range c.Chunks {
		counts, length := CountTerms(chunk.Text)
		terms, want := make([]string, len(counts)), make([]int, len(counts))
		for at, t := range counts {
			terms[at], want[at] = t.Term, t.Count
		}
		hit := Hit{Document: c.Document, Generation: c.Revision, Ordinal: i + 1}
		has, err := searcher.Evidence(ctx, []Hit{hit}, terms)
		switch {
		case err != nil:
			return "", err
		case len(has) == 0:
			return fmt.Sprintf("the search index lacks its chunk %d", i+1), nil
		case !slices.Equal(has[0].Vector, chunk.Vector):
			return fmt.Sprintf("the vector of its chunk %d differs in the search index", i+1), nil
		case has[0].Length != length || !slices.Equal(has[0].Counts, want):
			return fmt.Sprintf("the terms of its chunk %d differ in the search index", i+1), nil
		}
	}
	return "", nil
}
