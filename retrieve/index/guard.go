package index

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"ibid/retrieve"
)

// guard calls f, which reads segments, and returns as an error wrapping
// [retrieve.ErrIndexDamaged] what f panics with because they are damaged: a
// *damage, an index that is out of range, or a fault in mapped memory (the file
// was cut, or the disk cannot be read).
//
// f must read mapped memory in its own goroutine: a fault in another one ends the
// process.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *damage:
			err = r
		case interface{ Addr() uintptr }:
			err = &damage{what: "the file was cut short, or the disk cannot be read"}
		case runtime.Error:
			err = &damage{what: r.Error()}
		default:
			panic(r)
		}
	}()
	return f()
}

// unreadable returns the error of a file that cannot be read as damage: the index
// can be made again.
func unreadable(file string, err error) error {
	if d := (*damage)(nil); errors.As(err, &d) {
		return err
	}
	return &damage{file: file, what: err.Error()}
}

// A damage is an error that wraps [retrieve.ErrIndexDamaged].
type damage struct{ file, what string }

func (d *damage) Error() string {
	return fmt.Sprintf("%s is damaged: %s", cmp.Or(d.file, "a segment"), d.what)
}

func (d *damage) Unwrap() error { return retrieve.ErrIndexDamaged }
