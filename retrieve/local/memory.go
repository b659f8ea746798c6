package local

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/philippgille/chromem-go"

	"ibid/retrieve"
)

// A memory is what searches run over: the vectors, the lexical index and what
// filters look at. It mirrors the database at one revision. Its methods expect
// the engine's lock to be held.
//
// Every chunk has a slot, a small number that is not used again until the
// memory is packed.
type memory struct {
	revision int64
	space    string

	documents map[int64]*document // by key
	byID      map[string]*document

	slots []slot
	dead  int
	arena arena // the vectors, by slot
	index lexicon
	// living are the slots that are not dead.
	living selection
	// searches that are over, to be used again.
	searches sync.Pool
	// selections of the filters that were used last, kept up with every change.
	selections selections

	// vectors holds the same vectors under the ids of their chunks, in the
	// memory of the arena. What is found is read from there; its own search,
	// which computes every cosine, is what tests compare with.
	vectors *chromem.Collection
}

// A document is what memory knows of one, all but its text.
type document struct {
	key  int64
	info retrieve.DocumentInfo
	// labels are those of its metadata.
	labels retrieve.Labels
	sum    int64
	first  int32 // slot of its first chunk; the others follow
	count  int
	terms  []byte // of its chunks, as the lexicon packs their numbers
	stale  bool   // another analysis made the terms that are stored
}

// A slot is one chunk in memory. Document is nil when it is gone.
type slot struct {
	document *document
	sum      int64 // of its row
}

// A loaded is a document as read from the database, on its way to memory.
type loaded struct {
	document
	chunks []loadedChunk
}

type loadedChunk struct {
	sum    int64
	length int
	counts []retrieve.TermCount
	vector []float32
}

func newMemory() (*memory, error) {
	// The embedding function is never called: every document comes with its vector.
	c, err := chromem.NewDB().CreateCollection("chunks", nil, func(context.Context, string) ([]float32, error) {
		return nil, fmt.Errorf("a chunk has no vector")
	})
	if err != nil {
		return nil, err
	}
	return &memory{
		documents: make(map[int64]*document),
		byID:      make(map[string]*document),
		index:     lexicon{codes: newCodebook(), ids: make(map[string]int32), often: make(map[occurrence]int32)},
		vectors:   c,
	}, nil
}

func (m *memory) id(slot int32) string {
	d := m.slots[slot].document
	return retrieve.ChunkID(d.info.ID, int(slot-d.first)+1)
}

// compareIDs orders the chunks of two slots by their ids.
func (m *memory) compareIDs(a, b int32) int {
	d, e := m.slots[a].document, m.slots[b].document
	if d == e {
		var x, y [20]byte
		return bytes.Compare(strconv.AppendInt(x[:0], int64(a-d.first)+1, 10), strconv.AppendInt(y[:0], int64(b-e.first)+1, 10))
	}
	n := min(len(d.info.ID), len(e.info.ID))
	if c := strings.Compare(d.info.ID[:n], e.info.ID[:n]); c != 0 {
		return c
	}
	return strings.Compare(m.id(a), m.id(b))
}

// find gives the slot of a chunk by its id.
func (m *memory) find(id string) (slot int32, ok bool) {
	document, ordinal, ok := retrieve.SplitChunkID(id)
	d := m.byID[document]
	if !ok || d == nil || ordinal > d.count {
		return 0, false
	}
	return d.first + int32(ordinal) - 1, true
}

func (m *memory) add(ctx context.Context, l *loaded) error {
	if err := m.enter(l); err != nil {
		return err
	}
	return m.keep(ctx, l)
}

// enter takes in all of a document but its vectors, which keep takes in then.
// One document may be entered while another is kept.
func (m *memory) enter(l *loaded) error {
	if m.byID[l.info.ID] != nil || m.documents[l.key] != nil {
		return fmt.Errorf("%w: two documents have the id %s", ErrDamaged, l.info.ID)
	}
	if len(m.slots)+len(l.chunks) > maxSlots {
		return fmt.Errorf("a data directory has room for %d chunks: forget what is not needed, or keep a second one", maxSlots)
	}
	l.first, l.count = int32(len(m.slots)), len(l.chunks)
	d := l.document
	d.labels = retrieve.LabelsOf(d.info.Meta)
	m.documents[d.key], m.byID[d.info.ID] = &d, &d
	for _, c := range l.chunks {
		s := int32(len(m.slots))
		m.slots = append(m.slots, slot{document: &d, sum: c.sum})
		d.terms = m.index.add(s, c, d.terms)
	}
	d.terms = slices.Clip(slices.Clone(d.terms))
	m.living = m.living.grown(len(m.slots))
	m.living.set(d.first, d.count, true)
	m.selections.add(&d, len(m.slots))
	return nil
}

// keep takes in the vectors of a document that has been entered.
func (m *memory) keep(ctx context.Context, l *loaded) error {
	for i, c := range l.chunks {
		s, id := l.first+int32(i), retrieve.ChunkID(l.info.ID, i+1)
		m.arena.add(s, c.vector)
		if err := m.vectors.AddDocument(ctx, chromem.Document{ID: id, Embedding: m.arena.vector(s)}); err != nil {
			return fmt.Errorf("keep the vector of %s in memory: %w", id, err)
		}
	}
	return nil
}

func (m *memory) remove(ctx context.Context, key int64) error {
	d := m.documents[key]
	if d == nil {
		return nil
	}
	ids := make([]string, d.count)
	for i := range d.count {
		ids[i] = retrieve.ChunkID(d.info.ID, i+1)
	}
	// chromem takes a call without ids for a call about everything.
	if len(ids) > 0 {
		if err := m.vectors.Delete(ctx, nil, nil, ids...); err != nil {
			return fmt.Errorf("forget the vectors of %s: %w", d.info.ID, err)
		}
	}
	terms := d.terms
	for s := d.first; s < d.first+int32(d.count); s++ {
		m.arena.remove(s)
		m.slots[s] = slot{}
		terms = m.index.remove(s, terms, m.alive)
	}
	m.living.set(d.first, d.count, false)
	m.selections.remove(d)
	m.dead += d.count
	delete(m.documents, key)
	delete(m.byID, d.info.ID)
	return nil
}

// wasteful says whether most of the slots are dead and packing pays.
func (m *memory) wasteful() bool { return m.dead > blockRows && 2*m.dead > len(m.slots) }

// live is the number of chunks.
func (m *memory) live() int { return len(m.slots) - m.dead }

// alive says whether the chunk of a slot is there.
func (m *memory) alive(slot int32) bool { return m.slots[slot].document != nil }

// list gives the documents that the filter lets through, by id.
func (m *memory) list(f retrieve.Filter) []retrieve.DocumentInfo {
	var out []retrieve.DocumentInfo
	for _, d := range m.documents {
		if f.Matches(&d.info, d.labels) {
			out = append(out, d.info)
		}
	}
	slices.SortFunc(out, func(a, b retrieve.DocumentInfo) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// holds says whether any document passes the filter: most often the selection
// of the last search with it tells.
func (m *memory) holds(f retrieve.Filter) bool {
	if f.IsZero() {
		return len(m.documents) > 0
	}
	if slices.ContainsFunc(m.selected(f), func(w uint64) bool { return w != 0 }) {
		return true
	}
	for _, d := range m.documents { // one without a chunk has no slot
		if d.count == 0 && f.Matches(&d.info, d.labels) {
			return true
		}
	}
	return false
}
