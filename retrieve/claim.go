package retrieve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Claims is the part of a [Ledger] by which one worker at a time holds a run,
// among all processes that use the store. A claim lasts for a time that the
// ledger's clock measures, never the caller's: the clocks of two machines need
// not agree. Its worker prolongs it while it works; when it has died its claim
// runs out, and whoever is next takes the run up.
type Claims interface {
	// Claim has a worker hold a run from now on for the time d, which is more than 0
	// and at most [MaxClaim]. It is granted where nobody holds the run, and where
	// the worker's own claim was the last: that one is prolonged, or shortened, to
	// end d from now, even if it had run out. Where another worker holds the run it
	// is refused with a [*HeldError]; of those that claim a free run at once one
	// gets it. [ErrNotFound] if there is no such run.
	//
	// A claim ends when its time has run out, with Release, with End, and where the
	// store can tell also with the process that made it: from then on the run is
	// held by nobody.
	Claim(ctx context.Context, run, worker string, d time.Duration) error
	// Release ends the claim of a worker at once. There need be neither; that of
	// another worker goes on.
	Release(ctx context.Context, run, worker string) error
}

// MaxClaim is the longest time that a run can be claimed for at once.
const MaxClaim = time.Minute

// A HeldError says that a run is not the worker's that asked.
type HeldError struct {
	Run string
	// Worker holds it; empty where nobody does, and the one that asked does not
	// either.
	Worker string
	Left   time.Duration // of the claim, when it was looked at; 0 where nobody holds it
}

func (e *HeldError) Error() string {
	if e.Worker == "" {
		return fmt.Sprintf("the run %s is no longer held by who worked on it: take it up again, or see what came of it", e.Run)
	}
	return fmt.Sprintf("the run %s is worked on by %s: wait until it has ended, or stops to prolong its claim, which lasts for another %s", e.Run, WhoIs(e.Worker), e.Left.Round(time.Second))
}

// NewWorker makes a name for a worker of this process that no other one has.
func NewWorker() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "/" + strconv.Itoa(os.Getpid()) + "/" + strings.ToLower(rand.Text()[:12])
}

// WhoIs is a worker in words for people.
func WhoIs(worker string) string {
	if parts := strings.Split(worker, "/"); len(parts) == 3 {
		return fmt.Sprintf("process %s of %s", parts[1], parts[0])
	}
	return worker
}

// How long a worker claims a run for, and how often it prolongs that: two claims
// that fail do not lose it.
const (
	ClaimTime  = 15 * time.Second
	claimEvery = ClaimTime / 5
)

// Prolong keeps up a worker's claim of a run, made for [ClaimTime], until it is
// told to leave off. Where the claim is lost for good lost is called, once: with
// a [*HeldError] or [ErrNotFound] in it. A ledger that does not
// answer has taken nothing away, and is asked again. The claim itself stays.
func Prolong(ctx context.Context, l Claims, run, worker string, lost func(error)) (leaveOff func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(claimEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			limit, release := context.WithTimeout(ctx, 2*claimEvery)
			err := l.Claim(limit, run, worker, ClaimTime)
			release()
			if IsLost(err) {
				lost(err)
				return
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// IsLost says whether an error of a [Ledger] means that a worker must no longer
// work on its run.
func IsLost(err error) bool {
	held := (*HeldError)(nil)
	return errors.As(err, &held) || errors.Is(err, ErrNotFound)
}
