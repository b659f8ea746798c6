package index

import (
	"cmp"
	"context"
	"math"
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
// Scores on the way are of single precision, so the search finds all that are
// near the k-th highest within the rounding. Their scores are computed again at
// the end, in double precision and in the order of the question's terms, so that
// the result is that of the plain sum over all chunks.
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
	// windowSlots, to have few chunks before the first comparison.
	firstWindow = 256
	// fewCandidates is for how many chunks postings are looked up. For more, all
	// postings of the window are added.
	fewCandidates = 64
)

// A weighed is a term of a question.
type weighed struct {
	text   string
	idf    float64 // times its count in the question
	weight float32 // idf times the most that [retrieve.Saturation] can be
}

// A search finds the k chunks of the highest BM25 score in all segments.
type search struct {
	snapshot *snapshot
	mean     float64 // length of a chunk
	// A term has the share count / (count + base + slope*length) of its weight.
	base, slope float32
	rounding    float32 // the largest relative error of a score

	terms   []weighed  // in the order of the question
	cursors [][]cursor // of each part

	// In a window: the most that a term weighs and its place among the cursors,
	// by rising most, and for each what all before it weigh together.
	order []bounded
	below []float32

	found  []bounded       // chunks with their scores
	lowers lowest[float32] // the k highest scores
	least  float32         // what a score must reach, more than 0

	lengths []int32 // of the slots of the window
	// Of each slot of the window, all zero between two.
	sums [windowSlots]float32
	// The slots of the window that may be found. What is after them is written
	// to and not read, up to one place after the last slot.
	candidates [2 * windowSlots]uint16
}

// A bounded is a chunk or a cursor, and a score.
type bounded struct {
	part, at int32
	score    float32
}

func (x *search) run(ctx context.Context, v *snapshot, chosen []chosen, terms []retrieve.Term, t *top) error {
	x.prepare(v, terms, t.k)
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
	x.found, x.lowers, x.least = x.found[:0], lowest[float32]{k: k, heap: x.lowers.heap[:0]}, math.SmallestNonzeroFloat32
	x.base = retrieve.BM25K1 * (1 - retrieve.BM25B)
	x.slope = float32(retrieve.BM25K1 * retrieve.BM25B / cmp.Or(x.mean, 1))
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
	n := len(x.terms)
	x.rounding = float32(n+16) / (1 << 23)
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
		x.terms[i].idf *= retrieve.IDF(x.snapshot.chunks, frequencies[i])
		x.terms[i].weight = float32(x.terms[i].idf * (retrieve.BM25K1 + 1))
	}
}

// forget drops what refers to segments.
func (x *search) forget() {
	x.snapshot, x.lengths = nil, nil
	for _, cursors := range x.cursors {
		cursors = cursors[:cap(cursors)]
		for i := range cursors {
			cursors[i].weighed, cursors[i].list, cursors[i].skips = nil, list{}, nil
		}
	}
}

// window searches the slots from first to before end of a part, which are all in
// one window.
func (x *search) window(part int32, cursors []cursor, only *chosen, first, end int32) {
	all := float32(0)
	order, below := x.order[:len(cursors)], x.below[:len(cursors)]
	for i := range cursors {
		c := &cursors[i]
		c.enter(first, end, x)
		all += c.most
		order[i] = bounded{at: int32(i), score: c.most}
	}
	if all < x.least || only.none(first, end) {
		return
	}
	slices.SortFunc(order, func(a, b bounded) int { return cmp.Compare(a.score, b.score) })
	sum, essential := float32(0), 0 // the terms before essential reach nothing by themselves
	for i, o := range order {
		below[i] = sum
		if sum < x.least {
			essential = i
		}
		sum += o.score
	}
	base := first &^ (windowSlots - 1)
	s := x.snapshot.parts[part].segment
	x.lengths = cast[int32](s.rows(secLengths, base, int(end-base)))
	var n uint
	for _, o := range order[essential:] {
		n = x.scan(&cursors[o.at], x.least-below[essential], n)
	}
	candidates := x.candidates[:n]
	for i := essential; i > 0 && len(candidates) > 0; i-- {
		x.complete(&cursors[order[i-1].at], base, candidates)
		candidates = slices.DeleteFunc(candidates, func(at uint16) bool { return x.sums[at%windowSlots] < x.least-below[i-1] })
	}
	for _, i := range candidates {
		if score := x.sums[i]; score >= x.least && only.has(base+int32(i)) {
			x.found = append(x.found, bounded{part, base + int32(i), score})
			if least, full := x.lowers.add(score); full {
				x.least = least * (1 - 2*x.rounding)
			}
		}
	}
	clear(x.sums[first-base : end-base])
}

// scan adds what a term weighs to the sums of the window's chunks, and those
// whose sums reach need by that to the n candidates; it returns how many there
// are then. Whether a chunk is one cannot be predicted, so there is no branch.
func (x *search) scan(c *cursor, need float32, n uint) uint {
	sums, candidates, lengths := &x.sums, &x.candidates, x.lengths
	weight, base, slope := c.weight, x.base, x.slope
	needed := uint64(math.Float32bits(need)) // positive floats have the order of their bits
	for b := c.first; b < c.last; b++ {
		slots, counts := c.within(b)
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
		slots, counts := c.within(b)
		for j, slot := range slots {
			i, count := uint32(slot)%windowSlots, float32(counts[j])
			x.sums[i] += c.weight * count / (count + x.base + x.slope*float32(x.lengths[i]))
		}
	}
}

// rank computes the scores of what was found again, the highest first.
func (x *search) rank(t *top) {
	slices.SortFunc(x.found, func(a, b bounded) int { return cmp.Compare(b.score, a.score) })
	for _, f := range x.found {
		if t.below(float64(f.score * (1 + x.rounding))) {
			break // and so are all that follow
		}
		score, length := 0., x.snapshot.parts[f.part].length(f.at)
		for i := range x.cursors[f.part] {
			c := &x.cursors[f.part][i]
			score += c.idf * retrieve.Saturation(c.count(f.at), length, x.mean)
		}
		t.push(hit{f.part, f.at, score})
	}
}
