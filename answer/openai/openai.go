// Package openai calls model servers with the OpenAI HTTP API: OpenAI itself,
// Ollama, vLLM, llama.cpp and many more. A [Client] completes prompts, an
// [Embedder] makes vectors, a [Reranker] scores texts, and a [Relay] passes chat
// requests through.
//
// All of them treat the server as untrusted. What they read is bounded in size
// and in time; a reply counts as whole only with a finish reason; redirects are
// not followed, so the key never reaches another host; and no error holds the
// key, the prompt or the body of a reply. Every error is an [*Error].
//
// Requests are repeated only where that is safe: after a failed connection, the
// statuses 429, 500, 502, 503, 504 and 529, and a reply that broke off before
// its first token. A judge's requests are never repeated here, because package
// answer does that. Waits double from half a second to eight, with jitter;
// Retry-After is a minimum; a wait that would outlast the time left is not
// started.
package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// Options configure the server, the model, the time limits and the retries.
type Options struct {
	// BaseURL is the address of the API, such as "http://localhost:11434/v1".
	BaseURL string
	// Key goes into the Authorization header; it may be empty.
	Key string
	// Model is the name of the model on that server.
	Model string

	// FirstToken bounds the wait for the first token of a reply, or for the whole
	// reply if it is not streamed. 0 means [DefaultFirstToken].
	FirstToken time.Duration
	// Idle bounds the wait for each further token; 0 means [DefaultIdle].
	Idle time.Duration
	// Total bounds a call with all its retries; 0 means [DefaultTotal].
	Total time.Duration
	// Retries is how often a request is repeated; 0 means [DefaultRetries], a negative
	// number means never. Requests of a judge are never repeated.
	Retries int

	// BatchTexts and BatchTokens bound one request; 0 means [DefaultBatchTexts] and
	// [DefaultBatchTokens]. Only an [Embedder] uses them, and Parallel.
	BatchTexts, BatchTokens int
	// Parallel is how many requests run at a time; 0 means [DefaultParallel].
	Parallel int

	// Transport sends the requests; nil means one that bounds dialing, handshake
	// and header size.
	Transport http.RoundTripper
}

// String names the model and the server, without the key.
func (o Options) String() string {
	if u, err := url.Parse(o.BaseURL); err == nil {
		u.User, u.RawQuery = nil, ""
		return o.Model + " at " + u.String()
	}
	return o.Model
}

// GoString is String, so that %#v does not print the key either.
func (o Options) GoString() string { return o.String() }

// The defaults are generous, for a model on the processor of a small machine,
// which reads a full window at about fifty tokens a second and may have to be
// loaded first.
const (
	DefaultFirstToken  = 60 * time.Second
	DefaultIdle        = 20 * time.Second
	DefaultTotal       = 5 * time.Minute
	DefaultRetries     = 2
	DefaultBatchTexts  = 32
	DefaultBatchTokens = 8192
	DefaultParallel    = 4
)

// An upstream is one server with one model.
type upstream struct {
	o        Options
	address  string // the address without user and password
	password string // from the address
	http     *http.Client
}

// Close closes idle connections.
func (u *upstream) Close() { u.http.CloseIdleConnections() }

func newUpstream(o Options) (*upstream, error) {
	o.BaseURL = strings.TrimRight(strings.TrimSpace(o.BaseURL), "/")
	o.Key = strings.TrimSpace(o.Key)
	u, err := url.Parse(o.BaseURL)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, errors.New("the address of the model server is not a URL that begins with http:// or https://, " +
			"such as http://localhost:11434/v1")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the address of the model server must end with its path, such as /v1, without ? or #")
	case o.Model == "":
		return nil, fmt.Errorf("no model is selected for the server at %s", u.Redacted())
	case strings.ContainsFunc(o.Key, unicode.IsControl):
		return nil, errors.New("the key of the model server contains control characters: it must be one line")
	}
	setDefault(&o.FirstToken, DefaultFirstToken)
	setDefault(&o.Idle, DefaultIdle)
	setDefault(&o.Total, DefaultTotal)
	setDefault(&o.BatchTexts, DefaultBatchTexts)
	setDefault(&o.BatchTokens, DefaultBatchTokens)
	setDefault(&o.Parallel, DefaultParallel)
	o.Retries = cmp.Or(o.Retries, DefaultRetries)
	if o.Transport == nil {
		o.Transport = newTransport()
	}
	password, _ := u.User.Password()
	u.User = nil
	return &upstream{
		o:        o,
		address:  u.String(),
		password: password,
		http: &http.Client{
			Transport:     o.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// setDefault sets an option that is not positive.
func setDefault[T int | time.Duration](option *T, to T) {
	if *option <= 0 {
		*option = to
	}
}

func newTransport() http.RoundTripper {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    256, // about as many as there are answers at once
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		DisableCompression:     true, // a small reply must not become a large one
	}
}

// timeouts ends a request whose first token, or a further one, does not come in time.
type timeouts struct {
	first, idle *time.Timer // idle starts after the first token
	cancel      context.CancelCauseFunc
}

func (u *upstream) withTimeouts(ctx context.Context, first time.Duration) (context.Context, *timeouts) {
	ctx, cancel := context.WithCancelCause(ctx)
	after := func(d, named time.Duration, what, flag string) *time.Timer {
		return time.AfterFunc(d, func() { cancel(&limit{what, named, flag}) })
	}
	return ctx, &timeouts{
		after(first, first, "the first token", flagFirstToken), after(math.MaxInt64, u.o.Idle, "the next token", "--idle-timeout"), cancel,
	}
}

func (p *timeouts) end() {
	p.first.Stop()
	p.idle.Stop()
	p.cancel(nil)
}

// retry calls try until it succeeds, has been repeated retries times, must not
// be repeated, or the time left is too short.
func (u *upstream) retry(ctx context.Context, retries int, try func(context.Context) *Error) *Error {
	ctx, cancel := context.WithTimeoutCause(ctx, u.o.Total, &limit{"the whole reply", u.o.Total, "--model-timeout"})
	defer cancel()
	for requests, failures := 1, 0; ; requests++ {
		err := try(ctx)
		if err == nil {
			return nil
		}
		err.Requests = requests
		if err.adapted {
			continue
		}
		failures++
		if !err.transient {
			return err
		}
		wait := backoff(failures, err.RetryAfter)
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
			err.retryDelay = -1
			return err
		}
		if failures > retries {
			err.retryDelay = wait
			return err
		}
		if late := u.wait(ctx, wait); late != nil {
			late.Requests = requests
			return late
		}
	}
}

// wait waits for the time d, or returns the error of a context that ends first.
func (u *upstream) wait(ctx context.Context, d time.Duration) *Error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return u.contextError(ctx)
	}
}

// backoff is how long to wait after the nth failure, n from 1: half of a power
// of two and a random part of the other half, so that clients that failed
// together do not return together. atLeast is the server's Retry-After.
func backoff(n int, atLeast time.Duration) time.Duration {
	step := min(500*time.Millisecond<<(n-1), 8*time.Second)
	return max(atLeast, step/2) + rand.N(step/2)
}
