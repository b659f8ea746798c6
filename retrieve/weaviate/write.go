package weaviate

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	pb "github.com/weaviate/weaviate/grpc/generated/protocol/v1"
	"golang.org/x/sync/errgroup"

	"ibid/ingest"
	"ibid/retrieve"
)

// Replace stores one document whole, in place of what had its id.
func (e *Engine) Replace(ctx context.Context, doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) error {
	store, err := e.Prepare("", doc, chunks, vectors)
	if err != nil {
		return err
	}
	return store(ctx)
}

// writers wait for the cluster more than they work.
const writers = 8

// Writers is how many documents are best stored at a time.
func (e *Engine) Writers() int { return writers }

// Prepare is Replace up to where the cluster is needed, which store is. An empty
// space is not compared.
func (e *Engine) Prepare(space string, doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32) (store func(context.Context) error, err error) {
	units, err := retrieve.CheckDocument(doc, chunks, vectors)
	if err == nil {
		err = isText(doc.ID, doc.Title, doc.Text)
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", doc.ID, err)
	}
	counts, lengths := make([][]retrieve.TermCount, len(chunks)), make([]int, len(chunks))
	for i, c := range chunks {
		counts[i], lengths[i] = retrieve.CountTerms(ingest.EmbeddingText(doc.Title, c))
	}
	return func(ctx context.Context) error {
		if err := e.store(ctx, space, doc, chunks, counts, lengths, units); err != nil {
			return fmt.Errorf("store %s: %w", doc.ID, err)
		}
		return nil
	}, nil
}

// newDocument makes the next generation of a document, without its text.
func newDocument(doc *ingest.Document, chunks []ingest.Chunk, lengths []int) *document {
	d := &document{Document: *doc, Generation: uuid.NewString(), Chunks: len(chunks), PageCount: len(doc.Pages), Bytes: len(doc.Text), Analysis: retrieve.Analysis}
	d.Text, d.Sections, d.Pages, d.Lines = "", nil, nil, nil
	for _, n := range lengths {
		d.Terms += n
	}
	return d
}

func (e *Engine) store(ctx context.Context, space string, doc *ingest.Document, chunks []ingest.Chunk, counts [][]retrieve.TermCount, lengths []int, units [][]float32) error {
	d := newDocument(doc, chunks, lengths)
	return e.exclusive(ctx, task{Name: documentTask + d.ID, Generation: d.Generation}, func(ctx context.Context, h *hold) (bool, error) {
		space, err := e.before(ctx, d, space, units)
		if err != nil {
			return false, err
		}
		objects, err := d.parts(e.wire.at, doc.Text, outline{doc.Sections, doc.Pages})
		if err != nil {
			return false, err
		}
		class := e.wire.at.chunks(space)
		for i := range chunks {
			o, err := d.chunkObject(class, &chunks[i], counts[i], lengths[i], units[i])
			if err != nil {
				return false, err
			}
			objects = append(objects, o)
		}
		old, err := e.putBeside(ctx, d.ID, objects)
		if err != nil {
			return true, err
		}
		return true, e.commit(ctx, h, d, old)
	})
}

// putBeside stores the parts and chunks of a generation, and reads meanwhile
// which document it is to replace: nil where there is none.
func (e *Engine) putBeside(ctx context.Context, id string, objects []*pb.BatchObject) (old *document, err error) {
	g, limit := errgroup.WithContext(ctx)
	g.Go(func() error { return e.wire.put(limit, objects...) })
	g.Go(func() (err error) {
		old, err = e.document(limit, id)
		if errors.Is(err, retrieve.ErrNotFound) {
			return nil
		}
		return err
	})
	return old, g.Wait()
}

// before reads what has to hold for a document to be stored: the space, and the
// collection of its root.
func (e *Engine) before(ctx context.Context, d *document, want string, units [][]float32) (space string, err error) {
	var root ingest.Root
	g, limit := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		space, err = e.readSpace(limit)
		return err
	})
	g.Go(func() error {
		known, err := e.wire.item(limit, rootKind, d.Root, &root)
		if err == nil && !known {
			err = fmt.Errorf("its root %q is not known: add the root first: %w", d.Root, retrieve.ErrNotFound)
		}
		return err
	})
	if err := g.Wait(); err != nil {
		return "", err
	}
	d.Collection = root.Collection
	if space == "" {
		return "", errors.New("the embedding space has not been set")
	}
	if want != "" && want != space {
		return "", &retrieve.SpaceError{Stored: space, Wanted: want}
	}
	if len(units) > 0 {
		return space, e.checkDims(ctx, space, len(units[0]))
	}
	return space, nil
}

// checkDims compares a number of dimensions with that of the stored vectors.
func (e *Engine) checkDims(ctx context.Context, space string, dims int) error {
	if known, ok := e.classes.Load(space); ok {
		if n, counted := known.(int); counted {
			if n != dims {
				return fmt.Errorf("its vectors have %d dimensions, and the stored ones have %d", dims, n)
			}
			return nil
		}
	}
	q := query(e.wire.at.chunks(space), nil, 1)
	q.Metadata.Vector = true
	rows, err := e.wire.search(ctx, q)
	if err != nil || len(rows) == 0 {
		return err
	}
	e.classes.Store(space, len(rows[0].vector))
	return e.checkDims(ctx, space, dims)
}

