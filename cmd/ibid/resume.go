package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"ibid/answer"
	"ibid/retrieve"
)

// resumeConfig takes up what was interrupted.
type resumeConfig struct {
	Resume bool `help:"Go on with an interrupted run: the last one, or the one whose id is given in place of what to do."`
}

// A modelSpec is what decides on the calls of a run, as its ledger keeps it:
// who resumes the run need not say any of it again. Keys and patience are
// those of who resumes it.
type modelSpec struct {
	modelConfig // its folder of prompts is absolute
	BaseURL     string
}

func newModelSpec(c modelConfig, e endpointConfig) (modelSpec, error) {
	if c.Prompts != "" {
		var err error
		if c.Prompts, err = filepath.Abs(c.Prompts); err != nil {
			return modelSpec{}, fmt.Errorf("finding the prompts folder: %w", err)
		}
	}
	return modelSpec{c, e.BaseURL}, nil
}

// A runner is a command whose work is kept as runs.
type runner struct {
	kind   string      // "ibid ask"
	place  placeConfig // where the runs are kept
	ledger retrieve.Ledger
	surroundings
}

// resume finds the run of an id, or the last interrupted one for "".
func (r runner) resume(ctx context.Context, id string, spec any) (*answer.Run, error) {
	run, err := answer.ResumeRun(ctx, r.ledger, r.kind, id, spec)
	other := (*answer.KindError)(nil)
	switch {
	case errors.As(err, &other):
		return nil, usageError("%w", err)
	case !errors.Is(err, retrieve.ErrNotFound):
		return run, err
	case id == "":
		return nil, fmt.Errorf("there is no unfinished run of '%s' in %s: all have ended, or began more than %d days ago", r.kind, r.place, maxRunDays)
	}
	return nil, fmt.Errorf("there is no unfinished run %q in %s: it has ended, or began more than %d days ago", id, r.place, maxRunDays)
}

const maxRunDays = int(retrieve.MaxRunAge / (24 * 60 * 60 * 1e9))

// begin begins a run. Where it cannot be kept the work is done all the same.
func (r runner) begin(ctx context.Context, spec any) *answer.Run {
	run, err := answer.BeginRun(ctx, r.ledger, r.kind, spec)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(r.stderr, "ibid: if this is interrupted it cannot be resumed: %s\n", printable(err.Error()))
	}
	return run
}

// hold keeps others from the run until it is settled. The work goes on under the
// context that it gives, which ends when another one has taken the run up.
func (r runner) hold(ctx context.Context, run *answer.Run) (context.Context, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, run.Hold(ctx, cancel)
}

// settle forgets a run that has come to its end, and says how to go on with
// one that has not.
func (r runner) settle(ctx context.Context, run *answer.Run, err error) error {
	if cause := context.Cause(ctx); retrieve.IsLost(cause) {
		err = cause
	}
	lost := run.Lost(ctx)
	kept, failed := run.Settle(ctx, err)
	if kept && !lost {
		fmt.Fprintf(r.stderr, "ibid: '%s --resume %s' goes on behind the calls that have been made\n", r.kind, run.ID)
	}
	return errors.Join(err, failed)
}
