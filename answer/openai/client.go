package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"

	"ibid/answer"
	"ibid/ingest"
)

// A Client completes prompts; it is an [answer.Model], safe for concurrent use.
type Client struct {
	*upstream
	abilities
}

// New makes a client. It makes no request.
func New(o Options) (*Client, error) {
	u, err := newUpstream(o)
	if err != nil {
		return nil, err
	}
	return &Client{upstream: u}, nil
}

// Complete implements [answer.Model]; its errors are of type [*Error].
func (c *Client) Complete(ctx context.Context, p answer.Prompt) iter.Seq2[answer.Piece, error] {
	return func(yield func(answer.Piece, error) bool) {
		r, retries := &reply{yield: yield}, c.o.Retries
		if p.Role == answer.RoleJudge || p.Role == answer.RoleVerify {
			// Package answer calls a judge a second time itself; retries here would multiply
			// the two. Error.RetryIn tells it how long to wait.
			retries = 0
		}
		err := c.retry(ctx, retries, func(ctx context.Context) *Error {
			r.requests++
			return c.attempt(ctx, p, r)
		})
		switch {
		case err == nil:
			c.reportAbilities()
		case !r.stopped:
			r.requests = err.Requests
			yield(answer.Piece{Usage: r.tokens(p)}, err)
		}
	}
}

// Once a reply has its finish reason, afterFinish bounds the wait for the usage,
// and afterDone the wait for the end of the stream, which only lets the
// connection be reused.
const (
	afterFinish = time.Second
	afterDone   = 200 * time.Millisecond
)

// attempt makes one request and yields its reply.
func (c *Client) attempt(ctx context.Context, p answer.Prompt, r *reply) *Error {
	r.usage, r.size, r.promptRead = nil, 0, false
	firstBy := time.Now().Add(c.o.FirstToken)
	ctx, wait := c.withTimeouts(ctx, c.o.FirstToken)
	defer wait.end()
	req := c.newRequest(p)
	defer c.learnOdds(req, r)
	body, err := json.Marshal(req)
	if err != nil {
		return c.newError(Rejected, err, "")
	}
	call := &request{upstream: c.upstream, role: string(p.Role), secrets: []string{p.System, p.User}}
	resp, failed := call.sendRequest(ctx, "/chat/completions", eventStream, body)
	if failed != nil {
		r.promptRead = failed.Kind == TimedOut || failed.Kind == Canceled
		return c.adaptRequest(req, r, failed)
	}
	stream := newEvents(ctx, call, resp.Body)
	defer stream.Close()
	for {
		raw, err := stream.next()
		// The consumer's time does not count against the server.
		wait.first.Stop()
		wait.idle.Stop()
		r.promptRead = r.promptRead || err == nil || ctx.Err() != nil
		switch {
		case err != nil && r.finish == filtered:
			return c.newError(Filtered, nil, "")
		case err != nil && r.finish != "":
			if replyLimit(req) > 0 && !p.Hard && r.isStarved() {
				wait.idle.Reset(afterDone)
				return c.liftLimit(r, p)
			}
			r.emitEnd(p)
			wait.idle.Reset(afterDone) // for stream.Close
			return nil
		case err != nil:
			e := c.bodyError(ctx, err)
			if errors.Is(err, io.EOF) {
				e = c.newError(Cut, io.ErrUnexpectedEOF, "it has no finish reason")
				e.transient = true
			}
			e.transient = e.transient && !r.begun
			return e
		}
		if e := c.readChunk(raw, r); e != nil || r.stopped {
			return e
		}
		switch {
		case r.finish != "":
			wait.idle.Reset(afterFinish)
		case r.begun:
			wait.idle.Reset(c.o.Idle)
		default:
			wait.first.Reset(time.Until(firstBy))
		}
	}
}

// A chatRequest is the library's request with a temperature that may be 0.
type chatRequest struct {
	openai.ChatCompletionRequest
	Temperature *float64 `json:"temperature,omitempty"`
}

