package support

import (
	"bufio"
	"cmp"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

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

// auroc is the chance that a positive scores higher than a negative; ties
// count half.
func auroc(score []float64, positive []bool) float64 {
	order := make([]int, len(score))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(score[a], score[b]) })
	ranks, n1 := 0.0, 0.0
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && score[order[j]] == score[order[i]] {
			j++
		}
		for k := i; k < j; k++ {
			if positive[order[k]] {
				ranks += float64(i+j+1) / 2
				n1++
			}
		}
		i = j
	}
	n0 := float64(len(score)) - n1
	return (ranks - n1*(n1+1)/2) / (n1 * n0)
}

// fit fits the weights by gradient descent on standardised signals, with a
// ridge that holds them back; the result hardly depends on it (1 to 10).
func fit(x []signals, y []bool) logistic {
	const ridge, rounds, rate = 3, 400, 2
	n, d := float64(len(x)), 3
	row := func(s signals) [3]float64 { return [3]float64{s.covered, s.names, s.numbers} }
	var mean, sd, th [3]float64
	for j := range d {
		for _, s := range x {
			mean[j] += row(s)[j] / n
		}
		for _, s := range x {
			sd[j] += (row(s)[j] - mean[j]) * (row(s)[j] - mean[j]) / n
		}
		sd[j] = cmp.Or(math.Sqrt(sd[j]), 1)
	}
	bias := 0.0
	for range rounds {
		var g [3]float64
		gb := 0.0
		for i, s := range x {
			z, r := bias, row(s)
			for j := range d {
				r[j] = (r[j] - mean[j]) / sd[j]
				z += th[j] * r[j]
			}
			e := 1 / (1 + math.Exp(-z))
			if y[i] {
				e--
			}
			gb += e
			for j := range d {
				g[j] += e * r[j]
			}
		}
		bias -= rate * gb / n
		for j := range d {
			th[j] -= rate * (g[j] + ridge*th[j]) / n
		}
	}
	for j := range d {
		th[j] /= sd[j]
		bias -= th[j] * mean[j]
	}
	return logistic{bias, th[0], th[1], th[2]}
}

// heldOut returns for every claim the chance that a model gives it which was
// fitted on the other four fifths.
func heldOut(x []signals, y []bool, seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	fold := make([]int, len(y))
	count := map[bool]int{}
	for _, i := range r.Perm(len(y)) {
		fold[i] = count[y[i]] % 5
		count[y[i]]++
	}
	out := make([]float64, len(y))
	for f := range 5 {
		var tx []signals
		var ty []bool
		for i := range y {
			if fold[i] != f {
				tx, ty = append(tx, x[i]), append(ty, y[i])
			}
		}
		m := fit(tx, ty)
		for i := range y {
			if fold[i] == f {
				out[i] = m.chance(x[i])
			}
		}
	}
	return out
}

// read returns the signals of every claim, and whether its page contradicts it.
func read(p Prover, claims []judged) (x []signals, contradicted []bool) {
	for _, j := range claims {
		all := p.claim(j.claim)
		c := p.cover(claimWords(all), Passage{Text: j.page})
		picked, found := c.evidence()
		x = append(x, c.signals(found))
		contradicted = append(contradicted, len(picked) > 0 && c.contradicts(all, picked, found))
	}
	return x, contradicted
}

// TestAUROC measures how well the support separates claims that their page
// bears out from those that it bears out in part or not at all, with weights
// fitted on other claims, and the verdicts at [Threshold].
func TestAUROC(t *testing.T) {
	claims, supported := readJudged(t)
	seeds := uint64(datatest.Cases(t, 20)) // ways to cut the set
	for _, test := range []struct {
		name   string
		prover Prover
		floor  float64
	}{
		{"full", full, 0.83}, {"no stemmer", Prover{Sentences: sentencesOf}, 0.80},
	} {
		x, contradicted := read(test.prover, claims)
		var mean, ruled, right, wrong, missed, weak float64
		for seed := range seeds {
			chance := heldOut(x, supported, seed)
			mean += auroc(chance, supported) / float64(seeds)
			for i, p := range chance {
				switch {
				case p >= Threshold && supported[i]:
					right++
				case p >= Threshold:
					wrong++
				case supported[i]:
					missed++
				default:
					weak++
				}
				if contradicted[i] {
					chance[i] = min(p, maxContradicted)
				}
			}
			ruled += auroc(chance, supported) / float64(seeds)
		}
		t.Logf("figure: %s: AUROC %.3f, with contradictions %.3f; supported: precision %.2f, recall %.2f; weak: precision %.2f, recall %.2f",
			test.name, mean, ruled, right/(right+wrong), right/(right+missed), weak/(weak+missed), weak/(weak+wrong))
		if mean < test.floor || ruled < test.floor {
			t.Errorf("%s: AUROC %.3f and %.3f, want %.2f or more", test.name, mean, ruled, test.floor)
		}
		if test.name == "full" && weak/(weak+missed) < 0.8 {
			t.Errorf("of the sentences marked weak %.2f are, want 0.8 or more", weak/(weak+missed))
		}
	}
}

// TestModel compares the weights with those that the data give.
func TestModel(t *testing.T) {
	claims, supported := readJudged(t)
	x, _ := read(full, claims)
	m := fit(x, supported)
	for _, d := range []float64{m.bias - weights.bias, m.covered - weights.covered, m.names - weights.names, m.numbers - weights.numbers} {
		if math.Abs(d) > 0.02 {
			t.Fatalf("the data give other weights: logistic{bias: %.2f, covered: %.2f, names: %.2f, numbers: %.2f}", m.bias, m.covered,
				m.names, m.numbers)
		}
	}
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
		a, b := auroc(alone, supported), auroc(together, supported)
		t.Logf("figure: %d passages: AUROC of the best alone %.3f, together %.3f, of the whole page %.3f", n, a, b, auroc(whole, supported))
		if b < a || b < auroc(whole, supported)-0.01 {
			t.Errorf("%d passages: together they are worse", n)
		}
	}
}
