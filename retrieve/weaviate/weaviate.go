// Package weaviate implements [retrieve.Searcher] on a Weaviate cluster, for libraries larger than
// the memory of one machine. It follows the state and can be rebuilt from it.
//
// Each chunk is an object with its vector, its terms and the fields that filters compare. The
// object's id is derived from the document, the generation and the ordinal, so applying a change
// twice has no further effect. A batch of changes stores the new objects, deletes the objects of
// earlier generations, and then writes the revision and the era of its last change to another
// object, the watermark. Before that, a search may find chunks of both generations:
// [retrieve.Index] drops those that the state no longer has.
//
// A search reads any one replica, so each write must reach all replicas and is repeated until it
// does. Weaviate 1.35 ignores replicas that it considers dead and reports success without them. A
// batch therefore counts only if every node saw every replica before, during and after it: see
// [Index.writeReplicated]. While a node is down, the watermark does not advance: the index lags,
// and documents can still be stored.
//
// Only the REST and GraphQL interfaces are used, over HTTP.
package weaviate

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ibid/retrieve"
)

// layout is the version of the objects. Versions from searchable on can be searched.
const (
	layout     = 3
	searchable = 2
)

// Options identify an index.
type Options struct {
	Library string // of [retrieve.State.Library]
	Space   string // of [retrieve.State.Space]
	// Size returns the revision of the state and the number of its chunks.
	Size func(context.Context) (revision int64, chunks int, err error)
}

// An Index is a [retrieve.Searcher] in one collection of a cluster. Each layout and each space has
// its own collection.
type Index struct {
	client     *client
	options    Options
	library    string // prefix of the names of the library's collections
	collection string

	applying sync.Mutex
	replaced map[retrieve.Hit]row // deleted chunks that the tally still counts
	mark     atomic.Pointer[mark] // the mark that was last read or written
	census   census
}

// Open returns the index of a library. It sends no request.
func Open(at Address, o Options) *Index { return open(newClient(at), o, layout, retrieve.Analysis) }

func open(c *client, o Options, layout, analysis int) *Index {
	x := &Index{client: c, options: o, library: "Ibid_" + digest(o.Library) + "_"}
	x.collection = x.name(layout, analysis, o.Space)
	return x
}

func (x *Index) name(layout, analysis int, space string) string {
	return x.library + digest(fmt.Sprint(layout, "/", analysis, "/", space))
}

// earlierTerms is the number of earlier versions of the terms that are searched.
const earlierTerms = 3

// EarlierLayouts returns the library's indexes in earlier layouts and versions of the terms, latest
// first. They can be searched instead of x, if they exist. Closing x closes them too.
func (x *Index) EarlierLayouts() (all []*Index) {
	for l := layout; l >= searchable; l-- {
		for back := range earlierTerms + 1 {
			if l < layout || back > 0 {
				all = append(all, open(x.client, x.options, l, retrieve.Analysis-back))
			}
		}
	}
	return all
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%x", sum[:6])
}

// Collection returns the name of the collection in Weaviate.
func (x *Index) Collection() string { return x.collection }

// A mark is the watermark of a collection.
type mark struct {
	Revision int64 `json:"revision"`
	Era      int64 `json:"era"`
	Dims     int   `json:"dims"`    // dimensions of the vectors; 0 if there are no vectors
	Counted  int64 `json:"counted"` // revision of the stored tally
	// Target is the revision of the state when the collection was created. Below it, the collection
	// lacks much of the library and is not searched.
	Target int64 `json:"target"`
	// Written is the time when the mark was written, in Unix seconds. All changes up to the
	// revision Earlier were stored before Since. Those up to Settled are in Weaviate's files.
	Written int64 `json:"written"`
	Since   int64 `json:"since"`
	Earlier int64 `json:"earlier"`
	Settled int64 `json:"settled"`
}

// flushed is the number of seconds after which a change is certainly in Weaviate's files. Weaviate
// writes it after a minute (PERSISTENCE_MEMTABLES_FLUSH_DIRTY_AFTER_SECONDS).
const flushed = 90

