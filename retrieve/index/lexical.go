package index

import (
	"cmp"
	"context"
	"math"
	"slices"

	"ibid/retrieve"
)

// Lexical implements [retrieve.Searcher]. It is exact.
//
// It skips chunks that cannot be among the k best (MaxScore: Turtle and Flood, "Query Evaluation:
// Strategies and Optimizations", 1995; by windows, as in Lucene). It processes the slots of each
// segment one window at a time. Terms that cannot lift a chunk into the result even together are
// not scanned in a window; their weights are added only to chunks that the other terms bring close
// to the result.
//
// Intermediate scores have single precision, so the search collects all chunks whose scores may
// reach the k-th highest within the rounding error. Their scores are then computed again in double
// precision and in the order of the question's terms, so that the result equals the plain sum over
// all chunks.
func (x *Index) Lexical(ctx context.Context, terms []string, k int, f retrieve.Filter) (hits []retrieve.Hit, err error) {
	err = x.read(ctx, func(v *snapshot) error {
		t := newTop(k, v)
		if t.k <= 0 {
			return nil
		}
		chosen, _ := v.choose(f)
		err := newSearch(v, terms, t.k).run(ctx, chosen, t)
		hits = t.rankedHits()
		return err
	})
	return hits, err
}

// windowSlots is the number of slots of a window, whose sums fit in the first-level cache.
const windowSlots = 4096

// A weighed is a term of a question with its weight.
type weighed struct {
	idf    float64
	weight float32 // idf times the largest value of [retrieve.Saturation]
}

// A search finds the k chunks with the highest BM25 scores in all segments.
type search struct {
	snapshot *snapshot
	mean     float64 // mean length of a chunk
	// A term contributes the share count / (count + base + slope*length) of its weight.
	base, slope float32
	rounding    float32 // the largest relative error of a score

	cursors [][]cursor // for each part, in the order of the question

	// For a window: the cursors, in ascending order of the largest weights of their terms, and for
	// each cursor the sum of the weights before it.
	order []scored[float32]
	below []float32

	found  []scored[float32] // chunks
	scores best[float32]     // the k highest scores
	least  float32           // lowest score of a candidate, always positive

	lengths []int32 // for the slots of the window
	// For each slot of the window; all zero between windows.
	sums [windowSlots]float32
	// The slots of the window that may be in the result. The scan also writes one element after
	// them, which is not read.
	candidates [2 * windowSlots]uint16
}

func (x *search) run(ctx context.Context, chosen []chosen, t *top) error {
	for part, cursors := range x.cursors {
		end := int32(x.snapshot.parts[part].Chunks)
		for first := int32(0); first < end && len(cursors) > 0; first += windowSlots {
			if err := ctx.Err(); err != nil {
				return err
			}
			x.window(int32(part), cursors, &chosen[part], first, min(end, first+windowSlots))
		}
	}
	x.rank(t)
	return nil
}

// newSearch weights the terms, and makes a cursor for each term in every part that has it.
func newSearch(v *snapshot, terms []string, k int) *search {
	x := &search{snapshot: v, mean: v.mean(), least: math.SmallestNonzeroFloat32, cursors: make([][]cursor, len(v.parts))}
	x.scores = best[float32]{k: k, worse: func(a, b float32) bool { return a < b }}
	x.base = retrieve.BM25K1 * (1 - retrieve.BM25B)
	x.slope = float32(retrieve.BM25K1 * retrieve.BM25B / cmp.Or(x.mean, 1))
	x.rounding = float32(len(terms)+16) / (1 << 23)
	x.order, x.below = make([]scored[float32], len(terms)), make([]float32, len(terms))
	lists := make([]list, len(v.parts))
	for _, term := range terms {
		w := &weighed{idf: retrieve.IDF(v.chunks, v.lookup(term, lists))}
		w.weight = float32(w.idf * (retrieve.BM25K1 + 1))
		for i := range lists {
			if lists[i].segment != nil {
				x.cursors[i] = append(x.cursors[i], cursor{weighed: w, list: lists[i], skips: lists[i].skips(), decoded: -1})
			}
		}
	}
	return x
}

// window searches the slots of a part from first up to but not including end.
func (x *search) window(part int32, cursors []cursor, only *chosen, first, end int32) {
	all := float32(0)
	order, below := x.order[:len(cursors)], x.below[:len(cursors)]
	for i := range cursors {
		c := &cursors[i]
		c.enterWindow(first, end, x)
		all += c.most
		order[i] = scored[float32]{slot: int32(i), score: c.most}
	}
	if all < x.least || only.slots != nil && !only.slots.containsAny(first, end) {
		return
	}
	slices.SortFunc(order, func(a, b scored[float32]) int { return cmp.Compare(a.score, b.score) })
	sum, essential := float32(0), 0 // the terms before essential cannot reach the result without later terms
	for i, o := range order {
		below[i] = sum
		if sum < x.least {
			essential = i
		}
		sum += o.score
	}
	s := x.snapshot.parts[part].segment
	x.lengths = cast[int32](s.rows(secLengths, first, int(end-first)))
	var n uint
	for _, o := range order[essential:] {
		n = x.scan(&cursors[o.slot], x.least-below[essential], n)
	}
	candidates := x.candidates[:n]
	for i := essential; i > 0 && len(candidates) > 0; i-- {
		x.scan(&cursors[order[i-1].slot], math.MaxFloat32, n)
		candidates = slices.DeleteFunc(candidates, func(at uint16) bool { return x.sums[at%windowSlots] < x.least-below[i-1] })
	}
	for _, i := range candidates {
		if score := x.sums[i]; score >= x.least && only.has(first+int32(i)) {
			x.found = append(x.found, scored[float32]{part, first + int32(i), score})
			if x.scores.add(score); len(x.scores.heap) == x.scores.k {
				x.least = x.scores.heap[0] * (1 - 2*x.rounding)
			}
		}
	}
	clear(x.sums[:end-first])
}

