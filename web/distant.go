package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"ibid/retrieve"
)

// Several servers may share one store. What happens in a run in the background
// is in the memory of the server that works on it; what happened in the seconds
// before the last is in the ledger too, among the run's replies, so that it can be
// followed through any of them.

// tellEvery is how often the events of a run go into the ledger; a run that takes
// no longer never writes any.
const tellEvery = time.Second

// toldKey is where the nth batch of the events stands that a worker wrote.
func toldKey(worker string, n int) string { return "events " + worker + " " + strconv.Itoa(n) }

// tell writes the events of a run into the ledger as they come, until it is told
// to leave off: the rest is in the record then.
func (s *server) tell(ctx context.Context, l *liveRun) (leaveOff func()) {
	if l.run == nil || !l.record || s.KeepAnswers == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(tellEvery)
		defer tick.Stop()
		warned := false
		for told, batch := 0, 0; ; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			news, more, _, err := l.since(told)
			if err != nil || !more {
				return
			}
			if len(news) == 0 {
				continue
			}
			var events []byte
			for _, f := range news {
				events = f.append(events)
			}
			err = l.run.Journal.Keep(ctx, l.id, toldKey(l.run.Worker(), batch), packed(events))
			switch {
			case err == nil:
				told, batch = told+len(news), batch+1
			case retrieve.IsLost(err):
				return
			case !warned && ctx.Err() == nil:
				s.Logger.WarnContext(ctx, "an answer cannot be followed through other servers", "run", l.id, "error", err)
				warned = true
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// A distantRun is a run that another server works on, as far as the ledger tells of it.
type distantRun struct {
	*server
	ctx        context.Context // of who reads
	id, worker string
	log        []event
	batches    int
	over       bool // nobody works on it any longer
}

// The readers of a run at other servers are told to the one that works on it by a
// claim of their own, which they all share: who has it prolongs it.
const (
	readersKind  = "readers"
	readersClaim = retrieve.MaxClaim
	readersEvery = readersClaim / 4
)

func readersOf(id string) string { return "readers of " + id }

// attend tells the server that works on the run, while somebody reads it here,
// that it is read. Trouble costs nothing before that server's patience ends.
func (d *distantRun) attend() (leave func()) {
	ctx, cancel := context.WithCancel(d.ctx)
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(readersEvery)
		defer tick.Stop()
		for {
			err := d.Ledger.Claim(ctx, readersOf(d.id), readersKind, readersClaim)
			if errors.Is(err, retrieve.ErrNotFound) {
				err = d.Ledger.Begin(ctx, retrieve.Job{ID: readersOf(d.id), Kind: readersKind, Started: time.Now(), Worker: readersKind, Left: readersClaim})
			}
			if err != nil && ctx.Err() == nil {
				d.Logger.DebugContext(ctx, "the server that works on a run does not know of a reader here", "run", d.id, "error", err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
		if d.over {
			if err := d.Ledger.End(context.WithoutCancel(d.ctx), readersOf(d.id)); err != nil {
				d.Logger.DebugContext(d.ctx, "a run that has ended is not forgotten", "run", readersOf(d.id), "error", err)
			}
		}
	}
}

// readElsewhere says whether a run is read through other servers.
func (s *server) readElsewhere(id string) bool {
	if s.Ledger == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), ending)
	defer cancel()
	r, err := s.Ledger.Job(ctx, readersOf(id))
	return err == nil && r.Worker != ""
}

// since gives the events after the first n as since of a [liveRun] does. Where
// more is false without a last event there is no more to be had here of the
// attempt that the reader followed.
func (d *distantRun) since(n int) (news []event, more bool, grew <-chan struct{}, err error) {
	if err := d.read(); err != nil {
		return nil, false, nil, err
	}
	if n < len(d.log) {
		return d.log[n:], true, closed(), nil
	}
	run, err := d.Ledger.Job(d.ctx, d.id)
	switch {
	case err == nil && run.Worker == d.worker:
		later := make(chan struct{})
		time.AfterFunc(lookAgain, func() { close(later) })
		return nil, true, later, nil
	case err == nil && run.Worker != "":
		return nil, false, nil, nil // another worker has taken it up: who reads comes back
	case err != nil && !errors.Is(err, retrieve.ErrNotFound):
		return nil, false, nil, fmt.Errorf("looking for a run: %w", err)
	}
	// It has ended: the rest is in its record.
	d.over = true
	record, failed := d.Ledger.Record(d.ctx, d.id)
	if failed == nil {
		log, err := unpacked(record.Events)
		if err != nil {
			return nil, false, nil, err
		}
		if len(log) >= n && (n == 0 || n <= len(d.log) && log[n-1].id == d.log[n-1].id) {
			d.log = log
			return log[n:], false, nil, nil
		}
	} else if !errors.Is(failed, retrieve.ErrNotFound) {
		return nil, false, nil, fmt.Errorf("looking for a record: %w", failed)
	}
	if err == nil {
		return nil, false, nil, interrupted(d.id)
	}
	return nil, false, nil, runNotFound(d.id)
}

// read reads what the worker has written since.
func (d *distantRun) read() error {
	for {
		b, ok, err := d.Ledger.Reply(d.ctx, d.id, toldKey(d.worker, d.batches))
		if err != nil {
			return fmt.Errorf("reading the events of a run: %w", err)
		}
		if !ok {
			return nil
		}
		events, err := unpacked(b)
		if err != nil {
			return err
		}
		d.log, d.batches = append(d.log, events...), d.batches+1
	}
}

// catchUp waits until the ledger has the event that the reader had last, through
// the server that works on the run: it is up to a second behind.
func (d *distantRun) catchUp(last string) error {
	attempt, number, _ := strings.Cut(last, "-")
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil // it is no event of a run
	}
	for {
		_, more, later, err := d.since(len(d.log))
		if err != nil || !more || len(d.log) >= n || len(d.log) > 0 && !strings.HasPrefix(d.log[0].id, attempt+"-") {
			return err
		}
		select {
		case <-later:
		case <-d.ctx.Done():
			return fmt.Errorf("following a run: %w", context.Cause(d.ctx))
		}
	}
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// interrupted is about a run that nobody works on.
func interrupted(id string) *Problem {
	return &Problem{Status: http.StatusConflict, Code: "run_interrupted",
		Detail: fmt.Sprintf(`the run was under way when its server stopped: POST /api/runs with {"run": %q} goes on with it`, id)}
}

// stopDistant asks the server that works on a run to stop it, and waits until it
// has, or its claim has run out because it died.
func (s *server) stopDistant(ctx context.Context, id, worker string) error {
	if err := s.Ledger.Stop(ctx, id); err != nil && !errors.Is(err, retrieve.ErrNotFound) {
		return fmt.Errorf("stopping a run of another server: %w", err)
	}
	for {
		run, err := s.Ledger.Job(ctx, id)
		if errors.Is(err, retrieve.ErrNotFound) || err == nil && run.Worker != worker {
			return nil
		}
		if err != nil {
			return fmt.Errorf("stopping a run of another server: %w", err)
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return fmt.Errorf("stopping a run of another server: %w", context.Cause(ctx))
		}
	}
}
