package index

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"ibid/retrieve"
)

// Lexical implements [retrieve.Searcher]. It is exact.
//
// It does not read what cannot be among the k best (MaxScore: Turtle and Flood,
// "Query Evaluation: Strategies and Optimizations", 1995; by windows, as Lucene
// does). It goes through the slots of each segment a window at a time. In a
// window, the terms that even together cannot lift a chunk into the result are
// not scanned, but only added for the chunks that other terms bring near it.
//
// Scores on the way are whole numbers of units, two for a chunk: one not below
// its score and one not above it. A chunk is found unless the first is below the
// k-th highest of the second: then k others are better. The scores of those found
// are computed again at the end, in double precision and in the order of the
// question's terms, so that the result is that of the plain sum over all chunks.
//
// Rounding loses nothing: the weights of all terms together are less than 2^16
// units, and what double precision rounds of them is below 2^-30 of a unit. Whole
// numbers are compared, so a chunk that is not found is worse by most of a unit.
func (x *Index) Lexical(ctx context.Context, terms []retrieve.Term, k int, f retrieve.Filter) (hits []retrieve.Hit, err error) {
	err = x.read(ctx, func(v *snapshot) error {
		t := top{k: min(k, v.chunks), snapshot: v}
		if t.k <= 0 {
			return nil
		}
		s, ok := searches.Get().(*search)
		if !ok {
			s = new(search)
		}
		chosen, _ := v.choose(f)
		if err := s.run(ctx, v, chosen, terms, &t); err != nil {
			return err
		}
		hits = t.ranked()
		s.forget()
		searches.Put(s)
		return nil
	})
	return hits, err
}

// searches are finished ones, to be used again.
var searches sync.Pool

const (
	// windowSlots is how many slots have a sum at a time: as many as remain in the
	// nearest cache.
	windowSlots = 4096
	// firstWindow is how many the first window has. It doubles until there are
	// windowSlots, so that there are few chunks before the first comparison.
	firstWindow = 256
	// fewCandidates is for how many chunks postings are looked up. For more, all
	// postings of the window are added.
	fewCandidates = 64
	// A sum has the upper score in units, and the lower one in parts of units.
	units = 1 << 16
	// maxTerms leaves a unit of the upper score for the rounding of each term,
	// and most of them for the weights.
	maxTerms = units / 8
)

// A weighed is a term of a question.
type weighed struct {
	text   string
	idf    float64       // times its count in the question
	weight float64       // in units: more than it weighs in any chunk
	sums   [codes]uint32 // what a posting adds, by its code
}

// A saturation computes the share of its weight that a term has by its count:
// count / (count + base + slope·length).
type saturation struct{ base, slope float64 }

func (s saturation) share(count, length float64) float64 {
	return count / (count + s.base + s.slope*length)
}

// bound is the most that a chunk within the bound has.
func (s saturation) bound(b bound) float64 {
	return 1 / (1 + s.base/float64(b.Count) + s.slope*float64(b.Length))
}

// A search finds the k chunks of the highest BM25 score in all segments.
type search struct {
	snapshot     *snapshot
	mean         float64 // length of a chunk
	by           saturation
	lower, upper [codes]float64 // shares of a weight by code, for by

	terms   []weighed  // in the order of the question
	cursors [][]cursor // of each part
	score   float64    // of a unit

	// In a window: the most that a term weighs and its place among the cursors,
	// by rising most, and for each what all before it weigh together.
	order []uint64
	below []uint32

	found  []bounded
	lowers lowest[uint32] // the k highest lower scores
	least  uint32         // what an upper score must reach, at least 1

	// Of each slot of the window, all zero between two.
	sums [windowSlots]uint32
	// The slots of the window that may be found. What is after them is written
	// to and not read, up to one place after the last slot.
	candidates [2 * windowSlots]uint16
}

// A bounded is a chunk with its upper score, in units.
type bounded struct {
	part, slot int32
	upper      uint32
}

