package index

import "slices"

// A cursor is one term of a search in its list of one segment.
type cursor struct {
	*weighed
	list
	skips []skip

	decoded int // which skip's postings are decoded, -1 for none
	postings

	// The window: its slots, the skips of its postings, and the most that one of
	// them weighs.
	from, to    int32
	first, last int
	most        float32
}

// enter moves to the window of the slots from from to before to, which must not
// begin before the last one.
func (c *cursor) enter(from, to int32, x *search) {
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
	// Most windows have no posting of a rare term, although its postings are on
	// both sides.
	if c.last-c.first == 1 {
		if slots, _ := c.within(c.first); len(slots) == 0 {
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

// within returns the postings of a skip that are in the window.
func (c *cursor) within(i int) (slots, counts []int32) {
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

// count returns how often the term occurs in a chunk.
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
