package cite

import (
	"bufio"
	"cmp"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ibid/ingest"
	"ibid/retrieve/embed"
)

// A judged claim is one of wice-dev: a sentence of an encyclopaedia and the
// page it cites.
type judged struct {
	claim, page string
	supported   bool // wholly; "partially supported" is not
}

// readJudged skips the test, saying why, when the set is not there.
func readJudged(t testing.TB) (claims []judged, supported []bool) {
	t.Helper()
	base := os.Getenv("IBID_DATASETS")
	if base == "" {
		base = "../../shared/data"
	}
	dir := filepath.Join(base, "wice-dev")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no evaluation data: %v: set IBID_DATASETS to the folder that holds it", err)
	}
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

type linear struct {
	bias float64
	w    []float64
}

// fitLogistic fits a logistic regression by Newton's method, with a ridge on
// the standardised weights.
func fitLogistic(x [][]float64, y []bool, ridge float64) linear {
	n, d := len(x), len(x[0])
	mean, sd := make([]float64, d), make([]float64, d)
	for j := range d {
		for i := range n {
			mean[j] += x[i][j] / float64(n)
		}
		for i := range n {
			sd[j] += (x[i][j] - mean[j]) * (x[i][j] - mean[j]) / float64(n)
		}
		sd[j] = math.Sqrt(sd[j])
		if sd[j] == 0 {
			sd[j] = 1
		}
	}
	th := make([]float64, d+1)
	for range 25 {
		g := make([]float64, d+1)
		h := make([][]float64, d+1)
		for j := range h {
			h[j] = make([]float64, d+1)
		}
		row := make([]float64, d+1)
		for i := range n {
			row[d] = 1
			z := th[d]
			for j := range d {
				row[j] = (x[i][j] - mean[j]) / sd[j]
				z += th[j] * row[j]
			}
			p := 1 / (1 + math.Exp(-z))
			e := p
			if y[i] {
				e = p - 1
			}
			for j := range row {
				g[j] += e * row[j]
				for k := range row {
					h[j][k] += p * (1 - p) * row[j] * row[k]
				}
			}
		}
		for j := range d {
			g[j] += ridge * th[j]
			h[j][j] += ridge
		}
		step := solve(h, g)
		for j := range th {
			th[j] -= step[j]
		}
	}
	m := linear{th[d], make([]float64, d)}
	for j := range d {
		m.w[j] = th[j] / sd[j]
		m.bias -= th[j] * mean[j] / sd[j]
	}
	return m
}

// solve gives x for a x = b by Gauss's elimination.
func solve(a [][]float64, b []float64) []float64 {
	n := len(b)
	x := append([]float64(nil), b...)
	for i := range n {
		p := i
		for k := i; k < n; k++ {
			if math.Abs(a[k][i]) > math.Abs(a[p][i]) {
				p = k
			}
		}
		a[i], a[p], x[i], x[p] = a[p], a[i], x[p], x[i]
		for k := i + 1; k < n; k++ {
			f := a[k][i] / a[i][i]
			for j := i; j < n; j++ {
				a[k][j] -= f * a[i][j]
			}
			x[k] -= f * x[i]
		}
	}
	for i := n - 1; i >= 0; i-- {
		for j := i + 1; j < n; j++ {
			x[i] -= a[i][j] * x[j]
		}
		x[i] /= a[i][i]
	}
	return x
}

func (m linear) score(x []float64) float64 {
	z := m.bias
	for j, w := range m.w {
		z += w * x[j]
	}
	return z
}

// crossValidate gives the mean and the standard deviation, over seeds, of the
// AUROC of held-out scores.
func crossValidate(x [][]float64, y []bool, ridge float64, seeds int) (mean, spread float64) {
	var all []float64
	for seed := range seeds {
		out := heldOut(x, y, ridge, uint64(seed))
		all = append(all, auroc(out, y))
	}
	return moments(all)
}

// moments gives the mean and the standard deviation.
func moments(values []float64) (mean, spread float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		spread += (v - mean) * (v - mean) / float64(len(values))
	}
	return mean, math.Sqrt(spread)
}

