package retrieve

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"ibid/ingest"
)

// A Copy copies documents with their vectors from one [State] to another, which
// may have other documents. It skips what the target already has, so that an
// interrupted copy resumes.
type Copy struct {
	From, To State
	// Collection is the only one to copy; empty means all.
	Collection string

	// Planned is called with the number of documents to send and of those that the
	// target has; Sent is called for each document, from several goroutines. Either
	// may be nil.
	Planned func(send, there int)
	Sent    func()

	space string
	roots []ingest.Root

	mu     sync.Mutex
	failed map[string]error // the documents that could not be copied
	sent   int
}

// A CopyReport is the result of a [Copy].
type CopyReport struct {
	Space     string       `json:"space"`
	Documents int          `json:"documents"` // of the source
	Chunks    int          `json:"chunks"`
	Sent      int          `json:"sent"` // documents that the target did not have
	Roots     []CopiedRoot `json:"roots"`
	// Failed are the documents that could not be copied, by id; Differences those
	// that the target lacks or has in another version.
	Failed      []CopyTrouble `json:"failed"`
	Differences []CopyTrouble `json:"differences"`
}

// A CopiedRoot is one root after a copy.
type CopiedRoot struct {
	ingest.Root
	Documents int `json:"documents"` // of the source, without those that failed
	Chunks    int `json:"chunks"`
	// OnlyTarget is the number of documents of this root that the source lacks.
	OnlyTarget int `json:"beside"`
}

// A CopyTrouble is a document that was not copied, or not correctly.
type CopyTrouble struct {
	Document string `json:"document"`
	Reason   string `json:"reason"`
}

const (
	copyWorkers = 8
	// copyMemory is about how many bytes of documents are in memory at a time; a
	// larger document is copied alone.
	copyMemory = 256 << 20
	// copyTries is how often an inconsistent document is read: it may be replaced
	// meanwhile.
	copyTries = 3
)

// ErrCopyChanging reports that the source changed during the copy, so that the
// target differs from it.
var ErrCopyChanging = errors.New("the source changed while it was copied: " +
	"the copied documents are complete; run the copy again for the changes since")

// ErrCopyRefused reports that the target cannot store anything of the source.
var ErrCopyRefused = errors.New("nothing was copied")

// Run copies the documents and then compares what both states list: titles,
// digests, sizes and numbers of chunks. Differences are not an error.
func (c *Copy) Run(ctx context.Context) (report CopyReport, err error) {
	c.failed, c.sent = make(map[string]error), 0
	revision, err := c.From.Revision(ctx)
	if err == nil {
		c.space, err = c.From.Space(ctx)
	}
	if err != nil {
		return report, fmt.Errorf("read the source: %w", err)
	}
	if err := c.open(ctx); err != nil {
		return report, err
	}
	if err := c.transfer(ctx); err != nil {
		return report, err
	}
	if report, err = c.compare(ctx); err != nil {
		return report, err
	}
	now, err := c.From.Revision(ctx)
	if err != nil {
		return report, fmt.Errorf("read the source: %w", err)
	}
	if now != revision && len(report.Differences) > 0 {
		return report, ErrCopyChanging
	}
	return report, nil
}

// open prepares the target: it must have the same space, or none yet, and gets
// the same roots.
func (c *Copy) open(ctx context.Context) error {
	var err error
	if c.roots, err = RootsToCopy(ctx, c.From, c.Collection); err != nil {
		return err
	}
	there, err := c.To.Roots(ctx)
	if err != nil {
		return fmt.Errorf("read the target: %w", err)
	}
	// A state that names roots itself gives the shorter names first.
	slices.SortFunc(c.roots, func(a, b ingest.Root) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), strings.Compare(a.Name, b.Name))
	})
	var refused []error
	for _, r := range c.roots {
		if _, err := CheckRoot(r, there); err != nil {
			refused = append(refused, err)
		}
	}
	if len(refused) > 0 {
		return fmt.Errorf("%w: the target has other folders under these names: %w: "+
			"copy to another store, or run 'ibid forget' on the target for names that it no longer needs", ErrCopyRefused, errors.Join(refused...))
	}
	space, err := c.To.Space(ctx)
	if err != nil {
		return fmt.Errorf("read the target: %w", err)
	}
	if c.space != "" && space != "" && space != c.space {
		return fmt.Errorf("%w: the source is embedded with %s and the target with %s, and their vectors cannot be compared: "+
			"run 'ibid reembed' on one of them first, or copy to another store", ErrCopyRefused, c.space, space)
	}
	for _, r := range c.roots {
		if err := c.To.KeepRoot(ctx, r); err != nil {
			return fmt.Errorf("prepare the target: %w", err)
		}
	}
	return nil
}

