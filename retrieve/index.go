package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"ibid/ingest"
)

// Options tune an [Index]. The zero value is what Ibid uses.
type Options struct {
	// Candidates is how many chunks each of the two searches contributes to
	// fusion; 0 means [DefaultCandidates].
	Candidates int
	// Mode disables one of the two searches, to measure the other.
	Mode Mode
	// Reranker, if not nil, scores the best Reranked passages again; 0 means
	// [DefaultReranked].
	Reranker Reranker
	Reranked int
}

// DefaultReranked is the default of [Options.Reranked].
const DefaultReranked = 50

// DefaultCandidates is the default of [Options.Candidates].
const DefaultCandidates = 50

// A Mode selects the scores that order the passages.
type Mode int

// The modes.
const (
	Hybrid Mode = iota
	LexicalOnly
	DenseOnly
)

// lookAhead is the least number of chunks of a stored document that are read at
// a time.
const lookAhead = 64

// An Index searches the chunks of one [Engine] in the space of one [Embedder].
// It is safe for concurrent use, and an [ingest.Sink].
type Index struct {
	engine   Engine
	embedder Embedder
	opts     Options
	outlines outlines
	// settled is set once the stored vectors are known to be of this index's
	// space: from then on the engine itself refuses others.
	settled atomic.Bool
}

// NewIndex returns an index of the engine's documents. If the engine has vectors
// of another space, the error is a [*SpaceError]; [Reembed] resolves it. The
// caller must close the engine.
func NewIndex(ctx context.Context, e Engine, m Embedder, opts Options) (*Index, error) {
	if opts.Candidates <= 0 {
		opts.Candidates = DefaultCandidates
	}
	if opts.Reranked <= 0 {
		opts.Reranked = DefaultReranked
	}
	x := &Index{engine: e, embedder: m, opts: opts}
	if _, err := x.checkSpace(ctx); err != nil {
		return nil, err
	}
	return x, nil
}

// checkSpace reports whether anything is stored, in this index's space.
func (x *Index) checkSpace(ctx context.Context) (stored bool, err error) {
	space, err := x.engine.Space(ctx)
	if err != nil {
		return false, err
	}
	if space != "" && space != x.embedder.Space() {
		return false, &SpaceError{Stored: space, Wanted: x.embedder.Space()}
	}
	return space != "", nil
}

// Known returns what is stored of the root, by path, without damaged documents.
func (x *Index) Known(ctx context.Context, root ingest.Root) (map[string]ingest.Stored, error) {
	documents, err := x.engine.Documents(ctx, Filter{Root: root.Name})
	if err != nil {
		return nil, err
	}
	known := make(map[string]ingest.Stored, len(documents))
	for _, d := range documents {
		known[d.Path] = ingest.Stored{Digest: d.Digest, Reader: d.Meta[ingest.ReaderKey]}
	}
	return known, nil
}

// Listing returns what KeepListing stored last for the id; nil if there is none.
func (x *Index) Listing(ctx context.Context, id string) ([]byte, error) {
	return x.engine.Listing(ctx, id)
}

// KeepListing stores what was found in the archive or mail with the id.
func (x *Index) KeepListing(ctx context.Context, root ingest.Root, id string, listing []byte) error {
	return x.engine.KeepListing(ctx, root.Name, id, listing)
}

// Listings returns the ids in a root for which KeepListing was called.
func (x *Index) Listings(ctx context.Context, root ingest.Root) (ids []string, err error) {
	return x.engine.Listings(ctx, root.Name)
}

// Replace embeds the chunks and stores the document, replacing the one with its
// id.
func (x *Index) Replace(ctx context.Context, doc *ingest.Document, chunks []ingest.Chunk) error {
	store, err := x.Prepare(ctx, doc, chunks)
	if err != nil {
		return err
	}
	return store(ctx)
}

