package local

import (
	"slices"
	"sync"

	"ibid/retrieve"
)

// A selection is a set of slots, a bit for each.
type selection []uint64

const blockWords = blockRows / 64

// wordsFor is the length of a selection for so many slots, in whole blocks.
func wordsFor(slots int) int { return (slots + blockRows - 1) / blockRows * blockWords }

// grown has room for so many slots at least.
func (s selection) grown(slots int) selection {
	for len(s) < wordsFor(slots) {
		s = append(s, 0)
	}
	return s
}

// set selects count slots from the first on, or takes them away.
func (s selection) set(first int32, count int, on bool) {
	for at, end := int(first), int(first)+count; at < end; {
		bit := at % 64
		n := min(end-at, 64-bit)
		if mask := (^uint64(0) >> (64 - n)) << bit; on {
			s[at/64] |= mask
		} else {
			s[at/64] &^= mask
		}
		at += n
	}
}

// none says whether no slot from first to before end is selected; first is that
// of a block.
func (s selection) none(first, end int32) bool {
	for _, w := range s[first/64 : (end+63)/64] {
		if w != 0 {
			return false
		}
	}
	return true
}

func (s selection) has(slot int32) bool { return s[slot/64]>>(slot%64)&1 != 0 }

// words are those of the block that begins with the slot.
func (s selection) words(first int32) []uint64 { return s[first/64:][:blockWords] }

// selections are what filters select. The first search with a filter decides
// about every document; then its selection is kept up with the memory, and
// the searches that follow find it ready.
type selections struct {
	mu   sync.Mutex
	last []*selectedBy // the one used last in front
}

type selectedBy struct {
	filter retrieve.Filter
	slots  selection
}

// maxSelections is how many are kept. Each has a bit for a chunk.
const maxSelections = 128

// selected gives the slots that the filter lets through, nil for all. It must
// not be changed, and stands while the engine's lock is held.
func (m *memory) selected(f retrieve.Filter) selection {
	if f.IsZero() {
		return nil
	}
	m.selections.mu.Lock()
	defer m.selections.mu.Unlock()
	last := m.selections.last
	at := slices.IndexFunc(last, func(s *selectedBy) bool { return s.filter.Equal(f) })
	if at < 0 {
		f.Tags, f.Collections = slices.Clone(f.Tags), slices.Clone(f.Collections)
		fresh := &selectedBy{f, make(selection, wordsFor(len(m.slots)))}
		for s := 0; s < len(m.slots); {
			d := m.slots[s].document
			if d == nil {
				s++
				continue
			}
			if f.Matches(&d.info, d.labels) {
				fresh.slots.set(d.first, d.count, true)
			}
			s += d.count
		}
		if len(last) == maxSelections {
			last = last[:maxSelections-1]
		}
		last = append(last, fresh)
		at = len(last) - 1
	}
	found := last[at]
	copy(last[1:], last[:at])
	last[0] = found
	m.selections.last = last
	return found.slots
}

// add decides about a new document, whose slots are the last of so many.
func (l *selections) add(d *document, slots int) {
	for _, s := range l.last {
		s.slots = s.slots.grown(slots)
		if s.filter.Matches(&d.info, d.labels) {
			s.slots.set(d.first, d.count, true)
		}
	}
}

// remove takes a document out of all selections.
func (l *selections) remove(d *document) {
	for _, s := range l.last {
		s.slots.set(d.first, d.count, false)
	}
}
