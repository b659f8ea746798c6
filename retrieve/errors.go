package retrieve

import (
	"errors"
	"fmt"
)

// ErrNotFound is wrapped by errors about a document or root that is not stored.
var ErrNotFound = errors.New("not found")

// ErrAway is wrapped by errors that say that the store, or a part of it that was
// needed, does not answer. What was to be done can be done again when it is back.
var ErrAway = errors.New("the store does not answer")

// A SpaceError says that an index was built with another embedding model.
type SpaceError struct {
	Stored string // the space of the stored vectors
	Wanted string // the space of the embedder in use
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("the stored documents were embedded with %s, and %s is in use now: run 'ibid reembed' to embed them anew, or go on with the embedding model, or the version of Ibid, that made their vectors", e.Stored, e.Wanted)
}
