package index

import (
	"fmt"
	"slices"
	"sync"

	"ibid/retrieve"
)

// A selection is a set of slots, a bit for each.
type selection []uint64

// newSelection returns an empty selection of the given number of slots.
func newSelection(slots int) selection { return make(selection, (slots+63)/64) }

// set adds the slots from first up to but not including end.
func (s selection) set(first, end int32) {
	for at := first; at < end; {
		n := min(end-at, 64-at%64)
		s[at/64] |= (^uint64(0) >> (64 - n)) << (at % 64)
		at += n
	}
}

func (s selection) has(slot int32) bool { return s[slot/64]>>(slot%64)&1 != 0 }

// containsAny reports whether a slot from first up to but not including end may be selected.
func (s selection) containsAny(first, end int32) bool {
	return slices.ContainsFunc(s[first/64:(end+63)/64], func(w uint64) bool { return w != 0 })
}

// A chosen is the set of a segment's chunks that one search may find: the chunks that the filter
// selects and that are not deleted.
type chosen struct {
	*filtered
	deleted selection // nil if no chunk is deleted
	chunks  int       // of the segment
}

// choose returns the chunks of each part that a search with the filter may find, and their total
// number including deleted ones.
func (v *snapshot) choose(f retrieve.Filter) (parts []chosen, all int) {
	parts = make([]chosen, len(v.parts))
	for i, p := range v.parts {
		parts[i] = chosen{filtered: p.selectChunks(f), chunks: int(p.Chunks)}
		if p.deaths != nil {
			parts[i].deleted = p.deaths.slots
		}
		all += parts[i].count
	}
	return parts, all
}

func (c *chosen) has(slot int32) bool {
	return (c.slots == nil || c.slots.has(slot)) && (c.deleted == nil || !c.deleted.has(slot))
}

// words returns the number of words of [chosen.word].
func (c *chosen) words() int { return (c.chunks + 63) / 64 }

// word returns the slots from 64*i, a bit for each.
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

// A filtered is the set of chunks that a filter selects in a segment, including chunks of deleted
// documents.
type filtered struct {
	slots selection // nil if all slots are selected
	count int       // number of selected slots

	collection *collection // of these chunks; nil until needed
}

// selections caches the results of filters in a segment. The first search with a filter evaluates
// it for every document.
type selections struct {
	mu        sync.Mutex
	known     map[string]*filtered // by the filter's textual form
	collected []*filtered          // entries of known with a collection, oldest first
}

// The largest numbers of selections and collections that are cached for a segment.
const (
	maxSelections  = 64
	maxCollections = 4
)

// selectChunks returns the chunks that the filter selects.
func (s *segment) selectChunks(f retrieve.Filter) *filtered {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprintf("%q", f)
	found := s.known[key]
	if found == nil {
		if s.known == nil || len(s.known) == maxSelections {
			s.known = make(map[string]*filtered)
		}
		found = s.evaluate(f)
		s.known[key] = found
	}
	return found
}

func (s *segment) evaluate(f retrieve.Filter) *filtered {
	if f.IsZero() {
		return &filtered{count: int(s.Chunks)}
	}
	c := &filtered{slots: newSelection(int(s.Chunks))}
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
