package retrieve_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ibid/retrieve"
)

// claims answers each claim from a script, and records its time.
type claims struct {
	retrieve.Claims
	start  time.Time
	script []error
	at     []time.Duration
}

func (c *claims) Claim(_ context.Context, run, worker string, d time.Duration) error {
	if run != "r" || worker != "w" || d != retrieve.ClaimTime {
		return fmt.Errorf("Claim(%s, %s, %s)", run, worker, d)
	}
	c.at = append(c.at, time.Since(c.start))
	if len(c.at) <= len(c.script) {
		return c.script[len(c.at)-1]
	}
	return nil
}

// TestProlong checks that a claim is renewed well before it expires, and again if the
// ledger does not answer. It is reported as lost once, when the ledger says so.
func TestProlong(t *testing.T) {
	away := errors.New("the ledger is away")
	held := &retrieve.HeldError{Run: "r", Worker: "v", Left: time.Second}
	for name, test := range map[string]struct {
		script []error
		lost   error
		claims int // expected number of claims in a minute
	}{
		"held":     {nil, nil, 11},
		"away":     {[]error{away, nil, away, away, away, away}, nil, 11},
		"taken":    {[]error{nil, away, fmt.Errorf("claim: %w", held)}, held, 3},
		"it ended": {[]error{nil, retrieve.ErrNotFound}, retrieve.ErrNotFound, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &claims{start: time.Now(), script: test.script}
				var lost []error
				leaveOff := retrieve.Prolong(t.Context(), c, "r", "w", retrieve.ClaimTime, func(err error) { lost = append(lost, err) })
				time.Sleep(time.Minute - time.Second)
				leaveOff()
				time.Sleep(time.Minute)
				if len(c.at) != test.claims || (test.lost != nil) != (len(lost) == 1) || test.lost != nil && !errors.Is(lost[0], test.lost) {
					t.Errorf("%d claims, want %d; lost = %v", len(c.at), test.claims, lost)
				}
				for _, gap := range c.at {
					if gap%(5*time.Second) != 0 {
						t.Errorf("times of the claims = %v", c.at)
					}
				}
				if !slices.IsSorted(c.at) {
					t.Errorf("times of the claims = %v", c.at)
				}
			})
		})
	}
}

func TestDescribeWorker(t *testing.T) {
	a, b := retrieve.NewWorker(), retrieve.NewWorker()
	if a == b {
		t.Errorf("two workers have the name %s", a)
	}
	for worker, want := range map[string]string{"ant/17/x5": "process 17 of ant", "w": "w", "a/b": "a/b"} {
		if got := retrieve.DescribeWorker(worker); got != want {
			t.Errorf("DescribeWorker(%s) = %q, want %q", worker, got, want)
		}
	}
}

// TestHasDied checks that the process of a worker has died if its process id is unused or
// belongs to a later process.
func TestHasDied(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux identifies the namespace of a process id")
	}
	own := retrieve.NewWorker()
	parts := strings.Split(own, "/")
	ended := exec.Command(os.Args[0], "-test.run=^$")
	must(t, ended.Run())
	free := fmt.Sprint(ended.Process.Pid)
	numbering, _, _ := strings.Cut(parts[2], "-")
	for worker, want := range map[string]bool{
		own: false, "w": false, "": false, "a/b/c": false,
		parts[0] + "/" + free + "/" + parts[2]:               true,
		parts[0] + "/" + parts[1] + "/" + numbering + "-x-y": true,
		parts[0] + "/1/" + parts[2]:                          false, // process 1 lives as long as the system
		"another/" + free + "/" + parts[2]:                   false,
		parts[0] + "/" + free + "/another-" + parts[2]:       false,
	} {
		if got := retrieve.HasDied(worker); got != want {
			t.Errorf("HasDied(%q) = %t", worker, got)
		}
	}
}
