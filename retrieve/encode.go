package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ibid/ingest"
)

// An Encoder makes better vectors than an [Embedder], but is too slow for ingesting. [Index.Encode]
// encodes chunks afterwards, and each search encodes its best candidates. An Encoder is safe for
// concurrent use.
type Encoder interface {
	EmbedQuestion(ctx context.Context, text string) ([]float32, error)
	// EmbedPassages returns one row for each text, in order, computed from its first limit tokens.
	// Rows and questions have unit length.
	EmbedPassages(ctx context.Context, texts []string, limit int) ([][]float32, error)
	// Knows reports whether vectors of texts in a language, an ISO 639-1 code, are meaningful.
	Knows(language string) bool
	// PassageTokens returns the number of tokens of a passage that are worth encoding.
	PassageTokens() int
	// Candidates returns the number of passages that one core encodes in 0.4 seconds, which each
	// question may encode. It does not depend on the load, so that the same question has the same
	// passages on a busy machine.
	Candidates() int
	// Space names the model and its dimensions.
	Space() string
}

// nativeWeight is the share of the encoder's score in the mixture, and foreignWeight its share if
// texts and question are in different languages. Between 0.4 and 0.7 the mean nDCG@10 of public
// sets hardly changes.
const (
	nativeWeight  = 0.6
	foreignWeight = 0.8
)

// A passageEncoder adapts an [Encoder] to an [Embedder] of chunks.
type passageEncoder struct{ Encoder }

// EncodedSpace returns the name of the space in which a [State] stores an encoder's vectors.
func EncodedSpace(m Encoder) string { return passageEncoder{m}.Space() }

func (m passageEncoder) Space() string {
	return fmt.Sprintf("%s, %d tokens", m.Encoder.Space(), m.PassageTokens())
}

func (m passageEncoder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	return m.EmbedPassages(ctx, texts, m.PassageTokens())
}

// Encoder returns the encoder in use, or nil.
func (x *Index) Encoder() Encoder {
	x.changing.RLock()
	defer x.changing.RUnlock()
	return x.opts.Encoder
}

// ChangeEncoder waits for running searches and then changes the encoder. The function open opens
// the new encoder's searcher; if it fails, no encoder is in use.
func (x *Index) ChangeEncoder(m Encoder, open func() (Searcher, error)) error {
	x.changing.Lock()
	defer x.changing.Unlock()
	encoded, err := open()
	if err != nil {
		m = nil
	}
	x.setEncoder(m, encoded)
	return err
}

// usesEncoder reports whether m is the encoder in use.
func (x *Index) usesEncoder(m Encoder) bool {
	now := x.Encoder()
	return now != nil && now.Space() == m.Space()
}

func (x *Index) setEncoder(m Encoder, encoded Searcher) {
	x.opts.Encoder, x.encoded = m, nil
	if m != nil && encoded != nil {
		x.encoded = newFollower(x.state, encoded, EncodedSpace(m), Options{Damaged: x.opts.Damaged})
		x.encoded.vectorsOnly = true
	}
}

// encodeQuestion encodes the question, unless the encoder fails or does not know the language. It
// also sets p.someEncoded and p.allEncoded.
func (x *Index) encodeQuestion(ctx context.Context, q Query, p *probe, chunks int) error {
	m := x.opts.Encoder
	if m == nil || x.opts.Mode != Hybrid || !m.Knows(Language(q.Text)) {
		return nil
	}
	encoded, err := x.countEncoded(ctx)
	if err != nil {
		return err
	}
	p.someEncoded, p.allEncoded = encoded > 0, encoded >= chunks
	row, err := m.EmbedQuestion(ctx, q.Text)
	if err != nil && ctx.Err() == nil {
		q.warn("encoding the question failed, so the built-in model searches: %w", err)
		p.someEncoded, p.allEncoded = false, false
		return nil
	}
	p.encoded = row
	return err
}

// countEncoded returns the number of chunks in the searcher of the encoder's space.
func (x *Index) countEncoded(ctx context.Context) (chunks int, err error) {
	if x.encoded == nil {
		return 0, nil
	}
	err = x.encoded.runSearch(ctx, func() error {
		stats, err := x.encoded.searcher.Stats(ctx, nil)
		chunks = stats.Chunks
		return err
	})
	if none := (*SpaceError)(nil); errors.As(err, &none) { // no vector is stored yet
		return 0, nil
	}
	return chunks, err
}

func (q Query) warn(format string, args ...any) {
	if q.Warn != nil {
		q.Warn(fmt.Errorf(format, args...))
	}
}

