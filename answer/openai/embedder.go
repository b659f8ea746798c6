package openai

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/sashabaranov/go-openai"
)

// An Embedder makes vectors; it is a [retrieve.Embedder], safe for concurrent use.
//
// It combines the texts of many calls in few requests: it fills batches with waiting texts, sends
// a limited number of requests at a time, and delays all of them when the server asks one to wait.
type Embedder struct {
	*upstream
	dimensions int

	mu      sync.Mutex
	waiting []batchItem
	running int       // requests
	resume  time.Time // no request starts before this time
}

// maxVector bounds the reply for one text, in bytes: 4096 numbers of 22
// characters, one a line.
const maxVector = 160 << 10

// NewEmbedder creates an embedder. It requests one vector, to detect the number of
// dimensions.
func NewEmbedder(ctx context.Context, o Options) (*Embedder, error) {
	u, err := newUpstream(o)
	if err != nil {
		return nil, err
	}
	e := &Embedder{upstream: u}
	first, err := e.Embed(ctx, []string{"dimensions"})
	if err != nil {
		return nil, err
	}
	e.dimensions = len(first[0])
	return e, nil
}

// Space implements [retrieve.Embedder]: the model's name and the dimensions.
func (e *Embedder) Space() string { return fmt.Sprintf("%s/%d", e.o.Model, e.dimensions) }

// attempt sends one request.
func (e *Embedder) attempt(ctx context.Context, texts []string) ([][]float32, *Error) {
	input := slices.Clone(texts)
	for i, text := range texts {
		input[i] = cmp.Or(text, " ") // OpenAI refuses the empty text
	}
	call := &request{upstream: e.upstream, role: "embed", secrets: texts}
	var reply openai.EmbeddingResponse
	if failed := call.requestObject(ctx, "/embeddings", "the vectors", openai.EmbeddingRequestStrings{
		Input: input, Model: openai.EmbeddingModel(e.o.Model),
	}, int64(len(texts)+1)*maxVector, &reply); failed != nil {
		return nil, failed
	}
	return e.checkVectors(reply.Data, len(texts))
}

// checkVectors returns the vectors in the order of the texts, scaled to unit length.
func (e *Embedder) checkVectors(data []openai.Embedding, texts int) ([][]float32, *Error) {
	if len(data) != texts {
		return nil, e.badReply("it has %d vectors for %d texts", len(data), texts)
	}
	rows := make([][]float32, texts)
	dimensions := e.dimensions
	for _, d := range data {
		if dimensions == 0 {
			dimensions = len(d.Embedding)
		}
		switch {
		case d.Index < 0 || d.Index >= texts || rows[d.Index] != nil:
			return nil, e.badReply("the index of a vector is out of range or repeated")
		case len(d.Embedding) == 0:
			return nil, e.badReply("a vector is missing")
		case len(d.Embedding) != dimensions:
			return nil, e.badReply("a vector has %d dimensions instead of %d", len(d.Embedding), dimensions)
		case !normalize(d.Embedding):
			return nil, e.badReply("a vector is zero or not finite")
		}
		rows[d.Index] = d.Embedding
	}
	return rows, nil
}

// normalize scales the vector to unit length. It returns false if the vector is zero or
// not finite.
func normalize(v []float32) bool {
	var sum float64
	for _, c := range v {
		sum += float64(c) * float64(c)
	}
	norm := math.Sqrt(sum)
	if norm == 0 || math.IsNaN(norm) || math.IsInf(norm, 0) {
		return false
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / norm)
	}
	return true
}
