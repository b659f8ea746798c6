package local

import (
	"cmp"
	"slices"

	"ibid/retrieve"
)

// The search for the chunks of the highest BM25 score leaves out what cannot
// come among them (MaxScore: Turtle and Flood, "Query Evaluation: Strategies
// and Optimizations", 1995; by windows, as Lucene does). It takes the slots a
// window at a time. Within one, the terms that even together cannot lift a
// chunk into the result are not scanned, but only completed for the chunks that
// another term has brought near it.
//
// Scores on the way are whole numbers, two for a chunk: one not below its score
// and one not above it, in units. A chunk comes in unless the first is below the
// k-th highest of the second: then k others are better. Those that came in are
// scored anew at the end, in double precision and in the order of the
// question's terms, so that the result is that of the plain sum over all chunks.
//
// Why rounding takes nothing away: the weights of all terms together are less
// than 2^16 units, and what double precision rounds of them is below 2^-30 of a
// unit. Whole numbers are compared, so to be left out a chunk must be worse by
// most of a unit.

const (
	// windowSlots is how many slots have a sum at a time: so many as stay in the
	// nearest cache.
	windowSlots = 4096
	// firstWindow is how many the first window has. It doubles until there are
	// windowSlots, so that the first chunks, with which none compare yet, are few.
	firstWindow = 256
	// scanCost is how many postings are scanned in the time of looking one up.
	// A lookup waits for memory several times, a scan never.
	scanCost = 64
	// A sum has the upper score in units, and the lower one in parts of units.
	units = 1 << 16
	// maxTerms leaves a unit of the upper score for the rounding of each term,
	// and most of them for the weights.
	maxTerms = units / 8
)

// A cursor is one term of a search in its list.
type cursor struct {
	*postings
	term   int32
	idf    float64
	weight float64       // in units: more than it weighs in any chunk
	sums   [codes]uint32 // what a posting adds, by its code

	// The window's postings, and the most that one of them weighs, in units.
	start, end int
	most       uint32
}

// A saturation gives the share of its weight that a term has by its count:
// count / (count + base + slope·length).
type saturation struct{ base, slope float64 }

func (s saturation) share(count, length float64) float64 {
	return count / (count + s.base + s.slope*length)
}

// bound is the most that a chunk within the bound has.
func (s saturation) bound(b bound) float64 {
	return 1 / (1 + s.base/float64(b.count) + s.slope*float64(b.length))
}

// matching finds the k slots of the highest BM25 score over the terms, of those
// selected or of all.
func (m *memory) matching(terms []string, k int, only selection) top {
	t := top{k: min(k, m.live()), memory: m}
	if t.k <= 0 {
		return t
	}
	x, ok := m.searches.Get().(*search)
	if !ok {
		x = new(search)
	}
	defer m.searches.Put(x)
	x.prepare(m, terms, t.k, only)
	switch {
	case len(x.cursors) == 0:
	case len(x.cursors) > maxTerms:
		x.plain(&t)
	default:
		for first, slots := 0, len(m.slots); first < slots; {
			end := min(max(2*first, firstWindow), first+windowSlots)
			x.window(int32(first), int32(min(end, slots)))
			first = end
		}
		x.rank(&t)
	}
	return t
}

// A search is one run over all windows.
type search struct {
	m            *memory
	only         selection
	mean         float64 // length of a chunk
	by           saturation
	lower, upper [codes]float64 // shares of a weight by code, for by

	cursors []cursor // in the order of the question
	score   float64  // of a unit

	// In a window: the most that a term weighs and its place among the cursors,
	// by rising most, and before each what all before it weigh together.
	order []uint64
	below []uint32

	found  []bounded
	lowers lowest[uint32] // the k highest lower scores
	least  uint32         // what an upper score must reach, at least 1

	// Of each slot of the window, all zero between two.
	sums [windowSlots]uint32
	// The slots of the window that may come in. What is beyond them is written
	// to and not read, up to one place behind the last slot.
	candidates [2 * windowSlots]uint16
}

// A bounded is a slot with its upper score, in units.
type bounded struct {
	slot  int32
	upper uint32
}