// encode mixes the encoder's cosine into the scores of the candidates. It encodes the best
// candidates that are not encoded yet, and estimates the cosine of the other ones. It changes
// nothing if the encoder does not know the language of the nearest texts. If encoding fails, it
// warns.
func (x *Index) encode(r *reading, q Query, p probe, all []*scored) error {
	if err := x.encodeBest(r, q, all); err != nil {
		return err
	}
	var known, rest, both []*scored
	for _, s := range all {
		if s.encoded == nil {
			rest = append(rest, s)
			continue
		}
		s.vector, s.cosine = s.encoded, Cosine(s.encoded, p.encoded)
		if known = append(known, s); !s.byEncoder {
			both = append(both, s)
		}
	}
	weight, err := x.encodedWeight(r, q, known)
	if err != nil || weight == 0 {
		return err
	}
	if len(rest) > 0 && len(both) < fewestKnown {
		return nil
	}
	estimate(both, rest)
	fuse(all, p.encoded, weight)
	return nil
}

// fewestKnown is the smallest number of candidates with both cosines that estimate needs.
const fewestKnown = 8

// estimate sets the likely encoder cosine of candidates without a vector of the encoder, by linear
// regression on the table's cosines over the known candidates. The caller excludes candidates that
// only the encoder's search found, since they would raise the estimate.
func estimate(known, rest []*scored) {
	var x, y, xx, xy float64
	n := float64(len(known))
	for _, s := range known {
		x, y = x+s.Scores.Dense/n, y+s.cosine/n
	}
	for _, s := range known { // the conversions forbid fused multiply-adds
		from := s.Scores.Dense - x
		xx, xy = xx+float64(from*from), xy+float64(from*(s.cosine-y))
	}
	slope := 0.
	if xx > 0 {
		slope = max(0, xy/xx)
	}
	for _, s := range rest {
		s.vector, s.cosine = nil, y+float64(slope*(s.cosine-x))
	}
}

// keepWait is how long a search that stores new vectors waits for other processes.
const keepWait = 200 * time.Millisecond

// encodeBest encodes the best candidates that are not encoded, up to [Encoder.Candidates], and none
// while more searches run than there are processors. It stores the vectors for later questions and
// notes the other candidates for [Index.Encode].
func (x *Index) encodeBest(r *reading, q Query, all []*scored) error {
	fresh := slices.DeleteFunc(slices.Clone(all), func(s *scored) bool { return s.encoded != nil })
	if len(fresh) == 0 {
		return nil
	}
	n := x.opts.Encoder.Candidates()
	if int(x.searching.Load()) > runtime.GOMAXPROCS(0) {
		n = 0
	}
	best, texts, err := r.best(fresh, n)
	if err != nil {
		return err
	}
	x.wanted.addFound(fresh[min(n, len(fresh)):])
	m := passageEncoder{x.opts.Encoder}
	if len(best) == 0 || !m.Knows(Language(best[0].Text)) {
		return nil
	}
	digests := make([]Digest, len(texts))
	for i, text := range texts {
		digests[i] = DigestOf(text)
	}
	rows, err := x.state.Vectors(r.ctx, m.Space(), digests)
	if err != nil {
		return err
	}
	made, err := embedMissing(r.ctx, m, texts, rows)
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if err != nil {
		q.warn("encoding failed, so passages keep the order of the search: %w", err)
		return nil
	}
	for i, s := range best {
		s.encoded = rows[i]
	}
	vectors := make([][]float32, len(made))
	for at, i := range made {
		digests[at], vectors[at] = digests[i], rows[i]
	}
	err = x.state.AddVectors(WithWait(r.ctx, keepWait), m.Space(), digests[:len(made)], vectors)
	if err != nil && !errors.Is(err, ErrReadOnly) {
		q.warn("the encoder's vectors were not stored, so the next question computes them again: %w", err)
	}
	return nil
}

// encodedWeight returns the share of the encoder's score in the mixture. It is higher for texts in
// another language, where the question's words say little, and 0 if the encoder does not know the
// language of the nearest texts.
func (x *Index) encodedWeight(r *reading, q Query, known []*scored) (float64, error) {
	nearest := slices.SortedStableFunc(slices.Values(known), func(a, b *scored) int { return cmp.Compare(b.cosine, a.cosine) })
	weight, asked := foreignWeight, evidentLanguage(q.Text)
	if asked == "" && slices.ContainsFunc(known, func(s *scored) bool { return s.Scores.Coverage >= 0.5 }) {
		weight = nativeWeight // a question of few words, which the texts contain
	}
	nearest = nearest[:min(len(nearest), 3)]
	if len(nearest) == 0 {
		return 0, nil
	}
	for i, s := range nearest {
		stored, err := r.read(s, nearest[i:])
		if err != nil {
			return 0, err
		}
		if !stored {
			continue
		}
		language := Language(s.Text)
		if !x.opts.Encoder.Knows(language) {
			return 0, nil
		}
		if language == asked {
			weight = nativeWeight
		}
	}
	return weight, nil
}

