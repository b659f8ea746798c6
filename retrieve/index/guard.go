package index

import (
	"cmp"
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
		case runtime.Error:
			err = &damage{what: r.Error()}
		default:
			panic(r)
		}
	}()
	return f()
}

// A damage is an error that wraps [retrieve.ErrIndexDamaged].
type damage struct{ file, what string }

func (d *damage) Error() string {
	return fmt.Sprintf("%v: %s: %s", retrieve.ErrIndexDamaged, cmp.Or(d.file, "in memory"), d.what)
}

func (d *damage) Unwrap() error { return retrieve.ErrIndexDamaged }
