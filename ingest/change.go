package ingest

import "context"

// A Sink is a store that a [Syncer] updates.
//
// Its methods are durable when they return nil: a crash afterwards loses
// nothing, a crash before leaves the document as it was.
type Sink interface {
	// Known returns the stored documents of the root by path.
	Known(ctx context.Context, root Root) (map[string]Stored, error)
	// Replace replaces the document stored under its id. Readers see the old or
	// the new, never a mixture.
	Replace(ctx context.Context, doc *Document, chunks []Chunk) error
	// Rename gives the stored document with the id from the id and path of to.
	// Its content is the same; its vectors are kept.
	Rename(ctx context.Context, from string, to *Document) error
	// Delete removes a document completely. It is not an error if there is none.
	Delete(ctx context.Context, id string) error
}

// A Preparer is a [Sink] that can do most of Replace in advance, for several
// documents at a time.
type Preparer interface {
	// Prepare does the part that does not change the store; store does the rest of
	// Replace. Other documents may change in between.
	Prepare(ctx context.Context, doc *Document, chunks []Chunk) (store func(context.Context) error, err error)
}

// Stored describes a stored document to a [Syncer].
type Stored struct {
	Digest string            // [Document.Digest]
	Meta   map[string]string // [Document.Meta]; must not be changed
}

// An Action is the result of syncing one file.
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

// A Change is the outcome for one file. It is yielded only once it is durable.
type Change struct {
	Document string `json:"document"`
	Root     string `json:"root"`
	Path     string `json:"path"`
	Action   Action `json:"action"`
	// URL is the address of a web page.
	URL string `json:"url,omitempty"`
	// Reason says why a file was skipped or failed and, if possible, what to do;
	// for a file that was read, which part of it was not.
	Reason string `json:"reason,omitempty"`
	// From is the earlier path of a renamed file.
	From string `json:"from,omitempty"`
	// CopyOf is the path of the first file of this sync with equal content, if the
	// file is another that was added or updated.
	CopyOf string `json:"copy_of,omitempty"`
	Chunks int    `json:"chunks"`
	Pages  int    `json:"pages"`
	// Done of Total files of this sync are accounted for, this one included.
	Done  int `json:"-"`
	Total int `json:"-"`
}
