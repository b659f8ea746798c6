package extract

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A sample is one row of a regression.
type sample struct {
	x      []float64
	y      bool
	weight float64
}

// fit is logistic regression by Newton's method with a small ridge.
func fit(samples []sample) []float64 {
	d := len(samples[0].x) + 1
	w := make([]float64, d)
	for range 30 {
		h := make([][]float64, d)
		for i := range h {
			h[i] = make([]float64, d+1)
			h[i][i] = 1e-2
			if i > 0 {
				h[i][d] = -1e-2 * w[i]
			}
		}
		for _, s := range samples {
			p := logistic(w, s.x)
			y := 0.0
			if s.y {
				y = 1
			}
			at := func(i int) float64 {
				if i == 0 {
					return 1
				}
				return s.x[i-1]
			}
			g, c := s.weight*(y-p), s.weight*max(p*(1-p), 1e-9)
			for i := range d {
				h[i][d] += g * at(i)
				for j := range d {
					h[i][j] += c * at(i) * at(j)
				}
			}
		}
		step := solve(h)
		size := 0.0
		for i := range w {
			w[i] += step[i]
			size += math.Abs(step[i])
		}
		if size < 1e-8 {
			break
		}
	}
	return w
}

// solve is Gaussian elimination with pivots; the last column is the right side.
func solve(m [][]float64) []float64 {
	n := len(m)
	for c := range n {
		p := c
		for r := c + 1; r < n; r++ {
			if math.Abs(m[r][c]) > math.Abs(m[p][c]) {
				p = r
			}
		}
		m[c], m[p] = m[p], m[c]
		for r := range n {
			if r == c {
				continue
			}
			f := m[r][c] / m[c][c]
			for k := c; k <= n; k++ {
				m[r][k] -= f * m[c][k]
			}
		}
	}
	out := make([]float64, n)
	for i := range n {
		out[i] = m[i][n] / m[i][i]
	}
	return out
}

// A contest is a question's sentences, some of which hold the answer.
type contest struct {
	set  *set
	x    [][]float64
	wins []bool
}

func inner(w, x []float64) float64 {
	z := 0.0
	for i := range x {
		z += w[i] * x[i]
	}
	return z
}

// choose fits weights so that the sum of the softmax of the winners is as
// large as can be, each set weighing the same (a conditional logit, by
// gradient ascent with Adam's step sizes and a small ridge).
func choose(contests []contest) []float64 {
	d := len(contests[0].x[0])
	weight := map[*set]float64{}
	for _, c := range contests {
		weight[c.set]++
	}
	for s, n := range weight {
		weight[s] = 1 / (n * float64(len(weight)))
	}
	w, m, v := make([]float64, d), make([]float64, d), make([]float64, d)
	for step := 1; step <= 250; step++ {
		g := make([]float64, d)
		for i := range g {
			g[i] = -2e-3 * w[i]
		}
		for _, c := range contests {
			z := make([]float64, len(c.x))
			top := math.Inf(-1)
			for i, x := range c.x {
				z[i] = inner(w, x)
				top = max(top, z[i])
			}
			var total, winners float64
			for i := range z {
				z[i] = math.Exp(z[i] - top)
				total += z[i]
				if c.wins[i] {
					winners += z[i]
				}
			}
			for i, x := range c.x {
				pull := -z[i] / total
				if c.wins[i] {
					pull += z[i] / max(winners, 1e-12)
				}
				pull *= weight[c.set]
				for k := range g {
					g[k] += pull * x[k]
				}
			}
		}
		for k := range w {
			m[k] = .9*m[k] + .1*g[k]
			v[k] = .999*v[k] + .001*g[k]*g[k]
			w[k] += .1 * (m[k] / (1 - math.Pow(.9, float64(step)))) / (math.Sqrt(v[k]/(1-math.Pow(.999, float64(step)))) + 1e-8)
		}
	}
	return w
}

// below is the value under which the given share of all lies.
func below(values []float64, share float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return s[int(share*float64(len(s)-1))]
}

func accepted(values []float64, at float64) float64 {
	n := 0
	for _, v := range values {
		if v >= at {
			n++
		}
	}
	return float64(n) / float64(len(values))
}

func literal(name string, w []float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s = {", name)
	for i, x := range w {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%.3f", x)
	}
	return b.String() + "}"
}
