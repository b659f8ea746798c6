package retrieve

import (
	"context"

	"ibid/ingest"
)

// An Embedder turns texts into vectors.
type Embedder interface {
	// Embed gives one row for each text, in order; every row has the same
	// length, unit Euclidean length, and finite components. A text without
	// any known word still gets a row. An error means that no row counts.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// Space names the model and its dimensions, "ibid-static-1/192" for one.
	// Vectors may be compared only within one space.
	Space() string
}

// A Vocabulary is an [Embedder] that knows only some words. Fusion weighs its
// vectors by the share of the question's words that it knows.
type Vocabulary interface {
	// Known returns the share of the text's words that it knows, 0 to 1.
	Known(text string) float64
}

// An Engine stores documents, chunks and vectors, and finds candidates. It
// never decides: the [Index] computes scores on what it returns.
// An engine is safe for concurrent use, also by several processes where its
// documentation says so. Writes are durable when they return nil.
type Engine interface {
	// Space is the embedding space the stored vectors belong to; empty while
	// nothing has been stored. SetSpace is called once, on an empty engine.
	Space(ctx context.Context) (string, error)
	SetSpace(ctx context.Context, space string) error

	// AddRoot returns the root stored for the absolute folder path, and
	// creates it under a free name when there is none.
	AddRoot(ctx context.Context, path, collection string) (ingest.Root, error)
	Roots(ctx context.Context) ([]ingest.Root, error)
	// KeepRoot creates a root of exactly this name, path and collection unless
	// it exists. A root that [CheckRoot] refuses is a [*RootError].
	KeepRoot(ctx context.Context, root ingest.Root) error
	// DeleteRoot removes a root and all its documents, and returns how many
	// there were. An unknown name is [ErrNotFound].
	DeleteRoot(ctx context.Context, name string) (documents int, err error)

	// Replace stores one whole document in place of the one with its id. It
	// refuses vectors that do not fit the space (length, finiteness, zero
	// length) and then changes nothing.
	Replace(ctx context.Context, doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) error
	// Prepare does most of Replace without the engine's write lock: it checks a
	// document with vectors of the space. store replaces the document, or
	// returns a [*SpaceError] if the engine has changed its space meanwhile. The
	// document must not change until then.
	Prepare(space string, doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) (store func(context.Context) error, err error)
	Rename(ctx context.Context, from string, to *ingest.Document) error
	Delete(ctx context.Context, document string) error

	// Listing, KeepListing and Listings are those of an [ingest.Lister], with
	// the name of the root.
	Listing(ctx context.Context, id string) ([]byte, error)
	KeepListing(ctx context.Context, root, id string, listing []byte) error
	Listings(ctx context.Context, root string) (ids []string, err error)
	// Document returns a stored document with its text; [ErrNotFound] if there is none.
	Document(ctx context.Context, id string) (*ingest.Document, error)
	// Excerpt returns Text[start:end] of a stored document, in bytes;
	// [ErrNotFound] if there is no such document or it is shorter.
	Excerpt(ctx context.Context, id string, start, end int) (string, error)
	// Sections returns the sections of a stored document, in order; [ErrNotFound]
	// if the document is missing, is damaged or has another digest.
	Sections(ctx context.Context, id, digest string) ([]ingest.Section, error)
	// Documents lists the stored documents, ordered by id, without texts.
	Documents(ctx context.Context, f Filter) ([]DocumentInfo, error)
	// Holds reports whether Documents would list any.
	Holds(ctx context.Context, f Filter) (bool, error)

	// Dense returns the ids of the k chunks nearest to the vector by cosine,
	// nearest first; ties are ordered by id. Fewer when there are fewer.
	Dense(ctx context.Context, vector []float32, k int, f Filter) ([]string, error)
	// Lexical returns the ids of the k chunks with the highest BM25 score over
	// the terms (made by [Terms]), highest first; ties are ordered by id.
	// Chunks with none of the terms are not returned.
	Lexical(ctx context.Context, terms []string, k int, f Filter) ([]string, error)
	// Candidates returns chunks with their vectors, in the order of the ids.
	// A chunk that was deleted or changed meanwhile is left out.
	Candidates(ctx context.Context, ids []string) ([]Candidate, error)
	// Stats counts what BM25 needs, over everything stored (not filtered).
	Stats(ctx context.Context, terms []string) (Stats, error)
	Respacer
	// Revision grows with every durable change by any process.
	Revision(ctx context.Context) (int64, error)
	// Close releases the engine; closing it again does nothing.
	Close() error
}

// A Remote is an [Engine] on a server, where most of storing a document is
// waiting for it.
type Remote interface {
	// Writers is how many documents are best stored at a time.
	Writers() int
}

// DocumentInfo is one line of the list of documents.
type DocumentInfo struct {
	ingest.Document
	Collection string `json:"collection"`
	Chunks     int    `json:"chunks"`
	Pages      int    `json:"pages"`
	Bytes      int    `json:"bytes"` // length of the extracted text
}

// A Candidate is a chunk as an engine found it.
type Candidate struct {
	Hit Hit // set by a [State]
	ingest.Chunk
	Root, Path, Title, Format, Digest string
	Meta                              map[string]string // of the document; must not be changed
	Vector                            []float32         // must not be changed
	// Terms are the counted terms of the chunk's embedding text and Length
	// their number, by [CountTerms], if the engine stores them; if Terms is
	// nil they are counted again.
	Terms  []TermCount
	Length int
}

// Stats are the corpus figures of BM25.
type Stats struct {
	Chunks    int            // number of chunks stored
	MeanTerms float64        // mean number of terms of a chunk
	Frequency map[string]int // for each requested term, the number of chunks with it
}
