package web

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/cite"
	"ibid/data/datatest"
)

// scraped returns the counters, gauges and counts of histograms at /metrics, by
// name and labels.
func scraped(t *testing.T, h http.Handler) map[string]float64 {
	t.Helper()
	w := call(h, "GET", "/metrics", "")
	if w.Code != 200 {
		t.Fatalf("/metrics: status = %d, want 200", w.Code)
	}
	values := map[string]float64{}
	for line := range strings.Lines(w.Body.String()) {
		if at := strings.LastIndexByte(line, ' '); line[0] != '#' {
			n, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
			must(t, err)
			values[strings.NewReplacer("_count{", "{", `"`, "").Replace(line[:at])] = n
		}
	}
	return values
}

// TestMetrics asks questions with every outcome, in several ways, and compares
// the metrics.
func TestMetrics(t *testing.T) {
	m := NewMetrics()
	e := newHandler(t, func(o *Options) {
		o.Metrics, o.MaxAsks = m, 7
		o.Figures = func(context.Context) (StoreFigures, error) {
			return StoreFigures{Documents: 4, Chunks: 9, Bytes: 1 << 20, Lag: 6, ReaderDeaths: 2}, nil
		}
		o.Indexing = func() Indexing { return Indexing{3, 5, true} }
		o.Encoded = func() (int, int) { return 8, 9 }
	})
	call(e, "POST", "/api/ask", `{"question":"What is the mooring fee?"}`)
	call(e, "POST", "/api/ask", `{"question":"What is the mooring fee?"}`, "Accept", "text/event-stream")
	call(e, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"question":"What is the mooring fee?"}}}`,
		"Content-Type", "application/json", "Accept", "application/json, text/event-stream")
	call(e, "POST", "/api/ask", `{"question":"pizza"}`)
	call(e, "POST", "/api/ask", `{"question":"cut short"}`)
	call(e, "POST", "/api/ask", `{"question":"breaks later"}`)
	call(e, "POST", "/api/ask", `{"question":"breaks at once"}`)
	call(e, "POST", "/api/ask", `{"question":"drafted"}`)
	call(e, "POST", "/api/ask", `{"question":""}`)
	call(e, "POST", "/api/search", `{"question":"mooring"}`)
	call(e, "GET", "/CANARY/canary?canary=1", "")
	call(e, "CANARY", "/api/ask", "")
	call(e, "GET", "/documents/club/guide.pdf", "")
	got := scraped(t, e)
	for _, row := range datatest.Rows(t, "testdata/rows/tables.txt", "metrics") {
		if v, ok := got[row[0]]; fmt.Sprintf("%.0f", v) != row[1] || !ok {
			t.Errorf("%s = %v (present: %v), want %s", row[0], v, ok, row[1])
		}
	}
	if got["go_goroutines"] == 0 {
		t.Error("no metrics of the Go runtime")
	}
	for key := range got {
		for _, word := range []string{"CANARY", "canary", "mooring", "pizza", "guide", "harbour"} {
			if strings.Contains(key, word) {
				t.Errorf("%s contains %q", key, word)
			}
		}
	}
	if t.Failed() {
		for key, v := range got {
			if strings.HasPrefix(key, "ibid_") {
				t.Logf("%s %v", key, v)
			}
		}
	}
}

// TestMetricsOfCanceledAnswers counts answers whose reader disconnected.
func TestMetricsOfCanceledAnswers(t *testing.T) {
	w := newStalled()
	m := NewMetrics()
	a := &answering{metrics: m}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-w.begun; cancel() }()
	for range a.numberCitations(ctx, askKind, w.Ask(ctx, answer.Question{Text: "stall"}), cite.Options{}) {
	}
	asked := newScript(newShelf()).Ask(t.Context(), answer.Question{Text: "pizza"})
	for range a.numberCitations(t.Context(), askKind, asked, cite.Options{}) {
		break
	}
	if n := scraped(t, m.handler())["ibid_answers_total{kind=ask,outcome=canceled}"]; n != 2 {
		t.Errorf("%v canceled answers, want 2", n)
	}
}

// modelFunc is a Model.
type modelFunc func(context.Context, answer.Prompt) iter.Seq2[answer.Piece, error]

func (f modelFunc) Complete(ctx context.Context, p answer.Prompt) iter.Seq2[answer.Piece, error] {
	return f(ctx, p)
}

// TestMetricsOfModels counts calls, tokens and failures.
func TestMetricsOfModels(t *testing.T) {
	m := NewMetrics()
	model := m.MeasureModel(modelFunc(func(_ context.Context, p answer.Prompt) iter.Seq2[answer.Piece, error] {
		return func(yield func(answer.Piece, error) bool) {
			if p.User == "fail" {
				yield(answer.Piece{Usage: answer.Tokens{Prompt: 5, Requests: 3}}, &openai.Error{Kind: openai.RateLimited})
				return
			}
			if !yield(answer.Piece{Text: "no"}, nil) {
				return
			}
			used := answer.Tokens{Prompt: 1000, Completion: 200, Reasoning: 50, Reported: true, Requests: 1}
			yield(answer.Piece{Finish: "stop", Usage: used}, nil)
		}
	}))
	if m.MeasureModel(nil) != nil {
		t.Error("MeasureModel(nil) is not nil")
	}
	call := func(role answer.Role, user string, whole bool) (got []answer.Piece, err error) {
		for p, e := range model.Complete(t.Context(), answer.Prompt{Role: role, System: "one two", User: user}) {
			if got, err = append(got, p), e; !whole {
				break
			}
		}
		return got, err
	}
	if got, err := call(answer.RoleAnswer, "ask", true); err != nil || len(got) != 2 || got[1].Usage.Prompt != 1000 {
		t.Errorf("call = %+v, %v", got, err)
	}
	if _, err := call(answer.RoleRefine, "fail", true); err == nil {
		t.Error("the model's error is lost")
	}
	_, _ = call(answer.RoleJudge, "three", false)
	got := scraped(t, m.handler())
	want := map[string]float64{
		"ibid_model_call_duration_seconds{role=answer}": 1, "ibid_model_call_duration_seconds{role=refine}": 1,
		"ibid_model_call_duration_seconds{role=judge}":                1,
		"ibid_model_call_failures_total{kind=rate_limit,role=refine}": 1,
		"ibid_model_tokens_total{direction=prompt,role=answer}":       1000,
		"ibid_model_tokens_total{direction=completion,role=answer}":   200,
		"ibid_model_tokens_total{direction=reasoning,role=answer}":    50,
		"ibid_model_tokens_total{direction=prompt,role=judge}":        3, // tokens of its prompt, counted here
		"ibid_model_tokens_total{direction=completion,role=judge}":    1,
	}
	for key := range want {
		datatest.Same(t, key, want[key], got[key])
	}
}
