// Package state stores a library: its documents with their text, chunks and vectors, a table of
// changes, the ledger and the keyring. It implements [retrieve.State] on an SQLite file in a data
// directory and on a schema of a PostgreSQL server, with the same code.
//
// A method that changes data runs one transaction, with update; a method that reads sees one state
// of the database, with view, or pairs rows by their generation. Statements are the same in both
// dialects (see tx), and schema.sql defines the tables.
//
// Any number of processes may use one data directory on a local disk, and any number of machines
// one schema.
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

// Options configure a [Store]. Ibid uses the zero value by default.
type Options struct {
	// Wait is how long to retry while a server is unreachable, restarts or fails over, or while
	// other processes hold the file. 0 means 5 minutes for a server and a minute for a data
	// directory.
	Wait time.Duration
	// Waiting, if not nil, is called once in each outage of the server, while the store retries. It
	// may be called from several goroutines.
	Waiting func(error)
	// Repairing, if not nil, is called before a damaged data directory is repaired, which takes as
	// long as copying it.
	Repairing func()

	// silence is how long a server may take to begin a transaction; 0 means maxSilence.
	silence time.Duration
}

// A Store is an open library. It is safe for concurrent use.
type Store struct {
	// place names the library in messages: the file, or the server without its password.
	place   string
	dialect *dialect
	// classify interprets an error of the driver. It returns nil for any other error.
	classify    func(error) *failure
	write, read *sql.DB // one pool for a server
	readOnly    bool
	full        bool // it is read-only because its disk was full when it was opened
	wait        time.Duration
	silence     time.Duration
	maxPause    time.Duration
	report      func(error)
	waiting     atomic.Bool  // an outage has been reported
	answered    atomic.Int64 // when the database last replied, in Unix nanoseconds
	limits      limits
	// planned means that the database plans each query again, as it must if a pooler assigns each
	// transaction to another session.
	planned atomic.Bool

	// era is the era of the next change, begun the era of the last change that this process has
	// made.
	era, begun atomic.Int64
	// serverStarted is the start time of the server of the newest session, in Unix microseconds.
	serverStarted atomic.Int64
	// latest is the last revision that this process has seen stored.
	latest atomic.Int64

	dir  string                      // the data directory; empty for a server
	file atomic.Pointer[os.FileInfo] // the file when it was opened; nil for a server
	lock *os.File
	// started means that damage found from now on is repaired at the next start.
	started bool
	schema  string // of a server
	// encrypted means that the address of a server allows only encrypted connections.
	encrypted bool

	mu   sync.Mutex
	lost []Damage // found by this process and stored in no table

	closing sync.Once
	closed  atomic.Bool
}

// Open opens the library at an address: the path of a data directory, which is created if it is
// missing, or postgres://USER:PASSWORD@HOST/DATABASE. The parameter search_path names the schema,
// "ibid" by default; libpq and pgx define the other parameters. Errors never contain a password.
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

// CheckRoom returns an error if the disk was full when the library was opened. The library is then
// read-only until it is opened again.
func (s *Store) CheckRoom() error {
	if !s.full {
		return nil
	}
	return &failure{full: true, message: "the disk of " + s.place + " was full when it was opened: free space on it and restart ibid"}
}

// Close closes the store. When the last process closes a data directory, all data is in the
// database file.
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
