package cite

import (
	"strings"
	"testing"

	"ibid/ingest"
	"ibid/retrieve"
)

// split cuts a page into n passages of about as many sentences.
func split(page string, n int) []retrieve.Passage {
	var spans []ingest.Span
	for s := range ingest.Sentences(page) {
		spans = append(spans, s)
	}
	var parts []retrieve.Passage
	for i := range n {
		from, to := len(spans)*i/n, len(spans)*(i+1)/n
		if from < to {
			parts = append(parts, passage(page[spans[from].Start:spans[to-1].End]))
		}
	}
	return parts
}

// TestSupportTogether cuts the pages of judged claims into passages that are
// all cited: judged together they tell as much as the whole page does, each
// alone less.
func TestSupportTogether(t *testing.T) {
	claims, supported := readJudged(t)
	judge := func(n int) (alone, together []float64) {
		for _, c := range claims {
			passages := split(c.page, n)
			best := 0.0
			for _, p := range passages {
				best = max(best, full.Find(c.claim, p).Support)
			}
			alone = append(alone, best)
			together = append(together, max(best, full.Join(c.claim, passages).Support))
		}
		return alone, together
	}
	whole, _ := judge(1)
	for _, n := range []int{2, 8} {
		alone, together := judge(n)
		a, b := auroc(alone, supported), auroc(together, supported)
		t.Logf("%d passages: AUROC of the best alone %.3f, together %.3f, of the whole page %.3f", n, a, b, auroc(whole, supported))
		if b < a || b < auroc(whole, supported)-0.01 {
			t.Errorf("%d passages: together they are worse", n)
		}
	}
}

func TestSupportJoin(t *testing.T) {
	const closed, fee, dogs, pier = "The library is closed on Mondays. On other days it opens at nine.", "A lost card costs five euros. Children pay nothing.",
		"Dogs are not welcome in the reading room.", "The pier opened in 1998."
	for _, test := range []struct {
		claim, passages, parts string
		supported              bool
	}{
		{"The library is closed on Mondays and a lost card costs five euros.", closed + "|" + fee, "01", true},
		{"A lost card costs five euros, and the library is closed on Mondays.", closed + "|" + fee + "|" + pier, "01-", true},
		{"The library is closed on Mondays and a lost card costs six euros.", closed + "|" + fee, "", false},
		{"The library is closed on Mondays and a lost card costs five euros.", closed + "|" + pier, "", false},
		{"The library is closed on Mondays and dogs are welcome in the reading room.", closed + "|" + dogs, "", false},
		{"The library is closed on Mondays and dogs are not welcome in the reading room.", closed + "|" + dogs, "01", true},
		{"The library is not closed on Mondays and a lost card costs five euros.", closed + "|" + fee, "", false},
		{"The library opened in 1998.", closed + "|" + pier, "", false},
		{"The library is closed on Mondays and a lost card costs five euros.", closed + "|" + closed + "|" + fee, "012", true},
	} {
		var passages []retrieve.Passage
		for text := range strings.SplitSeq(test.passages, "|") {
			passages = append(passages, passage(text))
		}
		got := full.Join(test.claim, passages)
		if (got.Support >= Supported) != test.supported {
			t.Errorf("%q by %q: %.2f %v", test.claim, test.passages, got.Support, got.Parts)
		}
		for i, c := range test.parts {
			if got.Parts[i] != (c != '-') {
				t.Errorf("%q by %q: parts %v, want %s", test.claim, test.passages, got.Parts, test.parts)
			}
		}
	}
}