// best reads the n candidates with the highest scores and returns the stored ones with their texts.
func (r *reading) best(all []*scored, n int) (best []*scored, texts []string, err error) {
	sortByScore(all)
	for i, s := range all[:min(len(all), n)] {
		stored, err := r.read(s, all[i:])
		if err != nil {
			return nil, nil, err
		}
		if stored {
			best, texts = append(best, s), append(texts, ingest.EmbeddingText(s.Title, s.Chunk))
		}
	}
	return best, texts, nil
}

// An Encoding configures [Index.Encode].
type Encoding struct {
	// Workers is the number of texts that are encoded at a time, each on one core.
	Workers int
	// Progress, if not nil, is called with the number of chunks encoded so far and in total.
	Progress func(done, total int)
}

// encodeBatch is the number of chunks that one process encodes and stores together, and the most
// that an interruption loses.
const encodeBatch = 64

// Encode encodes all chunks that have no vector of the encoder: first the chunks that searches
// found most often but had no time to encode, then the chunks of the latest documents. Searches use
// a document's vectors as soon as all of its chunks are encoded. Encode pauses during searches.
// Several processes share the work. Called again after an interruption, it resumes. If the encoder
// is changed, it continues with the new one.
func (x *Index) Encode(ctx context.Context, e Encoding) error {
	run := &encoding{Encoding: e, x: x, worker: NewWorker()}
	for {
		m := x.Encoder()
		if m == nil {
			return nil
		}
		run.m = &pacedEncoder{passageEncoder{m}, x, max(1, e.Workers)}
		run.encoded, run.held = 0, false
		err := run.encodeAll(ctx)
		if err == nil && run.encoded > 0 {
			err = x.followEncoded(ctx)
		}
		if err != nil || run.encoded == 0 && !run.held && x.usesEncoder(m) {
			return err
		}
		if run.encoded == 0 && run.held {
			if err := sleep(ctx, ClaimTime/4); err != nil {
				return err
			}
		}
	}
}

// followEncoded brings the searcher of the encoder's space up to date.
func (x *Index) followEncoded(ctx context.Context) error {
	x.changing.RLock()
	defer x.changing.RUnlock()
	_, err := x.countEncoded(ctx)
	return err
}

// An encoding is a call of [Index.Encode].
type encoding struct {
	Encoding
	x       *Index
	m       *pacedEncoder
	worker  string
	encoded int  // number of chunks that were encoded
	held    bool // another process had claimed chunks
}

// encodeAll encodes all chunks that no other process has claimed, until the encoder is changed.
func (e *encoding) encodeAll(ctx context.Context) error {
	done, total, err := e.x.state.CountEmbedded(ctx, e.m.Space())
	if err != nil {
		return err
	}
	if e.Progress != nil {
		e.Progress(done, total)
	}
	done -= e.encoded
	for chunks, err := range e.x.state.Unembedded(ctx, e.m.Space(), encodeBatch) {
		if !e.x.usesEncoder(e.m.Encoder) {
			return nil
		}
		if err == nil {
			err = e.encodeChunks(ctx, chunks)
		}
		if err == nil {
			chunks, err = e.x.wantedChunks(ctx, e.m.Space())
		}
		if err == nil && len(chunks) > 0 {
			err = e.encodeChunks(ctx, chunks)
		}
		if err != nil {
			return err
		}
		if e.Progress != nil {
			e.Progress(min(done+e.encoded, total), total)
		}
	}
	return nil
}

// encodeChunks encodes chunks, unless another process has claimed them.
func (e *encoding) encodeChunks(ctx context.Context, chunks []ChunkText) error {
	job, ledger := fmt.Sprintf("encode %x with %s", chunks[0].Digest, e.m.Space()), e.x.state.Ledger()
	holder, err := ClaimJob(ctx, ledger, job, encodeKind, e.worker, ClaimTime)
	if err != nil || holder != nil {
		e.held = e.held || holder != nil
		return err
	}
	err = embedChunks(ctx, e.x.state, e.m, chunks)
	if err == nil {
		e.encoded += len(chunks)
	}
	return errors.Join(err, ledger.End(context.WithoutCancel(ctx), job))
}

// encodeKind is the kind of the jobs of Encode.
const encodeKind = "ibid encode"

// A foundCounts counts how often searches found chunks that are not encoded.
type foundCounts struct {
	mu    sync.Mutex
	found map[Hit]int
}

// mostWished is the largest number of chunks in a foundCounts.
const mostWished = 4096

func (w *foundCounts) addFound(all []*scored) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range all {
		if w.found == nil {
			w.found = make(map[Hit]int)
		}
		if len(w.found) < mostWished || w.found[s.hit] > 0 {
			w.found[s.hit]++
		}
	}
}

