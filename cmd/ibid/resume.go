package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"ibid/answer/replay"
	"ibid/retrieve"
)

// A modelSpec is the part of a recorded summary that decides on its calls to
// models, so that resuming it needs none of the flags again. Keys and timeouts
// are those of the command that resumes it.
type modelSpec struct {
	modelConfig // its folder of prompts is absolute
	BaseURL     string
	Chosen      bool // on the page, so that a key in the environment is for another endpoint
}

// endpoint returns the recorded endpoint, with the timeouts and the key of the command
// that resumes the work.
func (m modelSpec) endpoint(data string, e endpointConfig) endpointConfig {
	e.BaseURL = m.BaseURL
	if m.Chosen {
		e.NoVariable, e.APIKeyFile = true, storedKey(data, m.BaseURL)
	}
	return e
}

func newModelSpec(c modelConfig, e endpointConfig) (modelSpec, error) {
	if c.Prompts != "" {
		var err error
		if c.Prompts, err = filepath.Abs(c.Prompts); err != nil {
			return modelSpec{}, fmt.Errorf("finding the prompts folder: %w", err)
		}
	}
	return modelSpec{c, e.BaseURL, e.NoVariable}, nil
}

const summaryRun = "ibid summarize"

// A recorder records a summary, so that it can be resumed.
type recorder struct {
	place  placeConfig
	ledger retrieve.Ledger
	surroundings
}

const maxRunDays = int(retrieve.MaxRunAge / (24 * 60 * 60 * 1e9))

// resume finds the record of an id, or the last interrupted one for "".
func (r recorder) resume(ctx context.Context, id string, spec any) (*replay.Recorder, error) {
	run, err := replay.Resume(ctx, r.ledger, summaryRun, id, spec)
	other := (*replay.KindError)(nil)
	switch {
	case errors.As(err, &other):
		return nil, usageError("%w", err)
	case !errors.Is(err, retrieve.ErrNotFound):
		return run, err
	case id == "":
		return nil, fmt.Errorf("there is no unfinished run of '%s' in %s: all have ended, or began more than %d days ago",
			summaryRun, r.place, maxRunDays)
	}
	return nil, fmt.Errorf("there is no unfinished run %q in %s: it has ended, or began more than %d days ago", id, r.place, maxRunDays)
}

// begin starts a record. If that fails, the command runs without one.
func (r recorder) begin(ctx context.Context, spec any) *replay.Recorder {
	run, err := replay.Begin(ctx, r.ledger, summaryRun, spec)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(r.stderr, "ibid: if this is interrupted, it cannot be resumed: %s\n", printable(err.Error()))
	}
	return run
}

// claimRun claims the run until it is finished. The context it returns ends when
// another process has taken over the run.
func (r recorder) claimRun(ctx context.Context, run *replay.Recorder) (context.Context, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, run.Hold(ctx, cancel)
}

// finishRun deletes the record of a finished run. Of an unfinished one it prints
// how to resume it.
func (r recorder) finishRun(ctx context.Context, run *replay.Recorder, err error) error {
	if cause := context.Cause(ctx); retrieve.IsLost(cause) {
		err = cause
	}
	lost := run.Lost(ctx)
	kept, failed := run.Settle(ctx, err)
	if kept && !lost {
		fmt.Fprintf(r.stderr, "ibid: '%s --resume %s' resumes after the last completed call\n", summaryRun, run.ID)
	}
	return errors.Join(err, failed)
}
