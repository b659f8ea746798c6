package index

import (
	"slices"
	"sync"
)

// A snapshot is the state of an index after one change. It never changes.
type snapshot struct {
	position
	// parts are the segments in files, largest first, followed by the segments in memory.
	parts  []part
	dims   int // dimensions of the vectors; 0 while there are no vectors
	chunks int // number of chunks that are not deleted
	words  int64
}

func newSnapshot(at position, files, memory []part) *snapshot {
	s := &snapshot{position: at}
	for _, p := range slices.Concat(files, memory) {
		if p.liveChunks() == 0 {
			continue
		}
		s.parts = append(s.parts, p)
		s.dims = int(p.Dims)
		s.chunks += p.liveChunks()
		s.words += p.Words
		if p.deaths != nil {
			s.words -= p.deaths.words
		}
	}
	return s
}

// mean returns the mean length of the chunks.
func (s *snapshot) mean() float64 { return float64(s.words) / float64(max(1, s.chunks)) }

// A part is a segment without the chunks that were deleted since it was written.
type part struct {
	*segment
	deaths *deletions // nil if no chunk was deleted
}

// deletions are the deleted documents of a segment.
type deletions struct {
	slots  selection // the slots of their chunks
	chunks int
	words  int64

	frequencies sync.Map // number of deleted chunks with a term, by the start of the term's list
}

// liveChunks returns the number of chunks that are not deleted.
func (p *part) liveChunks() int {
	if p.deaths == nil {
		return int(p.Chunks)
	}
	return int(p.Chunks) - p.deaths.chunks
}

// isLive reports whether a document is not deleted.
func (p *part) isLive(document int) bool {
	if p.deaths == nil {
		return true
	}
	first, _ := p.chunksOf(document)
	return !p.deaths.slots.has(first)
}

// withoutDocuments returns the part without the given documents.
func (p part) withoutDocuments(documents []int) part {
	if len(documents) == 0 {
		return p
	}
	d := &deletions{slots: newSelection(int(p.Chunks))}
	if p.deaths != nil {
		copy(d.slots, p.deaths.slots)
		d.chunks, d.words = p.deaths.chunks, p.deaths.words
	}
	p.deaths = d
	for _, document := range documents {
		if first, end := p.chunksOf(document); p.isLive(document) {
			d.slots.set(first, end)
			d.chunks += int(end - first)
			for slot := first; slot < end; slot++ {
				d.words += int64(p.length(slot))
			}
		}
	}
	return p
}

// selectDocuments returns the documents that are not deleted and for which f returns true.
func (p *part) selectDocuments(f func(document int) bool) (documents []int) {
	for document := range int(p.Documents) {
		if p.isLive(document) && f(document) {
			documents = append(documents, document)
		}
	}
	return documents
}

// A deletion is a change to a document, which deletes its earlier generations.
type deletion struct{ document, revision int64 }

// applyDeletions returns the parts without the chunks that the deletions remove.
func applyDeletions(parts []part, all []deletion) []part {
	parts = slices.Clone(parts)
	for i, p := range parts {
		var dead []int
		for _, d := range all {
			if document, ok := p.find(d.document); ok && p.generation(document) < d.revision && p.isLive(document) {
				dead = append(dead, document)
			}
		}
		parts[i] = p.withoutDocuments(dead)
	}
	return parts
}

// lookup sets the posting lists of a term in the parts, with a nil segment if a part lacks the
// term, and returns the number of chunks with the term.
func (s *snapshot) lookup(term string, lists []list) (n int) {
	for i := range s.parts {
		l, ok := s.parts[i].lookup(term)
		if lists[i] = (list{}); ok {
			lists[i] = l
			n += s.parts[i].frequency(&l)
		}
	}
	return n
}

// frequency returns the number of chunks with a term that are not deleted.
func (p *part) frequency(l *list) int {
	if p.deaths == nil {
		return l.n
	}
	if n, ok := p.deaths.frequencies.Load(l.start); ok {
		return l.n - n.(int)
	}
	n := 0
	var decoded postings
	skips := l.skips()
	for i := range skips {
		end := p.Chunks
		if i+1 < len(skips) {
			end = skips[i+1].First
		}
		if p.deaths.slots.containsAny(int32(skips[i].First), int32(end)) {
			l.decode(skips, i, &decoded)
			for _, slot := range decoded.slots[:decoded.n] {
				if p.deaths.slots.has(slot) {
					n++
				}
			}
		}
	}
	p.deaths.frequencies.Store(l.start, n)
	return l.n - n
}

// fanout is the number of parts of similar size that are merged into one.
const fanout = 4

// partsToMerge returns the indexes of the parts to merge now: a single part of which a quarter is deleted,
// or at least fanout parts of similar size, the smallest first. Together they have at most the
// given number of chunks.
func partsToMerge(parts []part, most int) []int {
	sizes := make(map[int][]int)
	for i := range parts {
		n := parts[i].liveChunks()
		if 4*n < 3*int(parts[i].Chunks) {
			return []int{i}
		}
		size := 0
		for ; n >= 64; n /= fanout {
			size++
		}
		sizes[size] = append(sizes[size], i)
	}
	for size := range 16 {
		n := 0
		for j, i := range sizes[size] {
			if n += parts[i].liveChunks(); n > most {
				sizes[size] = sizes[size][:j]
				break
			}
		}
		if len(sizes[size]) >= fanout {
			return sizes[size]
		}
	}
	return nil
}

// splitParts splits parts into the parts at the given indexes and all other parts.
func splitParts(parts []part, places []int) (picked, rest []part) {
	for i, p := range parts {
		if slices.Contains(places, i) {
			picked = append(picked, p)
		} else {
			rest = append(rest, p)
		}
	}
	return picked, rest
}
