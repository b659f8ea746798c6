package openaitest

import (
	"hash/fnv"
	"math"
	"strings"
	"unicode"
)

// Vector is the vector that the server gives for a text: each word adds or
// takes one in a place that its hash chooses; unit length. Texts that share
// words are near each other, the same text is always the same vector.
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

type embedding struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"`
}

// embed answers an embeddings request.
func (x *exchange) embed() {
	dimensions := x.h.Dimensions
	if dimensions == 0 {
		dimensions = 64
	}
	if x.reply.Fault == EmbedDimensions {
		dimensions++
	}
	vector := x.h.Vector
	if vector == nil {
		vector = func(text string) []float32 { return Vector(text, dimensions) }
	}
	var data []embedding
	for i, text := range x.req.Inputs {
		data = append(data, embedding{"embedding", i, vector(text)})
	}
	if n := len(data); n > 0 {
		last := &data[n-1]
		switch x.reply.Fault {
		case EmbedShort:
			data = data[:n-1]
		case EmbedLong:
			data = append(data, embedding{"embedding", n, Vector("more", dimensions)})
		case EmbedPermuted:
			for i := range n / 2 {
				data[i], data[n-1-i] = data[n-1-i], data[i]
			}
		case EmbedSameIndex:
			last.Index = 0
		case EmbedMixed:
			last.Embedding = Vector("other", dimensions/2)
		case EmbedZero:
			last.Embedding = make([]float32, dimensions)
		case EmbedNull:
			last.Embedding = nil
		case EmbedBase64:
			last.Embedding = "AACAPwAAAAA="
		}
	}
	body := encode(map[string]any{
		"object": "list", "model": x.model(), "data": data,
		"usage": map[string]any{"prompt_tokens": x.req.Tokens, "total_tokens": x.req.Tokens},
	})
	switch x.reply.Fault {
	case EmbedNaN:
		body = strings.Replace(body, `"embedding":[`, `"embedding":[NaN,`, 1)
	case EmbedOverflow:
		body = strings.Replace(body, `"embedding":[`, `"embedding":[1e39,`, 1)
	case EmbedNothing:
		body = "{}"
	}
	x.object(body, len(data))
}

// object sends a reply that is one JSON object with so many parts, or what its
// fault makes of it.
func (x *exchange) object(body string, parts int) {
	if x.reply.Fault != "" && x.fail(body) {
		return
	}
	if !x.wait(x.first()) {
		return
	}
	x.w.Header().Set("Content-Type", "application/json")
	x.write(body)
	x.sent = parts
}
