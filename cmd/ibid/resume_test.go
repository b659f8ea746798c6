package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"ibid/answer/openai/openaitest"
	"ibid/cite"
	"ibid/data/datatest"
)

// voyage writes a library of days at sea, one passage each, and ingests it, into
// the store that the arguments name if not into the data directory.
func voyage(t *testing.T, data string, store ...string) {
	t.Helper()
	folder := t.TempDir() + "/voyage"
	files := map[string]string{}
	for n := 1; n <= 14; n++ {
		files[fmt.Sprintf("day%d.md", n)] = fmt.Sprintf("# Day %d\n\n%s", n,
			strings.Repeat(fmt.Sprintf("On day %d the crew made %d miles under sail. ", n, 10+n), 12))
	}
	writeFiles(t, folder, files)
	mustRun(t, data, append([]string{"ingest", folder}, store...)...)
}

// crew is a scripted model whose replies depend on the whole prompt. Replies of
// which the first line is enough are long.
func crew(r openaitest.Request) openaitest.Reply {
	day := dayShown.FindString(r.User)
	tail := strings.Repeat("\nand so on and on", 40)
	sum := sha256.Sum256([]byte(r.User))
	switch {
	case r.Role == "judge" && day == "day 7":
		return openaitest.Reply{Text: "hard to say" + tail} // and asked again
	case r.Role == "judge" && sum[0]%4 == 0:
		return openaitest.Reply{Text: "no\nit is about " + day + tail}
	case r.Role == "judge":
		return openaitest.Reply{Text: "yes" + tail}
	case r.Role == "refine" && sum[0]%4 == 0:
		return openaitest.Reply{Text: "No answer" + tail}
	}
	reply := miles(r)
	if r.Role == "rerank" {
		reply.Text += fmt.Sprintf("\nScore: %d", sum[0])
	}
	return reply
}

var dayShown = regexp.MustCompile(`day \d+`)

// askParallel is how many calls the program makes at once to a local server.
const askParallel = 4

// withoutMarks returns an answer without its time and the token counts of prompts,
// whose random marks differ.
func withoutMarks(t *testing.T, out string) string {
	t.Helper()
	var a cite.Answer
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if !a.Answered || a.Incomplete || len(a.Judged) != 12 || len(a.Warnings) > 0 {
		t.Errorf("not a whole answer: %s", out)
	}
	a.Usage.Seconds, a.Usage.PromptTokens = 0, 0
	for i := range a.Judged {
		a.Judged[i].Tokens = 0
	}
	b, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Over HTTP an answer whose reader left, or whose server was killed, resumes after
// the completed calls.
func TestAskOverHTTPKilled(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	voyage(t, data)
	k := &killer{at: -1, answer: crew}
	var gone sync.WaitGroup
	h := &openaitest.Handler{Reply: k.reply, Done: func(x openaitest.Exchange) {
		if x.Gone && x.Sent == 0 {
			gone.Done()
		}
	}}
	args := []string{"--gate", "model", "--step-tokens", "1", "--model", "scripted", "--base-url", openaitest.Start(t, h)}
	url := serve(t, data, args...)
	const question = `{"question":"How many miles did the crew make on day 7?","strategy":"refine"}`
	post := func(ctx context.Context, url, accept, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/ask", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	get := func(url, body string) string {
		t.Helper()
		var resp *http.Response
		eventually(t, "the attempt before to end", func() bool { // its reader has just gone
			resp = post(t.Context(), url, "application/json", body)
			return resp.StatusCode != http.StatusConflict
		})
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Ibid-Run") == "" {
			t.Fatalf("%s, %v: %s", resp.Status, err, b)
		}
		return strings.ReplaceAll(withoutMarks(t, string(b)), url, "")
	}
	want := get(url, question)
	prompts := k.disarm()
	phases := phasesOf(prompts)
	goesOn := func(url, run string, at, unsure int) {
		t.Helper()
		body := `{"run":"` + run + `"}`
		if got := get(url, body); got != want {
			t.Errorf("broken off at call %d:\n%s\nwant\n%s", at+1, got, want)
		}
		after := k.disarm()
		if again := len(after) - (len(prompts) - at); again < 0 || again > unsure {
			t.Errorf("broken off at call %d of %d: %d calls were made after it, %d of them again", at+1, len(prompts), len(after), again)
		}
		eventually(t, "the run to be forgotten", func() bool {
			resp := post(t.Context(), url, "application/json", body)
			return resp.StatusCode == http.StatusNotFound
		})
	}
	arm := func(at int) (kill chan<- func() error, unsure int) {
		k.mu.Lock()
		k.at = at
		k.stalls, unsure = expected(phases, at)
		gone.Add(k.stalls)
		k.mu.Unlock()
		return k.arm(), unsure
	}

	// The reader leaves: its calls are closed with its connection.
	for _, at := range datatest.Pick(t, []int{6, 15}) {
		kill, unsure := arm(at)
		ctx, leave := context.WithCancel(t.Context())
		resp := post(ctx, url, "text/event-stream", question)
		kill <- func() error { leave(); return nil }
		if _, err := io.Copy(io.Discard, resp.Body); !errors.Is(err, context.Canceled) {
			t.Fatalf("the stream ended with %v", err)
		}
		gone.Wait()
		k.disarm()
		goesOn(url, resp.Header.Get("Ibid-Run"), at, unsure)
	}

	// The server is killed, and another resumes the run.
	at := 16
	kill, unsure := arm(at)
	cmd := command(context.Background(), data, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)
	first := listening(t, cmd)
	resp := post(t.Context(), first, "text/event-stream", question)
	kill <- cmd.Process.Kill
	if _, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Error("the stream of a server that was killed ended well")
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the server was not killed: %v", err)
	}
	gone.Wait()
	k.disarm()
	goesOn(url, resp.Header.Get("Ibid-Run"), at, unsure)
}
