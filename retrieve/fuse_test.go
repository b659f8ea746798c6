package retrieve_test

import (
	"slices"
	"testing"

	"ibid/retrieve"
)

// TestFeedback: the passages that answer best lead to a third, which shares
// their words and none of the question's. Without them it is among the last.
func TestFeedback(t *testing.T) {
	e, m := openState(t, t.TempDir()), hashing{Dims: 1024, Name: "wide"}
	x := newIndex(t, e, m)
	_, err := x.AddRoot(t.Context(), "/srv/a", "")
	must(t, err)
	store(t, x, "a", "birds.md", "",
		"The kestrel hunts voles: it hovers above meadows with beating wings.",
		"Voles fear the kestrel that hovers above meadows, wings beating.",
		"Falcons hover above meadows, beating their wings.")
	store(t, x, "a", "harbour.md", "",
		"The office opens at eight in the morning.",
		"A berth costs twelve crowns a night.",
		"Electricity is paid at the machine on the jetty.",
		"Every child wears a life jacket.",
		"Ferries leave for the islands on Sundays.",
		"The lighthouse was built of granite.")
	const falcons = "a/birds.md#3"
	question := retrieve.Query{Text: "kestrel and voles"}
	if got := found(t, x, question); len(got) != 9 || got[2] != falcons {
		t.Errorf("with feedback %s is not the third: %v", falcons, got)
	}
	dense := newIndexWith(t, e, m, retrieve.Options{Mode: retrieve.DenseOnly})
	if got := found(t, dense, question); slices.Index(got, falcons) == 2 {
		t.Errorf("the test shows nothing: %s is the third without feedback too: %v", falcons, got)
	}
}
