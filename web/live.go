package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"ibid/answer"
	"ibid/answer/replay"
	"ibid/retrieve"
)

// Limits on answers under way.
const (
	// patience is how long an answer in the background that was not recorded stays in memory.
	patience = 60 * time.Second
	// maxAnswerBytes is the maximum size of the events of one answer.
	maxAnswerBytes = 8 << 20
)

// Reasons to end an answer early.
var (
	errStopped  = errors.New("it was stopped on request")
	errShutdown = errors.New("the server is shutting down")
	errPanicked = errors.New("it panicked")
)

// The states of an answer. An interrupted answer was in progress when its server died.
const (
	stateRunning     = "running"
	stateDone        = "done"
	stateFailed      = "failed"
	stateStopped     = "stopped"
	stateInterrupted = "interrupted"
)

// A liveAnswer is an answer or summary in progress. One goroutine, its owner, adds events to
// its log; any number of readers follow.
type liveAnswer struct {
	retrieve.Record                  // without an ID it cannot be followed; mu guards State and Ended
	httpID          string           // id of the HTTP request that began it
	keep            bool             // store the record at the end
	background      bool             // continue without a reader
	recorder        *replay.Recorder // nil if the answer cannot be resumed
	incomplete      bool             // used only by the owner
	stoppedByClient bool             // the client wanted no more text, so the answer is never resumed
	cancel          context.CancelCauseFunc
	answers         *Answers
	settled         chan struct{} // closed when the outcome is final

	mu        sync.Mutex // guards the fields below
	log       []event
	bytes     int
	documents map[string]bool // quoted in the events
	resumable bool
	changed   chan struct{} // nil if nobody is waiting

	// The fields below are used only by the goroutine that stores the outcome.
	ctx      context.Context // the answer's, without its cancellation
	err      error           // why it ended early, if it did
	ended    bool            // its run cannot be resumed
	lost     bool            // another server has taken it over
	recorded bool            // its record is stored, unless one of its documents was deleted
}

