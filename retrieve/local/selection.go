package local

// A selection is a set of slots, a bit for each.
type selection []uint64

const blockWords = blockRows / 64

// newSelection makes an empty selection for so many slots, in whole blocks.
func newSelection(slots int) selection {
	return make(selection, (slots+blockRows-1)/blockRows*blockWords)
}

// add selects count slots from the first on.
func (s selection) add(first int32, count int) {
	for at, end := int(first), int(first)+count; at < end; {
		bit := at % 64
		n := min(end-at, 64-bit)
		s[at/64] |= (^uint64(0) >> (64 - n)) << bit
		at += n
	}
}

func (s selection) has(slot int32) bool { return s[slot/64]>>(slot%64)&1 != 0 }

// words are those of the block that begins with the slot.
func (s selection) words(first int32) []uint64 { return s[first/64:][:blockWords] }
