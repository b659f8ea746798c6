package local

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"ibid/retrieve"
)

// claimSchema is laid out with the first claim, as ledgerSchema is with the first
// run. Times are in microseconds, by the clock of the machine that all processes
// share. A row that is damaged counts as none.
const claimSchema = `
CREATE TABLE claims (
	run     TEXT PRIMARY KEY,
	worker  TEXT NOT NULL,
	process TEXT NOT NULL,
	until   INTEGER NOT NULL,
	stop    INTEGER NOT NULL,
	sum     INTEGER NOT NULL
) WITHOUT ROWID;
`

// A claim is the last that was made of a run and not released. The zero value
// stands for none.
type claim struct {
	worker  string
	process string // of which [Engine.alive] knows
	until   int64
	stop    bool
}

func (c claim) sum(run string) int64 {
	var s sum
	s.text(run)
	s.text(c.worker)
	s.text(c.process)
	s.number(c.until)
	if c.stop {
		s.number(1)
	}
	return s.value()
}

// claimOf reads the claim of a run.
func claimOf(ctx context.Context, tx *sql.Tx, run string) (c claim, err error) {
	if yes, err := hasTable(ctx, tx, "claims"); err != nil || !yes {
		return c, err
	}
	var stored int64
	err = scanned(tx.QueryRowContext(ctx, `SELECT worker, process, until, stop, sum FROM claims WHERE run = ?`, run).Scan(&c.worker, &c.process, &c.until, &c.stop, &stored))
	switch {
	case errors.Is(err, sql.ErrNoRows), errors.Is(err, errRow):
		return claim{}, nil
	case err != nil:
		return claim{}, err
	case c.sum(run) != stored:
		return claim{}, nil
	}
	return c, nil
}

// left is for how long a claim still holds a run: not at all when its process has
// died, nor when the clock was set back behind the time that it was made at.
func (e *Engine) left(c claim) time.Duration {
	left := time.Until(time.UnixMicro(c.until))
	if c.worker == "" || left <= 0 || left > retrieve.MaxClaim || !e.alive(c.process) {
		return 0
	}
	return left
}

// setClaim keeps a claim of a run in place of any other.
func setClaim(ctx context.Context, tx *sql.Tx, run string, c claim) error {
	if yes, err := hasTable(ctx, tx, "claims"); err != nil {
		return err
	} else if !yes {
		if _, err := tx.ExecContext(ctx, claimSchema); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO claims (run, worker, process, until, stop, sum) VALUES (?, ?, ?, ?, ?, ?)`,
		run, c.worker, c.process, c.until, c.stop, c.sum(run))
	return err
}

func forgetClaim(ctx context.Context, tx *sql.Tx, run string) error {
	if yes, err := hasTable(ctx, tx, "claims"); err != nil || !yes {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM claims WHERE run = ?`, run)
	return err
}

// begun tells whether there is a run; [retrieve.ErrNotFound] if not.
func begun(ctx context.Context, tx *sql.Tx, run string) error {
	yes, err := laidOut(ctx, tx)
	if err == nil && yes {
		err = tx.QueryRowContext(ctx, `SELECT count(*) > 0 FROM runs WHERE id = ?`, run).Scan(&yes)
	}
	return errors.Join(err, notFound(err != nil || yes))
}

// newClaim is a claim from now on of a worker in this process.
func (e *Engine) newClaim(worker string, d time.Duration) (claim, error) {
	if worker == "" || d <= 0 || d > retrieve.MaxClaim {
		return claim{}, fmt.Errorf("a claim of %q for %s: it needs a worker, and a time of at most %s", worker, d, retrieve.MaxClaim)
	}
	process, err := e.process()
	return claim{worker: worker, process: process, until: time.Now().Add(d).UnixMicro()}, err
}

