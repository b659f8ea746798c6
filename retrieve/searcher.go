package retrieve

import (
	"context"
	"errors"
)

// A Searcher finds candidates and owns nothing: it follows the table of changes
// of one [State], and can be rebuilt from it. It belongs to one embedding
// space. The [Index] computes the scores of its results.
//
// A Searcher is safe for concurrent use.
type Searcher interface {
	// Apply brings the searcher up to date with changes, in the order of their
	// revisions. A change to a document replaces its earlier version; applying a
	// change again changes nothing. Changes that were applied are found by every
	// search that begins after Apply returns.
	Apply(ctx context.Context, changes []Change) error
	// Revision is that of the last change applied, and Era the era of that change;
	// 0 if there is none.
	Revision(ctx context.Context) (revision, era int64, err error)
	// Reset drops everything, so that all changes are applied again.
	Reset(ctx context.Context) error

	// Dense returns the k chunks nearest to the vector by cosine, nearest first;
	// ties are ordered by chunk id ([ChunkID], compared as strings). Fewer when
	// there are fewer.
	Dense(ctx context.Context, vector []float32, k int, f Filter) ([]Hit, error)
	// Lexical returns the k chunks with the highest BM25 score over the terms
	// (made by [Terms]; each counts once), highest first; ties are ordered by chunk
	// id. Chunks with none of the terms are not returned.
	Lexical(ctx context.Context, terms []string, k int, f Filter) ([]Hit, error)
	// Evidence returns what scores are computed from, in the order of the hits.
	// A hit that was deleted or changed meanwhile is left out.
	Evidence(ctx context.Context, hits []Hit, terms []string) ([]Evidence, error)
	// Stats counts what BM25 needs, over everything indexed (not filtered).
	Stats(ctx context.Context, terms []string) (Stats, error)
	// Close makes the applied changes as durable as the searcher supports, and
	// releases its resources; closing it again does nothing.
	Close() error
}

// ErrIndexDamaged is wrapped by the errors of a [Searcher] that found its data
// damaged. Reset, and then applying the changes of the state, repairs it.
var ErrIndexDamaged = errors.New("the search index is damaged")

// A Hit is a chunk that a [Searcher] found.
type Hit struct {
	Document   int64 // number of the document, of [Change.Document]
	Generation int64 // [Change.Revision] of the change that the chunk is from
	Ordinal    int   // of the chunk in its document, from 1
}

func (h Hit) version() Version { return Version{h.Document, h.Generation} }

// Evidence is the data for the scores of one chunk.
type Evidence struct {
	Hit    Hit
	Vector []float32 // must not be changed; valid until the searcher is closed
	// Counts are how often the chunk has each of the terms asked for, and Length
	// is the number of all its terms, both by [CountTerms].
	Counts []int
	Length int
}

// Stats are the corpus figures of BM25.
type Stats struct {
	Chunks    int            // number of chunks stored
	MeanTerms float64        // mean number of terms of a chunk
	Frequency map[string]int // for each requested term, the number of chunks with it
	// Unencoded: there is an encoder that has not encoded all chunks. Only an [Index] knows.
	Unencoded bool
}
