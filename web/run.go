package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ibid/answer"
	"ibid/answer/replay"
	"ibid/cite"
	"ibid/retrieve"
)

// How long a run in the background goes on, and what a run may hold.
const (
	// patience is how long it goes on without a reader, and how long what came
	// of it stays in memory where it is not kept as a record.
	patience = 60 * time.Second
	// maxRunBytes is the most that the events of one run may have together,
	// maxLiveBytes those of all that are under way.
	maxRunBytes  = 32 << 20
	maxLiveBytes = 256 << 20
)

// What ends a run before its end.
var (
	errStopped   = errors.New("somebody stopped it")
	errAbandoned = fmt.Errorf("nobody read it for %d seconds", int(patience.Seconds()))
	errShutdown  = errors.New("the server shuts down")
	errPanicked  = errors.New("it panicked")
)

// An event is one event as it goes out.
type event struct {
	id   string // empty where there is nothing to come back to
	kind string
	data []byte // one line of JSON
}

// append writes the event as a server-sent event.
func (f event) append(b []byte) []byte {
	if f.id != "" {
		b = fmt.Appendf(b, "id: %s\n", f.id)
	}
	return fmt.Appendf(b, "event: %s\ndata: %s\n\n", f.kind, f.data)
}

// parseEvents reads what append wrote.
func parseEvents(b []byte) ([]event, error) {
	var events []event
	for len(b) > 0 {
		one, rest, whole := bytes.Cut(b, []byte("\n\n"))
		var f event
		for line := range bytes.Lines(one) {
			name, value, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(": "))
			switch string(name) {
			case "id":
				f.id = string(value)
			case "event":
				f.kind = string(value)
			case "data":
				f.data = value
			}
		}
		if !whole || f.kind == "" || f.data == nil {
			return nil, fmt.Errorf("event %d of a record is torn", len(events)+1)
		}
		events = append(events, f)
		b = rest
	}
	return events, nil
}

// A liveRun is a run under way: its owner, one goroutine, adds events at the
// end, and any number of readers follow by their place in the log.
type liveRun struct {
	id      string // empty for one that nobody can come back to
	kind    string // as the ledger has it
	by      string // who began it
	request json.RawMessage
	asked   string // id of the HTTP request that began it
	started time.Time
	record  bool // to be kept when it has ended
	// background is set where it goes on without readers, for a while.
	background bool
	run        *replay.Recorder // nil for one that cannot be taken up again
	cut        bool             // the answer that it came to is not whole; its goroutine's own
	cancel     context.CancelCauseFunc
	all        *Runs

	mu        sync.Mutex // guards what follows
	log       []event
	bytes     int
	overflown bool // the log was given up
	documents map[string]bool
	state     string
	ended     time.Time
	resumable bool
	settled   bool          // nothing more will come of it
	grew      chan struct{} // closed when the log or the state changes
	readers   int
	idle      *time.Timer
}

// The states of a run. An interrupted one was under way when its server ended.
const (
	stateRunning     = "running"
	stateDone        = "done"
	stateFailed      = "failed"
	stateStopped     = "stopped"
	stateInterrupted = "interrupted"
)

// eventID names the nth event, 1-based, of the attempt that began at a time: a
// run that is taken up again begins a log of its own.
func eventID(started time.Time, n int) string {
	return strconv.FormatInt(started.UnixMilli(), 36) + "-" + strconv.Itoa(n)
}

// followed gives how many events of a log a reader has, by the id of the last
// one it had: 0 for an id that is none of them.
func followed(log []event, last string) int {
	for i := len(log); last != "" && i > 0; i-- {
		if log[i-1].id == last {
			return i
		}
	}
	return 0
}

// add puts an event at the end of the log.
func (l *liveRun) add(kind string, v any) (event, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return event{}, fmt.Errorf("encoding a %s event: %w", kind, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f := event{kind: kind, data: data}
	if l.id == "" || l.overflown {
		return f, nil
	}
	size := len(kind) + len(data)
	if l.bytes+size > maxRunBytes || !l.all.grow(size) {
		l.all.grow(-l.bytes)
		l.overflown, l.log, l.bytes = true, nil, 0
		l.wake()
		if l.background {
			return f, &Problem{Status: http.StatusInsufficientStorage, Code: "run_too_long",
				Detail: "more came of it than is kept for a reader: ask for less, or read the answer of POST /api/ask as it comes"}
		}
		return f, nil
	}
	l.bytes += size
	f.id = eventID(l.started, len(l.log)+1)
	l.log = append(l.log, f)
	l.wake()
	return f, nil
}

// wake tells the readers. The lock is held.
func (l *liveRun) wake() {
	close(l.grew)
	l.grew = make(chan struct{})
}

// shows notes the documents whose words are in an event.
func (l *liveRun) shows(e answer.Event) {
	var passages []retrieve.Passage
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := e.(type) {
	case answer.Retrieved:
		passages = e.Passages
	case answer.Kept:
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

// since gives the events after the first n, whether others will follow, and
// what is closed when there are.
func (l *liveRun) since(n int) (news []event, more bool, grew <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.overflown {
		return nil, false, nil, &Problem{Status: http.StatusInsufficientStorage, Code: "run_too_long",
			Detail: "more came of this run than is kept for a reader: who asked has it"}
	}
	return l.log[n:], l.state == stateRunning, l.grew, nil
}

// enter counts a reader in; leave counts it out.
func (l *liveRun) enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers++
	if l.idle != nil {
		l.idle.Stop()
	}
}

func (l *liveRun) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers--
	l.wait()
}

// wait has a run without readers stopped, or one that has ended and is kept
// nowhere forgotten, after a while. The lock is held.
func (l *liveRun) wait() {
	switch {
	case l.readers > 0 || l.id == "":
	case l.state == stateRunning && l.background:
		l.idle = time.AfterFunc(patience, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.readers == 0 {
				l.cancel(errAbandoned)
			}
		})
	case l.settled:
		l.idle = time.AfterFunc(patience, func() { l.all.remove(l) })
	}
}

