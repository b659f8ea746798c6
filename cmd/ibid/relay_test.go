package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ibid/answer/openai/openaitest"
	"ibid/data/datatest"
)

// runRelay sends requests to a model, and its replies line by line as they arrive:
// the least that a server between readers and a model does.
func runRelay(model string, stdout io.Writer) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintf(stdout, "listening on http://%s\n", listener.Addr())
	err = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), r.Method, model+strings.TrimPrefix(r.URL.Path, "/v1"), r.Body)
		if err != nil {
			return
		}
		req.Header = r.Header
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		for lines := bufio.NewReader(resp.Body); ; {
			line, err := lines.ReadBytes('\n')
			if _, wrote := w.Write(line); err != nil || wrote != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
	}))
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// cpuOf returns the processor time that a process has used, on Linux.
func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Skipf("this system does not tell the processor time of a process: %v", err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	var ticks int
	for _, field := range strings.Fields(rest)[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		must(t, err)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}

// A chatLoad has the times that the readers of one server measured, and their cost.
type chatLoad struct {
	gaps []time.Duration // between the tokens of each reader, the shortest first
	torn int             // replies without their last token or their end
	cpu  time.Duration   // of the server, for one answer
}

func (l chatLoad) String() string {
	return fmt.Sprintf("%v of processor time for an answer, p99 between tokens %v, %d torn", l.cpu, percentile(l.gaps, 99), l.torn)
}

// percentile returns one of a sorted list, 0 if it is empty.
func percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)*percent/100]
}

// measureLoad has readers ask a server over a time, each about a room of its own.
func measureLoad(t *testing.T, server running, model string, readers, tokens int, over time.Duration) (l chatLoad) {
	t.Helper()
	before := cpuOf(t, server.pid)
	var mu sync.Mutex
	var reading sync.WaitGroup
	for i := range readers {
		reading.Go(func() {
			time.Sleep(time.Duration(i) * over / time.Duration(readers))
			gaps, whole := readChat(t.Context(), server.url, model, i, tokens)
			mu.Lock()
			defer mu.Unlock()
			l.gaps = append(l.gaps, gaps...)
			if !whole {
				l.torn++
			}
		})
	}
	reading.Wait()
	time.Sleep(2 * time.Second) // the records of the last answers are written
	l.cpu = (cpuOf(t, server.pid) - before) / time.Duration(readers)
	slices.Sort(l.gaps)
	return l
}

// readChat asks about a room, and returns the times between tokens and whether the
// reply was whole. It ends with ctx.
func readChat(ctx context.Context, url, model string, room, tokens int) (gaps []time.Duration, whole bool) {
	body := fmt.Sprintf(`{"model":%q,"stream":true,"messages":[{"role":"user","content":"When does chart room %d open?"}]}`, model, room)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return nil, false
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return nil, false
	}
	defer resp.Body.Close()
	last, ended, final := time.Time{}, false, fmt.Sprintf("%04d", tokens-5)
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		ended = ended || line == "data: [DONE]"
		if ended || !strings.Contains(line, `"content":`) {
			continue
		}
		now := time.Now()
		if !last.IsZero() {
			gaps = append(gaps, now.Sub(last))
		}
		last, whole = now, whole || strings.Contains(line, final)
	}
	return gaps, whole && ended && lines.Err() == nil
}

// measureLeaving has readers leave in the middle, and returns how long after each
// the model's request ended, sorted.
func measureLeaving(t *testing.T, url string, readers int, closed <-chan time.Time) (took []time.Duration) {
	t.Helper()
	for i := range readers {
		ctx, leave := context.WithTimeout(t.Context(), 500*time.Millisecond)
		readChat(ctx, url, "ibid", i, 80)
		left, _ := ctx.Deadline()
		leave()
		select {
		case at := <-closed:
			took = append(took, at.Sub(left))
		case <-time.After(time.Minute):
			t.Fatalf("reader %d left, and the model's request goes on", i)
		}
	}
	slices.Sort(took)
	return took
}

// TestLoadNextToRelay compares the server with a relay of thirty lines between the
// same readers and the same model, on an idle machine and with programs that take
// all processors. It fails for a torn reply, a lost record or too much memory. The
// times are figures.
func TestLoadNextToRelay(t *testing.T) {
	datatest.CampaignOnly(t)
	const readers, tokens, over = 500, 80, 20 * time.Second
	closed := make(chan time.Time, 2*readers)
	model := openaitest.Start(t, &openaitest.Handler{
		PerToken: 50 * time.Millisecond,
		Reply: func(r openaitest.Request) openaitest.Reply {
			return openaitest.Reply{Text: countedOut(askedRoom(r), tokens)}
		},
		Done: func(openaitest.Exchange) { closed <- time.Now() },
	})
	relay := exec.CommandContext(t.Context(), "ibid-relay", model)
	least := running{url: listening(t, relay)}
	least.pid = relay.Process.Pid
	server := startProcess(t, rooms(t, 4000), "--model", "m", "--base-url", model, "--gate", "score", "--unproved", "off", "--no-self-test",
		"--log-level", "error")
	ready(t, server.url)

	answers := 0
	measure := func(machine string) {
		for range len(closed) {
			<-closed
		}
		relayed := measureLoad(t, least, "m", readers, tokens, over)
		for range len(closed) {
			<-closed
		}
		measured := measureLoad(t, server, "ibid", readers, tokens, over)
		t.Logf("figure: %d readers in %v, %s\nrelay: %v\nIbid: %v\nratio of processor times %.2f", readers, over, machine, relayed, measured,
			float64(measured.cpu)/float64(relayed.cpu))
		if measured.torn > 0 || len(measured.gaps) == 0 {
			t.Errorf("%s: %d of %d replies are torn", machine, measured.torn, readers)
		}
		answers += readers
		if got := countRuns(t, server.url); got != answers {
			t.Errorf("%s: %d records of %d answers\n%s", machine, got, answers, server.log)
		}
	}
	measure("an idle machine")
	for range len(closed) {
		<-closed
	}
	took := measureLeaving(t, server.url, 100, closed)
	t.Logf("figure: from a reader who leaves to the end of the model's request: p50 %v, p99 %v", percentile(took, 50), percentile(took, 99))
	answers = countRuns(t, server.url)
	for range runtime.NumCPU() {
		competitor := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
		must(t, competitor.Start())
	}
	measure("with a competitor on each processor")
	peak := peakOf(server.pid)
	t.Logf("figure: peak memory %d MB", peak>>20)
	if peak > 300<<20 && !raced() {
		t.Errorf("the server used %d MB", peak>>20)
	}
}

// countRuns returns the number of records of finished answers.
func countRuns(t *testing.T, url string) (n int) {
	t.Helper()
	for query := "?limit=100"; ; {
		var page struct {
			Runs []struct{ ID, State string }
			More bool
		}
		resp := asked(t, http.MethodGet, url+"/api/runs"+query, "", "")
		err := json.NewDecoder(resp.Body).Decode(&page)
		resp.Body.Close()
		must(t, err)
		for _, run := range page.Runs {
			if run.State == "done" {
				n++
			}
			query = "?limit=100&after=" + run.ID
		}
		if !page.More {
			return n
		}
	}
}