// Prepare does the part of Replace that does not change the engine: it embeds the
// chunks, except those that are already stored for the document with the same
// words under the same title and headings. store does the rest.
func (x *Index) Prepare(ctx context.Context, doc *ingest.Document, chunks []ingest.Chunk) (store func(context.Context) error, err error) {
	stored := true
	if !x.settled.Load() {
		if stored, err = x.checkSpace(ctx); err != nil {
			return nil, err
		}
	}
	texts := make([]string, len(chunks))
	for i, c := range chunks {
		texts[i] = ingest.EmbeddingText(doc.Title, c)
	}
	vectors := make([][]float32, len(chunks))
	if stored {
		if vectors, err = x.storedVectors(ctx, doc.ID, texts); err != nil {
			return nil, fmt.Errorf("read the vectors of %s: %w", doc.ID, x.ofSpace(ctx, err))
		}
	}
	if err := embedMissing(ctx, x.embedder, texts, vectors); err != nil {
		return nil, fmt.Errorf("embed %s: %w", doc.ID, err)
	}
	put, err := x.engine.Prepare(x.embedder.Space(), doc, chunks, vectors)
	if err != nil {
		return nil, x.ofSpace(ctx, err)
	}
	return func(ctx context.Context) error {
		defer x.outlines.forget()
		if x.settled.Load() {
			err := put(ctx)
			if other := (*SpaceError)(nil); !errors.As(err, &other) {
				return err
			}
			// The space may have changed, or have been chosen again for a library
			// that was emptied.
			x.settled.Store(false)
		}
		stored, err := x.checkSpace(ctx)
		if err != nil {
			return err
		}
		if !stored {
			if err := x.engine.SetSpace(ctx, x.embedder.Space()); err != nil {
				return err
			}
		}
		if err := put(ctx); err != nil {
			return err
		}
		x.settled.Store(true)
		return nil
	}, nil
}

// Writers returns how many documents are best stored at a time.
func (x *Index) Writers() int {
	if e, ok := x.engine.(Remote); ok {
		return e.Writers()
	}
	return 1
}

// storedVectors returns a row for each text: the vector that is stored for the
// same text of the document, or nil.
func (x *Index) storedVectors(ctx context.Context, document string, texts []string) ([][]float32, error) {
	// Candidates first applies recent changes, which is slow; a new document has
	// no candidates.
	if _, err := x.engine.Excerpt(ctx, document, 0, 0); errors.Is(err, ErrNotFound) {
		return make([][]float32, len(texts)), nil
	} else if err != nil {
		return nil, err
	}
	found := make(map[string][]float32)
	for n := 1; ; {
		ids := make([]string, max(len(texts), lookAhead))
		for i := range ids {
			ids[i] = fmt.Sprintf("%s#%d", document, n+i)
		}
		chunks, err := x.engine.Candidates(ctx, ids)
		if err != nil {
			return nil, err
		}
		for _, c := range chunks {
			found[ingest.EmbeddingText(c.Title, c.Chunk)] = c.Vector
		}
		if len(chunks) == 0 {
			break
		}
		n += len(ids)
	}
	rows := make([][]float32, len(texts))
	for i, text := range texts {
		rows[i] = found[text]
	}
	return rows, nil
}

// embedMissing fills in the rows that are nil.
func embedMissing(ctx context.Context, m Embedder, texts []string, rows [][]float32) error {
	var missing []string
	for i, row := range rows {
		if row == nil {
			missing = append(missing, texts[i])
		}
	}
	vectors, err := embed(ctx, m, missing)
	if err != nil {
		return err
	}
	for i, row := range rows {
		if row == nil {
			rows[i], vectors = vectors[0], vectors[1:]
		}
	}
	return nil
}

func embed(ctx context.Context, m Embedder, texts []string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	rows, err := m.Embed(ctx, texts)
	if err == nil && len(rows) != len(texts) {
		err = fmt.Errorf("the embedder %s gave %d rows for %d texts", m.Space(), len(rows), len(texts))
	}
	return rows, err
}

// Rename gives the stored document from the id, root, path, title and metadata
// of to. Its vectors stay unless its title changes, which is embedded with each
// chunk: then it is stored again under to's id and deleted under its own. If
// another server has already renamed it, Rename does nothing.
func (x *Index) Rename(ctx context.Context, from string, to *ingest.Document) error {
	err := x.rename(ctx, from, to)
	if errors.Is(err, ErrNotFound) {
		there, look := x.engine.Documents(ctx, Filter{Document: to.ID})
		if look == nil && len(there) == 1 && there[0].Digest == to.Digest {
			return nil
		}
	}
	return err
}

