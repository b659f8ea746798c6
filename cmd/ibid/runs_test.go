package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"ibid/answer/openai/openaitest"
)

// A run as a server shows it.
type shownRun struct {
	ID, State, Question, URL string
	Resumable                bool
	Answer                   struct{ Text string }
}

// fetch sends a request for a run, and returns the body of the reply.
func fetch(t *testing.T, method, url, accept, body string, want int) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	must(t, err)
	r.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		t.Fatalf("%s %s: %s, %v: %s", method, url, resp.Status, err, b)
	}
	return b
}

func runOf(t *testing.T, b []byte) (r shownRun) {
	t.Helper()
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return r
}

// TestRunsOutliveTheServer: the next server replays a finished run identically.
// Forgetting the folder deletes it.
func TestRunsOutliveTheServer(t *testing.T) {
	t.Parallel()
	question := dayQuestion("refine")
	const events, object = "text/event-stream", "application/json"
	data := t.TempDir()
	voyage(t, data)
	args := []string{"--gate", "model", "--step-tokens", "1", "--model", "scripted", "--base-url",
		openaitest.Start(t, &openaitest.Handler{Reply: crew})}
	first := start(t, data, args...)
	id := runOf(t, fetch(t, "POST", first.url+"/api/runs", object, question, 202)).ID
	live := fetch(t, "GET", first.url+"/api/runs/"+id, events, "", 200)
	if !bytes.Contains(live, []byte("event: done\n")) {
		t.Fatalf("%s", live)
	}
	streamed := fetch(t, "POST", first.url+"/api/ask", events, question, 200)
	first.stop()

	url := serve(t, data, args...)
	// A live stream begins with a comment if it waits for the first event.
	live = bytes.ReplaceAll(live, []byte(": following\n\n"), nil)
	if replay := fetch(t, "GET", url+"/api/runs/"+id, events, "", 200); !bytes.Equal(replay, live) {
		t.Errorf("replayed:\n%s\nwant\n%s", replay, live)
	}
	_, asked, _ := bytes.Cut(streamed, []byte("id: "))
	var list struct{ Runs []shownRun }
	if err := json.Unmarshal(fetch(t, "GET", url+"/api/runs", object, "", 200), &list); err != nil || len(list.Runs) != 2 ||
		list.Runs[1].ID != id {
		t.Fatalf("%v, %+v", err, list)
	}
	if replay := fetch(t, "GET", url+"/api/runs/"+list.Runs[0].ID, events, "", 200); !bytes.Equal(replay, append([]byte("id: "), asked...)) {
		t.Errorf("replayed:\n%s\nwant\n%s", replay, streamed)
	}
	mustRun(t, data, "forget", "voyage")
	for _, run := range []string{id, list.Runs[0].ID} {
		fetch(t, "GET", url+"/api/runs/"+run, object, "", 404)
	}
}

// dayQuestion is a question about the library of [voyage].
func dayQuestion(strategy string) string {
	return `{"question":"How many miles did the crew make on day 7?","strategy":"` + strategy + `"}`
}
