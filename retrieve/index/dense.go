package index

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"ibid/retrieve"
	"ibid/retrieve/index/scan"
)

// Dense implements [retrieve.Searcher]. It is exact: everything that the filter
// selects is compared with the vector.
func (x *Index) Dense(ctx context.Context, vector []float32, k int, f retrieve.Filter) (hits []retrieve.Hit, err error) {
	err = x.read(ctx, func(v *snapshot) error {
		t, _, err := v.nearest(ctx, vector, k, f)
		if err == nil {
			hits = t.ranked()
		}
		return err
	})
	return hits, err
}

// few is how many chunks chromem-go's query compares in less than a millisecond.
// It computes all cosines from the vectors; above, the scan is faster than that
// by more than it matters. See BenchmarkFew.
const few = 2048

// nearest finds the k chunks nearest to a vector. It also returns of how many it
// computed the exact cosine.
//
// Up to few chunks are searched by chromem-go. Of more, a scan over the rounded
// vectors gives each cosine within a proved bound. What could be among the k best
// by its upper bound is then computed from the vectors: the result is that of
// computing all, and reads a quarter of the memory.
func (v *snapshot) nearest(ctx context.Context, vector []float32, k int, f retrieve.Filter) (t top, computed int, err error) {
	t = top{k: min(k, v.chunks), snapshot: v}
	if t.k <= 0 {
		return t, 0, nil
	}
	unit, err := retrieve.Unit(vector, v.dims)
	if err != nil {
		return t, 0, err
	}
	chosen, all := v.choose(f)
	exact := func(part, slot int32) {
		t.push(hit{part, slot, dot(v.parts[part].vector(slot), unit)})
		computed++
	}
	c := newClosest(scan.NewQuery(unit), k)
	for i := range chosen {
		p := v.parts[i]
		switch {
		case chosen[i].count == 0:
		case all <= few || p.file == "" && chosen[i].count <= few && f.IsZero():
			slots, err := p.around(ctx, &chosen[i], unit, k)
			if err != nil {
				return t, computed, err
			}
			for _, slot := range slots {
				exact(int32(i), slot)
			}
		default:
			if err := c.scan(ctx, int32(i), p.segment, &chosen[i]); err != nil {
				return t, computed, err
			}
		}
	}
	for _, n := range c.ranked() {
		if t.below(float64(n.upper) * c.perUnit) {
			break // and so are all that follow
		}
		exact(n.part, n.slot)
	}
	return t, computed, nil
}

// choose returns what a search with the filter may find of each part, and how
// many chunks that is, with those deleted.
func (v *snapshot) choose(f retrieve.Filter) (parts []chosen, all int) {
	parts = make([]chosen, len(v.parts))
	for i, p := range v.parts {
		parts[i] = chosen{filtered: p.selected(f), chunks: int(p.Chunks)}
		if p.deaths != nil {
			parts[i].deleted = p.deaths.slots
		}
		all += parts[i].count
	}
	return parts, all
}

// A near is a chunk that may be one of the k nearest; upper bounds its cosine, in
// units of the scan.
type near struct {
	part, slot int32
	upper      float32
}

// A closest scans for the chunks that may be among the k nearest. None whose upper
// bound is below the k-th highest lower bound can be.
type closest struct {
	query         *scan.Query
	perUnit       float64 // a bound times perUnit is a cosine
	spread, slack float32
	lowers        lowest[float32] // the k highest lower bounds
	least         float32         // the k-th of them
	found         []near
}

func newClosest(q *scan.Query, k int) *closest {
	perUnit, spread, slack := q.Bounds()
	return &closest{query: q, perUnit: perUnit, spread: float32(spread / perUnit), slack: float32(slack / perUnit),
		lowers: lowest[float32]{k: k}, least: -math.MaxFloat32}
}

// scanRows is the number of rows that are scanned at a time.
const scanRows = 1024

// scan scans what is chosen of a segment.
func (c *closest) scan(ctx context.Context, part int32, s *segment, only *chosen) error {
	var products [scanRows]int32
	var words, reach [scanRows / 64]uint64
	for first := int32(0); first < int32(s.Chunks); first += scanRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows := int(min(scanRows, int32(s.Chunks)-first))
		n := (rows + 63) / 64
		some := uint64(0)
		for i := range n {
			words[i] = only.word(int(first)/64 + i)
			some |= words[i]
		}
		if some == 0 {
			continue
		}
		c.multiply(products[:rows], s, first, words[:n])
		scales := cast[float32](s.rows(secScales, first, 64*n))
		residuals := cast[float32](s.rows(secResiduals, first, 64*n))
		scan.Reaching(reach[:n], products[:64*n], scales, residuals, c.spread, c.slack, c.least)
		for i, word := range reach[:n] {
			for word &= words[i]; word != 0; word &= word - 1 {
				at := i*64 + bits.TrailingZeros64(word)
				c.add(part, first+int32(at), products[at], scales[at], residuals[at])
			}
		}
	}
	return nil
}

// multiply computes the products of the rows with a bit in words, and of some
// between them.
func (c *closest) multiply(products []int32, s *segment, first int32, words []uint64) {
	for w := 0; w < len(words); w++ {
		if words[w] == 0 {
			continue
		}
		// Rows that are close together are read at once, and in fours, as the
		// scan reads them.
		from := w*64 + bits.TrailingZeros64(words[w])&^3
		for w+1 < len(words) && words[w+1] != 0 {
			w++
		}
		to := min(w*64+(bits.Len64(words[w])+3)&^3, len(products))
		c.query.Dots(products[from:to], s.rows(secCodes, first+int32(from), to-from))
	}
}

// add adds the product of a row.
func (c *closest) add(part, slot, product int32, scale, residual float32) {
	about := float32(float32(product) * scale)
	bound := float32(residual*c.spread) + c.slack
	if about+bound < c.least {
		return
	}
	c.found = append(c.found, near{part, slot, about + bound})
	if least, full := c.lowers.add(about - bound); full {
		c.least = least
	}
}

// ranked returns what is left after all were scanned, the highest upper bound
// first.
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