// prepare sets up a run. What x holds of an earlier one is used again.
func (x *search) prepare(m *memory, terms []string, k int, only selection) {
	x.m, x.only, x.mean = m, only, float64(m.index.length)/float64(m.live())
	if only == nil {
		x.only = m.living
	}
	x.found, x.lowers, x.least = x.found[:0], lowest[uint32]{k: k, heap: x.lowers.heap[:0]}, 1
	by := saturation{
		base:  retrieve.BM25K1 * (1 - retrieve.BM25B),
		slope: retrieve.BM25K1 * retrieve.BM25B / cmp.Or(x.mean, 1),
	}
	if x.by != by {
		x.by = by
		x.lower, x.upper = m.index.codes.shares(by)
	}
	x.cursors = x.cursors[:0]
	var all float64
	for _, term := range terms {
		n, ok := m.index.ids[term]
		if !ok || x.has(n) {
			continue
		}
		x.cursors = slices.Grow(x.cursors, 1)[:len(x.cursors)+1]
		c := &x.cursors[len(x.cursors)-1]
		c.term, c.postings, c.end = n, &m.index.lists[n], 0
		c.idf = retrieve.IDF(m.live(), len(c.list)-int(c.dead))
		all += c.idf
	}
	n := len(x.cursors)
	if n > maxTerms {
		return
	}
	perUnit := all / float64(units-2-n)
	x.score = perUnit * (retrieve.BM25K1 + 1)
	for i := range x.cursors {
		c := &x.cursors[i]
		c.weight = c.idf / perUnit
		for code := range c.sums {
			// The conversions round down.
			c.sums[code] = uint32(int32(c.weight*x.upper[code])+1)*units + uint32(int32(c.weight*x.lower[code]))
		}
	}
	x.order = slices.Grow(x.order[:0], n)[:n]
	x.below = slices.Grow(x.below[:0], n)[:n]
}

// has says whether there is a cursor of the term.
func (x *search) has(term int32) bool {
	for i := range x.cursors {
		if x.cursors[i].term == term {
			return true
		}
	}
	return false
}

// window searches the slots from first to before end, which lie within as many
// as have a sum.
func (x *search) window(first, end int32) {
	all := uint32(0)
	for i := range x.cursors {
		c := &x.cursors[i]
		x.enter(c, end)
		all += c.most
		x.order[i] = uint64(c.most)<<32 | uint64(i)
	}
	if all < x.least || x.only.none(first, end) {
		return
	}
	slices.Sort(x.order)
	sum, essential := uint32(0), 0 // the terms before essential reach nothing by themselves
	for i, o := range x.order {
		x.below[i] = sum
		if sum < x.least {
			essential = i
		}
		sum += uint32(o >> 32)
	}
	var n uint
	for _, o := range x.order[essential:] {
		n = x.scan(&x.cursors[uint32(o)], x.least-x.below[essential], n)
	}
	base := first &^ (windowSlots - 1)
	candidates := x.candidates[:n]
	for i := essential; i > 0 && len(candidates) > 0; i-- {
		x.complete(&x.cursors[uint32(x.order[i-1])], base, candidates)
		candidates = x.reaching(candidates, x.least-x.below[i-1])
	}
	for _, i := range candidates {
		if s := x.sums[i]; s/units >= x.least && x.only.has(base+int32(i)) {
			x.found = append(x.found, bounded{base + int32(i), s / units})
			if least, full := x.lowers.add(s % units); full {
				x.least = max(1, least)
			}
		}
	}
	clear(x.sums[first-base : end-base])
}

// enter moves a cursor to the next window, which ends before the slot.
func (x *search) enter(c *cursor, end int32) {
	c.start = c.end
	if window := int(end / windowSlots); len(c.starts) == 0 || end%windowSlots != 0 {
		c.end = seek(c.list, c.start, end)
	} else if window < len(c.starts) {
		c.end = int(c.starts[window])
	} else {
		c.end = len(c.list)
	}
	c.most = 0
	if c.start == c.end {
		return
	}
	var share float64
	for _, b := range c.bounds[c.start/postingsBlock : (c.end-1)/postingsBlock+1] {
		share = max(share, x.by.bound(b))
	}
	// Bounds are of single precision.
	c.most = uint32(c.weight*share*(1+1e-6)) + 1
}

