package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// lockName is the name of the file that is locked while the data directory is open.
const lockName = "ibid.lock"

// errLocked says that another process holds the lock.
var errLocked = errors.New("it is being repaired by another process")

// shareLock takes a lock on the data directory that says it is in use. It is
// shared by all who use it, and refused only while one repairs the database.
func shareLock(ctx context.Context, path string, wait time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for start := time.Now(); ; {
		err := lockFile(f, false)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, errLocked) || time.Since(start) > wait {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
