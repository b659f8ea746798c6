package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"ibid/retrieve"
)

// ledgerSchema is laid out when the first run begins, and not with the rest:
// directories made before it open as they are, and the first page of a
// database, from which a damaged one is rebuilt, stays the same in all. Runs
// are not salvaged from a damaged file: they are begun anew.
const ledgerSchema = `
CREATE TABLE IF NOT EXISTS runs (
	id      TEXT PRIMARY KEY,
	started INTEGER NOT NULL,
	sum     INTEGER NOT NULL,
	secret  BLOB NOT NULL,
	spec    BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS replies (
	run   TEXT NOT NULL,
	key   TEXT NOT NULL,
	sum   INTEGER NOT NULL,
	reply BLOB NOT NULL,
	PRIMARY KEY (run, key)
) WITHOUT ROWID;
`

// Ledger gives the ledger that is kept in the same database.
func (e *Engine) Ledger() retrieve.Ledger { return ledger{e} }

type ledger struct{ *Engine }

func runSum(r retrieve.Run) int64 {
	var s sum
	s.text(r.ID)
	s.number(r.Started.Unix())
	s.bytes(r.Secret)
	s.bytes(r.Spec)
	return s.value()
}

func replySum(run, key string, reply []byte) int64 {
	var s sum
	s.text(run)
	s.text(key)
	s.bytes(reply)
	return s.value()
}

// laidOut tells whether a run has ever begun here.
func laidOut(ctx context.Context, tx *sql.Tx) (yes bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT count(*) = 2 FROM sqlite_schema WHERE type = 'table' AND name IN ('runs', 'replies')`).Scan(&yes)
	return yes, err
}

func (l ledger) Begin(ctx context.Context, r retrieve.Run) error {
	err := l.update(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, ledgerSchema); err != nil {
			return err
		}
		if err := forgetRuns(ctx, tx, r.Started); err != nil {
			return err
		}
		// A failed constraint would be taken for damage.
		result, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO runs (id, started, sum, secret, spec) VALUES (?, ?, ?, ?, ?)`,
			r.ID, r.Started.Unix(), runSum(r), notNil(r.Secret), notNil(r.Spec))
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, errTaken)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("keep the run %s: %w", r.ID, err)
	}
	return nil
}

// forgetRuns removes the runs that are too old at a time, with their replies.
func forgetRuns(ctx context.Context, tx *sql.Tx, at time.Time) error {
	old := at.Add(-retrieve.MaxRunAge).Unix()
	if _, err := tx.ExecContext(ctx, `DELETE FROM replies WHERE run NOT IN (SELECT id FROM runs WHERE started >= ?)`, old); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM runs WHERE started < ?`, old)
	return err
}

var errTaken = errors.New("another run has its id")

// notNil keeps an empty value from being stored as NULL.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func (l ledger) Run(ctx context.Context, id string) (r retrieve.Run, err error) {
	err = l.view(ctx, func(tx *sql.Tx) error {
		if yes, err := laidOut(ctx, tx); err != nil || !yes {
			return errors.Join(err, notFound(yes))
		}
		var started, stored int64
		r = retrieve.Run{ID: id}
		err := scanned(tx.QueryRowContext(ctx, `SELECT started, sum, secret, spec FROM runs WHERE id = ?`, id).Scan(&started, &stored, &r.Secret, &r.Spec))
		if errors.Is(err, sql.ErrNoRows) {
			return retrieve.ErrNotFound
		}
		if err != nil {
			return err
		}
		if r.Started = time.Unix(started, 0); runSum(r) != stored {
			return fmt.Errorf("it is damaged, begin it anew: %w", errRow)
		}
		return nil
	})
	if err != nil {
		return retrieve.Run{}, fmt.Errorf("look for the run %q: %w", id, err)
	}
	return r, nil
}

func notFound(found bool) error {
	if found {
		return nil
	}
	return retrieve.ErrNotFound
}

func (l ledger) Reply(ctx context.Context, run, key string) (reply []byte, ok bool, err error) {
	err = l.view(ctx, func(tx *sql.Tx) error {
		reply, ok = nil, false
		if yes, err := laidOut(ctx, tx); err != nil || !yes {
			return err
		}
		var stored int64
		err := scanned(tx.QueryRowContext(ctx, `SELECT sum, reply FROM replies WHERE run = ? AND key = ?`, run, key).Scan(&stored, &reply))
		switch {
		case errors.Is(err, sql.ErrNoRows), errors.Is(err, errRow):
			return nil
		case err != nil:
			return err
		}
		ok = replySum(run, key, reply) == stored
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("read a reply of the run %s: %w", run, err)
	}
	return reply, ok, nil
}

func (l ledger) Keep(ctx context.Context, run, key string, reply []byte) error {
	err := l.update(ctx, func(tx *sql.Tx) error {
		if yes, err := laidOut(ctx, tx); err != nil || !yes {
			return errors.Join(err, notFound(yes))
		}
		result, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO replies (run, key, sum, reply) SELECT id, ?, ?, ? FROM runs WHERE id = ?`,
			key, replySum(run, key, reply), notNil(reply), run)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return err
		}
		return notFound(n > 0)
	})
	if err != nil {
		return fmt.Errorf("keep a reply of the run %s: %w", run, err)
	}
	return nil
}

func (l ledger) End(ctx context.Context, id string) error {
	err := l.update(ctx, func(tx *sql.Tx) error {
		if yes, err := laidOut(ctx, tx); err != nil || !yes {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM replies WHERE run = ?`, id); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM runs WHERE id = ?`, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("forget the run %s: %w", id, err)
	}
	return nil
}

// forgetReplies removes the replies of all runs: what a model wrote of a
// forgotten document is a trace of it. Runs go on, and make their calls again.
func forgetReplies(ctx context.Context, tx *sql.Tx) error {
	yes, err := laidOut(ctx, tx)
	if err != nil || !yes {
		return err
	}
	_, err = tx.ExecContext(ctx, `DELETE FROM replies`)
	return err
}
