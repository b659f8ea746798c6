package retrieve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"ibid/ingest"
)

// An Encoder makes better vectors than an [Embedder], but too slowly for an ingest:
// [Index.Encode] makes them afterwards, and each search those of its best
// candidates. It is safe for concurrent use.
type Encoder interface {
	EmbedQuestion(ctx context.Context, text string) ([]float32, error)
	// EmbedPassages gives one row for each text, in order, from its first tokens,
	// at most limit. Rows and questions have unit length.
	EmbedPassages(ctx context.Context, texts []string, limit int) ([][]float32, error)
	// Knows reports whether the vectors of texts in a language, an ISO 639-1 code,
	// have a meaning.
	Knows(language string) bool
	// PassageTokens is how many tokens of a passage are worth their time.
	PassageTokens() int
	// Space names the model and its dimensions.
	Space() string
}

const (
	// encodedTokens is the encoder's work for one question: 30 candidates of 128 word
	// pieces are 400 ms of one core at 10,000 word pieces a second. More candidates
	// are little better. The number is fixed, so that the same question has the same
	// passages on a busy machine.
	encodedTokens = 30 * 128
	// encoderShare is the weight of the encoder's score in the mixture with the
	// fused one. From 0.4 to 0.7 the mean nDCG@10 of public sets hardly changes.
	encoderShare = 0.6
	// nativeWeight is the share of the encoder's score in the mixture when all chunks
	// are encoded, and foreignWeight that for texts in another language than the
	// question.
	nativeWeight  = 0.6
	foreignWeight = 0.8
)

// A passageEncoder is an encoder as an [Embedder] of chunks.
type passageEncoder struct{ Encoder }

// EncodedSpace is the space in which a [State] has the vectors of an encoder.
func EncodedSpace(m Encoder) string { return passageEncoder{m}.Space() }

func (m passageEncoder) Space() string {
	return fmt.Sprintf("%s, %d tokens", m.Encoder.Space(), m.PassageTokens())
}

func (m passageEncoder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	return m.EmbedPassages(ctx, texts, m.PassageTokens())
}

// encodedQuestion returns the question's vector by the encoder if the dense search
// can use it: the encoder knows the language, and the searcher of its space has
// everything that is stored. Otherwise it is nil.
func (x *Index) encodedQuestion(ctx context.Context, q Query) ([]float32, error) {
	m := x.opts.Encoder
	if x.encoded == nil || x.opts.Mode != Hybrid || !m.Knows(Language(q.Text)) {
		return nil, nil
	}
	_, current, err := x.encoded.revision(ctx)
	if errors.Is(err, ErrIndexDamaged) {
		return nil, x.encoded.searcher.Reset(ctx)
	}
	if err != nil || !current {
		return nil, err
	}
	row, err := m.EmbedQuestion(ctx, q.Text)
	if err != nil && ctx.Err() == nil && q.Warn != nil {
		q.Warn(fmt.Errorf("encoding the question failed, so the built-in model searches: %w", err))
	}
	return row, ctx.Err()
}

// encodedScores replaces the vectors of candidates by those of the encoder, and
// returns the candidates that have one.
func (x *Index) encodedScores(ctx context.Context, all []*scored, question []float32) ([]*scored, error) {
	hits := make([]Hit, len(all))
	for i, s := range all {
		hits[i] = s.hit
	}
	evidence, err := x.encoded.searcher.Evidence(ctx, hits, nil)
	if err != nil {
		return nil, err
	}
	vectors := make(map[Hit][]float32, len(evidence))
	for _, e := range evidence {
		vectors[e.Hit] = e.Vector
	}
	all = slices.DeleteFunc(all, func(s *scored) bool { return vectors[s.hit] == nil })
	for _, s := range all {
		s.vector = vectors[s.hit]
		s.cosine = Cosine(s.vector, question)
	}
	return all, nil
}

