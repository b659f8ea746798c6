package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/answer/openai/openaitest"
	"ibid/data/datatest"
	"ibid/ingest"
)

var must = datatest.Must

var _ answer.Model = (*openai.Client)(nil)

func newClient(t *testing.T, o openai.Options) *openai.Client {
	t.Helper()
	if o.Model == "" {
		o.Model = "m"
	}
	c, err := openai.New(o)
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

// piped returns a client of the handler over HTTP in memory.
func piped(t *testing.T, h *openaitest.Handler, o openai.Options) *openai.Client {
	t.Helper()
	o.BaseURL, o.Transport = openaitest.PipeURL, openaitest.Pipe(t, h)
	return newClient(t, o)
}

var prompt = answer.Prompt{Role: answer.RoleAnswer, System: "Judge.", User: "Is it high water?"}

func TestRequestBody(t *testing.T) {
	for _, c := range []struct {
		name   string
		o      openai.Options
		prompt answer.Prompt
		want   string
	}{
		{"ordinary", openai.Options{Model: "qwen"}, answer.Prompt{System: "S", User: "U", MaxTokens: 40},
			`{"max_tokens":40,"messages":[{"content":"S","role":"system"},{"content":"U","role":"user"}],"model":"qwen","stream":true,"stream_options":{"include_usage":true},"temperature":0}`},
		{"without system or limit", openai.Options{Model: "qwen"}, answer.Prompt{User: "U"},
			`{"messages":[{"content":"U","role":"user"}],"model":"qwen","stream":true,"stream_options":{"include_usage":true},"temperature":0}`},
		{"a prompt that looks like the field", openai.Options{Model: "qwen"}, answer.Prompt{User: `"temperature":1e-45`},
			`{"messages":[{"content":"\"temperature\":1e-45","role":"user"}],"model":"qwen","stream":true,"stream_options":{"include_usage":true},"temperature":0}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &openaitest.Handler{}
			if _, _, err := drain(piped(t, h, c.o), t.Context(), c.prompt); err != nil {
				t.Fatal(err)
			}
			var body map[string]any
			must(t, json.Unmarshal(h.Exchanges()[0].Body, &body))
			got, err := json.Marshal(body) // with sorted keys
			must(t, err)
			if string(got) != c.want {
				t.Errorf("request = %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestKeyIsOptional(t *testing.T) {
	for _, key := range []string{"", "secret"} {
		h := &openaitest.Handler{Key: key}
		if _, _, err := drain(piped(t, h, openai.Options{Key: key + "\n"}), t.Context(), prompt); err != nil {
			t.Errorf("call with the key %q: %v", key, err)
		}
		want := ""
		if key != "" {
			want = "Bearer " + key
		}
		if got := h.Exchanges()[0].Header.Get("Authorization"); got != want {
			t.Errorf("key %q: Authorization = %q, want %q", key, got, want)
		}
	}
}

// TestAdapts checks that parameters that a server refuses are left out for a week, also by
// a new client that gets the stored findings.
func TestAdapts(t *testing.T) {
	refuse := func(param, message string) func(w http.ResponseWriter, body string) bool {
		return func(w http.ResponseWriter, body string) bool {
			if !strings.Contains(body, `"`+param+`":`) {
				return false
			}
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":%q,"param":%q,"code":"unsupported_parameter"}}`, message, param)
			return true
		}
	}
	refusals := []func(http.ResponseWriter, string) bool{
		refuse("stream_options", "Unrecognized request argument supplied: stream_options"),
		refuse("temperature", "Unsupported value: 'temperature' does not support 0 with this model."),
		refuse("max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
	}
	inner := &openaitest.Handler{}
	requests := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		for _, refuse := range refusals {
			if refuse(w, string(body)) {
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		inner.ServeHTTP(w, r)
	}))
	defer s.Close()
	p := prompt
	p.MaxTokens = 40
	var known openai.Abilities
	for i, test := range []struct {
		remembered time.Duration // time until another client is used; 0 for none
		want       []int         // number of requests of each call
	}{{0, []int{4, 1}}, {6 * 24 * time.Hour, []int{1}}, {8 * 24 * time.Hour, []int{4, 1}}} {
		c := newClient(t, openai.Options{BaseURL: s.URL, Retries: -1})
		known.Since = known.Since.Add(-test.remembered)
		told := 0
		c.Remember(known, func(a openai.Abilities) { known, told = a, told+1 })
		for call, want := range test.want {
			requests = 0
			text, last, err := drain(c, t.Context(), p)
			if err != nil || text != "ok" || last.Usage.Reported || requests != want {
				t.Fatalf("client %d, call %d: %q, %+v, %v; %d requests, want %d", i, call, text, last, err, requests, want)
			}
		}
		if told != test.want[0]/4 {
			t.Errorf("client %d: findings reported %d times, want %d", i, told, test.want[0]/4)
		}
	}
}

