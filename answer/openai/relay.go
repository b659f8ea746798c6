package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"strings"
	"time"

	"ibid/answer"
)

// A Relay passes chat requests to the server unchanged, for clients that want the
// model itself. It never repeats a request, since the client can.
type Relay struct{ *upstream }

// NewRelay makes a relay. It makes no request.
func NewRelay(o Options) (*Relay, error) {
	u, err := newUpstream(o)
	if err != nil {
		return nil, err
	}
	return &Relay{u}, nil
}

// Model is the name of the model on the server.
func (r *Relay) Model() string { return r.o.Model }

// Relayed is a streaming reply.
type Relayed struct {
	// Events reports whether the body is a stream of server-sent events; otherwise
	// it is one JSON object.
	Events bool
	// Body fails with an [*Error] when the reply breaks off, takes too long
	// or is too long. The caller must close it.
	Body io.ReadCloser
}

// maxRelayed bounds one reply, in bytes.
const maxRelayed = 32 << 20

// Chat sends a chat request, byte for byte, with the relay's own key. An error is
// an [*Error]. It quotes at most one line of the reply, and only if that repeats
// neither the key nor the request.
func (r *Relay) Chat(ctx context.Context, body []byte) (*Relayed, error) {
	var asked struct {
		Stream bool `json:"stream"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, r.newError(Rejected, nil, "it is not a JSON object")
	}
	ctx, stop := context.WithTimeoutCause(ctx, r.o.Total, &limit{"the whole reply", r.o.Total, "--model-timeout"})
	first, accept := time.Duration(math.MaxInt64), "application/json" // without a stream the reply comes all at once
	if asked.Stream {
		first, accept = r.o.FirstToken, eventStream
	}
	ctx, wait := r.withTimeouts(ctx, first)
	b := &relayed{r: r, ctx: ctx, left: maxRelayed, timeouts: wait, stop: stop}
	call := &request{upstream: r.upstream, role: string(answer.RoleAnswer), secrets: stringsIn(body)}
	resp, failed := call.sendRequest(ctx, "/chat/completions", accept, body)
	if failed != nil {
		b.end()
		return nil, failed
	}
	b.body = resp.Body
	return &Relayed{Events: strings.HasPrefix(resp.Header.Get("Content-Type"), eventStream), Body: b}, nil
}

// stringsIn returns the longer strings in a request's body, which no error may
// repeat.
func stringsIn(body []byte) []string {
	var found []string
	d := json.NewDecoder(bytes.NewReader(body))
	for {
		t, err := d.Token()
		if err != nil {
			return found
		}
		if s, ok := t.(string); ok && len(s) > 24 {
			found = append(found, s)
		}
	}
}

// relayed is the body of a reply with its limits.
type relayed struct {
	r        *Relay
	ctx      context.Context
	body     io.ReadCloser
	left     int
	timeouts *timeouts
	stop     func()
}

func (b *relayed) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, b.r.badReply("it is too long")
	}
	n, err := b.body.Read(p[:min(len(p), b.left)])
	b.left -= n
	if n > 0 {
		b.timeouts.first.Stop()
		// The time that the reader takes counts too; the limit on a write bounds it.
		b.timeouts.idle.Reset(b.r.o.Idle)
	}
	if err != nil && err != io.EOF {
		err = b.r.bodyError(b.ctx, err)
	}
	return n, err
}

func (b *relayed) Close() error {
	b.end()
	return b.body.Close()
}

// end stops the time limits and the request.
func (b *relayed) end() {
	b.timeouts.end()
	b.stop()
}
