package openaitest

import (
	"cmp"
	"hash/fnv"
	"math"
	"strings"
	"unicode"
)

// Vector is the server's vector of a text: each word adds or subtracts one at a
// place that its hash chooses, and the vector is scaled to unit length. Texts
// that share words are near each other, and the same text always has the same
// vector.
func Vector(text string, dimensions int) []float32 {
	v := make([]float32, dimensions)
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for _, word := range words {
		h := fnv.New64a()
		h.Write([]byte(word))
		sum := h.Sum64()
		sign := float32(1)
		if sum>>63 == 1 {
			sign = -1
		}
		v[sum%uint64(dimensions)] += sign
	}
	var norm float64
	for _, c := range v {
		norm += float64(c) * float64(c)
	}
	if norm == 0 {
		v[0], norm = 1, 1
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(norm))
	}
	return v
}

// embed replies to an embeddings request.
func (x *exchange) embed() {
	vector := x.h.Vector
	if vector == nil {
		vector = func(text string) []float32 { return Vector(text, cmp.Or(x.h.Dimensions, 64)) }
	}
	data := []any{}
	for i, text := range x.Inputs {
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": vector(text)})
	}
	x.object(encode(map[string]any{
		"object": "list", "model": x.model(), "data": data,
		"usage": map[string]any{"prompt_tokens": x.Tokens, "total_tokens": x.Tokens},
	}), len(data))
}

// object sends a reply that is one JSON object, or its fault. parts is the number of
// vectors or scores in the reply.
func (x *exchange) object(body string, parts int) {
	if x.reply.Fault != "" && x.playFault(body) || !x.wait(x.firstTokenDelay()) {
		return
	}
	x.w.Header().Set("Content-Type", "application/json")
	x.write(body)
	x.Sent = parts
}

// Score is the relevance that the server gives a text for a question: the
// cosine of their [Vector]s.
func Score(question, text string) (score float64) {
	a, b := Vector(question, 64), Vector(text, 64)
	for i := range a {
		score += float64(a[i]) * float64(b[i])
	}
	return score
}

// rerank replies to a rerank request.
func (x *exchange) rerank() {
	results := []any{}
	for i, text := range x.Inputs {
		results = append(results, map[string]any{"index": i, "relevance_score": Score(x.Query, text)})
	}
	x.object(encode(map[string]any{"id": "rerank-1", "model": x.model(), "results": results}), len(results))
}