func (x *search) run(ctx context.Context, v *snapshot, chosen []chosen, terms []retrieve.Term, t *top) error {
	x.prepare(v, terms, t.k)
	if len(x.terms) > maxTerms {
		return x.plain(ctx, chosen, t)
	}
	for part, cursors := range x.cursors {
		end := int32(v.parts[part].Chunks)
		for first, size := int32(0), int32(firstWindow); first < end && len(cursors) > 0; size = min(2*size, windowSlots) {
			if err := ctx.Err(); err != nil {
				return err
			}
			last := min(end, first+size, first/windowSlots*windowSlots+windowSlots)
			x.window(int32(part), cursors, &chosen[part], first, last)
			first = last
		}
	}
	x.rank(t)
	return nil
}

// prepare sets up a run. It reuses the memory of an earlier one.
func (x *search) prepare(v *snapshot, terms []retrieve.Term, k int) {
	x.snapshot, x.mean = v, v.mean()
	x.found, x.lowers, x.least = x.found[:0], lowest[uint32]{k: k, heap: x.lowers.heap[:0]}, 1
	x.by = saturation{
		base:  retrieve.BM25K1 * (1 - retrieve.BM25B),
		slope: retrieve.BM25K1 * retrieve.BM25B / cmp.Or(x.mean, 1),
	}
	for code, count := range book.count {
		x.lower[code] = x.by.share(float64(count), book.longest[code])
		x.upper[code] = x.by.share(float64(count), book.shortest[code])
		if count == manyTimes {
			x.upper[code] = 1
		}
	}
	x.terms = x.terms[:0]
	at := make(map[string]int, len(terms))
	for _, t := range terms {
		i, ok := at[t.Text]
		if !ok {
			i = len(x.terms)
			at[t.Text] = i
			x.terms = append(x.terms, weighed{text: t.Text})
		}
		x.terms[i].idf += float64(t.Count)
	}
	x.open()
	var all float64
	for i := range x.terms {
		all += x.terms[i].idf
	}
	n := len(x.terms)
	perUnit := all / float64(units-2-min(n, maxTerms))
	x.score = perUnit * (retrieve.BM25K1 + 1)
	for i := range x.terms {
		c := &x.terms[i]
		c.weight = c.idf / perUnit
		for code := range c.sums {
			// The conversions round down.
			c.sums[code] = uint32(int32(c.weight*x.upper[code])+1)*units + uint32(int32(c.weight*x.lower[code]))
		}
	}
	x.order = slices.Grow(x.order[:0], n)[:n]
	x.below = slices.Grow(x.below[:0], n)[:n]
}

// open sets the weights of the terms, and makes a cursor for each in every part
// that has it.
func (x *search) open() {
	x.cursors = x.cursors[:0]
	frequencies := make([]int, len(x.terms))
	for _, p := range x.snapshot.parts {
		if len(x.cursors) < cap(x.cursors) {
			x.cursors = x.cursors[:len(x.cursors)+1]
		} else {
			x.cursors = append(x.cursors, nil)
		}
		cursors := x.cursors[len(x.cursors)-1][:0]
		for i := range x.terms {
			l, ok := p.lookup(x.terms[i].text)
			if !ok {
				continue
			}
			frequencies[i] += p.frequency(&l)
			cursors = slices.Grow(cursors, 1)[:len(cursors)+1]
			c := &cursors[len(cursors)-1]
			c.weighed, c.list, c.skips, c.decoded, c.first = &x.terms[i], l, l.skips(), -1, 0
		}
		x.cursors[len(x.cursors)-1] = cursors
	}
	for i := range x.terms {
		if frequencies[i] > 0 {
			x.terms[i].idf *= retrieve.IDF(x.snapshot.chunks, frequencies[i])
		} else {
			x.terms[i].idf = 0
		}
	}
}

// forget drops what refers to segments.
func (x *search) forget() {
	x.snapshot = nil
	for _, cursors := range x.cursors {
		cursors = cursors[:cap(cursors)]
		for i := range cursors {
			cursors[i].weighed, cursors[i].list, cursors[i].skips, cursors[i].many = nil, list{}, nil, nil
		}
	}
}

