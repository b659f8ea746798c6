// Package disk provides the file operations of stores that differ between systems: locks, mapped
// memory, durable names.
package disk

import (
	"errors"
	"io/fs"
	"os"
)

// ErrLocked reports that another process holds a lock.
var ErrLocked = errors.New("another process has locked it")

// IsReadOnly reports whether an error means that a file or a directory cannot be written.
func IsReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, errReadOnly)
}

// Probe returns the reason why no file can be created in a directory, or nil.
func Probe(dir string) error {
	f, err := os.CreateTemp(dir, "probe-*.tmp")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