// end notes how the run ended, and gives the event that says so if it failed:
// readers have it all then.
func (l *liveRun) end(ctx context.Context, err error) event {
	var last event
	state := stateDone
	if l.cut && ctx.Err() != nil {
		state = stateStopped // and its answer is what it had come to
	}
	if err != nil {
		// A problem can be encoded, and a log without room for it has been given up.
		last, _ = l.add("error", told(problemFor(err), l.asked))
		if state = stateFailed; ctx.Err() != nil {
			state = stateStopped
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.ended = state, time.Now()
	l.wake()
	return last
}

// wind waits until nothing more comes of the run.
func (l *liveRun) wind(ctx context.Context) error {
	for {
		l.mu.Lock()
		settled, grew := l.settled, l.grew
		l.mu.Unlock()
		if settled {
			return nil
		}
		select {
		case <-grew:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// recorded is the run as a record; ok is false when its log was given up.
func (l *liveRun) recorded(age time.Duration) (r retrieve.Record, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.overflown {
		return r, false
	}
	var events []byte
	for _, f := range l.log {
		events = f.append(events)
	}
	return retrieve.Record{ID: l.id, Kind: l.kind, By: l.by, State: l.state, Started: l.started, Ended: l.ended, Expires: l.ended.Add(age),
		Spec: l.request, Events: packed(events), Documents: slices.Sorted(maps.Keys(l.documents))}, true
}

// Runs are the answers under way in one server, for who follows them and for
// who shuts the server down. A new one is ready; it belongs to one server.
type Runs struct {
	bytes atomic.Int64   // of all events
	work  sync.WaitGroup // those in the background

	mu     sync.Mutex // guards what follows; taken before that of a run
	live   map[string]*liveRun
	closed bool
	// readers are those that follow a run under way, by caller.
	readers map[string]int
}

// Shutdown begins no more runs in the background, and waits for those under way.
// When ctx is done it stops them, and waits until that is written down.
func (r *Runs) Shutdown(ctx context.Context) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		r.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	r.mu.Lock()
	for _, l := range r.live {
		if l.background {
			l.cancel(errShutdown)
		}
	}
	r.mu.Unlock()
	<-ended
}

// follow counts a reader in, of at most so many for one caller and twice as
// many for all; false for one that is too many. unfollow counts it out.
func (r *Runs) follow(by string, most int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := 0
	for _, n := range r.readers {
		all += n
	}
	if r.readers[by] >= most || all >= 2*most {
		return false
	}
	if r.readers == nil {
		r.readers = map[string]int{}
	}
	r.readers[by]++
	return true
}

func (r *Runs) unfollow(by string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.readers[by]--; r.readers[by] == 0 {
		delete(r.readers, by)
	}
}

// grow makes room for events in memory; false where there is none.
func (r *Runs) grow(bytes int) bool {
	if r.bytes.Add(int64(bytes)) > maxLiveBytes && bytes > 0 {
		r.bytes.Add(int64(-bytes))
		return false
	}
	return true
}

// add enters a run that has an id. A background one has to call work.Done.
func (r *Runs) add(l *liveRun) error {
	l.all, l.state, l.grew, l.documents = r, stateRunning, make(chan struct{}), map[string]bool{}
	if l.id == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed && l.background {
		return &Problem{Status: http.StatusServiceUnavailable, Code: "canceled", Detail: "the server shuts down: ask again in a moment"}
	}
	if old := r.live[l.id]; old != nil {
		old.mu.Lock()
		running := !old.settled
		old.mu.Unlock()
		if running {
			return runUnderWay(l.id)
		}
		r.drop(old)
	}
	if r.live == nil {
		r.live = map[string]*liveRun{}
	}
	r.live[l.id] = l
	if l.background {
		r.work.Add(1)
		l.mu.Lock()
		l.wait()
		l.mu.Unlock()
	}
	return nil
}

func runUnderWay(id string) *Problem {
	return &Problem{Status: http.StatusConflict, Code: "run_running", Field: "run",
		Detail: fmt.Sprintf("the run %s is under way: GET /api/runs/%s follows it", id, id)}
}

// forget takes out a run that has ended, whether anything was kept of it or not.
func (r *Runs) forget(id string) {
	if l := r.get(id); l != nil {
		r.remove(l)
	}
}

func (r *Runs) get(id string) *liveRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live[id]
}

// remove forgets a run: what came of it is in the ledger, or lost.
func (r *Runs) remove(l *liveRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live[l.id] == l {
		r.drop(l)
	}
}

// drop takes a run out. The lock is held.
func (r *Runs) drop(l *liveRun) {
	delete(r.live, l.id)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle != nil {
		l.idle.Stop()
	}
	r.grow(-l.bytes)
	l.bytes = 0
}

// work reads a run's events to their end. Each goes into the log, and then to
// send where there is one; "done" is the last.
func (s *server) work(l *liveRun, events iter.Seq2[answer.Event, error], send func(event) error) (answered, error) {
	pass := func(kind string, v any) error {
		if l.id == "" && send == nil {
			return nil
		}
		f, err := l.add(kind, v)
		if err == nil && send != nil {
			err = send(f)
		}
		return err
	}
	a, err := cite.Collect(passed(events, func(e answer.Event) error {
		l.shows(e)
		if !onTheWire(e) {
			return nil
		}
		return pass(e.Kind(), e)
	}))
	whole := answered{a, s.indexing()}
	l.cut = a.Incomplete
	if err == nil {
		err = pass("done", whole)
	}
	return whole, err
}

// passed passes the events on once each has been dealt with. One that cannot be
// ends the stream, and with it the work upstream.
func passed(events iter.Seq2[answer.Event, error], each func(answer.Event) error) iter.Seq2[answer.Event, error] {
	return func(yield func(answer.Event, error) bool) {
		for e, err := range events {
			if err == nil {
				err = each(e)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// ending is the error that ended a run, as what was meant by it.
func (s *server) ending(ctx context.Context, l *liveRun, err error) error {
	cause := context.Cause(ctx)
	if err == nil {
		return nil
	}
	if held := (*retrieve.HeldError)(nil); errors.As(cause, &held) {
		return &Problem{Status: http.StatusConflict, Code: "run_taken", cause: errors.Join(cause, err),
			Detail: fmt.Sprintf("another server has taken the answer up: GET /api/runs/%s follows it", l.id)}
	}
	if !errors.Is(cause, errStopped) && !errors.Is(cause, errAbandoned) {
		if ended := endedBy(ctx, err); ended != nil {
			ended.cause = err
			return ended
		}
		return err
	}
	p := &Problem{Status: http.StatusConflict, Code: "run_stopped", cause: err,
		Detail: fmt.Sprintf(`the answer was stopped before its end, since %v: POST /api/runs with {"run": %q} goes on with it`, cause, l.id)}
	if l.run == nil {
		p.Detail = fmt.Sprintf("the answer was stopped before its end, since %v: ask again", cause)
	}
	return p
}

// settle writes down what came of a run: its record, and what can be taken up
// again. While one of them is not yet there the other is: a server that looks on
// finds the run. Of one that another server has taken up nothing is written.
func (s *server) settle(ctx context.Context, l *liveRun, err error) error {
	// After that time others may have the run.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), retrieve.ClaimTime)
	defer cancel()
	lost := l.run.Lost(ctx)
	recorded := false
	if l.record && l.id != "" && s.Ledger != nil && s.KeepAnswers > 0 && !lost {
		if r, ok := l.recorded(s.KeepAnswers); ok {
			err := s.Ledger.KeepRecord(ctx, r)
			if recorded = err == nil; !recorded && !errors.Is(err, retrieve.ErrNotFound) {
				s.Logger.WarnContext(ctx, "an answer cannot be shown again", "run", l.id, "error", err)
			}
		}
	}
	kept, failed := l.run.Settle(ctx, err)
	l.mu.Lock()
	l.resumable, l.settled = kept, true
	l.wake()
	if !recorded && !lost && l.background {
		l.wait()
	}
	l.mu.Unlock()
	if recorded || lost || !l.background {
		l.all.remove(l)
	}
	return failed
}

// questionOf is the question of a request, as a run keeps it; empty for a summary.
func questionOf(request []byte) string {
	var r struct {
		Question string `json:"question"`
	}
	if json.Unmarshal(request, &r) != nil {
		return ""
	}
	return strings.TrimSpace(r.Question)
}

// packed makes the events of a record small; unpacked gives them back.
func packed(events []byte) []byte {
	var b bytes.Buffer
	// None of these fails on a buffer.
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	_, _ = w.Write(events)
	_ = w.Close()
	return b.Bytes()
}

func unpacked(b []byte) ([]event, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("unpacking a record: %w", err)
	}
	events, err := io.ReadAll(io.LimitReader(r, 2*maxRunBytes))
	if err != nil {
		return nil, fmt.Errorf("unpacking a record: %w", err)
	}
	return parseEvents(events)
}
