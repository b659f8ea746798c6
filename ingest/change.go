package ingest

import "context"

// A Sink is a store that a [Syncer] updates.
//
// A method that returns nil has made its change durable. A crash before that leaves the document
// unchanged.
type Sink interface {
	// StoredDocuments returns the stored documents of the root by path.
	StoredDocuments(ctx context.Context, root Root) (map[string]Stored, error)
	// Replace replaces the document stored under its ID. Readers see the old or the new document,
	// never a mixture.
	Replace(ctx context.Context, doc *Document, chunks []Chunk) error
	// Rename renames the document with the ID from: it gets the ID and path of to, which has the
	// same content, and keeps its vectors.
	Rename(ctx context.Context, from string, to *Document) error
	// Delete removes a document completely. Deleting a missing document is not an error.
	Delete(ctx context.Context, id string) error
}

// A Preparer is a [Sink] that can do most of Replace in advance, for several documents at a time.
type Preparer interface {
	// Prepare does the part of Replace that does not change the store. The returned store does the
	// rest. Other documents may change in between.
	Prepare(ctx context.Context, doc *Document, chunks []Chunk) (store func(context.Context) error, err error)
}

// Stored describes a stored document to a [Syncer].
type Stored struct {
	Digest string            // [Document.Digest]
	Meta   map[string]string // [Document.Meta]; read-only
}

// An Action is the result of syncing one file.
type Action string

// The actions. The number of files seen is the sum of all actions except Removed.
const (
	Added     Action = "added"
	Updated   Action = "updated"
	Unchanged Action = "unchanged"
	Renamed   Action = "renamed"
	Removed   Action = "removed"
	Skipped   Action = "skipped"
	Failed    Action = "failed"
)

// A Change is the outcome for one file. It is yielded once it is durable.
type Change struct {
	Document string `json:"document"`
	Root     string `json:"root"`
	Path     string `json:"path"`
	Action   Action `json:"action"`
	// URL is the address of a web page.
	URL string `json:"url,omitempty"`
	// Reason says why a file was skipped or failed and, if possible, what to do. For a file that
	// was read, it describes the parts that were not.
	Reason string `json:"reason,omitempty"`
	// From is the earlier path of a renamed file.
	From string `json:"from,omitempty"`
	// CopyOf is the path of the first file with the same content that this sync added or updated,
	// unless it is this file.
	CopyOf string `json:"copy_of,omitempty"`
	Chunks int    `json:"chunks"`
	Pages  int    `json:"pages"`
	// Done is the number of files finished so far, out of Total, including this one.
	Done  int `json:"-"`
	Total int `json:"-"`
}
