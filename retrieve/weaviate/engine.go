// Package weaviate is a [retrieve.Store] on a Weaviate cluster: vectors, texts
// and everything else of a library stand there, sharded and replicated as its
// classes say, and any number of Ibid servers may share them.
//
// Weaviate knows no transactions. A document is written as a new generation of
// parts and chunks, then its one object is stored, which says which generation
// counts; readers hold everything they find against it. Every write is
// acknowledged by all replicas, so any one of them may be read: with a node away
// reads go on, and writes to what it holds wait for it and then fail with
// [ErrAway]. Scores are computed by Ibid on what Weaviate finds.
//
// The server must index vectors as they come, which is its default
// (ASYNC_INDEXING is not set).
package weaviate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/backoff"

	"ibid/ingest"
	"ibid/retrieve"
)

// Options tune an [Engine]. The zero value is what Ibid uses.
type Options struct {
	// Key is the API key, where the URL holds none.
	Key string
	// Wait is for how long what fails for want of a node is tried again; 0 means
	// half a minute.
	Wait time.Duration
	// Renewing, where it is set, is told that the terms of so many documents were
	// made by another version's analysis, before they are made anew.
	Renewing func(documents int)
	// Limits are those of the ledger.
	Limits retrieve.Limits
}

// An Engine is an open library. It is safe for concurrent use.
type Engine struct {
	wire    *wire
	journal *journal
	space   atomic.Pointer[string] // as it was read last
	classes sync.Map               // the spaces whose class is there
	seen    recent
	counted counts
	limits  retrieve.Limits
	turns   turns
	// sweeping is when it was looked for what others left, and how old that is.
	sweeping struct {
		mu   sync.Mutex
		last time.Time
		age  time.Duration
	}
	// unflushed is how long after a change not all is found: [unflushed].
	unflushed time.Duration
	respacing respacing
	clock     clock
	closing   sync.Once
}

// Open opens the library at a URL such as
// weaviate://:KEY@HOST:8080?grpc=HOST:50051&shards=3&replicas=2, and makes its
// classes when they are not there. Further parameters are prefix, which begins
// the names of the classes; nodes, further nodes HOST:PORT/GRPCPORT that are asked
// when the first one does not answer; and scheme, https for an encrypted way.
func Open(ctx context.Context, url string, opts Options) (*Engine, error) {
	at, err := parseAddress(url)
	if err != nil {
		return nil, err
	}
	if at.key == "" {
		at.key = opts.Key
	}
	if opts.Wait <= 0 {
		opts.Wait = 30 * time.Second
	}
	w, err := dial(at, opts.Wait)
	if err != nil {
		return nil, fmt.Errorf("connect to weaviate at %s: %w", at.hosts[0], err)
	}
	e := &Engine{wire: w, journal: &journal{wire: w}, limits: opts.Limits.OrDefault(), unflushed: unflushed}
	e.sweeping.age = sweepAge
	if err := w.found(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the library: %w", err), w.close())
	}
	if _, err := e.readSpace(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the library: %w", err), w.close())
	}
	if err := e.renew(ctx, opts.Renewing); err != nil {
		return nil, errors.Join(fmt.Errorf("open the library: store the terms of another analysis: %w", err), w.close())
	}
	return e, nil
}

// reconnect is how soon a lost connection is made again.
func reconnect() backoff.Config {
	return backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second}
}

// Close closes the engine.
func (e *Engine) Close() (err error) {
	e.closing.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		// A journal that cannot be closed is swept up as that of a crash is.
		_ = e.journal.close(ctx)
		err = e.wire.close()
	})
	return err
}

// An item is something small that is kept under a kind and a name.
type item struct {
	kind, name, group string
	at                int64
	of                []string
	data              any
}

// putItem keeps items, each in place of the one before.
func (w *wire) putItem(ctx context.Context, items ...item) error {
	objects := make([]*pb.BatchObject, len(items))
	for n, i := range items {
		data, err := json.Marshal(i.data)
		if err != nil {
			return err
		}
		objects[n] = object(w.at.items(), idOf(i.kind, i.name), map[string]any{"kind": i.kind, "group": indexed(i.group), "at": i.at, "of": i.of, "data": string(data)})
	}
	return w.put(ctx, objects...)
}