// settledRevision returns the revision up to which all changes are in Weaviate's files.
func (m *mark) settledRevision() int64 {
	switch now := time.Now().Unix(); {
	case now > m.Written+flushed:
		return m.Revision
	case now > m.Since+flushed:
		return m.Earlier
	}
	return m.Settled
}

// advance sets the times of the mark before a change is applied.
func (m *mark) advance() {
	m.Written = time.Now().Unix()
	if m.Written > m.Since+flushed {
		m.Settled, m.Earlier, m.Since = m.Earlier, m.Revision, m.Written
	}
}

// markID is the id of the watermark. No chunk belongs to document 0.
var markID = idOf(retrieve.Hit{})

func objectPath(collection, id string) string {
	return "/v1/objects/" + collection + "/" + id + "?consistency_level=ONE"
}

// position reads the watermark.
func (x *Index) position(ctx context.Context) (*mark, error) {
	var stored struct{ Properties struct{ Mark string } }
	err := x.client.call(ctx, http.MethodGet, objectPath(x.collection, markID), nil, &stored)
	m := &mark{}
	if err == nil {
		if err := json.Unmarshal([]byte(stored.Properties.Mark), m); err != nil {
			return nil, fmt.Errorf("%w: the watermark of %s: %w", retrieve.ErrIndexDamaged, x.collection, err)
		}
	} else if !noObject(err) {
		return nil, err
	}
	if last := x.mark.Load(); last != nil && last.Revision == m.Revision && last.Era == m.Era {
		return last, nil
	}
	x.mark.Store(m)
	return m, nil
}

// noObject reports whether an error means that an object or its collection does not exist.
func noObject(err error) bool {
	return refusedAs(err, "status 404:", "could not find class", "class not found")
}

// refusedAs reports whether an error is a refusal by Weaviate that contains one of the texts.
func refusedAs(err error, texts ...string) bool {
	refused := (*replyError)(nil)
	return errors.As(err, &refused) && slices.ContainsFunc(texts, func(text string) bool {
		return strings.Contains(strings.ToLower(refused.Error()), text)
	})
}

// Revision implements [retrieve.Searcher].
func (x *Index) Revision(ctx context.Context) (revision, era int64, err error) {
	m, err := x.position(ctx)
	if err != nil {
		return 0, 0, err
	}
	return m.Revision, m.Era, nil
}

// Reset implements [retrieve.Searcher].
func (x *Index) Reset(ctx context.Context) error {
	x.applying.Lock()
	defer x.applying.Unlock()
	x.mark.Store(nil)
	x.replaced = nil
	x.census.forget()
	return x.client.drop(ctx, x.collection)
}

// DropOthers deletes the library's other collections, except those of the kept spaces in this
// layout and those for which used returns true.
func (x *Index) DropOthers(ctx context.Context, kept []string, used func(collection string) bool) error {
	keep := []string{x.collection}
	for _, space := range kept {
		keep = append(keep, x.name(layout, retrieve.Analysis, space))
	}
	var schema struct{ Classes []struct{ Class string } }
	err := x.client.call(ctx, http.MethodGet, "/v1/schema", nil, &schema)
	for _, c := range schema.Classes {
		if err == nil && !slices.Contains(keep, c.Class) && strings.HasPrefix(c.Class, x.library) && !used(c.Class) {
			err = x.client.drop(ctx, c.Class)
		}
	}
	return err
}

// Close implements [retrieve.Searcher].
func (x *Index) Close() error {
	x.client.closed.Store(true)
	x.client.http.CloseIdleConnections()
	return nil
}

const (
	// maxGroup is the number of chunks that are applied together, unless a single document has
	// more.
	maxGroup = 1024
	// batchObjects is the number of objects that one request stores.
	batchObjects = 128
	// storing is the number of concurrent requests that store objects.
	storing = 4
	// deletedTogether is the number of documents whose earlier generations one request deletes.
	deletedTogether = 100
)

