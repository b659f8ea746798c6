package weaviate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ibid/retrieve"
)

// Ledger gives the ledger that is kept in the same cluster.
func (e *Engine) Ledger() retrieve.Ledger { return ledger{e} }

type ledger struct{ *Engine }

// What is done to runs is done by one process at a time, under one name: what
// makes room for one run takes away others.
const runsTask = "runs"

const (
	runKind   = "run"
	specKind  = "spec"
	replyKind = "reply"
	runsGroup = "runs"
)

// A run is what is kept of one beside its spec, which may be long.
type run struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	Started int64  `json:"started"` // this and the others in microseconds
	Touched int64  `json:"touched"`
	Spec    int64  `json:"spec"` // bytes
	Size    int64  `json:"size"` // of the spec and all replies
	Claim   claim  `json:"claim"`
}

// A claim is the last that was made and not released; the zero value is none.
type claim struct {
	Worker string        `json:"worker,omitempty"`
	Until  int64         `json:"until,omitempty"` // by the clock of the cluster
	For    time.Duration `json:"for,omitempty"`
}

// A spec is what is secret or long of a run.
type spec struct {
	Secret []byte `json:"secret,omitempty"`
	Spec   []byte `json:"spec,omitempty"`
}

// left is for how long a claim holds a run still.
func (c claim) left(now time.Time) time.Duration {
	if c.Worker == "" {
		return 0
	}
	return max(0, min(c.For, time.UnixMicro(c.Until).Sub(now)))
}

// newClaim is a claim from now on.
func (l ledger) newClaim(ctx context.Context, worker string, d time.Duration) (claim, error) {
	if worker == "" || d <= 0 || d > retrieve.MaxClaim {
		return claim{}, fmt.Errorf("a claim of %q for %s: it needs a worker, and a time of at most %s", worker, d, retrieve.MaxClaim)
	}
	_, now, err := l.now(ctx)
	return claim{Worker: worker, Until: now.Add(d).UnixMicro(), For: d}, err
}

// together does something to the runs while no other process does.
func (l ledger) together(ctx context.Context, do func(context.Context) error) error {
	return l.exclusive(ctx, task{Name: runsTask}, func(ctx context.Context, _ *hold) (bool, error) { return false, do(ctx) })
}

func (l ledger) putRun(ctx context.Context, r run, more ...item) error {
	return l.wire.putItem(ctx, append(more, item{kind: runKind, name: r.ID, group: runsGroup, data: r})...)
}

// run reads what is kept of a run; [retrieve.ErrNotFound] if there is none.
func (l ledger) run(ctx context.Context, id string) (r run, err error) {
	there, err := l.wire.item(ctx, runKind, id, &r)
	if err == nil && !there {
		err = retrieve.ErrNotFound
	}
	return r, err
}

func (l ledger) Begin(ctx context.Context, r retrieve.Job) error {
	err := l.together(ctx, func(ctx context.Context) error {
		if _, err := l.run(ctx, r.ID); !errors.Is(err, retrieve.ErrNotFound) {
			return cmp.Or(err, errors.New("another run has its id"))
		}
		own := run{ID: r.ID, Kind: r.Kind, Started: r.Started.UnixMicro(), Touched: r.Started.UnixMicro(), Spec: int64(len(r.Spec)), Size: int64(len(r.Spec))}
		if r.Worker != "" {
			var err error
			if own.Claim, err = l.newClaim(ctx, r.Worker, r.Left); err != nil {
				return err
			}
		}
		if err := l.makeRoom(ctx, own); err != nil {
			return err
		}
		// The spec first: a run is there when its own item is.
		if err := l.wire.putItem(ctx, item{kind: specKind, name: r.ID, data: spec{r.Secret, r.Spec}}); err != nil {
			return err
		}
		return l.putRun(ctx, own)
	})
	if err != nil {
		return fmt.Errorf("keep the run %s: %w", r.ID, err)
	}
	return nil
}

// makeRoom forgets the runs that are too old when a new one begins, and what is
// too many beside it.
func (l ledger) makeRoom(ctx context.Context, beside run) error {
	runs, err := itemsOf[run](ctx, l.wire, runsGroup)
	if err != nil {
		return err
	}
	old := time.UnixMicro(beside.Started).Add(-retrieve.MaxRunAge).UnixMicro()
	count, size := len(runs), beside.Size
	for _, r := range runs {
		size += r.Size
	}
	slices.SortFunc(runs, func(a, b run) int {
		if (a.Started < old) != (b.Started < old) {
			if a.Started < old {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Touched, b.Touched), cmp.Compare(a.ID, b.ID))
	})
	for _, r := range runs {
		if r.Started >= old && count < l.limits.Runs && size <= l.limits.RunBytes {
			break
		}
		if err := l.forgetRun(ctx, r.ID); err != nil {
			return err
		}
		count--
		size -= r.Size
	}
	return nil
}

func repliesOf(run string) string { return "replies of " + run }

// forgetRun removes a run with its replies; the run itself last, so that it is
// done again where it is broken off.
func (l ledger) forgetRun(ctx context.Context, id string) error {
	if err := l.wire.remove(ctx, l.wire.at.items(), equal("group", indexed(repliesOf(id)))); err != nil {
		return err
	}
	if err := l.wire.removeItems(ctx, specKind, id); err != nil {
		return err
	}
	return l.wire.removeItems(ctx, runKind, id)
}