// commit makes a generation whose parts and chunks are stored the one that
// counts, and removes what it replaces.
func (e *Engine) commit(ctx context.Context, h *hold, d *document, old *document) error {
	o, err := d.object(e.wire.at)
	if err != nil {
		return err
	}
	if err := e.wire.present(ctx, 0); err != nil {
		return e.wire.away(ctx, err)
	}
	limit, cancel, err := h.sure(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if err := e.wire.put(limit, o); err != nil {
		if limit.Err() != nil {
			err = e.wire.away(context.WithoutCancel(ctx), err)
		}
		return err
	}
	e.seen.put(documentID(d.ID), d.Generation)
	if old == nil && h.alone {
		return nil
	}
	return e.clean(context.WithoutCancel(ctx), h, d.ID, d.Generation)
}

// clean removes all generations of a document but the one that counts, none
// where it is empty, and those that others have not done with.
func (e *Engine) clean(ctx context.Context, h *hold, id, counts string) error {
	conditions := []*pb.Filters{equal("document", documentID(id))}
	keep := func(generation string) {
		conditions = append(conditions, &pb.Filters{Operator: pb.Filters_OPERATOR_NOT_EQUAL, Target: on("generation"), TestValue: &pb.Filters_ValueText{ValueText: generation}})
	}
	if counts != "" {
		keep(counts)
	}
	for _, o := range h.others {
		if o.Name == documentTask+id && o.Generation != "" && o.Generation != counts {
			keep(o.Generation)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	if space := e.space.Load(); *space != "" {
		g.Go(func() error { return e.wire.remove(ctx, e.wire.at.chunks(*space), all(conditions...)) })
	}
	g.Go(func() error { return e.wire.remove(ctx, e.wire.at.parts(), all(conditions...)) })
	return g.Wait()
}

// Delete removes a document and every trace of it.
func (e *Engine) Delete(ctx context.Context, id string) error {
	if err := e.delete(ctx, id); err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	return nil
}

func (e *Engine) delete(ctx context.Context, id string) error {
	return e.exclusive(ctx, task{Name: documentTask + id}, func(ctx context.Context, h *hold) (bool, error) {
		if err := e.wire.remove(ctx, e.wire.at.items(), byID(idOf(listingKind, id))); err != nil {
			return false, err
		}
		if _, err := e.readSpace(ctx); err != nil {
			return false, err
		}
		_, err := e.document(ctx, id)
		if errors.Is(err, retrieve.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if err := e.erase(ctx, h, id); err != nil {
			return true, err
		}
		return true, e.forgetRecordsOf(context.WithoutCancel(ctx), documentID(id))
	})
}

// erase removes a document that this process has a hold on.
func (e *Engine) erase(ctx context.Context, h *hold, id string) error {
	limit, cancel, err := h.sure(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if err := e.wire.remove(limit, e.wire.at.documents(), byID(documentID(id))); err != nil {
		return err
	}
	return e.clean(context.WithoutCancel(ctx), h, id, "")
}

// Rename gives the stored document from the id, root, path, title and metadata
// of to, and keeps its text and vectors. What had the new id is replaced. For a
// moment both names are there.
func (e *Engine) Rename(ctx context.Context, from string, to *ingest.Document) error {
	if err := e.rename(ctx, from, to); err != nil {
		return fmt.Errorf("rename %s to %s: %w", from, to.ID, err)
	}
	return nil
}

func (e *Engine) rename(ctx context.Context, from string, to *ingest.Document) error {
	if to.ID != to.Root+"/"+to.Path {
		return fmt.Errorf("the new id is not its root %q and its path %q", to.Root, to.Path)
	}
	// Of two names the lower one is had first, so that nobody waits in a circle.
	first, second := from, to.ID
	if second < first {
		first, second = second, first
	}
	if from == to.ID {
		return e.exclusive(ctx, task{Name: documentTask + from}, func(ctx context.Context, h *hold) (bool, error) {
			return e.renamed(ctx, h, h, from, to)
		})
	}
	return e.exclusive(ctx, task{Name: documentTask + first}, func(ctx context.Context, h *hold) (changed bool, err error) {
		err = e.exclusive(ctx, task{Name: documentTask + second, within: true}, func(ctx context.Context, other *hold) (bool, error) {
			holdFrom, holdTo := h, other
			if first == to.ID {
				holdFrom, holdTo = other, h
			}
			changed, err = e.renamed(ctx, holdFrom, holdTo, from, to)
			return changed, err
		})
		return changed, err
	})
}

func (e *Engine) renamed(ctx context.Context, holdFrom, holdTo *hold, from string, to *ingest.Document) (changed bool, err error) {
	whole, err := e.Document(ctx, from)
	if err != nil {
		return false, err
	}
	if whole.Digest != to.Digest {
		return false, errContent
	}
	source, err := e.document(ctx, from)
	if err != nil {
		return false, err
	}
	space, err := e.readSpace(ctx)
	if err != nil {
		return false, err
	}
	ids := make([]string, source.Chunks)
	for i := range ids {
		ids[i] = retrieve.ChunkID(from, i+1)
	}
	found, err := e.candidates(ctx, space, ids)
	if err != nil {
		return false, err
	}
	if len(found) != len(ids) {
		return false, fmt.Errorf("only %d of its %d chunks are there: ingest it again", len(found), len(ids))
	}
	next := *whole
	next.ID, next.Root, next.Path, next.Title, next.Meta = to.ID, to.Root, to.Path, to.Title, to.Meta
	chunks, lengths := make([]ingest.Chunk, len(found)), make([]int, len(found))
	counts := make([][]retrieve.TermCount, len(found))
	for i, c := range found {
		chunks[i] = c.Chunk
		chunks[i].Document, chunks[i].ID = to.ID, retrieve.ChunkID(to.ID, i+1)
		counts[i], lengths[i] = retrieve.CountTerms(ingest.EmbeddingText(to.Title, chunks[i]))
	}
	d := newDocument(&next, chunks, lengths)
	if _, err := e.before(ctx, d, space, nil); err != nil {
		return false, err
	}
	holdTo.task.Generation = d.Generation
	if from != to.ID {
		holdTo.task.From, holdTo.task.FromGeneration = from, source.Generation
	}
	if err := holdTo.note(ctx); err != nil {
		return false, err
	}
	objects, err := d.parts(e.wire.at, whole.Text, outline{whole.Sections, whole.Pages})
	if err != nil {
		return false, err
	}
	class := e.wire.at.chunks(space)
	for i := range chunks {
		o, err := d.chunkObject(class, &chunks[i], counts[i], lengths[i], found[i].Vector)
		if err != nil {
			return false, err
		}
		objects = append(objects, o)
	}
	old, err := e.putBeside(ctx, to.ID, objects)
	if err != nil {
		return true, err
	}
	if err := e.commit(ctx, holdTo, d, old); err != nil || from == to.ID {
		return true, err
	}
	ctx = context.WithoutCancel(ctx)
	if err := e.erase(ctx, holdFrom, from); err != nil {
		return true, err
	}
	return true, (ledger{e}).single(ctx, recordsTask, func(ctx context.Context) error { return e.renameInRecords(ctx, from, to.ID) })
}

// DeleteRoot removes a root and all its documents. Where it is broken off, doing
// it again does the rest.
func (e *Engine) DeleteRoot(ctx context.Context, name string) (documents int, err error) {
	err = e.exclusive(ctx, task{Name: rootsTask, From: name}, func(ctx context.Context, h *hold) (changed bool, err error) {
		documents, changed, err = e.deleteRoot(ctx, h, name)
		return changed, err
	})
	if err != nil {
		return 0, fmt.Errorf("forget the root %q: %w", name, err)
	}
	return documents, nil
}

func (e *Engine) deleteRoot(ctx context.Context, h *hold, name string) (documents int, changed bool, err error) {
	var root ingest.Root
	known, err := e.wire.item(ctx, rootKind, name, &root)
	if err != nil {
		return 0, false, err
	}
	space, err := e.readSpace(ctx)
	if err != nil {
		return 0, false, err
	}
	ctx = context.WithoutCancel(ctx) // all of it goes, or nothing
	// Without its root nobody begins to store a document; who has begun may end.
	if err := e.wire.remove(ctx, e.wire.at.items(), byID(idOf(rootKind, name))); err != nil {
		return 0, true, err
	}
	prefix := documentTask + name + "/"
	if err := h.quiet(ctx, func(t task) bool { return len(t.Name) > len(prefix) && t.Name[:len(prefix)] == prefix }); err != nil {
		return 0, true, err
	}
	var ids []string
	err = e.list(ctx, retrieve.Filter{Root: name}, maxResults, func(d *document) { ids = append(ids, documentID(d.ID)) })
	if err != nil {
		return 0, true, err
	}
	if !known && len(ids) == 0 {
		return 0, false, retrieve.ErrNotFound
	}
	const some = 200
	for rest := ids; len(rest) > 0; {
		n := min(some, len(rest))
		if err := e.wire.remove(ctx, e.wire.at.documents(), byID(rest[:n]...)); err != nil {
			return 0, true, err
		}
		if space != "" {
			if err := e.wire.remove(ctx, e.wire.at.chunks(space), anyOf("document", rest[:n])); err != nil {
				return 0, true, err
			}
		}
		if err := e.wire.remove(ctx, e.wire.at.parts(), anyOf("document", rest[:n])); err != nil {
			return 0, true, err
		}
		rest = rest[n:]
	}
	if err := e.forgetRecordsOf(ctx, append(ids, rootLabel(name))...); err != nil {
		return 0, true, err
	}
	if err := (ledger{e}).forgetReplies(ctx); err != nil {
		return 0, true, err
	}
	return len(ids), true, e.wire.remove(ctx, e.wire.at.items(), equal("group", indexed("listings of "+name)))
}
