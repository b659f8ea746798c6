//go:build unix

package encoder

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile returns the content of a file, which is read when it is used, and what
// releases it.
func mapFile(f *os.File, size int) (data []byte, unmap func() error, err error) {
	data, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	return data, func() error { return unix.Munmap(data) }, err
}
