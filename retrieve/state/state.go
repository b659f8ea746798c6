// Package state stores a library: its documents with their text, chunks and
// vectors, a table of changes, the ledger and the keyring. It is the
// [retrieve.State] over one SQLite file in a data directory, or over a schema of
// a PostgreSQL server, written once for both.
//
// A method that changes something is one transaction, by update; one that reads
// sees one state of the database, by view. Statements are the same in both
// dialects (see tx), and the tables are in schema.sql.
//
// Any number of processes may use one data directory on a local disk, and any
// number of machines one schema.
package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"ibid/retrieve"
)

var _ retrieve.State = (*Store)(nil)

// Options tune a [Store]. The zero value is what Ibid uses.
type Options struct {
	// Wait is how long to try again while a server is unreachable, restarts or
	// fails over, or while other processes hold the file; 0 means 5 minutes for a
	// server and a minute for a data directory.
	Wait time.Duration
	// Waiting, if not nil, is called once each time that the server has become
	// unreachable and is tried again. It may be called from several goroutines.
	Waiting func(error)
	// Repairing, if not nil, is called before a damaged data directory is repaired, which
	// takes as long as copying it.
	Repairing func()

	// silence is how long a server may take to begin a transaction; 0 means
	// maxSilence.
	silence time.Duration
}

// A Store is an open library. It is safe for concurrent use.
type Store struct {
	// place names the library in messages: the file, or the server without a
	// password.
	place   string
	dialect *dialect
	// classify returns what an error of the driver means; nil if it is not one.
	classify    func(error) *failure
	write, read *sql.DB // one pool for a server
	readOnly    bool
	full        bool // it is read-only because its disk was full when it was opened
	wait        time.Duration
	silence     time.Duration
	maxPause    time.Duration
	report      func(error)
	waiting     atomic.Bool  // whether an outage has been reported
	answered    atomic.Int64 // when the database answered last, in Unix nanoseconds
	limits      limits
	// planned means that the database plans each query anew, as it must where a
	// pooler gives each transaction another session.
	planned atomic.Bool

	// era is that of the next change, begun that of the last one that this process
	// has made.
	era, begun atomic.Int64
	// serverStarted is when the server of the newest session was started, in Unix
	// microseconds.
	serverStarted atomic.Int64
	// latest is the last revision that this process has seen stored.
	latest atomic.Int64

	dir  string                      // the data directory; empty for a server
	file atomic.Pointer[os.FileInfo] // of the database when it was opened; nil for a server
	lock *os.File
	// started means that damage found from now on is repaired at the next start.
	started bool
	schema  string // of a server
	// encrypted means that the address of a server allows nothing else.
	encrypted bool

	mu   sync.Mutex
	lost []Damage // found by this process, and in no table

	closing sync.Once
	closed  atomic.Bool
}

// Open opens the library at an address: the path of a data directory, which is
// created if it is missing, or postgres://USER:PASSWORD@HOST/DATABASE. The
// parameter search_path names the schema, "ibid" without it; other parameters are
// those of libpq and pgx. Errors never contain a password.
//
// A data directory that cannot be written is opened for reading.
func Open(ctx context.Context, address string, opts Options) (*Store, error) {
	open := openDirectory
	if isServer(address) {
		open = openServer
	}
	s, err := open(ctx, address, opts)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", named(address), err)
	}
	return s, nil
}

// CheckRoom returns an error if the disk was so full when the library was opened that
// it can only be read until it is opened again.
func (s *Store) CheckRoom() error {
	if !s.full {
		return nil
	}
	return &failure{full: true, what: "the disk of " + s.place + " was full when it was opened: free space on it and start ibid again"}
}

// Close closes the store. The last process to close a data directory leaves
// everything in its one file.
func (s *Store) Close() (err error) {
	s.closing.Do(func() {
		s.closed.Store(true)
		err = s.disconnect()
		if s.lock != nil {
			err = errors.Join(err, s.lock.Close())
		}
	})
	return err
}

// disconnect closes the connections.
func (s *Store) disconnect() (err error) {
	if s.read != nil && s.read != s.write {
		err = errors.Join(err, s.read.Close())
	}
	if s.write != nil {
		err = errors.Join(err, s.write.Close())
	}
	return err
}
