package web

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"

	"ibid/retrieve"
)

// twoServers share a ledger. The first answers with the words that are sent, the
// second with those sent to it.
func twoServers(t *testing.T, l *ledger, change func(*Options)) (first, second *echo.Echo, words, others waiting) {
	words, others = make(waiting), make(waiting)
	server := func(w waiting) *echo.Echo {
		return newHandler(t, func(o *Options) {
			o.Asker, o.Ledger, o.KeepAnswers = w, l, time.Hour
			if change != nil {
				change(o)
			}
		})
	}
	return server(words), server(others), words, others
}

func stateOf(t *testing.T, h *echo.Echo, id string) *runRecord {
	t.Helper()
	return into[*runRecord](t, call(h, "GET", "/api/runs/"+id, ""), 200)
}

func problemIn(t *testing.T, w *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	if p := into[Problem](t, w, status); p.Code != code {
		t.Errorf("%+v, want %s", p, code)
	}
}

// follows reads a run's events from a server until they end, or leave is called.
func follows(t *testing.T, h *echo.Echo, id, last string) (leave func(), read <-chan *httptest.ResponseRecorder) {
	ctx, leave := context.WithCancel(t.Context())
	all := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		all <- callIn(ctx, h, "GET", "/api/runs/"+id, "", "Accept", "text/event-stream", "Last-Event-ID", last)
	}()
	return leave, all
}

// live is a stream of events without its comments.
func live(b []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte(": following\n\n"), nil), []byte(": still here\n\n"), nil)
}

// A run is followed through any server, from any event on, and is the same to
// the byte; to be read there is to be read.
func TestDistantRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		here, there, words, _ := twoServers(t, l, nil)
		id := begun(t, here, `{"question":"When?"}`)
		words <- "one "
		if r := stateOf(t, there, id); r.State != stateRunning || r.Resumable || r.Ended != nil || r.Question != "When?" {
			t.Errorf("%+v", r)
		}
		problemIn(t, call(there, "POST", "/api/runs", `{"run":"`+id+`"}`), 409, "run_running")
		problemIn(t, call(there, "PUT", "/api/runs/"+id+"/shared", ""), 409, "run_running")

		_, all := follows(t, there, id, "")
		leave, some := follows(t, there, id, "")
		time.Sleep(3 * time.Second)
		words <- "two "
		time.Sleep(3 * time.Second)
		leave()
		had := eventsOf(t, (<-some).Body.Bytes())
		if len(had) != 2 || had[1].kind != "text" {
			t.Fatalf("after 6 s there is %v", had)
		}
		// Nobody but those readers there are: it goes on.
		time.Sleep(5 * patience)
		words <- "three "
		words <- "four"
		time.Sleep(10 * time.Millisecond)
		// One that had the last event from the first server comes to the second,
		// which does not know of it yet.
		_, rest := follows(t, there, id, eventID(stateOf(t, here, id).Started, 4))
		time.Sleep(3 * time.Second)
		close(words)
		synctest.Wait()
		whole := call(here, "GET", "/api/runs/"+id, "", asEvents...).Body.Bytes()
		if w := <-all; !bytes.Equal(live(w.Body.Bytes()), whole) || len(eventsOf(t, whole)) != 6 {
			t.Errorf("followed there:\n%s\nwant\n%s", w.Body, whole)
		}
		got := eventsOf(t, (<-rest).Body.Bytes())
		if len(got) != 2 || got[0].kind != "usage" || got[1].kind != "done" {
			t.Errorf("behind the fourth come %v", got)
		}
		if r := stateOf(t, there, id); r.State != stateDone || r.Resumable {
			t.Errorf("%+v", r)
		}
		if runs, records := l.ids(); runs != 0 || records != 1 {
			t.Errorf("%d runs and %d records are left", runs, records)
		}
	})
}

// Once nobody reads it anywhere a run is stopped, and says so.
func TestDistantReaderLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there, words, others := twoServers(t, newLedger(), nil)
		id := begun(t, here, `{"question":"When?"}`)
		words <- "one "
		leave, read := follows(t, there, id, "")
		time.Sleep(4 * patience)
		leave()
		<-read
		if r := stateOf(t, there, id); r.State != stateRunning {
			t.Errorf("%+v", r)
		}
		time.Sleep(3 * patience)
		synctest.Wait()
		for _, h := range []*echo.Echo{here, there} {
			if r := stateOf(t, h, id); r.State != stateStopped || !r.Resumable {
				t.Errorf("%+v", r)
			}
		}
		go func() { others <- "anew"; close(others) }()
		if b := into[begunRun](t, call(there, "POST", "/api/runs", `{"run":"`+id+`"}`), 202); b.ID != id {
			t.Errorf("%+v", b)
		}
		synctest.Wait()
		if r := stateOf(t, here, id); r.State != stateDone {
			t.Errorf("%+v", r)
		}
	})
}

