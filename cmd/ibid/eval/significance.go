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
	Worse      int     `json:"worse"`      // queries on which b is better
}

const (
	// drawn is the number of random sign assignments from which a p-value is
	// estimated; near p = .05 its standard error is .0007.
	drawn = 100_000
	// enumerated is the largest number of differing queries for which all
	// assignments are enumerated, which makes the p-value exact.
	enumerated = 16
)

// Compare tests whether two systems differ, by Fisher's paired randomisation
// test on the difference of the means. a[i] and b[i] are the figures of one
// query; if the systems were the same, either could have produced either. P is
// the share of sign assignments to the differences whose mean is at least as far
// from 0 as the observed one. Smucker, Allan and Carterette (CIKM 2007) recommend
// this test for retrieval. If many queries differ, assignments are drawn with a
// fixed seed and the observed one is counted among them, so P is never 0 (Phipson
// and Smyth 2010).
//
// Compare panics if a and b differ in length.
func Compare(a, b []float64) Comparison {
	if len(a) != len(b) {
		panic("eval: figures of different queries compared")
	}
	var c Comparison
	var differences []float64 // without zeros, whose sign does not matter
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
	extreme := math.Abs(sum) - 1e-9 // sums in another order differ in their last bits
	if len(differences) <= enumerated {
		c.P = exactP(differences, sum, extreme)
	} else {
		c.P = drawnP(differences, extreme)
	}
	return c
}

// exactP visits every sign assignment in the order of a Gray code: each differs
// from the one before in one sign.
func exactP(differences []float64, sum, extreme float64) float64 {
	count, all := 1, 1<<len(differences)
	signed := slices.Clone(differences)
	for i := 1; i < all; i++ {
		bit := bits.TrailingZeros(uint(i))
		sum -= 2 * signed[bit]
		signed[bit] = -signed[bit]
		if math.Abs(sum) >= extreme {
			count++
		}
	}
	return float64(count) / float64(all)
}

func drawnP(differences []float64, extreme float64) float64 {
	random := rand.New(rand.NewPCG(2007, 623))
	count := 1
	for range drawn {
		sum := 0.0
		for chunk := range slices.Chunk(differences, 64) {
			signs := random.Uint64()
			for _, d := range chunk {
				// Flip the sign bit by the lowest random bit, without a branch.
				sum += math.Float64frombits(math.Float64bits(d) ^ signs<<63)
				signs >>= 1
			}
		}
		if math.Abs(sum) >= extreme {
			count++
		}
	}
	return float64(count) / (drawn + 1)
}

// AUROC is the area under the receiver operating characteristic: the chance
// that a value drawn from good is larger than one drawn from bad, a tie counting
// half. It is 1 if they are perfectly separated, and ½ if one side is empty.
func AUROC(good, bad []float64) float64 {
	if len(good) == 0 || len(bad) == 0 {
		return .5
	}
	all := slices.Concat(good, bad)
	slices.Sort(all)
	ranks := 0.0 // counted from 1; ties share their mean rank
	for _, x := range good {
		first, _ := slices.BinarySearch(all, x)
		after, _ := slices.BinarySearchFunc(all, x, func(e, x float64) int {
			if cmp.Compare(e, x) <= 0 {
				return -1
			}
			return 1
		})
		ranks += float64(first+1+after) / 2
	}
	n, m := float64(len(good)), float64(len(bad))
	return (ranks - n*(n+1)/2) / (n * m)
}
