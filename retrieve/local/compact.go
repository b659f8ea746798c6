package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"
)

// Compact gives the space of what was deleted back to the file system and
// forgets what only processes of long ago could ask for: the list of past
// changes and runs older than [retrieve.MaxRunAge]. Other processes may go on
// reading; writers wait. It needs free space for a second copy of the database
// while it runs. It says how many bytes the database had and has; where others
// are reading, their next close shrinks the file. A crash leaves the database
// as it was.
func Compact(ctx context.Context, dir string, opts Options) (before, after int64, err error) {
	e, err := attach(ctx, dir, opts)
	if err != nil {
		return 0, 0, fmt.Errorf("compact the data directory %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, e.disconnect(), e.lock.Close()) }()
	if before, after, err = e.compact(ctx); err != nil {
		return before, after, fmt.Errorf("compact the data directory %s: %w", dir, err)
	}
	return before, after, nil
}

func (e *Engine) compact(ctx context.Context) (before, after int64, err error) {
	if before, err = e.size(); err == nil {
		err = e.filled()
	}
	if err != nil {
		return before, before, err
	}
	err = e.update(ctx, func(tx *sql.Tx) error {
		if err := checkFormat(ctx, tx); err != nil {
			return err
		}
		if yes, err := laidOut(ctx, tx); err != nil {
			return err
		} else if yes {
			if err := makeRoom(ctx, tx, e.limits.OrDefault(), time.Now(), 0); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM changes`); err != nil {
			return err
		}
		// Who has not seen the changes that are forgotten reads everything anew.
		_, err := changed(ctx, tx, changedAll, false)
		return err
	})
	if err != nil {
		return before, before, err
	}
	err = e.retry(ctx, func() error {
		_, err := e.write.ExecContext(ctx, `VACUUM`)
		return err
	})
	if err := e.noticed(err); err != nil {
		return before, before, err
	}
	if _, err := e.write.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil && !isBusy(err) {
		return before, before, err
	}
	after, err = e.size()
	return before, after, err
}

// size is that of the database with its log.
func (e *Engine) size() (n int64, err error) {
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(e.path + suffix)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		n += info.Size()
	}
	return n, nil
}
