package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/answer"
	"ibid/cite"
	"ibid/ingest"
	"ibid/retrieve"
)

// ledger keeps runs and records in memory. Its methods can be called concurrently.
type ledger struct {
	retrieve.Ledger
	mu       sync.Mutex
	runs     map[string]retrieve.Job
	records  map[string]retrieve.Record
	feedback []retrieve.Feedback
	replies  map[string][]byte
	until    map[string]time.Time // when the claims of runs expire
	broken   error                // returned when a record is written
	lost     error                // returned when a claim is renewed
}

// failRenewals makes renewals of claims fail, as on a suspended server.
func (l *ledger) failRenewals(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = err
}

func newLedger() *ledger {
	return &ledger{runs: map[string]retrieve.Job{}, records: map[string]retrieve.Record{},
		replies: map[string][]byte{}, until: map[string]time.Time{}}
}

// claim sets the worker of a run.
func (l *ledger) claim(r retrieve.Job, worker string, d time.Duration) {
	r.Worker, l.until[r.ID] = worker, time.Now().Add(d)
	l.runs[r.ID] = r
}

func (l *ledger) Claim(_ context.Context, id, worker string, d time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.runs[id]
	left := time.Until(l.until[id])
	switch {
	case !ok:
		return retrieve.ErrNotFound
	case r.Worker != "" && r.Worker != worker && left > 0:
		return &retrieve.HeldError{Run: id, Worker: r.Worker, Left: left}
	case r.Worker == worker && l.lost != nil:
		return l.lost
	}
	l.claim(r, worker, d)
	return nil
}

func (l *ledger) Release(_ context.Context, id, worker string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, ok := l.runs[id]; ok && r.Worker == worker {
		l.claim(r, "", 0)
	}
	return nil
}

func (l *ledger) KeepReply(_ context.Context, id, worker, key string, reply []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.runs[id]
	switch {
	case !ok:
		return retrieve.ErrNotFound
	case r.Worker != worker:
		return &retrieve.HeldError{Run: id, Worker: r.Worker, Left: time.Until(l.until[id])}
	}
	l.replies[id+" "+key] = reply
	return nil
}

func (l *ledger) Reply(_ context.Context, id, key string) ([]byte, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.replies[id+" "+key]
	return b, ok, nil
}

func (l *ledger) Begin(_ context.Context, r retrieve.Job) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claim(r, r.Worker, r.Left)
	return nil
}

func (l *ledger) End(_ context.Context, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.runs, id)
	return nil
}

func (l *ledger) Job(_ context.Context, id string) (retrieve.Job, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, ok := l.runs[id]; ok {
		if r.Left = time.Until(l.until[id]); r.Left <= 0 {
			r.Worker, r.Left = "", 0
		}
		return r, nil
	}
	return retrieve.Job{}, retrieve.ErrNotFound
}

func (l *ledger) KeepRecord(_ context.Context, r retrieve.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.records[r.ID] = r
	}
	return l.broken
}

func (l *ledger) Finish(ctx context.Context, records []retrieve.Record, jobs []string) ([]bool, error) {
	stored := make([]bool, len(records))
	for i, r := range records {
		if err := l.KeepRecord(ctx, r); err != nil {
			return stored, err
		}
		stored[i] = true
	}
	for _, id := range jobs {
		if err := l.End(ctx, id); err != nil {
			return stored, err
		}
	}
	return stored, nil
}

func (l *ledger) Record(_ context.Context, id string) (retrieve.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, ok := l.records[id]; ok {
		return r, nil
	}
	return retrieve.Record{}, retrieve.ErrNotFound
}

func (l *ledger) ForgetRecord(_ context.Context, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.records, id)
	return nil
}

func (l *ledger) ForgetQuoting(_ context.Context, document string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.records, func(_ string, r retrieve.Record) bool { return slices.Contains(r.Documents, document) })
	return nil
}