// TestThoughtsHaveRoom: servers count thoughts against the limit on a reply's length. A
// model that thinks must still reply: the limit is dropped from then on, and the tokens of
// the lost thoughts are counted.
func TestThoughtsHaveRoom(t *testing.T) {
	thoughts := strings.Repeat("tide ", 100)
	p := prompt
	p.Role, p.MaxTokens = answer.RoleJudge, 20
	for _, field := range []string{"", "reasoning", "reasoning_content"} {
		for _, fault := range []openaitest.Fault{"", openaitest.PlainJSON, openaitest.NoUsage} {
			h := &openaitest.Handler{Reply: func(openaitest.Request) openaitest.Reply {
				return openaitest.Reply{Text: "relevant", Reasoning: thoughts, ReasoningField: field, Fault: fault}
			}}
			c := piped(t, h, openai.Options{})
			for call, requests := range []int{2, 1} {
				text, last, err := drain(c, t.Context(), p)
				if err != nil || text != "relevant" || last.Finish != "stop" || last.Usage.Requests != requests {
					t.Errorf("%q %q, call %d: got %q, %+v, %v", field, fault, call+1, text, last, err)
				}
				if most := 100 + 20*(requests-1); last.Usage.Reasoning < most || last.Usage.Completion <= last.Usage.Reasoning {
					t.Errorf("%q %q, call %d: usage = %+v", field, fault, call+1, last.Usage)
				}
			}
			var asked []int
			for _, x := range h.Exchanges() {
				asked = append(asked, x.MaxTokens)
			}
			if !slices.Equal(asked, []int{20, 0, 0}) {
				t.Errorf("%q %q: max_tokens of the requests = %v, want [20 0 0]", field, fault, asked)
			}
		}
	}

	for what, test := range map[string]struct {
		replies      []openaitest.Reply
		text, finish string
		requests     int
	}{
		"hidden thoughts, of which only the length shows": {[]openaitest.Reply{{Finish: "length"}, {Text: "relevant"}}, "relevant", "stop", 2},
		"a long reply, which has begun": {[]openaitest.Reply{{Text: strings.Repeat("tide ", 100)}},
			strings.TrimSpace(strings.Repeat("tide ", 20)), "length", 1},
		"no reply at all, which is given as it is": {[]openaitest.Reply{{Finish: "length"}}, "", "length", 2},
	} {
		h := &openaitest.Handler{Reply: openaitest.Sequence(test.replies...)}
		text, last, err := drain(piped(t, h, openai.Options{}), t.Context(), p)
		if err != nil || text != test.text || last.Finish != test.finish || last.Usage.Requests != test.requests {
			t.Errorf("%s: got %q, %+v, %v", what, text, last, err)
		}
	}

	// If the limit is meant for thoughts too, it is kept, and the reply is empty.
	h := &openaitest.Handler{Reply: openaitest.Sequence(openaitest.Reply{Text: "relevant", Reasoning: thoughts})}
	hard := p
	hard.Hard = true
	c := piped(t, h, openai.Options{})
	for range 2 {
		if text, last, err := drain(c, t.Context(), hard); err != nil || text != "" || last.Finish != "length" || last.Usage.Requests != 1 ||
			last.Usage.Completion != 20 {
			t.Errorf("hard limit: got %q, %+v, %v", text, last, err)
		}
	}
}

