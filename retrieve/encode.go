package retrieve

import (
	"context"
	"fmt"
	"math"
	"sync"

	"ibid/ingest"
)

// An Encoder makes better vectors than an [Embedder], but too slowly for a whole
// library: of each search it scores the best candidates again. It is safe for
// concurrent use.
type Encoder interface {
	EmbedQuestion(ctx context.Context, text string) ([]float32, error)
	// EmbedPassages gives one row for each text, in order, from its first tokens,
	// at most limit. Rows and questions have unit length.
	EmbedPassages(ctx context.Context, texts []string, limit int) ([][]float32, error)
	// Knows reports whether the vectors of texts in a language, an ISO 639-1 code,
	// have a meaning.
	Knows(language string) bool
}

// The encoder's work for one question: 30 candidates of 128 word pieces are 400 ms
// of one core at 10,000 word pieces a second. More pieces of each are not better,
// and more candidates little. The number is fixed, so that the same question has
// the same passages on a busy machine.
const (
	encoded       = 30
	encodedTokens = 128
	// encoderShare is the weight of the encoder's score in the mixture with the
	// fused one. From 0.4 to 0.7 the mean nDCG@10 of public sets hardly changes.
	encoderShare = 0.6
)

// encode orders the best candidates by a mixture of their scores and the encoder's.
// The others remain below them. If the question or the best candidate is in a
// language that the encoder does not know, the candidates stay unchanged; if it
// fails, they do too, with a warning.
func (x *Index) encode(r *reading, q Query, all []*scored) error {
	m := x.opts.Encoder
	if m == nil || len(all) < 2 || !m.Knows(Language(q.Text)) {
		return nil
	}
	sortByScore(all)
	var best []*scored
	var texts []string
	for i, s := range all[:min(len(all), encoded)] {
		stored, err := r.read(s, all[i:])
		if err != nil {
			return err
		}
		if stored {
			best, texts = append(best, s), append(texts, ingest.EmbeddingText(s.Title, s.Chunk))
		}
	}
	if len(best) == 0 || !m.Knows(Language(best[0].Text)) {
		return nil
	}
	cosines, err := x.encodings.cosines(r.ctx, m, q.Text, texts)
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
	low, high := math.Inf(1), math.Inf(-1)
	for i, s := range best {
		fused[i] = s.Score
		low, high = min(low, s.Score), max(high, s.Score)
	}
	standardise(fused)
	mix(best, cosines, fused, encoderShare)
	least, most := math.Inf(1), math.Inf(-1)
	for _, s := range best {
		least, most = min(least, s.Score), max(most, s.Score)
	}
	for _, s := range best {
		s.Score = low + (high-low)*stretch(s.Score, least, most)
	}
}

// encodings keep vectors that the encoder has made, by the digest of the text: the
// latest maxEncodings, about 12 MB.
type encodings struct {
	mu   sync.Mutex
	rows map[Digest][]float32
	ring []Digest // the keys in the order in which they came
	next int      // the place in the ring for the next one, once it is full
}

const maxEncodings = 8192

// cosines returns the cosine of the question with each text.
func (e *encodings) cosines(ctx context.Context, m Encoder, question string, texts []string) ([]float64, error) {
	row, err := m.EmbedQuestion(ctx, question)
	if err != nil {
		return nil, err
	}
	digests, rows := make([]Digest, len(texts)), make([][]float32, len(texts))
	var missing []string
	var places []int
	e.mu.Lock()
	for i, text := range texts {
		digests[i] = DigestOf(text)
		if rows[i] = e.rows[digests[i]]; rows[i] == nil {
			missing, places = append(missing, text), append(places, i)
		}
	}
	e.mu.Unlock()
	if len(missing) > 0 {
		made, err := m.EmbedPassages(ctx, missing, encodedTokens)
		if err != nil {
			return nil, err
		}
		if len(made) != len(missing) {
			return nil, fmt.Errorf("the encoder gave %d rows for %d texts", len(made), len(missing))
		}
		e.mu.Lock()
		for i, at := range places {
			rows[at] = made[i]
			e.put(digests[at], made[i])
		}
		e.mu.Unlock()
	}
	cosines := make([]float64, len(rows))
	for i := range rows {
		cosines[i] = dot(rows[i], row)
	}
	return cosines, nil
}

// put keeps a vector, instead of the oldest one once there are too many.
func (e *encodings) put(d Digest, row []float32) {
	if e.rows == nil {
		e.rows = make(map[Digest][]float32)
	}
	if _, known := e.rows[d]; known {
		return
	}
	if len(e.ring) < maxEncodings {
		e.ring = append(e.ring, d)
	} else {
		delete(e.rows, e.ring[e.next])
		e.ring[e.next] = d
		e.next = (e.next + 1) % maxEncodings
	}
	e.rows[d] = row
}
