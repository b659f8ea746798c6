package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ibid/retrieve"
)

// Ledger gives the ledger that is kept in the same database.
func (e *Engine) Ledger() retrieve.Ledger { return ledger{e} }

type ledger struct{ *Engine }

// notNil keeps an empty value from being stored as NULL.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

var errTaken = errors.New("another run has its id")

func (l ledger) Begin(ctx context.Context, r retrieve.Job) error {
	err := checkClaim(r.Worker, r.Left)
	if r.Worker == "" {
		err = nil
	}
	if err == nil {
		err = l.update(ctx, func(s *session) error {
			if err := l.lock(ctx, s, runsLock); err != nil {
				return err
			}
			began, err := s.exec(ctx, `INSERT INTO ibid.runs (id, kind, started, touched, size, secret, spec) VALUES ($1, $2, $3, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
				[]byte(r.ID), []byte(r.Kind), r.Started.UnixMicro(), len(r.Spec), notNil(r.Secret), notNil(r.Spec))
			if err != nil {
				return err
			}
			if began == 0 {
				return errTaken
			}
			if r.Worker != "" {
				if err := setClaim(ctx, s, r.ID, r.Worker, r.Left); err != nil {
					return err
				}
			}
			return l.makeRoom(ctx, s, r)
		})
	}
	if err != nil {
		return fmt.Errorf("keep the run %s: %w", r.ID, err)
	}
	return nil
}

// makeRoom forgets the runs that are too old beside a new one, and those that
// are too many.
func (l ledger) makeRoom(ctx context.Context, s *session, r retrieve.Job) error {
	most := l.limits.OrDefault()
	_, err := s.exec(ctx, `DELETE FROM ibid.runs WHERE started < $1 AND id <> $2`, r.Started.Add(-retrieve.MaxRunAge).UnixMicro(), []byte(r.ID))
	if err != nil {
		return err
	}
	// From the one in which something happened last, as many as there is room for.
	_, err = s.exec(ctx, `DELETE FROM ibid.runs WHERE id IN (
		SELECT id FROM (
			SELECT id, row_number() OVER last AS n, sum(size) OVER last AS size FROM ibid.runs WHERE id <> $1
			WINDOW last AS (ORDER BY touched DESC, id DESC)) AS others
		WHERE n > $2 OR size > $3)`, []byte(r.ID), most.Runs-1, most.RunBytes-int64(len(r.Spec)))
	return err
}

// current is the time by the clock of the database, on which all servers agree,
// and left for how long a claim still holds a run.
const (
	current = `(extract(epoch FROM clock_timestamp()) * 1e6)::bigint`
	left    = `CASE WHEN worker = '' THEN 0 ELSE greatest(0, until - ` + current + `) END`
)

const runColumns = `id, kind, started, secret, spec, worker, ` + left

func scanRun(row pgx.Row) (r retrieve.Job, err error) {
	var id, kind, worker []byte
	var started, micros int64
	if err := row.Scan(&id, &kind, &started, &r.Secret, &r.Spec, &worker, &micros); err != nil {
		return retrieve.Job{}, found(err)
	}
	r.ID, r.Kind, r.Started = string(id), string(kind), time.UnixMicro(started)
	if micros > 0 {
		r.Worker, r.Left = string(worker), time.Duration(micros)*time.Microsecond
	}
	return r, nil
}

func (l ledger) Job(ctx context.Context, id string) (r retrieve.Job, err error) {
	err = l.view(ctx, func(s *session) error {
		r, err = scanRun(s.row(ctx, `SELECT `+runColumns+` FROM ibid.runs WHERE id = $1`, []byte(id)))
		return err
	})
	if err != nil {
		return r, fmt.Errorf("look for the run %q: %w", id, err)
	}
	return r, nil
}

func (l ledger) Latest(ctx context.Context, kind string) (r retrieve.Job, err error) {
	err = l.view(ctx, func(s *session) error {
		r, err = scanRun(s.row(ctx, `SELECT `+runColumns+` FROM ibid.runs WHERE kind = $1 AND `+left+` = 0 ORDER BY touched DESC, id DESC LIMIT 1`, []byte(kind)))
		return err
	})
	if err != nil {
		return r, fmt.Errorf("look for the latest run of %q: %w", kind, err)
	}
	return r, nil
}

func (l ledger) Reply(ctx context.Context, run, key string) (reply []byte, ok bool, err error) {
	err = l.view(ctx, func(s *session) error {
		reply = nil
		err := s.row(ctx, `SELECT reply FROM ibid.replies WHERE run = $1 AND key = $2`, []byte(run), []byte(key)).Scan(&reply)
		ok = err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("read a reply of the run %s: %w", run, err)
	}
	return reply, ok, nil
}

func (l ledger) Keep(ctx context.Context, run, worker, key string, reply []byte) error {
	err := l.update(ctx, func(s *session) error {
		c, err := claimOf(ctx, s, run)
		if err != nil {
			return err
		}
		// Who claimed it last may go on while nobody else has.
		if worker != c.worker && (worker != "" || c.left > 0) {
			return c.refusal(run)
		}
		_, err = s.exec(ctx, `UPDATE ibid.runs SET touched = greatest(touched, `+current+`), size = size + $2 WHERE id = $1`, []byte(run), len(reply))
		if err != nil {
			return err
		}
		_, err = s.exec(ctx, `INSERT INTO ibid.replies (run, key, reply) VALUES ($1, $2, $3) ON CONFLICT (run, key) DO UPDATE SET reply = excluded.reply`,
			[]byte(run), []byte(key), notNil(reply))
		return err
	})
	if err != nil {
		return fmt.Errorf("keep a reply of the run %s: %w", run, err)
	}
	return nil
}

func (l ledger) End(ctx context.Context, id string) error {
	err := l.update(ctx, func(s *session) error {
		_, err := s.exec(ctx, `DELETE FROM ibid.runs WHERE id = $1`, []byte(id))
		return err
	})
	if err != nil {
		return fmt.Errorf("forget the run %s: %w", id, err)
	}
	return nil
}

// forgetReplies removes the replies of all runs when a root is forgotten: what a
// model wrote of its documents is a trace of them. Runs go on, and make their
// calls again.
func (e *Engine) forgetReplies(ctx context.Context, s *session) error {
	// The runs first, as Keep has it, so that nobody waits for one who waits.
	if _, err := s.exec(ctx, `UPDATE ibid.runs SET size = octet_length(spec)`); err != nil {
		return err
	}
	_, err := s.exec(ctx, `DELETE FROM ibid.replies`)
	return err
}

// A claim is the last that was made of a run and not released. The zero value
// stands for none.
type claim struct {
	worker string
	left   time.Duration // 0 where its time has run out
}

// refusal tells somebody else who holds a run.
func (c claim) refusal(run string) error {
	if c.left <= 0 {
		return &retrieve.HeldError{Run: run}
	}
	return &retrieve.HeldError{Run: run, Worker: c.worker, Left: c.left}
}

// claimOf reads the claim of a run, which nobody else changes until the
// transaction ends.
func claimOf(ctx context.Context, s *session, run string) (c claim, err error) {
	var worker []byte
	var micros int64
	err = s.row(ctx, `SELECT worker, `+left+` FROM ibid.runs WHERE id = $1 FOR UPDATE`,
		[]byte(run)).Scan(&worker, &micros)
	c.worker, c.left = string(worker), time.Duration(micros)*time.Microsecond
	return c, found(err)
}

func checkClaim(worker string, d time.Duration) error {
	if worker == "" || d <= 0 || d > retrieve.MaxClaim {
		return fmt.Errorf("a claim of %q for %s: it needs a worker, and a time of at most %s", worker, d, retrieve.MaxClaim)
	}
	return nil
}

// setClaim has a worker hold a run for a time from now on.
func setClaim(ctx context.Context, s *session, run, worker string, d time.Duration) error {
	_, err := s.exec(ctx, `UPDATE ibid.runs SET worker = $2, until = `+current+` + $3 WHERE id = $1`,
		[]byte(run), []byte(worker), d.Microseconds())
	return err
}

func (l ledger) Claim(ctx context.Context, run, worker string, d time.Duration) error {
	err := checkClaim(worker, d)
	if err == nil {
		err = l.update(ctx, func(s *session) error {
			c, err := claimOf(ctx, s, run)
			switch {
			case err != nil:
				return err
			case c.worker != worker && c.left > 0:
				return c.refusal(run)
			}
			return setClaim(ctx, s, run, worker, d)
		})
	}
	if err != nil {
		return fmt.Errorf("claim the run %s: %w", run, err)
	}
	return nil
}

func (l ledger) Release(ctx context.Context, run, worker string) error {
	err := l.update(ctx, func(s *session) error {
		_, err := s.exec(ctx, `UPDATE ibid.runs SET worker = '', until = 0 WHERE id = $1 AND worker = $2`, []byte(run), []byte(worker))
		return err
	})
	if err != nil {
		return fmt.Errorf("release the run %s: %w", run, err)
	}
	return nil
}