func (l *ledger) Records(_ context.Context, by string, after retrieve.Record, n int) ([]retrieve.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []retrieve.Record
	for _, r := range l.records {
		if r.By == by && (after.ID == "" || r.Started.Before(after.Started)) {
			r.Events = nil
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b retrieve.Record) int { return b.Started.Compare(a.Started) })
	return list[:min(n, len(list))], nil
}

func (l *ledger) KeepFeedback(_ context.Context, f retrieve.Feedback) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.Key = int64(len(l.feedback) + 1)
	l.feedback = append(l.feedback, f)
	return nil
}

func (l *ledger) Feedback(_ context.Context, after int64, n int) ([]retrieve.Feedback, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []retrieve.Feedback
	for _, f := range slices.Backward(l.feedback) {
		if (after == 0 || f.Key < after) && len(list) < n {
			list = append(list, f)
		}
	}
	return list, nil
}

func (l *ledger) ids() (runs, records int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.runs), len(l.records)
}

// call sends a request and returns the reply. Headers are pairs of name and
// value; an empty value is not sent.
func call(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	return callIn(context.Background(), h, method, path, body, headers...)
}

func callIn(ctx context.Context, h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1:8080"+path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		switch name, value := headers[i], headers[i+1]; {
		case name == "Host":
			r.Host = value
		case value != "":
			r.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// into decodes a JSON reply that must have this status.
func into[T any](t testing.TB, w *httptest.ResponseRecorder, status int) (v T) {
	t.Helper()
	if w.Code != status {
		t.Fatalf("status = %d, want %d: %s", w.Code, status, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	return v
}

// wantProblem checks the status and code of a problem.
func wantProblem(t testing.TB, w *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	if p := into[Problem](t, w, status); p.Code != code {
		t.Errorf("problem = %+v, want code %s", p, code)
	}
}

// wantState checks the state in the record of a run.
func wantState(t testing.TB, w *httptest.ResponseRecorder, state string, resumable bool) {
	t.Helper()
	if r := into[answerRecord](t, w, 200); r.State != state || r.Resumable != resumable {
		t.Errorf("record = %+v, want state %s, resumable %v", r, state, resumable)
	}
}

var asEvents = []string{"Accept", "text/event-stream"}

// eventsOf parses a stream of events without its comments.
func eventsOf(t testing.TB, stream []byte) []event {
	t.Helper()
	var whole []byte
	for part := range strings.SplitAfterSeq(string(stream), "\n\n") {
		if !strings.HasPrefix(part, ":") {
			whole = append(whole, part...)
		}
	}
	events, err := parseEvents(whole)
	if err != nil {
		t.Fatalf("%v in %s", err, stream)
	}
	return events
}

// begun starts a run and returns its id.
func begun(t testing.TB, h http.Handler, body string) string {
	t.Helper()
	w := call(h, "POST", "/api/runs", body)
	b := into[answerRecord](t, w, http.StatusAccepted)
	if b.ID == "" || w.Header().Get("Location") != b.Events || b.Events != "http://127.0.0.1:8080/api/runs/"+b.ID ||
		w.Header().Get(runHeader) != b.ID {
		t.Fatalf("reply = %+v, header %v", b, w.Header())
	}
	return b.ID
}

// waiting is an Asker that sends the words it receives until its context ends.
type waiting chan string

func (words waiting) Ask(ctx context.Context, _ answer.Question) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		for {
			select {
			case word, more := <-words:
				if !more {
					yield(answer.Usage{}, nil)
					return
				}
				if !yield(answer.Text{Text: word}, nil) {
					return
				}
			case <-ctx.Done():
				yield(nil, fmt.Errorf("asking: %w", ctx.Err()))
				return
			}
		}
	}
}

// TestRunReplay checks that the events of a run are always the same: from memory and from the
// record, from any event on, and as in POST /api/ask.
func TestRunReplay(t *testing.T) {
	l := newLedger()
	var runs Answers
	server := func(runs *Answers) *echo.Echo {
		return newHandler(t, func(o *Options) { o.Ledger, o.KeepAnswers, o.Answers = l, time.Hour, runs })
	}
	h := server(&runs)
	const question = `{"question":"What is the mooring fee?"}`
	id := begun(t, h, question)
	first := call(h, "GET", "/api/runs/"+id, "", asEvents...)
	whole := eventsOf(t, first.Body.Bytes())
	if last := whole[len(whole)-1]; first.Code != http.StatusOK || last.kind != "done" {
		t.Fatalf("status = %d: %s", first.Code, first.Body)
	}
	runs.Shutdown(t.Context())
	replay := call(h, "GET", "/api/runs/"+id, "", asEvents...)
	again := call(server(new(Answers)), "GET", "/api/runs/"+id, "", asEvents...)
	live := bytes.ReplaceAll(first.Body.Bytes(), []byte(": following\n\n"), nil)
	if !bytes.Equal(live, replay.Body.Bytes()) || !bytes.Equal(live, again.Body.Bytes()) {
		t.Errorf("live:\n%s\nreplayed:\n%s\nby another server:\n%s", first.Body, replay.Body, again.Body)
	}
	if replay.Header().Get("Content-Type") != "text/event-stream; charset=utf-8" {
		t.Errorf("header of the replayed events = %v", replay.Header())
	}
	for i, e := range whole {
		if e.id == "" || i > 0 && e.id == whole[i-1].id {
			t.Errorf("event %d has the id %q, want a new one", i, e.id)
		}
		w := call(h, "GET", "/api/runs/"+id, "", "Accept", "text/event-stream", "Last-Event-ID", e.id)
		if i == len(whole)-1 {
			if w.Code != http.StatusNoContent || w.Body.Len() > 0 {
				t.Errorf("after the last event: status = %d, body %s; want 204", w.Code, w.Body)
			}
			continue
		}
		if rest := eventsOf(t, w.Body.Bytes()); len(rest) != len(whole)-i-1 || rest[0].id != whole[i+1].id {
			t.Errorf("after event %d: %d events: %s", i, len(rest), w.Body)
		}
	}
	for _, unknown := range []string{"x", "0-1", "z" + whole[0].id} {
		w := call(h, "GET", "/api/runs/"+id, "", "Accept", "text/event-stream", "Last-Event-ID", unknown)
		if len(eventsOf(t, w.Body.Bytes())) != len(whole) {
			t.Errorf("after the unknown event %q: %s", unknown, w.Body)
		}
	}

	unchanged := []byte(`"state":"unchanged",`) // only a record has this member
	record := into[answerRecord](t, call(h, "GET", "/api/runs/"+id, ""), http.StatusOK)
	if record.State != stateDone || record.Question != "What is the mooring fee?" || string(record.Request) != question ||
		record.Kind != "ask" || record.Ended == nil || record.Resumable || record.URL != "http://127.0.0.1:8080/?run="+id {
		t.Errorf("record = %+v, want the question, done, not resumable, with its address", record)
	}
	record.Answer = bytes.ReplaceAll(record.Answer, unchanged, nil)
	if !bytes.Equal(record.Answer, whole[len(whole)-1].data) {
		t.Errorf("answer in the record = %s", record.Answer)
	}
	// The events equal those of /api/ask, as JSON and as a stream.
	plain := call(h, "POST", "/api/ask", question)
	if got, want := answerIn(t, plain.Body.Bytes()), answerIn(t, record.Answer); !slices.Equal(got, want) {
		t.Errorf("answer of /api/ask = %v, of the run = %v", got, want)
	}
	streamed := call(h, "POST", "/api/ask", question, asEvents...)
	asked := eventsOf(t, streamed.Body.Bytes())
	if len(asked) != len(whole) {
		t.Fatalf("stream of /api/ask has another number of events: %s", streamed.Body)
	}
	for i := range asked {
		if asked[i].kind != whole[i].kind || !bytes.Equal(asked[i].data, whole[i].data) {
			t.Errorf("event %d of /api/ask = %s, of the run = %s", i, asked[i].data, whole[i].data)
		}
	}
	replay = call(h, "GET", "/api/runs/"+streamed.Header().Get(runHeader), "", asEvents...)
	if !bytes.Equal(replay.Body.Bytes(), streamed.Body.Bytes()) {
		t.Errorf("asked:\n%s\nreplayed:\n%s", streamed.Body, replay.Body)
	}
	if r := into[answerRecord](t, call(h, "GET", "/api/runs/"+plain.Header().Get(runHeader), ""), 200); !bytes.Equal(
		bytes.ReplaceAll(r.Answer, unchanged, nil), bytes.TrimSpace(plain.Body.Bytes())) {
		t.Errorf("answer = %s, recorded answer = %s", plain.Body, r.Answer)
	}
	// The record names the documents that it quotes.
	if got, want := l.records[id].Documents, []string{"club/guide.pdf", "club/handbook/mooring.md"}; !slices.Equal(got, want) {
		t.Errorf("documents of the record = %v, want %v", got, want)
	}
	if list := into[runList](t, call(h, "GET", "/api/runs?limit=2", ""), 200); len(list.Runs) != 2 || !list.More ||
		list.Runs[1].ID == id || list.Runs[0].Answer != nil {
		t.Errorf("first page of the list = %+v, want two later runs without answers, and more", list)
	} else if list := into[runList](t, call(h, "GET", "/api/runs?limit=2&after="+list.Runs[1].ID, ""), 200); len(list.Runs) != 1 ||
		list.More || list.Runs[0].ID != id {
		t.Errorf("second page of the list = %+v, want only %s", list, id)
	}
}

func answerIn(t testing.TB, b []byte) []string {
	t.Helper()
	var a cite.Answer
	if err := json.Unmarshal(b, &a); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return []string{a.Text, fmt.Sprint(a.Sources), fmt.Sprint(a.Citations)}
}

// TestNoRecord checks that no record is kept if the client declines it, without a ledger,
// or if writing fails. The run can still be followed.
func TestNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		kept := newHandler(t, func(o *Options) { o.Ledger, o.KeepAnswers = l, time.Hour })
		none := newHandler(t, nil)
		full := newHandler(t, func(o *Options) {
			broken := newLedger()
			broken.broken = fmt.Errorf("the disk is full")
			o.Ledger, o.KeepAnswers = broken, time.Hour
		})
		if w := call(kept, "POST", "/api/ask", `{"question":"pizza","record":false}`); w.Code != 200 {
			t.Errorf("status = %d: %s", w.Code, w.Body)
		}
		for _, h := range []*echo.Echo{kept, none, full} {
			id := begun(t, h, `{"question":"pizza","record":false}`)
			if h == full {
				id = begun(t, h, `{"question":"pizza"}`)
			}
			synctest.Wait()
			if w := call(h, "GET", "/api/runs/"+id, "", asEvents...); w.Code != 200 {
				t.Errorf("status = %d: %s", w.Code, w.Body)
			}
			time.Sleep(patience - time.Second)
			wantState(t, call(h, "GET", "/api/runs/"+id, ""), stateDone, h == full)
			time.Sleep(patience + time.Second)
			if h == full { // the run ends only after its record is stored
				wantState(t, call(h, "GET", "/api/runs/"+id, ""), stateInterrupted, true)
				continue
			}
			wantProblem(t, call(h, "GET", "/api/runs/"+id, ""), 404, "run_not_found")
		}
		if runs, records := l.ids(); runs+records != 0 {
			t.Errorf("%d runs and %d records, want none", runs, records)
		}
	})
}

