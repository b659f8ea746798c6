package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ibid/answer/openai/openaitest"
	"ibid/cite"
)

// A load is so many readers of streams at a time, of so many tokens each.
type load struct {
	readers, tokens int
	arrive          time.Duration // over which they come
	chunks          int           // in the library
}

// loadSize is small, and full size with IBID_CAMPAIGN.
func loadSize() load {
	if os.Getenv("IBID_CAMPAIGN") != "" {
		return load{readers: 500, tokens: 600, arrive: 20 * time.Second, chunks: 10_000}
	}
	return load{readers: 60, tokens: 60, arrive: time.Second, chunks: 200}
}

const tokenTime = 50 * time.Millisecond // 20 tokens a second

// rooms ingests a library of so many chunks, each on a room of its own.
func rooms(t *testing.T, chunks int) (data string) {
	t.Helper()
	data, folder := t.TempDir(), t.TempDir()
	const each = 50
	files := map[string]string{}
	for n := 0; n < chunks; n += each {
		var b strings.Builder
		for room := n; room < min(n+each, chunks); room++ {
			fmt.Fprintf(&b, "# Chart room %d\n\nChart room %d opens at nine and closes at five. Its key hangs behind door %d, and the log of the room lies on the table under the window.\n\n", room, room, 3*room)
		}
		files[fmt.Sprintf("rooms-%d.md", n)] = b.String()
	}
	writeFiles(t, folder, files)
	if out, errs, code := ibid(t, data, "ingest", folder); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	return data
}

var roomAsked = regexp.MustCompile(`(?i)when does chart room (\d+) open`)

// countedOut is a text of so many tokens that shows when one is lost or out of place.
func countedOut(room, tokens int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Room %d:", room)
	for i := range tokens - 4 {
		fmt.Fprintf(&b, " %04d", i)
	}
	return b.String() + " [1]."
}

// A clock of a model tells when what it was asked about a room came, began to
// be answered, and ended, as the model's server saw it.
type clock struct {
	mu   sync.Mutex
	seen map[int][]openaitest.Exchange
}

func (c *clock) done(x openaitest.Exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := roomAsked.FindStringSubmatch(x.User); m != nil {
		room, _ := strconv.Atoi(m[1])
		x.Body, x.User, x.System = nil, "", ""
		c.seen[room] = append(c.seen[room], x)
	}
}

func (c *clock) of(room int) []openaitest.Exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.seen[room])
}

// roomModel answers questions about rooms, a token each tokenTime.
func roomModel(t *testing.T, tokens int) (url string, c *clock) {
	t.Helper()
	c = &clock{seen: map[int][]openaitest.Exchange{}}
	return openaitest.Start(t, &openaitest.Handler{
		FirstToken: 4 * tokenTime, PerToken: tokenTime, Done: c.done,
		Reply: openaitest.Rules(
			openaitest.Rule{Role: "judge", Reply: openaitest.Reply{Text: "yes", FirstToken: tokenTime}},
			openaitest.Rule{Func: func(r openaitest.Request) openaitest.Reply {
				m := roomAsked.FindStringSubmatch(r.User)
				if m == nil {
					return openaitest.Reply{Text: "Which room?"}
				}
				room, _ := strconv.Atoi(m[1])
				return openaitest.Reply{Text: countedOut(room, tokens)}
			}}),
	}), c
}

// A reading is what one reader of a stream saw.
type reading struct {
	status     int
	retryAfter string
	took       time.Duration // to the status
	sent       time.Time     // the request
	first      time.Time     // the first text came
	gaps       []time.Duration
	text       string
	answer     *cite.Answer // of the event done
	last       string       // the kind of the last event
	err        error
}

