package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"

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

// NewReranker makes a reranker. It ignores the options for windows, tokens and
// dimensions; FirstToken bounds the whole reply.
func NewReranker(o Options) (*Reranker, error) {
	u, err := newUpstream(o)
	if err != nil {
		return nil, err
	}
	return &Reranker{u}, nil
}

// Close closes idle connections.
func (r *Reranker) Close() { r.http.CloseIdleConnections() }

// String names the model and the server.
func (r *Reranker) String() string { return r.o.String() }

// Rerank implements [retrieve.Reranker]; its errors are of type [*Error].
func (r *Reranker) Rerank(ctx context.Context, question string, texts []string) (scores []float64, err error) {
	if len(texts) == 0 {
		return nil, nil
	}
	body, err := json.Marshal(struct {
		Model     string   `json:"model"`
		Query     string   `json:"query"`
		Documents []string `json:"documents"`
		TopN      int      `json:"top_n"`
		Return    bool     `json:"return_documents"`
	}{r.o.Model, question, texts, len(texts), false})
	if err != nil {
		return nil, err
	}
	failed := r.attempts(ctx, r.o.Retries, func(ctx context.Context) (failed *Error) {
		scores, failed = r.attempt(ctx, body, question, texts)
		return failed
	})
	if failed != nil {
		return nil, failed
	}
	return scores, nil
}

// attempt makes one request.
func (r *Reranker) attempt(ctx context.Context, body []byte, question string, texts []string) ([]float64, *Error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.o.FirstToken, &limit{"the scores", r.o.FirstToken, flagFirstToken})
	defer cancel()
	most := int64(maxScore * (len(texts) + 1))
	for _, text := range texts {
		most += 8 * int64(len(text)) // at most, in JSON
	}
	call := &request{upstream: r.upstream, role: answer.RoleRerank, secrets: append([]string{question}, texts...), body: wholeBody(most)}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.o.BaseURL+"/rerank", bytes.NewReader(body))
	if err != nil {
		return nil, r.failed(ctx, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if r.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+r.o.Key)
	}
	resp, err := call.Do(req)
	if err != nil {
		return nil, r.failed(ctx, err)
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, r.failed(ctx, err)
	}
	return r.check(reply, len(texts))
}

// check puts the scores in the order of the texts.
func (r *Reranker) check(reply []byte, texts int) ([]float64, *Error) {
	bad := func(format string, args ...any) ([]float64, *Error) {
		return nil, r.fail(BadReply, nil, fmt.Sprintf(format, args...))
	}
	var ranked struct {
		Results []struct {
			Index *int     `json:"index"`
			Score *float64 `json:"relevance_score"`
		} `json:"results"`
	}
	if err := json.Unmarshal(reply, &ranked); err != nil {
		return bad("its results are not those of a reranker")
	}
	if len(ranked.Results) != texts {
		return bad("it has %d scores for %d texts", len(ranked.Results), texts)
	}
	scores, seen := make([]float64, texts), make([]bool, texts)
	for _, result := range ranked.Results {
		switch i := result.Index; {
		case i == nil || *i < 0 || *i >= texts || seen[*i]:
			return bad("the index of a score is not that of a text, or comes twice")
		case result.Score == nil || math.IsNaN(*result.Score) || math.IsInf(*result.Score, 0):
			return bad("a score is missing or not finite")
		}
		scores[*result.Index], seen[*result.Index] = *result.Score, true
	}
	return scores, nil
}
