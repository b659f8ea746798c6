package index

import (
	"math/bits"
	"slices"
	"sync"

	"ibid/retrieve"
)

// A selection is a set of slots, a bit for each.
type selection []uint64

// newSelection returns an empty selection with room for so many slots.
func newSelection(slots int) selection { return make(selection, (slots+63)/64) }

// set adds the slots from first to before end.
func (s selection) set(first, end int32) {
	for at := first; at < end; {
		bit := at % 64
		n := min(end-at, 64-bit)
		s[at/64] |= (^uint64(0) >> (64 - n)) << bit
		at += n
	}
}

func (s selection) has(slot int32) bool { return s[slot/64]>>(slot%64)&1 != 0 }

// none reports whether no slot from first to before end is selected.
func (s selection) none(first, end int32) bool {
	if first >= end {
		return true
	}
	low, high := ^uint64(0)<<(first%64), ^uint64(0)>>(63-(end-1)%64)
	from, to := first/64, (end-1)/64
	if from == to {
		return s[from]&low&high == 0
	}
	for _, w := range s[from+1 : to] {
		if w != 0 {
			return false
		}
	}
	return s[from]&low == 0 && s[to]&high == 0
}

// A chosen is what one search may find of a segment: what a filter selected,
// except what was deleted.
type chosen struct {
	*filtered
	deleted selection // nil for nothing
	chunks  int       // of the segment
}

func (c *chosen) has(slot int32) bool {
	return (c.slots == nil || c.slots.has(slot)) && (c.deleted == nil || !c.deleted.has(slot))
}

// word returns the slots from 64*i on, a bit for each.
func (c *chosen) word(i int) uint64 {
	w := ^uint64(0)
	if rest := c.chunks - 64*i; rest < 64 {
		w >>= 64 - rest
	}
	if c.slots != nil {
		w &= c.slots[i]
	}
	if c.deleted != nil {
		w &^= c.deleted[i]
	}
	return w
}

// none reports whether no slot from first to before end is chosen by the filter.
func (c *chosen) none(first, end int32) bool {
	return c.slots != nil && c.slots.none(first, end)
}

// countDeleted returns how many of those that the filter selected are deleted.
func (c *chosen) countDeleted() (n int) {
	for i, w := range c.deleted {
		if c.slots != nil {
			w &= c.slots[i]
		}
		n += bits.OnesCount64(w)
	}
	return n
}

// selections cache what filters select in a segment. The first search with a
// filter decides about every document.
type selections struct {
	mu   sync.Mutex
	last []*filtered // the one used last first
}

// A filtered is what a filter selects in a segment, also of documents that are
// deleted.
type filtered struct {
	filter retrieve.Filter
	slots  selection // nil for all
	count  int       // of them

	collect sync.Mutex
	nearby  *collection // of these chunks; nil until needed
}

const (
	// maxSelections is how many are cached in a segment.
	maxSelections = 64
	// maxCollections is how many of those keep their collection.
	maxCollections = 4
)

// selected returns what the filter selects.
func (s *segment) selected(f retrieve.Filter) *filtered {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.last, func(c *filtered) bool { return c.filter.Equal(f) })
	if at < 0 {
		if len(s.last) == maxSelections {
			s.last = s.last[:maxSelections-1]
		}
		s.last = append(s.last, s.evaluate(f))
		at = len(s.last) - 1
	}
	found := s.last[at]
	copy(s.last[1:], s.last[:at])
	s.last[0] = found
	if len(s.last) > maxCollections {
		s.last[maxCollections].release()
	}
	return found
}

// release drops the collection.
func (c *filtered) release() {
	c.collect.Lock()
	defer c.collect.Unlock()
	c.nearby = nil
}

func (s *segment) evaluate(f retrieve.Filter) *filtered {
	if f.IsZero() {
		return &filtered{count: int(s.Chunks)}
	}
	f.Tags, f.Collections = slices.Clone(f.Tags), slices.Clone(f.Collections)
	c := &filtered{filter: f, slots: newSelection(int(s.Chunks))}
	var r record
	for document := range int(s.Documents) {
		r.unpack(s.info(document))
		if f.Matches(&r.info, r.labels) {
			first, end := s.chunksOf(document)
			c.slots.set(first, end)
			c.count += int(end - first)
		}
	}
	return c
}