// TestRunWithoutReader checks that a run continues without a reader, and that a stopped run
// can be resumed.
func TestRunWithoutReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		words := make(waiting)
		h := newHandler(t, func(o *Options) { o.Asker, o.Ledger, o.KeepAnswers = words, l, time.Hour })
		id := begun(t, h, `{"question":"When?"}`)
		words <- "one "
		ctx, leave := context.WithCancel(t.Context())
		read := make(chan *httptest.ResponseRecorder)
		go func() { read <- callIn(ctx, h, "GET", "/api/runs/"+id, "", asEvents...) }()
		words <- "two "
		synctest.Wait()
		leave()
		had := eventsOf(t, (<-read).Body.Bytes())
		if len(had) != 2 || had[0].kind != "text" {
			t.Fatalf("events before leaving = %v, want a text", had)
		}
		time.Sleep(time.Hour)
		words <- "three "
		if r := into[answerRecord](t, call(h, "GET", "/api/runs/"+id, ""), 200); r.State != stateRunning || r.Ended != nil {
			t.Errorf("record after its reader left = %+v, want a running one", r)
		}
		go func() {
			read <- call(h, "GET", "/api/runs/"+id, "", "Accept", "text/event-stream", "Last-Event-ID", had[1].id)
		}()
		words <- "four"
		close(words)
		rest := eventsOf(t, (<-read).Body.Bytes())
		var text string
		for _, e := range slices.Concat(had, rest) {
			var piece answer.Text
			must(t, json.Unmarshal(e.data, &piece))
			if e.kind == "text" {
				text += piece.Text
			}
		}
		if text != "one two three four" || rest[len(rest)-1].kind != "done" {
			t.Errorf("text = %q, events = %v", text, rest)
		}

		words2 := make(waiting)
		h = newHandler(t, func(o *Options) { o.Asker, o.Ledger, o.KeepAnswers = words2, l, time.Hour })
		id = begun(t, h, `{"question":"When?"}`)
		words2 <- "one "
		r := into[answerRecord](t, call(h, "DELETE", "/api/runs/"+id, ""), 200)
		var p Problem
		if err := json.Unmarshal(r.Error, &p); err != nil || r.State != stateStopped || !r.Resumable || p.Code != "run_stopped" ||
			r.Answer != nil {
			t.Errorf("err = %v, record = %+v; want a stopped, resumable run", err, r)
		}
		// It is resumed under its id, with new events, which differ in the time of the
		// attempt.
		time.Sleep(time.Second)
		go func() { words2 <- "again"; close(words2) }()
		if b := into[answerRecord](t, call(h, "POST", "/api/runs", `{"run":"`+id+`"}`), 202); b.ID != id {
			t.Fatalf("resumed run = %+v, want the ID %s", b, id)
		}
		e := eventsOf(t, call(h, "GET", "/api/runs/"+id, "", "Accept", "text/event-stream", "Last-Event-ID", eventID(r.Started, 1)).Body.Bytes())
		if len(e) != 3 || e[0].kind != "text" || e[2].kind != "done" {
			t.Errorf("events of the resumed run = %v, want three, from text to done", e)
		}
		synctest.Wait()
		wantState(t, call(h, "GET", "/api/runs/"+id, ""), stateDone, false)
	})
}

