package index

import (
	"runtime"
	"runtime/debug"
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
