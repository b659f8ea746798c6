package web

import (
	"context"
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

	ended bool // its run cannot be resumed
	gone  bool // it is recorded, another server has it, or one of its documents was deleted
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

// waitStored waits until all answers that have ended are recorded.
func (a *Answers) waitStored(ctx context.Context) error { return a.outcomes.wait(ctx, 0) }

// storeOutcomes stores the records of answers, and deletes their runs unless they can
// be resumed, at once: other servers find one or the other at any time. Where that fails
// it stores one at a time, and deletes the run of one without a record. It stores
// nothing of an answer that another server has resumed.
func (a *answering) storeOutcomes(batch []*endedAnswer) {
	// After that time others may have claimed the runs.
	ctx, cancel := context.WithTimeout(batch[0].ctx, retrieve.ClaimTime)
	defer cancel()
	for _, o := range batch {
		o.ended = o.l.recorder.Conclude(ctx, o.err, o.l.cut)
	}
	if a.finish(ctx, batch, true) != nil {
		for i, o := range batch {
			err := a.finish(ctx, batch[i:i+1], true)
			if err != nil { // the reader has the answer
				a.logger.WarnContext(ctx, "the record of an answer could not be stored", "run", o.l.ID, "error", err)
				err = a.finish(ctx, batch[i:i+1], false)
			}
			if err != nil {
				o.ended = false
				a.logger.WarnContext(ctx, "a run could not be ended in the store: it is offered for resuming", "run", o.l.ID, "error", err)
			}
		}
	}
	for _, o := range batch {
		if !o.ended {
			if err := o.l.recorder.Release(ctx); err != nil {
				a.logger.WarnContext(ctx, "a run could not be released in the store: it can be resumed when its claim has expired",
					"run", o.l.ID, "error", err)
			}
		}
		o.l.settle(!o.ended, !o.gone && o.l.background)
	}
}

// finish deletes the runs that have ended, and stores the records of answers.
func (a *answering) finish(ctx context.Context, batch []*endedAnswer, record bool) error {
	var records []retrieve.Record
	var recorded []*endedAnswer
	var jobs []string
	for _, o := range batch {
		o.gone = o.l.recorder.Lost(ctx)
		if record && o.l.keep && o.l.ID != "" && a.keep > 0 && !o.gone {
			if r, ok := o.l.toStore(&a.live.outcomes.packer, a.keep); ok {
				records, recorded = append(records, r), append(recorded, o)
			}
		}
		if o.ended && o.l.recorder != nil {
			jobs = append(jobs, o.l.ID)
		}
	}
	if len(records)+len(jobs) == 0 {
		return nil
	}
	_, err := a.ledger.Finish(ctx, records, jobs)
	for _, o := range recorded {
		o.gone = err == nil // also where a document was deleted meanwhile
	}
	return err
}
