package eval

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestQuantile(t *testing.T) {
	ten := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, test := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{nil, .5, 0}, {[]float64{7}, .5, 7}, {[]float64{7}, .95, 7},
		{ten, .5, 5}, {ten, .95, 10}, {ten, .9, 9}, {ten, .91, 10}, {ten, 1, 10}, {ten, 0, 1},
		{ten[:9], .5, 5}, {ten[:4], .95, 4},
	} {
		if got := Quantile(test.values, test.q); got != test.want {
			t.Errorf("the %g quantile of %v is %v, want %v", test.q, test.values, got, test.want)
		}
	}
}

// Wilson's interval by hand: of 8 in 10, p = .8, z² = 3.8414588:
// (.8 + .19207294 ± 1.95996398·√(.016 + .00960365)) / 1.38414588.
func TestWilson(t *testing.T) {
	for _, test := range []struct {
		n, of     int
		low, high float64
	}{
		{8, 10, .4901625, .9433178}, {0, 10, 0, .2775328}, {10, 10, .7224672, 1}, {5, 10, .2365931, .7634069}, {0, 0, 0, 0}, {5, 5, .5655175, 1},
	} {
		if low, high := Wilson(test.n, test.of); math.Abs(low-test.low) > 1e-6 || math.Abs(high-test.high) > 1e-6 {
			t.Errorf("%d of %d: %.7f to %.7f, want %.7f to %.7f", test.n, test.of, low, high, test.low, test.high)
		}
	}
}

func TestBootstrap(t *testing.T) {
	mean := func(values []float64) func([]int) float64 {
		return func(drawn []int) float64 {
			sum := 0.
			for _, i := range drawn {
				sum += values[i]
			}
			return sum / float64(len(drawn))
		}
	}
	// Two drawn of {0, 1}: the means 0, ½ and 1 come with ¼, ½ and ¼.
	if low, high := Bootstrap(2, 1, mean([]float64{0, 1})); low != 0 || high != 1 {
		t.Errorf("%v to %v", low, high)
	}
	if low, high := Bootstrap(3, 1, mean([]float64{.4, .4, .4})); !near(low, .4) || !near(high, .4) {
		t.Errorf("%v to %v", low, high)
	}
	if low, high := Bootstrap(0, 1, nil); low != 0 || high != 0 {
		t.Errorf("%v to %v of nothing", low, high)
	}
	// Of 200 normal values it is near the mean ± 1.96 standard errors.
	random := rand.New(rand.NewPCG(3, 4))
	values := make([]float64, 200)
	sum, squares := 0., 0.
	for i := range values {
		values[i] = 5 + 2*random.NormFloat64()
		sum += values[i]
		squares += values[i] * values[i]
	}
	middle := sum / 200
	half := 1.96 * math.Sqrt((squares/200-middle*middle)/200)
	low, high := Bootstrap(200, 1, mean(values))
	if math.Abs(low-(middle-half)) > .05 || math.Abs(high-(middle+half)) > .05 {
		t.Errorf("%v to %v, want about %v to %v", low, high, middle-half, middle+half)
	}
	if l, h := Bootstrap(200, 1, mean(values)); l != low || h != high {
		t.Error("the same seed gives another interval")
	}
	if l, h := Bootstrap(200, 2, mean(values)); l == low && h == high {
		t.Error("another seed gives the same interval")
	}
}

// The interval of the mean of an exponential sample holds the true mean about
// as often as it says.
func TestBootstrapCoverage(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	const samples, size = 200, 40
	held := 0
	for s := range samples {
		values := make([]float64, size)
		for i := range values {
			values[i] = random.ExpFloat64()
		}
		low, high := Bootstrap(size, uint64(s), func(drawn []int) float64 {
			sum := 0.
			for _, i := range drawn {
				sum += values[i]
			}
			return sum / size
		})
		if low <= 1 && 1 <= high {
			held++
		}
	}
	if share := float64(held) / samples; share < .87 || share > .99 {
		t.Errorf("of the intervals %.3f hold the mean", share)
	}
}

func TestEstimate(t *testing.T) {
	share := Measure{Unit: ShareUnit}
	// 3 of 4 citations: the ratio of the sums, not the mean of 1 and ½.
	e := share.estimate([]Part{{2, 2}, {1, 2}, {0, 0}}, 1)
	if e.Value != .75 || e.Questions != 2 || e.Low != .5 || e.High != 1 {
		t.Errorf("%+v", e)
	}
	// Yes or no: Wilson's.
	if e = share.estimate([]Part{{1, 1}, {0, 1}, {1, 1}, {1, 1}}, 1); e.Value != .75 || math.Abs(e.Low-.3006418) > 1e-6 || math.Abs(e.High-.9544127) > 1e-6 {
		t.Errorf("%+v", e)
	}
	// All borne out says as much as so many yes.
	if e = share.estimate([]Part{{2, 2}, {3, 3}, {4, 4}, {2, 2}, {1, 1}}, 1); e.Value != 1 || math.Abs(e.Low-.5655175) > 1e-6 || e.High != 1 {
		t.Errorf("%+v", e)
	}
	if e = (Measure{Unit: CountUnit}).estimate([]Part{{1, 1}, {1, 1}}, 1); e.Low != 1 || e.High != 1 {
		t.Errorf("%+v", e)
	}
	if e = (Measure{Unit: SecondsUnit, quantile: .5}).estimate([]Part{{3, 1}, {1, 1}, {2, 1}, {9, 0}}, 1); e.Value != 2 || e.Low != 1 || e.High != 3 || e.Questions != 3 {
		t.Errorf("%+v", e)
	}
	if e = share.estimate([]Part{{1, 2}}, 1); e.Value != .5 || e.Low != 0 || e.High != 1 {
		t.Errorf("%+v", e)
	}
	if e = share.estimate(nil, 1); e != (Estimate{}) {
		t.Errorf("%+v", e)
	}
}
