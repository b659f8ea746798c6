package support

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"ibid/cmd/ibid/eval"
	"ibid/data/datatest"
	"ibid/ingest"
	"ibid/retrieve"
)

// full is the Prover as package cite uses it.
var full = Prover{Stem: retrieve.Stem, Sentences: sentencesOf}

func sentencesOf(text string) (spans []Span) {
	for s := range ingest.Sentences(text) {
		spans = append(spans, Span{s.Start, s.End})
	}
	return spans
}

// A judged claim is one of wice-dev: a sentence of an encyclopaedia and the
// page it cites.
type judged struct {
	claim, page string
	supported   bool // wholly; "partially supported" is not
}

func readJudged(t testing.TB) (claims []judged, supported []bool) {
	t.Helper()
	dir := datatest.Sets(t, "wice-dev")
	pages := map[string]string{}
	eachLine(t, filepath.Join(dir, "corpus.jsonl"), func(line []byte) error {
		var e struct {
			ID   string `json:"_id"`
			Text string
		}
		err := json.Unmarshal(line, &e)
		pages[e.ID] = e.Text
		return err
	})
	eachLine(t, filepath.Join(dir, "queries.jsonl"), func(line []byte) error {
		var e struct{ Text, Label, Article string }
		err := json.Unmarshal(line, &e)
		c := judged{e.Text, pages[e.Article], e.Label == "supported"}
		claims, supported = append(claims, c), append(supported, c.supported)
		return err
	})
	if len(claims) == 0 {
		t.Fatalf("no claims in %s", dir)
	}
	return claims, supported
}

func eachLine(t testing.TB, file string, read func([]byte) error) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		if err := read(s.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}

// TestAUROC measures how well the support separates claims that their page bears
// out from those that it bears out in part or not at all, and the verdicts at
// [Threshold]. The weights were fitted on these claims; fitted on four fifths and
// measured on the fifth, the figures are the same to .01.
func TestAUROC(t *testing.T) {
	claims, supported := readJudged(t)
	for _, test := range []struct {
		name   string
		prover Prover
		floor  float64
	}{
		{"full", full, 0.83}, {"no stemmer", Prover{Sentences: sentencesOf}, 0.80},
	} {
		var support []float64
		var right, wrong, missed, weak float64
		for _, c := range claims {
			q := test.prover.Find(c.claim, Passage{Text: c.page})
			support = append(support, q.Support)
			switch {
			case q.Verdict != Weak && c.supported:
				right++
			case q.Verdict != Weak:
				wrong++
			case c.supported:
				missed++
			default:
				weak++
			}
		}
		got := area(support, supported)
		t.Logf("figure: %s: AUROC %.3f; supported: precision %.2f, recall %.2f; weak: precision %.2f, recall %.2f",
			test.name, got, right/(right+wrong), right/(right+missed), weak/(weak+missed), weak/(weak+wrong))
		if got < test.floor {
			t.Errorf("%s: AUROC %.3f, want %.2f or more", test.name, got, test.floor)
		}
		if test.name == "full" && weak/(weak+missed) < 0.8 {
			t.Errorf("of the sentences marked weak %.2f are, want 0.8 or more", weak/(weak+missed))
		}
	}
}

// area is the AUROC of scores.
func area(score []float64, positive []bool) float64 {
	var of [2][]float64
	for i, p := range positive {
		k := 0
		if p {
			k = 1
		}
		of[k] = append(of[k], score[i])
	}
	return eval.AUROC(of[1], of[0])
}

// split cuts a page into n passages of about as many sentences.
func split(page string, n int) []Passage {
	spans := sentencesOf(page)
	var parts []Passage
	for i := range n {
		from, to := len(spans)*i/n, len(spans)*(i+1)/n
		if from < to {
			parts = append(parts, Passage{Text: page[spans[from].Start:spans[to-1].End]})
		}
	}
	return parts
}

// TestTogether cuts the pages of judged claims into passages that are all
// cited: together they separate the claims as well as the whole page does.
func TestTogether(t *testing.T) {
	datatest.CampaignOnly(t) // a twentieth of the claims has no AUROC; TestJoin runs the same code
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
		a, b := area(alone, supported), area(together, supported)
		t.Logf("figure: %d passages: AUROC of the best alone %.3f, together %.3f, of the whole page %.3f", n, a, b, area(whole, supported))
		if b < a || b < area(whole, supported)-0.01 {
			t.Errorf("%d passages: together they are worse", n)
		}
	}
}
