package weaviate

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A clock knows the time of the cluster, by when its objects say that they were
// stored. It is read by storing this process's journal.
type clock struct {
	mu       sync.Mutex
	least    time.Duration // how far at least it is before this process's own
	most     time.Duration // how far at most
	measured time.Time
}

// clockAge is for how long what was measured is good.
const clockAge = time.Minute

// read gives the time of the cluster: it is no earlier and no later than these.
func (e *Engine) now(ctx context.Context) (earliest, latest time.Time, err error) {
	c := &e.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.measured.IsZero() || time.Since(c.measured) > clockAge {
		if err := e.measure(ctx); err != nil && c.measured.IsZero() {
			return earliest, latest, err
		}
	}
	own := time.Now()
	return own.Add(c.least), own.Add(c.most), nil
}

func (e *Engine) measure(ctx context.Context) error {
	if err := e.journal.start(ctx); err != nil {
		return err
	}
	before := time.Now()
	if err := e.journal.say(ctx, func(*page) {}); err != nil {
		return err
	}
	after := time.Now()
	q := query(e.wire.at.items(), byID(idOf(pageKind, e.journal.id())), 1)
	q.Metadata.LastUpdateTimeUnix = true
	var stored int64
	err := e.wire.try(ctx, func(ctx context.Context) error {
		reply, err := e.wire.rpc.Search(ctx, q)
		if err == nil && len(reply.Results) == 0 {
			err = errors.New("this process's journal is not there")
		}
		if err == nil {
			stored = reply.Results[0].Metadata.LastUpdateTimeUnix
		}
		return err
	})
	if err != nil {
		return err
	}
	there := time.UnixMilli(stored) // without what is less than a millisecond
	e.clock.least, e.clock.most = there.Sub(after), there.Add(time.Millisecond).Sub(before)
	e.clock.measured = after
	return nil
}