// readStream asks about a room and reads the events until the end, or until
// ctx does. It calls in when the status has come, unless that is nil.
func readStream(ctx context.Context, client *http.Client, url string, room int, in func()) (r reading) {
	if in == nil {
		in = func() {}
	}
	body := fmt.Sprintf(`{"question":"When does chart room %d open?"}`, room)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/ask", strings.NewReader(body))
	if err != nil {
		return reading{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	r.sent = time.Now()
	resp, err := client.Do(req)
	in()
	if err != nil {
		r.err = err
		return r
	}
	defer resp.Body.Close()
	r.status, r.retryAfter, r.took = resp.StatusCode, resp.Header.Get("Retry-After"), time.Since(r.sent)
	if r.status != http.StatusOK {
		_, r.err = io.Copy(io.Discard, resp.Body)
		return r
	}
	lines := bufio.NewReader(resp.Body)
	var text strings.Builder
	var before time.Time
	for {
		line, err := lines.ReadSlice('\n')
		for err == bufio.ErrBufferFull { // of a long event
			whole := slices.Clone(line)
			line, err = lines.ReadSlice('\n')
			line = append(whole, line...)
		}
		if err != nil {
			if err != io.EOF {
				r.err = err
			}
			r.text = text.String()
			return r
		}
		switch key, value, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(": ")); string(key) {
		case "event":
			r.last = string(value)
		case "data":
			switch r.last {
			case "text":
				now := time.Now()
				if r.first.IsZero() {
					r.first = now
				} else {
					r.gaps = append(r.gaps, now.Sub(before))
				}
				before = now
				var e struct{ Text string }
				if err := json.Unmarshal(value, &e); err != nil {
					r.err = err
				}
				text.WriteString(e.Text)
			case "done":
				r.answer = new(cite.Answer)
				if err := json.Unmarshal(value, r.answer); err != nil {
					r.err = err
				}
			}
		}
	}
}

// manyConnections is a client that opens one connection a request.
func manyConnections(t *testing.T) *http.Client {
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// busyOf gives the time that processors have spent on a process, on Linux.
func busyOf(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, behind, _ := strings.Cut(string(stat), ") ") // the name may hold spaces
	const user, system = 11, 12                     // of the fields behind it
	fields := strings.Fields(behind)
	if len(fields) <= system {
		return 0
	}
	ticks := 0
	for _, f := range fields[user : system+1] {
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}

// percentile gives the value that a share of the values, 0 to 1, does not exceed.
func percentile(values []time.Duration, share float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(share*float64(len(values))))]
}

// strained says whether a bound on time means nothing here.
func strained() bool { return raced() || os.Getenv("IBID_CAMPAIGN") == "" }

// TestLoad has many readers of streams at once: nothing is lost or out of
// place, the first token comes nearly as early as the model gives it, the
// memory stays small, and the reader over the limit is told so at once.
func TestLoad(t *testing.T) {
	size := loadSize()
	data := rooms(t, size.chunks)
	model, clock := roomModel(t, size.tokens)
	server := startProcess(t, data, "--model", "m", "--base-url", model, "--gate", "score", "--max-asks", strconv.Itoa(size.readers))
	url := server.url
	ready(t, url)
	idle := peakOf(server.pid)

	client := manyConnections(t)
	readings := make([]reading, size.readers)
	var readers, in sync.WaitGroup
	in.Add(size.readers)
	before := busyOf(server.pid)
	begun := time.Now()
	for i := range size.readers {
		readers.Go(func() {
			time.Sleep(time.Until(begun.Add(time.Duration(i) * size.arrive / time.Duration(size.readers))))
			readings[i] = readStream(t.Context(), client, url, i, in.Done)
		})
	}
	// One more than may be is turned away, for as long as all are in.
	in.Wait()
	var refused []time.Duration
	for range 20 {
		sent := time.Now()
		r := readStream(t.Context(), client, url, 0, nil)
		if r.status == http.StatusOK && time.Since(begun) > time.Duration(size.tokens)*tokenTime {
			break // the first have ended
		}
		if r.status != http.StatusTooManyRequests || r.retryAfter == "" {
			t.Errorf("the reader over the limit gets status %d, Retry-After %q, %v after %s", r.status, r.retryAfter, r.err, time.Since(sent))
		}
		refused = append(refused, r.took)
	}
	readers.Wait()
	busy := busyOf(server.pid) - before

	var added, gaps []time.Duration
	lost := 0
	for i, r := range readings {
		want := countedOut(i, size.tokens)
		if r.err != nil || r.status != http.StatusOK || r.text != want || r.answer == nil || r.answer.Text != want || r.last != "done" {
			if lost++; lost < 4 {
				t.Errorf("reader %d: status %d, error %v, last event %q, text %q", i, r.status, r.err, r.last, r.text)
			}
			continue
		}
		calls := clock.of(i)
		call := calls[len(calls)-1]
		added = append(added, r.first.Sub(r.sent)-call.First.Sub(call.Start))
		gaps = append(gaps, r.gaps...)
	}
	peak := peakOf(server.pid)
	t.Logf("figure: %d readers at %d tokens a second over %d chunks: %d failed, lost or out of place; first token later than the model's by p50 %s, p99 %s; gap between tokens p99 %s; refusal p50 %s, p99 %s; memory %d MB at its peak, %d MB before; %s of one processor",
		size.readers, time.Second/tokenTime, size.chunks, lost, percentile(added, .5).Round(time.Millisecond), percentile(added, .99).Round(time.Millisecond),
		percentile(gaps, .99).Round(time.Millisecond), percentile(refused, .5).Round(time.Millisecond), percentile(refused, .99).Round(time.Millisecond), peak>>20, idle>>20, busy.Round(10*time.Millisecond))
	if lost > 0 {
		t.Errorf("%d of %d readers did not get their answer", lost, size.readers)
	}
	if strained() {
		return
	}
	if p := percentile(added, .99); p > 250*time.Millisecond {
		t.Errorf("the first token is %s late (p99)", p)
	}
	if p := percentile(refused, .99); p > 250*time.Millisecond {
		t.Errorf("a refusal takes %s (p99)", p)
	}
	if peak > 300<<20 {
		t.Errorf("the server took %d MB", peak>>20)
	}
}

// TestDisconnects has readers leave at random moments: the call to the model
// is closed at once, and none comes after it.
func TestDisconnects(t *testing.T) {
	n := 50
	if os.Getenv("IBID_CAMPAIGN") != "" {
		n = 500
	}
	const tokens = 30
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	data := rooms(t, 200)
	model, clock := roomModel(t, tokens)
	// Judges, then steps that refine: there is always a next call.
	url := serve(t, data, "--model", "m", "--base-url", model, "--gate", "model", "--context-tokens", "1024")
	ready(t, url)

	client := manyConnections(t)
	left := make([]time.Time, n)
	var readers sync.WaitGroup
	const atATime = 16
	places := make(chan struct{}, atATime)
	for i := range n {
		after := time.Duration(rng.Int64N(int64(3 * tokens * tokenTime / 2)))
		places <- struct{}{}
		readers.Go(func() {
			defer func() { <-places }()
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			timer := time.AfterFunc(after, func() {
				left[i] = time.Now()
				leave()
			})
			r := readStream(ctx, client, url, i%200, nil)
			if timer.Stop() {
				left[i] = time.Time{} // the answer had ended
			} else if r.err == nil && r.answer != nil {
				left[i] = time.Time{}
			}
			// What is asked for a reader who has gone shows itself soon.
			time.Sleep(3 * tokenTime)
		})
	}
	readers.Wait()

	// The server has to hear of it first, which takes a machine with other work longer.
	soon := 100 * time.Millisecond
	if strained() {
		soon = time.Second
	}
	var closing []time.Duration
	further, during := 0, 0
	for i, at := range left {
		if at.IsZero() {
			continue
		}
		for _, x := range clock.of(i % 200) {
			switch late := x.Start.Sub(at); {
			case i+200 < n || i >= 200: // rooms asked about more than once
				if x.Start.After(at) || x.End.Before(at) {
					continue
				}
			case late > soon:
				further++
				continue
			}
			if x.End.After(at) {
				closing = append(closing, x.End.Sub(at))
				if x.Gone {
					during++
				}
			}
		}
	}
	t.Logf("figure: %d readers left at random moments, %d calls to the model were under way: closed after p50 %s, p99 %s; %d calls came later than %s behind their reader",
		n, len(closing), percentile(closing, .5).Round(time.Millisecond), percentile(closing, .99).Round(time.Millisecond), further, soon)
	if further > 0 {
		t.Errorf("%d calls were made for readers who had gone", further)
	}
	if during < n/4 {
		t.Errorf("only %d calls were under way when their reader left: this proves little", during)
	}
	if p := percentile(closing, .99); p > 100*time.Millisecond && !strained() {
		t.Errorf("a call goes on for %s (p99) after its reader has gone", p)
	}
}

// TestStopUnderLoad stops the server while streams are read: each gets a last
// event, and the server ends well within ten seconds.
func TestStopUnderLoad(t *testing.T) {
	const readers = 100
	data := rooms(t, 50)
	for _, test := range []struct {
		name       string
		tokens     int
		incomplete bool
	}{
		{"answers that end soon", 60, false},
		{"answers that take long", 1000, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			model, _ := roomModel(t, test.tokens)
			server := start(t, data, "--model", "m", "--base-url", model, "--gate", "score")
			ready(t, server.url)
			client := manyConnections(t)
			readings := make([]reading, readers)
			var reading sync.WaitGroup
			for i := range readers {
				reading.Go(func() { readings[i] = readStream(t.Context(), client, server.url, i%50, nil) })
			}
			time.Sleep(40 * tokenTime)
			stopped := time.Now()
			server.stop()
			took := time.Since(stopped)
			reading.Wait()
			kinds := map[string]int{}
			for _, r := range readings {
				kinds[r.last]++
				if r.err != nil || r.status != http.StatusOK || r.last != "done" && r.last != "error" {
					t.Errorf("a reader got status %d, %d bytes, the last event %q, and %v", r.status, len(r.text), r.last, r.err)
				} else if r.answer != nil && (r.answer.Incomplete != test.incomplete || r.answer.Text != r.text) {
					t.Errorf("incomplete: %t, %d bytes of text, %d in the last event", r.answer.Incomplete, len(r.text), len(r.answer.Text))
				}
			}
			t.Logf("figure: %d streams when the server was told to stop: last events %v, ended after %s", readers, kinds, took.Round(10*time.Millisecond))
			if took > 10*time.Second {
				t.Errorf("the server took %s to stop", took)
			}
		})
	}
}
