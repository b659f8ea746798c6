package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ibid/answer/openai/openaitest"
	"ibid/cite"
	"ibid/data/datatest"
)

// rooms ingests a library of so many chunks, each about a room of its own.
func rooms(t *testing.T, chunks int) (data string) {
	t.Helper()
	data, folder := t.TempDir(), t.TempDir()
	var b strings.Builder
	for room := range chunks {
		fmt.Fprintf(&b, "# Chart room %d\n\nChart room %d opens at nine and closes at five. Its key hangs behind door %d, and the log of the "+
			"room lies on the table under the window.\n\n", room, room, 3*room)
	}
	writeFiles(t, folder, map[string]string{"rooms.md": b.String()})
	mustRun(t, data, "ingest", folder)
	return data
}

var roomAsked = regexp.MustCompile(`(?i)when does chart room (\d+) open`)

// askedRoom returns the room that a request is about.
func askedRoom(r openaitest.Request) (room int) {
	if m := roomAsked.FindStringSubmatch(r.User); m != nil {
		room, _ = strconv.Atoi(m[1])
	}
	return room
}

// countedOut returns a text of so many tokens that shows if one is lost or out of order.
func countedOut(room, tokens int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Room %d:", room)
	for i := range tokens - 4 {
		fmt.Fprintf(&b, " %04d", i)
	}
	return b.String() + " [1]."
}

// A reading is the events that one reader of a stream received.
type reading struct {
	status     int
	retryAfter string
	text       string
	answer     *cite.Answer // of the event "done"
	last       string       // the kind of the last event
	err        error
}

// readStream asks about a room and reads the events until the end, or until ctx
// is done. It calls arrived when the status has arrived.
func readStream(ctx context.Context, url string, room int, arrived func()) (r reading) {
	body := fmt.Sprintf(`{"question":"When does chart room %d open?"}`, room)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/ask", strings.NewReader(body))
	if err != nil {
		return reading{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	arrived()
	if err != nil {
		return reading{err: err}
	}
	defer resp.Body.Close()
	r.status, r.retryAfter = resp.StatusCode, resp.Header.Get("Retry-After")
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		switch key, value, _ := strings.Cut(lines.Text(), ": "); {
		case key == "event":
			r.last = value
		case key == "data" && r.last == "text":
			var e struct{ Text string }
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				r.err = err
			}
			r.text += e.Text
		case key == "data" && r.last == "done":
			r.answer = new(cite.Answer)
			if err := json.Unmarshal([]byte(value), r.answer); err != nil {
				r.err = err
			}
		}
	}
	if err := lines.Err(); err != nil {
		r.err = err
	}
	return r
}

// TestLoad has many readers at once: each gets its own text, complete and in
// order, one over the limit gets 429 at once, and the memory stays small.
func TestLoad(t *testing.T) {
	t.Parallel()
	readers, tokens := datatest.Cases(t, 500), datatest.Cases(t, 600)
	release := make(chan struct{}) // the model
	model := openaitest.Start(t, &openaitest.Handler{PerToken: time.Millisecond, Reply: func(r openaitest.Request) openaitest.Reply {
		<-release
		return openaitest.Reply{Text: countedOut(askedRoom(r), tokens)}
	}})
	server := startProcess(t, rooms(t, datatest.Cases(t, 4000)), "--model", "m", "--base-url", model, "--gate", "score", "--max-asks",
		strconv.Itoa(readers))
	ready(t, server.url)

	readings := make([]reading, readers)
	var arrived, reading sync.WaitGroup
	arrived.Add(readers)
	for i := range readers {
		reading.Go(func() { readings[i] = readStream(t.Context(), server.url, i, arrived.Done) })
	}
	arrived.Wait()
	for range 10 {
		if r := readStream(t.Context(), server.url, 0, func() {}); r.status != http.StatusTooManyRequests || r.retryAfter == "" {
			t.Errorf("a reader over the limit gets status %d, Retry-After %q, %v", r.status, r.retryAfter, r.err)
		}
	}
	close(release)
	reading.Wait()
	for i, r := range readings {
		want := countedOut(i, tokens)
		if r.err != nil || r.status != http.StatusOK || r.text != want || r.answer == nil || r.answer.Text != want || r.last != "done" {
			t.Errorf("reader %d: status %d, error %v, last event %q, text %q", i, r.status, r.err, r.last, r.text)
		}
	}
	peak := peakOf(server.pid)
	t.Logf("figure: %d readers at once: peak memory %d MB", readers, peak>>20)
	// About 325 MB: 120 in use, the garbage up to the next collection, and the program.
	if peak > 400<<20 && !raced() {
		t.Errorf("the server used %d MB", peak>>20)
	}
}

// post sends JSON, and returns the reply.
func post(t *testing.T, url, accept, body string) (status int, header http.Header, reply []byte) {
	t.Helper()
	resp := asked(t, http.MethodPost, url, "", body, "Content-Type: application/json", "Accept: "+accept)
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, resp.Header, reply
}
