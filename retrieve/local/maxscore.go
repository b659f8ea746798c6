package local

import (
	"cmp"
	"math/bits"
	"slices"

	"ibid/retrieve"
)

// The search for the chunks of the highest BM25 score leaves out what cannot
// come among them (MaxScore: Turtle and Flood, "Query Evaluation: Strategies
// and Optimizations", 1995; by windows, as Lucene does). It takes the slots a
// window at a time. Within one, the terms that even together cannot lift a
// chunk into the result are not scanned, but only looked up for the chunks in
// which another term stands.
//
// Sums on the way are of single precision, and higher than the score by no
// less than rounding; what may come in is computed anew, in double precision
// and in the order of the question's terms, so that the result is that of the
// plain sum over all chunks.

const (
	windowSlots = 4096
	// rounding is more than single precision takes from a sum of a question's terms.
	rounding = 1 + 1e-4
	// scanCost is how many postings are scanned in the time of looking one up.
	scanCost = 8
)

// A cursor is one term of a search in its list.
type cursor struct {
	term   int32
	asked  int // its place in the question
	list   []posting
	bounds []bound
	weight float32 // more than it weighs in any chunk

	// The window's postings, and the most that one of them weighs.
	start, end int
	most       float32
}

// A saturation computes a count's share of a term's weight in single precision:
// count / (count + base + slope·length).
type saturation struct{ base, slope float32 }

func (s saturation) of(count, length float32) float32 {
	return count / (count + s.base + s.slope*length)
}

// bound is the most that a chunk within the bound has.
func (s saturation) bound(b bound) float32 {
	return 1 / (1 + s.base/b.count + s.slope*b.length)
}

// matching finds the k slots of the highest BM25 score over the terms, of those
// selected or of all.
func (m *memory) matching(terms []string, k int, only selection) top {
	t := top{k: min(k, m.live()), id: m.id}
	if t.k <= 0 {
		return t
	}
	x, ok := m.searches.Get().(*search)
	if !ok {
		x = new(search)
	}
	defer m.searches.Put(x)
	x.prepare(m, terms, only)
	for first := 0; first < len(m.slots); first += windowSlots {
		x.window(&t, int32(first), int32(min(first+windowSlots, len(m.slots))))
	}
	return t
}

// A search is one run over all windows.
type search struct {
	m    *memory
	only selection // nil for all
	mean float64   // length of a chunk
	by   saturation

	cursors []cursor  // in a window, by rising most
	below   []float32 // before each of the cursors, the most that all before it weigh together

	// For the exact score, by the place of the term in the question.
	idf    []float64
	counts []int32

	// Of each slot of the window, all zero between two.
	sums       [windowSlots]float32
	touched    [windowSlots / 64]uint64
	candidates []uint32 // slots of the window, rising
}

// prepare sets up a run. What x holds of an earlier one is used again.
func (x *search) prepare(m *memory, terms []string, only selection) {
	x.m, x.only, x.mean = m, only, float64(m.index.length)/float64(m.live())
	x.cursors, x.idf = x.cursors[:0], x.idf[:0]
	x.by = saturation{
		base:  retrieve.BM25K1 * (1 - retrieve.BM25B),
		slope: float32(retrieve.BM25K1 * retrieve.BM25B / cmp.Or(x.mean, 1)),
	}
	for _, term := range terms {
		n, ok := m.index.ids[term]
		if !ok || slices.ContainsFunc(x.cursors, func(c cursor) bool { return c.term == n }) {
			continue
		}
		p := &m.index.lists[n]
		idf := retrieve.IDF(m.live(), len(p.list)-int(p.dead))
		x.cursors = append(x.cursors, cursor{term: n, asked: len(x.idf), list: p.list, bounds: p.bounds,
			weight: float32(idf * (retrieve.BM25K1 + 1) * rounding)})
		x.idf = append(x.idf, idf)
	}
	x.counts = slices.Grow(x.counts[:0], len(x.idf))[:len(x.idf)]
	x.below = slices.Grow(x.below[:0], len(x.idf))[:len(x.idf)]
}