func TestUsage(t *testing.T) {
	h := &openaitest.Handler{Reply: openaitest.Sequence(
		openaitest.Reply{Text: "one two three", PromptTokens: 7},
		openaitest.Reply{Text: "one two three", Fault: openaitest.NoUsage},
		openaitest.Reply{Text: "one two three", Fault: openaitest.NoFinish},
	)}
	c := piped(t, h, openai.Options{})
	own := ingest.CountTokens(prompt.System) + ingest.CountTokens(prompt.User)
	for i, want := range []answer.Tokens{
		{Prompt: 7, Completion: 3, Reported: true, Requests: 1},
		{Prompt: own, Completion: 3, Requests: 1},
		{Prompt: own, Completion: 3, Requests: 1},
	} {
		_, last, err := drain(c, t.Context(), prompt)
		if last.Usage != want {
			t.Errorf("call %d: usage = %+v, want %+v", i, last.Usage, want)
		}
		if (err != nil) != (i == 2) {
			t.Errorf("call %d: err = %v", i, err)
		}
	}
}

func TestFinishReasons(t *testing.T) {
	for sent, want := range map[string]string{
		"stop": "stop", "length": "length",
		"eos_token": "stop", "end_turn": "stop", "max_tokens": "length", "STOP": "stop",
	} {
		h := &openaitest.Handler{Reply: openaitest.Sequence(openaitest.Reply{Text: "text", Finish: sent})}
		_, last, err := drain(piped(t, h, openai.Options{}), t.Context(), prompt)
		if err != nil || last.Finish != want {
			t.Errorf("finish_reason %s: got %q, %v; want %q", sent, last.Finish, err, want)
		}
	}
	for sent, want := range map[string]openai.Kind{"content_filter": openai.Filtered, "tool_calls": openai.Cut} {
		h := &openaitest.Handler{Reply: openaitest.Sequence(openaitest.Reply{Text: "text", Finish: sent})}
		_, _, err := drain(piped(t, h, openai.Options{}), t.Context(), prompt)
		checkError(t, err, outcome{Kind: want, Requests: 1})
	}
}

// TestUsageOfAnotherAttempt checks that the usage of a failed attempt does not count for
// the next.
func TestUsageOfAnotherAttempt(t *testing.T) {
	requests := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		stream := `data: {"choices":[{"delta":{"content":"yes"},"finish_reason":"stop"}]}` + "\n"
		if requests++; requests == 1 {
			stream = `data: {"choices":[],"usage":{"prompt_tokens":1234,"completion_tokens":0}}` + "\n"
		}
		if _, err := io.WriteString(w, stream); err != nil {
			t.Error(err)
		}
	}))
	defer s.Close()
	_, last, err := drain(newClient(t, openai.Options{BaseURL: s.URL}), t.Context(), prompt)
	if err != nil || last.Usage.Reported || last.Usage.Prompt == 1234 || last.Usage.Requests != 2 {
		t.Errorf("got %+v, %v", last, err)
	}
}

// TestWaits checks that the client waits between requests as long as the server asks, with
// jitter.
func TestWaits(t *testing.T) {
	for _, c := range []struct {
		fault      openaitest.Fault
		least      []time.Duration
		mostExcess time.Duration
	}{
		{openaitest.Unavailable, []time.Duration{250 * time.Millisecond, 500 * time.Millisecond}, 500 * time.Millisecond},
		{openaitest.RateLimitSeconds, []time.Duration{time.Second, time.Second}, 500 * time.Millisecond},
		{openaitest.RateLimitDate, []time.Duration{time.Second, time.Second}, 1500 * time.Millisecond}, // dates have a precision of a second
		{openaitest.ResetFirst, []time.Duration{250 * time.Millisecond, 500 * time.Millisecond}, 500 * time.Millisecond},
	} {
		seen := make(map[time.Duration]bool)
		for range 4 {
			synctest.Test(t, func(t *testing.T) {
				h := &openaitest.Handler{Reply: openaitest.Sequence(
					openaitest.Reply{Fault: c.fault}, openaitest.Reply{Fault: c.fault}, openaitest.Reply{Text: "relevant"},
				)}
				text, last, err := drain(piped(t, h, openai.Options{}), t.Context(), prompt)
				if err != nil || text != "relevant" || last.Usage.Requests != 3 {
					t.Fatalf("got %q, %+v, %v", text, last, err)
				}
				x := h.Exchanges()
				for i, least := range c.least {
					wait := x[i+1].Start.Sub(x[i].Start)
					seen[wait] = true
					if wait < least || wait > least+c.mostExcess {
						t.Errorf("%s: waited %s, want between %s and %s", c.fault, wait, least, least+c.mostExcess)
					}
				}
			})
		}
		if len(seen) < 4 {
			t.Errorf("%s: only %d different waits of 8", c.fault, len(seen))
		}
	}
}