// takeMost removes and returns the n chunks that were found most often.
func (w *foundCounts) takeMost(n int) []Hit {
	w.mu.Lock()
	defer w.mu.Unlock()
	hits := slices.SortedFunc(maps.Keys(w.found), func(a, b Hit) int {
		return cmp.Or(cmp.Compare(w.found[b], w.found[a]), cmp.Compare(b.Generation, a.Generation),
			cmp.Compare(a.Document, b.Document), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	hits = hits[:min(n, len(hits))]
	for _, h := range hits {
		delete(w.found, h)
	}
	return hits
}

// wantedChunks returns the next chunks to encode among those that searches have found.
func (x *Index) wantedChunks(ctx context.Context, space string) (chunks []ChunkText, err error) {
	found, err := x.state.Chunks(ctx, x.wanted.takeMost(encodeBatch))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	digests := make([]Digest, len(found))
	for i, c := range found {
		digests[i] = DigestOf(ingest.EmbeddingText(c.Title, c.Chunk))
	}
	rows, err := x.state.Vectors(ctx, space, digests)
	for i, row := range rows {
		if row == nil && !slices.Contains(digests[:i], digests[i]) {
			chunks = append(chunks, ChunkText{digests[i], ingest.EmbeddingText(found[i].Title, found[i].Chunk)})
		}
	}
	return chunks, err
}

// A pacedEncoder encodes a few texts at a time, and none while a search runs. On Linux its threads
// have a low priority.
type pacedEncoder struct {
	passageEncoder
	x       *Index
	workers int
}

func (m *pacedEncoder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	rows := make([][]float32, len(texts))
	group, ctx := errgroup.WithContext(ctx)
	next := atomic.Int64{}
	for range min(m.workers, len(texts)) {
		group.Go(func() error {
			// The thread ends with the goroutine: its priority cannot be raised again.
			runtime.LockOSThread()
			lowerPriority()
			for i := next.Add(1) - 1; i < int64(len(texts)); i = next.Add(1) - 1 {
				for ctx.Err() == nil && m.x.searching.Load() > 0 {
					time.Sleep(10 * time.Millisecond)
				}
				row, err := embed(ctx, m.passageEncoder, texts[i:i+1])
				if err != nil {
					return err
				}
				rows[i] = row[0]
			}
			return nil
		})
	}
	return rows, group.Wait()
}

// reembedBatch is the number of chunks that are committed together, and the most that an
// interruption loses.
const reembedBatch = 256

// Reembed embeds every stored chunk with the embedder and then changes the state to its space in
// one step. Until then, searches use the old space. Just before the change it calls build, which
// may build a search index of the new space. Called again after an interruption, Reembed resumes.
// Progress and build may be nil.
func Reembed(ctx context.Context, s State, m Embedder, progress func(done, total int), build func(context.Context) error) error {
	space, err := s.Space(ctx)
	if err != nil || space == "" || space == m.Space() {
		return err
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	for {
		done, total, err := s.CountEmbedded(ctx, m.Space())
		if err != nil {
			return err
		}
		progress(done, total)
		for chunks, err := range s.Unembedded(ctx, m.Space(), reembedBatch) {
			if err != nil {
				return err
			}
			if err := embedChunks(ctx, s, m, chunks); err != nil {
				return err
			}
			done = min(done+len(chunks), total)
			progress(done, total)
		}
		if build != nil {
			if err := build(ctx); err != nil {
				return err
			}
		}
		switched, err := s.SwitchSpace(ctx, m.Space())
		if err != nil {
			return err
		}
		if switched {
			progress(total, total)
			return nil
		}
		// A document was added meanwhile.
	}
}

func embedChunks(ctx context.Context, s State, m Embedder, chunks []ChunkText) error {
	texts, digests := make([]string, len(chunks)), make([]Digest, len(chunks))
	for i, c := range chunks {
		texts[i], digests[i] = c.Text, c.Digest
	}
	vectors, err := embed(ctx, m, texts)
	if err != nil {
		return err
	}
	return s.AddVectors(ctx, m.Space(), digests, vectors)
}

// An Embedder turns texts into vectors.
type Embedder interface {
	// Embed returns one row for each text, in order, even for a text without any known word. All
	// rows have the same dimensions, finite components and unit length. If the error is not nil,
	// the rows are meaningless.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// Space names the model and its dimensions, such as "ibid-static-1/192". Only vectors of one
	// space may be compared.
	Space() string
}

// A Vocabulary is an [Embedder] that knows only some words. Fusion weights its vectors by the share
// of the question's words that it knows.
type Vocabulary interface {
	// KnownShare returns the share of the text's words that are in the vocabulary, 0 to 1.
	KnownShare(text string) float64
}