// TestStopRun checks that a run can be stopped and its record deleted.
func TestStopRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		h := newHandler(t, func(o *Options) { o.Asker, o.Ledger, o.KeepAnswers = make(waiting), l, time.Hour })
		id := begun(t, h, `{"question":"When?"}`)
		for _, path := range []string{"/api/ask", "/api/runs"} {
			wantProblem(t, call(h, "POST", path, `{"run":"`+id+`"}`), 409, "run_running")
		}
		wantState(t, call(h, "DELETE", "/api/runs/"+id, ""), stateStopped, true)
		wantState(t, call(h, "DELETE", "/api/runs/"+id, ""), stateStopped, true)
		if w := call(h, "DELETE", "/api/runs/"+id+"?forget=true", ""); w.Code != 204 {
			t.Errorf("DELETE: status = %d: %s", w.Code, w.Body)
		}
		if runs, records := l.ids(); runs+records != 0 {
			t.Errorf("%d runs and %d records, want none", runs, records)
		}
		for _, method := range []string{"GET", "DELETE"} {
			if w := call(h, method, "/api/runs/"+id, ""); w.Code != 404 {
				t.Errorf("status = %d, want 404: %s", w.Code, w.Body)
			}
		}
		// The answer of a waiting client is stopped too; the client gets a problem.
		for _, accept := range []string{"application/json", "text/event-stream"} {
			read := make(chan *httptest.ResponseRecorder)
			go func() { read <- call(h, "POST", "/api/ask", `{"question":"When?"}`, "Accept", accept) }()
			synctest.Wait()
			for id = range l.runs {
			}
			wantState(t, call(h, "DELETE", "/api/runs/"+id, ""), stateStopped, true)
			wantProblem(t, <-read, 409, "run_stopped")
			if w := call(h, "DELETE", "/api/runs/"+id+"?forget=true", ""); w.Code != 204 {
				t.Errorf("DELETE: status = %d: %s", w.Code, w.Body)
			}
		}
		// An answer stops when its client disconnects.
		ctx, leave := context.WithCancel(t.Context())
		read := make(chan *httptest.ResponseRecorder)
		go func() { read <- callIn(ctx, h, "POST", "/api/ask", `{"question":"When?"}`, asEvents...) }()
		synctest.Wait()
		leave()
		id = (<-read).Header().Get(runHeader)
		wantState(t, call(h, "GET", "/api/runs/"+id, ""), stateStopped, true)
	})
}

