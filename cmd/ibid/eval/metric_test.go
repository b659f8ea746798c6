package eval

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// log2 of 3, 5 and 6 to ten places, so that the sums below don't repeat the code.
const (
	log3 = 1.5849625007
	log5 = 2.3219280949
	log6 = 2.5849625007
)

func TestMetrics(t *testing.T) {
	graded := Grades{"a": 3, "b": 2, "c": 1, "d": 0, "e": -1}
	for _, test := range []struct {
		name    string
		ranking []string
		grades  Grades
		metric  Metric
		want    float64
	}{
		// The two queries of pytrec_eval's README, with its results.
		{"pytrec_eval q1", []string{"d3", "d1", "d2"}, Grades{"d1": 0, "d2": 1, "d3": 0}, Metric{"ndcg", 10}, .5},
		{"pytrec_eval q2", []string{"d1", "d3", "d2"}, Grades{"d2": 1, "d3": 1}, Metric{"ndcg", 10}, 0.6934264036172708},

		{"the grade is the gain", []string{"b", "x", "a", "d", "c"}, graded, Metric{"ndcg", 10}, (2 + 3/2. + 1/log6) / (3 + 2/log3 + 1/2.)},
		{"cut", []string{"b", "x", "a", "d", "c"}, graded, Metric{"ndcg", 3}, (2 + 3/2.) / (3 + 2/log3 + 1/2.)},
		{"the best order is cut too", []string{"b", "a"}, graded, Metric{"ndcg", 2}, (2 + 3/log3) / (3 + 2/log3)},
		{"best order", []string{"a", "b", "c"}, graded, Metric{"ndcg", 10}, 1},
		{"a grade below 0 gains nothing", []string{"e", "a"}, graded, Metric{"ndcg", 10}, (3 / log3) / (3 + 2/log3 + 1/2.)},
		{"a lost document counts", []string{"x", "y", "z", "a"}, Grades{"a": 1, "lost": 1}, Metric{"ndcg", 10}, (1 / log5) / (1 + 1/log3)},
		{"nothing found", nil, graded, Metric{"ndcg", 10}, 0},
		{"nothing relevant", []string{"d"}, Grades{"d": 0}, Metric{"ndcg", 10}, 0},
		{"not judged", []string{"d"}, nil, Metric{"ndcg", 10}, 0},

		{"recall", []string{"x", "a", "d", "c"}, graded, Metric{"recall", 3}, 1 / 3.},
		{"recall of all", []string{"x", "a", "d", "c", "b"}, graded, Metric{"recall", 10}, 1},
		{"recall of nothing", []string{"x"}, Grades{"d": 0}, Metric{"recall", 10}, 0},
		{"reciprocal rank", []string{"x", "d", "c", "a"}, graded, Metric{"mrr", 10}, 1 / 3.},
		{"after the cut", []string{"x", "d", "c", "a"}, graded, Metric{"mrr", 2}, 0},
	} {
		if got := test.metric.Measure(test.ranking, test.grades); !near(got, test.want) {
			t.Errorf("%s: %s = %.10f, want %.10f", test.name, test.metric, got, test.want)
		}
	}
}

func TestUnits(t *testing.T) {
	for _, test := range []struct {
		unit Unit
		x    float64
		want string
	}{
		{ShareUnit, .12345, "0.123"}, {SecondsUnit, .0000123, "0.0 ms"}, {SecondsUnit, .01234, "12.3 ms"}, {SecondsUnit, .4567, "457 ms"},
		{SecondsUnit, 1.234, "1.23 s"},
		{CountUnit, 3, "3"}, {CountUnit, 3.14159, "3.14"},
	} {
		if got := test.unit.Write(test.x); got != test.want {
			t.Errorf("%s.Write(%v) = %q, want %q", test.unit, test.x, got, test.want)
		}
	}
}

func TestCompare(t *testing.T) {
	for _, test := range []struct {
		name string
		a, b []float64
		want Comparison
	}{
		{"nothing", nil, nil, Comparison{P: 1}},
		{"the same", []float64{.2, .4}, []float64{.2, .4}, Comparison{P: 1}},
		// Of the 8 assignments of signs, only +++ and --- have a sum as far from 0.
		{"three better", []float64{1, 1, 1}, []float64{0, 0, 0}, Comparison{Difference: 1, P: .25, Better: 3}},
		{"ties do not count", []float64{1, .5, 1, 1}, []float64{0, .5, 0, 0}, Comparison{Difference: .75, P: .25, Better: 3}},
		{"against each other", []float64{.5, 0}, []float64{0, .5}, Comparison{P: 1, Better: 1, Worse: 1}},
		// ±.4 ±.1: |sum| is .5 twice and .3 twice; .3 is observed, so all four are as far
		// from 0.
		{"one each way", []float64{.4, 0}, []float64{0, .1}, Comparison{Difference: .15, P: 1, Better: 1, Worse: 1}},
		// ±3 ±2 ±1 with an observed sum of 4 (3+2-1): 6, 4 and their mirrors are at least
		// as far from 0: 4 of 8.
		{"two of three", []float64{3, 2, 0}, []float64{0, 0, 1}, Comparison{Difference: 4 / 3., P: .5, Better: 2, Worse: 1}},
	} {
		got := Compare(test.a, test.b)
		if !near(got.Difference, test.want.Difference) || math.Abs(got.P-test.want.P) > .005 || got.Better != test.want.Better ||
			got.Worse != test.want.Worse {
			t.Errorf("%s: Compare = %+v, want %+v", test.name, got, test.want)
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
			t.Fatalf("Compare(%v, %v) differs between calls", a, b)
		}
		if x.P <= 0 || x.P > 1 || math.Abs(x.P-y.P) > .01 || !near(x.Difference, -y.Difference) || x.Better != y.Worse {
			t.Fatalf("Compare(a, b) = %+v, Compare(b, a) = %+v", x, y)
		}
	})
}

func TestAUROC(t *testing.T) {
	t.Parallel()
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
			t.Errorf("AUROC(%v, %v) = %v, want %v", test.good, test.bad, got, test.want)
		}
	}
	if got := AUROC([]float64{math.NaN(), 1}, []float64{math.NaN()}); got < 0 || got > 1 {
		t.Errorf("AUROC of NaN scores = %v, want a value from 0 to 1", got)
	}
}
