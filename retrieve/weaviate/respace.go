package weaviate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	client "github.com/weaviate/weaviate-go-client/v5/weaviate"
	"github.com/weaviate/weaviate/entities/models"
	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"
	"golang.org/x/sync/errgroup"

	"ibid/ingest"
	"ibid/retrieve"
)

// The vectors of another space are prepared in a class of their own, in objects
// with the ids of the chunks in use. Which space counts is said by one item, so
// that storing this is the moment at which it changes. Nothing is written to
// documents from when all is seen to be prepared until then.

// nextKind is the kind of the item that names the space that is being prepared.
const nextKind = "next space"

// respacing is how far the documents have been looked through for chunks without
// a vector of a space.
type respacing struct {
	mu    sync.Mutex
	space string
	after string // the object of a document; what is before it was embedded
}

// respacePage is how many documents are looked through at a time.
const respacePage = 64

// Unembedded gives up to n chunks that have no vector of the new space yet.
func (e *Engine) Unembedded(ctx context.Context, space string, n int) ([]retrieve.Candidate, error) {
	out, err := e.unembedded(ctx, space, n)
	if err != nil {
		return nil, fmt.Errorf("find chunks without a vector: %w", err)
	}
	return out, nil
}

func (e *Engine) unembedded(ctx context.Context, space string, n int) ([]retrieve.Candidate, error) {
	if err := e.beginSpace(ctx, space); err != nil {
		return nil, err
	}
	r := &e.respacing
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.space != space {
		r.space, r.after = space, ""
	}
	for {
		whole := r.after == ""
		var out []retrieve.Candidate
		at := r.after
		for end := false; !end && len(out) < n; {
			var page []*document
			var err error
			if page, at, end, err = e.documentsAfter(ctx, at); err != nil {
				return nil, err
			}
			missing, err := e.missing(ctx, space, page, n-len(out))
			if err != nil {
				return nil, err
			}
			if len(missing) == 0 && len(out) == 0 {
				r.after = at // the next search begins here
			}
			found, err := e.Candidates(ctx, missing)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
		// What came meanwhile stands anywhere: all is looked through in the end.
		if len(out) > 0 || whole {
			return out, nil
		}
		r.after = ""
	}
}

// beginSpace has a space prepared, and no other.
func (e *Engine) beginSpace(ctx context.Context, space string) error {
	var next string
	if _, err := e.wire.item(ctx, nextKind, "", &next); err != nil {
		return err
	}
	if next == space {
		return e.wire.foundChunks(ctx, space, false)
	}
	return e.exclusive(ctx, task{Name: spaceTask}, func(ctx context.Context, _ *hold) (bool, error) {
		used, err := e.readSpace(ctx)
		if err != nil {
			return false, err
		}
		// What was prepared for another one goes, and what an end in the middle left.
		if err := e.dropSpaces(ctx, used); err != nil {
			return false, err
		}
		if err := e.wire.foundChunks(ctx, space, false); err != nil {
			return false, err
		}
		e.classes.Delete(space) // its dimensions may be others now
		return false, e.wire.putItem(ctx, item{kind: nextKind, data: space})
	})
}

// dropSpaces removes the classes of all spaces but one.
func (e *Engine) dropSpaces(ctx context.Context, used string) error {
	var classes []*models.Class
	err := e.wire.try(ctx, func(ctx context.Context) error {
		return e.wire.ask(func(c *client.Client) error {
			all, err := c.Schema().Getter().Do(ctx)
			if err == nil {
				classes = all.Classes
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	for _, c := range classes {
		// Those of a library whose prefix begins with this one's are longer.
		if strings.HasPrefix(c.Class, e.wire.at.prefix+"Chunk") && len(c.Class) == len(e.wire.at.chunks("")) && c.Class != e.wire.at.chunks(used) {
			if err := e.wire.drop(ctx, c.Class); err != nil {
				return err
			}
		}
	}
	return nil
}

// documentsAfter gives some documents behind one, by the ids of their objects;
// last is where to go on, and end says that there are no more.
func (e *Engine) documentsAfter(ctx context.Context, after string) (page []*document, last string, end bool, err error) {
	q := query(e.wire.at.documents(), nil, respacePage, "data")
	q.After = after
	rows, err := e.wire.search(ctx, q)
	if err != nil {
		return nil, after, false, err
	}
	last = after
	for _, r := range rows {
		d, err := readDocument(r)
		if err != nil {
			return nil, after, false, err
		}
		page, last = append(page, d), r.id
	}
	return page, last, len(rows) < respacePage, nil
}

// missing gives the ids of up to most chunks of documents that have no vector of
// a space.
func (e *Engine) missing(ctx context.Context, space string, of []*document, most int) (ids []string, err error) {
	type chunk struct{ id, object string }
	var chunks []chunk
	for _, d := range of {
		for n := range d.Chunks {
			chunks = append(chunks, chunk{retrieve.ChunkID(d.ID, n+1), d.chunkID(n + 1)})
		}
	}
	for part := range slices.Chunk(chunks, groupPage) {
		objects := make([]string, len(part))
		for i, c := range part {
			objects[i] = c.object
		}
		rows, err := e.wire.search(ctx, query(e.wire.at.chunks(space), byID(objects...), len(objects)))
		if err != nil {
			return nil, err
		}
		there := make(map[string]bool, len(rows))
		for _, r := range rows {
			there[r.id] = true
		}
		for _, c := range part {
			if !there[c.object] {
				if ids = append(ids, c.id); len(ids) == most {
					return ids, nil
				}
			}
		}
	}
	return ids, nil
}

// Prepared counts the chunks that have a vector of the new space, and all.
func (e *Engine) Prepared(ctx context.Context, space string) (done, total int, err error) {
	var next string
	g, limit := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		total, _, err = e.sums(limit)
		return err
	})
	g.Go(func() error {
		_, err := e.wire.item(limit, nextKind, "", &next)
		if err != nil || next != space {
			return err
		}
		reply, err := e.aggregate(limit, &pb.AggregateRequest{Collection: e.wire.at.chunks(space), ObjectsCount: true})
		if err != nil {
			return fmt.Errorf("%s: %w", e.wire.host(), plain(err))
		}
		done = int(reply.GetSingleResult().GetObjectsCount())
		return nil
	})
	if err := g.Wait(); err != nil {
		return 0, 0, fmt.Errorf("count the prepared vectors: %w", err)
	}
	return min(done, total), total, nil // of replaced documents some are left
}

// AddVectors keeps vectors of the new space beside those in use.
func (e *Engine) AddVectors(ctx context.Context, space string, chunks []retrieve.Candidate, vectors [][]float32) error {
	if err := e.addVectors(ctx, space, chunks, vectors); err != nil {
		return fmt.Errorf("keep vectors of %s: %w", space, err)
	}
	return nil
}

func (e *Engine) addVectors(ctx context.Context, space string, chunks []retrieve.Candidate, vectors [][]float32) error {
	if len(chunks) != len(vectors) {
		return fmt.Errorf("%d vectors for %d chunks", len(vectors), len(chunks))
	}
	if len(chunks) == 0 {
		return nil
	}
	if err := e.wire.awaitNodes(ctx); err != nil {
		return err
	}
	var next string
	if _, err := e.wire.item(ctx, nextKind, "", &next); err != nil {
		return err
	}
	if next != space {
		return fmt.Errorf("another process prepares the space %q: run one re-embedding at a time", next)
	}
	if err := e.checkDims(ctx, space, len(vectors[0])); err != nil {
		return err
	}
	units := make(map[string][]float32, len(chunks))
	given := make(map[string]string, len(chunks))
	ids, documents := make([]string, len(chunks)), make([]string, len(chunks))
	for i, c := range chunks {
		unit, err := retrieve.Unit(vectors[i], len(vectors[0]))
		if err != nil {
			return fmt.Errorf("the vector of %s: %w", c.ID, err)
		}
		ids[i], documents[i], units[c.ID], given[c.ID] = c.ID, documentID(c.Document), unit, ingest.EmbeddingText(c.Title, c.Chunk)
	}
	slices.Sort(documents)
	now, err := e.documents(ctx, slices.Compact(documents))
	if err != nil {
		return err
	}
	used, err := e.Candidates(ctx, ids)
	if err != nil {
		return err
	}
	var objects []*pb.BatchObject
	for _, c := range used {
		d := now[documentID(c.Document)]
		if d == nil || c.Digest != d.Digest || ingest.EmbeddingText(c.Title, c.Chunk) != given[c.ID] {
			continue
		}
		counts, length := c.Terms, c.Length
		if counts == nil {
			counts, length = retrieve.CountTerms(given[c.ID])
		}
		o, err := d.chunkObject(e.wire.at.chunks(space), &c.Chunk, counts, length, units[c.ID])
		if err != nil {
			return err
		}
		objects = append(objects, o)
	}
	if err := e.wire.put(ctx, objects...); err != nil {
		return err
	}
	return e.wire.acknowledged(ctx)
}

// SwitchSpace puts the prepared vectors in place of those in use, all at once.
func (e *Engine) SwitchSpace(ctx context.Context, space string) (switched bool, err error) {
	if switched, err = e.switchSpace(ctx, space); err != nil {
		return switched, fmt.Errorf("change to the embedding space %s: %w", space, err)
	}
	return switched, nil
}

func (e *Engine) switchSpace(ctx context.Context, space string) (switched bool, err error) {
	var next string
	if _, err := e.wire.item(ctx, nextKind, "", &next); err != nil || next != space {
		return false, err
	}
	// Most of it is done while others write, and not again if nobody did.
	before, err := e.Revision(ctx)
	if err != nil {
		return false, err
	}
	if whole, err := e.prepared(ctx, space); err != nil || !whole {
		return false, err
	}
	old := ""
	err = e.exclusive(ctx, task{Name: spaceTask, Freeze: true}, func(ctx context.Context, h *hold) (bool, error) {
		if err := h.quiet(ctx, task.frozen); err != nil {
			return false, err
		}
		if old, err = e.readSpace(ctx); err != nil {
			return false, err
		}
		if _, err := e.wire.item(ctx, nextKind, "", &next); err != nil || next != space || old == space {
			return false, err
		}
		now, err := e.Revision(ctx)
		if err != nil {
			return false, err
		}
		if now != before {
			if whole, err := e.prepared(ctx, space); err != nil || !whole {
				return false, err
			}
		}
		limit, cancel, err := h.sure(ctx)
		if err != nil {
			return false, err
		}
		defer cancel()
		if err := e.wire.putItem(limit, item{kind: spaceKind, data: space}); err != nil {
			return true, err
		}
		switched = true
		return true, e.wire.removeItems(ctx, nextKind, "")
	})
	if err != nil || !switched {
		return switched, err
	}
	if old != "" {
		e.classes.Delete(old)
		err = e.wire.drop(ctx, e.wire.at.chunks(old))
	}
	return true, err
}

// prepared says whether all chunks have a vector of a space, and removes those of
// documents that have been replaced since they were made.
func (e *Engine) prepared(ctx context.Context, space string) (bool, error) {
	chunks := 0
	for at, end := "", false; !end; {
		var page []*document
		var err error
		if page, at, end, err = e.documentsAfter(ctx, at); err != nil {
			return false, err
		}
		if missing, err := e.missing(ctx, space, page, 1); err != nil || len(missing) > 0 {
			return false, err
		}
		for _, d := range page {
			chunks += d.Chunks
		}
	}
	class := e.wire.at.chunks(space)
	reply, err := e.aggregate(ctx, &pb.AggregateRequest{Collection: class, ObjectsCount: true})
	if err != nil {
		return false, fmt.Errorf("%s: %w", e.wire.host(), plain(err))
	}
	if int(reply.GetSingleResult().GetObjectsCount()) == chunks {
		return true, nil
	}
	var page []row
	var gone []string
	look := func() error {
		docs, err := e.documents(ctx, documentsOf(page))
		for _, r := range page {
			if d := docs[r.text("document")]; d == nil || d.Generation != r.text("generation") {
				gone = append(gone, r.id)
			}
		}
		page = nil
		return err
	}
	err = e.wire.each(ctx, class, listPage, func(r row) error {
		if page = append(page, r); len(page) < listPage {
			return nil
		}
		return look()
	}, "document", "generation")
	if err = errors.Join(err, look()); err != nil {
		return false, err
	}
	for part := range slices.Chunk(gone, groupPage) {
		if err := e.wire.remove(ctx, class, byID(part...)); err != nil {
			return false, err
		}
	}
	return true, nil
}
