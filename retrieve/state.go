package retrieve

import (
	"context"
	"crypto/sha256"
	"iter"
	"time"

	"ibid/ingest"
)

// A Catalog has the roots and documents of a library.
type Catalog interface {
	// AddRoot returns the root stored for a path, written as in [ingest.Root], and creates it under
	// a free name if it does not exist. An empty collection means [ingest.DefaultCollection].
	AddRoot(ctx context.Context, path, collection string) (ingest.Root, error)
	// Roots lists the roots by name.
	Roots(ctx context.Context) ([]ingest.Root, error)
	// Document returns a stored document with its text. If there is no such document, the error is
	// [ErrNotFound].
	Document(ctx context.Context, id string) (*ingest.Document, error)
	// Documents lists the stored documents, ordered by id, without texts.
	Documents(ctx context.Context, f Filter) ([]DocumentInfo, error)
	// Holds reports whether Documents would list any document.
	Holds(ctx context.Context, f Filter) (bool, error)
}

// A State stores the data of a library: roots, documents with their text, chunks, vectors, and a
// table of changes written in the same transaction as the documents. A [Searcher] follows that
// table and searches the documents.
//
// A State is safe for concurrent use by several goroutines and processes. Writes are durable when
// they return nil.
type State interface {
	Catalog
	// Space returns the embedding space that searches use, or "" while no document is stored.
	Space(ctx context.Context) (string, error)

	// Replace stores a document in place of any document with the same id, in one transaction with
	// its row in the table of changes. It refuses chunks and vectors that [CheckDocument] refuses.
	// The vectors belong to the given space, which becomes the state's if no document is stored. If
	// the state has another space, Replace returns a [*SpaceError] and changes nothing.
	Replace(ctx context.Context, space string, doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) error
	// Rename gives the stored document named from the id, root, path and metadata of to, whose
	// digest and title must equal those of the stored document.
	Rename(ctx context.Context, from string, to *ingest.Document) error
	Delete(ctx context.Context, document string) error

	// Excerpts returns an excerpt for each span, in their order.
	Excerpts(ctx context.Context, spans []Span) ([]Excerpt, error)
	// Count returns the number of documents that Documents would list, and of their chunks.
	Count(ctx context.Context, f Filter) (documents, chunks int, err error)
	// DocumentChunks returns all chunks of a document with their vectors of the space in use. If
	// there is no such document, the error is [ErrNotFound].
	DocumentChunks(ctx context.Context, id string) ([]ingest.Chunk, [][]float32, error)
	// Chunks returns the chunks of the hits, in order, with the metadata of their documents. It
	// omits hits whose generation is no longer stored and chunks that are damaged.
	Chunks(ctx context.Context, hits []Hit) ([]Candidate, error)

	// Vectors returns the stored vector of the space for each digest, or nil if it is not stored.
	Vectors(ctx context.Context, space string, digests []Digest) ([][]float32, error)

	// Unembedded yields the texts of stored chunks that have no vector of the space yet, each once,
	// up to n at a time, beginning with the latest documents. The caller adds vectors while it
	// iterates. Chunks that other processes store during the iteration may be missed.
	Unembedded(ctx context.Context, space string, n int) iter.Seq2[[]ChunkText, error]
	// CountEmbedded returns the number of chunks that have a vector of the space, and the number of
	// all chunks.
	CountEmbedded(ctx context.Context, space string) (done, total int, err error)
	// AddVectors stores vectors of a space in addition to those in use. It skips digests that no
	// chunk has any more. A document counts as changed if these vectors complete it, so that all
	// its chunks have a vector of the space.
	AddVectors(ctx context.Context, space string, digests []Digest, vectors [][]float32) error
	// SwitchSpace makes the space the one in use and deletes the vectors of all other spaces. If a
	// chunk has no vector of the space yet, it changes nothing and returns false.
	SwitchSpace(ctx context.Context, space string) (bool, error)

	// Revision returns the revision and era of the latest change by any process. It is cheap to
	// call.
	Revision(ctx context.Context) (revision, era int64, err error)
	// Era returns the era of a revision. If the last change of a searcher has another era, the
	// searcher followed changes that the state has lost, because it was restored from a backup or a
	// standby without the latest changes took over. The searcher must then be rebuilt from the
	// documents.
	Era(ctx context.Context, revision int64) (int64, error)
	// Changes yields the changes after a revision, ordered by revision: for each document at most
	// its latest change, so that the changes after 0 are all documents. Vectors belong to the given
	// space; if no vector of it is stored, the error is a [*SpaceError]. A damaged document is
	// yielded as deleted, as is a document with a chunk that lacks a vector if the space is not the
	// one in use.
	Changes(ctx context.Context, space string, after int64) iter.Seq2[Change, error]

	Ledger() Ledger
}

type waitKey struct{}

// WithWait returns a context in which calls of a [State] wait at most the given time for an
// unreachable server, even if their own limit is longer: readers are less patient than an ingest.
func WithWait(ctx context.Context, most time.Duration) context.Context {
	return context.WithValue(ctx, waitKey{}, most)
}

// WaitOf returns the wait set by [WithWait], or the given one if none is set.
func WaitOf(ctx context.Context, otherwise time.Duration) time.Duration {
	if most, ok := ctx.Value(waitKey{}).(time.Duration); ok {
		return most
	}
	return otherwise
}

// A ChunkText is the text of a chunk as it is embedded ([ingest.EmbeddingText]), with its digest.
type ChunkText struct {
	Digest Digest
	Text   string
}

// A Digest identifies the embedded text of a chunk: the first half of its SHA-256.
type Digest [16]byte

// DigestOf returns the digest of a text made by [ingest.EmbeddingText].
func DigestOf(text string) Digest {
	sum := sha256.Sum256([]byte(text))
	return Digest(sum[:16])
}

// A Change is one committed change to a document, with the data that a [Searcher] needs.
type Change struct {
	// Revision grows with every change.
	Revision int64
	// Era is a random number chosen by the process that last began to make changes, at or before
	// this revision; 0 for changes made before eras were introduced.
	Era int64
	// Document is the number of a document, which is never reused; 0 for a change that is not about
	// a document.
	Document int64
	// Deleted means that the document was deleted; Info and Chunks are then empty.
	Deleted bool
	Info    DocumentInfo
	Chunks  []IndexChunk
}

// An IndexChunk is a chunk as a [Searcher] indexes it.
type IndexChunk struct {
	Text   string    // by [ingest.EmbeddingText]
	Vector []float32 // of unit length
}

// DocumentInfo is one line of the list of documents.
type DocumentInfo struct {
	ingest.Document
	Collection string `json:"collection"`
	Chunks     int    `json:"chunks"`
	Pages      int    `json:"pages"`
	Bytes      int    `json:"bytes"` // length of the extracted text
	Number     int64  `json:"-"`     // larger than the numbers of documents that were added earlier
}

// A Span selects a part of a stored document's text, and its outline.
type Span struct {
	Version    Version
	Start, End int // in bytes; equal to select no text
	Outline    bool
}

// A Version is one version of a document: its number and the revision of the change that stored it.
type Version struct{ Document, Generation int64 }

// An Excerpt is the text of a [Span].
type Excerpt struct {
	// Stored is false if the version is no longer stored, its text is shorter, or its outline is
	// damaged. Text and Outline are then empty.
	Stored  bool
	Text    string // not verified: the checksum covers the whole text
	Outline Outline
}

// A Candidate is the chunk of a hit.
type Candidate struct {
	Hit Hit
	ingest.Chunk
	Root, Path, Title, Format, Digest string
	Meta                              map[string]string // of the document; must not be changed
}