// newRequest returns the request for a prompt.
func (c *Client) newRequest(p answer.Prompt) chatRequest {
	var req chatRequest
	can := c.Abilities()
	req.Model, req.Stream = c.o.Model, true
	if p.System != "" {
		req.Messages = append(req.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: p.System})
	}
	req.Messages = append(req.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: p.User})
	if !can.NoUsage {
		req.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	if !can.NoTemperature {
		req.Temperature = new(float64)
	}
	switch {
	case p.Verdict && !can.NoOdds:
		req.LogProbs, req.TopLogProbs = true, topOdds
		if can.Odds > 0 {
			p.MaxTokens = 1
		}
	case p.Verdict && !can.NoFormat:
		req.ResponseFormat = &openai.ChatCompletionResponseFormat{
			Type:       openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: "verdict", Strict: true, Schema: verdictSchema},
		}
	}
	if p.MaxTokens > 0 && (p.Hard || !can.Thinks) {
		if can.NewMaxTokens {
			req.MaxCompletionTokens = p.MaxTokens
		} else {
			//lint:ignore SA1019 most servers other than OpenAI's support only the old name
			req.MaxTokens = p.MaxTokens
		}
	}
	return req
}

// replyLimit returns the maximum length of the reply in tokens, or 0 for no limit.
func replyLimit(req chatRequest) int {
	//lint:ignore SA1019 see newRequest
	return max(req.MaxTokens, req.MaxCompletionTokens)
}

// liftLimit returns an error that repeats the request without a length limit, because
// the model used the whole length for reasoning. The tokens of the reasoning are counted.
func (c *Client) liftLimit(r *reply, p answer.Prompt) *Error {
	c.changeAbilities(func(a *Abilities) { a.Thinks = true })
	_, thought := r.splitter.endText()
	r.thoughts.WriteString(thought)
	lost := r.tokens(p)
	lost.Reasoning = max(lost.Reasoning, lost.Completion)
	*r = reply{yield: r.yield, requests: r.requests, lostTokens: lost}
	e := c.badReply("the model used the whole length for reasoning")
	e.adapted = true
	return e
}

// A chunk is one event of a streamed reply, or a whole reply in one event.
type chunk struct {
	Choices []struct {
		Index   int     `json:"index"`
		Delta   content `json:"delta"`
		Message content `json:"message"` // of a whole reply, instead of Delta
		Finish  string  `json:"finish_reason"`
		// Odds are the probabilities of the tokens in Delta, and of the most likely alternatives.
		Odds *openai.LogProbs `json:"logprobs"`
	} `json:"choices"`
	Usage *openai.Usage `json:"usage"`
}

type content struct {
	Content parts  `json:"content"`
	Refusal string `json:"refusal"`
	// Two names for the same field; a server that sends both sends the same text twice.
	Reasoning        string `json:"reasoning"`
	ReasoningContent string `json:"reasoning_content"`
}

// parts is the content of a message: a string, or a list of parts with text or
// thoughts, as Mistral's reasoning models send it.
type parts struct{ text, thought string }

