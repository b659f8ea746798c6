package main

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"ibid/answer/openai/openaitest"
)

// A killer answers calls to a model, ignoring the random marks of fences. Calls
// from at on stall, and when enough of them stall it kills its client.
type killer struct {
	at     int // 0-based; less than 0 for never
	stalls int
	answer func(openaitest.Request) openaitest.Reply

	mu      sync.Mutex
	prompts []string
	kill    chan func() error
}

// arm returns a channel for the function that kills the client.
func (k *killer) arm() chan<- func() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kill = make(chan func() error, 1)
	return k.kill
}

// disarm returns the prompts so far, and stops killing.
func (k *killer) disarm() []string {
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
	if len(k.prompts) == k.at+k.stalls {
		if err := (<-k.kill)(); err != nil {
			return openaitest.Reply{Text: "could not kill: " + err.Error()}
		}
	}
	return openaitest.Reply{Fault: openaitest.HeaderStall}
}

// A phase is a sequence of calls of one role, some of them concurrent.
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

// expected returns how many calls stall when a client is killed at one of them,
// and how many earlier ones may be repeated. A worker with a stalled call has
// stored all its calls before; one without may be killed while it stores its last.
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