// scan adds a term's weights to the sums of the window's chunks. It appends the chunks whose sums
// thereby reach need to the n candidates, and returns the new number of candidates. There is no
// branch, because it could not be predicted.
func (x *search) scan(c *cursor, need float32, n uint) uint {
	sums, candidates, lengths := &x.sums, &x.candidates, x.lengths
	weight, base, slope := c.weight, x.base, x.slope
	needed := uint64(math.Float32bits(need)) // positive floats are ordered like their bits
	for b := c.first; b < c.last; b++ {
		slots, counts := c.windowPostings(b)
		counts = counts[:len(slots)]
		for j, slot := range slots {
			i := uint32(slot) % windowSlots
			count := float32(counts[j])
			before := sums[i]
			after := before + weight*count/(count+base+slope*float32(lengths[i]))
			sums[i] = after
			candidates[n%uint(len(candidates))] = uint16(i)
			n += uint((uint64(math.Float32bits(before)) - needed) &^ (uint64(math.Float32bits(after)) - needed) >> 63) // before < need <= after
		}
	}
	return n
}

// rank computes the scores of the found chunks again, highest first.
func (x *search) rank(t *top) {
	sortScored(x.found)
	for _, f := range x.found {
		if t.isBelow(float64(f.score * (1 + x.rounding))) {
			break // later chunks are no better
		}
		score, length := 0., x.snapshot.parts[f.part].length(f.slot)
		for i := range x.cursors[f.part] {
			c := &x.cursors[f.part][i]
			score += c.idf * retrieve.Saturation(c.count(f.slot), length, x.mean)
		}
		t.add(scored[float64]{f.part, f.slot, score})
	}
}

// A cursor is the position of one term of a search in the term's posting list of one segment.
type cursor struct {
	*weighed
	list
	skips []skip

	decoded int // index of the skip whose postings are decoded, or -1
	postings

	// The window: its slots, the skips of its postings, and the largest weight of a posting.
	from, to    int32
	first, last int
	most        float32
}

// enterWindow moves to the window of the slots from from up to but not including to, which must not begin
// before the previous window.
func (c *cursor) enterWindow(from, to int32, x *search) {
	c.from, c.to = from, to
	for c.first+1 < len(c.skips) && int32(c.skips[c.first+1].First) <= from {
		c.first++
	}
	c.last, c.most = c.first, 0
	for c.last < len(c.skips) && int32(c.skips[c.last].First) < to {
		s := &c.skips[c.last]
		c.most = max(c.most, c.weight/(1+x.base/s.Count+x.slope*s.Length))
		c.last++
	}
	c.most *= 1 + x.rounding
	// Most windows have no posting of a rare term even if the term occurs both before and after
	// them.
	if c.last-c.first == 1 {
		if slots, _ := c.windowPostings(c.first); len(slots) == 0 {
			c.last, c.most = c.first, 0
		}
	}
}

// load decodes the postings of a skip.
func (c *cursor) load(i int) (slots, counts []int32) {
	if c.decoded != i {
		c.decoded = -1
		c.decode(c.skips, i, &c.postings)
		c.decoded = i
	}
	return c.slots[:c.postings.n], c.counts[:c.postings.n]
}

// windowPostings returns the postings of a skip that are in the window.
func (c *cursor) windowPostings(i int) (slots, counts []int32) {
	slots, counts = c.load(i)
	if slots[0] < c.from {
		at, _ := slices.BinarySearch(slots, c.from)
		slots, counts = slots[at:], counts[at:]
	}
	if len(slots) > 0 && slots[len(slots)-1] >= c.to {
		at, _ := slices.BinarySearch(slots, c.to)
		slots = slots[:at]
	}
	return slots, counts
}

// count returns the number of occurrences of the term in a chunk.
func (c *cursor) count(slot int32) int {
	i, found := slices.BinarySearchFunc(c.skips, uint32(slot), func(s skip, slot uint32) int { return int(s.First) - int(slot) })
	if !found {
		i--
	}
	if i < 0 {
		return 0
	}
	slots, counts := c.load(i)
	if at, ok := slices.BinarySearch(slots, slot); ok {
		return int(counts[at])
	}
	return 0
}
