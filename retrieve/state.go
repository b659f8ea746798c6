package retrieve

import (
	"context"
	"crypto/sha256"
	"iter"
	"time"

	"ibid/ingest"
)

// A Catalog has the roots and documents of a library. An [Index] has that of its
// [State].
type Catalog interface {
	// AddRoot returns the root stored for a path, as [ingest.Root] has it, and
	// creates it under a free name if there is none. An empty collection is
	// [ingest.DefaultCollection].
	AddRoot(ctx context.Context, path, collection string) (ingest.Root, error)
	// Roots lists the roots by name.
	Roots(ctx context.Context) ([]ingest.Root, error)
	// Document returns a stored document with its text; [ErrNotFound] if there is none.
	Document(ctx context.Context, id string) (*ingest.Document, error)
	// Documents lists the stored documents, ordered by id, without texts.
	Documents(ctx context.Context, f Filter) ([]DocumentInfo, error)
	// Holds reports whether Documents would list any.
	Holds(ctx context.Context, f Filter) (bool, error)
}

// A State is the one place of truth of a library: roots, documents with their
// text, chunks, vectors, and a table of changes written in the same transaction
// as the documents. It finds nothing: a [Searcher] that follows the table does.
//
// A State is safe for concurrent use, also by several processes. Writes are
// durable when they return nil.
type State interface {
	Catalog
	// Space is the embedding space that searches use; empty while no document is
	// stored.
	Space(ctx context.Context) (string, error)

	// Replace stores one whole document in place of the one with its id, in one
	// transaction with its row in the table of changes. It refuses chunks and
	// vectors that [CheckDocument] refuses. The vectors are of the given space,
	// which becomes the state's if no document is stored; if the state's space is
	// another one, Replace returns a [*SpaceError] and changes nothing.
	Replace(ctx context.Context, space string, doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) error
	// Rename gives the stored document from the id, root, path and metadata of
	// to, whose digest and title must be those of the stored document.
	Rename(ctx context.Context, from string, to *ingest.Document) error
	Delete(ctx context.Context, document string) error

	// Excerpts returns an excerpt for each span, in their order.
	Excerpts(ctx context.Context, spans []Span) ([]Excerpt, error)
	// Count counts what Documents would list, and its chunks.
	Count(ctx context.Context, f Filter) (documents, chunks int, err error)
	// DocumentChunks returns all chunks of a document with their vectors of the
	// space in use; [ErrNotFound] if there is no such document.
	DocumentChunks(ctx context.Context, id string) ([]ingest.Chunk, [][]float32, error)
	// Chunks returns the chunks of the hits, in their order, with the metadata of
	// their documents. A hit whose generation is no longer stored, or whose chunk
	// is damaged, is left out.
	Chunks(ctx context.Context, hits []Hit) ([]Candidate, error)

	// Vectors returns the stored vector of the space for each digest, nil where
	// there is none.
	Vectors(ctx context.Context, space string, digests []Digest) ([][]float32, error)

	// Unembedded gives the texts of stored chunks that have no vector of the space
	// yet, each once, up to n at a time, those of the latest documents first. Vectors
	// are added meanwhile; chunks that others store meanwhile may be missed.
	Unembedded(ctx context.Context, space string, n int) iter.Seq2[[]ChunkText, error]
	// Embedded counts the chunks that have a vector of the space, and all.
	Embedded(ctx context.Context, space string) (done, total int, err error)
	// AddVectors stores vectors of a space next to those in use. A digest that no
	// chunk has any more is skipped. A document with one of the chunks whose chunks all
	// have a vector of the space then counts as changed.
	AddVectors(ctx context.Context, space string, digests []Digest, vectors [][]float32) error
	// SwitchSpace makes the space the one in use and deletes the vectors of all
	// others. It changes nothing and returns false if a chunk has no vector of the
	// space yet.
	SwitchSpace(ctx context.Context, space string) (bool, error)

	// Revision is that of the latest change by any process, with its era. It is cheap.
	Revision(ctx context.Context) (revision, era int64, err error)
	// Era is the era of a revision. A searcher whose last change has another era
	// followed changes that the state has lost: it was restored from a backup, or a
	// standby without the latest changes took over. Only the documents then tell
	// what the searcher lacks.
	Era(ctx context.Context, revision int64) (int64, error)
	// Changes yields the changes after a revision, in the order of the revisions:
	// for each document at most its latest change, so that the changes after 0 are
	// all the documents. Vectors are those of the space; if it has none, the error
	// is a [*SpaceError]. A document that is damaged comes as deleted, and so does one
	// with a chunk that has no vector of a space that is not the one in use.
	Changes(ctx context.Context, space string, after int64) iter.Seq2[Change, error]

	Ledger() Ledger
}

type waitKey struct{}

// WithWait returns a context in which calls of a [State] wait for at most so long
// for a server that is unreachable, if that is less than they would otherwise: a
// reader waits less patiently than an ingest.
func WithWait(ctx context.Context, most time.Duration) context.Context {
	return context.WithValue(ctx, waitKey{}, most)
}

// WaitOf returns the wait set by [WithWait], or the one given.
func WaitOf(ctx context.Context, otherwise time.Duration) time.Duration {
	if most, ok := ctx.Value(waitKey{}).(time.Duration); ok {
		return most
	}
	return otherwise
}

// A ChunkText is the text of a chunk as it is embedded ([ingest.EmbeddingText]),
// with its digest.
type ChunkText struct {
	Digest Digest
	Text   string
}

// A Digest identifies the text of a chunk as it is embedded: the first half of
// its SHA-256.
type Digest [16]byte

// DigestOf returns the digest of a text made by [ingest.EmbeddingText].
func DigestOf(text string) Digest {
	sum := sha256.Sum256([]byte(text))
	return Digest(sum[:16])
}

// A Change is one committed change to a document, with all that a [Searcher]
// needs to know of it.
type Change struct {
	// Revision grows with every change.
	Revision int64
	// Era is a random number of the process that began to make changes last, at the
	// revision or before; 0 for changes before there were eras.
	Era int64
	// Document numbers a document; the number is never given to another one. It
	// is 0 for a change that is not about a document.
	Document int64
	// Deleted documents have neither of the following.
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
	Number     int64  `json:"-"`     // larger than those of the documents that were added before
}

// A Span asks for a part of a stored document's text, and for its outline.
type Span struct {
	Version    Version
	Start, End int // in bytes; equal for none
	Outline    bool
}

// A Version is one state of a document: its number and that of the change that
// stored it.
type Version struct{ Document, Generation int64 }

// An Excerpt is the text of a [Span].
type Excerpt struct {
	// Stored is false if the version is no longer stored, its text is shorter, or
	// its outline is damaged. Then the excerpt has neither.
	Stored  bool
	Text    string // not compared with a checksum, which is over the whole text
	Outline Outline
}

// A Candidate is the chunk of a hit.
type Candidate struct {
	Hit Hit
	ingest.Chunk
	Root, Path, Title, Format, Digest string
	Meta                              map[string]string // of the document; must not be changed
}
