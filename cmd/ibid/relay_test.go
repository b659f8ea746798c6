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
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ibid/answer/openai/openaitest"
	"ibid/data/datatest"
)

// runRelay serves POST requests by sending them to a model, and its replies as
// they arrive: the least that a server between readers and a model does.
func runRelay(model string, stdout io.Writer) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
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

// cpuOf is the CPU time that a process has used, on Linux.
func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Skipf("this system does not tell the CPU time of a process: %v", err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	ticks := 0
	for _, field := range strings.Fields(rest)[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}

// A chatLoad is what readers of one server saw.
type chatLoad struct {
	gaps []time.Duration // between the tokens of each reader
	torn int             // replies without their last token and their end
	cpu  time.Duration   // of the server, for one answer
}

// load has readers ask a server over a time, each about a room of its own.
func load(t *testing.T, server running, model string, readers, tokens int, over time.Duration) (l chatLoad) {
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
	l.cpu = (cpuOf(t, server.pid) - before) / time.Duration(readers)
	slices.Sort(l.gaps)
	return l
}

func (l chatLoad) p99() time.Duration {
	if len(l.gaps) == 0 {
		return 0
	}
	return l.gaps[len(l.gaps)*99/100]
}

// readChat asks about a room, and returns the times between tokens and whether the reply was whole.
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
	for lines.Scan() {
		line := lines.Text()
		if !strings.Contains(line, `"content":`) {
			ended = ended || line == "data: [DONE]"
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

// TestLoadNextToRelay compares the server with a relay of thirty lines between the
// same readers and the same model. It fails for a torn reply, a lost record or too
// much memory; the times are figures, since other programs may use the machine.
func TestLoadNextToRelay(t *testing.T) {
	t.Parallel()
	readers := datatest.Cases(t, 500)
	const tokens = 80
	over := 20 * time.Second * time.Duration(readers) / 500
	model := openaitest.Start(t, &openaitest.Handler{PerToken: 50 * time.Millisecond, Reply: func(r openaitest.Request) openaitest.Reply {
		return openaitest.Reply{Text: countedOut(askedRoom(r), tokens)}
	}})
	relay := exec.CommandContext(t.Context(), "ibid-relay", model)
	relay.Cancel = func() error { return relay.Process.Signal(syscall.SIGKILL) }
	least := running{url: listening(t, relay)}
	least.pid = relay.Process.Pid
	relayed := load(t, least, "m", readers, tokens, over)

	server := startProcess(t, rooms(t, datatest.Cases(t, 4000)), "--model", "m", "--base-url", model, "--gate", "score",
		"--unproved", "off")
	ready(t, server.url)
	measured := load(t, server, "ibid", readers, tokens, over)
	t.Logf("figure: %d readers in %v: CPU for an answer %v, relay %v; p99 between tokens %v, relay %v; %d torn, relay %d; peak memory %d MB",
		readers, over, measured.cpu, relayed.cpu, measured.p99(), relayed.p99(), measured.torn, relayed.torn, peakOf(server.pid)>>20)
	if measured.torn > 0 || len(measured.gaps) == 0 {
		t.Errorf("%d of %d replies are torn", measured.torn, readers)
	}
	if peak := peakOf(server.pid); peak > 300<<20 && !raced() {
		t.Errorf("the server used %d MB", peak>>20)
	}
	var list struct{ Runs []struct{ State string } }
	resp := asked(t, http.MethodGet, server.url+"/api/runs?limit=500", "", "")
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	if len(list.Runs) != readers {
		t.Errorf("%d records of %d answers\n%s", len(list.Runs), readers, server.log)
	}
}
