package main

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ibid/answer/openai/openaitest"
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

// TestLoad has many readers at once: each gets a complete text, one over the limit
// gets 429 at once, and the memory stays small.
func TestLoad(t *testing.T) {
	t.Parallel()
	readers, tokens := datatest.Cases(t, 500), datatest.Cases(t, 600)
	var called atomic.Int64
	release := make(chan struct{}) // the model
	model := openaitest.Start(t, &openaitest.Handler{PerToken: time.Millisecond, Reply: func(r openaitest.Request) openaitest.Reply {
		called.Add(1)
		<-release
		return openaitest.Reply{Text: countedOut(askedRoom(r), tokens)}
	}})
	server := startProcess(t, rooms(t, datatest.Cases(t, 4000)), "--model", "m", "--base-url", model, "--gate", "score", "--max-asks",
		strconv.Itoa(readers))
	ready(t, server.url)
	var reading sync.WaitGroup
	for i := range readers {
		reading.Go(func() {
			_, text, whole := readChat(t.Context(), server.url, "ibid", i)
			if !whole || !strings.Contains(text, fmt.Sprintf("%04d", tokens-5)) {
				t.Errorf("the text of reader %d is not complete", i)
			}
		})
	}
	eventually(t, "all readers", func() bool { return called.Load() == int64(readers) })
	for range 10 {
		status, header, reply := post(t, server.url+"/api/ask", "application/json", `{"question":"When does chart room 1 open?"}`)
		if status != http.StatusTooManyRequests || header.Get("Retry-After") == "" {
			t.Errorf("a reader over the limit gets status %d, Retry-After %q: %s", status, header.Get("Retry-After"), reply)
		}
	}
	close(release)
	reading.Wait()
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