// removeItems removes items of a kind by name.
func (w *wire) removeItems(ctx context.Context, kind string, names ...string) error {
	const some = 500
	for len(names) > 0 {
		n := min(some, len(names))
		ids := make([]string, n)
		for i, name := range names[:n] {
			ids[i] = idOf(kind, name)
		}
		if err := w.remove(ctx, w.at.items(), byID(ids...)); err != nil {
			return err
		}
		names = names[n:]
	}
	return nil
}

// itemsOf reads all items of a group into values, in no order.
func itemsOf[V any](ctx context.Context, w *wire, group string) ([]V, error) {
	rows, err := w.group(ctx, group)
	if err != nil {
		return nil, err
	}
	return readItems[V](rows, group)
}

// groupPage is how many items are read at a time: what one holds may be long.
const groupPage = 500

// group gives all items of a group, in no order, with their data.
func (w *wire) group(ctx context.Context, group string) ([]row, error) {
	key := indexed(group)
	rows, err := w.search(ctx, query(w.at.items(), equal("group", key), groupPage, "data"))
	if err != nil || len(rows) < groupPage {
		return rows, err
	}
	found, err := w.search(ctx, query(w.at.items(), equal("group", key), maxResults))
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, r := range found {
		ids = append(ids, r.id)
	}
	if len(ids) >= maxResults {
		// A search gives no more than these; a walk over everything does.
		ids = nil
		err := w.each(ctx, w.at.items(), listPage, func(r row) error {
			if r.text("group") == key {
				ids = append(ids, r.id)
			}
			return nil
		}, "group")
		if err != nil {
			return nil, err
		}
	}
	rows = nil
	for part := range slices.Chunk(ids, groupPage) {
		page, err := w.search(ctx, query(w.at.items(), byID(part...), len(part), "data"))
		if err != nil {
			return nil, err
		}
		rows = append(rows, page...)
	}
	return rows, nil
}

func readItems[V any](rows []row, group string) ([]V, error) {
	values := make([]V, len(rows))
	for i, r := range rows {
		if err := json.Unmarshal([]byte(r.text("data")), &values[i]); err != nil {
			return nil, fmt.Errorf("one of what is kept as %s cannot be read: %w", group, err)
		}
	}
	return values, nil
}

// newest reads up to n items of a group whose place is at most so high, the
// highest first.
func newest[V any](ctx context.Context, w *wire, group string, most int64, n int) ([]V, error) {
	q := query(w.at.items(), all(equal("group", indexed(group)), number(pb.Filters_OPERATOR_LESS_THAN_EQUAL, "at", int(most))), min(n, maxResults), "data")
	q.SortBy = []*pb.SortBy{{Path: []string{"at"}}}
	rows, err := w.search(ctx, q)
	if err != nil {
		return nil, err
	}
	return readItems[V](rows, group)
}

// item reads one into data; false where it is not there.
func (w *wire) item(ctx context.Context, kind, name string, data any) (bool, error) {
	rows, err := w.search(ctx, query(w.at.items(), byID(idOf(kind, name)), 1, "data"))
	if err != nil || len(rows) == 0 {
		return false, err
	}
	if err := json.Unmarshal([]byte(rows[0].text("data")), data); err != nil {
		return false, fmt.Errorf("what is kept as %s %s cannot be read: %w", kind, name, err)
	}
	return true, nil
}

const (
	spaceKind   = "space"
	rootKind    = "root"
	listingKind = "listing"
)

// readSpace gives the space that was set last, empty where none was.
func (e *Engine) readSpace(ctx context.Context) (string, error) {
	var space string
	if _, err := e.wire.item(ctx, spaceKind, "", &space); err != nil {
		return "", err
	}
	if space != "" {
		if _, known := e.classes.Load(space); !known {
			if err := e.wire.foundChunks(ctx, space, true); err != nil {
				now := ""
				if _, again := e.wire.item(ctx, spaceKind, "", &now); again == nil && now != space {
					return e.readSpace(ctx) // it has been changed meanwhile
				}
				return "", err
			}
			e.classes.Store(space, true)
		}
	}
	e.space.Store(&space)
	return space, nil
}

