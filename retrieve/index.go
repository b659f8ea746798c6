package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ibid/ingest"
)

// Options configure an [Index]. Ibid uses the zero value by default.
type Options struct {
	// Mode can disable one of the two searches, for measuring the other.
	Mode Mode
	// Reranker, if not nil, scores the best candidates again.
	Reranker Reranker
	// Encoder, if not nil, scores the best candidates of each search again. Encoded, if not nil, is
	// the searcher of the encoder's space. It has the documents whose chunks are all encoded, and
	// finds them by the encoder's vectors.
	Encoder Encoder
	Encoded Searcher
	// Wait, if not 0, means that a [Feed] brings the searcher up to date. A search waits for it at
	// most that long and then warns with a [*LagError].
	Wait time.Duration
	// Feeding, if not nil, is called with the reason why a Feed has failed, and with nil after it
	// has recovered.
	Feeding func(error)
	// Exact makes the search index compare a question with every chunk, even if there are more than
	// two million.
	Exact bool
	// Rebuilding, if not nil, is called while the search index is rebuilt, with the number of
	// documents indexed so far and in total.
	Rebuilding func(done, total int)
	// Damaged, if not nil, is called before a damaged search index is rebuilt. It may be called
	// from several goroutines.
	Damaged func(error)
	// Unwritten, if not nil, is called on closing with the reason why the search index could not be
	// written. No data is lost.
	Unwritten func(error)
}

// DefaultCandidates is the number of chunks that each of the two searches contributes to fusion.
const DefaultCandidates = 50

// A Mode selects the scores that order the passages.
type Mode int

// The modes.
const (
	Hybrid Mode = iota
	LexicalOnly
	DenseOnly
)

// An Index searches the documents of one [State] through one [Searcher] in the
// space of one [Embedder]. It is safe for concurrent use, and an [ingest.Sink].
type Index struct {
	Catalog  // the state's
	state    State
	searcher Searcher
	embedder Embedder
	opts     Options
	outlines outlines
	follower *follower
	encoded  *follower    // updates the searcher of the encoder's space; may be nil
	changing sync.RWMutex // held while a search runs, and to change the encoder

	searching atomic.Int32 // number of running searches
	wanted    foundCounts
}

// NewIndex returns an index of the state's documents. If they are embedded in another space, the
// error is a [*SpaceError]; [Reembed] resolves it. The searcher must belong to the state's library
// and the embedder's space. The caller closes both.
func NewIndex(ctx context.Context, state State, searcher Searcher, m Embedder, opts Options) (*Index, error) {
	x := &Index{Catalog: state, state: state, searcher: searcher, embedder: m, opts: opts,
		follower: newFollower(state, searcher, m.Space(), opts)}
	x.setEncoder(opts.Encoder, opts.Encoded)
	return x, CheckSpace(ctx, state, m)
}

// CheckSpace returns a [*SpaceError] if the stored documents are embedded in another space than the
// embedder's.
func CheckSpace(ctx context.Context, state State, m Embedder) error {
	space, err := state.Space(ctx)
	if err == nil && space != "" && space != m.Space() {
		err = &SpaceError{Stored: space, Wanted: m.Space()}
	}
	return err
}

// StoredDocuments returns the undamaged stored documents of the root, by path.
func (x *Index) StoredDocuments(ctx context.Context, root ingest.Root) (map[string]ingest.Stored, error) {
	documents, err := x.state.Documents(ctx, Filter{Root: root.Name})
	if err != nil {
		return nil, err
	}
	known := make(map[string]ingest.Stored, len(documents))
	for _, d := range documents {
		known[d.Path] = ingest.Stored{Digest: d.Digest, Meta: d.Meta}
	}
	return known, nil
}

// Replace embeds the chunks and stores the document, replacing an earlier version with the same id.
func (x *Index) Replace(ctx context.Context, doc *ingest.Document, chunks []ingest.Chunk) error {
	store, err := x.Prepare(ctx, doc, chunks)
	if err != nil {
		return err
	}
	return store(ctx)
}

// Prepare does the part of Replace that does not change the state: it embeds the chunks, except
// those whose text is already stored. The returned function stores the document.
func (x *Index) Prepare(ctx context.Context, doc *ingest.Document, chunks []ingest.Chunk) (store func(context.Context) error, err error) {
	space := x.embedder.Space()
	texts, digests := make([]string, len(chunks)), make([]Digest, len(chunks))
	for i, c := range chunks {
		texts[i] = ingest.EmbeddingText(doc.Title, c)
		digests[i] = DigestOf(texts[i])
	}
	vectors, err := x.state.Vectors(ctx, space, digests)
	if err != nil {
		return nil, err
	}
	if _, err := embedMissing(ctx, x.embedder, texts, vectors); err != nil {
		return nil, fmt.Errorf("embedding it: %w", err)
	}
	return func(ctx context.Context) error {
		defer x.outlines.forget()
		return x.state.Replace(ctx, space, doc, chunks, vectors)
	}, nil
}