// TestInterruptedRun checks the runs that a killed server left in the ledger.
func TestInterruptedRun(t *testing.T) {
	l := newLedger()
	for id, kind := range map[string]string{"asked": askKind, "terminal": "ibid ask"} {
		spec := `{"request":{"question":"What is the mooring fee?"}}`
		l.runs[id] = retrieve.Job{ID: id, Kind: kind, Started: time.Now(), Spec: []byte(spec)}
	}
	l.runs["others"] = retrieve.Job{ID: "others", Kind: askKind, Spec: []byte(`{"by":"somebody","request":{"question":"Why?"}}`)}
	l.records["old"] = retrieve.Record{ID: "old", By: "somebody", Kind: askKind, State: stateDone}
	var runs Answers
	h := newHandler(t, func(o *Options) { o.Ledger, o.KeepAnswers, o.Answers = l, time.Hour, &runs })
	r := into[answerRecord](t, call(h, "GET", "/api/runs/asked", ""), 200)
	if r.State != stateInterrupted || !r.Resumable || r.Question != "What is the mooring fee?" {
		t.Errorf("run of an ended server = %+v, want it interrupted and resumable", r)
	}
	wantProblem(t, call(h, "GET", "/api/runs/asked", "", asEvents...), 409, "run_interrupted")
	for _, id := range []string{"terminal", "others", "old", "none"} {
		for _, method := range []string{"GET", "DELETE"} {
			wantProblem(t, call(h, method, "/api/runs/"+id, ""), 404, "run_not_found")
		}
		wantProblem(t, call(h, "POST", "/api/runs", `{"run":"`+id+`"}`), 404, "run_not_found")
	}
	if b := into[answerRecord](t, call(h, "POST", "/api/runs", `{"run":"asked"}`), 202); b.ID != "asked" {
		t.Errorf("resumed run = %+v, want the ID asked", b)
	}
	runs.Shutdown(t.Context())
	wantState(t, call(h, "GET", "/api/runs/asked", ""), stateDone, false)
}

