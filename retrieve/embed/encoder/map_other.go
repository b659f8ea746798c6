//go:build !unix

package encoder

import (
	"io"
	"os"
)

// mapFile reads a file whole: a mapped file could not be replaced here.
func mapFile(f *os.File, size int) (data []byte, unmap func() error, err error) {
	data = make([]byte, size)
	_, err = io.ReadFull(f, data)
	return data, func() error { return nil }, err
}