// RootsToCopy returns the roots of a collection, or all roots if it is empty. For
// an unknown collection the error is [ErrNotFound] and names the existing ones.
func RootsToCopy(ctx context.Context, from State, collection string) ([]ingest.Root, error) {
	all, err := from.Roots(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the source: %w", err)
	}
	if collection == "" {
		return all, nil
	}
	var roots []ingest.Root
	var there []string
	for _, r := range all {
		there = append(there, r.Collection)
		if r.Collection == collection {
			roots = append(roots, r)
		}
	}
	slices.Sort(there)
	switch there = slices.Compact(there); {
	case len(roots) > 0:
		return roots, nil
	case len(there) == 0:
		return nil, fmt.Errorf("collection %q %w in the source, which is empty", collection, ErrNotFound)
	}
	return nil, fmt.Errorf("collection %q %w in the source, which has: %s", collection, ErrNotFound, strings.Join(there, ", "))
}

// transfer sends the documents that the target lacks or has in another version.
func (c *Copy) transfer(ctx context.Context) error {
	var send []DocumentInfo
	there := 0
	for _, r := range c.roots {
		source, target, err := c.lists(ctx, r)
		if err != nil {
			return err
		}
		for _, d := range source {
			if has, ok := target[d.ID]; ok && sameInfo(d, has) {
				there++
			} else {
				send = append(send, d)
			}
		}
	}
	if c.Planned != nil {
		c.Planned(len(send), there)
	}
	if err := c.send(ctx, send); err != nil {
		return err
	}
	for _, r := range c.roots {
		if err := c.listings(ctx, r); err != nil {
			return fmt.Errorf("copy the lists of archives of %s: %w", r.Name, err)
		}
	}
	return nil
}

// lists returns the documents of a root: those of the source in order, those of
// the target by id.
func (c *Copy) lists(ctx context.Context, r ingest.Root) (source []DocumentInfo, target map[string]DocumentInfo, err error) {
	if source, err = c.From.Documents(ctx, Filter{Root: r.Name}); err != nil {
		return nil, nil, fmt.Errorf("list the documents of %s in the source: %w", r.Name, err)
	}
	list, err := c.To.Documents(ctx, Filter{Root: r.Name})
	if err != nil {
		return nil, nil, fmt.Errorf("list the documents of %s in the target: %w", r.Name, err)
	}
	target = make(map[string]DocumentInfo, len(list))
	for _, d := range list {
		target[d.ID] = d
	}
	return source, target, nil
}

func sameInfo(a, b DocumentInfo) bool {
	return a.Collection == b.Collection && a.Chunks == b.Chunks && a.Pages == b.Pages && a.Bytes == b.Bytes &&
		a.Root == b.Root && a.Path == b.Path && a.Title == b.Title && a.Format == b.Format && a.Digest == b.Digest &&
		maps.Equal(a.Meta, b.Meta)
}