func (x *Index) rename(ctx context.Context, from string, to *ingest.Document) error {
	stored, err := x.engine.Documents(ctx, Filter{Document: from})
	if err != nil {
		return err
	}
	if len(stored) != 1 || stored[0].Title == to.Title || stored[0].Chunks == 0 {
		return x.engine.Rename(ctx, from, to)
	}
	doc, err := x.engine.Document(ctx, from)
	if err != nil {
		return err
	}
	ids := make([]string, stored[0].Chunks)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s#%d", from, i+1)
	}
	found, err := x.engine.Candidates(ctx, ids)
	if err != nil {
		return err
	}
	if len(found) < len(ids) || doc.Digest != to.Digest {
		return fmt.Errorf("rename %s to %s: it has changed meanwhile; ingest its folder again", from, to.ID)
	}
	doc.ID, doc.Root, doc.Path, doc.Title, doc.Meta = to.ID, to.Root, to.Path, to.Title, to.Meta
	chunks := make([]ingest.Chunk, len(found))
	for i, c := range found {
		chunks[i] = c.Chunk
		chunks[i].ID, chunks[i].Document = fmt.Sprintf("%s#%d", to.ID, i+1), to.ID
	}
	if err := x.Replace(ctx, doc, chunks); err != nil || to.ID == from {
		return err
	}
	return x.engine.Delete(ctx, from)
}

// Delete removes a document and every trace of it.
func (x *Index) Delete(ctx context.Context, id string) error {
	defer x.outlines.forget()
	return x.engine.Delete(ctx, id)
}

// AddRoot returns the root stored for an absolute folder path, and creates it
// under a free name if there is none. An empty path means the root of uploads,
// an empty collection [ingest.DefaultCollection].
func (x *Index) AddRoot(ctx context.Context, path, collection string) (ingest.Root, error) {
	return x.engine.AddRoot(ctx, path, collection)
}

// Roots lists the roots by name.
func (x *Index) Roots(ctx context.Context) ([]ingest.Root, error) {
	return x.engine.Roots(ctx)
}

// ForgetRoot removes a root with all its documents and returns their number. An
// unknown name is [ErrNotFound].
func (x *Index) ForgetRoot(ctx context.Context, name string) (documents int, err error) {
	defer x.outlines.forget()
	return x.engine.DeleteRoot(ctx, name)
}

// Document returns a stored document with its text; [ErrNotFound] if there is none.
func (x *Index) Document(ctx context.Context, id string) (*ingest.Document, error) {
	return x.engine.Document(ctx, id)
}

// Documents lists the stored documents, ordered by id, without texts.
func (x *Index) Documents(ctx context.Context, f Filter) ([]DocumentInfo, error) {
	return x.engine.Documents(ctx, f)
}

// Holds reports whether any stored document passes the filter.
func (x *Index) Holds(ctx context.Context, f Filter) (bool, error) {
	return x.engine.Holds(ctx, f)
}

// ErrEmptyQuestion reports that a question has no text.
var ErrEmptyQuestion = errors.New("the question is empty: ask something in a few words")

// ofSpace returns a [*SpaceError] in place of an error that it caused: the space
// changed while a question or a document was being embedded.
func (x *Index) ofSpace(ctx context.Context, err error) error {
	wrong := (*SpaceError)(nil)
	if _, now := x.checkSpace(ctx); errors.As(now, &wrong) {
		return now
	}
	return err
}

// Search returns the passages nearest to the question, best first, without
// repeated texts; neighbouring chunks of one section are one passage. The same
// question over the same documents returns the same passages in the same order.
func (x *Index) Search(ctx context.Context, q Query) ([]Passage, error) {
	if strings.TrimSpace(q.Text) == "" {
		return nil, ErrEmptyQuestion
	}
	k := q.K
	if k <= 0 {
		k = DefaultK
	}
	if !(q.Diversity >= 0 && q.Diversity < 1) {
		return nil, fmt.Errorf("search: the diversity %g is not between 0 (none) and 1", q.Diversity)
	}
	if stored, err := x.checkSpace(ctx); err != nil || !stored {
		return nil, err
	}
	rows, err := x.embedder.Embed(ctx, []string{q.Text})
	if err != nil {
		return nil, fmt.Errorf("embed the question: %w", err)
	}
	if len(rows) != 1 {
		return nil, fmt.Errorf("embed the question: the embedder %s gave %d rows for one text", x.embedder.Space(), len(rows))
	}
	vector, words := rows[0], question(q.Text)
	terms := distinct(flat(words))
	limit := max(k, x.opts.Candidates)
	for attempt := 0; ; {
		ids, stats, err := x.find(ctx, vector, terms, limit, q.Filter)
		if err != nil {
			return nil, fmt.Errorf("search: %w", x.ofSpace(ctx, err))
		}
		candidates, err := x.engine.Candidates(ctx, ids)
		if err != nil {
			return nil, fmt.Errorf("search: %w", x.ofSpace(ctx, err))
		}
		// A writer deleted what was just found: search again, a few times, so
		// that its new words are found.
		if len(candidates) < len(ids) && attempt < 2 {
			attempt++
			continue
		}
		scored, err := x.score(candidates, vector, words, stats)
		if err != nil {
			return nil, x.ofSpace(ctx, err)
		}
		fuse(scored, vector, x.weight(q.Text))
		choose := choose
		if q.Apart {
			choose = apart
		}
		// Repeated and joined chunks may leave fewer than k passages: search
		// deeper.
		if len(ids) >= limit && limit < maxCandidates && len(choose(scored, k, 0)) < k {
			limit = min(furtherDown*limit, maxCandidates)
			continue
		}
		if scored, err = x.rerank(ctx, q, k, scored); err != nil {
			return nil, err
		}
		return x.passages(ctx, choose(scored, k, q.Diversity), k)
	}
}

