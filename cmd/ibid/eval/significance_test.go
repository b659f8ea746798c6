package eval

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestCompare(t *testing.T) {
	for _, test := range []struct {
		name string
		a, b []float64
		want Comparison
	}{
		{"nothing", nil, nil, Comparison{P: 1}},
		{"the same", []float64{.2, .4}, []float64{.2, .4}, Comparison{P: 1}},
		// Of the 8 assignments of signs, +++ and --- have a sum as far from 0.
		{"three better", []float64{1, 1, 1}, []float64{0, 0, 0}, Comparison{Difference: 1, P: .25, Better: 3}},
		{"ties do not count", []float64{1, .5, 1, 1}, []float64{0, .5, 0, 0}, Comparison{Difference: .75, P: .25, Better: 3}},
		{"against each other", []float64{.5, 0}, []float64{0, .5}, Comparison{P: 1, Better: 1, Worse: 1}},
		// ±.4 ±.1: |sum| of .5 twice and .3 twice; .3 is seen, so all four are as far.
		{"one each way", []float64{.4, 0}, []float64{0, .1}, Comparison{Difference: .15, P: 1, Better: 1, Worse: 1}},
		// ±3 ±2 ±1 with a sum of 4 (3+2-1): 6, 4, and their mirrors are at least as far: 4 of 8.
		{"two of three", []float64{3, 2, 0}, []float64{0, 0, 1}, Comparison{Difference: 4 / 3., P: .5, Better: 2, Worse: 1}},
	} {
		got := Compare(test.a, test.b)
		if !near(got.Difference, test.want.Difference) || math.Abs(got.P-test.want.P) > .005 || got.Better != test.want.Better ||
			got.Worse != test.want.Worse {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestCompareProperties(t *testing.T) {
	figures := rapid.SliceOfN(rapid.Float64Range(0, 1), 30, 30)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(t, "n")
		a, b := figures.Draw(t, "a")[:n], figures.Draw(t, "b")[:n]
		x, y := Compare(a, b), Compare(b, a)
		if x != Compare(a, b) {
			t.Fatal("not the same twice")
		}
		if x.P <= 0 || x.P > 1 || math.Abs(x.P-y.P) > .01 || !near(x.Difference, -y.Difference) || x.Better != y.Worse {
			t.Fatalf("%+v, the other way round %+v", x, y)
		}
	})
}

func TestAUROC(t *testing.T) {
	for _, test := range []struct {
		good, bad []float64
		want      float64
	}{
		{[]float64{.9, .8}, []float64{.1, .2}, 1},
		{[]float64{.1, .2}, []float64{.9, .8}, 0},
		{[]float64{.5}, []float64{.5}, .5},
		{[]float64{.9, .3}, []float64{.5, .1}, .75},
		{[]float64{.9, .5}, []float64{.5, .1}, .875},
		{nil, []float64{1}, .5},
		{[]float64{1}, nil, .5},
	} {
		if got := AUROC(test.good, test.bad); !near(got, test.want) {
			t.Errorf("%v against %v: %v, want %v", test.good, test.bad, got, test.want)
		}
	}
	if got := AUROC([]float64{math.NaN(), 1}, []float64{math.NaN()}); got < 0 || got > 1 {
		t.Error(got)
	}
}
