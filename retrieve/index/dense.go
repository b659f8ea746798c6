package index

import (
	"context"
	"math"
	"math/bits"

	"ibid/retrieve"
	"ibid/retrieve/index/scan"
)

// Dense implements [retrieve.Searcher]. It is exact: everything that the filter
// selects is compared with the vector.
func (x *Index) Dense(ctx context.Context, vector []float32, k int, f retrieve.Filter) (hits []retrieve.Hit, err error) {
	err = x.read(ctx, func(v *snapshot) error {
		t := newTop(k, v)
		_, err := v.nearest(ctx, t, vector, f)
		hits = t.ranked()
		return err
	})
	return hits, err
}

// few is how many chunks are searched by chromem-go, which compares them in less
// than a millisecond. It computes all cosines from the vectors; of more chunks,
// the scan is faster by more than can be neglected.
const few = 2048

// nearest adds the chunks nearest to a vector to t. It returns of how many it
// computed the exact cosine.
//
// Up to few chunks are searched by chromem-go. Of more, a scan over the rounded
// vectors computes each cosine within a proved bound. What could be among the k
// best by its upper bound is then computed from the vectors: the result is that
// of computing all, and reads a quarter of the memory.
func (v *snapshot) nearest(ctx context.Context, t *top, vector []float32, f retrieve.Filter) (computed int, err error) {
	if t.k <= 0 {
		return 0, nil
	}
	unit, err := retrieve.Unit(vector, v.dims)
	if err != nil {
		return 0, err
	}
	exact := func(part, slot int32) {
		t.add(scored[float64]{part, slot, dot(v.parts[part].vector(slot), unit)})
		computed++
	}
	chosen, all := v.choose(f)
	c := newClosest(unit, t.k)
	for i := range chosen {
		s := v.parts[i].segment
		switch {
		case chosen[i].count == 0:
		case all <= few || s.file == "" && chosen[i].count <= few && f.IsZero():
			slots, err := s.around(ctx, &chosen[i], unit, t.k)
			if err != nil {
				return computed, err
			}
			for _, slot := range slots {
				exact(int32(i), slot)
			}
		default:
			if err := c.scan(ctx, int32(i), s, &chosen[i]); err != nil {
				return computed, err
			}
		}
	}
	sortScored(c.found)
	for _, n := range c.found {
		if n.score < c.least || t.below(float64(n.score)*c.perUnit) {
			break // and so are all that follow
		}
		exact(n.part, n.slot)
	}
	return computed, nil
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

// scanRows is the number of rows that are scanned at a time.
const scanRows = 1024

// scan scans the chosen chunks of a segment.
func (c *closest) scan(ctx context.Context, part int32, s *segment, only *chosen) error {
	var products [scanRows]int32
	var words [scanRows / 64]uint64
	for first := int32(0); first < int32(s.Chunks); first += scanRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows := int(min(scanRows, int32(s.Chunks)-first))
		chosen := words[:(rows+63)/64]
		some := uint64(0)
		for i := range chosen {
			chosen[i] = only.word(int(first)/64 + i)
			some |= chosen[i]
		}
		if some == 0 {
			continue
		}
		// Rows that are close together are multiplied at once, and in fours.
		for w := 0; w < len(chosen); w++ {
			if chosen[w] == 0 {
				continue
			}
			from := w*64 + bits.TrailingZeros64(chosen[w])&^3
			for w+1 < len(chosen) && chosen[w+1] != 0 {
				w++
			}
			to := min(w*64+(bits.Len64(chosen[w])+3)&^3, rows)
			c.query.Dots(products[from:to], s.rows(secCodes, first+int32(from), to-from))
		}
		scales := cast[float32](s.rows(secScales, first, rows))[:rows]
		residuals := cast[float32](s.rows(secResiduals, first, rows))[:rows]
		for at, product := range products[:rows] {
			about, bound := float32(product)*scales[at], residuals[at]*c.spread+c.slack
			if about+bound >= c.least && words[at/64]>>(at%64)&1 != 0 {
				c.found = append(c.found, scored[float32]{part, first + int32(at), about + bound})
				if c.lowers.add(about - bound); len(c.lowers.heap) == c.lowers.k {
					c.least = c.lowers.heap[0]
				}
			}
		}
	}
	return nil
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
