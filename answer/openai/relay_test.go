package openai

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"ibid/answer/openai/openaitest"
)

// TestRelayFaults: every fault is an Error that quotes neither the key nor the
// request, and no reply exceeds its limits.
func TestRelayFaults(t *testing.T) {
	const secret = "the old man and the sea, and what he said of it"
	for _, tt := range []struct {
		fault  openaitest.Fault
		stream bool
		want   Kind
	}{
		{openaitest.Unauthorized, true, Unauthorized}, {openaitest.EchoHeaders, true, ServerFailed}, {openaitest.RateLimitSeconds, false, RateLimited},
		{openaitest.BadRequest, false, Rejected}, {openaitest.NoModel, true, NotFound}, {openaitest.ContextLength, true, ContextLength},
		{openaitest.Redirect, true, BadReply}, {openaitest.HangUp, true, Cut}, {openaitest.Reset, true, Cut}, {openaitest.ShortBody, false, Cut},
		{openaitest.HeaderStall, true, TimedOut}, {openaitest.FirstTokenStall, true, TimedOut}, {openaitest.MiddleStall, true, TimedOut},
		{openaitest.HugeBody, false, BadReply}, {openaitest.HugeText, true, BadReply},
	} {
		h := &openaitest.Handler{Key: "sk-secret-key", Huge: 40 << 20, Reply: openaitest.Rules(openaitest.Rule{Reply: openaitest.Reply{Text: "one two three four five six", Fault: tt.fault}})}
		limit := 5 * time.Minute
		if tt.want == TimedOut {
			limit = 300 * time.Millisecond
		}
		r, err := NewRelay(Options{
			BaseURL: openaitest.Start(t, h), Model: "m", Key: "sk-secret-key", FirstToken: limit, Idle: limit, Total: 10 * time.Minute,
		})
		must(t, err)
		body := `{"model":"m","messages":[{"role":"user","content":"` + secret + `"}]`
		if tt.stream {
			body += `,"stream":true`
		}
		reply, err := r.Chat(t.Context(), []byte(body+"}"))
		if err == nil {
			var n int64
			n, err = io.Copy(io.Discard, reply.Body)
			if n > maxRelayed {
				t.Errorf("%s: %d bytes came through", tt.fault, n)
			}
			reply.Body.Close()
		}
		var e *Error
		if !errors.As(err, &e) || e.Kind != tt.want {
			t.Errorf("%s: %v, want %s", tt.fault, err, tt.want)
		} else if strings.Contains(e.Error(), "sk-secret") || strings.Contains(e.Error(), "old man") {
			t.Errorf("%s quotes a secret: %v", tt.fault, e)
		}
		if n := len(h.Exchanges()); n > 1 {
			t.Errorf("%s: asked %d times", tt.fault, n)
		}
	}
}