// encodedWeight returns the share of the encoder's score in the mixture: the words
// of a question say little about texts in another language. It is 0 if the encoder
// does not know the language of the nearest texts.
func (x *Index) encodedWeight(r *reading, q Query, all []*scored) (float64, error) {
	for _, s := range all {
		s.Score = s.cosine
	}
	nearest, _, err := r.best(all, 3)
	if err != nil || len(nearest) == 0 {
		return nativeWeight, err
	}
	weight, asked := foreignWeight, evidentLanguage(q.Text)
	if asked == "" && slices.ContainsFunc(all, func(s *scored) bool { return s.Scores.Coverage >= 0.5 }) {
		weight = nativeWeight // a few words, which are in the texts
	}
	for _, s := range nearest {
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

// best reads the n candidates with the highest scores, and returns those that are
// stored with their texts.
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

// encode orders the best candidates by a mixture of their scores and the encoder's.
// The others remain below them. If the question or the best candidate is in a
// language that the encoder does not know, the candidates stay unchanged; if it
// fails, they do too, with a warning.
func (x *Index) encode(r *reading, q Query, all []*scored) error {
	m := x.opts.Encoder
	if m == nil || len(all) < 2 || !m.Knows(Language(q.Text)) {
		return nil
	}
	best, texts, err := r.best(all, encodedTokens/m.PassageTokens())
	if err != nil || len(best) == 0 || !m.Knows(Language(best[0].Text)) {
		return err
	}
	cosines, err := x.cosines(r.ctx, q, texts)
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if err != nil {
		if q.Warn != nil {
			q.Warn(fmt.Errorf("encoding failed, so the passages keep the order of the search: %w", err))
		}
		return nil
	}
	remix(best, cosines)
	return nil
}

// remix sets the scores of the best candidates to a mixture with their cosines, in
// the range of their scores before.
func remix(best []*scored, cosines []float64) {
	fused := make([]float64, len(best))
	for i, s := range best {
		fused[i] = s.Score
	}
	low, high := scoreRange(best)
	standardise(fused)
	mix(best, cosines, fused, encoderShare)
	rescale(best, low, high)
}

// keepWait is how long a search waits for other processes to store the vectors
// that it has made.
const keepWait = 200 * time.Millisecond

// cosines returns the cosine of the question with each text. Vectors that are not
// stored are made, and stored for the next question.
func (x *Index) cosines(ctx context.Context, q Query, texts []string) ([]float64, error) {
	question, err := x.opts.Encoder.EmbedQuestion(ctx, q.Text)
	if err != nil {
		return nil, err
	}
	m := passageEncoder{x.opts.Encoder}
	digests := make([]Digest, len(texts))
	for i, text := range texts {
		digests[i] = DigestOf(text)
	}
	rows, err := x.state.Vectors(ctx, m.Space(), digests)
	if err != nil {
		return nil, err
	}
	complete := !slices.ContainsFunc(rows, func(row []float32) bool { return row == nil })
	if err := embedMissing(ctx, m, texts, rows); err != nil {
		return nil, err
	}
	if !complete {
		err := x.state.AddVectors(WithWait(ctx, keepWait), m.Space(), digests, rows)
		if err != nil && !errors.Is(err, ErrReadOnly) && q.Warn != nil {
			q.Warn(fmt.Errorf("the encoder's vectors are made again by the next question: %w", err))
		}
	}
	cosines := make([]float64, len(rows))
	for i := range rows {
		cosines[i] = Cosine(rows[i], question)
	}
	return cosines, nil
}

// An Encoding says how [Index.Encode] works.
type Encoding struct {
	// Workers is how many texts are encoded at a time, each by one core.
	Workers int
	// Progress, if not nil, is called with the number of chunks that have been
	// encoded and of all.
	Progress func(done, total int)
}

// encodeBatch is how many chunks one process encodes and stores together: an
// interruption loses at most that many.
const encodeBatch = 64

// Encode makes the encoder's vectors of all chunks that have none, those of the
// latest documents first, and then brings the searcher of its space up to date,
// so that searches use it. It pauses during searches. Several processes share the
// work. Called again after an interruption, it resumes.
func (x *Index) Encode(ctx context.Context, e Encoding) error {
	if x.encoded == nil {
		return nil
	}
	m := &pacedEncoder{passageEncoder{x.opts.Encoder}, x, max(1, e.Workers)}
	worker := NewWorker()
	for {
		made, held, err := x.encodeBatches(ctx, m, worker, e.Progress)
		if err == nil {
			err = x.encoded.run(ctx, func() error { return nil })
		}
		lacking := (*UncoveredError)(nil)
		switch {
		case err == nil || !errors.As(err, &lacking):
			return err
		case made == 0 && !held: // the stored ones are damaged
			if err := embedChunks(ctx, x.state, m, lacking.Chunks); err != nil {
				return err
			}
		case made == 0:
			if err := pause(ctx, claimEvery); err != nil {
				return err
			}
		}
	}
}

// encodeBatches encodes all chunks that no other process has claimed, and returns
// how many there were, and whether others had claimed any.
func (x *Index) encodeBatches(ctx context.Context, m Embedder, worker string, progress func(done, total int)) (
	made int, held bool, err error) {
	done, total, err := x.state.Embedded(ctx, m.Space())
	if err != nil {
		return 0, false, err
	}
	for chunks, err := range x.state.Unembedded(ctx, m.Space(), encodeBatch) {
		if err != nil {
			return made, held, err
		}
		job := fmt.Sprintf("encode %x with %s", chunks[0].Digest, m.Space())
		holder, err := ClaimJob(ctx, x.state.Ledger(), job, encodeKind, worker)
		if err != nil {
			return made, held, err
		}
		if holder != nil {
			held = true
			continue
		}
		err = embedChunks(ctx, x.state, m, chunks)
		if err := errors.Join(err, x.state.Ledger().End(context.WithoutCancel(ctx), job)); err != nil {
			return made, held, err
		}
		if made += len(chunks); progress != nil {
			progress(min(done+made, total), total)
		}
	}
	return made, held, nil
}

// encodeKind is the kind of the jobs of Encode.
const encodeKind = "ibid encode"

// A pacedEncoder encodes a few texts at a time, and none while a search runs.
type pacedEncoder struct {
	passageEncoder
	x       *Index
	workers int
}

func (m *pacedEncoder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	rows := make([][]float32, len(texts))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(m.workers)
	for i, text := range texts {
		group.Go(func() error {
			for ctx.Err() == nil && m.x.searching.Load() > 0 {
				time.Sleep(10 * time.Millisecond)
			}
			row, err := embed(ctx, m.passageEncoder, []string{text})
			if err == nil {
				rows[i] = row[0]
			}
			return err
		})
	}
	return rows, group.Wait()
}

// reembedBatch is how many chunks are made durable together: an interrupted
// re-embedding loses at most that many.
const reembedBatch = 256

// Reembed embeds every stored chunk with the embedder and then changes the state
// to its space in one step. Searches use the old space until then. Called again
// after an interruption, it resumes. Progress may be nil.
func Reembed(ctx context.Context, s State, m Embedder, progress func(done, total int)) error {
	space, err := s.Space(ctx)
	if err != nil || space == "" || space == m.Space() {
		return err
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	for {
		done, total, err := s.Embedded(ctx, m.Space())
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
	// Embed gives one row for each text, in order; every row has the same
	// length, unit Euclidean length, and finite components. A text without
	// any known word still gets a row. An error means that no row counts.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// Space names the model and its dimensions, "ibid-static-1/192" for one.
	// Vectors may be compared only within one space.
	Space() string
}

// A Vocabulary is an [Embedder] that knows only some words. Fusion weighs its
// vectors by the share of the question's words that it knows.
type Vocabulary interface {
	// Known returns the share of the text's words that it knows, 0 to 1.
	Known(text string) float64
}
