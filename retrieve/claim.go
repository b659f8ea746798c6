package retrieve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Claims is the part of a [Ledger] that lets one worker at a time hold a job,
// among all processes that use the store. A claim expires after a time measured
// by the ledger's clock, so the clocks of two machines need not agree. A worker
// renews its claim while it works. When it dies the claim expires, and another
// worker may resume the job.
type Claims interface {
	// Claim claims a job for a worker for the time d from now, more than 0 and
	// at most [MaxClaim]. It succeeds if the job is unclaimed, or if the worker's
	// own claim was the last: that claim then ends d from now, even if it had
	// expired. If another worker holds the job, Claim returns a [*HeldError]; of
	// several workers that claim a free job at once, one succeeds. [ErrNotFound]
	// if there is no such job.
	//
	// A claim ends when it expires, with Release, with End and, if [HasDied] can
	// tell, with the worker's process.
	Claim(ctx context.Context, run, worker string, d time.Duration) error
	// Release ends the worker's claim at once. It does nothing if the worker has
	// no claim.
	Release(ctx context.Context, run, worker string) error
}

// MaxClaim is the longest duration of a claim.
const MaxClaim = time.Minute

// A HeldError reports that a worker does not hold a job.
type HeldError struct {
	Run string
	// Worker holds the job; empty if it is unclaimed.
	Worker string
	Left   time.Duration // until the claim expires; 0 if the job is unclaimed
}

func (e *HeldError) Error() string {
	if e.Worker == "" {
		return fmt.Sprintf("the claim on run %s was lost: resume the run, or look at its result", e.Run)
	}
	return fmt.Sprintf("%s is working on run %s: wait until it ends, or until its claim expires in %s",
		WhoIs(e.Worker), e.Run, e.Left.Round(time.Second))
}

// ClaimJob claims the job of an id for a worker, for the time d, and begins it if
// there is none. If another worker holds it, held says which.
func ClaimJob(ctx context.Context, l Ledger, id, kind, worker string, d time.Duration) (held *HeldError, err error) {
	for range 3 { // another process may begin or end it in between
		if err = l.Claim(ctx, id, worker, d); !errors.Is(err, ErrNotFound) {
			break
		}
		if err = l.Begin(ctx, Job{ID: id, Kind: kind, Started: time.Now(), Worker: worker, Left: d}); err == nil {
			return nil, nil
		}
	}
	if errors.As(err, &held) {
		return held, nil
	}
	return nil, err
}

// Hold waits until no other worker holds the job of an id, and holds it until release is
// called; the job is begun if there is none, and then ends. It waits until ctx ends. If
// another worker holds the job, waiting, which may be nil, is called once. The returned
// context is work, which also ends, with an error of which [IsLost] is true, if the job is lost.
func Hold(ctx, work context.Context, l Ledger, id, kind string, waiting func(*HeldError)) (_ context.Context, release func(), err error) {
	return hold(ctx, work, l, id, kind, ClaimTime, waiting)
}

// hold is Hold with claims for the time d.
func hold(ctx, work context.Context, l Ledger, id, kind string, d time.Duration, waiting func(*HeldError)) (
	_ context.Context, release func(), err error) {
	worker := NewWorker()
	for next := 100 * time.Millisecond; ; next = min(2*next, time.Second) {
		held, err := ClaimJob(ctx, l, id, kind, worker, d)
		if err != nil {
			return nil, nil, err
		}
		if held == nil {
			break
		}
		if waiting != nil {
			waiting(held)
			waiting = nil
		}
		if err := pause(ctx, next); err != nil {
			return nil, nil, err
		}
	}
	work, cancel := context.WithCancelCause(work)
	stop := Prolong(work, l, id, worker, d, cancel)
	return work, func() {
		stop()
		cancel(nil)
		ctx := WithWait(context.WithoutCancel(work), time.Second)
		if l.Claim(ctx, id, worker, time.Second) == nil { // another worker has it otherwise, or its claim expires
			_ = l.End(ctx, id)
		}
	}, nil
}

// NewWorker returns a unique name for a worker of this process.
func NewWorker() string {
	return host + "/" + strconv.Itoa(os.Getpid()) + "/" + thisProcess + strings.ToLower(rand.Text()[:12])
}

var (
	host, _ = os.Hostname() // without a name, workers still have one of their own
	// numbering names the numbering of processes that the number of this one is
	// from: that of one boot and one PID namespace. It is empty where the system
	// does not say.
	numbering = func() string {
		boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
		namespace, missing := os.Readlink("/proc/self/ns/pid")
		if err != nil || missing != nil {
			return ""
		}
		sum := sha256.Sum256(append(boot, namespace...))
		return hex.EncodeToString(sum[:6]) + "-"
	}()
	thisProcess = numbering + strings.ToLower(rand.Text()[:8]) + "-"
)

// HasDied reports whether the process of a worker is known to have ended. It
// knows only of processes on this machine, in the same container.
func HasDied(worker string) bool {
	parts := strings.Split(worker, "/")
	if numbering == "" || len(parts) != 3 || parts[0] != host || !strings.HasPrefix(parts[2], numbering) {
		return false
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil || pid == os.Getpid() {
		return err == nil && !strings.HasPrefix(parts[2], thisProcess) // an earlier process had the number
	}
	p, err := os.FindProcess(pid)
	return err == nil && errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// WhoIs describes a worker for messages.
func WhoIs(worker string) string {
	if parts := strings.Split(worker, "/"); len(parts) == 3 {
		return fmt.Sprintf("process %s of %s", parts[1], parts[0])
	}
	return worker
}

// ClaimTime is how long a worker claims a job for. It renews the claim four times as
// often: two failed renewals do not lose it.
const ClaimTime = 20 * time.Second

// Prolong renews a worker's claim, made for the time d, until stop is called; stop does
// not release the claim. If the claim is lost, Prolong calls lost once, with an error that
// wraps a [*HeldError] or [ErrNotFound]. A ledger that is unreachable does not lose the
// claim: Prolong tries again.
func Prolong(ctx context.Context, l Claims, run, worker string, d time.Duration, lost func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(d / 4)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			limit, release := context.WithTimeout(ctx, d/2)
			err := l.Claim(limit, run, worker, d)
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

// IsLost reports whether an error of a [Ledger] means that the worker must stop
// working on its job.
func IsLost(err error) bool {
	held := (*HeldError)(nil)
	return errors.As(err, &held) || errors.Is(err, ErrNotFound)
}
