package local

import (
	"encoding/binary"
	"slices"
	"strings"

	"ibid/retrieve"
)

// A lexicon is the inverted index of BM25 over the slots of a memory.
type lexicon struct {
	codes   *codebook
	ids     map[string]int32 // the number of each term
	lists   []postings       // by number
	lengths []int32          // by slot, in words
	length  int64            // words of all live chunks together
	// often has the counts that codes do not tell apart.
	often map[occurrence]int32
	// filling is set until complete: what is asked of blocks and windows is not
	// known yet.
	filling bool
}

type occurrence struct{ term, slot int32 }

// A posting is a slot in which a term stands, and its code there: 24 bits and 8.
type posting uint32

// maxSlots is how many chunks one memory has room for.
const maxSlots = 1 << (32 - codeBits)

func (p posting) slot() int32 { return int32(p >> codeBits) }

// postings are those of one term, in ascending order. Dead ones stay until they
// are a quarter.
type postings struct {
	list   []posting
	bounds []bound // of each postingsBlock of the list
	// starts is where the postings of each window begin, up to the window of the
	// last one. Only a list of many to a window has it.
	starts []int32
	dead   int32
}

// perWindow is how many postings to a window are many.
const perWindow = 8

const postingsBlock = 128

// A bound says how much a term can weigh in any of some chunks, whatever the
// mean length comes to be. It stays true when chunks go.
type bound struct {
	count  float32 // the highest
	length float32 // the lowest length of a chunk for each time the term stands in it
}

func (b *bound) add(count, length int32) {
	b.count = max(b.count, float32(count))
	b.length = min(b.length, float32(length)/float32(count))
}

// add enters a chunk, whose slot is above all earlier ones, and appends the
// numbers of its terms to packed, for remove.
func (l *lexicon) add(slot int32, c loadedChunk, packed []byte) []byte {
	packed = binary.AppendUvarint(packed, uint64(len(c.counts)))
	l.lengths = append(l.lengths, int32(c.length))
	l.length += int64(c.length)
	for _, t := range c.counts {
		n, ok := l.ids[t.Term]
		if !ok {
			n = int32(len(l.lists))
			l.ids[strings.Clone(t.Term)] = n
			l.lists = append(l.lists, postings{})
		}
		packed = binary.AppendUvarint(packed, uint64(n))
		if t.Count >= manyTimes {
			l.often[occurrence{n, slot}] = int32(t.Count)
		}
		p := &l.lists[n]
		p.list = append(p.list, posting(slot)<<codeBits|posting(l.codes.of(t.Count, c.length)))
		if !l.filling {
			p.bind(len(p.list)-1, int32(t.Count), int32(c.length))
		}
	}
	return packed
}

// bind takes the posting at a place, all before it being in, into the bound of
// its block and into starts.
func (p *postings) bind(at int, count, length int32) {
	window := p.list[at].slot() / windowSlots
	if at%postingsBlock == 0 || p.list[at-1].slot()/windowSlots != window {
		p.begin(at, int(window))
	}
	if at/postingsBlock == len(p.bounds) {
		p.bounds = append(p.bounds, bound{float32(count), float32(length) / float32(count)})
	}
	p.bounds[at/postingsBlock].add(count, length)
}

// begin has starts know where a window begins if it is with the posting at a
// place, which must be told for each first posting of a window.
func (p *postings) begin(at, window int) {
	switch {
	case len(p.starts) > window: // it begins with an earlier one
	case len(p.starts) > 0 && at >= perWindow/2*window:
		for len(p.starts) <= window {
			p.starts = append(p.starts, int32(at))
		}
	case len(p.starts) > 0:
		p.starts = nil
	case at%postingsBlock == 0 && at > perWindow*window && window > 0:
		p.starts = make([]int32, 0, window+1)
		for i, x := range p.list[:at+1] {
			for len(p.starts) <= int(x.slot())/windowSlots {
				p.starts = append(p.starts, int32(i))
			}
		}
	}
}

// window gives the postings of the slot's window, or more.
func (p *postings) window(slot int32) []posting {
	switch at := int(slot / windowSlots); {
	case at+1 < len(p.starts):
		return p.list[p.starts[at]:p.starts[at+1]]
	case at < len(p.starts):
		return p.list[p.starts[at]:]
	}
	return p.list
}

// remove counts the chunk of a slot out of the lists of its terms; packed begins
// with what add appended for it, and the rest is returned. alive says of a slot
// whether its chunk is still there.
func (l *lexicon) remove(slot int32, packed []byte, alive func(slot int32) bool) []byte {
	next := func() int32 {
		v, n := binary.Uvarint(packed)
		packed = packed[n:]
		return int32(v)
	}
	l.length -= int64(l.lengths[slot])
	for range next() {
		n := next()
		if len(l.often) > 0 {
			delete(l.often, occurrence{n, slot})
		}
		p := &l.lists[n]
		if p.dead++; 4*int(p.dead) >= len(p.list) {
			l.sweep(n, alive)
		}
	}
	return packed
}

// sweep takes the dead out of a list.
func (l *lexicon) sweep(n int32, alive func(slot int32) bool) {
	p := &l.lists[n]
	live := slices.DeleteFunc(p.list, func(x posting) bool { return !alive(x.slot()) })
	p.list, p.bounds, p.starts, p.dead = live, p.bounds[:0], nil, 0
	l.bind(n)
}

// bind makes the bounds and starts of a list that has none.
func (l *lexicon) bind(n int32) {
	p := &l.lists[n]
	for i, x := range p.list {
		p.bind(i, l.count(n, x), l.lengths[x.slot()])
	}
}

// count is how often the term stands in the chunk of its posting.
func (l *lexicon) count(term int32, p posting) int32 {
	if c := int32(l.codes.count[uint8(p)]); c < manyTimes {
		return c
	}
	return l.often[occurrence{term, p.slot()}]
}

// frequency is the number of chunks in which the term stands.
func (l *lexicon) frequency(term string) int {
	n, ok := l.ids[term]
	if !ok {
		return 0
	}
	return len(l.lists[n].list) - int(l.lists[n].dead)
}

// complete ends the filling. List by list the bounds take a fraction of what
// they take posting by posting, where each waits for memory. Lists of many give
// back the room that they have left for more.
func (l *lexicon) complete() {
	l.filling = false
	for i := range l.lists {
		p := &l.lists[i]
		if cap(p.list)-len(p.list) > postingsBlock {
			p.list = slices.Clone(p.list)
		}
		p.bounds = make([]bound, 0, (len(p.list)+postingsBlock-1)/postingsBlock)
		l.bind(int32(i))
	}
}

// stats gives what BM25 needs for the terms, over so many live chunks.
func (l *lexicon) stats(terms []string, chunks int) retrieve.Stats {
	s := retrieve.Stats{Chunks: chunks, Frequency: make(map[string]int, len(terms))}
	if chunks > 0 {
		s.MeanTerms = float64(l.length) / float64(chunks)
	}
	for _, t := range terms {
		s.Frequency[t] = l.frequency(t)
	}
	return s
}
