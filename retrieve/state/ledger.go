package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"ibid/retrieve"
)

// Ledger returns the ledger in the same database.
func (s *Store) Ledger() retrieve.Ledger { return ledger{s} }

type ledger struct{ s *Store }

const (
	specColumns  = "job, kind, started, secret, spec"
	replyColumns = "job, key, size, reply"
)

// sought turns the error of a row that is missing into [retrieve.ErrNotFound].
func sought(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return retrieve.ErrNotFound
	}
	return err
}

// makeRoom calls drop with the ids of rows, from the least in an order, until
// the rows of a table are at most so many and their sizes at most so many bytes.
// The row of the id own stays.
func (t *tx) makeRoom(table, order, own string, most int, bytes int64, drop func(id string) error) error {
	var n int
	var size int64
	if err := t.row(`SELECT count(*), coalesce(sum(size), 0) FROM ibid.`+table).Scan(&n, &size); err != nil {
		return err
	}
	for n > most || size > bytes {
		var id string
		var freed int64
		err := t.row(`SELECT id, size FROM ibid.`+table+` WHERE id <> ? ORDER BY `+order+`, id LIMIT 1`, own).Scan(&id, &freed)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = drop(id)
		}
		if err != nil {
			return err
		}
		n, size = n-1, size-freed
	}
	return nil
}

func (l ledger) Begin(ctx context.Context, j retrieve.Job) error {
	most := l.s.limits.OrDefault()
	return within(ctx, l.s.update, func(t *tx) error {
		if err := checkClaim(j.Worker, j.Left); j.Worker != "" && err != nil {
			return err
		}
		started := j.Started.UnixMicro()
		begun, err := t.exec(`INSERT INTO ibid.jobs (id, kind, started, touched, size, worker, until)
			VALUES (?, ?, ?, ?, ?, ?, ? + `+t.s.dialect.now+`) ON CONFLICT (id) DO NOTHING`,
			j.ID, j.Kind, started, started, len(j.Spec), j.Worker, j.Left.Microseconds())
		if err == nil && begun == 0 {
			err = errors.New("another run has its id")
		}
		if err != nil {
			return err
		}
		if err := t.insert("specs", specColumns, "", []any{j.ID, j.Kind, started, j.Secret, j.Spec}); err != nil {
			return err
		}
		if err := t.deleteJobs(`id <> ? AND started < ?`, j.ID, j.Started.Add(-retrieve.MaxRunAge).UnixMicro()); err != nil {
			return err
		}
		drop := func(id string) error { return t.deleteJobs(`id = ?`, id) }
		return t.makeRoom("jobs", "touched", j.ID, most.Runs, most.RunBytes, drop)
	}, "storing the run %s", j.ID)
}

// deleteJobs deletes the jobs for which a condition holds, with their replies.
func (t *tx) deleteJobs(condition string, args ...any) error {
	return t.deleteWhole("jobs", condition, args, `specs WHERE job`, `replies WHERE job`)
}

// deleteWhole deletes the rows of a table for which a condition holds, with those
// of other tables that a column assigns to them.
func (t *tx) deleteWhole(table, condition string, args []any, assigned ...string) error {
	ids, err := column[string](t, `DELETE FROM ibid.`+table+` WHERE `+condition+` RETURNING id`, args...)
	for _, id := range ids {
		for _, rows := range assigned {
			if err == nil {
				_, err = t.exec(`DELETE FROM ibid.`+rows+` = ?`, id)
			}
		}
	}
	return err
}

// forgetOld deletes the jobs and records that have expired.
func (t *tx) forgetOld() error {
	if err := t.deleteJobs(`started < ?`, time.Now().Add(-retrieve.MaxRunAge).UnixMicro()); err != nil {
		return err
	}
	return t.deleteRecords(`expires <= ?`, time.Now().UnixMicro())
}

// mendLedger makes the rows of jobs whose specs and replies were copied from
// another database.
func (t *tx) mendLedger() error {
	_, err := t.exec(`INSERT INTO ibid.jobs (id, kind, started, touched, size, worker, until)
		SELECT job, kind, started, started, length(spec) + (SELECT coalesce(sum(r.size), 0) FROM ibid.replies AS r WHERE r.job = s.job),
			?, 0
		FROM ibid.specs AS s WHERE job NOT IN (SELECT id FROM ibid.jobs)`, "")
	return err
}

func (l ledger) Job(ctx context.Context, id string) (j retrieve.Job, err error) {
	err = l.s.view(ctx, func(t *tx) error {
		j, err = t.job(id)
		return err
	})
	return j, err
}

func (t *tx) job(id string) (j retrieve.Job, err error) {
	var started int64
	row := t.row(`SELECT `+specColumns+`, sum FROM ibid.specs WHERE job = ?`, id)
	if err := sought(checked(row, &j.ID, &j.Kind, &started, &j.Secret, &j.Spec)); err != nil {
		if errors.Is(err, errRow) {
			err = fmt.Errorf("it is damaged, start it again: %w", err)
		}
		return retrieve.Job{}, err
	}
	j.Started = time.UnixMicro(started)
	j.Worker, j.Left, err = t.claim(id)
	if j.Left == 0 {
		j.Worker = ""
	}
	return j, err
}

