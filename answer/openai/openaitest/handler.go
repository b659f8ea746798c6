// Package openaitest is a scripted OpenAI-compatible server for tests: real
// HTTP, replies by rule or by function, latency for each token, and every known
// way in which such a server fails.
//
// In a test, start one and pass its address to a client:
//
//	h := &openaitest.Handler{Reply: openaitest.Rules(
//		openaitest.Rule{Role: "judge", Prompt: regexp.MustCompile("tide"), Reply: openaitest.Reply{Text: "relevant"}},
//		openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "off topic"}},
//		openaitest.Rule{Reply: openaitest.Reply{Text: "High water is at noon [1]."}},
//	)}
//	url := openaitest.Start(t, h)
//
// In a program, a [Handler] is an ordinary [http.Handler].
package openaitest

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Handler serves POST /v1/chat/completions (streamed or whole), POST
// /v1/embeddings, POST /v1/rerank and GET /v1/models. Its zero value replies "ok"
// to every prompt. Set the fields before the first request; it is safe for
// concurrent requests.
type Handler struct {
	// Reply makes the reply to a chat request; nil replies "ok". Several requests
	// may call it at once.
	Reply func(Request) Reply
	// Embed makes the reply to an embeddings request; only its Fault and latency
	// are used. Nil means no fault.
	Embed func(Request) Reply
	// Rerank makes the reply to a rerank request, in the same way as Embed.
	Rerank func(Request) Reply
	// FirstToken is the delay before the first token of a reply, PerToken the delay
	// before each further token, unless the reply overrides them.
	FirstToken, PerToken time.Duration
	// Dimensions is the length of the vectors; 0 means 64.
	Dimensions int
	// Vector, when set, replaces the function [Vector]. Several requests may call
	// it at once.
	Vector func(text string) []float32
	// Model is the one model listed by /v1/models; empty means "test-model".
	Model string
	// Key, when set, is the required bearer token; without it the reply is 401.
	Key string
	// Huge is the size in bytes of the replies that are too large; 0 means 300 MB.
	Huge int64
	// Done, when set, is called when a request has ended.
	Done func(Exchange)

	mu        sync.Mutex
	exchanges []Exchange
}

// A Request is what a client asked.
type Request struct {
	N         int    // 1-based, over all requests to the handler
	Role      string // header Ibid-Role
	Path      string
	Header    http.Header
	Body      []byte
	Model     string
	System    string   // all system messages, joined by newlines
	User      string   // all other messages, joined by newlines
	Inputs    []string // of an embeddings request; the documents of a rerank request
	Query     string   // of a rerank request
	Stream    bool
	Usage     bool // stream_options.include_usage
	MaxTokens int  // max_tokens or max_completion_tokens
	Tokens    int  // of the prompt or the inputs, counted as [Split] does
}

// Prompt is System and User, joined by a newline.
func (r Request) Prompt() string { return r.System + "\n" + r.User }

// An Exchange is a request and how it ended.
type Exchange struct {
	Request
	Sent  int  // tokens of the reply that were written
	Gone  bool // the client left before the reply ended
	Ended bool
	Start time.Time
	End   time.Time
}

// A Reply is what to reply.
type Reply struct {
	Text string
	// Reasoning comes before the text: in the field that ReasoningField names
	// ("reasoning", "reasoning_content"), or, if that is empty, inside
	// <think> tags at the start of the text.
	Reasoning      string
	ReasoningField string
	// Finish is the finish reason; empty means "stop".
	Finish string
	// FirstToken and PerToken replace those of the handler when not 0.
	FirstToken, PerToken time.Duration
	// PromptTokens is the number reported as read; 0 means Request.Tokens.
	PromptTokens int
	// Fault is how the reply fails; if it is empty, the reply succeeds.
	Fault Fault
	// After is how many tokens come before a fault in the middle; 0 means 3.
	After int

	thinking bool // the reasoning is cut before its end
}

// limitTokens returns the reply cut to a number of tokens; 0 means no limit.
// As with real servers, reasoning counts, and the finish reason of a cut
// reply is "length".
func (r Reply) limitTokens(tokens int) Reply {
	thoughts, text := Split(r.Reasoning), Split(r.Text)
	if tokens <= 0 || len(thoughts)+len(text) <= tokens {
		return r
	}
	r.Finish = "length"
	if r.thinking = len(thoughts) > tokens; r.thinking {
		r.Reasoning, r.Text = strings.Join(thoughts[:tokens], ""), ""
	} else {
		r.Text = strings.Join(text[:tokens-len(thoughts)], "")
	}
	return r
}

// A Rule is one line of a script.
type Rule struct {
	Role   string         // the request's role; empty matches all
	Prompt *regexp.Regexp // searched in Request.Prompt; nil matches all
	Times  int            // how often the rule applies; 0 means always
	Reply  Reply
	Func   func(Request) Reply // in place of Reply when not nil
}

// Rules returns a script in which the first matching rule applies. If no rule matches,
// the reply is an error with status 500.
func Rules(rules ...Rule) func(Request) Reply {
	var mu sync.Mutex
	used := make([]int, len(rules))
	return func(r Request) Reply {
		mu.Lock()
		defer mu.Unlock()
		for i, rule := range rules {
			switch {
			case rule.Role != "" && rule.Role != r.Role,
				rule.Prompt != nil && !rule.Prompt.MatchString(r.Prompt()),
				rule.Times > 0 && used[i] >= rule.Times:
				continue
			}
			used[i]++
			if rule.Func != nil {
				return rule.Func(r)
			}
			return rule.Reply
		}
		return Reply{Fault: noRule}
	}
}

