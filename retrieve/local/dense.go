package local

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"ibid/retrieve"
	"ibid/retrieve/local/scan"
)

// Dense gives the ids of the k chunks nearest to the vector by cosine. It is
// exact: all that the filter lets through is scanned.
func (e *Engine) Dense(ctx context.Context, vector []float32, k int, f retrieve.Filter) ([]string, error) {
	if err := e.refresh(ctx); err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	m := e.memory
	if m.live() == 0 || k <= 0 {
		return nil, nil
	}
	unit, err := retrieve.Unit(vector, m.arena.dims)
	if err != nil {
		return nil, err
	}
	t, _, err := m.nearest(ctx, unit, k, m.selected(f))
	if err != nil {
		return nil, err
	}
	return t.ids(), nil
}

// nearest finds the k slots nearest to a unit vector, of those selected or of
// all, and says of how many it computed the cosine itself.
//
// A scan over the rounded vectors gives each cosine within a proved bound. What
// could be among the k best by its upper bound is then computed from the
// vectors: so the result is that of computing all, at a quarter of the memory
// to read.
func (m *memory) nearest(ctx context.Context, unit []float32, k int, only selection) (t top, computed int, err error) {
	found, perUnit, err := m.near(ctx, scan.NewQuery(unit), k, only)
	if err != nil {
		return top{}, 0, err
	}
	t = top{k: min(k, m.live()), memory: m}
	for _, c := range found {
		if len(t.hits) == t.k && float64(c.upper)*perUnit < t.hits[0].score {
			break // and so are all that follow
		}
		t.push(hit{c.slot, dot(m.arena.vector(c.slot), unit)})
		computed++
	}
	return t, computed, nil
}

// A near is a slot that may be one of the k nearest; upper bounds its cosine,
// in units of the scan.
type near struct {
	slot  int32
	upper float32
}

// near scans for the slots that may be among the k nearest, the highest upper
// bound first. A bound times perUnit is a cosine.
func (m *memory) near(ctx context.Context, q *scan.Query, k int, only selection) (found []near, perUnit float64, err error) {
	perUnit, spread, slack := q.Bounds()
	c := closest{lowers: lowest[float32]{k: k}, least: -math.MaxFloat32, spread: float32(spread / perUnit), slack: float32(slack / perUnit)}
	var products [blockRows]int32
	var reach [blockWords]uint64
	for i, b := range m.arena.blocks {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		first := int32(i) * blockRows
		if only == nil {
			rows := min(blockRows, int32(len(m.slots))-first)
			q.Dots(products[:rows], b.codes)
		} else if !selectedDots(q, &products, b.codes, only.words(first)) {
			continue
		}
		scan.Reaching(reach[:], products[:], b.scales[:], b.residuals[:], c.spread, c.slack, c.least)
		for w, word := range reach {
			if only != nil {
				word &= only.words(first)[w]
			}
			for ; word != 0; word &= word - 1 {
				at := w*64 + bits.TrailingZeros64(word)
				c.take(b, first, at, products[at])
			}
		}
	}
	return c.ranked(), perUnit, nil
}

// selectedDots computes the products of the rows selected, and of some between
// them; it says whether there are any.
func selectedDots(q *scan.Query, products *[blockRows]int32, codes []byte, words []uint64) (some bool) {
	stride := len(codes) / blockRows
	for w := 0; w < len(words); w++ {
		if words[w] == 0 {
			continue
		}
		// What lies close together is read in one go, in fours, as the scan
		// takes rows.
		from := w*64 + bits.TrailingZeros64(words[w])&^3
		for w+1 < len(words) && words[w+1] != 0 {
			w++
		}
		to := w*64 + (bits.Len64(words[w])+3)&^3
		q.Dots(products[from:to], codes[from*stride:])
		some = true
	}
	return some
}

// A closest keeps what may be among the k nearest. No slot whose upper bound is
// below the k-th highest lower bound can be.
type closest struct {
	lowers        lowest[float32] // the k highest lower bounds
	least         float32         // the k-th of them
	found         []near
	spread, slack float32
}

// take takes in the product of a row.
func (c *closest) take(b *block, first int32, row int, product int32) {
	about := float32(float32(product) * b.scales[row])
	bound := float32(b.residuals[row]*c.spread) + c.slack
	if about+bound < c.least {
		return
	}
	c.found = append(c.found, near{first + int32(row), about + bound})
	if least, full := c.lowers.add(about - bound); full {
		c.least = least
	}
}

// ranked gives what is left when all have been seen, the highest upper bound first.
func (c *closest) ranked() []near {
	found := slices.DeleteFunc(c.found, func(n near) bool { return n.upper < c.least })
	slices.SortFunc(found, func(a, b near) int { return cmp.Compare(b.upper, a.upper) })
	return found
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