// heldOut gives every claim the chance estimated by a model fitted on the other
// four fifths.
func heldOut(x [][]float64, y []bool, ridge float64, seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	fold := make([]int, len(y))
	count := [2]int{}
	for _, i := range r.Perm(len(y)) {
		k := 0
		if y[i] {
			k = 1
		}
		fold[i] = count[k] % 5
		count[k]++
	}
	out := make([]float64, len(y))
	for f := range 5 {
		var tx [][]float64
		var ty []bool
		for i := range y {
			if fold[i] != f {
				tx, ty = append(tx, x[i]), append(ty, y[i])
			}
		}
		m := fitLogistic(tx, ty, ridge)
		for i := range y {
			if fold[i] == f {
				out[i] = 1 / (1 + math.Exp(-m.score(x[i])))
			}
		}
	}
	return out
}

// ridge holds the weights back; the result hardly depends on it (1 to 10).
const ridge = 3

// rows gives the signals of every claim.
func rows(s Support, claims []judged) [][]float64 {
	x := make([][]float64, len(claims))
	for i, c := range claims {
		cover := s.reading(c)
		_, degrees := cover.evidence()
		g := cover.signals(degrees)
		x[i] = []float64{g.covered, g.names, g.numbers}
	}
	return x
}

// TestSupportAUROC measures how well the support tells claims that their page
// bears out from those that it bears out in part or not at all, with the
// model's weights fitted on other claims.
func TestSupportAUROC(t *testing.T) {
	claims, supported := readJudged(t)
	for _, test := range []struct {
		name  string
		s     Support
		floor float64
	}{
		{"full", full, 0.83},
		{"zero value", Support{}, 0.80},
		{"no stemmer", Support{Sentences: ingest.Sentences}, 0.80},
	} {
		x := rows(test.s, claims)
		mean, spread := crossValidate(x, supported, ridge, 10)
		t.Logf("%s: AUROC %.3f ± %.3f", test.name, mean, spread)
		if mean < test.floor {
			t.Errorf("%s: AUROC %.3f, want %.2f or more", test.name, mean, test.floor)
		}
	}
}