// TestNoWaitBeyondTheDeadline checks that the client does not wait if the wait would
// outlast the deadline.
func TestNoWaitBeyondTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &openaitest.Handler{Reply: openaitest.Sequence(openaitest.Reply{Fault: openaitest.RateLimitSeconds})}
		c := piped(t, h, openai.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, _, err := drain(c, ctx, prompt)
		var e *openai.Error
		if !errors.As(err, &e) || e.Kind != openai.RateLimited || e.RetryAfter != time.Second || e.Requests != 1 {
			t.Errorf("err = %+v, want RateLimited after one request", e)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("the call took %s, want none", took)
		}
	})
}

// TestTimeLimits checks that each limit ends the call exactly on time.
func TestTimeLimits(t *testing.T) {
	o := openai.Options{FirstToken: 30 * time.Second, Idle: 10 * time.Second, Total: 100 * time.Second}
	for _, c := range []struct {
		name  string
		reply openaitest.Reply
		want  time.Duration // 0 if the call succeeds
		says  string
	}{
		{"headers", openaitest.Reply{Fault: openaitest.HeaderStall}, 30 * time.Second, "the first token took longer than 30 s"},
		{"first token", openaitest.Reply{Fault: openaitest.FirstTokenStall}, 30 * time.Second, "the first token"},
		{"first token, just in time", openaitest.Reply{Text: "a", FirstToken: 29 * time.Second}, 0, ""},
		{"keep-alives", openaitest.Reply{Fault: openaitest.KeepAliveForever}, 30 * time.Second, "the first token"},
		{"next token", openaitest.Reply{Text: "a b c d", Fault: openaitest.MiddleStall, FirstToken: 5 * time.Second, PerToken: time.Second},
			17 * time.Second, "the next token"},
		{"next token, just in time", openaitest.Reply{Text: "a b c d", PerToken: 9 * time.Second}, 0, ""},
		{"whole", openaitest.Reply{Text: strings.Repeat("a ", 100), PerToken: 9 * time.Second}, 100 * time.Second, "the whole reply"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &openaitest.Handler{Reply: openaitest.Sequence(c.reply)}
				client := piped(t, h, o)
				start := time.Now()
				_, _, err := drain(client, t.Context(), prompt)
				if c.want == 0 {
					if err != nil {
						t.Error(err)
					}
					return
				}
				if took := time.Since(start); took < c.want || took > c.want+time.Millisecond {
					t.Errorf("the call took %s, want %s", took, c.want)
				}
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("err = %v, want it to contain %q", err, c.says)
				}
			})
		})
	}
}

// TestDeadlineOfTheCaller checks that a deadline is not reported as a cancellation.
func TestDeadlineOfTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fault := range []openaitest.Fault{openaitest.HeaderStall, openaitest.FirstTokenStall, openaitest.MiddleStall} {
			h := &openaitest.Handler{Reply: openaitest.Sequence(openaitest.Reply{Text: replyText, Fault: fault})}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			start := time.Now()
			_, _, err := drain(piped(t, h, openai.Options{}), ctx, prompt)
			var e *openai.Error
			if !errors.As(err, &e) || e.Kind != openai.TimedOut || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: err = %v, want TimedOut", fault, err)
			}
			if took := time.Since(start); took != 3*time.Second {
				t.Errorf("%s: the call took %s, want 3s", fault, took)
			}
		}
	})
}

