package main

import (
	"os/exec"
	"regexp"
	"sync"
	"testing"

	"ibid/answer/openai/openaitest"
)

// A killer answers calls to a model, ignoring the random marks of fences. At one of them
// it kills its client.
type killer struct {
	at     int // 0-based; less than 0 for never
	answer func(openaitest.Request) openaitest.Reply

	mu      sync.Mutex
	prompts []string
	kill    chan func() error
}

// start starts the client.
func (k *killer) start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	kill := k.arm()
	must(t, cmd.Start())
	kill <- cmd.Process.Kill
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
	if len(k.prompts) == k.at+1 {
		if err := (<-k.kill)(); err != nil {
			return openaitest.Reply{Text: "could not kill: " + err.Error()}
		}
	}
	return openaitest.Reply{Fault: openaitest.HeaderStall}
}
