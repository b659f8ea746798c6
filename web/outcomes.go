package web

import (
	"context"
	"errors"
	"slices"
	"sync"

	"ibid/retrieve"
)

// Limits of an [outcomeQueue].
const (
	maxWaiting = 1024 // answers that wait when a new one may begin
	maxBatch   = 64   // answers in one transaction
)

// An endedAnswer is how an answer ended, until the store has it.
type endedAnswer struct {
	ctx context.Context // of the answer: only its values
	l   *liveAnswer
	err error

	lost, ended, stored bool
	deleted             bool // one of its documents
}

// An outcomeQueue has the answers that have ended and are not recorded yet. A reply
// ends when it has ended, however slow the store is; a new answer waits where
// too many have not been recorded. The zero value is ready to use.
type outcomeQueue struct {
	mu      sync.Mutex
	waiting []*endedAnswer
	writing bool          // a goroutine writes until nothing is waiting
	changed chan struct{} // closed after the next batch

	packer packer // of the goroutine that writes
}

// storeLater stores how an answer ended, without waiting for it.
func (a *answering) storeLater(ctx context.Context, l *liveAnswer, err error) {
	q := &a.live.outcomes
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, &endedAnswer{ctx: context.WithoutCancel(ctx), l: l, err: err})
	if !q.writing {
		q.writing, q.changed = true, make(chan struct{})
		go func() {
			for batch := q.next(); batch != nil; batch = q.next() {
				a.storeOutcomes(batch)
			}
		}()
	}
}

// next returns the next batch; nil ends the writing.
func (q *outcomeQueue) next() []*endedAnswer {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), maxBatch)
	batch := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	close(q.changed)
	q.changed = make(chan struct{})
	q.writing = n > 0
	if n == 0 {
		return nil
	}
	return batch
}

// wait returns when at most most answers are waiting, and none is being written if most is 0.
func (q *outcomeQueue) wait(ctx context.Context, most int) error {
	for {
		q.mu.Lock()
		done, changed := len(q.waiting) <= most && (most > 0 || !q.writing), q.changed
		q.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// waitRoom waits until the store has caught up so far that a new answer may begin.
func (a *Answers) waitRoom(ctx context.Context) error { return a.outcomes.wait(ctx, maxWaiting) }

// waitStored waits until all answers that have ended are recorded.
func (a *Answers) waitStored(ctx context.Context) error { return a.outcomes.wait(ctx, 0) }

// storeOutcomes stores the records of answers, and deletes their runs unless they can
// be resumed, at once: other servers find one or the other at any time. It stores
// nothing of an answer that another server has resumed.
func (a *answering) storeOutcomes(batch []*endedAnswer) {
	// After that time others may have claimed the runs.
	ctx, cancel := context.WithTimeout(batch[0].ctx, retrieve.ClaimTime)
	defer cancel()
	for _, o := range batch {
		o.lost = o.l.recorder.Lost(ctx)
		o.ended = o.l.recorder.Conclude(ctx, o.err, o.l.cut)
	}
	a.finish(batch[0].ctx, batch)
	for _, o := range batch {
		if !o.ended {
			if err := o.l.recorder.Release(ctx); err != nil {
				a.logger.WarnContext(ctx, "a run could not be released in the store: it can be resumed when its claim has expired",
					"run", o.l.ID, "error", err)
			}
		}
		a.settle(o)
	}
}

// finish stores the records of answers and deletes the runs that have ended. Where
// that fails it stores one at a time, and deletes the run of one without a record.
func (a *answering) finish(ctx context.Context, batch []*endedAnswer) {
	limited, cancel := context.WithTimeout(ctx, retrieve.ClaimTime)
	defer cancel()
	var records []retrieve.Record
	var recorded []*endedAnswer
	var jobs []string
	for _, o := range batch {
		if o.l.keep && o.l.ID != "" && a.ledger != nil && a.keep > 0 && !o.lost {
			if r, ok := o.l.toStore(&a.live.outcomes.packer, a.keep); ok {
				records, recorded = append(records, r), append(recorded, o)
			}
		}
		if o.ended && o.l.recorder != nil {
			jobs = append(jobs, o.l.ID)
		}
	}
	if len(records)+len(jobs) == 0 {
		return
	}
	stored, err := a.ledger.Finish(limited, records, jobs)
	switch {
	case err == nil:
		for i, o := range recorded {
			o.stored, o.deleted = stored[i], !stored[i]
		}
	case len(batch) > 1:
		if errors.Is(err, retrieve.ErrUnavailable) {
			ctx = limited // each would take as long
		}
		for i, o := range batch {
			o.lost = o.l.recorder.Lost(ctx)
			a.finish(ctx, batch[i:i+1])
		}
	default: // the reader has the answer
		a.logger.WarnContext(ctx, "the record of an answer could not be stored", "run", batch[0].l.ID, "error", err)
		if len(jobs) == 0 {
			return
		}
		if _, err := a.ledger.Finish(ctx, nil, jobs); err != nil {
			batch[0].ended = false
			a.logger.WarnContext(ctx, "a run could not be ended in the store: it is offered for resuming", "run", batch[0].l.ID, "error", err)
		}
	}
}

// settle makes the outcome of an answer known to those who wait for it.
func (a *answering) settle(o *endedAnswer) {
	inMemory := !o.stored && !o.deleted && !o.lost && o.l.background
	o.l.mu.Lock()
	o.l.resumable, o.l.settled = !o.ended, true
	o.l.notify()
	if inMemory {
		o.l.startIdle()
	}
	o.l.mu.Unlock()
	if !inMemory {
		a.live.remove(o.l)
	}
}