// TestSlowReader checks that the consumer's time does not count against the server.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &openaitest.Handler{Reply: openaitest.Sequence(openaitest.Reply{Text: "a b c"})}
		c := piped(t, h, openai.Options{FirstToken: time.Second, Idle: time.Second})
		for _, err := range c.Complete(t.Context(), prompt) {
			must(t, err)
			time.Sleep(10 * time.Second)
		}
	})
}

// TestLeaving checks that breaking out of the range, or canceling the context, ends the
// request at once, so that the server generates no further token.
func TestLeaving(t *testing.T) {
	for _, cancels := range []bool{false, true} {
		for _, after := range []int{1, 2, 7, 20} {
			synctest.Test(t, func(t *testing.T) {
				h := &openaitest.Handler{PerToken: 20 * time.Millisecond,
					Reply: openaitest.Sequence(openaitest.Reply{Text: strings.Repeat("tide ", 30)})}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				seen, left := 0, time.Time{}
				for _, err := range piped(t, h, openai.Options{}).Complete(ctx, prompt) {
					if cancels && errors.Is(err, context.Canceled) {
						break
					}
					must(t, err)
					if seen++; seen == after {
						left = time.Now()
						if !cancels {
							break
						}
						cancel()
					}
				}
				if seen != after {
					t.Fatalf("after %d pieces, canceled %t: got %d pieces", after, cancels, seen)
				}
				synctest.Wait()
				x := h.Exchanges()
				if len(x) != 1 || !x[0].Ended || !x[0].Gone || !x[0].End.Equal(left) || x[0].Sent > seen {
					t.Errorf("after %d, canceled %t: %d requests, ended %t, gone %t, after %s, %d tokens made", after, cancels, len(x), x[0].Ended,
						x[0].Gone, x[0].End.Sub(left), x[0].Sent)
				}
			})
		}
	}
}

// TestMemory checks that a huge reply needs no more memory than a small one.
func TestMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's own memory would distort the measurement")
	}
	ingest.CountTokens("the vocabulary is loaded now")
	for _, fault := range []openaitest.Fault{openaitest.HugeLine, openaitest.HugeBody, openaitest.HugeError, openaitest.HugeHeader,
		openaitest.HugeText} {
		h := &openaitest.Handler{Reply: openaitest.Sequence(openaitest.Reply{Fault: fault}), Huge: 40 << 20}
		if datatest.Campaign() {
			h.Huge = 300 << 20
		}
		url := openaitest.Start(t, h)
		c := newClient(t, openai.Options{BaseURL: url, Retries: -1})
		// The total allocated is an upper bound of the memory in use.
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		bytes := 0
		var err error
		for piece, e := range c.Complete(t.Context(), prompt) {
			bytes += len(piece.Text)
			err = e
		}
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error", fault)
		}
		grew := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%s: %d MB allocated, %d kB of text", fault, grew, bytes>>10)
		most := uint64(32)
		if fault == openaitest.HugeText {
			most = 160 // a megabyte of it arrives, in small pieces, and its tokens are counted
		}
		if grew > most {
			t.Errorf("%s: %d MB allocated", fault, grew)
		}
		c.Close()
	}
}

// TestRedirect checks that the target of a redirect is never called.
func TestRedirect(t *testing.T) {
	visited := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		visited <- r.Header.Get("Authorization")
	}))
	defer other.Close()
	for status := 301; status <= 308; status++ {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, status)
		}))
		c := newClient(t, openai.Options{BaseURL: s.URL, Key: canaryKey})
		_, _, err := drain(c, t.Context(), prompt)
		checkError(t, err, outcome{Kind: openai.BadReply, Requests: 1})
		c.Close()
		s.Close()
	}
	select {
	case key := <-visited:
		t.Errorf("the other host was called with the key %q", key)
	default:
	}
}

func TestNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	refused := "http://" + l.Addr().String()
	must(t, l.Close())
	plain := openaitest.Start(t, &openaitest.Handler{})
	secure := httptest.NewTLSServer(&openaitest.Handler{})
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer secure.Close()
	dial := func(err error) http.RoundTripper {
		return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
		}}
	}
	for _, c := range []struct {
		name      string
		url       string
		transport http.RoundTripper
		requests  int
		says      string
	}{
		{"refused", refused, nil, 2, "connection refused; check that it is running"},
		{"unknown authority", secure.URL, nil, 1, "certificate"},
		{"https to a server without", strings.Replace(plain, "http:", "https:", 1), nil, 1, "does not speak https"},
		{"no such host", "http://model.invalid", dial(&net.DNSError{Err: "no such host", Name: "model.invalid", IsNotFound: true}), 1,
			"there is no host with this name"},
		{"name server down", "http://model.invalid", dial(&net.DNSError{Err: "server misbehaving", Name: "model.invalid", IsTemporary: true}), 2,
			"cannot be resolved"},
		{"dial timeout", "http://model.invalid", dial(context.DeadlineExceeded), 2, "connection failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := newClient(t, openai.Options{BaseURL: c.url, Key: canaryKey, Transport: c.transport, Retries: 1})
			_, last, err := drain(client, t.Context(), prompt)
			var e *openai.Error
			if !errors.As(err, &e) || e.Kind != openai.Down || e.Requests != c.requests {
				t.Fatalf("err = %+v, want Down after %d requests", e, c.requests)
			}
			if want := (answer.Tokens{Requests: c.requests}); last.Usage != want { // the server has read no prompt
				t.Errorf("usage = %+v, want %+v", last.Usage, want)
			}
			if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.url) {
				t.Errorf("err = %q, want it to contain %q and the address", err, c.says)
			}
		})
	}
}

func TestBadOptions(t *testing.T) {
	for _, c := range []struct {
		o    openai.Options
		says string
	}{
		{openai.Options{Model: "m"}, "http://localhost:11434/v1"},
		{openai.Options{BaseURL: "localhost:11434", Model: "m"}, "http://"},
		{openai.Options{BaseURL: "ftp://host", Model: "m"}, "http://"},
		{openai.Options{BaseURL: "http://user:" + canaryKey + "@ho st/", Model: "m"}, "http://"},
		{openai.Options{BaseURL: "http://host/v1?key=" + canaryKey, Model: "m"}, "without ?"},
		{openai.Options{BaseURL: "http://user:" + canaryKey + "@host/v1"}, "no model"},
		{openai.Options{BaseURL: "http://host/v1", Model: "m", Key: canaryKey + "\nX: y"}, "one line"},
	} {
		_, err := openai.New(c.o)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), canaryKey) {
			t.Errorf("New(%+v) = %v, want an error with %q and without the key", c.o, err, c.says)
		}
	}
}

// TestConnectionsAreKept checks that successive calls share a connection.
func TestConnectionsAreKept(t *testing.T) {
	h := &openaitest.Handler{}
	s := httptest.NewUnstartedServer(h)
	opened := make(chan struct{}, 100)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened <- struct{}{}
		}
	}
	s.Start()
	defer s.Close()
	c := newClient(t, openai.Options{BaseURL: s.URL})
	defer c.Close()
	for range 10 {
		if _, _, err := drain(c, t.Context(), prompt); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(opened); n != 1 {
		t.Errorf("10 calls opened %d connections", n)
	}
}

// TestForms reads replies in the forms of several servers.
func TestForms(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/replies.txt", "forms") {
		stream, want, fails := row[1], row[2], row[3]
		t.Run(row[0], func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if _, err := io.WriteString(w, stream); err != nil {
					t.Error(err)
				}
			}))
			defer s.Close()
			client := newClient(t, openai.Options{BaseURL: s.URL, Retries: -1})
			defer client.Close()
			text, last, err := drain(client, t.Context(), prompt)
			if fails != "" {
				if text != want || err == nil || !strings.Contains(err.Error(), fails) {
					t.Errorf("got %q, %v; want %q and an error with %q", text, err, want, fails)
				}
			} else if err != nil || text != want || last.Finish != "stop" {
				t.Errorf("got %q, %+v, %v; want %q", text, last, err, want)
			}
		})
	}
}

