package answer

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The agreed words count with any emphasis and explanation; a sentence that only
// begins like them is an answer.
func TestNonAnswers(t *testing.T) {
	for _, test := range []struct{ reply, want string }{
		{"NO CHANGE", metaRemark},
		{"**NO CHANGE**", metaRemark},
		{"\"NO CHANGE\"", metaRemark},
		{"“No change.”", metaRemark},
		{"`NO CHANGE`", metaRemark},
		{"(NO CHANGE)", metaRemark},
		{"NO CHANGE\nNO CHANGE", metaRemark},
		{"NO CHANGE\n\nThe further evidence only repeats the fee.", metaRemark},
		{"NO CHANGE - the evidence adds nothing.", metaRemark},
		{"NO CHANGE. The evidence adds nothing.", metaRemark},
		{"NO CHANGES NEEDED: the answer is complete", metaRemark},
		{"**NO CHANGE** (the evidence is of mice)", metaRemark},
		{"NO CHANGE to the answer", metaRemark},
		{"NO CHANGE NEEDED TO THE EXISTING ANSWER.", metaRemark},
		{"NO CHANGE to the summary so far: the part adds nothing.", metaRemark},
		{"No change to the answer of the court.[1]", ""},
		{"NO CHANGE TO THE ANSWERING MACHINE.[1]", ""},
		{"NO CHANGE TO THE FEE.[1]", ""},
		{"No changes needed.", metaRemark},
		{"The answer remains unchanged.", ""}, // "existing" or the like is missing
		{"No changes were made to the law in 2020.", ""},
		{"No change - the fee is 120.[1]", ""},
		{"No change\nin the fee.[1]", ""},
		{"\"No changes needed.\"", ""},
		{"No changes needed?", ""},
		{"NO CHANGE IN THE FEE SINCE 2020.[1]", ""},
		{"NO CHANGEOVER BEFORE NOON.[1]", ""},
		{"No.", ""},

		{"NO ANSWER", noAnswer},
		{"**No answer.**\nThe evidence speaks of mice.", noAnswer},
		{"NO ANSWER\n\nThe notes do not state the price.", noAnswer},
		{"NO ANSWER - the evidence does not say.", noAnswer},
		{"NO ANSWER: the evidence does not say.", noAnswer},
		{"NO ANSWER. The evidence does not mention it.", noAnswer},
		{"NO ANSWER [1]", noAnswer},
		{"[NO ANSWER]", noAnswer},
		{"There is no answer in the evidence.", noAnswer},
		{"No answer is given by the harbour master.[2]", ""},
		{"NO ANSWERS are taken after noon.[1]", ""},
		{"No answer: it rang all day.[1]", ""},
	} {
		if got, _ := (nonAnswers{noAnswer: true, noChange: true}).reason(test.reply); got != test.want {
			t.Errorf("%q is read as %q, want %q", test.reply, got, test.want)
		}
	}
	if got, _ := (nonAnswers{}).reason("NO ANSWER"); got != "" {
		t.Errorf("not asked for, but read as %q", got)
	}
}

// A reply that turns out to be no answer was held back until then, and an early
// result never changes.
func TestHeldBack(t *testing.T) {
	pieces := rapid.SampledFrom([]string{
		"NO ", "NO", " ", "CHANGE", "CHANGES", "ANSWER", "no change", "No answer", "**", "\"", "(", ")", ".", "!", "\n", ": ", " - ", "needed", " to the answer", " so far", " in the evidence",
		"unchanged", "n/a", "the existing answer ", "is ", "complete", " and ", "correct", "The fee", "[1]", "é", "。",
	})
	rapid.Check(t, func(rt *rapid.T) {
		reply := strings.Join(rapid.SliceOfN(pieces, 1, 6).Draw(rt, "pieces"), "")
		n := nonAnswers{noAnswer: rapid.Bool().Draw(rt, "answer"), noChange: rapid.Bool().Draw(rt, "change")}
		want, _ := n.reason(reply)
		for i := range reply {
			reason, final := n.reason(reply[:i])
			if final && reason != want {
				rt.Fatalf("%q is %q for sure, but %q is %q", reply[:i], reason, reply, want)
			}
			if want != "" && !final && !n.possible(reply[:i]) {
				rt.Fatalf("%q is released, but %q is %q", reply[:i], reply, want)
			}
		}
	})
	if (nonAnswers{noAnswer: true}).possible("NO" + strings.Repeat("*", maxHeld)) {
		t.Error("more is held back than was said")
	}
}
