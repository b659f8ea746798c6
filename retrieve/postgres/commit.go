package postgres

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Every transaction that changes something leaves a row of its own. Whoever does
// not get the answer to a commit looks for it: the row is there when the rest is.
// The number that PostgreSQL gives to a transaction would not do, since a server
// that recovers from a crash gives those anew of which nothing had reached the
// disk.
const (
	// commitsKept is for how long a row is looked for at most, with room.
	commitsKept = time.Hour
	// pruneEvery is in how many transactions rows are deleted once, about, and
	// pruneMost how many then are.
	pruneEvery = 64
	pruneMost  = 1024
)

// update runs f in one durable transaction. It may run f several times, but
// commits once: where the connection breaks while it commits, the server is asked
// what became of it.
func (e *Engine) update(ctx context.Context, f func(*session) error) error {
	return e.retry(ctx, func() error {
		tx, err := e.begin(ctx, beginUpdate)
		if err != nil {
			return err
		}
		s := &session{tx, e}
		id, err := e.run(ctx, s, f)
		if err != nil {
			rollback(ctx, tx)
			return err
		}
		// Whoever gives up now still wants to know: a commit that goes on alone
		// would show up later.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*e.wait)
		defer cancel()
		err = tx.Commit(ctx)
		if err == nil || errors.Is(err, pgx.ErrTxCommitRollback) {
			return err
		}
		if answer := (*pgconn.PgError)(nil); errors.As(err, &answer) && !broken(answer) {
			return err
		}
		return e.settle(ctx, id, err)
	})
}

// run runs f, and leaves the row of the transaction.
func (e *Engine) run(ctx context.Context, s *session, f func(*session) error) (id [16]byte, err error) {
	if err := f(s); err != nil {
		return id, err
	}
	crand.Read(id[:]) // never fails
	if _, err := s.exec(ctx, `INSERT INTO ibid.commits (id) VALUES ($1)`, id); err != nil || rand.N(pruneEvery) > 0 {
		return id, err
	}
	return id, prune(ctx, s, commitsKept)
}

// prune deletes rows of transactions that are so old. One that another transaction
// is about to delete is left to it.
func prune(ctx context.Context, s *session, age time.Duration) error {
	_, err := s.exec(ctx, `DELETE FROM ibid.commits WHERE id = ANY (ARRAY (
		SELECT id FROM ibid.commits WHERE made < clock_timestamp() - $1::interval ORDER BY made LIMIT $2 FOR UPDATE SKIP LOCKED))`, age, pruneMost)
	return err
}

var (
	// errLost says that a transaction was broken off before it was committed.
	errLost      = errors.New("the connection broke before the transaction was committed")
	errAborted   = errors.New("the transaction was not committed")
	errUnsettled = errors.New("the transaction is still being committed")
)

// settle finds out whether a transaction was committed whose commit was not
// answered, by its row.
func (e *Engine) settle(ctx context.Context, id [16]byte, cause error) error {
	err := e.retry(ctx, func() error {
		tx, err := e.begin(ctx, beginUpdate+`; SET LOCAL lock_timeout = '1s'`)
		if err != nil {
			return err
		}
		defer rollback(ctx, tx)
		// To add a row waits for whoever is adding the same, and tells what became
		// of it.
		added, err := (&session{tx, e}).exec(ctx, `INSERT INTO ibid.commits (id) VALUES ($1) ON CONFLICT DO NOTHING`, id)
		if of := (*pgconn.PgError)(nil); errors.As(err, &of) {
			switch of.Code {
			case "42P01": // undefined_table: the transaction was to make it
				return errAborted
			case "55P03": // lock_not_available
				return errUnsettled
			}
		}
		if err == nil && added > 0 {
			return errAborted
		}
		return err
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errAborted):
		return fmt.Errorf("%w: %w", errLost, cause)
	}
	return fmt.Errorf("it is not known whether the change was made: the connection broke while it was committed (%w), and asking for it failed: %w", untried{cause}, untried{err})
}

// untried hides from retry that an error is of a kind that passes.
type untried struct{ error }
