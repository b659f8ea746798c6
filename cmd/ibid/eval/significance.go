package eval

import (
	"cmp"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// A Comparison says how two systems differ on the same queries.
type Comparison struct {
	Difference float64 `json:"difference"` // mean of a minus mean of b
	P          float64 `json:"p"`          // two-sided, in (0, 1]
	Better     int     `json:"better"`     // queries on which a is better
	Worse      int     `json:"worse"`      // queries on which b is
}

const (
	// drawn is how many random assignments of signs a p-value is estimated
	// from; near p = .05 its standard error is .0007.
	drawn = 100_000
	// enumerated is up to how many differing queries every assignment is
	// looked at, which makes the p-value exact.
	enumerated = 16
)

// Compare tests whether two systems differ, by Fisher's paired randomisation
// test on the difference of the means: a[i] and b[i] are the figures of one
// query, and were the systems the same, either could have been the other's.
// P is the share of the assignments of signs to the differences whose mean is
// at least as far from 0. Smucker, Allan and Carterette (CIKM 2007) recommend
// this test for retrieval. With more than a few differing queries assignments
// are drawn, with a fixed seed, and the one observed is counted among them, so
// that P is never 0 (Phipson and Smyth 2010).
//
// It panics when a and b are not of one length.
func Compare(a, b []float64) Comparison {
	if len(a) != len(b) {
		panic("eval: figures of different queries compared")
	}
	var c Comparison
	var differences []float64 // those that are not 0: a sign does nothing to the others
	sum := 0.0
	for i := range a {
		d := a[i] - b[i]
		switch {
		case d > 0:
			c.Better++
		case d < 0:
			c.Worse++
		default:
			continue
		}
		differences = append(differences, d)
		sum += d
	}
	if len(a) > 0 {
		c.Difference = sum / float64(len(a))
	}
	// Sums in another order differ in their last bits.
	extreme := math.Abs(sum) - 1e-9
	n := len(differences)
	if n <= enumerated {
		// Gray code: each assignment is the one before with one sign turned.
		count, turned := 1, append([]float64(nil), differences...)
		sum := 0.0
		for _, d := range turned {
			sum += d
		}
		for i := 1; i < 1<<n; i++ {
			bit := bits.TrailingZeros(uint(i))
			sum -= 2 * turned[bit]
			turned[bit] = -turned[bit]
			if math.Abs(sum) >= extreme {
				count++
			}
		}
		c.P = float64(count) / float64(int(1)<<n)
		return c
	}
	random := rand.New(rand.NewPCG(2007, 623))
	count := 1
	for range drawn {
		sum := 0.0
		for i := 0; i < n; i += 64 {
			signs := random.Uint64()
			for _, d := range differences[i:min(i+64, n)] {
				// The sign bit turned by the lowest bit of the draw: no branch to mispredict.
				sum += math.Float64frombits(math.Float64bits(d) ^ signs<<63)
				signs >>= 1
			}
		}
		if math.Abs(sum) >= extreme {
			count++
		}
	}
	c.P = float64(count) / (drawn + 1)
	return c
}

// AUROC is the chance that a value drawn from good is larger than one drawn
// from bad, a tie counting half: the area under the curve of the receiver
// operating characteristic. 1 parts them perfectly, ½ not at all; without
// values on one side it is ½.
func AUROC(good, bad []float64) float64 {
	if len(good) == 0 || len(bad) == 0 {
		return .5
	}
	type value struct {
		x    float64
		good bool
	}
	all := make([]value, 0, len(good)+len(bad))
	for _, x := range good {
		all = append(all, value{x, true})
	}
	for _, x := range bad {
		all = append(all, value{x, false})
	}
	slices.SortFunc(all, func(a, b value) int { return cmp.Compare(a.x, b.x) })
	ranks := 0.0 // of the good, counted from 1; ties share theirs
	for i := 0; i < len(all); {
		j, n := i, 0
		for ; j < len(all) && cmp.Compare(all[j].x, all[i].x) == 0; j++ {
			if all[j].good {
				n++
			}
		}
		ranks += float64(n) * float64(i+j+1) / 2
		i = j
	}
	n, m := float64(len(good)), float64(len(bad))
	return (ranks - n*(n+1)/2) / (n * m)
}
