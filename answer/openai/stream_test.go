package openai

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"ibid/answer/openai/openaitest"
	"ibid/data/datatest"
)

var must = datatest.Must

// body is a reply whose body is read from it.
type body struct{ io.Reader }

func (b body) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(b)}, nil
}

// readEvents reads a stream from r and returns its values, one per line.
func readEvents(r io.Reader) (string, error) {
	u, err := newUpstream(Options{BaseURL: "http://host/v1", Model: "m", Key: "secret-key", Transport: body{r}})
	if err != nil {
		return "", err
	}
	call := &request{upstream: u}
	resp, failed := call.sendRequest(context.Background(), "/chat/completions", eventStream, []byte("{}"))
	if failed != nil {
		return "", failed
	}
	s := newEvents(context.Background(), call, resp.Body)
	out := ""
	for {
		value, err := s.next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out += string(value) + "\n"
	}
}

func TestEvents(t *testing.T) {
	long := strings.Repeat("a", maxEvent)
	all := append(datatest.Rows(t, "testdata/replies.txt", "events"), []string{"long line", "data: \"" + long, "", string(BadReply)},
		[]string{"long comment", ":" + long, "", string(BadReply)}, []string{"long object", "{\"a\":\"" + long + "\"}", "", string(BadReply)})
	for _, row := range all {
		name, in, want, kind := row[0], row[1], row[2], Kind(row[3])
		t.Run(name, func(t *testing.T) {
			readers := []io.Reader{strings.NewReader(in), iotest.DataErrReader(strings.NewReader(in))}
			if len(in) < maxEvent { // a line scanner would search its buffer again after each byte
				readers = append(readers, iotest.OneByteReader(strings.NewReader(in)))
			}
			for _, r := range readers {
				got, err := readEvents(r)
				if got != want {
					t.Errorf("values = %q, want %q", got, want)
				}
				var e *Error
				if kind == "" && err != nil || kind != "" && (!errors.As(err, &e) || e.Kind != kind) {
					t.Errorf("err = %v, want kind %q", err, kind)
				}
			}
		})
	}
}

// FuzzEvents checks that the events do not depend on how the bytes are cut, and that an
// error ends them.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		"data: {\"a\":1}\n\ndata: [DONE]\n\n", ": c\r\n\r\ndata:{\"a\":1}\r\n\r\n", "event: error\ndata: {}\n\n",
		"{\"error\":{\"message\":\"m\"}}", "<html>", "\ufeff\ndata: 1\n", "data: {\"error\":null}\n\n",
	} {
		f.Add([]byte(seed), uint8(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		want, wantErr := readEvents(bytes.NewReader(in))
		got, err := readEvents(&chunked{in, int(size)%7 + 1})
		if got != want || (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Errorf("in pieces of %d: %q, %v; whole: %q, %v", int(size)%7+1, got, err, want, wantErr)
		}
		if wantErr != nil {
			var e *Error
			if !errors.As(wantErr, &e) {
				t.Errorf("err is a %T, want an *Error", wantErr)
			}
		}
	})
}

// chunked reads its bytes in pieces.
type chunked struct {
	left []byte
	size int
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.size)], c.left)
	c.left = c.left[n:]
	return n, nil
}

func TestThinker(t *testing.T) {
	for _, row := range datatest.Rows(t, "testdata/thoughts.txt", "replies") {
		rapid.Check(t, func(t *rapid.T) {
			var th thoughtSplitter
			text, thought := "", ""
			for in := row[0]; in != ""; {
				n := rapid.IntRange(1, len(in)).Draw(t, "n")
				a, b := th.addPiece(in[:n])
				text, thought, in = text+a, thought+b, in[n:]
			}
			a, b := th.endText()
			if text+a != row[1] || thought+b != row[2] {
				t.Fatalf("%q: text and thought = %q and %q, want %q and %q", row[0], text+a, thought+b, row[1], row[2])
			}
		})
	}
}

