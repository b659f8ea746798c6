package answer

import "testing"

// A year in brackets is no label, however many there may be.
func TestSieveKeepsYears(t *testing.T) {
	const text = "It was decided in Smith v Jones [2010] EWHC 123 [1], and not in [9] 2011."
	out, cited, invented := sift(text, []int{1, 2})
	if want := "It was decided in Smith v Jones [2010] EWHC 123 [1], and not in 2011."; out != want {
		t.Errorf("got %q", out)
	}
	if len(cited) != 1 || cited[0] != 1 || len(invented) != 1 || invented[0] != 9 {
		t.Errorf("cited %v, invented %v", cited, invented)
	}
}
