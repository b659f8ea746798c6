package index

import (
	"context"
	"math"
	"math/bits"

	"ibid/retrieve"
	"ibid/retrieve/index/scan"
)

// Dense implements [retrieve.Searcher]. It compares the vector with every selected chunk, so it is
// exact, unless the filter selects more than two million chunks and [Options.Exact] is not set.
func (x *Index) Dense(ctx context.Context, vector []float32, k int, f retrieve.Filter) (hits []retrieve.Hit, err error) {
	err = x.read(ctx, func(v *snapshot) error {
		t := newTop(k, v)
		err := v.nearest(ctx, t, vector, f, x.sieve)
		hits = t.rankedHits()
		return err
	})
	return hits, err
}

// few is the largest number of chunks that chromem-go, which computes all cosines from the vectors,
// searches in less than a millisecond. For more chunks the scan is considerably faster.
const few = 2048

// nearest adds the chunks nearest to a vector to t.
//
// If the filter selects more chunks than sieve.above, only the chunks that the sieve keeps are
// compared. Up to few chunks are searched by chromem-go. Otherwise a scan over the rounded vectors
// computes each cosine within a proved bound, and only cosines whose upper bound may be among the k
// best are computed from the vectors. This gives the same result as computing all cosines, but
// reads a quarter of the memory.
func (v *snapshot) nearest(ctx context.Context, t *top, vector []float32, f retrieve.Filter, sieve sieve) error {
	if t.k <= 0 {
		return nil
	}
	unit, err := retrieve.Unit(vector, v.dims)
	if err != nil {
		return err
	}
	exact := func(part, slot int32) {
		t.add(scored[float64]{part, slot, retrieve.Cosine(v.parts[part].vector(slot), unit)})
	}
	chosen, all := v.choose(f)
	if all > sieve.above {
		err = sieve.narrow(ctx, v.parts, chosen, unit, t.k)
	}
	c := newClosest(unit, t.k)
	for i := 0; i < len(chosen) && err == nil; i++ {
		s := v.parts[i].segment
		switch {
		case chosen[i].count == 0:
		case all <= min(few, sieve.above):
			err = s.eachNear(ctx, &chosen[i], unit, t.isBelow, func(slot int32) { exact(int32(i), slot) })
		default:
			err = c.scan(ctx, int32(i), s, &chosen[i])
		}
	}
	sortScored(c.found)
	for _, n := range c.found {
		if n.score < c.least || t.isBelow(float64(n.score)*c.perUnit) {
			break // later chunks are no nearer
		}
		exact(n.part, n.slot)
	}
	return err
}

// A closest scans for the chunks that may be among the k nearest. A chunk whose upper bound is
// below the k-th highest lower bound is not among them.
type closest struct {
	query         *scan.Query
	perUnit       float64 // a bound times perUnit is a cosine
	spread, slack float32
	lowers        best[float32]     // the k highest lower bounds
	least         float32           // the k-th highest lower bound
	found         []scored[float32] // with their upper bounds

	// Rows of a segment, copied so that they are adjacent.
	slots             []int32
	codes             []byte
	scales, residuals []float32
	products          [2 * rowsAtOnce]int32
}

func newClosest(unit []float32, k int) *closest {
	q := scan.NewQuery(unit)
	perUnit, spread, slack := q.Bounds()
	return &closest{query: q, perUnit: perUnit, spread: float32(spread / perUnit), slack: float32(slack / perUnit),
		lowers: best[float32]{k: k, worse: func(a, b float32) bool { return a < b }}, least: -math.MaxFloat32}
}

// rowsAtOnce is the smallest number of rows that are multiplied together.
const rowsAtOnce = 64

// scan scans the chosen chunks of a segment.
func (c *closest) scan(ctx context.Context, part int32, s *segment, only *chosen) error {
	for i := range only.words() {
		if i%16 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		for word := only.word(i); word != 0; {
			from := bits.TrailingZeros64(word)
			n := bits.TrailingZeros64(^(word >> from))
			word &^= (1<<n - 1) << from
			first := int32(64*i + from)
			for slot := first; slot < first+int32(n); slot++ {
				c.slots = append(c.slots, slot)
			}
			c.codes = append(c.codes, s.rows(secCodes, first, n)...)
			c.scales = append(c.scales, cast[float32](s.rows(secScales, first, n))...)
			c.residuals = append(c.residuals, cast[float32](s.rows(secResiduals, first, n))...)
		}
		if len(c.slots) >= rowsAtOnce {
			c.compare(part)
		}
	}
	c.compare(part)
	return nil
}

// compare computes the bounds of the copied rows.
func (c *closest) compare(part int32) {
	products := c.products[:len(c.slots)]
	c.query.Dots(products, c.codes)
	for at, slot := range c.slots {
		about, bound := float32(products[at])*c.scales[at], c.residuals[at]*c.spread+c.slack
		if about+bound >= c.least {
			c.found = append(c.found, scored[float32]{part, slot, about + bound})
			if c.lowers.add(about - bound); len(c.lowers.heap) == c.lowers.k {
				c.least = c.lowers.heap[0]
			}
		}
	}
	c.slots, c.codes, c.scales, c.residuals = c.slots[:0], c.codes[:0], c.scales[:0], c.residuals[:0]
}