// inSpace does something in the space that there is, again where another process
// has changed it meanwhile.
func (e *Engine) inSpace(ctx context.Context, do func(ctx context.Context, space string) error) error {
	for {
		space, now := *e.space.Load(), ""
		var done error
		g, limit := errgroup.WithContext(ctx)
		doing, stop := context.WithCancel(limit)
		defer stop()
		g.Go(func() (err error) {
			if now, err = e.readSpace(limit); now != space {
				stop()
			}
			return err
		})
		g.Go(func() error {
			done = do(doing, space) // which fails where the space is no longer there
			return nil
		})
		if err := g.Wait(); err != nil {
			return err
		}
		if now == space && done != nil {
			// What failed may have done so since the space was changed meanwhile.
			var err error
			if now, err = e.readSpace(ctx); err != nil {
				return done
			}
		}
		if now == space {
			return done
		}
	}
}

// Space is the embedding space of the stored vectors, empty while there are no
// documents.
func (e *Engine) Space(ctx context.Context) (space string, err error) {
	holds := false
	g, limit := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		space, err = e.readSpace(limit)
		return err
	})
	g.Go(func() (err error) {
		holds, err = e.holdsAny(limit)
		return err
	})
	if err := g.Wait(); err != nil {
		return "", fmt.Errorf("read the embedding space: %w", err)
	}
	if !holds {
		return "", nil
	}
	return space, nil
}

func (e *Engine) holdsAny(ctx context.Context) (bool, error) {
	rows, err := e.wire.search(ctx, query(e.wire.at.documents(), nil, 1))
	return len(rows) > 0, err
}

// isDocument says whether a task is one on a document.
func isDocument(t task) bool { return strings.HasPrefix(t.Name, documentTask) }

// The names of tasks.
const (
	documentTask = "document "
	rootsTask    = "roots"
	spaceTask    = "space"
)

// SetSpace sets the space of an engine without documents. Where documents are,
// a space other than theirs is a [*retrieve.SpaceError].
func (e *Engine) SetSpace(ctx context.Context, space string) error {
	if space == "" {
		return errors.New("set the embedding space: its name is empty")
	}
	if err := e.setSpace(ctx, space); err != nil {
		return fmt.Errorf("set the embedding space: %w", err)
	}
	return nil
}

func (e *Engine) setSpace(ctx context.Context, space string) error {
	if stored, err := e.readSpace(ctx); err != nil || stored == space {
		return err
	}
	return e.exclusive(ctx, task{Name: spaceTask}, func(ctx context.Context, h *hold) (changed bool, err error) {
		stored, err := e.readSpace(ctx)
		if err != nil || stored == space {
			return false, err
		}
		occupied := func() error {
			holds, err := e.holdsAny(ctx)
			if err == nil && holds && stored != "" {
				err = &retrieve.SpaceError{Stored: stored, Wanted: space}
			}
			return err
		}
		if err := occupied(); err != nil {
			return false, err
		}
		if err := e.wire.foundChunks(ctx, space, false); err != nil {
			return false, err
		}
		if err := e.wire.putItem(ctx, item{kind: spaceKind, data: space}); err != nil {
			return true, err
		}
		if stored != "" {
			// Who began before may still store a document of the old space.
			err := h.quiet(ctx, isDocument)
			if err == nil {
				err = occupied()
			}
			if err != nil {
				return true, errors.Join(err, e.wire.putItem(ctx, item{kind: spaceKind, data: stored}))
			}
			if err := e.wire.drop(ctx, e.wire.at.chunks(stored)); err != nil {
				return true, err
			}
			e.classes.Delete(stored)
		}
		e.classes.Store(space, true)
		e.space.Store(&space)
		return true, nil
	})
}

// exclusive does something under a name that one process has at a time.
func (e *Engine) exclusive(ctx context.Context, t task, do func(context.Context, *hold) (changed bool, err error)) error {
	if err := e.wire.awaitNodes(ctx); err != nil {
		return err
	}
	e.sweep(ctx)
	return e.alone(ctx, t, do)
}

