package retrieve

import (
	"context"
	"errors"
)

// A Searcher finds candidates. It follows the table of changes of one [State], holds only copies of
// its data and can be rebuilt from it. It belongs to one embedding space. The [Index] computes the
// scores of its results.
//
// A Searcher is safe for concurrent use.
type Searcher interface {
	// Apply brings the searcher up to date with changes, in the order of their revisions. A change
	// to a document replaces its earlier version; applying a change twice has no further effect.
	// Every search that begins after Apply returns finds the applied changes.
	Apply(ctx context.Context, changes []Change) error
	// Revision returns the revision and era of the last applied change, or 0 if no change was
	// applied.
	Revision(ctx context.Context) (revision, era int64, err error)
	// Reset drops all data, so that all changes are applied again.
	Reset(ctx context.Context) error

	// Dense returns the k chunks nearest to the vector by cosine, nearest first, or fewer if there
	// are fewer. Ties are ordered by chunk id ([ChunkID], compared as strings).
	Dense(ctx context.Context, vector []float32, k int, f Filter) ([]Hit, error)
	// Lexical returns the k chunks with the highest BM25 score over the terms (made by [Terms];
	// each counts once), highest first. Ties are ordered by chunk id. Chunks without any of the
	// terms are not returned.
	Lexical(ctx context.Context, terms []string, k int, f Filter) ([]Hit, error)
	// Evidence returns the data from which scores are computed, in the order of the hits. It omits
	// hits that were deleted or changed meanwhile.
	Evidence(ctx context.Context, hits []Hit, terms []string) ([]Evidence, error)
	// Stats returns the figures that BM25 needs, over all indexed chunks (not filtered).
	Stats(ctx context.Context, terms []string) (Stats, error)
	// Close makes the applied changes as durable as the searcher supports and releases its
	// resources. Closing it again has no effect.
	Close() error
}

// ErrIndexDamaged is wrapped by the errors of a [Searcher] that found its data damaged. To repair
// it, call Reset and apply the state's changes.
var ErrIndexDamaged = errors.New("the search index is damaged")

// A Hit is a chunk that a [Searcher] found.
type Hit struct {
	Document   int64 // from [Change.Document]
	Generation int64 // [Change.Revision] of the change that stored the chunk
	Ordinal    int   // of the chunk in its document, from 1
}

func (h Hit) version() Version { return Version{h.Document, h.Generation} }

// Evidence is the data for the scores of one chunk.
type Evidence struct {
	Hit    Hit
	Vector []float32 // must not be changed; valid until the searcher is closed
	// Counts is the number of occurrences of each requested term in the chunk, and Length the
	// number of its words, both by [CountTerms].
	Counts []int
	Length int
}

// Stats are the corpus figures of BM25.
type Stats struct {
	Chunks    int            // number of chunks stored
	MeanTerms float64        // mean number of terms of a chunk
	Frequency map[string]int // for each requested term, the number of chunks with it
	// Unencoded is set if an encoder has not encoded all chunks. Only an [Index] sets it.
	Unencoded bool
}