// TestSupportSignals measures what each signal adds to those before it, and
// what some that were not taken would add to all of them. The figures stand in
// SUPPORT.md.
func TestSupportSignals(t *testing.T) {
	claims, supported := readJudged(t)
	model, err := embed.New()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	columns := map[string][]float64{}
	note := func(i int, name string, value float64) {
		if columns[name] == nil {
			names = append(names, name)
			columns[name] = make([]float64, len(claims))
		}
		columns[name][i] = value
	}
	var contradicted []bool
	for i, c := range claims {
		plainly := Support{Sentences: ingest.Sentences}
		note(i, "best sentence, words as written", best(plainly.reading(c), 1))
		all := (&lexer{stem: full.Stem}).read(c.claim)
		cover := full.reading(c)
		note(i, "best sentence, stemmed", best(cover, 1))
		picked, degrees := cover.evidence()
		g := cover.signals(degrees)
		note(i, "three sentences together", g.covered)
		note(i, "names", g.names)
		note(i, "numbers", g.numbers)
		contradicted = append(contradicted, len(picked) > 0 && cover.contradicts(all, picked, degrees))

		note(i, "+ best two neighbours", best(cover, 2))
		note(i, "+ best five neighbours", best(cover, 5))
		var text strings.Builder
		light, found := 0.0, map[string]bool{}
		for _, p := range picked {
			s := cover.sentences[p]
			text.WriteString(c.page[s.start:s.end] + "\n")
			for _, w := range s.words {
				found[w.plain] = true
			}
		}
		worst, other := 1.0, 0.0
		for k, w := range cover.claim {
			worst = min(worst, degrees[k])
			if w.kind == plain {
				other += 1 - degrees[k]
			}
		}
		for _, w := range all {
			if !found[w.plain] {
				light++
			}
		}
		note(i, "+ worst word", worst)
		note(i, "+ other words missing", math.Log1p(other))
		note(i, "+ every word, articles too", math.Log1p(light))
		note(i, "+ words of the claim", math.Log(float64(len(cover.claim))))
		vectors, err := model.Embed(t.Context(), []string{c.claim, text.String()})
		if err != nil {
			t.Fatal(err)
		}
		cosine := 0.0
		for k, x := range vectors[0] {
			cosine += float64(x) * float64(vectors[1][k])
		}
		note(i, "+ embedding of the evidence", cosine)
	}
	table := func(columnNames ...string) [][]float64 {
		x := make([][]float64, len(claims))
		for _, name := range columnNames {
			for i, v := range columns[name] {
				x[i] = append(x[i], v)
			}
		}
		return x
	}
	report := func(name string, x [][]float64) float64 {
		mean, spread := crossValidate(x, supported, ridge, 10)
		t.Logf("%-32s %.3f ± %.3f", name, mean, spread)
		return mean
	}
	one := report(names[0], table(names[0]))
	report(names[1], table(names[1]))
	report(names[2], table(names[2]))
	report(names[3], table(names[2:4]...))
	all := report(names[4], table(names[2:5]...))
	if all < one+0.08 {
		t.Errorf("all signals give %.3f, the best sentence alone %.3f", all, one)
	}
	var ruled []float64
	for seed := range uint64(10) {
		chance := heldOut(table(names[2:5]...), supported, ridge, seed)
		for i := range chance {
			if contradicted[i] {
				chance[i] = min(chance[i], mostContradicted)
			}
		}
		ruled = append(ruled, auroc(chance, supported))
	}
	mean, spread := moments(ruled)
	t.Logf("%-32s %.3f ± %.3f", "contradictions", mean, spread)
	for _, name := range names[5:] {
		report(name, table(append(names[2:5:5], name)...))
	}
}

// reading reads a claim against its page.
func (s Support) reading(c judged) *cover {
	return s.cover(claimWords((&lexer{stem: s.Stem}).read(c.claim)), c.page, "", s.spans(c.page))
}

// best is the largest share of the claim covered by n sentences in a row.
func best(c *cover, n int) float64 {
	most := 0.0
	for i := range c.sentences {
		most = max(most, c.share(i, min(i+n, len(c.sentences))))
	}
	return most
}

// TestSupportModel holds the weights of the model to the data they come from.
func TestSupportModel(t *testing.T) {
	claims, supported := readJudged(t)
	m := fitLogistic(rows(full, claims), supported, ridge)
	got := []float64{supportModel.bias, supportModel.covered, supportModel.names, supportModel.numbers}
	for i, want := range append([]float64{m.bias}, m.w...) {
		if math.Abs(got[i]-want) > 0.01 {
			t.Fatalf("supportModel is not what the data give; put in support_model.go:\nlogistic{bias: %.2f, covered: %.2f, names: %.2f, numbers: %.2f}",
				m.bias, m.w[0], m.w[1], m.w[2])
		}
	}
}

// TestSupportThreshold measures the verdicts at [Supported], by models fitted
// on other claims.
func TestSupportThreshold(t *testing.T) {
	claims, supported := readJudged(t)
	x := rows(full, claims)
	var right, wrong, missed, weak float64
	const seeds = 10
	for seed := range uint64(seeds) {
		for i, p := range heldOut(x, supported, ridge, seed) {
			switch {
			case p >= Supported && supported[i]:
				right++
			case p >= Supported:
				wrong++
			case supported[i]:
				missed++
			default:
				weak++
			}
		}
	}
	t.Logf("supported: precision %.2f, recall %.2f", right/(right+wrong), right/(right+missed))
	t.Logf("weak: precision %.2f, recall %.2f", weak/(weak+missed), weak/(weak+wrong))
	if p := weak / (weak + missed); p < 0.8 {
		t.Errorf("of the sentences marked weak %.2f are, want 0.8 or more", p)
	}
}
