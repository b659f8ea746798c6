package main

import (
	"io"
	"testing"
	"time"

	"ibid/ingest"
)

// A bar ends where the ingest does, be that before the last file or the first.
func TestBarEnds(t *testing.T) {
	for _, done := range []int{0, 2, 3} {
		r := &barReporter{plain: plainReporter{io.Discard}, out: io.Discard}
		if err := r.begin("/home/me/notes"); err != nil {
			t.Fatal(err)
		}
		for i := range done {
			if err := r.change(ingest.Change{Action: ingest.Skipped, Document: "notes/a", Reason: "empty", Done: i + 1, Total: 3}); err != nil {
				t.Fatal(err)
			}
		}
		ended := make(chan error)
		go func() { ended <- r.close() }()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("after %d of 3 files: %v", done, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("the bar does not end after %d of 3 files", done)
		}
	}
}
