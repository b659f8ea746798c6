package local

import (
	"fmt"
	"testing"

	"modernc.org/sqlite"

	"ibid/retrieve"
	"ibid/retrieve/enginetest"
)

// TestPulse: the header says that nothing has changed when nothing has, and
// shows every commit of another connection, also after all have been closed.
func TestPulse(t *testing.T) {
	dir := t.TempDir()
	e, other := openTest(t, dir), openTest(t, dir)
	if !sqlite.OFDLockingEnabled() {
		t.Skip("locks belong to processes here: the header is not read")
	}
	if err := e.SetSpace(t.Context(), "s/2"); err != nil {
		t.Fatal(err)
	}
	before, ok := e.pulse.read()
	if again, _ := e.pulse.read(); !ok || again != before {
		t.Fatalf("the header changes by itself, or is not there: %v", ok)
	}
	if _, err := other.AddRoot(t.Context(), "/srv/a", ""); err != nil {
		t.Fatal(err)
	}
	after, ok := e.pulse.read()
	if !ok || after == before {
		t.Error("the commit of another connection does not show")
	}
	// Searches find at once what another has committed, and again after that.
	for i, word := range []string{"harbour", "lantern", "anchor"} {
		if got, err := e.Lexical(t.Context(), []string{word}, 5, retrieve.Filter{}); err != nil || len(got) != 0 {
			t.Fatalf("%s is found before it is stored: %v, %v", word, got, err)
		}
		doc, chunks := enginetest.Document("a", fmt.Sprint(i), word)
		if err := other.Replace(t.Context(), doc, chunks, [][]float32{{1, 0}}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got, err := e.Lexical(t.Context(), []string{word}, 5, retrieve.Filter{}); err != nil || len(got) != 1 {
				t.Errorf("%s is not found after it was stored: %v, %v", word, got, err)
			}
		}
	}
	// The file of another life of the directory is not taken for the old one.
	dir2 := t.TempDir()
	first, err := Open(t.Context(), dir2, Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := pulse{path: first.path + "-shm"}
	old, ok := p.read()
	if !ok {
		t.Fatal("no header")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.read(); ok {
		t.Error("a header is read of a file that is gone")
	}
	second := openTest(t, dir2)
	if err := second.SetSpace(t.Context(), "s/2"); err != nil {
		t.Fatal(err)
	}
	if fresh, ok := p.read(); !ok || fresh == old {
		t.Error("the header of the new file is not read")
	}
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
}