// embedMissing fills in the nil rows and returns their indexes.
func embedMissing(ctx context.Context, m Embedder, texts []string, rows [][]float32) (made []int, err error) {
	var missing []string
	for i, row := range rows {
		if row == nil {
			made, missing = append(made, i), append(missing, texts[i])
		}
	}
	vectors, err := embed(ctx, m, missing)
	if err != nil {
		return nil, err
	}
	for at, i := range made {
		rows[i] = vectors[at]
	}
	return made, nil
}

func embed(ctx context.Context, m Embedder, texts []string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	rows, err := m.Embed(ctx, texts)
	if err == nil && len(rows) != len(texts) {
		err = fmt.Errorf("the embedder %s returned %d rows for %d texts", m.Space(), len(rows), len(texts))
	}
	return rows, err
}

// Rename gives the stored document named from the id, root, path, title and metadata of to. Its
// vectors stay unless the title changes, because the title is embedded with each chunk; in that
// case the document is stored again under the new id and deleted under the old one. If another
// server has already renamed it, Rename does nothing.
func (x *Index) Rename(ctx context.Context, from string, to *ingest.Document) error {
	err := x.rename(ctx, from, to)
	if errors.Is(err, ErrNotFound) {
		there, look := x.state.Documents(ctx, Filter{Document: to.ID})
		if look == nil && len(there) == 1 && there[0].Digest == to.Digest {
			return nil
		}
	}
	return err
}

func (x *Index) rename(ctx context.Context, from string, to *ingest.Document) error {
	stored, err := x.state.Documents(ctx, Filter{Document: from})
	if err != nil {
		return err
	}
	if len(stored) != 1 || stored[0].Title == to.Title || stored[0].Chunks == 0 {
		return x.state.Rename(ctx, from, to)
	}
	doc, err := x.state.Document(ctx, from)
	if err != nil {
		return err
	}
	chunks, _, err := x.state.DocumentChunks(ctx, from)
	if err != nil {
		return err
	}
	if doc.Digest != to.Digest {
		return fmt.Errorf("rename %s to %s: it has changed meanwhile; ingest its folder again", from, to.ID)
	}
	doc.ID, doc.Root, doc.Path, doc.Title, doc.Meta = to.ID, to.Root, to.Path, to.Title, to.Meta
	for i := range chunks {
		chunks[i].ID, chunks[i].Document = ChunkID(to.ID, i+1), to.ID
	}
	if err := x.Replace(ctx, doc, chunks); err != nil || to.ID == from {
		return err
	}
	return x.state.Delete(ctx, from)
}

// Delete deletes a document and all data derived from it.
func (x *Index) Delete(ctx context.Context, id string) error {
	defer x.outlines.forget()
	return x.state.Delete(ctx, id)
}

// ErrEmptyQuestion reports that a question has no text.
var ErrEmptyQuestion = errors.New("the question is empty: ask something in a few words")