// Apply implements [retrieve.Searcher].
func (x *Index) Apply(ctx context.Context, changes []retrieve.Change) error {
	x.applying.Lock()
	defer x.applying.Unlock()
	last := x.mark.Load()
	m, err := x.position(ctx)
	if err != nil {
		return err
	}
	if last != nil && m.Revision < last.Revision {
		return fmt.Errorf("the collection %s was emptied in the meantime", x.collection)
	}
	for len(changes) > 0 && changes[0].Revision <= m.Revision {
		changes = changes[1:]
	}
	if len(changes) == 0 {
		return nil
	}
	if m.Revision == 0 {
		if m, err = x.create(ctx); err != nil {
			return err
		}
	}
	if err := x.rewind(ctx, m); err != nil {
		return err
	}
	for len(changes) > 0 {
		n, chunks := 0, 0
		for n < len(changes) && (n == 0 || chunks+len(changes[n].Chunks) <= maxGroup) {
			chunks += len(changes[n].Chunks)
			n++
		}
		if m, err = x.apply(ctx, *m, changes[:n]); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}

// create creates the collection, if it does not exist, and returns its first mark.
func (x *Index) create(ctx context.Context) (*mark, error) {
	target, chunks, err := x.options.Size(ctx)
	if err != nil {
		return nil, err
	}
	err = x.client.call(ctx, http.MethodPost, "/v1/schema", x.client.at.schema(x.collection, chunks), nil)
	if err != nil && !refusedAs(err, "already exists") {
		return nil, fmt.Errorf("creating the collection %s: %w", x.collection, err)
	}
	return &mark{Target: target}, nil
}

// rewind reads the tally before changes after a mark are counted. If the stored tally has another
// revision, because a process ended before it stored both, rewind sets the mark to that revision
// and returns an error, so that the next call applies and counts the changes after it.
func (x *Index) rewind(ctx context.Context, m *mark) error {
	x.census.mu.Lock()
	defer x.census.mu.Unlock()
	if t := x.census.own; t != nil && t.revision == m.Revision && t.era == m.Era {
		return nil
	}
	t, err := x.readTally(ctx)
	if err != nil {
		return err
	}
	x.census.own, x.replaced = t, nil
	if t.revision == m.Revision {
		return nil
	}
	back := *m
	back.Revision, back.Era, back.Settled, back.Earlier = t.revision, t.era, min(m.Settled, t.revision), min(m.Earlier, t.revision)
	if err := x.putMark(ctx, &back, nil); err != nil {
		return err
	}
	x.mark.Store(nil)
	return fmt.Errorf("the collection %s continues after revision %d", x.collection, t.revision)
}

// apply applies changes after a watermark, and returns the new watermark.
func (x *Index) apply(ctx context.Context, m mark, changes []retrieve.Change) (*mark, error) {
	latest := make(map[int64]int64) // revision of each document
	m.advance()
	for _, c := range changes {
		latest[c.Document] = c.Revision
		m.Revision, m.Era = c.Revision, c.Era
	}
	delete(latest, 0)
	unprimed := m.Dims == 0
	var objects []object
	for i := range changes {
		c := &changes[i]
		if latest[c.Document] != c.Revision || c.Deleted {
			continue
		}
		made, err := x.objectsOf(c, &m)
		if err != nil {
			return nil, fmt.Errorf("indexing %s: %w", c.Info.ID, err)
		}
		objects = append(objects, made...)
	}
	err := x.writeReplicated(ctx, func(ctx context.Context) error {
		earlier, err := x.selectEarlier(ctx, latest)
		if err != nil {
			return err
		}
		if unprimed && m.Dims > 0 {
			if err := x.prime(ctx, m.Dims); err != nil {
				return err
			}
		}
		if err := x.put(ctx, objects); err != nil {
			return err
		}
		for together := range slices.Chunk(earlier, deletedTogether) {
			if err := x.replace(ctx, where{Operator: "Or", Operands: together}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	stored := x.recount(&m, objects)
	if err := x.putMark(ctx, &m, stored); err != nil {
		x.census.forget() // the tally has counted changes that are not applied
		return nil, err
	}
	x.replaced = nil
	x.mark.Store(&m)
	return &m, nil
}

// lookEvery is the interval at which a cluster is checked during writes. No node restarts in less
// time.
const lookEvery = 500 * time.Millisecond

// writeReplicated calls write. It returns an error unless every node of the address sees all
// replicas of the collection before, during and after the call, since a node that misses a replica
// writes to the other ones and reports success.
func (x *Index) writeReplicated(ctx context.Context, write func(context.Context) error) error {
	var schema struct {
		ShardingConfig    struct{ ActualCount int }
		ReplicationConfig struct{ Factor int }
	}
	err := x.client.call(ctx, http.MethodGet, "/v1/schema/"+x.collection, nil, &schema)
	if err != nil {
		return err
	}
	look := func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		for _, node := range x.client.at.nodes {
			g.Go(func() error {
				if err := x.checkReplicas(ctx, node, schema.ShardingConfig.ActualCount*schema.ReplicationConfig.Factor); err != nil {
					return fmt.Errorf("%w: a Weaviate node is down: %s: %w", retrieve.ErrIndexUnavailable, node, err)
				}
				return nil
			})
		}
		return g.Wait()
	}
	// A node may not know a new collection yet.
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if err := look(ctx); err == nil {
			break
		} else if ctx.Err() != nil || time.Since(began) > time.Second {
			return err
		}
	}
	g, within := errgroup.WithContext(ctx)
	written := make(chan struct{})
	g.Go(func() error {
		defer close(written)
		return write(within)
	})
	g.Go(func() error {
		for {
			select {
			case <-written:
				return nil
			case <-time.After(lookEvery):
				if err := look(within); err != nil {
					return err
				}
			}
		}
	})
	if err := g.Wait(); err != nil {
		return err
	}
	return look(ctx)
}

// checkReplicas returns an error unless a node sees the given number of replicas of the
// collection's shards. The node's reply lacks the nodes that it considers dead. The reply of a node
// that has just started may lack the collection, which is an error too.
func (x *Index) checkReplicas(ctx context.Context, node string, replicas int) error {
	data, err := x.client.sendRequest(ctx, node, http.MethodGet, "/v1/nodes/"+x.collection+"?output=verbose", nil)
	if err != nil {
		return err
	}
	var reply struct{ Nodes []struct{ Shards []struct{} } }
	if err := json.Unmarshal(data, &reply); err != nil {
		return err
	}
	seen := 0
	for _, n := range reply.Nodes {
		seen += len(n.Shards)
	}
	if seen < replicas {
		return fmt.Errorf("only %d of %d replicas of the shards are visible", seen, replicas)
	}
	return nil
}

// primers is the number of objects per shard that are stored so that every shard gets at least one.
const primers = 32

// prime stores vectors in all shards and deletes them: Weaviate 1.35 refuses to compare the codes
// of a shard that never had a vector ("quantizer not initialized").
func (x *Index) prime(ctx context.Context, dims int) error {
	if x.client.at.shards == 1 {
		return nil
	}
	vector := make([]float32, dims)
	vector[0] = 1
	objects := make([]object, primers*x.client.at.shards)
	for i := range objects {
		id := idOf(retrieve.Hit{Ordinal: ownObjects + i})
		objects[i] = object{Class: x.collection, ID: id, Vector: vector, Properties: map[string]any{"document": 0}}
	}
	if err := x.put(ctx, objects); err != nil {
		return err
	}
	return x.remove(ctx, number("document", "Equal", 0))
}

// putMark stores a watermark, and the tally if it is not nil.
func (x *Index) putMark(ctx context.Context, m *mark, t *tally) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if t != nil {
		o := object{Class: x.collection, ID: tallyID, Properties: map[string]any{"packed": base64.StdEncoding.EncodeToString(t.pack())}}
		if err := x.putBatch(ctx, []object{o}); err != nil {
			return err
		}
	}
	return x.putBatch(ctx, []object{{Class: x.collection, ID: markID, Properties: map[string]any{"mark": string(text)}}})
}

// selectEarlier returns filters for the stored chunks of earlier generations of documents. Each filter
// names one generation: to find all generations below a number, Weaviate would read every
// generation of the collection.
func (x *Index) selectEarlier(ctx context.Context, latest map[int64]int64) (filters []where, err error) {
	for documents := range slices.Chunk(slices.Sorted(maps.Keys(latest)), deletedTogether) {
		w := where{Operator: "ContainsAny", Path: []string{"document"}, ValueInts: documents}
		stored, err := x.rows(ctx, "", &w, maxResults, "")
		if err != nil {
			return nil, err
		}
		generations := make(map[retrieve.Hit]bool)
		for _, r := range stored {
			if r.Generation < latest[r.Document] {
				generations[retrieve.Hit{Document: r.Document, Generation: r.Generation}] = true
			}
		}
		for h := range generations {
			filters = append(filters, *allOf(number("document", "Equal", h.Document), number("generation", "Equal", h.Generation)))
		}
		for _, d := range documents {
			if len(stored) == maxResults { // there may be more
				filters = append(filters, *allOf(number("document", "Equal", d), number("generation", "LessThan", latest[d])))
			}
		}
	}
	return filters, nil
}

// replace deletes the objects that a filter matches, and keeps their terms for [Index.recount].
func (x *Index) replace(ctx context.Context, w where) error {
	for {
		found, err := x.rows(ctx, "", &w, maxResults, "length terms")
		if err != nil || len(found) == 0 {
			return err
		}
		ids := make([]string, len(found))
		for i := range found {
			if x.replaced == nil {
				x.replaced = make(map[retrieve.Hit]row)
			}
			x.replaced[found[i].hit()], ids[i] = found[i], idOf(found[i].hit())
		}
		if err := x.remove(ctx, anyOf("id", ids)); err != nil || len(found) < maxResults {
			return err
		}
	}
}

// put stores objects, replacing objects with the same ids, with several concurrent requests.
func (x *Index) put(ctx context.Context, objects []object) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(storing)
	for batch := range slices.Chunk(objects, batchObjects) {
		g.Go(func() error { return x.putBatch(ctx, batch) })
	}
	return g.Wait()
}

func (x *Index) putBatch(ctx context.Context, batch []object) error {
	var results []struct {
		Result struct {
			Errors *struct{ Error []struct{ Message string } }
		}
	}
	err := x.client.call(ctx, http.MethodPost, "/v1/batch/objects?consistency_level=ALL", map[string]any{"objects": batch}, &results)
	if err != nil {
		return err
	}
	if len(results) != len(batch) {
		return fmt.Errorf("weaviate returned %d results for %d objects", len(results), len(batch))
	}
	for _, r := range results {
		if r.Result.Errors != nil && len(r.Result.Errors.Error) > 0 {
			return fmt.Errorf("%w: weaviate did not store a chunk on all replicas: %s", retrieve.ErrIndexUnavailable,
				r.Result.Errors.Error[0].Message)
		}
	}
	return nil
}

// remove deletes all objects that a filter matches.
func (x *Index) remove(ctx context.Context, w where) error {
	match := map[string]any{"match": map[string]any{"class": x.collection, "where": w}, "output": "minimal"}
	for {
		var reply struct {
			Results struct{ Matches, Limit, Failed int }
		}
		err := x.client.call(ctx, http.MethodDelete, "/v1/batch/objects?consistency_level=ALL", match, &reply)
		if err != nil {
			return err
		}
		if n := reply.Results.Failed; n > 0 {
			return fmt.Errorf("%w: weaviate did not delete %d chunks on all replicas", retrieve.ErrIndexUnavailable, n)
		}
		if reply.Results.Matches < reply.Results.Limit || reply.Results.Matches == 0 {
			return nil
		}
	}
}