func (p *parts) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		return json.Unmarshal(data, &p.text)
	}
	var list []struct {
		Text     string `json:"text"`
		Thinking []struct {
			Text string `json:"text"`
		} `json:"thinking"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	for _, part := range list {
		p.text += part.Text
		for _, thought := range part.Thinking {
			p.thought += thought.Text
		}
	}
	return nil
}

// readChunk yields the text of one event.
func (c *Client) readChunk(raw []byte, r *reply) *Error {
	var ch chunk
	if err := json.Unmarshal(raw, &ch); err != nil {
		return c.badReply("one of its events does not conform to the API")
	}
	if u := ch.Usage; u != nil && u.PromptTokens > 0 && u.CompletionTokens >= 0 {
		r.usage = u
		if d := u.CompletionTokensDetails; d != nil && d.ReasoningTokens > 0 {
			c.changeAbilities(func(a *Abilities) { a.Thinks = true })
		}
	}
	for _, choice := range ch.Choices {
		if choice.Index != 0 {
			continue
		}
		if choice.Odds != nil && r.text.Len() == 0 {
			r.yes = yesChance(choice.Odds.Content)
		}
		for _, m := range []content{choice.Delta, choice.Message} {
			text, thought := m.Content.text+m.Refusal, m.Content.thought
			if m.ReasoningContent != "" {
				thought += m.ReasoningContent
			} else {
				thought += m.Reasoning
			}
			r.size += len(text) + len(thought)
			if r.size > maxReply {
				return c.badReply("it is too long")
			}
			added := r.addPiece(text, thought)
			if r.thoughts.Len() > 0 {
				c.changeAbilities(func(a *Abilities) { a.Thinks = true })
			}
			if !added {
				return nil
			}
		}
		if choice.Finish != "" && r.finish == "" {
			if r.finish = finishReason(choice.Finish); r.finish == "" {
				return c.newError(Cut, io.ErrUnexpectedEOF, "its finish reason is unknown")
			}
		}
	}
	return nil
}

// filtered is the finish reason of a reply that a content filter has ended.
const filtered = "content_filter"

// finishReason converts the finish reasons of several servers to the values of the API.
// It returns "" for an unknown reason, which means that the reply is incomplete.
func finishReason(reason string) string {
	switch strings.ToLower(reason) {
	case "stop", "eos", "eos_token", "stop_sequence", "end_turn":
		return "stop"
	case "length", "max_tokens", "model_length":
		return "length"
	case "content_filter", "safety", "recitation":
		return filtered
	}
	return ""
}

// A reply is the reply to a prompt so far.
type reply struct {
	yield         func(answer.Piece, error) bool
	stopped       bool // the consumer ended the iteration
	begun         bool // the first token has arrived
	promptRead    bool // the server has read the prompt: it began to reply, or the wait timed out
	finish        string
	usage         *openai.Usage
	requests      int
	simplified    bool          // the parts that only verdicts have were omitted after an error that named no part
	size          int           // bytes of text and thoughts
	yes           float64       // probability of yes as the first word of a verdict
	lostTokens    answer.Tokens // of a request whose reply had only reasoning
	splitter      thoughtSplitter
	text          strings.Builder
	thoughts      strings.Builder
	countedBytes  int // bytes of thoughts whose tokens are counted
	thoughtTokens int // tokens in these bytes
}

// addPiece yields the next part of the reply, and reports whether to continue.
func (r *reply) addPiece(text, thought string) bool {
	if text == "" && thought == "" {
		return true
	}
	r.begun = true
	said, more := r.splitter.addPiece(text)
	r.thoughts.WriteString(thought)
	r.thoughts.WriteString(more)
	return r.emitText(said)
}

func (r *reply) emitText(text string) bool {
	if text == "" {
		return true
	}
	r.text.WriteString(text)
	usage := r.lostTokens
	usage.Requests = r.requests
	usage.Completion += r.thinking()
	usage.Reasoning += r.thinking()
	r.stopped = !r.yield(answer.Piece{Text: text, Yes: r.yes, Usage: usage}, nil)
	return !r.stopped
}

// isStarved reports whether the reply reached its length limit before its first word.
func (r *reply) isStarved() bool { return r.finish == "length" && r.text.Len() == 0 }

// emitEnd yields the last piece.
func (r *reply) emitEnd(p answer.Prompt) {
	text, thought := r.splitter.endText()
	r.thoughts.WriteString(thought)
	if r.emitText(text) {
		r.stopped = !r.yield(answer.Piece{Finish: r.finish, Usage: r.tokens(p)}, nil)
	}
}

// thinking counts the tokens of the thoughts so far.
func (r *reply) thinking() int {
	if thoughts := r.thoughts.String(); len(thoughts) > r.countedBytes {
		r.thoughtTokens += ingest.CountTokens(thoughts[r.countedBytes:])
		r.countedBytes = len(thoughts)
	}
	return r.thoughtTokens
}

// tokens returns the server's count of tokens, or Ibid's own if the server sent none.
// Completion includes Reasoning.
func (r *reply) tokens(p answer.Prompt) answer.Tokens {
	t := answer.Tokens{Requests: r.requests}
	if r.requests == 0 {
		return t
	}
	t.Reasoning = r.thinking()
	if u := r.usage; u != nil {
		t.Prompt, t.Completion, t.Reported = u.PromptTokens, u.CompletionTokens, true
		if d := u.CompletionTokensDetails; d != nil && d.ReasoningTokens > 0 {
			t.Reasoning = d.ReasoningTokens
		}
		t.Reasoning = min(t.Reasoning, t.Completion)
	} else if r.promptRead {
		t.Prompt = ingest.CountTokens(p.System) + ingest.CountTokens(p.User)
		t.Completion = ingest.CountTokens(r.text.String()) + t.Reasoning
	}
	t.Prompt += r.lostTokens.Prompt
	t.Completion += r.lostTokens.Completion
	t.Reasoning += r.lostTokens.Reasoning
	return t
}
