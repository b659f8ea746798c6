package retrieve

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestLargest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.IntRange(0, 6), 0, 30).Draw(t, "values")
		floats := make([]float32, len(values))
		for i, v := range values {
			floats[i] = float32(v) // many values are equal
		}
		k := rapid.IntRange(1, 10).Draw(t, "k")
		want := make([]int, len(floats))
		for i := range want {
			want[i] = i
		}
		slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(floats[b], floats[a]) })
		if got := largest(floats, k); !slices.Equal(got, want[:min(k, len(want))]) {
			t.Errorf("largest(%v, %d) = %v, want %v", floats, k, got, want)
		}
	})
}

func TestNearness(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 70 {
		a, b := direction(rng, n), direction(rng, n)
		if got, want := float64(innerProduct(a, b)), Cosine(a, b); math.Abs(got-want) > 1e-6 {
			t.Errorf("innerProduct of %d dimensions = %v, want %v", n, got, want)
		}
	}
}

// TestEven checks that a candidate among good ones gains on one with the same score among
// bad ones, and that with no share, or among few candidates, no score changes.
func TestEven(t *testing.T) {
	var all []*scored
	add := func(x, y float32, score float64) {
		all = append(all, &scored{Passage: Passage{Score: score}, vector: []float32{x, y}})
	}
	add(1, 0.2, 0)
	add(0.2, 1, 0)
	for range perNeighbour {
		add(1, 0, 2)
		add(0, 1, -2)
	}
	for _, few := range [][]*scored{slices.Clone(all), slices.Clone(all[:perNeighbour-1])} {
		share := neighbourShare
		if len(few) == len(all) {
			share = 0
		}
		before := scoresOf(few)
		smoothScores(few, share)
		if got := scoresOf(few); !slices.Equal(got, before) {
			t.Errorf("share %v of %d: scores %v become %v", share, len(few), before, got)
		}
	}
	smoothScores(all, neighbourShare)
	if good, bad := all[0].Score, all[1].Score; good <= 0 || bad >= 0 {
		t.Errorf("score among good candidates = %v, among bad ones = %v", good, bad)
	}
}

func scoresOf(all []*scored) (scores []float64) {
	for _, s := range all {
		scores = append(scores, s.Score)
	}
	return scores
}

// direction returns a random vector of unit length.
func direction(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	unit, _ := Unit(v, n) // nil of no dimensions
	return unit
}

// TestFuseOfMany checks that the cost of mixing thousands of candidates is not quadratic.
func TestFuseOfMany(t *testing.T) {
	all := make([]*scored, 60_000) // all pairs of likenesses would need 28 GB
	for i := range all {
		all[i] = &scored{vector: []float32{1, 0}}
		all[i].Scores = Scores{Dense: float64(i%7) / 7, BM25: float64(i % 11)}
	}
	fuse(all, []float32{1, 0}, denseWeight)
	for _, s := range all {
		if s.Score < 0 || s.Score > 1 {
			t.Fatalf("score = %g, want 0 to 1", s.Score)
		}
	}
	if most := testing.AllocsPerRun(1, func() { fuse(all, []float32{1, 0}, denseWeight) }); most > 1000 {
		t.Errorf("%g allocations, want at most 1000", most)
	}
}