func TestOptionsKeepTheKey(t *testing.T) {
	o := openai.Options{BaseURL: "http://user:" + canaryKey + "@host/v1", Key: canaryKey, Model: "m"}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, v := range []any{o, &o, struct{ O openai.Options }{o}} {
			if s := fmt.Sprintf(format, v); strings.Contains(s, canaryKey) {
				t.Errorf("%s of a %T shows the key: %s", format, v, s)
			}
		}
	}
	c, err := openai.New(o)
	must(t, err)
	if s := fmt.Sprintf("%+v %#v", c, c); strings.Contains(s, canaryKey) {
		t.Error("a printed client shows the key")
	}
}

// TestJudgeIsNotRepeated checks that the client does not retry a judge's call, and that the
// error says when the caller may.
func TestJudgeIsNotRepeated(t *testing.T) {
	for _, c := range []struct {
		fault       openaitest.Fault
		least, most time.Duration
	}{
		{openaitest.ServerError, 250 * time.Millisecond, 500 * time.Millisecond},
		{openaitest.RateLimitSeconds, time.Second, 1250 * time.Millisecond},
		{openaitest.RateLimitLong, -1, -1},
		{openaitest.BadRequest, 0, 0},
	} {
		h := &openaitest.Handler{Reply: openaitest.Sequence(openaitest.Reply{Fault: c.fault})}
		judge := prompt
		judge.Role = answer.RoleJudge
		_, _, err := drain(piped(t, h, openai.Options{}), t.Context(), judge)
		var e *openai.Error
		if !errors.As(err, &e) || e.RetryIn() < c.least || e.RetryIn() > c.most {
			t.Errorf("%s: err = %v, retry in %v; want between %v and %v", c.fault, err, e.RetryIn(), c.least, c.most)
		}
		if n := len(h.Exchanges()); n != 1 {
			t.Errorf("%s: %d requests, want 1", c.fault, n)
		}
	}
}

// TestVerdict checks that the first calls find out how a server can be asked for a yes or
// no, and that this is remembered.
func TestVerdict(t *testing.T) {
	for _, test := range datatest.Table[struct {
		Name, Text string
		Odds       string // of the tokens no and yes
		Refuses    []string
		Vague      bool   // the error does not name the refused parameter
		Sent       string // the parameters of each request: odds, format, one token
		Yes        []bool // whether the odds of yes are known
	}](t, "testdata/replies.txt", "verdicts") {
		t.Run(test.Name, func(t *testing.T) {
			odds := ""
			if no, yes, ok := strings.Cut(test.Odds, " "); ok {
				odds = `,"logprobs":{"content":[{"token":"No","top_logprobs":[{"token":"No","logprob":` + no + `},{"token":" yes","logprob":` + yes + `}]}]}`
			}
			var sent []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				var has []string
				for _, part := range [][2]string{{"odds", `"logprobs":true`}, {"format", `"response_format":`}, {"one", `"max_tokens":1,`}} {
					if strings.Contains(string(body), part[1]) {
						has = append(has, part[0])
					}
				}
				sent = append(sent, strings.Join(has, " "))
				for _, part := range test.Refuses {
					if strings.Contains(string(body), `"`+part+`":`) {
						w.WriteHeader(http.StatusBadRequest)
						if test.Vague {
							fmt.Fprint(w, `{"error":{"message":"Invalid request body"}}`)
						} else {
							fmt.Fprintf(w, `{"error":{"message":"no %s here","param":%q}}`, part, part)
						}
						return
					}
				}
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}%s}]}\n\n", test.Text, odds)
				fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			}))
			defer s.Close()
			c := newClient(t, openai.Options{BaseURL: s.URL, Retries: -1})
			for i, known := range test.Yes {
				yes := 0.0
				for piece, err := range c.Complete(context.Background(),
					answer.Prompt{Role: answer.RoleVerify, User: "U", MaxTokens: 16, Verdict: true}) {
					if test.Text != "" {
						must(t, err)
					}
					yes = max(yes, piece.Yes)
				}
				if known != (yes > .25 && yes < .35) || !known && yes != 0 {
					t.Errorf("call %d: odds of yes = %g", i, yes)
				}
			}
			if got := strings.Join(sent, ", "); got != test.Sent {
				t.Errorf("requests = %q, want %q", got, test.Sent)
			}
		})
	}
}

// TestMain fails if a goroutine outlives the tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
