package local

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"ibid/retrieve"
)

// ledgerSchema is laid out when the first run begins, and not with the rest:
// directories made before it open as they are, and the first page of a
// database, from which a damaged one is rebuilt, stays the same in all. Runs
// are not salvaged from a damaged file: they are begun anew. Times are in
// microseconds. What changes with every reply stands apart from the specs,
// which may be long.
const ledgerSchema = `
CREATE TABLE runs (
	id      TEXT PRIMARY KEY,
	kind    TEXT NOT NULL,
	started INTEGER NOT NULL,
	touched INTEGER NOT NULL,
	size    INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE specs (
	run    TEXT PRIMARY KEY,
	sum    INTEGER NOT NULL,
	secret BLOB NOT NULL,
	spec   BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE replies (
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

func runSum(r retrieve.Job) int64 {
	var s sum
	s.text(r.ID)
	s.text(r.Kind)
	s.number(r.Started.UnixMicro())
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

// laidOut tells whether a run has ever begun here. Runs without a table of
// specs are of an earlier time, and are not looked at.
func laidOut(ctx context.Context, tx *sql.Tx) (bool, error) { return hasTable(ctx, tx, "specs") }

func hasTable(ctx context.Context, tx *sql.Tx, name string) (yes bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = ?`, name).Scan(&yes)
	return yes, err
}

// A together makes small writes durable together: those that come while one
// is being committed share the commit after it.
type together struct {
	mu      sync.Mutex
	waiting []*shared
	turn    sync.Mutex
}

// A shared write is one of several in a transaction.
type shared struct {
	write func(context.Context, *sql.Tx) error
	done  bool
	err   error
}

// patience is how long a write waits for other processes that hold the
// database: the answer that it is for should not wait much longer.
const patience = 5 * time.Second

// refused tells an error of one write, which must not have changed what the
// writes beside it rely on, from one that they all fail with.
func refused(err error) bool { return errors.Is(err, errTaken) || retrieve.IsLost(err) }

// commit makes a write of the ledger durable. Those beside one that was refused
// go on without it, and fail with it for any other error.
func (l ledger) commit(ctx context.Context, write func(context.Context, *sql.Tx) error) error {
	own := &shared{write: write}
	l.ledgering.mu.Lock()
	l.ledgering.waiting = append(l.ledgering.waiting, own)
	l.ledgering.mu.Unlock()

	l.ledgering.turn.Lock()
	defer l.ledgering.turn.Unlock()
	if own.done {
		return own.err
	}
	l.ledgering.mu.Lock()
	all := l.ledgering.waiting
	l.ledgering.waiting = nil
	l.ledgering.mu.Unlock()
	// The others wait for it too, whether its own caller still does or not.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err := l.update(ctx, func(tx *sql.Tx) error {
		for _, w := range all {
			w.err = w.write(ctx, tx)
			if w.err != nil && !refused(w.err) {
				return w.err
			}
		}
		return nil
	})
	for _, w := range all {
		w.done = true
		if err != nil {
			w.err = err
		}
	}
	return own.err
}

func (l ledger) Begin(ctx context.Context, r retrieve.Job) error {
	err := l.commit(ctx, func(ctx context.Context, tx *sql.Tx) error {
		yes, err := laidOut(ctx, tx)
		if err != nil {
			return err
		}
		if !yes {
			if _, err := tx.ExecContext(ctx, `DROP TABLE IF EXISTS runs; DROP TABLE IF EXISTS replies;`+ledgerSchema); err != nil {
				return err
			}
		}
		// Before others make room for it; and a failed constraint would be taken for
		// damage.
		if err := begun(ctx, tx, r.ID); !errors.Is(err, retrieve.ErrNotFound) {
			return cmp.Or(err, errTaken)
		}
		if err := makeRoom(ctx, tx, l.limits.OrDefault(), r.Started, len(r.Spec)); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO runs (id, kind, started, touched, size) VALUES (?, ?, ?, ?, ?)`,
			r.ID, r.Kind, r.Started.UnixMicro(), r.Started.UnixMicro(), len(r.Spec))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO specs (run, sum, secret, spec) VALUES (?, ?, ?, ?)`, r.ID, runSum(r), notNil(r.Secret), notNil(r.Spec))
		if err != nil || r.Worker == "" {
			return err
		}
		own, err := l.newClaim(r.Worker, r.Left)
		if err != nil {
			return err
		}
		return setClaim(ctx, tx, r.ID, own)
	})
	if err != nil {
		return fmt.Errorf("keep the run %s: %w", r.ID, err)
	}
	return nil
}

