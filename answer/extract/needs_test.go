package extract

import (
	"testing"

	"ibid/retrieve"
)

// TestReason checks that words that only ask are no topics of a question.
func TestReason(t *testing.T) {
	for question, want := range map[string]string{
		"May I moor here?":                                 "covers 'moor'",
		"What happens in May, please?":                     "covers 'May'",
		"What do the documents say about the mooring fee?": "covers 'mooring fee'",
		"Which documents must I bring?":                    "covers 'documents bring'",
	} {
		n := readNeeds(question, retrieve.Stats{})
		all := make(coverage, len(n.terms))
		for i := range all {
			all[i] = 1
		}
		if got := n.reason(all); got != want {
			t.Errorf("%s: %s, want %s", question, got, want)
		}
	}
}