func (e *Engine) alone(ctx context.Context, t task, do func(context.Context, *hold) (changed bool, err error)) error {
	leave, err := e.turns.take(ctx, t.Name)
	if err != nil {
		return err
	}
	defer leave()
	h, err := e.journal.begin(ctx, t)
	if err != nil {
		return err
	}
	changed, err := do(ctx, h)
	if err != nil {
		h.leave(ctx, changed)
		return err
	}
	if err := h.end(ctx, changed); err != nil {
		return err
	}
	return e.wire.acknowledged(ctx)
}

// turns are those of the goroutines of this process that want the same name: it
// stands in one queue with other processes.
type turns struct {
	mu   sync.Mutex
	held map[string]*turn
}

type turn struct {
	free  chan struct{} // holds a value while nobody has the name
	count int           // of those that have the name or wait for it
}

// take waits until nobody of this process has the name.
func (t *turns) take(ctx context.Context, name string) (leave func(), err error) {
	t.mu.Lock()
	if t.held == nil {
		t.held = make(map[string]*turn)
	}
	own := t.held[name]
	if own == nil {
		own = &turn{free: make(chan struct{}, 1)}
		own.free <- struct{}{}
		t.held[name] = own
	}
	own.count++
	t.mu.Unlock()
	drop := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.count--; own.count == 0 {
			delete(t.held, name)
		}
	}
	select {
	case <-own.free:
		return func() {
			own.free <- struct{}{}
			drop()
		}, nil
	case <-ctx.Done():
		drop()
		return nil, ctx.Err()
	}
}

// AddRoot gives the root stored for the absolute folder path, and makes it
// under a free name when there is none. An empty path is the root
// [retrieve.Uploads]. The collection of a root that is there already stays what
// it was; empty means [ingest.DefaultCollection].
func (e *Engine) AddRoot(ctx context.Context, path, collection string) (root ingest.Root, err error) {
	if path != "" && !filepath.IsAbs(path) {
		return ingest.Root{}, fmt.Errorf("add a root: the path %q is not absolute", path)
	}
	if collection == "" {
		collection = ingest.DefaultCollection
	}
	there := func(ctx context.Context) (roots []ingest.Root, ok bool, err error) {
		roots, err = e.roots(ctx)
		if i := slices.IndexFunc(roots, func(r ingest.Root) bool { return r.Path == path }); i >= 0 {
			root, ok = roots[i], true
		}
		return roots, ok, err
	}
	_, ok, err := there(ctx)
	if err == nil && !ok {
		err = isText(path, collection)
	}
	if err == nil && !ok {
		err = e.exclusive(ctx, task{Name: rootsTask}, func(ctx context.Context, _ *hold) (bool, error) {
			roots, ok, err := there(ctx)
			if err != nil || ok {
				return false, err
			}
			root = ingest.Root{Name: retrieve.RootName(path, roots), Path: path, Collection: collection}
			return true, e.wire.putItem(ctx, item{kind: rootKind, name: root.Name, data: root})
		})
	}
	if err != nil {
		return ingest.Root{}, fmt.Errorf("add the root of %q: %w", path, err)
	}
	return root, nil
}

// Roots lists the roots by name.
func (e *Engine) Roots(ctx context.Context) ([]ingest.Root, error) {
	roots, err := e.roots(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the roots: %w", err)
	}
	return roots, nil
}

func (e *Engine) roots(ctx context.Context) ([]ingest.Root, error) {
	rows, err := e.wire.search(ctx, query(e.wire.at.items(), equal("kind", rootKind), maxResults, "data"))
	if err != nil {
		return nil, err
	}
	roots := make([]ingest.Root, len(rows))
	for i, r := range rows {
		if err := json.Unmarshal([]byte(r.text("data")), &roots[i]); err != nil {
			return nil, fmt.Errorf("a root cannot be read: %w", err)
		}
	}
	slices.SortFunc(roots, func(a, b ingest.Root) int { return strings.Compare(a.Name, b.Name) })
	return roots, nil
}

