package index

import (
	"slices"
	"sync"
)

// A snapshot is the state of an index after one change. It never changes.
type snapshot struct {
	revision int64
	// parts are first those in files, then those in memory.
	parts  []part
	dims   int // of the vectors; 0 while there are none
	chunks int // that are not deleted
	words  int64
}

// A part is a segment without what was deleted since it was written.
type part struct {
	*segment
	deaths *deaths // nil for none
}

// deaths are the deleted documents of a segment. They are changed only by the
// function that made them.
type deaths struct {
	slots  selection // of their chunks
	chunks int
	words  int64

	frequencies sync.Map // by start of its list, how many deleted chunks have a term
}

// A death is a change to a document: what has an earlier generation is deleted.
type death struct{ document, revision int64 }

// live is the number of chunks that are not deleted.
func (p *part) live() int {
	if p.deaths == nil {
		return int(p.Chunks)
	}
	return int(p.Chunks) - p.deaths.chunks
}

// alive reports whether a document, whose first chunk has the slot, is not deleted.
func (p *part) alive(first int32) bool { return p.deaths == nil || !p.deaths.slots.has(first) }

// frequency is the number of chunks with a term that are not deleted.
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
		if !p.deaths.slots.none(int32(skips[i].First), int32(end)) {
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

// kill returns the parts without the documents that the deaths name, as far as
// their generation is earlier. It shares what does not change.
func kill(parts []part, all []death) []part {
	out, fresh := slices.Clone(parts), make([]bool, len(parts))
	for _, d := range all {
		for i := range out {
			p := &out[i]
			document, ok := p.find(d.document)
			if !ok || p.generation(document) >= d.revision {
				continue
			}
			first, end := p.chunksOf(document)
			if !p.alive(first) {
				continue
			}
			if !fresh[i] {
				p.deaths, fresh[i] = p.deaths.clone(int(p.Chunks)), true
			}
			p.deaths.add(p.segment, first, end)
		}
	}
	return out
}

func (d *deaths) clone(chunks int) *deaths {
	if d == nil {
		return &deaths{slots: newSelection(chunks)}
	}
	return &deaths{slots: slices.Clone(d.slots), chunks: d.chunks, words: d.words}
}

func (d *deaths) add(s *segment, first, end int32) {
	d.slots.set(first, end)
	d.chunks += int(end - first)
	for slot := first; slot < end; slot++ {
		d.words += int64(s.length(slot))
	}
}

// outdated returns the part without the documents of generations up to the
// revision.
func (p part) outdated(revision int64) part {
	fresh := p.deaths.clone(int(p.Chunks))
	for document := range int(p.Documents) {
		if first, end := p.chunksOf(document); p.generation(document) <= revision && p.alive(first) {
			fresh.add(p.segment, first, end)
		}
	}
	if fresh.chunks > 0 {
		p.deaths = fresh
	}
	return p
}

// newSnapshot returns the snapshot with the parts.
func newSnapshot(revision int64, files, memory []part) *snapshot {
	s := &snapshot{revision: revision}
	for _, p := range slices.Concat(files, memory) {
		if p.live() == 0 {
			continue
		}
		s.parts = append(s.parts, p)
		s.dims = int(p.Dims)
		s.chunks += p.live()
		s.words += p.Words
		if p.deaths != nil {
			s.words -= p.deaths.words
		}
	}
	return s
}

// mean is the mean length of the chunks.
func (s *snapshot) mean() float64 {
	if s.chunks == 0 {
		return 0
	}
	return float64(s.words) / float64(s.chunks)
}

// liveChunks is the number of chunks of some parts that are not deleted.
func liveChunks(parts []part) (n int) {
	for i := range parts {
		n += parts[i].live()
	}
	return n
}

// fanout is how many parts of a size are merged into one.
const fanout = 4

// due returns which parts should be merged now, if any: those of which a quarter
// is deleted, or the fanout smallest of about the same size. No segment gets more
// than most chunks.
func due(parts []part, most int) (merge []int) {
	tiers := make(map[int][]int)
	for i := range parts {
		p := &parts[i]
		n := p.live()
		if 4*n < 3*int(p.Chunks) {
			return []int{i}
		}
		tier := 0
		for size := n / 64; size > 0; size /= fanout {
			tier++
		}
		tiers[tier] = append(tiers[tier], i)
	}
	for tier := range 16 { // the smallest first
		if in := tiers[tier]; len(in) >= fanout {
			n := 0
			for _, i := range in {
				if n += parts[i].live(); n > most {
					break
				}
				merge = append(merge, i)
			}
			if len(merge) > 1 {
				return merge
			}
			merge = nil
		}
	}
	return nil
}