// A run is stopped, and forgotten, through any server.
func TestStopDistantRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, forget := range []bool{false, true} {
			l := newLedger()
			here, there, words, others := twoServers(t, l, nil)
			id := begun(t, here, `{"question":"When?"}`)
			words <- "one "
			_, read := follows(t, here, id, "")
			start := time.Now()
			if forget {
				if w := call(there, "DELETE", "/api/runs/"+id+"?forget=true", ""); w.Code != 204 {
					t.Errorf("%d: %s", w.Code, w.Body)
				}
			} else if r := into[runRecord](t, call(there, "DELETE", "/api/runs/"+id, ""), 200); r.State != stateStopped || !r.Resumable {
				t.Errorf("%+v", r)
			}
			if took := time.Since(start); took > retrieve.ClaimTime/3 {
				t.Errorf("it took %v", took)
			}
			had := eventsOf(t, (<-read).Body.Bytes())
			if last := had[len(had)-1]; last.kind != "error" || !bytes.Contains(last.data, []byte(`"run_stopped"`)) {
				t.Errorf("who read it here had %v", had)
			}
			if forget {
				for _, h := range []*echo.Echo{here, there} {
					problemIn(t, call(h, "GET", "/api/runs/"+id, ""), 404, "run_not_found")
				}
				if runs, records := l.ids(); runs != 0 || records != 0 {
					t.Errorf("%d runs and %d records are left", runs, records)
				}
				continue
			}
			// The other server takes it up; this one then knows it as running there.
			into[begunRun](t, call(there, "POST", "/api/runs", `{"run":"`+id+`"}`), 202)
			others <- "anew"
			if r := stateOf(t, here, id); r.State != stateRunning {
				t.Errorf("%+v", r)
			}
			close(others)
			synctest.Wait()
			if r := stateOf(t, here, id); r.State != stateDone {
				t.Errorf("%+v", r)
			}
		}
	})
}

// A run whose server has died is told as interrupted once its claim has run out,
// and taken up by another; the first, if it was only held up, writes nothing more.
func TestDistantRunTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		here, there, words, others := twoServers(t, l, nil)
		id := begun(t, here, `{"question":"When?"}`)
		words <- "one "
		_, read := follows(t, there, id, "")
		_, stays := follows(t, here, id, "")
		time.Sleep(2 * time.Second)

		l.away(errors.New("the ledger is away"))
		w := call(there, "POST", "/api/runs", `{"run":"`+id+`"}`)
		problemIn(t, w, 409, "run_running")
		if w.Header().Get("Retry-After") == "" {
			t.Errorf("%v", w.Header())
		}
		time.Sleep(retrieve.ClaimTime)
		had := eventsOf(t, (<-read).Body.Bytes())
		if last := had[len(had)-1]; len(had) != 2 || last.kind != "error" || !bytes.Contains(last.data, []byte(`"run_interrupted"`)) {
			t.Errorf("who read it there had %v", had)
		}
		if r := stateOf(t, there, id); r.State != stateInterrupted || !r.Resumable {
			t.Errorf("%+v", r)
		}
		problemIn(t, call(there, "GET", "/api/runs/"+id, "", asEvents...), 409, "run_interrupted")

		l.away(nil)
		into[begunRun](t, call(there, "POST", "/api/runs", `{"run":"`+id+`"}`), 202)
		others <- "anew"
		time.Sleep(retrieve.ClaimTime / 2)
		had = eventsOf(t, (<-stays).Body.Bytes())
		if last := had[len(had)-1]; last.kind != "error" || !bytes.Contains(last.data, []byte(`"run_taken"`)) {
			t.Errorf("who read it here had %v", had)
		}
		if _, records := l.ids(); records != 0 {
			t.Error("a record was kept of what was lost")
		}
		_, read = follows(t, here, id, had[0].id)
		close(others)
		had = eventsOf(t, (<-read).Body.Bytes())
		if len(had) != 3 || !bytes.Contains(had[0].data, []byte("anew")) || had[2].kind != "done" {
			t.Errorf("who comes back has %v", had)
		}
		_ = words
	})
}

// What is not recorded is in the memory of its server alone, and the others say so.
func TestDistantRunUnrecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for body, change := range map[string]func(*Options){
			`{"question":"When?","record":false}`: nil,
			`{"question":"When?"}`:                func(o *Options) { o.KeepAnswers = 0 },
		} {
			l := newLedger()
			here, there, words, _ := twoServers(t, l, change)
			id := begun(t, here, body)
			words <- "one "
			time.Sleep(3 * time.Second)
			if r := stateOf(t, there, id); r.State != stateRunning {
				t.Errorf("%+v", r)
			}
			w := call(there, "GET", "/api/runs/"+id, "", asEvents...)
			problemIn(t, w, 409, "run_elsewhere")
			if w.Header().Get("Retry-After") == "" {
				t.Errorf("%v", w.Header())
			}
			if r := into[runRecord](t, call(there, "DELETE", "/api/runs/"+id, ""), 200); r.State != stateInterrupted || !r.Resumable {
				t.Errorf("%+v", r)
			}
			if len(l.replies) != 0 {
				t.Errorf("kept: %v", l.replies)
			}
		}
	})
}