// window searches the slots from first to before end.
func (x *search) window(t *top, first, end int32) {
	var all float32
	for i := range x.cursors {
		c := &x.cursors[i]
		x.enter(c, end)
		all += c.most
	}
	least := t.least()
	if all == 0 || all < least || x.only != nil && x.only.none(first, end) {
		return
	}
	slices.SortFunc(x.cursors, func(a, b cursor) int { return cmp.Compare(a.most, b.most) })
	sum, essential := float32(0), 0 // the terms before essential reach nothing by themselves
	for i := range x.cursors {
		x.below[i] = sum
		if sum < least {
			essential = i
		}
		sum += x.cursors[i].most
	}
	for i := essential; i < len(x.cursors); i++ {
		x.scan(&x.cursors[i], first)
	}
	x.gather(end-first, least-x.below[essential])
	for i := essential; i > 0 && len(x.candidates) > 0; i-- {
		x.complete(&x.cursors[i-1], first)
		x.candidates = slices.DeleteFunc(x.candidates, func(c uint32) bool { return x.sums[c]+x.below[i-1] < least })
	}
	for _, c := range x.candidates {
		if slot := first + int32(c); x.sums[c] >= least && x.allowed(slot) {
			t.push(hit{slot, x.exact(slot)})
			least = t.least()
		}
	}
	clear(x.sums[:])
}

// gather makes candidates of the touched chunks whose sums reach least.
func (x *search) gather(slots int32, least float32) {
	x.candidates = x.candidates[:0]
	for w := range x.touched[:(slots+63)/64] {
		for set := x.touched[w]; set != 0; set &= set - 1 {
			if i := uint32(w*64 + bits.TrailingZeros64(set)); x.sums[i] >= least {
				x.candidates = append(x.candidates, i)
			}
		}
		x.touched[w] = 0
	}
}

// enter moves a cursor to the next window, which ends before the slot.
func (x *search) enter(c *cursor, end int32) {
	c.start = c.end
	c.end = seek(c.list, c.start, end)
	c.most = 0
	if c.start == c.end {
		return
	}
	for _, b := range c.bounds[c.start/postingsBlock : (c.end-1)/postingsBlock+1] {
		c.most = max(c.most, c.weight*x.by.bound(b))
	}
}

// seek gives the first place from at on whose slot is not below the given one.
func seek(list []posting, at int, slot int32) int {
	step := 1
	for at+step < len(list) && list[at+step].slot() < slot {
		at += step
		step *= 2
	}
	end := min(at+step, len(list))
	for at < end {
		if middle := int(uint(at+end) / 2); list[middle].slot() < slot {
			at = middle + 1
		} else {
			end = middle
		}
	}
	return at
}

// weigh is what the posting's term weighs in its chunk.
func (x *search) weigh(c *cursor, p posting, length int32) float32 {
	if count := p & manyTimes; count < manyTimes {
		return c.weight * x.by.of(float32(count), float32(length))
	}
	return c.weight // more than any
}

// scan adds what a term weighs to the sums of the window's chunks.
func (x *search) scan(c *cursor, first int32) {
	lengths := x.m.index.lengths[first:]
	for _, p := range c.list[c.start:c.end] {
		i := uint32(p.slot()-first) % windowSlots
		x.sums[i] += x.weigh(c, p, lengths[i])
		x.touched[i/64] |= 1 << (i % 64)
	}
}

// complete adds what a term weighs to the sums of the candidates, at least.
func (x *search) complete(c *cursor, first int32) {
	lengths := x.m.index.lengths[first:]
	if c.end-c.start < scanCost*len(x.candidates) {
		for _, p := range c.list[c.start:c.end] {
			i := uint32(p.slot()-first) % windowSlots
			x.sums[i] += x.weigh(c, p, lengths[i])
		}
		return
	}
	list, at := c.list[:c.end], c.start
	for _, i := range x.candidates {
		if at = seek(list, at, first+int32(i)); at == len(list) {
			return
		}
		if p := list[at]; p.slot() == first+int32(i) {
			x.sums[i] += x.weigh(c, p, lengths[i])
		}
	}
}

func (x *search) allowed(slot int32) bool {
	if x.only != nil {
		return x.only.has(slot)
	}
	return x.m.alive(slot)
}

// exact is the BM25 score of a chunk of the window.
func (x *search) exact(slot int32) (score float64) {
	for i := range x.cursors {
		c := &x.cursors[i]
		at, _ := slices.BinarySearch(c.list[c.start:c.end], posting(slot)<<countBits)
		x.counts[c.asked] = 0
		if at += c.start; at < c.end && c.list[at].slot() == slot {
			x.counts[c.asked] = x.m.index.count(c.term, c.list[at])
		}
	}
	for i, n := range x.counts {
		if n > 0 {
			score += x.idf[i] * retrieve.Saturation(int(n), int(x.m.index.lengths[slot]), x.mean)
		}
	}
	return score
}