// seek gives the first place from at on whose slot is not below the given one.
func seek(list []posting, at int, slot int32) int {
	step := 1
	for at+step < len(list) && list[at+step].slot() < slot {
		at += step
		step *= 2
	}
	return at + place(list[at:min(at+step, len(list))], slot)
}

// place gives the first place whose slot is not below the given one. It takes
// as many steps whatever it finds, so that the processor need not guess.
func place(list []posting, slot int32) int {
	key := posting(slot) << codeBits
	at, n := 0, len(list)
	for n > 1 {
		half := n / 2
		if list[at+half-1] < key {
			at += half
		}
		n -= half
	}
	if n == 1 && list[at] < key {
		at++
	}
	return at
}

// scan adds what a term weighs to the sums of the window's chunks, and those
// that it brings to need to the n candidates; it says how many there are then.
// Whether a chunk is one cannot be guessed, so there is no branch.
func (x *search) scan(c *cursor, need uint32, n uint) uint {
	sums, candidates, needed := &x.sums, &x.candidates, uint64(need)*units
	for _, p := range c.list[c.start:c.end] {
		i := uint32(p>>codeBits) % windowSlots
		before := sums[i]
		after := before + c.sums[uint8(p)]
		sums[i] = after
		candidates[n%uint(len(candidates))] = uint16(i)
		n += uint((uint64(before) - needed) &^ (uint64(after) - needed) >> 63) // before < needed <= after
	}
	return n
}

// complete adds what a term weighs to the sums of the candidates, at least.
func (x *search) complete(c *cursor, base int32, candidates []uint16) {
	list := c.list[c.start:c.end]
	if len(list) < scanCost*len(candidates) {
		for _, p := range list {
			x.sums[uint32(p>>codeBits)%windowSlots] += c.sums[uint8(p)]
		}
		return
	}
	for _, i := range candidates {
		slot := base + int32(i)
		if at := place(list, slot); at < len(list) && list[at].slot() == slot {
			x.sums[i] += c.sums[uint8(list[at])]
		}
	}
}

// reaching keeps the candidates whose sums reach need.
func (x *search) reaching(candidates []uint16, need uint32) []uint16 {
	n, needed := 0, uint64(need)*units
	for _, i := range candidates {
		candidates[n] = i
		n += int(^(uint64(x.sums[i%windowSlots]) - needed) >> 63)
	}
	return candidates[:n]
}

// rank scores what was found, the highest upper score first.
func (x *search) rank(t *top) {
	x.found = slices.DeleteFunc(x.found, func(f bounded) bool { return f.upper < x.least })
	slices.SortFunc(x.found, func(a, b bounded) int { return cmp.Compare(b.upper, a.upper) })
	for _, f := range x.found {
		if len(t.hits) == t.k && float64(f.upper+1)*x.score < t.hits[0].score {
			break // and so are all that follow
		}
		t.push(hit{f.slot, x.exact(f.slot)})
	}
}

// exact is the BM25 score of a chunk.
func (x *search) exact(slot int32) (score float64) {
	for i := range x.cursors {
		c := &x.cursors[i]
		list := c.window(slot)
		if at := place(list, slot); at < len(list) && list[at].slot() == slot {
			score += x.scored(c, list[at])
		}
	}
	return score
}

// scored is what a term adds to the score of its posting's chunk.
func (x *search) scored(c *cursor, p posting) float64 {
	length := x.m.index.lengths[p.slot()]
	return c.idf * retrieve.Saturation(int(x.m.index.count(c.term, p)), int(length), x.mean)
}

// plain sums up every chunk's score, for so many terms that units are too few.
func (x *search) plain(t *top) {
	scores := make([]float64, len(x.m.slots))
	for i := range x.cursors {
		c := &x.cursors[i]
		for _, p := range c.list {
			scores[p.slot()] += x.scored(c, p)
		}
	}
	for slot, score := range scores {
		if score > 0 && x.only.has(int32(slot)) {
			t.push(hit{int32(slot), score})
		}
	}
}
