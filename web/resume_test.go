package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ibid/answer"
	"ibid/retrieve"
)

// An answer is under an id while it is unfinished, by which it goes on with the
// question it was; where it cannot be kept it is given all the same.
func TestAskRun(t *testing.T) {
	var asked answer.Question
	fail := false
	asker := askerFunc(func(_ context.Context, q answer.Question) iter.Seq2[answer.Event, error] {
		return func(yield func(answer.Event, error) bool) {
			asked = q
			if !yield(answer.Text{Text: "At nine."}, nil) {
				return
			}
			if fail {
				_ = yield(answer.Stepped{Step: 2, Reason: "model_error"}, nil) && yield(answer.Incomplete{Reason: "it broke off"}, nil)
			}
			yield(answer.Usage{}, nil)
		}
	})
	ledger := desk{runs: map[string]retrieve.Job{"ofasummary": {ID: "ofasummary", Kind: "POST /api/summarize", Spec: []byte(`{}`)}}}
	handler := func(l retrieve.Ledger, logged *bytes.Buffer) http.Handler {
		return newHandler(t, func(o *Options) {
			o.Asker, o.Ledger = asker, l
			if logged != nil {
				o.Logger = slog.New(slog.NewTextHandler(logged, nil))
			}
		})
	}
	post := func(h http.Handler, body, accept string) *httptest.ResponseRecorder {
		asked = answer.Question{}
		r := httptest.NewRequest("POST", "http://127.0.0.1:8080/api/ask", strings.NewReader(body))
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	h := handler(ledger, nil)
	const question = `{"question":"When?","history":[{"role":"user","content":"Hello."}],"strategy":"refine","top_k":3,"filter":{"path_prefix":"h"}}`
	for _, accept := range []string{"application/json", "text/event-stream"} {
		fail = false
		w := post(h, question, accept)
		if id := w.Header().Get(runHeader); w.Code != http.StatusOK || id == "" || asked.Run == nil || asked.Run.ID != id || len(ledger.runs) != 1 {
			t.Fatalf("%d, run %q, %d in the ledger: %s", w.Code, id, len(ledger.runs), w.Body)
		}
		fail = true
		w = post(h, question, accept)
		id, first := w.Header().Get(runHeader), asked
		if w.Code != http.StatusOK || len(ledger.runs) != 2 || ledger.runs[id].Kind != "POST /api/ask" {
			t.Fatalf("%d, %v", w.Code, ledger.runs)
		}
		fail = false
		w = post(h, `{"run":"`+id+`","question":"Something else?"}`, accept)
		if w.Code != http.StatusOK || w.Header().Get(runHeader) != id || len(ledger.runs) != 1 {
			t.Errorf("%d, run %q, %d in the ledger: %s", w.Code, w.Header().Get(runHeader), len(ledger.runs), w.Body)
		}
		if string(asked.Run.Secret) != string(first.Run.Secret) || asked.Text != "When?" || len(asked.History) != 1 || asked.Strategy != "refine" || asked.TopK != 3 || asked.Filter.PathPrefix != "h" {
			t.Errorf("it went on with %+v", asked)
		}
		for _, id := range []string{id, "ofasummary", "none"} {
			var p Problem
			w := post(h, `{"run":"`+id+`"}`, accept)
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusNotFound || p.Code != "run_not_found" {
				t.Errorf("run %s: %d, %v: %s", id, w.Code, err, w.Body)
			}
		}
	}

	w := post(handler(nil, nil), question, "application/json")
	if w.Code != http.StatusOK || w.Header().Get(runHeader) != "" || asked.Run != nil {
		t.Errorf("without a ledger: %d, %v", w.Code, w.Header())
	}
	if w := post(handler(nil, nil), `{"run":"x"}`, "application/json"); w.Code != http.StatusNotFound {
		t.Errorf("without a ledger: %d", w.Code)
	}
	var logged bytes.Buffer
	w = post(handler(fullDisk{}, &logged), question, "application/json")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "At nine.") || w.Header().Get(runHeader) != "" || !strings.Contains(logged.String(), "the disk is full") {
		t.Errorf("with a full disk: %d: %s\n%s", w.Code, w.Body, logged.String())
	}
}

// A question is answered while the ledger takes no writes, and soon: a part of
// its server may be away, and it waits for that in vain.
func TestAskWithoutLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asker := askerFunc(func(context.Context, answer.Question) iter.Seq2[answer.Event, error] {
			return func(yield func(answer.Event, error) bool) {
				_ = yield(answer.Text{Text: "At nine."}, nil) && yield(answer.Usage{}, nil)
			}
		})
		var logged bytes.Buffer
		kept := &waitingLedger{ledger: newLedger(), away: true}
		h := newHandler(t, func(o *Options) {
			o.Asker, o.Ledger, o.KeepAnswers, o.Logger = asker, kept, time.Hour, slog.New(slog.NewTextHandler(&logged, nil))
		})
		for i, most := range []time.Duration{6 * time.Second, time.Second, time.Second} {
			start := time.Now()
			a := into[answered](t, call(h, "POST", "/api/ask", `{"question":"When?"}`), 200)
			if took := time.Since(start); a.Text != "At nine." || took > most {
				t.Errorf("question %d: %q after %s", i, a.Text, took)
			}
		}
		if kept.records != 0 {
			t.Errorf("%d records of runs that have no name", kept.records)
		}
		// When it takes them again, they are kept again.
		kept.away = false
		time.Sleep(withoutLedger)
		if w := call(h, "POST", "/api/ask", `{"question":"When?"}`); w.Code != 200 || w.Header().Get(runHeader) == "" || kept.records != 1 {
			t.Errorf("%d, run %q, %d records", w.Code, w.Header().Get(runHeader), kept.records)
		}
		if !strings.Contains(logged.String(), "cannot be taken up again") {
			t.Errorf("logged %s", &logged)
		}
	})
}

// A waitingLedger takes no run while it is away, for as long as anybody waits.
type waitingLedger struct {
	*ledger
	away    bool
	records int
}

func (l *waitingLedger) Begin(ctx context.Context, r retrieve.Job) error {
	if l.away {
		<-ctx.Done()
		return ctx.Err()
	}
	return l.ledger.Begin(ctx, r)
}

func (l *waitingLedger) KeepRecord(ctx context.Context, r retrieve.Record) error {
	l.records++
	return l.ledger.KeepRecord(ctx, r)
}

type askerFunc func(context.Context, answer.Question) iter.Seq2[answer.Event, error]

func (f askerFunc) Ask(ctx context.Context, q answer.Question) iter.Seq2[answer.Event, error] {
	return f(ctx, q)
}

type fullDisk struct{ retrieve.Ledger }

func (fullDisk) Begin(context.Context, retrieve.Job) error { return errors.New("the disk is full") }