// send sends documents, several at a time.
func (c *Copy) send(ctx context.Context, documents []DocumentInfo) error {
	room := semaphore.NewWeighted(copyMemory)
	group, sending := errgroup.WithContext(ctx)
	group.SetLimit(copyWorkers)
	for _, d := range documents {
		// A chunk is in memory twice, with vectors of about a thousand dimensions.
		need := min(copyMemory, int64(3*d.Bytes+d.Chunks*(8<<10)))
		if room.Acquire(sending, need) != nil {
			break // the group's error or the context's
		}
		group.Go(func() error {
			defer room.Release(need)
			if err := c.sendOne(sending, d.ID); err != nil {
				return err
			}
			if c.Sent != nil {
				c.Sent()
			}
			return nil
		})
	}
	return cmp.Or(group.Wait(), ctx.Err())
}

// sendOne copies one document. One that the source cannot return whole is
// recorded as failed; an error of the target ends the copy.
func (c *Copy) sendOne(ctx context.Context, id string) error {
	doc, chunks, vectors, err := c.readWhole(ctx, id)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrNotFound): // deleted meanwhile
		return nil
	case err != nil:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed[id] = fmt.Errorf("the source has only parts of it: %w", err)
		return nil
	}
	if err := c.To.Replace(ctx, c.space, doc, chunks, vectors); err != nil {
		return fmt.Errorf("store %s: %w", id, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent++
	return nil
}

// readWhole reads a document with its chunks and their vectors. It may be replaced
// meanwhile, so one whose parts do not fit together is read again.
func (c *Copy) readWhole(ctx context.Context, id string) (doc *ingest.Document, chunks []ingest.Chunk, vectors [][]float32, err error) {
	for range copyTries {
		if doc, err = c.From.Document(ctx, id); err != nil {
			break
		}
		if chunks, vectors, err = c.From.DocumentChunks(ctx, id); err != nil {
			continue
		}
		if _, err = CheckDocument(doc, chunks, vectors); err == nil || ctx.Err() != nil {
			break
		}
	}
	return doc, chunks, vectors, err
}

// listings copies the listings of the archives and mails of a root, except
// those with a document that failed: they must be read again.
func (c *Copy) listings(ctx context.Context, root ingest.Root) error {
	ids, err := c.From.Listings(ctx, root)
	if err != nil {
		return err
	}
	for _, id := range ids {
		broken := false
		for document := range c.failed {
			broken = broken || document == id || strings.HasPrefix(document, id+"/")
		}
		if broken {
			continue
		}
		listing, err := c.From.Listing(ctx, id)
		if err != nil {
			return err
		}
		there, err := c.To.Listing(ctx, id)
		if err != nil {
			return err
		}
		if listing == nil || bytes.Equal(listing, there) {
			continue
		}
		if err := c.To.KeepListing(ctx, root, id, listing); err != nil {
			return err
		}
	}
	return nil
}

// compare lists what both states have by root.
func (c *Copy) compare(ctx context.Context) (CopyReport, error) {
	report := CopyReport{Space: c.space, Sent: c.sent, Roots: []CopiedRoot{}, Failed: []CopyTrouble{}, Differences: []CopyTrouble{}}
	for _, id := range slices.Sorted(maps.Keys(c.failed)) {
		report.Failed = append(report.Failed, CopyTrouble{id, c.failed[id].Error()})
	}
	for _, r := range c.roots {
		source, target, err := c.lists(ctx, r)
		if err != nil {
			return report, err
		}
		root := CopiedRoot{Root: r}
		for _, d := range source {
			has, ok := target[d.ID]
			delete(target, d.ID)
			if c.failed[d.ID] != nil {
				continue
			}
			root.Documents, root.Chunks = root.Documents+1, root.Chunks+d.Chunks
			if !ok {
				report.Differences = append(report.Differences, CopyTrouble{d.ID, "it is not in the target"})
			} else if !sameInfo(d, has) {
				report.Differences = append(report.Differences, CopyTrouble{d.ID, "its title, digest, size or metadata differ in the target"})
			}
		}
		root.OnlyTarget = len(target)
		report.Documents, report.Chunks = report.Documents+root.Documents, report.Chunks+root.Chunks
		report.Roots = append(report.Roots, root)
	}
	return report, nil
}
