package weaviate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"ibid/ingest"
	"ibid/retrieve"
)

// What a process left that ended in the middle of something stands in its
// journal by name. Whoever writes sweeps it up, when nothing was heard of that
// process for so long that it cannot be at work any more, and then goes on with
// what its journal counted, so that journals do not pile up.

const sweepTask = "sweep"

// sweep looks for what was left, at the first change of this process and then
// every so often. What it cannot do now is done another time.
func (e *Engine) sweep(ctx context.Context) {
	e.sweeping.mu.Lock()
	defer e.sweeping.mu.Unlock()
	if time.Since(e.sweeping.last) < e.sweeping.age {
		return
	}
	e.sweeping.last = time.Now()
	// The change that it comes before is not to fail for it.
	_ = e.sweepUp(ctx)
}

// left says whether a journal is that of a process that has ended.
func (p page) left(age time.Duration) bool { return p.Closed || time.Since(p.Beat) > age }

func (e *Engine) sweepUp(ctx context.Context) error {
	own := func(p page) bool { return p.ID == e.journal.id() }
	pages, err := e.wire.pages(ctx)
	if err != nil || !slices.ContainsFunc(pages, func(p page) bool {
		return !own(p) && p.left(e.sweeping.age) || own(p) && slices.ContainsFunc(p.Tasks, task.inDoubt)
	}) {
		return err
	}
	return e.alone(ctx, task{Name: sweepTask}, func(ctx context.Context, _ *hold) (bool, error) {
		pages, err := e.wire.pages(ctx)
		if err != nil {
			return false, err
		}
		changed := false
		for _, p := range pages {
			switch {
			case own(p):
				for _, t := range p.Tasks {
					if !t.inDoubt() {
						continue
					}
					if err := e.settle(ctx, t); err != nil {
						return changed, err
					}
					changed = true
					if err := e.journal.forget(ctx, t); err != nil {
						return changed, err
					}
				}
			case p.left(e.sweeping.age):
				for _, t := range p.Tasks {
					if err := e.settle(ctx, t); err != nil {
						return changed, err
					}
					changed = true
				}
				if err := e.journal.absorb(ctx, p); err != nil {
					return changed, err
				}
			}
		}
		return changed, nil
	})
}

// doubtAge is how long ago a process must have given something up before it is
// settled: what was on its way to the cluster has arrived.
const doubtAge = time.Minute

// inDoubt says whether the task was given up long enough ago to be settled.
func (t task) inDoubt() bool { return t.Doubt && time.Since(t.Since) > doubtAge }

// settle ends a task that was broken off: what counts stays, what does not goes.
func (e *Engine) settle(ctx context.Context, t task) error {
	switch {
	case isDocument(t):
		return e.settleDocument(ctx, t)
	case t.Name == rootsTask && t.From != "":
		return e.settleRoot(ctx, t)
	}
	return nil
}

func (e *Engine) settleDocument(ctx context.Context, t task) error {
	id := strings.TrimPrefix(t.Name, documentTask)
	renamed := false
	err := e.alone(ctx, task{Name: t.Name}, func(ctx context.Context, h *hold) (bool, error) {
		if _, err := e.readSpace(ctx); err != nil {
			return false, err
		}
		h.others = slices.DeleteFunc(h.others, func(o task) bool { return o.ID == t.ID })
		counts := ""
		d, err := e.document(ctx, id)
		if err == nil {
			counts = d.Generation
		} else if !errors.Is(err, retrieve.ErrNotFound) {
			return false, err
		}
		renamed = t.From != "" && counts == t.Generation
		return true, e.clean(ctx, h, id, counts)
	})
	if err != nil || !renamed {
		return err
	}
	return e.alone(ctx, task{Name: documentTask + t.From}, func(ctx context.Context, h *hold) (bool, error) {
		d, err := e.document(ctx, t.From)
		if errors.Is(err, retrieve.ErrNotFound) || err == nil && d.Generation != t.FromGeneration {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if err := e.erase(ctx, h, t.From); err != nil {
			return true, err
		}
		return true, e.renameInRecords(ctx, t.From, id)
	})
}

// settleRoot ends the deletion of a root that has begun: the root is gone.
func (e *Engine) settleRoot(ctx context.Context, t task) error {
	return e.alone(ctx, task{Name: rootsTask}, func(ctx context.Context, h *hold) (bool, error) {
		var root ingest.Root
		if there, err := e.wire.item(ctx, rootKind, t.From, &root); err != nil || there {
			return false, err
		}
		h.others = slices.DeleteFunc(h.others, func(o task) bool { return o.ID == t.ID })
		_, changed, err := e.deleteRoot(ctx, h, t.From)
		if errors.Is(err, retrieve.ErrNotFound) {
			err = nil
		}
		return changed, err
	})
}

// forget takes a task out of the journal.
func (j *journal) forget(ctx context.Context, t task) error {
	return j.say(ctx, func(p *page) {
		p.Tasks = slices.DeleteFunc(p.Tasks, func(o task) bool { return o.ID == t.ID })
		p.Changes++
	})
}

// absorb takes over what another journal has counted, in one step, and then
// removes that journal.
func (j *journal) absorb(ctx context.Context, other page) error {
	gone := append([]string{other.ID}, other.Absorbed...)
	err := j.say(ctx, func(p *page) {
		p.Changes += other.Changes
		if len(other.Tasks) > 0 {
			p.Changes++
		}
		p.Absorbed = append(p.Absorbed, gone...)
	})
	if err != nil {
		return err
	}
	if err := j.wire.removeItems(ctx, pageKind, gone...); err != nil {
		return err
	}
	return j.say(ctx, func(p *page) {
		p.Absorbed = slices.DeleteFunc(slices.Clone(p.Absorbed), func(id string) bool { return slices.Contains(gone, id) })
	})
}
