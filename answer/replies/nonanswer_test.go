package replies

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ibid/data/datatest"
)

// TestNonAnswers checks that the agreed words count with any emphasis and explanation, and
// that a sentence that only begins like them is an answer.
func TestNonAnswers(t *testing.T) {
	for _, row := range datatest.Rows(t, "../testdata/replies.txt", "replies") {
		if got, _ := (NonAnswers{NoAnswer: true, NoChange: true}).Reason(row[0]); got != row[1] {
			t.Errorf("Reason(%q) = %q, want %q", row[0], got, row[1])
		}
	}
	if got, _ := (NonAnswers{}).Reason("NO ANSWER"); got != "" {
		t.Errorf("Reason of a reply that was not asked for = %q, want none", got)
	}
}

// TestHeldBack checks that a reply that turns out to be no answer is held back until then,
// and that a final result never changes.
func TestHeldBack(t *testing.T) {
	pieces := rapid.SampledFrom([]string{
		"NO ", "NO", " ", "CHANGE", "CHANGES", "ANSWER", "no change", "No answer", "**", "\"", "(", ")", ".", "!", "\n", ": ", " - ", "needed",
		" to the answer", " so far", " in the evidence",
		"unchanged", "n/a", "the existing answer ", "is ", "complete", " and ", "correct", "The fee", "[1]", "é", "。",
	})
	rapid.Check(t, func(rt *rapid.T) {
		reply := strings.Join(rapid.SliceOfN(pieces, 1, 6).Draw(rt, "pieces"), "")
		n := NonAnswers{NoAnswer: rapid.Bool().Draw(rt, "answer"), NoChange: rapid.Bool().Draw(rt, "change")}
		want, _ := n.Reason(reply)
		for i := range reply {
			reason, final := n.Reason(reply[:i])
			if final && reason != want {
				rt.Fatalf("reason of %q is final as %q, but %q has %q", reply[:i], reason, reply, want)
			}
			if want != "" && !final && !n.mayBegin(reply[:i]) {
				rt.Fatalf("%q is released, but %q has the reason %q", reply[:i], reply, want)
			}
		}
	})
	if (NonAnswers{NoAnswer: true}).mayBegin("NO" + strings.Repeat("*", maxHeld)) {
		t.Error("more is held back than maxHeld")
	}
}
