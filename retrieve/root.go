package retrieve

import (
	"fmt"

	"ibid/ingest"
)

// A RootError reports that a root conflicts with an existing one.
type RootError struct {
	Root  ingest.Root // the root to create
	There ingest.Root // the existing root
}

func (e *RootError) Error() string {
	switch {
	case e.Root.Name != e.There.Name:
		return fmt.Sprintf("the folder %s already has the root %q instead of %q", e.Root.Path, e.There.Name, e.Root.Name)
	case e.Root.Path != e.There.Path:
		return fmt.Sprintf("the root %q already belongs to the folder %s instead of %s", e.Root.Name, e.There.Path, e.Root.Path)
	}
	return fmt.Sprintf("the root %q is already in the collection %q instead of %q", e.Root.Name, e.There.Collection, e.Root.Collection)
}

// CheckRoot reports whether a root is among the existing ones. An existing root
// with the same name or path that differs otherwise is a [*RootError].
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
