package index

import (
	"context"
	"math"
	"math/bits"

	"ibid/retrieve"
	"ibid/retrieve/index/scan"
)

// Dense implements [retrieve.Searcher]. It is exact, up to [Options.Exact]:
// everything that the filter selects is compared with the vector.
func (x *Index) Dense(ctx context.Context, vector []float32, k int, f retrieve.Filter) (hits []retrieve.Hit, err error) {
	err = x.read(ctx, func(v *snapshot) error {
		t := newTop(k, v)
		err := v.nearest(ctx, t, vector, f, x.sieve)
		hits = t.ranked()
		return err
	})
	return hits, err
}

// few is how many chunks are searched by chromem-go, which compares them in less
// than a millisecond. It computes all cosines from the vectors; of more chunks,
// the scan is faster by more than can be neglected.
const few = 2048

// nearest adds the chunks nearest to a vector to t.
//
// Of more chunks than the sieve's, it looks only at those that the sieve keeps. Up
// to few chunks are searched by chromem-go. Of more, a scan over the rounded
// vectors computes each cosine within a proved bound. What could be among the k
// best by its upper bound is then computed from the vectors: the result is that
// of computing all, and reads a quarter of the memory.
func (v *snapshot) nearest(ctx context.Context, t *top, vector []float32, f retrieve.Filter, sieve sieve) error {
	if t.k <= 0 {
		return nil
	}
	unit, err := retrieve.Unit(vector, v.dims)
	if err != nil {
		return err
	}
	exact := func(part, slot int32) {
		t.add(scored[float64]{part, slot, dot(v.parts[part].vector(slot), unit)})
	}
	chosen, all := v.choose(f)
	sieved := all > sieve.above
	if sieved {
		err = sieve.narrow(ctx, v.parts, chosen, unit, t.k)
	}
	c := newClosest(unit, t.k)
	for i := 0; i < len(chosen) && err == nil; i++ {
		s := v.parts[i].segment
		switch {
		case chosen[i].count == 0:
		case !sieved && (all <= few || s.file == "" && chosen[i].count <= few && f.IsZero()):
			err = s.around(ctx, &chosen[i], unit, t.below, func(slot int32) { exact(int32(i), slot) })
		default:
			err = c.scan(ctx, int32(i), s, &chosen[i])
		}
	}
	sortScored(c.found)
	for _, n := range c.found {
		if n.score < c.least || t.below(float64(n.score)*c.perUnit) {
			break // and so are all that follow
		}
		exact(n.part, n.slot)
	}
	return err
}

// A closest scans for the chunks that may be among the k nearest. None whose upper
// bound is below the k-th highest lower bound can be.
type closest struct {
	query         *scan.Query
	perUnit       float64 // a bound times perUnit is a cosine
	spread, slack float32
	lowers        best[float32]     // the k highest lower bounds
	least         float32           // the k-th of them
	found         []scored[float32] // with their upper bounds
}

func newClosest(unit []float32, k int) *closest {
	q := scan.NewQuery(unit)
	perUnit, spread, slack := q.Bounds()
	return &closest{query: q, perUnit: perUnit, spread: float32(spread / perUnit), slack: float32(slack / perUnit),
		lowers: best[float32]{k: k, worse: func(a, b float32) bool { return a < b }}, least: -math.MaxFloat32}
}

// scan scans the chosen chunks of a segment.
func (c *closest) scan(ctx context.Context, part int32, s *segment, only *chosen) error {
	for i := range only.words() {
		if i%16 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		word := only.word(i)
		// Rows are multiplied in fours.
		fours := (word | word>>1 | word>>2 | word>>3) & 0x1111_1111_1111_1111 * 15
		for fours != 0 {
			from := bits.TrailingZeros64(fours)
			n := bits.TrailingZeros64(^(fours >> from))
			fours &^= (1<<n - 1) << from
			c.multiply(part, s, int32(64*i+from), min(n, only.chunks-64*i-from), word>>from)
		}
	}
	return nil
}

// multiply scans up to 64 rows, of which it may find those in the word.
func (c *closest) multiply(part int32, s *segment, first int32, rows int, word uint64) {
	var products [64]int32
	c.query.Dots(products[:rows], s.rows(secCodes, first, rows))
	scales := cast[float32](s.rows(secScales, first, rows))[:rows]
	residuals := cast[float32](s.rows(secResiduals, first, rows))[:rows]
	for at, product := range products[:rows] {
		about, bound := float32(product)*scales[at], residuals[at]*c.spread+c.slack
		if about+bound >= c.least && word>>at&1 != 0 {
			c.found = append(c.found, scored[float32]{part, first + int32(at), about + bound})
			if c.lowers.add(about - bound); len(c.lowers.heap) == c.lowers.k {
				c.least = c.lowers.heap[0]
			}
		}
	}
}

// dot is the same on every processor: each product of two float32 is exact in
// float64, whether or not it is fused with the addition. It has four sums so
// that the processor need not wait for each addition.
func dot(a, b []float32) float64 {
	var s0, s1, s2, s3 float64
	for len(a) >= 4 && len(b) >= 4 {
		s0 += float64(a[0]) * float64(b[0])
		s1 += float64(a[1]) * float64(b[1])
		s2 += float64(a[2]) * float64(b[2])
		s3 += float64(a[3]) * float64(b[3])
		a, b = a[4:], b[4:]
	}
	for i := range min(len(a), len(b)) {
		s0 += float64(a[i]) * float64(b[i])
	}
	return (s0 + s1) + (s2 + s3)
}
