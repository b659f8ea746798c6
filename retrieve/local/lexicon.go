package local

import (
	"strings"

	"ibid/retrieve"
)

// A lexicon is the inverted index of BM25 over the slots of a memory.
type lexicon struct {
	ids    map[string]int32 // the number of each term
	lists  []postings       // by number
	length int64            // terms of all live chunks together
}

// postings are the slots in which a term stands, in ascending order. Dead ones
// stay until they are a quarter.
type postings struct {
	slots  []int32
	counts []uint16
	dead   int
}

const maxCount = 1<<16 - 1

// add enters a chunk, whose slot is above all earlier ones, and gives the
// numbers of its terms.
func (l *lexicon) add(slot int32, c loadedChunk) []int32 {
	terms := make([]int32, len(c.counts))
	for i, t := range c.counts {
		n, ok := l.ids[t.Term]
		if !ok {
			n = int32(len(l.lists))
			l.ids[strings.Clone(t.Term)] = n
			l.lists = append(l.lists, postings{})
		}
		p := &l.lists[n]
		p.slots = append(p.slots, slot)
		p.counts = append(p.counts, uint16(min(t.Count, maxCount)))
		terms[i] = n
	}
	l.length += int64(c.length)
	return terms
}

// remove counts a chunk out of the lists of its terms; alive says of the rest
// whether they are still there.
func (l *lexicon) remove(terms []int32, alive func(slot int32) bool) {
	for _, n := range terms {
		p := &l.lists[n]
		p.dead++
		if 4*p.dead < len(p.slots) {
			continue
		}
		kept := 0
		for i, s := range p.slots {
			if alive(s) {
				p.slots[kept], p.counts[kept] = s, p.counts[i]
				kept++
			}
		}
		p.slots, p.counts, p.dead = p.slots[:kept], p.counts[:kept], 0
	}
}

// frequency is the number of chunks in which the term stands.
func (l *lexicon) frequency(term string) int {
	n, ok := l.ids[term]
	if !ok {
		return 0
	}
	return len(l.lists[n].slots) - l.lists[n].dead
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
