package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// A bar ends with the task, also before the last item or the first.
func TestMeterEnds(t *testing.T) {
	t.Parallel()
	for done := range 4 {
		m := newMeter(io.Discard, "files", 0)
		m.showBar()
		for i := range done {
			m.update(i+1, 3)
			if _, err := io.WriteString(m, "skipped notes/a: empty\n"); err != nil {
				t.Fatal(err)
			}
		}
		m.clear() // waits for the bar
		var out bytes.Buffer
		m.out = &out
		m.end()
		if said := out.String(); strings.HasPrefix(said, "3 files in ") != (done == 3) {
			t.Errorf("after %d of 3 files it says %q", done, said)
		}
	}
}
