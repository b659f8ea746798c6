package weaviate

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"ibid/retrieve"
)

// A tally has the number of chunks in a collection, the number of their terms, and the number of
// chunks with each term. To count these, Weaviate would read every chunk.
type tally struct {
	revision, era int64 // of the last counted change
	changed       int   // number of chunks stored and deleted since the tally was stored
	stored        time.Time
	chunks        int
	terms         int            // in all chunks
	chunksByTerm  map[uint32]int // number of chunks with a term, by the term's hash
}

const (
	// A tally of more than storedAlways chunks is stored only if one in storedPart of its chunks
	// has changed, or if the stored tally is older than storedAfter.
	storedAlways = 2000
	storedPart   = 64
	storedAfter  = time.Minute
)

// isDue reports whether the tally must be stored.
func (t *tally) isDue() bool {
	return t.chunks <= storedAlways || t.changed > t.chunks/storedPart || time.Since(t.stored) > storedAfter
}

// tallyID is the id of the object with the tally.
var tallyID = idOf(retrieve.Hit{Ordinal: 1})

// ownObjects is the number of objects that are not chunks: the watermark and the tally.
const ownObjects = 2

func hashOf(token string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(token))
	return h.Sum32()
}

// add counts a chunk n times; n is -1 for a chunk that is deleted.
func (t *tally) add(terms string, length, n int) {
	t.changed++
	t.chunks += n
	t.terms += n * length
	last := ""
	for word := range strings.FieldsSeq(terms) { // equal words are adjacent
		if word != last {
			h := hashOf(word)
			if t.chunksByTerm[h] += n; t.chunksByTerm[h] <= 0 {
				delete(t.chunksByTerm, h)
			}
		}
		last = word
	}
}

// pack encodes the tally.
func (t *tally) pack() []byte {
	b := binary.AppendVarint(nil, t.revision)
	for _, n := range []int64{t.era, int64(t.chunks), int64(t.terms)} {
		b = binary.AppendVarint(b, n)
	}
	last := uint32(0)
	for _, h := range slices.Sorted(maps.Keys(t.chunksByTerm)) {
		b = binary.AppendUvarint(b, uint64(h-last))
		b = binary.AppendUvarint(b, uint64(t.chunksByTerm[h]))
		last = h
	}
	return b
}

// unpackTally decodes a tally.
func unpackTally(b []byte) (*tally, error) {
	t := &tally{chunksByTerm: make(map[uint32]int)}
	var head [4]int64
	for i := range head {
		n, size := binary.Varint(b)
		if size <= 0 {
			return nil, errShortTally
		}
		head[i], b = n, b[size:]
	}
	t.revision, t.era, t.chunks, t.terms = head[0], head[1], int(head[2]), int(head[3])
	for last := uint32(0); len(b) > 0; {
		step, size := binary.Uvarint(b)
		n, more := binary.Uvarint(b[max(0, size):])
		if size <= 0 || more <= 0 {
			return nil, errShortTally
		}
		last += uint32(step)
		t.chunksByTerm[last], b = int(n), b[size+more:]
	}
	return t, nil
}

var errShortTally = fmt.Errorf("%w: the tally of its terms is truncated", retrieve.ErrIndexDamaged)

// A census caches the tallies of a collection. It is locked while a tally is read, so concurrent
// searches read it once.
type census struct {
	mu      sync.Mutex
	own     *tally // up to the last change, in the process that applies changes; nil in others
	read    *tally // the tally that was last read
	counted *mark  // the mark at which Weaviate counted the chunks
	chunks  int
}

// forget makes the next use read the tally again.
func (c *census) forget() {
	c.mu.Lock()
	c.own, c.read, c.counted = nil, nil, nil
	c.mu.Unlock()
}

// tallyAt returns the tally at a mark. The caller must lock the census.
func (x *Index) tallyAt(ctx context.Context, m *mark) (*tally, error) {
	c := &x.census
	switch {
	case c.own != nil && c.own.revision >= m.Revision && c.own.era == m.Era:
		return c.own, nil
	case c.read == nil || c.read.revision != m.Counted:
		t, err := x.readTally(ctx)
		if err != nil {
			return nil, err
		}
		c.read = t
	}
	return c.read, nil
}

