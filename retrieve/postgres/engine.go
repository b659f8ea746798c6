package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ibid/retrieve"
)

// Options tune an [Engine]. The zero value is what Ibid uses.
type Options struct {
	// Wait is how long to go on trying while the server is away, restarts, or
	// has no room; 0 means 10 seconds.
	Wait time.Duration
	// Renewing, where it is set, is told that the terms of so many documents
	// were made by another version's analysis, before they are made anew.
	Renewing func(documents int)
	// Limits are how much the ledger keeps.
	Limits retrieve.Limits

	// silence is how long a server may take to accept a connection or to begin a
	// transaction before it is taken for one that is away: maxSilence, where it
	// is 0.
	silence time.Duration
}

const (
	defaultWait = 10 * time.Second
	// maxSilence has room for a pooler in front of the server, which lets a
	// transaction wait for a session.
	maxSilence = 30 * time.Second
	// defaultConnections is how many connections there are at most, where the
	// address does not say pool_max_conns.
	defaultConnections = 16
	// defaultSchema holds everything, where the address does not say search_path.
	defaultSchema = "ibid"
)

// An Engine is an open database. It is safe for concurrent use.
type Engine struct {
	pool   *pgxpool.Pool
	server string // for messages: without user and password
	wait   time.Duration
	// silence is as in Options.
	silence time.Duration
	// names puts the schemas into statements: that of Ibid for "ibid." and that
	// of pgvector for "vec.".
	names *strings.Replacer
	// schema is the name of Ibid's, and locks its part of the advisory locks.
	schema string
	locks  int32

	limits retrieve.Limits
	// few is of how many chunks all are compared with a question: exactRows.
	few int64
	// scanned is how many vectors a search of the index looks at: mostScanned.
	scanned int

	frequencies frequencies
	closing     sync.Once
}

// Open opens the database at an address like
//
//	postgres://user:password@host:5432/database?search_path=ibid&pool_max_conns=16
//
// and lays out the schema of search_path where there is none; without one it is
// "ibid". All that libpq and pgx read from an address is understood, and what it
// leaves out is read from the variables PGHOST, PGPASSWORD and so on. No error
// holds the password.
func Open(ctx context.Context, address string, opts Options) (*Engine, error) {
	e, err := open(ctx, address, opts)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	return e, nil
}

func open(ctx context.Context, address string, opts Options) (_ *Engine, err error) {
	silence := cmp.Or(opts.silence, maxSilence)
	config, schema, err := parse(address, silence)
	if err != nil {
		return nil, err
	}
	h := fnv.New32a()
	h.Write([]byte(schema))
	e := &Engine{server: serverName(config), wait: opts.Wait, silence: silence, limits: opts.Limits, schema: schema, locks: int32(h.Sum32()), few: exactRows, scanned: mostScanned}
	if e.wait <= 0 {
		e.wait = defaultWait
	}
	if e.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, e.told(err)
	}
	defer func() {
		if err != nil {
			e.pool.Close()
		}
	}()
	if err := e.migrate(ctx); err != nil {
		return nil, err
	}
	if err := e.renew(ctx, opts.Renewing); err != nil {
		return nil, err
	}
	return e, nil
}

// Close closes the connections. It waits for what is under way.
func (e *Engine) Close() error {
	e.closing.Do(e.pool.Close)
	return nil
}

// name puts the schemas into the names of a statement.
func (e *Engine) setNames(vectors string) {
	e.names = strings.NewReplacer("ibid.", pgx.Identifier{e.schema}.Sanitize()+".", "vec.", pgx.Identifier{vectors}.Sanitize()+".")
}

// ErrNewer says that a newer program laid out a schema.
var ErrNewer = errors.New("it was laid out by a newer version of ibid")