// TestRelayFaults checks that every fault is an Error that quotes neither the key nor the
// request, and that no reply exceeds its limits.
func TestRelayFaults(t *testing.T) {
	const secret = "the old man and the sea, and what he said of it"
	for _, tt := range datatest.Table[struct {
		Fault  openaitest.Fault
		Stream bool
		Want   Kind
	}](t, "testdata/replies.txt", "relayed") {
		h := &openaitest.Handler{Key: "sk-secret-key", Huge: 40 << 20,
			Reply: openaitest.Rules(openaitest.Rule{Reply: openaitest.Reply{Text: "one two three four five six", Fault: tt.Fault}})}
		limit := 5 * time.Minute
		if tt.Want == TimedOut {
			limit = 300 * time.Millisecond
		}
		r, err := NewRelay(Options{
			BaseURL: openaitest.Start(t, h), Model: "m", Key: "sk-secret-key", FirstToken: limit, Idle: limit, Total: 10 * time.Minute,
		})
		must(t, err)
		body := `{"model":"m","messages":[{"role":"user","content":"` + secret + `"}]`
		if tt.Stream {
			body += `,"stream":true`
		}
		reply, err := r.Chat(t.Context(), []byte(body+"}"))
		if err == nil {
			var n int64
			n, err = io.Copy(io.Discard, reply.Body)
			if n > maxRelayed {
				t.Errorf("%s: %d bytes relayed, want at most %d", tt.Fault, n, maxRelayed)
			}
			reply.Body.Close()
		}
		var e *Error
		if !errors.As(err, &e) || e.Kind != tt.Want {
			t.Errorf("%s: err = %v, want %s", tt.Fault, err, tt.Want)
		} else if strings.Contains(e.Error(), "sk-secret") || strings.Contains(e.Error(), "old man") {
			t.Errorf("%s: err shows a secret: %v", tt.Fault, e)
		}
		if n := len(h.Exchanges()); n > 1 {
			t.Errorf("%s: %d requests, want 1", tt.Fault, n)
		}
	}
}

// TestWords compares the error messages with testdata/errors.txt.
func TestWords(t *testing.T) {
	u, err := newUpstream(Options{BaseURL: "http://me:hunter2secret@localhost:11434/v1/", Model: "qwen3:8b", Key: "sk-0123456789"})
	must(t, err)
	const sent = "The secret of the document is forty-two and a half."
	var b strings.Builder
	long := []string{"500", "", `{"error":{"message":"` + strings.Repeat("long ", 100) + `"}}`}
	for _, row := range append(datatest.Rows(t, "testdata/replies.txt", "errors"), long) {
		status, err := strconv.Atoi(row[0])
		must(t, err)
		h := http.Header{"Retry-After": {row[1]}}
		b.WriteString(u.statusError(status, h, []byte(row[2]), sent).Error() + "\n")
	}
	for _, kind := range []Kind{Down, TimedOut, Canceled, Cut, BadReply} {
		b.WriteString(u.newError(kind, nil, "").Error() + "\n")
	}
	b.WriteString(u.newError(Down, nil, "connection refused").Error() + "\n")
	b.WriteString(u.newError(TimedOut, nil, (&limit{"the first token", time.Minute, flagFirstToken}).Error()).Error() + "\n")
	b.WriteString(u.newError(ContextLength, nil, "it has 5002 tokens, the window 4096").Error() + "\n")

	datatest.Golden(t, "testdata/errors.txt", b.String())
	for _, secret := range []string{"hunter2", "sk-0123", "forty-two", "\x1b"} {
		if strings.Contains(b.String(), secret) {
			t.Errorf("error messages contain %q", secret)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, row := range datatest.Rows(t, "testdata/replies.txt", "waits") {
		if got := retryAfter(http.Header{"Retry-After": {row[0]}}, now); got.String() != row[1] {
			t.Errorf("Retry-After: %s = %s, want %s", row[0], got, row[1])
		}
	}
}