func (l *liveAnswer) addEvent(kind string, v any) (event, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return event{}, fmt.Errorf("encoding a %s event: %w", kind, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := event{kind: kind, data: data}
	if l.ID == "" {
		return e, nil
	}
	if l.bytes += e.size(); l.bytes > maxAnswerBytes && kind != "error" {
		return e, problem(http.StatusInsufficientStorage, "run_too_long", "the answer is too long to be stored: ask for less")
	}
	e.id = eventID(l.Started, len(l.log)+1)
	l.log = append(l.log, e)
	l.notify()
	return e, nil
}

// notify wakes the readers. l.mu is held.
func (l *liveAnswer) notify() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// nextChange returns a channel that is closed at the next change. l.mu is held.
func (l *liveAnswer) nextChange() <-chan struct{} {
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

func (l *liveAnswer) noteDocuments(e answer.Event) {
	var passages []retrieve.Passage
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := e.(type) {
	case answer.Retrieved:
		passages = e.Passages
	case answer.Unanswered:
		passages = e.Nearest
	case answer.Judged:
		l.documents[e.Document] = true
	}
	for _, p := range passages {
		l.documents[p.Document] = true
	}
}

// eventsAfter returns the events after the first n, whether more may follow, and a channel
// that is closed at the next change.
func (l *liveAnswer) eventsAfter(n int) (news []event, more bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log[n:], l.State == stateRunning, l.nextChange()
}

// markEnded records how the answer ended. If it failed, markEnded returns the error event.
func (l *liveAnswer) markEnded(ctx context.Context, err error) event {
	var last event
	state := stateDone
	if l.incomplete && ctx.Err() != nil {
		state = stateStopped // the answer so far is kept
	}
	if err != nil {
		last, _ = l.addEvent("error", problemFor(err).forClient(l.httpID)) // a Problem can always be encoded
		if state = stateFailed; ctx.Err() != nil {
			state = stateStopped
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.State, l.Ended = state, time.Now()
	l.notify()
	return last
}

func (l *liveAnswer) waitSettled(ctx context.Context) error {
	select {
	case <-l.settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// markSettled makes the outcome known to waiting callers. An answer in the background that is
// neither recorded nor on another server stays in memory for its readers for [patience].
func (l *liveAnswer) markSettled() {
	l.mu.Lock()
	l.resumable = !l.ended
	l.mu.Unlock()
	l.answers.mu.Lock()
	l.answers.unstored = slices.Delete(l.answers.unstored, 0, 1) // they are stored in order
	l.answers.mu.Unlock()
	if l.background && !l.lost && !l.recorded {
		time.AfterFunc(patience, func() { l.answers.remove(l) })
	} else {
		l.answers.remove(l)
	}
	close(l.settled)
}

func (l *liveAnswer) storedRecord(p *packer, keep time.Duration) retrieve.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.Record
	r.Expires, r.Events, r.Documents = l.Ended.Add(keep), p.pack(l.log), slices.Sorted(maps.Keys(l.documents))
	return r
}

// snapshot returns the answer so far as a record.
func (l *liveAnswer) snapshot() *answerRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := recordOf(l.Record, l.log)
	r.Resumable = l.resumable
	return r
}

// Answers are the answers in progress on one server. The zero value is ready to use.
type Answers struct {
	background sync.WaitGroup // answers in the background
	packer     packer         // used by the goroutine that stores outcomes

	mu       sync.Mutex // guards the fields below; locked before the mu of an answer
	live     map[string]*liveAnswer
	closed   bool
	unstored []*liveAnswer // have ended and are not recorded yet, oldest first
	storing  bool          // a goroutine is storing them; it ends when the list is empty
}

// Shutdown refuses new answers in the background, and waits for the ones in progress. When ctx
// is done, it stops them. It returns when all answers that have ended are recorded.
func (a *Answers) Shutdown(ctx context.Context) {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	stop := context.AfterFunc(ctx, func() {
		for _, l := range a.list() {
			if l.background {
				l.cancel(errShutdown)
			}
		}
	})
	a.background.Wait()
	stop()
	_ = a.waitStored(context.WithoutCancel(ctx), 0)
}

// add adds an answer, if it has an id. An answer in the background must call background.Done
// at its end.
func (a *Answers) add(l *liveAnswer) error {
	l.answers, l.State, l.documents, l.settled = a, stateRunning, map[string]bool{}, make(chan struct{})
	if l.ID == "" {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed && l.background {
		return problem(http.StatusServiceUnavailable, "canceled", "the server is shutting down: ask again in a moment")
	}
	if old := a.live[l.ID]; old != nil {
		select {
		case <-old.settled:
		default:
			return runUnderWay(l.ID)
		}
	}
	if a.live == nil {
		a.live = map[string]*liveAnswer{}
	}
	a.live[l.ID] = l
	if l.background {
		a.background.Add(1)
	}
	return nil
}

// get returns an answer by its id, or nil if it is not in memory.
func (a *Answers) get(id string) *liveAnswer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.live[id]
}

// list returns the answers in memory: all in progress, and some that have ended.
func (a *Answers) list() []*liveAnswer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.live))
}

func (a *Answers) remove(l *liveAnswer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.live[l.ID] == l {
		delete(a.live, l.ID)
	}
}

// A reply does not wait for the store: its outcome is queued. A new answer waits if too many
// earlier ones are not recorded.
const (
	maxUnstored = 1024 // maximum number of unrecorded answers when a new answer begins
	maxBatch    = 64   // answers in one transaction
	// storeTime is the time limit for storing a batch, which is slow on an overloaded
	// machine.
	storeTime = time.Minute
)

// storeLater queues the outcome of an answer for the store.
func (a *answering) storeLater(ctx context.Context, l *liveAnswer, err error) {
	l.ctx, l.err = context.WithoutCancel(ctx), err
	live := a.records.live
	live.mu.Lock()
	defer live.mu.Unlock()
	live.unstored = append(live.unstored, l)
	if !live.storing {
		live.storing = true
		go func() {
			for batch := live.nextBatch(); len(batch) > 0; batch = live.nextBatch() {
				a.storeOutcomes(batch)
			}
		}()
	}
}

// nextBatch returns the next answers to store. If it returns none, the calling goroutine must end.
func (a *Answers) nextBatch() []*liveAnswer {
	a.mu.Lock()
	defer a.mu.Unlock()
	batch := slices.Clone(a.unstored[:min(len(a.unstored), maxBatch)])
	a.storing = len(batch) > 0
	return batch
}

// waitStored waits until at most the given number of ended answers are unrecorded.
func (a *Answers) waitStored(ctx context.Context, most int) error {
	a.mu.Lock()
	last := len(a.unstored) - most - 1
	if last < 0 {
		a.mu.Unlock()
		return nil
	}
	l := a.unstored[last]
	a.mu.Unlock()
	return l.waitSettled(ctx)
}

// storeOutcomes stores the records of answers and deletes their runs, except runs that can be
// resumed, in one transaction, so that other servers always find one or the other. If that
// fails, it stores each answer separately; an answer that still fails can be resumed. It
// stores nothing of an answer that another server has taken over.
func (a *answering) storeOutcomes(batch []*liveAnswer) {
	ctx, cancel := context.WithTimeout(batch[0].ctx, storeTime)
	defer cancel()
	for _, l := range batch {
		l.ended = l.recorder.IsJobDone(ctx, l.err, l.stoppedByClient)
	}
	if a.finish(ctx, batch) != nil {
		for i, l := range batch {
			if err := a.finish(ctx, batch[i:i+1]); err != nil { // the reader has the answer already
				l.ended, l.recorded = l.recorder == nil, false
				a.logger.WarnContext(ctx, "the record of an answer could not be stored", "run", l.ID, "error", err)
			}
		}
	}
	for _, l := range batch {
		if !l.ended {
			if err := l.recorder.Release(ctx); err != nil {
				a.logger.WarnContext(ctx, "a run could not be released in the store; it can be resumed after its claim has expired",
					"run", l.ID, "error", err)
			}
		}
		l.recorder.StopProlonging()
		l.markSettled()
		if a.runEnded != nil && l.ID != "" && !l.lost {
			r := l.snapshot()
			a.runEnded(r.ID, r.Kind, r.State)
		}
	}
}

// finish deletes the runs that have ended, and stores the records of answers.
func (a *answering) finish(ctx context.Context, batch []*liveAnswer) error {
	var records []retrieve.Record
	var jobs []string
	for _, l := range batch {
		l.lost = l.recorder.HasLostJob(ctx)
		if l.recorded = l.keep && l.ID != "" && a.records.keep > 0 && !l.lost; l.recorded {
			records = append(records, l.storedRecord(&a.records.live.packer, a.records.keep))
		}
		if l.ended && l.recorder != nil {
			jobs = append(jobs, l.ID)
		}
	}
	if len(records)+len(jobs) == 0 {
		return nil
	}
	_, err := a.records.ledger.Finish(ctx, records, jobs)
	return err
}
