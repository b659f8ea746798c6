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

// limits are the largest numbers and total sizes of the entries that the ledger keeps.
type limits struct {
	runs, records, feedback int
	runBytes, recordBytes   int64
}

var allLimits = limits{retrieve.MaxRuns, retrieve.MaxRecords, retrieve.MaxFeedback, retrieve.MaxRunBytes, retrieve.MaxRecordBytes}

const (
	specColumns  = "job, kind, started, secret, spec"
	replyColumns = "job, key, size, reply"
)

// notFoundError replaces the error of a missing row by [retrieve.ErrNotFound].
func notFoundError(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return retrieve.ErrNotFound
	}
	return err
}

// makeRoom calls drop with the ids of a table's rows, in the given order, until the table has at
// most the given numbers of rows and bytes. It never drops the row with the id own.
func (t *tx) makeRoom(table, order, own string, most int, bytes int64, drop func(id string)) {
	var n int
	var size int64
	check(t.row(`SELECT count(*), coalesce(sum(size), 0) FROM ibid.`+table).Scan(&n, &size))
	for n > most || size > bytes {
		var id string
		var freed int64
		err := t.row(`SELECT id, size FROM ibid.`+table+` WHERE id <> ? ORDER BY `+order+`, id LIMIT 1`, own).Scan(&id, &freed)
		if errors.Is(err, sql.ErrNoRows) {
			return
		}
		check(err)
		drop(id)
		n, size = n-1, size-freed
	}
}

func (l ledger) Begin(ctx context.Context, j retrieve.Job) error {
	return inTransaction(ctx, l.s.update, func(t *tx) {
		if j.Worker != "" {
			checkClaim(j.Worker, j.Left)
		}
		started := j.Started.UnixMicro()
		begun := t.exec(`INSERT INTO ibid.jobs (id, kind, started, touched, size, worker, until)
			VALUES (?, ?, ?, ?, ?, ?, ? + `+t.s.dialect.now+`) ON CONFLICT (id) DO NOTHING`,
			j.ID, j.Kind, started, started, len(j.Spec), j.Worker, j.Left.Microseconds())
		if begun == 0 {
			check(errors.New("another run has its id"))
		}
		t.insert("specs", specColumns, "", []any{j.ID, j.Kind, started, j.Secret, j.Spec})
		t.deleteJobs(`id <> ? AND started < ?`, j.ID, j.Started.Add(-retrieve.MaxRunAge).UnixMicro())
		t.makeRoom("jobs", "touched", j.ID, t.s.limits.runs, t.s.limits.runBytes, func(id string) { t.deleteJobs(`id = ?`, id) })
	}, "storing the run %s", j.ID)
}

// deleteJobs deletes the jobs that satisfy a condition, with their replies.
func (t *tx) deleteJobs(condition string, args ...any) {
	t.deleteWhole("jobs", condition, args, `specs WHERE job`, `replies WHERE job`)
}

// deleteWhole deletes the rows of a table that satisfy a condition, and the rows of other tables
// that belong to them.
func (t *tx) deleteWhole(table, condition string, args []any, assigned ...string) {
	for _, id := range column[string](t, `DELETE FROM ibid.`+table+` WHERE `+condition+` RETURNING id`, args...) {
		for _, rows := range assigned {
			t.exec(`DELETE FROM ibid.`+rows+` = ?`, id)
		}
	}
}

// forgetOld deletes the jobs and records that have expired.
func (t *tx) forgetOld() {
	t.deleteJobs(`started < ?`, time.Now().Add(-retrieve.MaxRunAge).UnixMicro())
	t.deleteRecords(`expires <= ?`, time.Now().UnixMicro())
}

// mendLedger creates the rows of jobs whose specs and replies were copied from another database.
func (t *tx) mendLedger() {
	t.exec(`INSERT INTO ibid.jobs (id, kind, started, touched, size, worker, until)
		SELECT job, kind, started, started, length(spec) + (SELECT coalesce(sum(r.size), 0) FROM ibid.replies AS r WHERE r.job = s.job),
			?, 0
		FROM ibid.specs AS s WHERE job NOT IN (SELECT id FROM ibid.jobs)`, "")
}

