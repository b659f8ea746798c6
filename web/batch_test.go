package web

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ibid/answer"
)

// TestBatch checks that each question of a batch has its own answer or error, in order.
func TestBatch(t *testing.T) {
	k := newKeyed(t, func(o *Options) {
		o.Ledger, o.KeepAnswers, o.KeyRate, o.UserRate, o.MaxAsks = newLedger(), time.Hour, 9, 1, 2
	})
	send := func(body string) (items []batchItem) {
		t.Helper()
		return into[answeredBatch](t, k.send(t, "POST", "/api/ask/batch?markdown=1", body, "Authorization: Bearer "+k.read,
			"Accept: text/event-stream"), 200).Answers
	}
	items := send(`{"questions":[{"question":"What is the mooring fee?","user":"anna"},{"question":"breaks at once"},{"question":" "},
		{"question":"evil","filter":{"rot":"club"}},{"question":"mooring","user":"anna"},{"question":"a","conversation":"x"},{"question":"What is the mooring fee?","record":false}]}`)
	for i, want := range []string{"", "internal", "empty_question", "unknown_filter", "too_fast", "bad_batch", ""} {
		got := items[i]
		if (want == "") != (got.Error == nil) || got.Error != nil && (got.Error.Code != want || len(got.Answer) > 0) {
			t.Errorf("question %d: %+v, want %q", i, got, want)
		}
		if want == "" && (!strings.Contains(string(got.Answer), "240 crowns") || !strings.Contains(string(got.Answer), `"markdown":`)) {
			t.Errorf("question %d: %s", i, got.Answer)
		}
		if (want == "too_fast") != (got.RetryAfter > 0) {
			t.Errorf("question %d: retry after %d ms", i, got.RetryAfter)
		}
	}
	if len(items) != 7 || items[0].Run == "" || items[0].Run == items[6].Run {
		t.Errorf("%d answers in the runs %q and %q, want 7 in different runs", len(items), items[0].Run, items[6].Run)
	}
	if w := k.send(t, "GET", "/api/runs/"+items[0].Run, "", "Authorization: Bearer "+k.read); w.Code != 200 {
		t.Errorf("record: status = %d, want 200", w.Code)
	}
	for _, bad := range []string{`{}`, `{"questions":[]}`, `{"questions":[` + strings.Repeat(`{"question":"a"},`, maxBatchAsks) + `{}]}`,
		`{"questions":[{"question":"a"},7]}`} {
		wantProblem(t, k.send(t, "POST", "/api/ask/batch", bad, "Authorization: Bearer "+k.read), 400, "bad_batch")
	}
}

// TestBatchEndsWithItsKey checks that a reply ends when its key is revoked, with the reason
// for each unanswered question, and that the work ends when the client disconnects.
func TestBatchEndsWithItsKey(t *testing.T) {
	const body = `{"questions":[{"question":"1"},{"question":"2"},{"question":"3"},{"question":"4"},{"question":"5"},{"question":"6"}]}`
	waits := asker(func(ctx context.Context, yield func(answer.Event, error) bool) {
		<-ctx.Done()
		yield(answer.Text{Text: "too late"}, nil)
	})
	synctest.Test(t, func(t *testing.T) {
		k := newKeyed(t, func(o *Options) {
			o.MaxAsks, o.Asker = 4, waits
		})
		began := time.Now()
		time.AfterFunc(time.Second, func() { _ = k.ring.Revoke(t.Context(), "writer") })
		w := k.send(t, "POST", "/api/ask/batch", body, "Authorization: Bearer "+k.write)
		if took := time.Since(began); took > heartbeat {
			t.Errorf("batch of a revoked key ended after %s", took)
		}
		items := into[answeredBatch](t, w, 200).Answers
		for i, item := range items {
			if item.Error == nil || item.Error.Code != "key_revoked" {
				t.Errorf("question %d = %+v, want key_revoked", i, item)
			}
		}
		if len(items) != 6 {
			t.Errorf("%d answers, want 6: %s", len(items), w.Body)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, func(o *Options) { o.Asker = waits })
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		began := time.Now()
		r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost:8080/api/ask/batch", strings.NewReader(body))
		h.ServeHTTP(httptest.NewRecorder(), r)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("batch of a disconnected client ended after %s", took)
		}
	})
}

// TestBatchIsBounded checks that a batch answers few questions at a time, even after
// failures, and that the reply begins early.
func TestBatchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under, most := make(chan struct{}, maxBatchAsks), 0
		finish := make(chan struct{})
		h := newHandler(t, func(o *Options) {
			o.MaxAsks = 6
			o.Asker = asker(func(_ context.Context, yield func(answer.Event, error) bool) {
				under <- struct{}{}
				<-finish
				<-under
				panic("at last")
			})
		})
		done := make(chan answeredBatch)
		question := `{"question":"Why?"}`
		go func() {
			done <- into[answeredBatch](t, call(h, "POST", "/api/ask/batch", `{"questions":[`+strings.Repeat(question+",", 9)+question+`]}`), 200)
		}()
		for range 10 {
			synctest.Wait()
			most = max(most, len(under))
			time.Sleep(2 * heartbeat)
			finish <- struct{}{}
		}
		got := fmt.Sprint(most)
		for _, item := range (<-done).Answers {
			got += " " + item.Error.Code
		}
		if want := "3" + strings.Repeat(" internal", 10); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