func (x *Index) readTally(ctx context.Context) (*tally, error) {
	var stored struct{ Properties struct{ Packed string } }
	err := x.client.call(ctx, http.MethodGet, objectPath(x.collection, tallyID), nil, &stored)
	if noObject(err) {
		return &tally{chunksByTerm: make(map[uint32]int)}, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := base64.StdEncoding.DecodeString(stored.Properties.Packed)
	if err != nil {
		return nil, errShortTally
	}
	return unpackTally(b)
}

// recount brings the tally up to a mark: it adds the stored chunks and subtracts the chunks that
// they replace. It returns the tally if it must be stored, otherwise nil.
func (x *Index) recount(m *mark, stored []object) *tally {
	x.census.mu.Lock()
	defer x.census.mu.Unlock()
	t := x.census.own
	for h, r := range x.replaced {
		if h.Generation <= t.revision { // later generations were never counted
			t.add(r.Terms, r.Length, -1)
		}
	}
	for _, o := range stored {
		t.add(o.Properties["terms"].(string), o.Properties["length"].(int), 1)
	}
	t.revision, t.era = m.Revision, m.Era
	if !t.isDue() {
		return nil
	}
	t.changed, t.stored, m.Counted = 0, time.Now(), m.Revision
	return t
}

// Stats implements [retrieve.Searcher]. Weaviate counts the chunks once for each revision. Counting
// needs a quorum of every shard; if it fails, the number comes from the tally.
func (x *Index) Stats(ctx context.Context, terms []string) (stats retrieve.Stats, err error) {
	m := x.mark.Load()
	if m == nil {
		if m, err = x.position(ctx); err != nil {
			return stats, err
		}
	}
	c := &x.census
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := x.tallyAt(ctx, m)
	if err == nil && (m.Revision == 0 || m.Revision < m.Target) {
		err = x.buildingError(ctx, m, t)
	}
	if err != nil || m.Revision == 0 {
		return stats, err
	}
	if c.counted != m {
		within, stop := context.WithTimeout(ctx, again*readPatience) // Weaviate would wait for a node that hangs
		c.chunks, err = x.count(within)
		stop()
		if ctx.Err() != nil {
			return stats, ctx.Err()
		}
		if err != nil {
			c.chunks = t.chunks
		}
		c.counted = m
	}
	stats = retrieve.Stats{Chunks: c.chunks, Frequency: make(map[string]int, len(terms))}
	if t.chunks > 0 {
		stats.MeanTerms = float64(t.terms) / float64(t.chunks)
	}
	for _, term := range terms {
		stats.Frequency[term] = min(t.chunksByTerm[hashOf(indexToken(term))], c.chunks)
	}
	return stats, nil
}

// buildingError returns a [*retrieve.BuildingError] if the collection lacks a part of the library.
func (x *Index) buildingError(ctx context.Context, m *mark, t *tally) error {
	revision, chunks, err := x.options.Size(ctx)
	if err == nil && chunks > 0 && m.Revision < revision {
		err = &retrieve.BuildingError{Done: min(t.chunks, chunks), Total: chunks}
	}
	return err
}

// knownWithin is the longest time until a node knows a new collection.
const knownWithin = 2 * time.Second

// query sends a GraphQL query and decodes its data into out, which stays empty if the collection
// does not exist yet.
func (x *Index) query(ctx context.Context, query string, out any) error {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := x.client.query(ctx, query, out)
		if !errors.Is(err, errNoCollection) {
			return err
		}
		if m := x.mark.Load(); m == nil || m.Revision == 0 {
			return nil
		}
		earlier := x.collection != x.name(layout, retrieve.Analysis, x.options.Space) // an earlier collection has been deleted
		if ctx.Err() != nil || earlier || time.Since(began) > knownWithin {
			return fmt.Errorf("%w: %w: %s", retrieve.ErrIndexUnavailable, err, x.collection)
		}
	}
}

// count returns the number of chunks.
func (x *Index) count(ctx context.Context) (int, error) {
	var reply struct {
		Aggregate map[string][]struct{ Meta struct{ Count int } }
	}
	err := x.query(ctx, "{Aggregate{"+x.collection+"{meta{count}}}}", &reply)
	if group := reply.Aggregate[x.collection]; len(group) > 0 && err == nil {
		return max(0, group[0].Meta.Count-ownObjects), nil
	}
	return 0, err
}
