package openaitest

import "strings"

type rank struct {
	Index any `json:"index"`
	Score any `json:"relevance_score"`
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

// rerank answers a rerank request.
func (x *exchange) rerank() {
	results := []rank{}
	for i, text := range x.req.Inputs {
		results = append(results, rank{i, Score(x.req.Query, text)})
	}
	if n := len(results); n > 0 {
		switch x.reply.Fault {
		case RankShort:
			results = results[:n-1]
		case RankLong:
			results = append(results, rank{n, 0.5})
		case RankPermuted:
			for i := range n / 2 {
				results[i], results[n-1-i] = results[n-1-i], results[i]
			}
		case RankSameIndex:
			results[n-1].Index = 0
		case RankNoIndex:
			results[0].Index = nil
		case RankNull:
			results[0].Score = nil
		case RankText:
			results[0].Score = "high"
		}
	}
	body := encode(map[string]any{"id": "rerank-1", "model": x.model(), "results": results})
	switch x.reply.Fault {
	case RankOverflow:
		body = strings.Replace(body, `"relevance_score":`, `"relevance_score":1e999,"was":`, 1)
	case RankNothing:
		body = "{}"
	}
	x.object(body, len(results))
}
