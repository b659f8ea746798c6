package ingest

import "context"

// A Sink is what a [Syncer] needs of a store.
//
// Its methods are durable when they return nil: a crash afterwards loses
// nothing, a crash before leaves the document as it was.
type Sink interface {
	// Known gives what is stored of the root, by path.
	Known(ctx context.Context, root Root) (map[string]Stored, error)
	// Replace stores the document with its chunks in place of what was stored
	// under its id. Readers see the old or the new, never a mixture.
	Replace(ctx context.Context, doc *Document, chunks []Chunk) error
	// Rename gives the stored document from (an id) the id, path and
	// otherwise unchanged content of to, and keeps its vectors.
	Rename(ctx context.Context, from string, to *Document) error
	// Delete removes a document and every trace of it. Deleting what is not
	// there is no error.
	Delete(ctx context.Context, id string) error
}

// A Preparer is a [Sink] that can do the most of Replace ahead of it, for
// several documents at a time.
type Preparer interface {
	// Prepare does what needs no change of the store; store does the rest of
	// Replace. Replace, Rename and Delete of other documents may come between.
	Prepare(ctx context.Context, doc *Document, chunks []Chunk) (store func(context.Context) error, err error)
}

// Stored is what a [Syncer] wants to know of a stored document.
type Stored struct {
	Digest string // [Document.Digest]
	Reader string // of [Document.Meta], under [ReaderKey]
}

// A Lister is a [Sink] that keeps what was found in archives and mails, so that
// unchanged ones are not looked into again, by another process neither. An
// archive or mail has the id that a document of its path would have;
// [Sink.Delete] removes what is kept under the id too.
type Lister interface {
	// Listing gives what was last kept for the id; nil when nothing is.
	Listing(ctx context.Context, id string) ([]byte, error)
	KeepListing(ctx context.Context, root Root, id string, listing []byte) error
	// Listings gives the ids in a root for which KeepListing was called.
	Listings(ctx context.Context, root Root) (ids []string, err error)
}

// An Action says what a sync did with one file.
type Action string

// The actions. Added + updated + unchanged + renamed + skipped + failed are
// the files seen; removed ones are counted apart.
const (
	Added     Action = "added"
	Updated   Action = "updated"
	Unchanged Action = "unchanged"
	Renamed   Action = "renamed"
	Removed   Action = "removed"
	Skipped   Action = "skipped"
	Failed    Action = "failed"
)

// A Change is what became of one file. It is yielded only after what it says
// is durable.
type Change struct {
	Document string `json:"document"`
	Root     string `json:"root"`
	Path     string `json:"path"`
	Action   Action `json:"action"`
	// Reason says why a file was skipped or failed, in words that name the
	// next step where there is one; for a file that was read, what of it
	// could not be.
	Reason string `json:"reason,omitempty"`
	// From is the earlier path of a renamed file.
	From   string `json:"from,omitempty"`
	Chunks int    `json:"chunks"`
	Pages  int    `json:"pages"`
	// Done of Total files of this sync are accounted for, this one included.
	Done  int `json:"-"`
	Total int `json:"-"`
}