// Sequence returns a function that returns the replies one after the other, and
// then always the last.
func Sequence(replies ...Reply) func(Request) Reply {
	rules := make([]Rule, len(replies))
	for i, r := range replies {
		rules[i] = Rule{Times: 1, Reply: r}
	}
	rules[len(rules)-1].Times = 0
	return Rules(rules...)
}

// Start serves the handler on a loopback port until the test ends, and returns
// the base URL of the API: http://127.0.0.1:PORT/v1.
func Start(t testing.TB, h *Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// Exchanges returns the requests so far, in the order of arrival.
func (h *Handler) Exchanges() []Exchange {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.exchanges)
}

// Split cuts a text into the tokens in which it is streamed and counted: at most
// five letters with the space before them. Joined, they are the text.
func Split(text string) []string {
	var tokens []string
	start, letters := 0, 0
	space := true
	for i, r := range text {
		isSpace := r == ' ' || r == '\n' || r == '\t'
		if i > start && (letters == 5 || isSpace && !space) {
			tokens = append(tokens, text[start:i])
			start, letters = i, 0
		}
		if !isSpace {
			letters++
		}
		space = isSpace
	}
	if start < len(text) {
		tokens = append(tokens, text[start:])
	}
	return tokens
}

// maxRequest bounds what is read of a request, in bytes.
const maxRequest = 64 << 20

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{h: h, w: w, r: r, Exchange: Exchange{Start: time.Now()}}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return
	}
	x.Request = readRequest(r, body)
	h.mu.Lock()
	x.N = len(h.exchanges) + 1
	h.exchanges = append(h.exchanges, x.Exchange)
	h.mu.Unlock()
	defer x.end()

	reply := func(by func(Request) Reply) Reply {
		if by == nil {
			return Reply{Text: "ok"}
		}
		return by(x.Request)
	}
	switch path := r.Method + r.URL.Path; {
	case h.Key != "" && r.Header.Get("Authorization") != "Bearer "+h.Key:
		x.sendStatus(Unauthorized)
	case strings.HasPrefix(path, "GET") && strings.HasSuffix(path, "/models"):
		x.object(encode(map[string]any{"object": "list", "data": []any{map[string]any{"id": x.model(), "object": "model"}}}), 0)
	case !strings.HasPrefix(path, "POST"):
		http.NotFound(w, r)
	case strings.HasSuffix(path, "/chat/completions"):
		x.reply = reply(h.Reply).limitTokens(x.MaxTokens)
		x.chat()
	case strings.HasSuffix(path, "/embeddings"):
		x.reply = reply(h.Embed)
		x.embed()
	case strings.HasSuffix(path, "/rerank"):
		x.reply = reply(h.Rerank)
		x.rerank()
	default:
		http.NotFound(w, r)
	}
}

func readRequest(r *http.Request, body []byte) Request {
	req := Request{Role: r.Header.Get("Ibid-Role"), Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	var in struct {
		Model    string `json:"model"`
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
		Input     json.RawMessage `json:"input"`
		Query     string          `json:"query"`
		Documents []string        `json:"documents"`
		Stream    bool            `json:"stream"`
		MaxTokens int             `json:"max_tokens"`
		MaxNew    int             `json:"max_completion_tokens"`
		Options   struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if json.Unmarshal(body, &in) != nil {
		return req
	}
	req.Model, req.Stream, req.Usage = in.Model, in.Stream, in.Options.Usage
	req.MaxTokens = max(in.MaxTokens, in.MaxNew)
	var system, user []string
	for _, m := range in.Messages {
		if m.Role == "system" || m.Role == "developer" {
			system = append(system, m.Content)
		} else {
			user = append(user, m.Content)
		}
	}
	req.System, req.User = strings.Join(system, "\n"), strings.Join(user, "\n")
	if json.Unmarshal(in.Input, &req.Inputs) != nil {
		var one string
		if json.Unmarshal(in.Input, &one) == nil {
			req.Inputs = []string{one}
		}
	}
	if in.Documents != nil {
		req.Inputs, req.Query = in.Documents, in.Query
	}
	for _, text := range append([]string{req.System, req.User, req.Query}, req.Inputs...) {
		req.Tokens += len(Split(text))
	}
	return req
}

// An exchange is one request while it is handled.
type exchange struct {
	Exchange
	h     *Handler
	w     http.ResponseWriter
	r     *http.Request
	reply Reply
}

func (x *exchange) end() {
	x.Ended, x.End, x.Gone = true, time.Now(), x.Gone || x.r.Context().Err() != nil
	x.h.mu.Lock()
	x.h.exchanges[x.N-1] = x.Exchange
	x.h.mu.Unlock()
	if x.h.Done != nil {
		x.h.Done(x.Exchange)
	}
}

func (x *exchange) model() string { return cmp.Or(x.h.Model, "test-model") }

// wait sleeps and reports whether the client is still connected.
func (x *exchange) wait(d time.Duration) bool {
	if d > 0 {
		select {
		case <-time.After(d):
		case <-x.r.Context().Done():
		}
	}
	x.Gone = x.Gone || x.r.Context().Err() != nil
	return !x.Gone
}

// stall waits until the client has left.
func (x *exchange) stall() {
	<-x.r.Context().Done()
	x.Gone = true
}

// write sends the bytes immediately.
func (x *exchange) write(text string) {
	if _, err := io.WriteString(x.w, text); err != nil {
		x.Gone = true
		return
	}
	if err := http.NewResponseController(x.w).Flush(); err != nil {
		x.Gone = true
	}
}
