package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"

	"ibid/answer/openai/openaitest"
)

// A shownRun is a run as a server returns it.
type shownRun struct {
	ID, State, Question, URL string
	Resumable                bool
	Answer                   struct{ Text string }
}

// fetch sends a request without a key and returns the body of the reply.
func fetch(t *testing.T, method, url, accept, body string, want int) []byte {
	t.Helper()
	resp := asked(t, method, url, "", body, "Accept: "+accept, "Content-Type: application/json")
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		t.Fatalf("%s %s: status = %s, want %d; %v: %s", method, url, resp.Status, want, err, b)
	}
	return b
}

// ingestVoyage writes a library of days at sea, one passage each, and ingests it into the store
// that the arguments name, by default the data directory.
func ingestVoyage(t *testing.T, data string, store ...string) {
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

// replyAsCrew is a scripted model whose replies depend on the whole prompt. Replies of which only
// the first line matters are long.
func replyAsCrew(r openaitest.Request) openaitest.Reply {
	day := dayShown.FindString(r.User)
	tail := strings.Repeat("\nand so on and on", 40)
	sum := sha256.Sum256([]byte(r.User))
	switch {
	case r.Role == "judge" && day == "day 7":
		return openaitest.Reply{Text: "hard to say" + tail} // the judge, asked again
	case r.Role == "judge" && sum[0]%4 == 0:
		return openaitest.Reply{Text: "no\nit is about " + day + tail}
	case r.Role == "judge":
		return openaitest.Reply{Text: "yes" + tail}
	case r.Role == "refine" && sum[0]%4 == 0:
		return openaitest.Reply{Text: "No answer" + tail}
	}
	reply := replyWithMiles(r)
	if r.Role == "rerank" {
		reply.Text += fmt.Sprintf("\nScore: %d", sum[0])
	}
	return reply
}

var dayShown = regexp.MustCompile(`day \d+`)

// A killer answers calls to a model, ignoring the random marks of fences. At a given call
// it kills its client.
type killer struct {
	at     int // 0-based; never if negative
	answer func(openaitest.Request) openaitest.Reply

	mu      sync.Mutex
	prompts []string
	kill    chan func() error
}

// startKilling sets the call and the function that kills the client, and returns a channel that is
// closed then.
func (k *killer) startKilling() chan<- func() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kill = make(chan func() error, 1)
	return k.kill
}

// stopKilling returns the prompts so far and stops killing.
func (k *killer) stopKilling() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	prompts := k.prompts
	k.at, k.prompts = -1, nil
	return prompts
}

var fenceMark = regexp.MustCompile(`(<\/?\w+) \w{8}>`)

func (k *killer) reply(r openaitest.Request) openaitest.Reply {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.prompts = append(k.prompts, r.Role+"\n"+r.Prompt())
	if k.at < 0 || len(k.prompts) <= k.at {
		r.User = fenceMark.ReplaceAllString(r.User, "$1>")
		return k.answer(r)
	}
	if len(k.prompts) == k.at+1 {
		if err := (<-k.kill)(); err != nil {
			return openaitest.Reply{Text: "could not kill: " + err.Error()}
		}
	}
	return openaitest.Reply{Fault: openaitest.HeaderStall}
}