// whole reads a run as who asked for it sees it.
func (l ledger) whole(ctx context.Context, r run) (retrieve.Job, error) {
	var s spec
	there, err := l.wire.item(ctx, specKind, r.ID, &s)
	if err == nil && !there {
		err = retrieve.ErrNotFound
	}
	if err != nil {
		return retrieve.Job{}, err
	}
	out := retrieve.Job{ID: r.ID, Kind: r.Kind, Started: time.UnixMicro(r.Started), Secret: s.Secret, Spec: s.Spec}
	if r.Claim.Worker == "" {
		return out, nil
	}
	now, _, err := l.now(ctx)
	if left := r.Claim.left(now); left > 0 {
		out.Worker, out.Left = r.Claim.Worker, left
	}
	return out, err
}

func (l ledger) Job(ctx context.Context, id string) (retrieve.Job, error) {
	r, err := l.run(ctx, id)
	var out retrieve.Job
	if err == nil {
		out, err = l.whole(ctx, r)
	}
	if err != nil {
		return retrieve.Job{}, fmt.Errorf("look for the run %q: %w", id, err)
	}
	return out, nil
}

func (l ledger) Latest(ctx context.Context, kind string) (retrieve.Job, error) {
	out, err := l.latest(ctx, kind)
	if err != nil {
		return retrieve.Job{}, fmt.Errorf("look for the latest run of %q: %w", kind, err)
	}
	return out, nil
}

func (l ledger) latest(ctx context.Context, kind string) (retrieve.Job, error) {
	runs, err := itemsOf[run](ctx, l.wire, runsGroup)
	if err != nil {
		return retrieve.Job{}, err
	}
	runs = slices.DeleteFunc(runs, func(r run) bool { return r.Kind != kind })
	slices.SortFunc(runs, func(a, b run) int { return cmp.Or(cmp.Compare(b.Touched, a.Touched), cmp.Compare(b.ID, a.ID)) })
	for _, r := range runs {
		out, err := l.whole(ctx, r)
		if errors.Is(err, retrieve.ErrNotFound) {
			continue // it has just ended
		}
		if err != nil || out.Worker == "" {
			return out, err
		}
	}
	return retrieve.Job{}, retrieve.ErrNotFound
}

// A reply is one as it is stored.
type reply struct {
	Reply []byte `json:"reply"`
}

func replyName(run, key string) string { return run + "\x00" + key }

func (l ledger) Reply(ctx context.Context, run, key string) ([]byte, bool, error) {
	var r reply
	ok, err := l.wire.item(ctx, replyKind, replyName(run, key), &r)
	if err != nil {
		return nil, false, fmt.Errorf("read a reply of the run %s: %w", run, err)
	}
	return r.Reply, ok, nil
}

func (l ledger) Keep(ctx context.Context, id, worker, key string, kept []byte) error {
	err := l.together(ctx, func(ctx context.Context) error {
		r, err := l.run(ctx, id)
		if err != nil {
			return err
		}
		if r.Claim.Worker != worker {
			return l.held(ctx, r)
		}
		r.Touched = max(r.Touched+1, time.Now().UnixMicro())
		r.Size += int64(len(kept))
		return l.putRun(ctx, r, item{kind: replyKind, name: replyName(id, key), group: repliesOf(id), data: reply{kept}})
	})
	if err != nil {
		return fmt.Errorf("keep a reply of the run %s: %w", id, err)
	}
	return nil
}

// held says who holds a run that somebody else wanted.
func (l ledger) held(ctx context.Context, r run) error {
	now, _, err := l.now(ctx)
	if err != nil {
		return err
	}
	held := &retrieve.HeldError{Run: r.ID}
	if left := r.Claim.left(now); left > 0 {
		held.Worker, held.Left = r.Claim.Worker, left
	}
	return held
}

func (l ledger) End(ctx context.Context, id string) error {
	err := l.together(ctx, func(ctx context.Context) error { return l.forgetRun(ctx, id) })
	if err != nil {
		return fmt.Errorf("forget the run %s: %w", id, err)
	}
	return nil
}

func (l ledger) Claim(ctx context.Context, id, worker string, d time.Duration) error {
	_, err := l.newClaim(ctx, worker, d)
	if err == nil {
		err = l.together(ctx, func(ctx context.Context) error {
			r, err := l.run(ctx, id)
			if err != nil {
				return err
			}
			now, _, err := l.now(ctx)
			if err != nil {
				return err
			}
			if r.Claim.Worker != worker && r.Claim.left(now) > 0 {
				return l.held(ctx, r)
			}
			if r.Claim, err = l.newClaim(ctx, worker, d); err != nil {
				return err
			}
			return l.putRun(ctx, r)
		})
	}
	if err != nil {
		return fmt.Errorf("claim the run %s: %w", id, err)
	}
	return nil
}

func (l ledger) Release(ctx context.Context, id, worker string) error {
	err := l.together(ctx, func(ctx context.Context) error {
		r, err := l.run(ctx, id)
		if errors.Is(err, retrieve.ErrNotFound) || err == nil && r.Claim.Worker != worker {
			return nil
		}
		if err != nil {
			return err
		}
		r.Claim = claim{}
		return l.putRun(ctx, r)
	})
	if err != nil {
		return fmt.Errorf("release the run %s: %w", id, err)
	}
	return nil
}

// forgetReplies removes the replies of all runs, which are traces of documents
// that are no longer there.
func (l ledger) forgetReplies(ctx context.Context) error {
	return l.together(ctx, func(ctx context.Context) error {
		if err := l.wire.remove(ctx, l.wire.at.items(), equal("kind", replyKind)); err != nil {
			return err
		}
		runs, err := itemsOf[run](ctx, l.wire, runsGroup)
		if err != nil {
			return err
		}
		for _, r := range runs {
			if r.Size == r.Spec {
				continue
			}
			r.Size = r.Spec
			if err := l.putRun(ctx, r); err != nil {
				return err
			}
		}
		return nil
	})
}