// TestRunOfAnotherServer checks that another server shows a run as running, cannot follow
// or stop it, and has its record afterwards. If the server of a run dies, the other can
// resume the run after its claim has expired, and the first writes nothing more.
func TestRunOfAnotherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		server := func(words waiting) *echo.Echo {
			return newHandler(t, func(o *Options) { o.Asker, o.Ledger, o.KeepAnswers = words, l, time.Hour })
		}
		words, others := make(waiting), make(waiting)
		here, there := server(words), server(others)
		state := func(h *echo.Echo, id string) *answerRecord {
			t.Helper()
			return into[*answerRecord](t, call(h, "GET", "/api/runs/"+id, ""), 200)
		}
		id := begun(t, here, `{"question":"When?"}`)
		words <- "one "
		if r := state(there, id); r.State != stateRunning || r.Resumable || r.Ended != nil || r.Question != "When?" {
			t.Errorf("run on the other server = %+v, want it running and not resumable", r)
		}
		for _, w := range []*httptest.ResponseRecorder{call(there, "GET", "/api/runs/"+id, "", asEvents...),
			call(there, "DELETE", "/api/runs/"+id, ""), call(there, "DELETE", "/api/runs/"+id+"?forget=true", "")} {
			wantProblem(t, w, 409, "run_elsewhere")
			if w.Header().Get("Retry-After") == "" {
				t.Errorf("header = %v, want Retry-After", w.Header())
			}
		}
		wantProblem(t, call(there, "POST", "/api/runs", `{"run":"`+id+`"}`), 409, "run_running")
		wantProblem(t, call(there, "PUT", "/api/runs/"+id+"/shared", ""), 409, "run_running")
		close(words)
		synctest.Wait()
		if r := state(there, id); r.State != stateDone || !bytes.Contains(r.Answer, []byte("one ")) {
			t.Errorf("ended run on the other server = %+v, want it done with its answer", r)
		}
		if a, b := call(here, "GET", "/api/runs/"+id, "", asEvents...),
			call(there, "GET", "/api/runs/"+id, "", asEvents...); a.Body.String() != b.Body.String() {
			t.Errorf("here:\n%s\nthere:\n%s", a.Body, b.Body)
		}

		words = make(waiting)
		here = server(words)
		id = begun(t, here, `{"question":"Where?"}`)
		words <- "one "
		l.failRenewals(errors.New("the ledger is unavailable"))
		if w := call(there, "POST", "/api/runs", `{"run":"`+id+`"}`); w.Header().Get("Retry-After") == "" {
			t.Errorf("header = %v, want Retry-After", w.Header())
		}
		time.Sleep(retrieve.ClaimTime + time.Millisecond) // between two renewals
		if r := state(there, id); r.State != stateInterrupted || !r.Resumable {
			t.Errorf("run that lost its claim = %+v, want it interrupted and resumable", r)
		}
		wantProblem(t, call(there, "GET", "/api/runs/"+id, "", asEvents...), 409, "run_interrupted")
		l.failRenewals(nil)
		into[answerRecord](t, call(there, "POST", "/api/runs", `{"run":"`+id+`"}`), 202)
		others <- "again"
		time.Sleep(retrieve.ClaimTime / 2)
		if _, records := l.ids(); records != 1 {
			t.Errorf("%d records, want 1: the first server wrote one", records)
		}
		wantProblem(t, call(here, "GET", "/api/runs/"+id, "", asEvents...), 409, "run_elsewhere")
		close(others)
		synctest.Wait()
		if r := state(here, id); r.State != stateDone || !bytes.Contains(r.Answer, []byte("again")) {
			t.Errorf("run resumed by the other server = %+v, want it done with the new answer", r)
		}
	})
}

