package cite

import (
	"bufio"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"ibid/ingest"
	"ibid/retrieve"
)

type judgedClaim struct {
	text, article string
	supported     bool
	label         string
}

func readClaims(t testing.TB) []judgedClaim {
	base := os.Getenv("IBID_DATASETS")
	if base == "" {
		base = "../../shared/data"
	}
	dir := filepath.Join(base, "wice-dev")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no evaluation data: %v: set IBID_DATASETS to the folder that holds it", err)
	}
	articles := map[string]string{}
	eachLine(t, filepath.Join(dir, "corpus.jsonl"), func(line []byte) error {
		var e struct {
			ID   string `json:"_id"`
			Text string
		}
		err := json.Unmarshal(line, &e)
		articles[e.ID] = e.Text
		return err
	})
	var claims []judgedClaim
	eachLine(t, filepath.Join(dir, "queries.jsonl"), func(line []byte) error {
		var e struct{ Text, Label, Article string }
		err := json.Unmarshal(line, &e)
		claims = append(claims, judgedClaim{e.Text, articles[e.Article], e.Label == "supported", e.Label})
		return err
	})
	return claims
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

func lines(text string) iter.Seq[ingest.Span] {
	return func(yield func(ingest.Span) bool) {
		at := 0
		for l := range strings.Lines(text) {
			trimmed := strings.TrimSpace(l)
			if trimmed != "" {
				start := at + strings.Index(l, trimmed)
				if !yield(ingest.Span{Start: start, End: start + len(trimmed)}) {
					return
				}
			}
			at += len(l)
		}
	}
}

func auroc(score []float64, positive []bool) float64 {
	order := make([]int, len(score))
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(a, b int) bool { return score[order[a]] < score[order[b]] })
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

// fit: standardised inputs, ridge, gradient by Newton.
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

func crossValidate(x [][]float64, y []bool, ridge float64, seeds int) (mean, spread float64) {
	var all []float64
	for seed := range seeds {
		out := heldOut(x, y, ridge, uint64(seed))
		all = append(all, auroc(out, y))
	}
	for _, a := range all {
		mean += a / float64(len(all))
	}
	for _, a := range all {
		spread += (a - mean) * (a - mean) / float64(len(all))
	}
	return mean, math.Sqrt(spread)
}

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
				z := m.score(x[i])
				out[i] = 1 / (1 + math.Exp(-z))
			}
		}
	}
	return out
}

func TestExplore(t *testing.T) {
	claims := readClaims(t)
	y := make([]bool, len(claims))
	for i, c := range claims {
		y[i] = c.supported
	}
	for _, v := range []struct {
		name string
		s    Support
	}{{"stem", Support{retrieve.Stem, lines}}, {"none", Support{nil, lines}},
		{"stem+uax", Support{retrieve.Stem, ingest.Sentences}}} {
		var x [][]float64
		for _, c := range claims {
			cw := claimWords((&lexer{stem: v.s.Stem}).read(c.text))
			cov := v.s.cover(cw, c.article, "", v.s.spans(c.article))
			_, d := cov.evidence()
			g := cov.signals(d)
			x = append(x, []float64{g.covered, g.plain, g.names, g.numbers})
		}
		a, b := crossValidate(x, y, 3, 10)
		fmt.Printf("%s %.4f ± %.4f %.3f\n", v.name, a, b, fitLogistic(x, y, 3))
		out := heldOut(x, y, 3, 1)
		if v.name == "stem+uax" {
			for th := .2; th < .7; th += .05 {
				var tp, fp, fn, tn float64
				for i := range out {
					switch {
					case out[i] >= th && y[i]:
						tp++
					case out[i] >= th:
						fp++
					case y[i]:
						fn++
					default:
						tn++
					}
				}
				fmt.Printf("th %.2f: supported P %.2f R %.2f; weak P %.2f R %.2f\n", th, tp/(tp+fp), tp/(tp+fn), tn/(tn+fn), tn/(tn+fp))
			}
		}
	}
}
