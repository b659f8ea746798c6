package openai

import (
	"context"
	"math"

	"ibid/answer"
)

// A Reranker scores texts against a question by the rerank endpoint that
// Cohere, Jina, vLLM, llama.cpp, Infinity and others share: POST /rerank with
// {"model","query","documents"}, answered by
// {"results":[{"index","relevance_score"}]}. It is a [retrieve.Reranker], safe
// for concurrent use.
type Reranker struct{ *upstream }

// maxScore bounds the reply for one text, in bytes, in addition to the text
// itself, which some servers send back.
const maxScore = 1 << 10

// NewReranker makes a reranker. It ignores Idle, BatchTexts, BatchTokens and
// Parallel; FirstToken bounds the whole reply.
func NewReranker(o Options) (*Reranker, error) {
	u, err := newUpstream(o)
	if err != nil {
		return nil, err
	}
	return &Reranker{u}, nil
}

// String names the model and the server.
func (r *Reranker) String() string { return r.o.String() }

// Rerank implements [retrieve.Reranker]; its errors are of type [*Error].
func (r *Reranker) Rerank(ctx context.Context, question string, texts []string) (scores []float64, err error) {
	if len(texts) == 0 {
		return nil, nil
	}
	failed := r.retry(ctx, r.o.Retries, func(ctx context.Context) (failed *Error) {
		scores, failed = r.attempt(ctx, question, texts)
		return failed
	})
	if failed != nil {
		return nil, failed
	}
	return scores, nil
}

// A score is the score of one text in a reply.
type score struct {
	Index *int     `json:"index"`
	Score *float64 `json:"relevance_score"`
}

// attempt makes one request.
func (r *Reranker) attempt(ctx context.Context, question string, texts []string) ([]float64, *Error) {
	most := int64(maxScore * (len(texts) + 1))
	for _, text := range texts {
		most += 8 * int64(len(text)) // at most, in JSON
	}
	var reply struct {
		Results []score `json:"results"`
	}
	call := &request{upstream: r.upstream, role: string(answer.RoleRerank), secrets: append([]string{question}, texts...)}
	if failed := call.requestObject(ctx, "/rerank", "the scores", map[string]any{
		"model": r.o.Model, "query": question, "documents": texts, "top_n": len(texts), "return_documents": false,
	}, most, &reply); failed != nil {
		return nil, failed
	}
	return r.checkResults(reply.Results, len(texts))
}

// checkResults puts the scores in the order of the texts.
func (r *Reranker) checkResults(results []score, texts int) ([]float64, *Error) {
	if len(results) != texts {
		return nil, r.badReply("it has %d scores for %d texts", len(results), texts)
	}
	scores, seen := make([]float64, texts), make([]bool, texts)
	for _, result := range results {
		switch i := result.Index; {
		case i == nil || *i < 0 || *i >= texts || seen[*i]:
			return nil, r.badReply("the index of a score is out of range or repeated")
		case result.Score == nil || math.IsNaN(*result.Score) || math.IsInf(*result.Score, 0):
			return nil, r.badReply("a score is missing or not finite")
		}
		scores[*result.Index], seen[*result.Index] = *result.Score, true
	}
	return scores, nil
}
