package state

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Every transaction on a server that changes something also adds a row with an id. A client that
// gets no reply to a commit looks for the row, which exists if the transaction was committed.
// PostgreSQL's own transaction number would not do, because a server that recovers from a crash
// reuses numbers that did not reach the disk.
const (
	// commitsKept is the age at which rows are deleted. No client looks for a row that long.
	commitsKept = time.Hour
	// On average, one in pruneEvery transactions deletes old rows, at most pruneMost.
	pruneEvery = 64
	pruneMost  = 1024
)

// unknownCommit is the error of a commit without a reply.
type unknownCommit struct {
	id  string // of its row
	err error
}

func (u *unknownCommit) Error() string { return u.err.Error() }
func (u *unknownCommit) Unwrap() error { return u.err }

// commitServer adds the transaction's row and commits, in one round trip.
func commitServer(t *tx) error {
	if rand.N(pruneEvery) == 0 {
		if err := catch(func() { prune(t, commitsKept) }); err != nil {
			_ = t.rollback()
			return err
		}
	}
	raw := make([]byte, 16)
	crand.Read(raw) // never fails
	id := fmt.Sprintf("%x", raw)
	// Wait even if the caller gives up now, because the server may still make the commit.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.s.silence)
	defer cancel()
	_, err := t.conn.ExecContext(ctx, t.s.dialect.text(`INSERT INTO ibid.commits (id) VALUES ('`+id+`'); COMMIT`))
	if err == nil {
		return nil
	}
	if answer := (*pgconn.PgError)(nil); errors.As(err, &answer) && !isBroken(answer) {
		_ = t.rollback()
		return t.s.explain(err)
	}
	t.discard()
	return &unknownCommit{id, err}
}

// prune deletes the rows of transactions that are older than age, except rows that another
// transaction is deleting.
func prune(t *tx, age time.Duration) {
	t.exec(`DELETE FROM ibid.commits WHERE id = ANY (ARRAY (
		SELECT id FROM ibid.commits WHERE made < clock_timestamp() - ? * interval '1 second' ORDER BY made LIMIT ? FOR UPDATE SKIP LOCKED))`,
		int64(age.Seconds()), pruneMost)
}

var errAborted = errors.New("the transaction was not committed")

// resolveCommit determines whether an unknown commit was made. It returns nil if so, and otherwise
// an error that makes the caller try again.
func (s *Store) resolveCommit(ctx context.Context, err error) error {
	u := (*unknownCommit)(nil)
	if !errors.As(err, &u) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.wait)
	defer cancel()
	asking := s.retry(ctx, s.wait, func() error {
		return s.transact(ctx, s.write, s.dialect.beginUpdate+`; SET LOCAL lock_timeout = '1s'`, func(t *tx) {
			// This insertion waits for any other transaction that inserts the same row.
			added, err := t.try(`INSERT INTO ibid.commits (id) VALUES ('` + u.id + `') ON CONFLICT DO NOTHING`)
			if answer := (*pgconn.PgError)(nil); errors.As(err, &answer) && answer.Code == "42P01" { // undefined_table
				err = errAborted // the transaction would have created it
			}
			if err == nil && added > 0 {
				err = errAborted
			}
			check(err)
		}, func(t *tx) error { return t.rollback() })
	})
	switch {
	case asking == nil:
		return nil
	case errors.Is(asking, errAborted):
		return &failure{message: s.place + ": the connection broke before the change was made", unavailable: true, err: u.err}
	}
	return fmt.Errorf("it is unknown whether the change was made: the connection to %s broke during the commit, "+
		"and the server is still unreachable: "+
		"check the result once it is reachable", s.place)
}
