// Package disk has what stores need of files and every system does in its own way:
// locks, mapped memory, durable names.
package disk

import (
	"errors"
	"io/fs"
	"os"
)

// ErrLocked reports that another process holds a lock.
var ErrLocked = errors.New("another process has locked it")

// IsReadOnly reports whether an error says that a file or a directory cannot be written.
func IsReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, errReadOnly)
}

// Probe returns why no file can be created in a directory; nil if one can.
func Probe(dir string) error {
	f, err := os.CreateTemp(dir, "probe-*.tmp")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