func (l ledger) Latest(ctx context.Context, kind string) (j retrieve.Job, err error) {
	err = l.s.view(ctx, func(t *tx) error {
		ids, err := column[string](t, `SELECT id FROM ibid.jobs WHERE kind = ? ORDER BY touched DESC, id DESC`, kind)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if j, err = t.job(id); err == nil && j.Worker == "" {
				return nil
			}
			if err != nil && !errors.Is(err, errRow) {
				return err
			}
		}
		return retrieve.ErrNotFound
	})
	return j, err
}

func (l ledger) Reply(ctx context.Context, job, key string) (reply []byte, ok bool, err error) {
	err = within(ctx, l.s.view, func(t *tx) error {
		var ofJob, ofKey string
		var size int64
		row := t.row(`SELECT `+replyColumns+`, sum FROM ibid.replies WHERE job = ? AND key = ?`, job, key)
		err := checked(row, &ofJob, &ofKey, &size, &reply)
		if ok = err == nil; errors.Is(err, sql.ErrNoRows) || errors.Is(err, errRow) {
			reply, err = nil, nil
		}
		return err
	}, "reading a reply of the run %s", job)
	return reply, ok, err
}

func (l ledger) Keep(ctx context.Context, job, worker, key string, reply []byte) error {
	return within(ctx, l.s.update, func(t *tx) error {
		// First, so that the claim does not change before the commit.
		_, err := t.exec(`UPDATE ibid.jobs SET touched = `+t.s.dialect.now+`, size = size + ? WHERE id = ?`, len(reply), job)
		if err != nil {
			return err
		}
		holder, left, err := t.claim(job)
		if err != nil {
			return err
		}
		// The last holder may continue after its claim has expired.
		if worker != holder && (worker != "" || left > 0) {
			return heldError(job, holder, left)
		}
		return t.insert("replies", replyColumns,
			"ON CONFLICT (job, key) DO UPDATE SET size = excluded.size, reply = excluded.reply, sum = excluded.sum",
			[]any{job, key, len(reply), reply})
	}, "storing a reply of the run %s", job)
}

// deleteReplies deletes the replies of all jobs: they may contain words of a
// document that is deleted. The jobs stay, and make their calls again.
func (t *tx) deleteReplies() error {
	_, err := t.exec(`UPDATE ibid.jobs SET size = coalesce((SELECT length(s.spec) FROM ibid.specs AS s WHERE s.job = id), 0)`)
	if err == nil {
		_, err = t.exec(`DELETE FROM ibid.replies`)
	}
	return err
}

func (l ledger) End(ctx context.Context, id string) error {
	return l.s.update(ctx, func(t *tx) error { return t.deleteJobs(`id = ?`, id) })
}

// claim returns the worker that claimed a job last and has not released it, and
// the time until its claim expires; 0 if it has expired or the worker has died.
func (t *tx) claim(job string) (worker string, left time.Duration, err error) {
	var micros int64
	err = sought(t.row(`SELECT worker, until - `+t.s.dialect.now+` FROM ibid.jobs WHERE id = ?`, job).Scan(&worker, &micros))
	left = time.Duration(micros) * time.Microsecond
	// A longer claim is damaged, or was made before the clock was set back.
	if left < 0 || left > retrieve.MaxClaim || worker == "" || retrieve.HasDied(worker) {
		left = 0
	}
	return worker, left, err
}

func heldError(job, worker string, left time.Duration) error {
	if left == 0 {
		worker = ""
	}
	return &retrieve.HeldError{Run: job, Worker: worker, Left: left}
}

func checkClaim(worker string, d time.Duration) error {
	if worker == "" || d <= 0 || d > retrieve.MaxClaim {
		return fmt.Errorf("a claim of %q for %s: it needs a worker, and a time of at most %s", worker, d, retrieve.MaxClaim)
	}
	return nil
}

func (l ledger) Claim(ctx context.Context, job, worker string, d time.Duration) error {
	return within(ctx, l.s.update, func(t *tx) error {
		if err := checkClaim(worker, d); err != nil {
			return err
		}
		if _, err := t.exec(`UPDATE ibid.jobs SET until = until WHERE id = ?`, job); err != nil { // locks the row
			return err
		}
		holder, left, err := t.claim(job)
		if err != nil {
			return err
		}
		if holder != worker && left > 0 {
			return heldError(job, holder, left)
		}
		_, err = t.exec(`UPDATE ibid.jobs SET worker = ?, until = ? + `+t.s.dialect.now+` WHERE id = ?`, worker, d.Microseconds(), job)
		return err
	}, "claiming the run %s", job)
}

func (l ledger) Release(ctx context.Context, job, worker string) error {
	return within(ctx, l.s.update, func(t *tx) error {
		_, err := t.exec(`UPDATE ibid.jobs SET worker = ?, until = 0 WHERE id = ? AND worker = ?`, "", job, worker)
		return err
	}, "releasing the run %s", job)
}
