package openaitest

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
	for i, text := range x.req.Inputs {
		results = append(results, map[string]any{"index": i, "relevance_score": Score(x.req.Query, text)})
	}
	x.object(encode(map[string]any{"id": "rerank-1", "model": x.model(), "results": results}), len(results))
}