// TestShutdownRuns checks that runs have some time to end when the server shuts
// down, and are then stopped.
func TestShutdownRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		words := make(waiting)
		var runs Answers
		h := newHandler(t, func(o *Options) { o.Asker, o.Ledger, o.KeepAnswers, o.Answers = words, l, time.Hour, &runs })
		var ids []string
		for range 3 {
			ids = append(ids, begun(t, h, `{"question":"When?"}`))
		}
		limit, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		go func() {
			time.Sleep(7 * time.Second)
			words <- "late"
		}()
		start := time.Now()
		go func() {
			time.Sleep(time.Second)
			wantProblem(t, call(h, "POST", "/api/runs", `{"question":"When?"}`), 503, "canceled")
		}()
		runs.Shutdown(limit)
		if took := time.Since(start); took != 8*time.Second {
			t.Errorf("shutdown took %v, want 8s", took)
		}
		for _, id := range ids {
			wantState(t, call(h, "GET", "/api/runs/"+id, ""), stateStopped, true)
		}
		if runs, records := l.ids(); runs != 3 || records != 3 {
			t.Errorf("%d runs and %d records, want 3 and 3", runs, records)
		}
	})
}

// TestBrokenRun checks that a panic ends only its run, and that the events of a
// failed run end with the error.
func TestBrokenRun(t *testing.T) {
	l := newLedger()
	var logged bytes.Buffer
	var runs Answers
	h := newHandler(t, func(o *Options) {
		o.Ledger, o.KeepAnswers, o.Answers = l, time.Hour, &runs
		o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	})
	ids := map[string]string{}
	for _, q := range []string{"panics", "breaks at once", "breaks later"} {
		ids[q] = begun(t, h, `{"question":"`+q+`"}`)
	}
	runs.Shutdown(t.Context())
	for q, id := range ids {
		r := into[answerRecord](t, call(h, "GET", "/api/runs/"+id, ""), 200)
		var p Problem
		if err := json.Unmarshal(r.Error, &p); err != nil || r.State != stateFailed || !r.Resumable || p.Code != "internal" || p.Request == "" {
			t.Errorf("%s: err = %v, record = %+v", q, err, r)
		}
		e := eventsOf(t, call(h, "GET", "/api/runs/"+id, "", asEvents...).Body.Bytes())
		if last := e[len(e)-1]; last.kind != "error" || (q == "breaks later") != (len(e) > 1) {
			t.Errorf("%s: events = %v", q, e)
		}
		if !strings.Contains(logged.String(), p.Request) || strings.Contains(string(r.Error), "secret/path") {
			t.Errorf("%s: error = %s\n%s", q, r.Error, logged.String())
		}
	}
	if !strings.Contains(logged.String(), "at the disco") || !strings.Contains(logged.String(), errBroken.Error()) {
		t.Errorf("log = %s, want both errors with their causes", logged.String())
	}
}

