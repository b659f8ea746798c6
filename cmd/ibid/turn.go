package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ibid/retrieve"
)

// turnKind is what the ledger calls the reading of a folder.
const turnKind = "sync"

// lookForTurn is how often who waits looks whether the other has ended.
const lookForTurn = time.Second

// A turn is the right to sync a root, which one process at a time has among all
// that use a store: two that read a folder at once do each other no harm, but do
// all the work twice. It is held like a run, and so goes to the next one when the
// process that has it dies.
type turn struct {
	ledger      retrieve.Ledger
	job, worker string
	leaveOff    func()
}

// takeTurn waits for the turn of a root: waiting is told once, by whom it is held
// and since when. What is done in it goes on under the context that it gives,
// which ends should another process have taken the turn.
func takeTurn(ctx context.Context, l retrieve.Ledger, root string, waiting func(worker string, since time.Time)) (context.Context, *turn, error) {
	t := &turn{ledger: l, job: "sync of " + root, worker: retrieve.NewWorker()}
	for told := false; ; told = true {
		held, err := t.claim(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("taking the turn to read %s: %w", root, err)
		}
		if held == nil {
			break
		}
		if begun, err := l.Job(ctx, t.job); !told && err == nil {
			waiting(held.Worker, begun.Started)
		}
		select {
		case <-time.After(lookForTurn):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := retrieve.Prolong(ctx, l, t.job, t.worker, func(err error) {
		if held := (*retrieve.HeldError)(nil); errors.As(err, &held) {
			cancel(fmt.Errorf("another process has gone on with reading %s, since this one was held up for long: %w", root, err))
		}
	})
	t.leaveOff = func() { stop(); cancel(nil) }
	return ctx, t, nil
}

// claim tries to take the turn; held says who has it instead.
func (t *turn) claim(ctx context.Context) (held *retrieve.HeldError, err error) {
	err = t.ledger.Claim(ctx, t.job, t.worker, retrieve.ClaimTime)
	if errors.Is(err, retrieve.ErrNotFound) {
		err = t.ledger.Begin(ctx, retrieve.Job{ID: t.job, Kind: turnKind, Started: time.Now(), Worker: t.worker, Left: retrieve.ClaimTime})
		if err == nil {
			return nil, nil
		}
		// Unless somebody else has just begun it.
		if again := t.ledger.Claim(ctx, t.job, t.worker, retrieve.ClaimTime); !errors.Is(again, retrieve.ErrNotFound) {
			err = again
		}
	}
	if errors.As(err, &held) {
		return held, nil
	}
	return nil, err
}

// end gives the turn to who is next.
func (t *turn) end(ctx context.Context) error {
	t.leaveOff()
	ctx = context.WithoutCancel(ctx)
	// Not that of another process.
	if err := t.ledger.Claim(ctx, t.job, t.worker, retrieve.ClaimTime); retrieve.IsLost(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("ending a turn: %w", err)
	}
	return t.ledger.End(ctx, t.job)
}
