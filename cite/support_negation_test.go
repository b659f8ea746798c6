package cite_test

import (
	"testing"

	"ibid/cite"
	"ibid/ingest"
	"ibid/retrieve"
)

// A negator turns a short sentence round as it does a long one.
func TestSupportOfShortNegations(t *testing.T) {
	p := passage("lib/hours.md", 1, 0, "The library is closed on Mondays. A lost card costs five euros. Dogs are welcome in the garden.")
	find := cite.Support{Stem: retrieve.Stem, Sentences: ingest.Sentences}.Find
	for _, sentence := range []string{
		"The library is never closed on Mondays.",
		"The library is not closed on Mondays.",
		"The library is hardly closed on Mondays.",
		"Dogs are never welcome in the garden.",
		"Dogs are nowhere welcome in the garden.",
	} {
		if q := find(sentence, p); q.Verdict != cite.VerdictWeak {
			t.Errorf("%s: %s %.2f", sentence, q.Verdict, q.Support)
		}
	}
	for _, sentence := range []string{"The library is closed on Mondays.", "On Mondays the library is closed.", "Dogs are welcome in the garden."} {
		if q := find(sentence, p); q.Verdict == cite.VerdictWeak {
			t.Errorf("%s: %s %.2f", sentence, q.Verdict, q.Support)
		}
	}
}
