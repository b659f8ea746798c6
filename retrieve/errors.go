package retrieve

import (
	"errors"
	"fmt"
)

// ErrNotFound is wrapped by errors about a document or root that is not stored.
var ErrNotFound = errors.New("not found")

// ErrTaken is wrapped by errors about a name that is already in use.
var ErrTaken = errors.New("the name is taken")

// ErrUnavailable is wrapped by errors that report that the store, or a part of it that the
// operation needs, is unreachable. The operation can be retried later.
var ErrUnavailable = errors.New("the store is unreachable")

// ErrIndexUnavailable is wrapped by errors that report that a search index in a cluster is
// unreachable. Documents can still be stored and read.
var ErrIndexUnavailable = errors.New("the search index is unreachable")

// A BuildingError reports that a search index is being built and cannot be searched yet.
type BuildingError struct {
	Done, Total int  // in chunks
	Earlier     bool // an earlier index is searched meanwhile
}

func (e *BuildingError) Error() string {
	text := fmt.Sprintf("the search index is being built: it has %d of %d chunks", e.Done, e.Total)
	if e.Earlier {
		text += "; searches use the earlier one, which lacks documents stored since"
	}
	return text
}

// ErrReadOnly is wrapped by errors of changes to a library that cannot be written.
var ErrReadOnly = errors.New("the library is read-only")

// A SpaceError reports that an index was built with another embedding model.
type SpaceError struct {
	Stored string // the space of the stored vectors
	Wanted string // the space of the embedder in use
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("the stored documents were embedded with %s, but the current model is %s: "+
		"run 'ibid reembed' to embed them again, or use the embedding model or version of Ibid that made their vectors", e.Stored, e.Wanted)
}
