package weaviate

import (
	"runtime"
	"testing"
	"time"
)

// TestFinalizers forgets a wire, which must not keep the finalizers of others from
// being run.
func TestFinalizers(t *testing.T) {
	for range 3 {
		at, err := parseAddress("weaviate://127.0.0.1:1?grpc=127.0.0.1:2")
		if err != nil {
			t.Fatal(err)
		}
		w, err := dial(at, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
	}
	ran := make(chan struct{})
	for range 3 { // what a finalizer is set to is collected in a later round
		runtime.GC()
	}
	func() { runtime.SetFinalizer(&[16]int{1}, func(*[16]int) { close(ran) }) }()
	for range 1000 {
		runtime.GC()
		select {
		case <-ran:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatal("no finalizer is run")
}
