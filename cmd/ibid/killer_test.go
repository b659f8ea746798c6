package main

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"ibid/answer/openai/openaitest"
)

// A killer answers without regard to the marks of fences, but for the calls
// from a certain one on: once so many have come, it does away with its client.
type killer struct {
	at     int // 0-based; less than 0 for never
	stalls int
	answer func(openaitest.Request) openaitest.Reply

	mu      sync.Mutex
	prompts []string
	kill    chan func() error
}

// start starts the client.
func (k *killer) start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	kill := k.arm()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill <- cmd.Process.Kill
}

// arm gives a channel for how to do away with the client.
func (k *killer) arm() chan<- func() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kill = make(chan func() error, 1)
	return k.kill
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
		if err := (<-k.kill)(); err != nil {
			return openaitest.Reply{Text: "could not kill: " + err.Error()}
		}
	}
	return openaitest.Reply{Fault: openaitest.HeaderStall}
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

// expected tells how many calls stall when the client of a run is to be killed
// at one of them, and how many of those before may be made again. Who has a
// call in hand that stalls has kept all calls before it. Who has none left may
// be killed while its last one is being kept.
func expected(phases []phase, at int) (stalls, unsure int) {
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
	stalls = min(workers, in.start+in.n-at)
	return stalls, min(workers-stalls, at-in.start)
}