func (l ledger) Job(ctx context.Context, id string) (j retrieve.Job, err error) {
	err = l.s.view(ctx, func(t *tx) {
		var started int64
		row := t.row(`SELECT `+specColumns+`, sum FROM ibid.specs WHERE job = ?`, id)
		err := notFoundError(scanChecked(row, &j.ID, &j.Kind, &started, &j.Secret, &j.Spec))
		if errors.Is(err, errRow) {
			err = fmt.Errorf("it is damaged: start it again: %w", err)
		}
		check(err)
		j.Started = time.UnixMicro(started)
		if j.Worker, j.Left = t.claim(id); j.Left == 0 {
			j.Worker = ""
		}
	})
	if err != nil {
		return retrieve.Job{}, err
	}
	return j, nil
}

func (l ledger) Reply(ctx context.Context, job, key string) (reply []byte, ok bool, err error) {
	err = inTransaction(ctx, l.s.view, func(t *tx) {
		var ofJob, ofKey string
		var size int64
		row := t.row(`SELECT `+replyColumns+`, sum FROM ibid.replies WHERE job = ? AND key = ?`, job, key)
		if ok = scanChecked(row, &ofJob, &ofKey, &size, &reply) == nil; !ok {
			reply = nil
		}
	}, "reading a reply of the run %s", job)
	return reply, ok, err
}

func (l ledger) KeepReply(ctx context.Context, job, worker, key string, reply []byte) error {
	return inTransaction(ctx, l.s.update, func(t *tx) {
		// This locks the row, so that the claim does not change before the commit.
		t.exec(`UPDATE ibid.jobs SET touched = `+t.s.dialect.now+`, size = size + ? WHERE id = ?`, len(reply), job)
		holder, left := t.claim(job)
		// The last holder may continue after its claim has expired.
		if worker != holder && (worker != "" || left > 0) {
			check(heldError(job, holder, left))
		}
		t.insert("replies", replyColumns,
			"ON CONFLICT (job, key) DO UPDATE SET size = excluded.size, reply = excluded.reply, sum = excluded.sum",
			[]any{job, key, len(reply), reply})
	}, "storing a reply of the run %s", job)
}

// deleteReplies deletes the replies of all jobs, because they may contain words of a document that
// is being deleted. The jobs remain and repeat their calls.
func (t *tx) deleteReplies() {
	t.exec(`UPDATE ibid.jobs SET size = coalesce((SELECT length(s.spec) FROM ibid.specs AS s WHERE s.job = id), 0)`)
	t.exec(`DELETE FROM ibid.replies`)
}

func (l ledger) End(ctx context.Context, id string) error {
	return l.s.update(ctx, func(t *tx) { t.deleteJobs(`id = ?`, id) })
}

// claim returns the worker that claimed a job last and has not released it, and the time until its
// claim expires, or 0 if the claim has expired or the worker has died.
func (t *tx) claim(job string) (worker string, left time.Duration) {
	var micros int64
	check(notFoundError(t.row(`SELECT worker, until - `+t.s.dialect.now+` FROM ibid.jobs WHERE id = ?`, job).Scan(&worker, &micros)))
	left = time.Duration(micros) * time.Microsecond
	// A claim that lasts longer is damaged, or was made before the clock was set back.
	if left < 0 || left > retrieve.MaxClaim || worker == "" || retrieve.HasDied(worker) {
		left = 0
	}
	return worker, left
}

func heldError(job, worker string, left time.Duration) error {
	if left == 0 {
		worker = ""
	}
	return &retrieve.HeldError{Run: job, Worker: worker, Left: left}
}

func checkClaim(worker string, d time.Duration) {
	if worker == "" || d <= 0 || d > retrieve.MaxClaim {
		check(fmt.Errorf("a claim of %q for %s: it needs a worker, and a time of at most %s", worker, d, retrieve.MaxClaim))
	}
}

func (l ledger) Claim(ctx context.Context, job, worker string, d time.Duration) error {
	return inTransaction(ctx, l.s.update, func(t *tx) {
		checkClaim(worker, d)
		t.exec(`UPDATE ibid.jobs SET until = until WHERE id = ?`, job) // locks the row
		if holder, left := t.claim(job); holder != worker && left > 0 {
			check(heldError(job, holder, left))
		}
		now := t.s.dialect.now
		t.exec(`UPDATE ibid.jobs SET worker = ?, until = ? + `+now+`, touched = `+now+` WHERE id = ?`, worker, d.Microseconds(), job)
	}, "claiming the run %s", job)
}

func (l ledger) Release(ctx context.Context, job, worker string) error {
	return inTransaction(ctx, l.s.update, func(t *tx) {
		t.exec(`UPDATE ibid.jobs SET worker = ?, until = 0 WHERE id = ? AND worker = ?`, "", job, worker)
	}, "releasing the run %s", job)
}
