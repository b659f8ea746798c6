package main

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"ibid/answer/openai/openaitest"
)

// TestTraces: a server sends the spans of a question to a collector, in the
// client's trace, and passes the trace on to the model's server.
func TestTraces(t *testing.T) {
	const canary = "canaryquestionword"
	data, folder := t.TempDir(), t.TempDir()
	writeFiles(t, folder, hours)
	upstream := &openaitest.Handler{Reply: openaitest.Rules(
		openaitest.Rule{Role: "judge", Prompt: regexp.MustCompile("dinghies"), Reply: openaitest.Reply{Text: "no\nboats"}},
		openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "yes"}},
		openaitest.Rule{Reply: openaitest.Reply{Text: "The chart room opens at nine [1]."}},
	)}
	model := openaitest.Start(t, upstream)
	var mu sync.Mutex
	var spans []*otlp.Span
	var service, whole string
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(b, &sent)
		}
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("X-Team") != "harbour" {
			t.Errorf("%s %v: %v", r.URL, r.Header, err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, rs := range sent.ResourceSpans {
			service += rs.Resource.String()
			for _, ss := range rs.ScopeSpans {
				spans = append(spans, ss.Spans...)
			}
		}
		whole += sent.String()
	}))
	defer sink.Close()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	question := `{"question":"When does the chart room open, ` + canary + `?"}`
	args := []string{"--model", "scripted", "--base-url", model, "--gate", "model", folder}

	t.Run("with a collector", func(t *testing.T) {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.URL)
		t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=harbour")
		t.Setenv("OTEL_SERVICE_NAME", "reading-room")
		url := startProcess(t, data, args...).url
		ready(t, url)
		resp := asked(t, "POST", url+"/api/ask", "", question, "Traceparent: "+parent)
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(b), `"answered":true`) {
			t.Fatalf("%v: %s", err, b)
		}
		resp = asked(t, "GET", url+"/healthz", "", "")
		resp.Body.Close()
	}) // the server ends, and sends the rest

	mu.Lock()
	defer mu.Unlock()
	var root *otlp.Span
	names := map[string]int{}
	for _, s := range spans {
		names[s.Name]++
		if s.Name == "POST /api/ask" {
			root = s
		}
		if s.Name == "GET /healthz" {
			t.Error("a public route is traced")
		}
	}
	if root == nil {
		t.Fatalf("no span of the request among %v", names)
	}
	if id, by := hex.EncodeToString(root.TraceId), hex.EncodeToString(root.ParentSpanId); id != parent[3:35] || by != parent[36:52] {
		t.Errorf("trace %s under %s", id, by)
	}
	for name, least := range map[string]int{"retrieve": 1, "gate": 1, "answer": 1, "chat scripted": 3} {
		if names[name] < least {
			t.Errorf("%d spans of %q among %v", names[name], name, names)
		}
	}
	embedded := false
	for _, s := range spans {
		if string(s.TraceId) != string(root.TraceId) {
			continue
		}
		embedded = embedded || strings.HasPrefix(s.Name, "embeddings ")
		if s != root && string(s.ParentSpanId) != string(root.SpanId) || s.StartTimeUnixNano > s.EndTimeUnixNano ||
			s.StartTimeUnixNano < root.StartTimeUnixNano || s.EndTimeUnixNano > root.EndTimeUnixNano {
			t.Errorf("the span %s does not lie within that of the request", s.Name)
		}
	}
	if !embedded {
		t.Errorf("no embedding among %v", names)
	}
	for _, want := range []string{"reading-room", "gen_ai.usage.input_tokens", "ibid.request_id"} {
		if !strings.Contains(whole, want) {
			t.Errorf("no span has %s", want)
		}
	}
	for _, word := range []string{canary, "chart room", "dinghies", "nine"} {
		if strings.Contains(whole, word) {
			t.Errorf("the traces contain %q", word)
		}
	}
	told := 0
	for _, x := range upstream.Exchanges() {
		if h := x.Header.Get("Traceparent"); strings.HasPrefix(h, parent[:36]) && !strings.Contains(h, parent[36:52]) {
			told++
		}
	}
	if all := len(upstream.Exchanges()); told != all || all == 0 {
		t.Errorf("%d of %d requests to the model belong to the trace", told, all)
	}
	before := len(upstream.Exchanges())

	t.Run("without", func(t *testing.T) {
		url := startProcess(t, data, args...).url
		ready(t, url)
		resp := asked(t, "POST", url+"/api/ask", "", question, "Traceparent: "+parent)
		resp.Body.Close()
	})
	for _, x := range upstream.Exchanges()[before:] {
		if x.Header.Get("Traceparent") != "" {
			t.Error("a server that does not trace passes a trace on")
		}
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	if out, err := command(t.Context(), data, "serve", "--addr", "127.0.0.1:0").CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "http/protobuf") {
		t.Errorf("%v: %s", err, out)
	}
}