// makeRoom forgets the runs that are too old at a time, and what is too many
// beside a new one of a size.
func makeRoom(ctx context.Context, tx *sql.Tx, most retrieve.Limits, at time.Time, bytes int) error {
	var count int
	var size, oldest int64
	err := tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(size), 0), coalesce(min(started), 0) FROM runs`).Scan(&count, &size, &oldest)
	if err != nil {
		return err
	}
	old := at.Add(-retrieve.MaxRunAge).UnixMicro()
	size += int64(bytes)
	if count < most.Runs && size <= most.RunBytes && (count == 0 || oldest >= old) {
		return nil
	}
	rows, err := tx.QueryContext(ctx, `SELECT id, started < ?, size FROM runs ORDER BY started < ? DESC, touched`, old, old)
	if err != nil {
		return err
	}
	defer rows.Close()
	var gone []string
	for rows.Next() {
		var id string
		var expired bool
		var own int64
		if err := rows.Scan(&id, &expired, &own); err != nil {
			return err
		}
		if !expired && count < most.Runs && size <= most.RunBytes {
			break
		}
		gone = append(gone, id)
		count--
		size -= own
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, id := range gone {
		if err := forgetRun(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}

func forgetRun(ctx context.Context, tx *sql.Tx, id string) error {
	for _, rows := range []string{`replies WHERE run = ?`, `specs WHERE run = ?`, `runs WHERE id = ?`} {
		if _, err := tx.ExecContext(ctx, `DELETE FROM `+rows, id); err != nil {
			return err
		}
	}
	return forgetClaim(ctx, tx, id)
}

var errTaken = errors.New("another run has its id")

// notNil keeps an empty value from being stored as NULL.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func (l ledger) Job(ctx context.Context, id string) (retrieve.Job, error) {
	r, err := l.find(ctx, func(retrieve.Job) bool { return true }, `WHERE id = ?`, id)
	if err != nil {
		return r, fmt.Errorf("look for the run %q: %w", id, err)
	}
	return r, nil
}

func (l ledger) Latest(ctx context.Context, kind string) (retrieve.Job, error) {
	free := func(r retrieve.Job) bool { return r.Worker == "" }
	r, err := l.find(ctx, free, `WHERE kind = ? ORDER BY touched DESC`, kind)
	if err != nil {
		return r, fmt.Errorf("look for the latest run of %q: %w", kind, err)
	}
	return r, nil
}

// find gives the first run of a list that is wanted.
func (l ledger) find(ctx context.Context, wanted func(retrieve.Job) bool, which, argument string) (r retrieve.Job, err error) {
	err = l.view(ctx, func(tx *sql.Tx) error {
		if yes, err := laidOut(ctx, tx); err != nil || !yes {
			return errors.Join(err, notFound(yes))
		}
		ids, err := column[string](ctx, tx, `SELECT id FROM runs `+which, argument)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if r, err = l.run(ctx, tx, id); err != nil || wanted(r) {
				return err
			}
		}
		return retrieve.ErrNotFound
	})
	if err != nil {
		return retrieve.Job{}, err
	}
	return r, nil
}

// run reads one run.
func (l ledger) run(ctx context.Context, tx *sql.Tx, id string) (r retrieve.Job, err error) {
	var started, stored int64
	err = scanned(tx.QueryRowContext(ctx, `SELECT id, kind, started, sum, secret, spec FROM runs JOIN specs ON run = id WHERE id = ?`, id).Scan(&r.ID, &r.Kind, &started, &stored, &r.Secret, &r.Spec))
	if errors.Is(err, sql.ErrNoRows) {
		err = retrieve.ErrNotFound
	}
	if err != nil {
		return r, err
	}
	if r.Started = time.UnixMicro(started); runSum(r) != stored {
		return r, fmt.Errorf("it is damaged, begin it anew: %w", errRow)
	}
	c, err := claimOf(ctx, tx, id)
	if left := l.left(c); left > 0 {
		r.Worker, r.Left = c.worker, left
	}
	return r, err
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

func (l ledger) Keep(ctx context.Context, run, worker, key string, reply []byte) error {
	err := l.commit(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := begun(ctx, tx, run); err != nil {
			return err
		}
		if err := l.mayKeep(ctx, tx, run, worker); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE runs SET touched = max(touched, ?), size = size + ? WHERE id = ?`, time.Now().UnixMicro(), len(reply), run)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO replies (run, key, sum, reply) VALUES (?, ?, ?, ?)`,
			run, key, replySum(run, key, reply), notNil(reply))
		return err
	})
	if err != nil {
		return fmt.Errorf("keep a reply of the run %s: %w", run, err)
	}
	return nil
}

func (l ledger) End(ctx context.Context, id string) error {
	err := l.commit(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if yes, err := laidOut(ctx, tx); err != nil || !yes {
			return err
		}
		return forgetRun(ctx, tx, id)
	})
	if err != nil {
		return fmt.Errorf("forget the run %s: %w", id, err)
	}
	return nil
}

// forgetReplies removes the replies of all runs: what a model wrote of a
// forgotten document is a trace of it. Runs go on, and make their calls again.
func forgetReplies(ctx context.Context, tx *sql.Tx) error {
	if yes, err := hasTable(ctx, tx, "replies"); err != nil || !yes {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM replies`); err != nil {
		return err
	}
	if yes, err := laidOut(ctx, tx); err != nil || !yes {
		return err
	}
	_, err := tx.ExecContext(ctx, `UPDATE runs SET size = (SELECT coalesce(sum(length(spec)), 0) FROM specs WHERE run = id)`)
	return err
}
