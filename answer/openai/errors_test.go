package openai

import (
	"flag"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestWords compares the error messages with testdata/errors.txt.
func TestWords(t *testing.T) {
	u, err := newUpstream(Options{BaseURL: "http://me:hunter2secret@localhost:11434/v1/", Model: "qwen3:8b", Key: "sk-0123456789"})
	must(t, err)
	const sent = "The secret of the document is forty-two and a half."
	var b strings.Builder
	for _, c := range []struct {
		status int
		header string
		body   string
	}{
		{400, "", `{"error":{"message":"Unknown parameter: 'x'.","type":"invalid_request_error"}}`},
		{400, "", `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`},
		{400, "", `{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}`},
		{400, "", `{"error":{"message":"Too long","code":"context_length_exceeded"}}`},
		{400, "", `{"error":{"message":"The response was filtered","code":"content_filter"}}`},
		{400, "", `{"error":{"message":"bad ` + sent + `"}}`},
		{401, "", `{"error":{"message":"Incorrect API key provided: sk-0123456789."}}`},
		{401, "", `{"error":{"message":"Incorrect password: hunter2secret"}}`},
		{401, "", `{"detail":"Not authenticated"}`},
		{402, "", `{"error":{"message":"Insufficient credits"}}`},
		{403, "", `nonsense`},
		{404, "", `{"error":{"message":"model \"qwen3:8b\" not found, try pulling it first","type":"api_error"}}`},
		{404, "", `404 page not found`},
		{413, "", `<html>`},
		{422, "", `{"detail":[{"loc":["body"],"msg":"field required"}]}`},
		{429, "7", `{"error":{"message":"Rate limit reached"}}`},
		{429, "", `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota"}}`},
		{500, "", `{"error":"llama runner process has terminated"}`},
		{503, "30", "{\"error\":{\"message\":\"Loading\\u001b[31m model\\u202e\\n\\nplease wait\"}}"},
		{500, "", `{"error":{"message":"` + strings.Repeat("long ", 100) + `"}}`},
	} {
		h := http.Header{"Retry-After": {c.header}}
		b.WriteString(u.statusError(c.status, h, []byte(c.body), sent).Error() + "\n")
	}
	for _, kind := range []Kind{Down, TimedOut, Canceled, Cut, BadReply} {
		b.WriteString(u.fail(kind, nil, "").Error() + "\n")
	}
	b.WriteString(u.fail(Down, nil, "connection refused").Error() + "\n")
	b.WriteString(u.fail(TimedOut, nil, (&limit{"the first token", time.Minute, flagFirstToken}).Error()).Error() + "\n")
	b.WriteString(u.fail(ContextLength, nil, "it has 5002 tokens, the window 4096").Error() + "\n")

	const golden = "testdata/errors.txt"
	if *update {
		must(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if b.String() != string(want) {
		t.Errorf("the words differ from %s (-update rewrites it):\n%s", golden, b.String())
	}
	for _, secret := range []string{"hunter2", "sk-0123", "forty-two", "\x1b"} {
		if strings.Contains(b.String(), secret) {
			t.Errorf("an error holds %q", secret)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "2", 2 * time.Second},
		{"Retry-After", "0.5", 500 * time.Millisecond},
		{"Retry-After", "Sun, 01 Mar 2026 12:00:09 GMT", 9 * time.Second},
		{"Retry-After", "Sun, 01 Mar 2026 11:00:00 GMT", 0},
		{"Retry-After", "-1", 0},
		{"Retry-After", "1e300", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After", "", 0},
	} {
		if got := retryAfter(http.Header{c.name: {c.value}}, now); got != c.want {
			t.Errorf("%s: %s is %s, want %s", c.name, c.value, got, c.want)
		}
	}
}