// A search that has too few passages looks furtherDown times as deep, at most at
// maxCandidates chunks.
const (
	furtherDown   = 4
	maxCandidates = 3200
)

// passages turns each group into a passage, at most k. A group whose document
// has changed since its chunks were read is split into its chunks.
func (x *Index) passages(ctx context.Context, groups []group, k int) ([]Passage, error) {
	var out []Passage
	for _, g := range groups {
		text := ""
		if len(g.members) > 1 {
			var err error
			text, err = x.engine.Excerpt(ctx, g.first().Document, g.first().Start, g.last().End)
			if err != nil && !errors.Is(err, ErrNotFound) {
				return nil, fmt.Errorf("search: %w", err)
			}
			if err != nil || !g.fits(text) {
				for _, m := range g.members {
					out = append(out, m.Passage)
				}
				continue
			}
		}
		out = append(out, g.passage(text))
	}
	out = out[:min(k, len(out))]
	return out, x.place(ctx, out)
}

// weight returns the share of the dense score in the mixture for a question.
func (x *Index) weight(question string) float64 {
	switch x.opts.Mode {
	case LexicalOnly:
		return 0
	case DenseOnly:
		return 1
	}
	if v, ok := x.embedder.(Vocabulary); ok {
		return denseWeight * v.Known(question)
	}
	return denseWeight
}

// find runs both searches in parallel and returns the union of the ids.
func (x *Index) find(ctx context.Context, vector []float32, terms []string, k int, f Filter) (ids []string, stats Stats, err error) {
	var near, matching []string
	g, ctx := errgroup.WithContext(ctx)
	if x.opts.Mode != LexicalOnly {
		g.Go(func() (err error) {
			near, err = x.engine.Dense(ctx, vector, k, f)
			return err
		})
	}
	if x.opts.Mode != DenseOnly && len(terms) > 0 {
		g.Go(func() (err error) {
			matching, err = x.engine.Lexical(ctx, terms, k, f)
			return err
		})
	}
	g.Go(func() (err error) {
		stats, err = x.engine.Stats(ctx, terms)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, Stats{}, err
	}
	return distinct(append(near, matching...)), stats, nil
}

// score computes both scores of every candidate, no matter which search found it.
func (x *Index) score(candidates []Candidate, vector []float32, words []word, stats Stats) ([]scored, error) {
	lexical := newLexicalScorer(words, stats)
	out := make([]scored, len(candidates))
	for i, c := range candidates {
		if len(c.Vector) != len(vector) {
			return nil, fmt.Errorf("score %s: its vector has %d dimensions, the question's has %d: run 'ibid reembed'", c.ID, len(c.Vector), len(vector))
		}
		if c.Terms == nil {
			c.Terms, c.Length = CountTerms(ingest.EmbeddingText(c.Title, c.Chunk))
		}
		s := Scores{Dense: dot(c.Vector, vector)}
		lexical.score(&s, c.Terms, c.Length)
		out[i].Passage = Passage{Chunk: c.Chunk, Root: c.Root, Path: c.Path, Title: c.Title, Format: c.Format, Digest: c.Digest, Meta: c.Meta, Scores: s}
		out[i].vector = c.Vector
	}
	return out, nil
}

// dot sums in float64, in the order of the components, so that the result is the
// same on every machine.
func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(float64(a[i]) * float64(b[i])) // the conversion forbids a fused multiply-add
	}
	return min(1, max(-1, sum))
}

func byScore(a, b scored) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
}
