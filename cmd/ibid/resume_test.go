package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"ibid/answer/openai/openaitest"
	"ibid/cite"
)

// A killer answers without regard to the marks of fences, but for the calls
// from a certain one on: once so many have come, it kills its client.
type killer struct {
	at     int // 0-based; less than 0 for never
	stalls int
	answer func(openaitest.Request) openaitest.Reply

	mu      sync.Mutex
	prompts []string
	client  chan *os.Process
}

func (k *killer) start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	k.mu.Lock()
	k.client = make(chan *os.Process, 1)
	k.mu.Unlock()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	k.client <- cmd.Process
}

// disarm gives the prompts that came, and kills nobody from now on.
func (k *killer) disarm() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	prompts := k.prompts
	k.at, k.prompts = -1, nil
	return prompts
}

var fenceMark = regexp.MustCompile(`(<\/?\w+) \w{12}>`)

func (k *killer) reply(r openaitest.Request) openaitest.Reply {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.prompts = append(k.prompts, r.Role+"\n"+r.Prompt())
	if k.at < 0 || len(k.prompts) <= k.at {
		r.User = fenceMark.ReplaceAllString(r.User, "$1>")
		return k.answer(r)
	}
	if len(k.prompts) == k.at+k.stalls {
		if err := (<-k.client).Kill(); err != nil {
			return openaitest.Reply{Text: "could not kill: " + err.Error()}
		}
	}
	return openaitest.Reply{Fault: openaitest.HeaderStall}
}

// voyage writes a library of days at sea, one passage each, and ingests it.
func voyage(t *testing.T, data string) {
	t.Helper()
	folder := t.TempDir() + "/voyage"
	files := map[string]string{}
	for n := 1; n <= 14; n++ {
		files[fmt.Sprintf("day%d.md", n)] = fmt.Sprintf("# Day %d\n\n%s", n, strings.Repeat(fmt.Sprintf("On day %d the crew made %d miles under sail. ", n, 10+n), 12))
	}
	writeFiles(t, folder, files)
	if out, errs, code := ibid(t, data, "ingest", folder); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
}

// crew is a scripted model whose replies depend on all that it is asked. Where
// less than the whole reply will do, it goes on for long.
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

// askParallel is how many calls the program makes at a time of a server on its
// own machine.
const askParallel = 4

// A question that is killed at any of its calls goes on behind it: no call that
// has ended is made again, and the answer is the same to the byte.
func TestAskKilled(t *testing.T) {
	data := t.TempDir()
	voyage(t, data)
	for _, strategy := range []string{"refine", "stuff", "map-reduce", "map-rerank"} {
		t.Run(strategy, func(t *testing.T) {
			args := []string{"ask", "--json", "--strategy", strategy, "--gate", "model", "--step-tokens", "1", "--model", "scripted", "How many miles did the crew make on day 7?"}
			whole := &killer{at: -1, answer: crew}
			want, errs, code := ibid(t, data, append(args, "--base-url", openaitest.Start(t, &openaitest.Handler{Reply: whole.reply}))...)
			if code != 0 {
				t.Fatalf("exit code %d: %s%s", code, want, errs)
			}
			prompts := whole.disarm()
			phases := phasesOf(prompts)
			t.Logf("%d calls: %v", len(prompts), phases)
			if phases[0] != (phase{"judge", 0, 13}) || len(phases) < 2 {
				t.Fatalf("unexpected calls: %v", phases)
			}
			var boundaries []int
			switch {
			case os.Getenv("IBID_CAMPAIGN") != "":
				for at := range prompts {
					boundaries = append(boundaries, at)
				}
			case strategy == "refine":
				boundaries = []int{0, 5, 11, 12, 14, len(prompts) - 1}
			default:
				boundaries = []int{len(prompts) - 1}
			}
			for _, at := range boundaries {
				askKilledAt(t, data, at, args, want, prompts, phases)
			}
		})
	}
}

// A phase is a number of calls of one role, of which some are under way at a time.
type phase struct {
	role     string
	start, n int
}

func phasesOf(prompts []string) (phases []phase) {
	for i, p := range prompts {
		role, _, _ := strings.Cut(p, "\n")
		if len(phases) == 0 || phases[len(phases)-1].role != role {
			phases = append(phases, phase{role, i, 0})
		}
		phases[len(phases)-1].n++
	}
	return phases
}

func askKilledAt(t *testing.T, data string, at int, args []string, want string, prompts []string, phases []phase) {
	t.Helper()
	var in phase
	for _, p := range phases {
		if at >= p.start {
			in = p
		}
	}
	workers := 1
	if slices.Contains([]string{"judge", "map", "rerank"}, in.role) {
		workers = min(askParallel, in.n)
	}
	// Who has a call in hand that stalls has kept all calls before it. Who has
	// none left may be killed while its last one is being kept.
	stalls := min(workers, in.start+in.n-at)
	unsure := min(workers-stalls, at-in.start)

	k := &killer{at: at, stalls: stalls, answer: crew}
	cmd := command(context.Background(), data, append(args, "--base-url", openaitest.Start(t, &openaitest.Handler{Reply: k.reply}))...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	k.start(t, cmd)
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 || out.Len() > 0 {
		t.Fatalf("killed at call %d, it ended with %v: %s%s", at+1, err, out.String(), errs.String())
	}
	k.disarm()
	got, stderr, code := ibid(t, data, "ask", "--json", "--resume")
	if code != 0 || !strings.Contains(stderr, " goes on: How many miles") {
		t.Fatalf("resumed at call %d: exit code %d: %s%s", at+1, code, got, stderr)
	}
	after := k.disarm()
	if again := len(after) - (len(prompts) - at); again < 0 || again > unsure {
		t.Errorf("killed at call %d of %d (%s): %d calls were made after it, %d of them again", at+1, len(prompts), in.role, len(after), again)
	}
	if a, b := withoutMarks(t, got), withoutMarks(t, want); a != b {
		t.Errorf("killed at call %d:\n%s\nwant\n%s", at+1, a, b)
	}
	if _, stderr, code := ibid(t, data, "ask", "--resume"); code != exitFailed || !strings.Contains(stderr, "there is no unfinished run of 'ibid ask'") {
		t.Errorf("what has ended is kept: exit code %d: %s", code, stderr)
	}
}

// withoutMarks is an answer without its time, and without the tokens that were
// counted of prompts whose random marks differ.
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
