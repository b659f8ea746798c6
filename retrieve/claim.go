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

// Claims is the part of a [Ledger] that lets one worker at a time, among all processes that use the
// store, hold a job. A claim expires after a time measured by the ledger's clock, so the clocks of
// two machines need not agree. A worker renews its claim while it works. If it dies, the claim
// expires and another worker may resume the job.
type Claims interface {
	// Claim claims a job for a worker for the time d from now, which is positive and at most
	// [MaxClaim]. It succeeds if the job is unclaimed or was last claimed by the same worker; the
	// claim then ends d from now, even if it had expired. If another worker holds the job, Claim
	// returns a [*HeldError]. If several workers claim a free job at once, one succeeds. If there
	// is no such job, the error is [ErrNotFound].
	//
	// A claim ends when it expires, with Release, with End, or with the worker's process if
	// [HasDied] can detect that.
	Claim(ctx context.Context, run, worker string, d time.Duration) error
	// Release ends the worker's claim at once. It does nothing if the worker has
	// no claim.
	Release(ctx context.Context, run, worker string) error
}

// MaxClaim is the longest duration of a claim.
const MaxClaim = time.Minute

// A HeldError reports that a worker does not hold a job, and names the worker that does.
type HeldError struct {
	Run string
	// Worker holds the job; empty if it is unclaimed.
	Worker string
	Left   time.Duration // until the claim expires; 0 if the job is unclaimed
}

func (e *HeldError) Error() string {
	if e.Worker == "" {
		return fmt.Sprintf("the claim on run %s was lost: resume the run, or see its result", e.Run)
	}
	return fmt.Sprintf("%s is working on run %s: wait until it ends, or until its claim expires in %s",
		DescribeWorker(e.Worker), e.Run, e.Left.Round(time.Second))
}

// ClaimJob claims the job with the given id for a worker, for the time d, and begins it if it does
// not exist. If another worker holds the job, held names it.
func ClaimJob(ctx context.Context, l Ledger, id, kind, worker string, d time.Duration) (held *HeldError, err error) {
	for range 3 { // another process may begin or end the job in between
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

// HoldJob waits, until ctx ends, for the job with the given id to be free and holds it until release
// is called. If the job does not exist, HoldJob begins it, and release ends it. If another worker
// holds the job, wait, which may be nil, is called once. The returned context derives from work;
// if the claim is lost, it ends with an error for which [IsLost] is true.
func HoldJob(ctx, work context.Context, l Ledger, id, kind string, wait func(*HeldError)) (_ context.Context, release func(), err error) {
	return holdJob(ctx, work, l, id, kind, ClaimTime, wait)
}

// holdJob is HoldJob with claims for the time d.
func holdJob(ctx, work context.Context, l Ledger, id, kind string, d time.Duration, wait func(*HeldError)) (
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
		if wait != nil {
			wait(held)
			wait = nil
		}
		if err := sleep(ctx, next); err != nil {
			return nil, nil, err
		}
	}
	work, cancel := context.WithCancelCause(work)
	stop := Prolong(work, l, id, worker, d, cancel)
	return work, func() {
		stop()
		cancel(nil)
		ctx := WithWait(context.WithoutCancel(work), time.Second)
		if l.Claim(ctx, id, worker, time.Second) == nil { // otherwise another worker has it, or its claim expires
			_ = l.End(ctx, id)
		}
	}, nil
}

// NewWorker returns a unique name for a worker of this process.
func NewWorker() string {
	return host + "/" + strconv.Itoa(os.Getpid()) + "/" + thisProcess + strings.ToLower(rand.Text()[:12])
}

var (
	host, _ = os.Hostname() // without a host name, worker names are still unique
	// numbering identifies the boot and the PID namespace that the process id belongs to; empty if
	// unknown.
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
		return err == nil && !strings.HasPrefix(parts[2], thisProcess) // an earlier process had the same id
	}
	p, err := os.FindProcess(pid)
	return err == nil && errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// DescribeWorker describes a worker for messages.
func DescribeWorker(worker string) string {
	if parts := strings.Split(worker, "/"); len(parts) == 3 {
		return fmt.Sprintf("process %s of %s", parts[1], parts[0])
	}
	return worker
}

// ClaimTime is the duration of a worker's claim on a job. The worker renews it four times in that
// time, so two failed renewals do not lose it.
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