// A keptListing is a listing as it is stored.
type keptListing struct {
	ID      string `json:"id"`
	Listing []byte `json:"listing"`
}

// Listing gives what was kept last for an id; nil where nothing is.
func (e *Engine) Listing(ctx context.Context, id string) ([]byte, error) {
	var kept keptListing
	if _, err := e.wire.item(ctx, listingKind, id, &kept); err != nil {
		return nil, fmt.Errorf("read the listing of %s: %w", id, err)
	}
	return kept.Listing, nil
}

// KeepListing keeps a listing under an id, in place of the one before.
func (e *Engine) KeepListing(ctx context.Context, root, id string, listing []byte) error {
	err := e.wire.awaitNodes(ctx)
	if err == nil {
		err = e.wire.putItem(ctx, item{kind: listingKind, name: id, group: "listings of " + root, data: keptListing{id, listing}})
	}
	if err == nil {
		err = e.wire.acknowledged(ctx)
	}
	if err != nil {
		return fmt.Errorf("keep the listing of %s: %w", id, err)
	}
	return nil
}

// Listings gives the ids in a root for which there are listings.
func (e *Engine) Listings(ctx context.Context, root string) (ids []string, err error) {
	rows, err := e.wire.group(ctx, "listings of "+root)
	for _, r := range rows {
		var kept keptListing
		if err = errors.Join(err, json.Unmarshal([]byte(r.text("data")), &kept)); err == nil {
			ids = append(ids, kept.ID)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the listings of the root %q: %w", root, err)
	}
	return ids, nil
}

// Revision grows with every durable change, by whichever process.
func (e *Engine) Revision(ctx context.Context) (int64, error) {
	s, err := e.wire.state(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the revision: %w", err)
	}
	return s.revision, nil
}

// Documents lists what is stored, by id, without texts.
func (e *Engine) Documents(ctx context.Context, f retrieve.Filter) ([]retrieve.DocumentInfo, error) {
	var list []retrieve.DocumentInfo
	err := e.list(ctx, f, maxResults, func(d *document) { list = append(list, d.info()) })
	if err != nil {
		return nil, fmt.Errorf("list the documents: %w", err)
	}
	slices.SortFunc(list, func(a, b retrieve.DocumentInfo) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// Holds says whether any document passes the filter.
func (e *Engine) Holds(ctx context.Context, f retrieve.Filter) (bool, error) {
	for limit := 16; ; limit = maxResults {
		any := false
		err := e.list(ctx, f, limit, func(*document) { any = true })
		if errors.Is(err, errMore) && limit < maxResults {
			if any {
				return true, nil
			}
			continue
		}
		if err != nil {
			return false, fmt.Errorf("look for documents: %w", err)
		}
		return any, nil
	}
}

// errMore says that there are more documents than were wanted.
var errMore = errors.New("there are more documents")

// list gives the documents that pass a filter, in no order.
func (e *Engine) list(ctx context.Context, f retrieve.Filter, limit int, give func(*document)) error {
	take := func(r row) error {
		d, err := readDocument(r)
		if err != nil {
			return err
		}
		if info := d.info(); f.Matches(&info, retrieve.LabelsOf(d.Meta)) {
			give(d)
		}
		return nil
	}
	if f.IsZero() && limit == maxResults {
		return e.wire.each(ctx, e.wire.at.documents(), listPage, take, "data")
	}
	where, none := narrow(f)
	if none {
		return nil
	}
	if f.Document != "" {
		where = all(where, byID(documentID(f.Document)))
	}
	rows, err := e.wire.search(ctx, query(e.wire.at.documents(), where, limit, "data"))
	if err != nil {
		return err
	}
	if len(rows) >= maxResults {
		// A search gives no more than these; a walk over everything does.
		return e.wire.each(ctx, e.wire.at.documents(), listPage, take, "data")
	}
	for _, r := range rows {
		if err := take(r); err != nil {
			return err
		}
	}
	if len(rows) == limit {
		return errMore
	}
	return nil
}

// listPage is how many documents are read at a time.
const listPage = 1000
