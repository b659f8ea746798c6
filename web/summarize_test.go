package web

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ibid/answer"
	"ibid/data/datatest"
	"ibid/retrieve"
)

// digest is a Summarizer that stores its request.
type digest struct{ asked *answer.Summary }

func (d digest) Summarize(_ context.Context, s answer.Summary) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		*d.asked = s
		if s.Words == 13 {
			yield(nil, &answer.QuestionError{Code: "max_words", Msg: "13 is an unlucky number"})
			return
		}
		_ = yield(answer.Kept{Passages: s.Passages}, nil) &&
			yield(answer.Text{Text: "It is about boats.[1]"}, nil) &&
			(s.Words != 1 || yield(answer.Stepped{Step: 2, Passages: []string{}, Labels: []int{}, Reason: "model_error", Invented: []int{},
				Lost: []int{}}, nil) && yield(answer.Incomplete{Reason: "one word is too few"}, nil)) &&
			yield(answer.Usage{Looked: len(s.Passages)}, nil)
	}
}

func TestSummarize(t *testing.T) {
	var asked answer.Summary
	ledger := newLedger()
	ledger.runs["ofthecommandline"] = retrieve.Job{ID: "ofthecommandline", Kind: "ibid summarize", Started: time.Now(),
		Spec: []byte(`{"path":"/etc/passwd"}`)}
	h := newHandler(t, func(o *Options) { o.Summarizer, o.Ledger = digest{&asked}, ledger })
	post := func(body, accept string) *httptest.ResponseRecorder {
		asked = answer.Summary{}
		return call(h, "POST", "/api/summarize", body, "Accept", accept)
	}

	w := post(`{"document":"club/handbook/mooring.md","max_words":50,"strategy":"refine"}`, "application/json")
	a := into[answered](t, w, 200)
	if a.Text != "It is about boats.[1]" || len(a.Sources) != 1 || !strings.HasPrefix(a.Sources[0].Link,
		"http://127.0.0.1:8080/documents/club/handbook/mooring.md") {
		t.Errorf("summary = %+v", a.Answer)
	}
	if asked.Strategy != "refine" || asked.Words != 50 || len(asked.Passages) != 1 || asked.Passages[0].ID != "club/handbook/mooring.md#1" ||
		asked.Passages[0].Heading != "Moorings" {
		t.Errorf("request = %+v", asked)
	}
	if id := w.Header().Get(runHeader); id == "" || asked.Recorder == nil || asked.Recorder.ID != id || len(asked.Recorder.Secret) != 32 {
		t.Errorf("run %q, recorder = %+v", id, asked.Recorder)
	}
	if len(ledger.runs) != 1 {
		t.Errorf("a completed run is still stored: %v", ledger.runs)
	}

	w = post(`{"filter":{"format":"pdf"}}`, "text/event-stream")
	if !strings.Contains(w.Body.String(), "event: text\n") || !strings.Contains(w.Body.String(), "event: done\n") ||
		len(asked.Passages) != 1 || asked.Passages[0].PageAt(60) != 2 {
		t.Errorf("reply = %s for %+v", w.Body, asked.Passages)
	}

	// An incomplete summary can be resumed.
	w = post(`{"document":"club/guide.pdf","max_words":1}`, "application/json")
	id := w.Header().Get(runHeader)
	if w.Code != http.StatusOK || len(ledger.runs) != 2 {
		t.Errorf("status = %d: %s, runs = %v", w.Code, w.Body, ledger.runs)
	}
	first := asked
	if w = post(`{"run":"`+id+`"}`, "application/json"); w.Code != http.StatusOK || asked.Words != 1 || asked.Recorder.ID != id ||
		string(asked.Recorder.Secret) != string(first.Recorder.Secret) || len(asked.Passages) != len(first.Passages) {
		t.Errorf("status = %d: %s, request = %+v", w.Code, w.Body, asked)
	}

	for _, tt := range datatest.Lines[struct {
		Body json.RawMessage
		Code string
	}](t, "testdata/rows/summaries.jsonl") {
		w := post(string(tt.Body), "application/json")
		var p Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Code != tt.Code || w.Code < 400 || w.Code != p.Status {
			t.Errorf("%s: status = %d, %v: %s", tt.Body, w.Code, err, w.Body)
		}
	}
	if len(ledger.runs) != 2 {
		t.Errorf("a rejected request left a run: %v", ledger.runs)
	}
}