func (l ledger) Claim(ctx context.Context, run, worker string, d time.Duration) error {
	_, err := l.newClaim(worker, d)
	if err == nil {
		err = l.commit(ctx, func(ctx context.Context, tx *sql.Tx) error {
			if err := begun(ctx, tx, run); err != nil {
				return err
			}
			old, err := claimOf(ctx, tx, run)
			if err != nil {
				return err
			}
			if left := l.left(old); old.worker != worker && left > 0 {
				return &retrieve.HeldError{Run: run, Worker: old.worker, Left: left}
			}
			own, err := l.newClaim(worker, d) // from now: the database may have been busy
			if err != nil {
				return err
			}
			return setClaim(ctx, tx, run, own)
		})
	}
	if err != nil {
		return fmt.Errorf("claim the run %s: %w", run, err)
	}
	return nil
}

func (l ledger) Release(ctx context.Context, run, worker string) error {
	err := l.commit(ctx, func(ctx context.Context, tx *sql.Tx) error {
		old, err := claimOf(ctx, tx, run)
		if err != nil || old.worker != worker {
			return err
		}
		return forgetClaim(ctx, tx, run)
	})
	if err != nil {
		return fmt.Errorf("release the run %s: %w", run, err)
	}
	return nil
}

// mayKeep refuses a worker that does not hold the run.
func (l ledger) mayKeep(ctx context.Context, tx *sql.Tx, run, worker string) error {
	c, err := claimOf(ctx, tx, run)
	if err != nil || worker != "" && worker == c.worker {
		return err
	}
	left := l.left(c)
	if left == 0 {
		if worker == "" {
			return nil
		}
		c.worker = ""
	}
	return &retrieve.HeldError{Run: run, Worker: c.worker, Left: left}
}

// A badge is a file beside the database that an engine with claims keeps locked:
// the system lets go of it when the process dies, however it does, and the claims
// need not be waited for.
type badge struct {
	mu   sync.Mutex
	name string // empty before the first claim
	file *os.File
}

const badgeSuffix = ".worker"

func (e *Engine) badgePath(name string) string {
	return filepath.Join(filepath.Dir(e.path), "ibid."+name+badgeSuffix)
}

// process is the name under which other engines find out whether this one lives.
func (e *Engine) process() (string, error) {
	e.badge.mu.Lock()
	defer e.badge.mu.Unlock()
	for e.badge.file == nil {
		name := strings.ToLower(rand.Text()[:16])
		f, err := os.OpenFile(e.badgePath(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return "", fmt.Errorf("make the file that says who works on a run: %w", err)
		}
		err = lockFile(f, true)
		if err == nil && e.onDisk(name, f) {
			e.badge.name, e.badge.file = name, f
			e.sweepBadges()
			break
		}
		// Another one has just swept it up, unlocked as it was.
		if errors.Is(err, errLocked) {
			err = nil
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return "", fmt.Errorf("lock the file that says who works on a run: %w", err)
		}
	}
	return e.badge.name, nil
}

// onDisk says whether a file still has its name.
func (e *Engine) onDisk(name string, f *os.File) bool {
	own, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(e.badgePath(name))
	return err == nil && os.SameFile(own, there)
}

// alive says whether the engine of a name may still be at work. Where that cannot
// be told it may.
func (e *Engine) alive(name string) bool {
	f, err := os.OpenFile(e.badgePath(name), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		return true
	}
	free := lockFile(f, false)
	return f.Close() != nil || free != nil
}

// sweepBadges removes what engines that died have left.
func (e *Engine) sweepBadges() {
	all, err := filepath.Glob(e.badgePath("*"))
	if err != nil { // its pattern is right but for what the folder's name has in it
		return
	}
	for _, path := range all {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "ibid."), badgeSuffix)
		if name != e.badge.name && !e.alive(name) {
			_ = os.Remove(path) // the next one tries again
		}
	}
}

// leave takes off the badge: no claim of this engine holds any longer.
func (b *badge) leave(path func(string) string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return nil
	}
	err := b.file.Close()
	if gone := os.Remove(path(b.name)); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	b.file, b.name = nil, ""
	return err
}
