package retrieve

import (
	"context"
	"fmt"

	"ibid/ingest"
)

// A RootKeeper is an [Engine] that takes a root as another one has it.
type RootKeeper interface {
	// KeepRoot makes a root of exactly this name, path and collection, if it is
	// not there. What [CheckRoot] refuses is a [*RootError].
	KeepRoot(ctx context.Context, root ingest.Root) error
}

// A RootError says that a root cannot be made as it is meant to be.
type RootError struct {
	Root  ingest.Root // that was to be made
	There ingest.Root // that is in its way
}

func (e *RootError) Error() string {
	switch {
	case e.Root.Name != e.There.Name:
		return fmt.Sprintf("the folder %s is there as the root %q, and was to be %q", e.Root.Path, e.There.Name, e.Root.Name)
	case e.Root.Path != e.There.Path:
		return fmt.Sprintf("the root %q is there for the folder %s, and was to be that of %s", e.Root.Name, e.There.Path, e.Root.Path)
	}
	return fmt.Sprintf("the root %q is there in the collection %q, and was to be in %q", e.Root.Name, e.There.Collection, e.Root.Collection)
}

// CheckRoot says whether a root is among those that are there; one that has its
// name or its path and differs in the rest is a [*RootError].
func CheckRoot(root ingest.Root, have []ingest.Root) (there bool, err error) {
	for _, r := range have {
		if r == root {
			there = true
		} else if r.Name == root.Name || r.Path == root.Path {
			return false, &RootError{Root: root, There: r}
		}
	}
	return there, nil
}

// keepRoot is KeepRoot of any engine: one that is no [RootKeeper] names roots by
// [RootName].
func keepRoot(ctx context.Context, e Engine, root ingest.Root) error {
	if k, ok := e.(RootKeeper); ok {
		return k.KeepRoot(ctx, root)
	}
	made, err := e.AddRoot(ctx, root.Path, root.Collection)
	if err == nil && made != root {
		err = &RootError{Root: root, There: made}
	}
	return err
}
