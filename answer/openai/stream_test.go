package openai

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"ibid/data/datatest"
)

var must = datatest.Must

// body replies with what is read from it.
type body struct{ io.Reader }

func (b body) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(b)}, nil
}

// readEvents reads a stream from r and returns its values, one a line.
func readEvents(r io.Reader) (string, error) {
	u, err := newUpstream(Options{BaseURL: "http://host/v1", Model: "m", Key: "secret-key", Transport: body{r}})
	if err != nil {
		return "", err
	}
	call := &request{upstream: u}
	resp, failed := call.send(context.Background(), "/chat/completions", eventStream, []byte("{}"))
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
	for _, c := range []struct {
		name, in, want string
		kind           Kind
	}{
		{"plain", "data: {\"a\":1}\n\ndata: [DONE]\n\n", "{\"a\":1}\n", ""},
		{"comments and fields", ": hi\n\nid: 7\nretry: 5\nevent: message\ndata: {\"a\":1}\n\n", "{\"a\":1}\n", ""},
		{"byte order mark", "\ufeffdata: {\"a\":1}\n\n", "{\"a\":1}\n", ""},
		{"mixed line ends", "data: {\"a\":1}\n\ndata: {\"b\":2}\r\n\r\ndata:{\"c\":3}\n\n", "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n", ""},
		{"no blank line", "data: {\"a\":1}\ndata: {\"b\":2}\n", "{\"a\":1}\n{\"b\":2}\n", ""},
		{"no last line end", "data: {\"a\":1}", "{\"a\":1}\n", ""},
		{"error is null", "data: {\"error\":null,\"a\":1}\n\n", "{\"error\":null,\"a\":1}\n", ""},
		{"error in the text only", "data: {\"a\":\"the \\\"error\\\"\"}\n\n", "{\"a\":\"the \\\"error\\\"\"}\n", ""},
		{"an object in place of a stream", "\n {\n\"a\": 1\n}\n", "{\n\"a\": 1\n}\n", ""},
		{"an object a line", "{\"a\":1}\n{\"a\":2}\n", "", BadReply},
		{"an object that is none", "{a}", "", BadReply},
		{"nothing", "", "", ""},
		{"a page", " <html>", "", BadReply},
		{"error", "data: {\"a\":1}\n\ndata: {\"error\":{\"message\":\"m\"}}\n\n", "{\"a\":1}\n", ServerFailed},
		{"error as text", "data: {\"error\":\"m\"}\n\n", "", ServerFailed},
		{"error event without an object", "event: error\ndata: \"m\"\n\n", "", ServerFailed},
		{"bare error", "data: {\"a\":1}\n\n{\"error\":{\"code\":429,\"message\":\"m\"}}\n", "{\"a\":1}\n", RateLimited},
		{"not JSON", "data: {\"a\":\n\n", "", BadReply},
		{"cut", "data: {\"a\":1}\n\ndata: {\"a", "{\"a\":1}\n", Cut},
		{"cut inside a character", "data: {\"a\":\"caf\xc3", "", Cut},
		{"cut object", "{\"a\"", "", Cut},
		{"long line", "data: \"" + strings.Repeat("a", maxEvent), "", BadReply},
		{"long comment", ":" + strings.Repeat("a", maxEvent), "", BadReply},
		{"long object", "{\"a\":\"" + strings.Repeat("a", maxEvent) + "\"}", "", BadReply},
	} {
		t.Run(c.name, func(t *testing.T) {
			readers := []io.Reader{strings.NewReader(c.in), iotest.DataErrReader(strings.NewReader(c.in))}
			if len(c.in) < maxEvent { // a scanner of lines searches its buffer again after each byte
				readers = append(readers, iotest.OneByteReader(strings.NewReader(c.in)))
			}
			for _, r := range readers {
				got, err := readEvents(r)
				if got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
				var e *Error
				if c.kind == "" && err != nil || c.kind != "" && (!errors.As(err, &e) || e.Kind != c.kind) {
					t.Errorf("got error %v, want kind %q", err, c.kind)
				}
			}
		})
	}
}

// FuzzEvents: the events do not depend on how the bytes are cut, and an error ends
// them.
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
				t.Errorf("the error is a %T", wantErr)
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
			var th thinker
			text, thought := "", ""
			for in := row[0]; in != ""; {
				n := rapid.IntRange(1, len(in)).Draw(t, "n")
				a, b := th.add(in[:n])
				text, thought, in = text+a, thought+b, in[n:]
			}
			a, b := th.end()
			if text+a != row[1] || thought+b != row[2] {
				t.Fatalf("%q: got %q and %q, want %q and %q", row[0], text+a, thought+b, row[1], row[2])
			}
		})
	}
}