// TestLongRun checks that an answer with too many events fails.
func TestLongRun(t *testing.T) {
	t.Parallel()
	long := askerFunc(func(_ context.Context, _ answer.Question) iter.Seq2[answer.Event, error] {
		return func(yield func(answer.Event, error) bool) {
			passage := retrieve.Passage{Chunk: ingest.Chunk{Text: strings.Repeat("a", 1<<20)}}
			for range 40 {
				if !yield(answer.Retrieved{Passages: []retrieve.Passage{passage}}, nil) {
					return
				}
			}
		}
	})
	h := newHandler(t, func(o *Options) { o.Asker, o.KeepAnswers = long, time.Hour })
	wantProblem(t, call(h, "POST", "/api/ask", `{"question":"When?"}`), http.StatusInsufficientStorage, "run_too_long")
}

// A slowLedger stores nothing until it is released, and counts its transactions.
type slowLedger struct {
	*ledger
	ready   chan struct{}
	batches []int
}

func (l *slowLedger) Finish(ctx context.Context, records []retrieve.Record, jobs []string) ([]bool, error) {
	<-l.ready
	l.batches = append(l.batches, len(records))
	return l.ledger.Finish(ctx, records, jobs)
}

// TestRepliesDoNotWait checks that replies end while the store does not respond, that it
// later gets their records in batches, and that a stopping server waits for it.
func TestRepliesDoNotWait(t *testing.T) {
	var answers Answers
	l := &slowLedger{ledger: newLedger(), ready: make(chan struct{})}
	o := newOptions()
	o.Ledger, o.KeepAnswers, o.Answers = l, time.Hour, &answers
	h, err := New(o)
	must(t, err)
	const asked = 2*maxBatch + 1
	last := ""
	for range asked {
		w := v1(h, `{"model":"ibid","stream":true,"messages":[{"role":"user","content":"What is the mooring fee?"}]}`)
		if last = w.Header().Get(runHeader); w.Code != 200 || !strings.HasSuffix(w.Body.String(), "data: [DONE]\n\n") {
			t.Fatalf("reply: %d %s", w.Code, w.Body)
		}
	}
	if r := into[answerRecord](t, call(h, "GET", "/api/runs/"+last, ""), 200); r.State != stateDone || len(l.records) != 0 {
		t.Errorf("before the store responds: state = %s, %d records; want done and 0", r.State, len(l.records))
	}
	close(l.ready)
	answers.Shutdown(t.Context())
	if len(l.records) != asked || len(l.runs) != 0 || len(l.batches) > 4 {
		t.Errorf("%d of %d records, %d runs left, batches = %v", len(l.records), asked, len(l.runs), l.batches)
	}
}