// Search returns the passages nearest to the question, best first, without repeated texts;
// neighbouring chunks of one section are one passage. The same question over the same documents
// returns the same passages in the same order, except that the encoder may have encoded more chunks
// meanwhile ([Options.Encoder]).
func (x *Index) Search(ctx context.Context, q Query) ([]Passage, error) {
	if strings.TrimSpace(q.Text) == "" {
		return nil, ErrEmptyQuestion
	}
	if q.K <= 0 {
		q.K = DefaultK
	}
	x.changing.RLock()
	defer x.changing.RUnlock()
	x.searching.Add(1)
	defer x.searching.Add(-1)
	var passages []Passage
	whole := false
	missing, err := x.follower.waitForFeed(ctx)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	err = x.follower.runSearch(ctx, func() error {
		stats, err := x.searcher.Stats(ctx, nil)
		if err != nil || stats.Chunks == 0 {
			return err
		}
		rows, err := embed(ctx, x.embedder, []string{q.Text})
		if err != nil {
			return fmt.Errorf("embed the question: %w", err)
		}
		words := questionWords(q.Text)
		p := probe{vector: rows[0], words: words, terms: distinct(termsOf(words))}
		if err := x.encodeQuestion(ctx, q, &p, stats.Chunks); err != nil {
			return err
		}
		whole = p.allEncoded
		passages, err = x.search(ctx, q, p)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	x.warnOfLanguage(q, passages, whole)
	if missing > 0 && q.Warn != nil {
		q.Warn(&LagError{missing})
	}
	return passages, nil
}

// A probe is a question in the form that the searches need.
type probe struct {
	vector  []float32
	encoded []float32 // by the encoder; nil if it is not used
	// someEncoded reports whether any chunks are encoded, and allEncoded whether all are.
	someEncoded, allEncoded bool
	words                   []word
	terms                   []string
}

func (x *Index) search(ctx context.Context, q Query, p probe) ([]Passage, error) {
	limit := max(q.K, DefaultCandidates)
	if qualified.MatchString(q.Text) {
		limit *= furtherDown // much code uses an identifier that one place declares
	}
	for attempt := 0; ; {
		r, all, err := x.findCandidates(ctx, p, limit, q.Filter)
		if err != nil {
			return nil, err
		}
		fuse(all, p.vector, x.weight(q.Text))
		if changed, err := r.scoreRows(all); err != nil {
			return nil, err
		} else if changed {
			fuse(all, p.vector, x.weight(q.Text))
		}
		groups, err := r.choose(all, q)
		if err != nil {
			return nil, err
		}
		// Repeated, joined and missing chunks may leave fewer than q.K passages: search deeper.
		if r.hits >= limit && limit < maxCandidates && len(groups) < q.K {
			limit = min(furtherDown*limit, maxCandidates)
			continue
		}
		if p.encoded != nil || x.opts.Reranker != nil {
			if p.encoded != nil {
				err = x.encode(r, q, p, all)
			}
			if err == nil {
				all, err = x.rerank(r, q, all)
			}
			if err == nil {
				groups, err = r.choose(all, q)
			}
			if err != nil {
				return nil, err
			}
		}
		// A writer has changed one of these documents: search again, a few times, so that its new
		// text is found.
		if r.lost > 0 && attempt < 2 {
			attempt++
			if err := x.follower.follow(ctx); err != nil {
				return nil, err
			}
			continue
		}
		return x.passages(ctx, groups, q)
	}
}

// A search that has too few passages requests furtherDown times as many chunks, up to
// maxCandidates.
const (
	furtherDown   = 4
	maxCandidates = 3200
)

// passages turns each group into a passage, at most q.K, and sets their places. A group whose
// document has changed since its chunks were read is split into its chunks, which have no places.
func (x *Index) passages(ctx context.Context, groups []group, q Query) (out []Passage, err error) {
	outlines := make(map[Version]Outline)
	spans := make([]Span, len(groups))
	for i, g := range groups {
		v := g.first().hit.version()
		spans[i].Version = v
		if len(g.members) > 1 {
			spans[i].Start, spans[i].End = g.first().Start, g.last().End
		}
		if _, known := outlines[v]; !known && !g.first().isRow() { // a table may have a great many rows
			outlines[v], known = x.outlines.get(v)
			spans[i].Outline = !known
		}
	}
	excerpts, err := x.state.Excerpts(ctx, spans)
	if err != nil {
		return nil, err
	}
	in := make(map[Version][]*Passage)
	var passages []*Passage
	for i, g := range groups {
		if e := excerpts[i]; e.Stored && spans[i].Outline {
			x.outlines.put(spans[i].Version, e.Outline)
			outlines[spans[i].Version] = e.Outline
		}
		if len(g.members) > 1 && !g.fits(excerpts[i].Text) {
			for _, m := range g.members {
				passages = append(passages, &m.Passage)
			}
			continue
		}
		p := g.passage(excerpts[i].Text)
		passages = append(passages, &p)
		in[spans[i].Version] = append(in[spans[i].Version], &p)
	}
	for v, of := range in {
		setPlaces(of, outlines[v])
	}
	for _, p := range passages[:min(q.K, len(passages))] {
		out = append(out, *p)
	}
	return out, x.nameCopies(ctx, out, q.Filter)
}

// maxCopies is the largest number of copies that a passage names.
const maxCopies = 20

// nameCopies sets, for each passage, the names of the documents with an equal file that the caller
// may see, and moves the passage to the first of them that matches the filter.
func (x *Index) nameCopies(ctx context.Context, passages []Passage, asked Filter) error {
	f := Filter{Collections: asked.Collections}
	for _, p := range passages {
		if p.Digest != "" && !slices.Contains(f.Digests, p.Digest) {
			f.Digests = append(f.Digests, p.Digest)
		}
	}
	if f.Digests == nil {
		return nil
	}
	documents, err := x.state.Documents(ctx, f)
	if err != nil {
		return err
	}
	for i := range passages {
		p := &passages[i]
		first := slices.IndexFunc(documents, func(d DocumentInfo) bool {
			return d.Digest == p.Digest && d.Format == p.Format && asked.Matches(&d, LabelsOf(d.Meta))
		})
		if first >= 0 && documents[first].ID < p.Document {
			if err := x.moveToCopy(ctx, p, &documents[first]); err != nil {
				return err
			}
		}
		for _, d := range documents {
			if d.Digest == p.Digest && d.ID != p.Document && len(p.AlsoIn) < maxCopies {
				p.AlsoIn = append(p.AlsoIn, d.ID)
			}
		}
	}
	return nil
}

// moveToCopy moves a passage to a copy of its document if the copy has the same text at that place.
func (x *Index) moveToCopy(ctx context.Context, p *Passage, d *DocumentInfo) error {
	doc, err := x.state.Document(ctx, d.ID)
	if errors.Is(err, ErrNotFound) {
		return nil // it has been deleted meanwhile
	}
	if err == nil && p.End <= len(doc.Text) && doc.Text[p.Start:p.End] == p.Text {
		p.ID, p.Document = d.ID+strings.TrimPrefix(p.ID, p.Document), d.ID
		p.Root, p.Path, p.Title, p.Meta = d.Root, d.Path, d.Title, d.Meta
	}
	return err
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
		return denseWeight * v.KnownShare(question)
	}
	return denseWeight
}

// findCandidates runs the searches in parallel. It returns the chunks that they found, with both
// scores, and a reading for the texts. It omits chunks that have changed meanwhile.
func (x *Index) findCandidates(ctx context.Context, p probe, k int, f Filter) (r *reading, out []*scored, err error) {
	var near, nearest, matching []Hit
	var stats Stats
	g, searching := errgroup.WithContext(ctx)
	if x.opts.Mode != LexicalOnly && !p.allEncoded {
		g.Go(func() (err error) {
			near, err = x.searcher.Dense(searching, p.vector, k, f)
			return err
		})
	}
	if p.someEncoded {
		g.Go(func() error {
			return x.encoded.runSearch(searching, func() (err error) {
				nearest, err = x.encoded.searcher.Dense(searching, p.encoded, k, f)
				return err
			})
		})
	}
	if x.opts.Mode != DenseOnly && len(p.terms) > 0 {
		g.Go(func() (err error) {
			matching, err = x.searcher.Lexical(searching, p.terms, k, f)
			return err
		})
	}
	g.Go(func() (err error) {
		stats, err = x.searcher.Stats(searching, p.terms)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	all := distinct(slices.Concat(nearest, near, matching))
	evidence, err := x.searcher.Evidence(ctx, all, p.terms)
	if err != nil {
		return nil, nil, err
	}
	r = &reading{ctx: ctx, state: x.state, hits: len(all), lost: len(all) - len(evidence),
		terms: p.terms, lexical: newLexicalScorer(p.words, stats)}
	out = score(evidence, p.vector, p.terms, r.lexical)
	if !p.someEncoded {
		return r, out, nil
	}
	return r, out, x.encoded.runSearch(ctx, func() error {
		known, err := x.encoded.searcher.Evidence(ctx, all, nil)
		vectors := make(map[Hit][]float32, len(known))
		for _, e := range known {
			vectors[e.Hit] = e.Vector
		}
		others := make(map[Hit]bool)
		for _, h := range slices.Concat(near, matching) {
			others[h] = true
		}
		for _, s := range out {
			s.encoded, s.byEncoder = vectors[s.hit], !others[s.hit]
		}
		return err
	})
}

// score returns the candidates with both scores.
func score(evidence []Evidence, vector []float32, terms []string, lexical *lexicalScorer) []*scored {
	out := make([]*scored, len(evidence))
	for i, e := range evidence {
		out[i] = &scored{hit: e.Hit, vector: e.Vector}
		out[i].cosine = Cosine(e.Vector, vector)
		out[i].Scores.Dense = out[i].cosine
		lexical.score(&out[i].Scores, terms, e.Counts, e.Length)
	}
	return out
}

// Cosine returns the cosine of two unit vectors. It sums in float64, in the order of the
// components, so that the result is the same on every machine.
func Cosine(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(float64(a[i]) * float64(b[i])) // the conversion forbids a fused multiply-add
	}
	return min(1, max(-1, sum))
}

// sortByScore sorts by descending score. Candidates with equal scores stay in the order in which
// the searches found them.
func sortByScore(all []*scored) {
	slices.SortStableFunc(all, func(a, b *scored) int { return cmp.Compare(b.Score, a.Score) })
}

// Stats returns, for each of the terms (made by [Terms]), the number of stored chunks that contain
// it, so that callers can tell a question's rare words from its common ones.
func (x *Index) Stats(ctx context.Context, terms []string) (stats Stats, err error) {
	x.changing.RLock()
	defer x.changing.RUnlock()
	err = x.follower.runSearch(ctx, func() (err error) {
		stats, err = x.searcher.Stats(ctx, terms)
		return err
	})
	if err == nil && x.opts.Encoder != nil {
		var encoded int
		encoded, err = x.countEncoded(ctx)
		stats.Unencoded = encoded < stats.Chunks
	}
	return stats, err
}
