package index

import "sort"

// A cursor is one term of a search in its list of one segment.
type cursor struct {
	*weighed
	list
	skips []skip

	decoded int // which postings are in buffer, -1 for none
	filled  int
	buffer  [blockPostings]posting
	many    []byte // counts, see list.decode

	// The window: its slots, the skips of its postings, and the most that one of
	// them weighs, in units.
	from, to    int32
	first, last int
	most        uint32
}

// enter moves to the window of the slots from from to before to, which must not
// begin before the last one.
func (c *cursor) enter(from, to int32, by saturation) {
	c.from, c.to = from, to
	for c.first+1 < len(c.skips) && int32(c.skips[c.first+1].First) <= from {
		c.first++
	}
	c.last = c.first
	var share float64
	for c.last < len(c.skips) && int32(c.skips[c.last].First) < to {
		share = max(share, by.bound(c.skips[c.last].bound))
		c.last++
	}
	// Most windows have no posting of a rare term, although its postings are on
	// both sides.
	if c.last-c.first == 1 && len(c.within(c.first)) == 0 {
		c.last = c.first
	}
	c.most = 0
	if c.last > c.first {
		// Bounds are of single precision.
		c.most = uint32(c.weight*share*(1+1e-6)) + 1
	}
}

// load decodes the postings of a skip.
func (c *cursor) load(i int) []posting {
	if c.decoded != i {
		c.decoded = -1
		c.filled, c.many = c.decode(c.skips, i, &c.buffer)
		c.decoded = i
	}
	return c.buffer[:c.filled]
}

// within returns the postings of a skip that are in the window.
func (c *cursor) within(i int) []posting {
	list := c.load(i)
	if list[0].slot() < c.from {
		list = list[place(list, c.from):]
	}
	if len(list) > 0 && list[len(list)-1].slot() >= c.to {
		list = list[:place(list, c.to)]
	}
	return list
}

// count returns how often the term occurs in a chunk, 0 if it does not.
func (c *cursor) count(slot int32) int {
	i := sort.Search(len(c.skips), func(i int) bool { return int32(c.skips[i].First) > slot }) - 1
	if i < 0 {
		return 0
	}
	list := c.load(i)
	at := place(list, slot)
	if at == len(list) || list[at].slot() != slot {
		return 0
	}
	count, many := int32(0), c.many
	if book.count[uint8(list[at])] < manyTimes {
		many = nil
		list = list[at:]
		at = 0
	}
	for _, p := range list[:at+1] {
		count, many = nextCount(p, many)
	}
	return int(count)
}

// place returns the first place whose slot is not below the given one. It has the
// same number of steps whatever it finds, so that the processor need not guess.
func place(list []posting, slot int32) int {
	key := posting(slot) << 8
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
