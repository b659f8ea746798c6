package retrieve

import (
	"errors"
	"fmt"
)

// ErrNotFound is wrapped by errors about a document or root that is not stored.
var ErrNotFound = errors.New("not found")

// ErrTaken is wrapped by errors about a name that something else has.
var ErrTaken = errors.New("the name is taken")

// ErrUnavailable is wrapped by errors that report that the store, or a needed part of
// it, is unreachable. The operation can be retried when it is back.
var ErrUnavailable = errors.New("the store is unreachable")

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
