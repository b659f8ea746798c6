package web

import (
	"bytes"
	"context"
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

// TestAskRun checks that an unfinished answer can be resumed by its id with the
// same question, and that a question is answered when its run cannot be stored.
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
				_ = yield(answer.Stepped{Step: 2, Reason: "model_error"}, nil) && yield(answer.Incomplete{Reason: "the reply ended early"}, nil)
			}
			yield(answer.Usage{}, nil)
		}
	})
	l := newLedger()
	l.runs["ofasummary"] = retrieve.Job{ID: "ofasummary", Kind: "POST /api/summarize", Spec: []byte(`{}`)}
	var logged bytes.Buffer
	handler := func(l retrieve.Ledger) http.Handler {
		return newHandler(t, func(o *Options) {
			o.Asker, o.Ledger, o.Logger = asker, l, slog.New(slog.NewTextHandler(&logged, nil))
		})
	}
	post := func(h http.Handler, body string, headers ...string) *httptest.ResponseRecorder {
		asked = answer.Question{}
		return call(h, "POST", "/api/ask", body, headers...)
	}
	h := handler(l)
	const question = `{"question":"When?","history":[{"role":"user","content":"Hello."}],"strategy":"refine","top_k":3,"filter":{"path_prefix":"h"}}`
	for _, headers := range [][]string{nil, asEvents} {
		fail = false
		w := post(h, question, headers...)
		if id := w.Header().Get(runHeader); w.Code != http.StatusOK || id == "" || asked.Recorder == nil || asked.Recorder.ID != id ||
			len(l.runs) != 1 {
			t.Fatalf("status = %d, run %q, %d runs in the ledger: %s", w.Code, id, len(l.runs), w.Body)
		}
		fail = true
		w = post(h, question, headers...)
		id, first := w.Header().Get(runHeader), asked
		if w.Code != http.StatusOK || len(l.runs) != 2 || l.runs[id].Kind != "POST /api/ask" {
			t.Fatalf("status = %d, ledger = %v", w.Code, l.runs)
		}
		fail = false
		w = post(h, `{"run":"`+id+`","question":"Something else?"}`, headers...)
		if w.Code != http.StatusOK || w.Header().Get(runHeader) != id || len(l.runs) != 1 {
			t.Errorf("status = %d, run %q, %d runs in the ledger: %s", w.Code, w.Header().Get(runHeader), len(l.runs), w.Body)
		}
		if string(asked.Recorder.Secret) != string(first.Recorder.Secret) || asked.Text != "When?" || len(asked.History) != 1 ||
			asked.Strategy != "refine" || asked.TopK != 3 || asked.Filter.PathPrefix != "h" {
			t.Errorf("resumed question = %+v", asked)
		}
		for _, id := range []string{id, "ofasummary", "none"} {
			wantProblem(t, post(h, `{"run":"`+id+`"}`, headers...), http.StatusNotFound, "run_not_found")
		}
	}

	w := post(handler(fullDisk{}), question)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "At nine.") || w.Header().Get(runHeader) != "" ||
		!strings.Contains(logged.String(), "the disk is full") {
		t.Errorf("full disk: status = %d: %s\n%s", w.Code, w.Body, logged.String())
	}
}

// TestSlowRecord checks that a record is stored even if the store is slow, and that the run
// cannot be resumed meanwhile.
func TestSlowRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &stuckLedger{ledger: newLedger(), slow: 2 * retrieve.ClaimTime}
		o := newOptions()
		o.Ledger, o.KeepAnswers = kept, time.Hour
		h, err := New(o) // the reply does not wait for the record
		must(t, err)
		id := call(h, "POST", "/api/ask", `{"question":"mooring"}`).Header().Get(runHeader)
		time.Sleep(retrieve.ClaimTime * 3 / 2)
		held := (*retrieve.HeldError)(nil)
		if err := kept.Claim(t.Context(), id, "another", time.Second); !errors.As(err, &held) {
			t.Errorf("claim by another server: err = %v, want HeldError", err)
		}
		time.Sleep(retrieve.ClaimTime)
		synctest.Wait()
		if _, records := kept.ids(); records != 1 {
			t.Errorf("%d records, want 1", records)
		}
	})
}

// A stuckLedger needs some time to store a record.
type stuckLedger struct {
	*ledger
	slow time.Duration
}

func (l *stuckLedger) Finish(ctx context.Context, records []retrieve.Record, jobs []string) ([]bool, error) {
	select {
	case <-time.After(l.slow):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return l.ledger.Finish(ctx, records, jobs)
}

type fullDisk struct{ retrieve.Ledger }

func (fullDisk) Begin(context.Context, retrieve.Job) error { return errors.New("the disk is full") }