// window searches the slots from first to before end of a part, which are all in
// one window.
func (x *search) window(part int32, cursors []cursor, only *chosen, first, end int32) {
	all := uint32(0)
	order, below := x.order[:len(cursors)], x.below[:len(cursors)]
	for i := range cursors {
		c := &cursors[i]
		c.enter(first, end, x.by)
		all += c.most
		order[i] = uint64(c.most)<<32 | uint64(i)
	}
	if all < x.least || only.none(first, end) {
		return
	}
	slices.Sort(order)
	sum, essential := uint32(0), 0 // the terms before essential reach nothing by themselves
	for i, o := range order {
		below[i] = sum
		if sum < x.least {
			essential = i
		}
		sum += uint32(o >> 32)
	}
	var n uint
	for _, o := range order[essential:] {
		n = x.scan(&cursors[uint32(o)], x.least-below[essential], n)
	}
	base := first &^ (windowSlots - 1)
	candidates := x.candidates[:n]
	for i := essential; i > 0 && len(candidates) > 0; i-- {
		x.complete(&cursors[uint32(order[i-1])], base, candidates)
		candidates = x.reaching(candidates, x.least-below[i-1])
	}
	for _, i := range candidates {
		if s := x.sums[i]; s/units >= x.least && only.has(base+int32(i)) {
			x.found = append(x.found, bounded{part, base + int32(i), s / units})
			if least, full := x.lowers.add(s % units); full {
				x.least = max(1, least)
			}
		}
	}
	clear(x.sums[first-base : end-base])
}

// scan adds what a term weighs to the sums of the window's chunks, and those
// whose sums reach need by that to the n candidates; it returns how many there
// are then. Whether a chunk is one cannot be predicted, so there is no branch.
func (x *search) scan(c *cursor, need uint32, n uint) uint {
	sums, candidates, needed := &x.sums, &x.candidates, uint64(need)*units
	for b := c.first; b < c.last; b++ {
		for _, p := range c.within(b) {
			i := uint32(p>>8) % windowSlots
			before := sums[i]
			after := before + c.sums[uint8(p)]
			sums[i] = after
			candidates[n%uint(len(candidates))] = uint16(i)
			n += uint((uint64(before) - needed) &^ (uint64(after) - needed) >> 63) // before < needed <= after
		}
	}
	return n
}

// complete adds what a term weighs to the sums of the candidates, at least.
func (x *search) complete(c *cursor, base int32, candidates []uint16) {
	rare := len(candidates) <= fewCandidates
	if rare {
		slices.Sort(candidates)
	}
	at := 0
	for b := c.first; b < c.last; b++ {
		if rare {
			for at < len(candidates) && base+int32(candidates[at]) < int32(c.skips[b].First) {
				at++
			}
			if at == len(candidates) {
				return
			}
			if b+1 < c.last && base+int32(candidates[at]) >= int32(c.skips[b+1].First) {
				continue
			}
		}
		for _, p := range c.within(b) {
			x.sums[uint32(p>>8)%windowSlots] += c.sums[uint8(p)]
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

// rank computes the scores of what was found, the highest upper score first.
func (x *search) rank(t *top) {
	x.found = slices.DeleteFunc(x.found, func(f bounded) bool { return f.upper < x.least })
	slices.SortFunc(x.found, func(a, b bounded) int { return cmp.Compare(b.upper, a.upper) })
	for _, f := range x.found {
		if t.below(float64(f.upper+1) * x.score) {
			break // and so are all that follow
		}
		t.push(hit{f.part, f.slot, x.exact(f.part, f.slot)})
	}
}

// exact is the BM25 score of a chunk.
func (x *search) exact(part, slot int32) (score float64) {
	length := x.snapshot.parts[part].length(slot)
	for i := range x.cursors[part] {
		c := &x.cursors[part][i]
		if count := c.count(slot); count > 0 {
			score += c.idf * retrieve.Saturation(count, length, x.mean)
		}
	}
	return score
}

// plain sums up every chunk's score, for so many terms that units are too few.
func (x *search) plain(ctx context.Context, chosen []chosen, t *top) error {
	for part, cursors := range x.cursors {
		s := x.snapshot.parts[part].segment
		scores := make([]float64, s.Chunks)
		for i := range cursors {
			if err := ctx.Err(); err != nil {
				return err
			}
			cursors[i].each(func(o occurrence) {
				scores[o.slot] += cursors[i].idf * retrieve.Saturation(int(o.count), s.length(o.slot), x.mean)
			})
		}
		for slot, score := range scores {
			if score > 0 && chosen[part].has(int32(slot)) {
				t.push(hit{int32(part), int32(slot), score})
			}
		}
	}
	return nil
}
