// Package encoder runs transformer encoders of BERT's family, which turn texts into vectors that
// are close if their meanings are close. They are far better than the vectors of the built-in table
// of package embed, but take some hundred times longer. The package needs no service and no other
// library: the arithmetic is in package kernel.
//
// A model is a file, made by [Part.Make] from a checkpoint, that [Open] maps into memory. [PartByName]
// returns one of the models that the program can fetch.
package encoder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"ibid/retrieve/embed/encoder/kernel"
)

// A Model makes vectors. It is safe for concurrent use.
type Model struct {
	Header
	lexicon    lexicon
	vocabulary tokenizer
	words      []int8 // a rounded vector for each word, unless the header has Blocks
	wordBlocks []byte
	wordScale  []float32 // for each vector
	positions  []float32 // a vector for each position, including the vector of the first segment
	norm       layerNorm
	layers     []layer

	kernel  *kernel.Kernel
	expand  sync.Once // guards expanding the layers' blocks
	scratch sync.Pool // of *scratch
	unmap   func() error
	content []byte // of the file
	digest  []byte // of the content
}

// Space returns the name of the model and its dimensions: "all-MiniLM-L6-v2-int8/384".
func (m *Model) Space() string { return fmt.Sprintf("%s-int8/%d", m.Name, m.Width) }

// PassageTokens returns the number of tokens of a passage that are worth encoding: more tokens
// hardly improve the vectors.
func (m *Model) PassageTokens() int { return cmp.Or(m.Facts.PassageTokens, 128) }

// Knows reports whether the model was trained on a language, an ISO 639-1 code.
func (m *Model) Knows(language string) bool { return slices.Contains(m.Languages, language) }

// questionTokens is the largest number of tokens of passages that are encoded for one question.
const questionTokens = 30 * 128

// Candidates returns the number of passages that this processor can encode for a question in time.
func (m *Model) Candidates() int {
	return min(questionTokens, m.kernel.LayerTokens/len(m.layers)) / m.PassageTokens()
}

// EmbedQuestion returns the vector of a question, of unit length.
func (m *Model) EmbedQuestion(ctx context.Context, text string) ([]float32, error) {
	rows, err := m.embed(ctx, m.QuestionPrefix, []string{text}, m.MaxTokens)
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// EmbedPassages returns a vector of unit length for each text, in order. It uses the first limit
// tokens of each text, and never more than MaxTokens.
func (m *Model) EmbedPassages(ctx context.Context, texts []string, limit int) ([][]float32, error) {
	return m.embed(ctx, m.PassagePrefix, texts, min(limit, m.MaxTokens))
}

// batchRows is the number of tokens that are computed together, unless one text has more. It is
// large enough that loading the weights takes little of the time, and small enough that the
// intermediate results stay in the second-level cache.
const batchRows = 192

func (m *Model) embed(ctx context.Context, prefix string, texts []string, limit int) ([][]float32, error) {
	rows := make([][]float32, len(texts))
	tokens := make([][]int32, len(texts))
	group, encoding := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for first, count := 0, 0; first < len(texts); first, count = first+count, 0 {
		for total := 0; first+count < len(texts); count++ {
			i := first + count
			if tokens[i] == nil {
				tokens[i] = m.vocabulary.tokens(prefix+texts[i], limit)
			}
			if total += len(tokens[i]); count > 0 && total > batchRows {
				break
			}
		}
		batch, out := tokens[first:first+count], rows[first:first+count]
		group.Go(func() error {
			if encoding.Err() != nil {
				return context.Cause(encoding)
			}
			return m.encode(batch, out)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("encoding %d texts with %s: %w", len(texts), m.Name, err)
	}
	return rows, nil
}

// expandLayers expands weights in blocks to levels, which takes 21 MB of memory for a model of 12
// layers.
func (m *Model) expandLayers() {
	if !m.Blocks {
		return
	}
	var each sync.WaitGroup
	for i := range m.layers {
		each.Go(func() {
			for _, w := range m.layers[i].products() {
				w.expand()
			}
		})
	}
	each.Wait()
}

// encode sets out to the vectors of a batch of texts.
func (m *Model) encode(batch [][]int32, out [][]float32) error {
	s, _ := m.scratch.Get().(*scratch)
	if s == nil {
		s = &scratch{}
	}
	defer m.scratch.Put(s)
	m.expand.Do(m.expandLayers)
	m.forward(s, batch)
	first := 0
	for i, ids := range batch {
		sum, pooled := make([]float64, m.Width), len(ids)
		if m.Pooling == firstPooling {
			pooled = 1
		}
		for row := first; row < first+pooled; row++ {
			for j, x := range s.x[row*m.Width : (row+1)*m.Width] {
				sum[j] += float64(x)
			}
		}
		var square float64
		for _, x := range sum {
			square += x * x
		}
		if !(square > 0) || math.IsInf(square, 0) {
			return errors.New("its vectors are not finite: the model file is damaged")
		}
		out[i] = make([]float32, m.Width)
		for j, x := range sum {
			out[i][j] = float32(x / math.Sqrt(square))
		}
		first += len(ids)
	}
	return nil
}
