package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"ibid/retrieve"
)

// parse reads an address, without a word of it in the error: it may hold a
// password. A server that does not answer for the time of silence is given up,
// unless the address says otherwise.
func parse(address string, silence time.Duration) (config *pgxpool.Config, schema string, err error) {
	const form = "give it as postgres://USER:PASSWORD@HOST:5432/DATABASE"
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, "", errors.New("the address is none of a PostgreSQL server: " + form)
	}
	q := u.Query()
	// Behind a sign in a password that ends the host the rest of it is taken for
	// a database, and the like.
	if u.Fragment != "" || strings.Contains(u.EscapedPath(), "@") || slices.ContainsFunc(slices.Collect(maps.Keys(q)), func(name string) bool { return strings.Contains(name, "@") }) {
		return nil, "", errors.New("the address cannot be read: write the signs / ? # @ of a password as %2F %3F %23 %40: " + form)
	}
	schema = defaultSchema
	if q.Has("search_path") {
		schema = q.Get("search_path")
		// A pooler refuses to begin a session with it, and no session may keep it.
		q.Del("search_path")
	}
	if schema == "" || len(schema) > 63 || strings.ContainsAny(schema, "\x00,\"") {
		return nil, "", fmt.Errorf("the search_path %q in the address is not the name of one schema", schema)
	}
	u.RawQuery = q.Encode()
	config, err = pgxpool.ParseConfig(u.String())
	if err != nil {
		text := err.Error()
		if at := strings.LastIndex(text, "`: "); at >= 0 { // behind the address
			text = text[at+3:]
		}
		if password, set := u.User.Password(); set && password != "" {
			text = strings.ReplaceAll(text, password, "xxxxx")
		}
		return nil, "", fmt.Errorf("the address cannot be read: %s: %s", text, form)
	}
	if !q.Has("pool_max_conns") {
		config.MaxConns = defaultConnections
	}
	if !q.Has("connect_timeout") {
		config.ConnConfig.ConnectTimeout = silence
	}
	// Who waits for an answer notices within ten seconds that the other machine is
	// gone without a word. (The library would ask it for minutes.)
	dialer := net.Dialer{Timeout: config.ConnConfig.ConnectTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 4 * time.Second, Interval: 2 * time.Second, Count: 3}}
	config.ConnConfig.DialFunc = dialer.DialContext
	if !q.Has("default_query_exec_mode") {
		// No statement has a name on the server, so that a pooler may give each
		// transaction another session, and PGlite all of them one.
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	if _, set := config.ConnConfig.RuntimeParams["application_name"]; !set {
		config.ConnConfig.RuntimeParams["application_name"] = "ibid"
	}
	return config, schema, nil
}

// serverName names the database in messages.
func serverName(c *pgxpool.Config) string {
	return (&url.URL{Scheme: "postgres", Host: net.JoinHostPort(c.ConnConfig.Host, strconv.Itoa(int(c.ConnConfig.Port))), Path: "/" + c.ConnConfig.Database}).String()
}

// A session runs statements in a transaction: even a single one, since PGlite has
// all its clients in one session and keeps them apart by their transactions. They
// name Ibid's tables as ibid.NAME, and what is pgvector's as vec.NAME.
type session struct {
	tx pgx.Tx
	e  *Engine
}

func (s *session) exec(ctx context.Context, sql string, args ...any) (rows int64, err error) {
	tag, err := s.tx.Exec(ctx, s.e.names.Replace(sql), args...)
	return tag.RowsAffected(), err
}

func (s *session) query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return s.tx.Query(ctx, s.e.names.Replace(sql), args...)
}

func (s *session) row(ctx context.Context, sql string, args ...any) pgx.Row {
	return s.tx.QueryRow(ctx, s.e.names.Replace(sql), args...)
}

// send runs the statements of a batch in one round trip.
func (s *session) send(ctx context.Context, b *pgx.Batch) error {
	for _, q := range b.QueuedQueries {
		q.SQL = s.e.names.Replace(q.SQL)
	}
	return s.tx.SendBatch(ctx, b).Close()
}

// What begins a transaction, in one round trip. A commit is durable when it
// returns, whatever the database is set to; a policy that waits for more stays.
// Who writes looks up single rows by their keys, and is not to read whole tables
// because the server has not counted them yet.
const (
	beginUpdate = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
		SET LOCAL jit = off; SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;
		SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'`
	beginView = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL jit = off`
)

// rollback ends a transaction that changes nothing. Where that does not work its
// connection is closed; what led here is the thing to tell.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = tx.Rollback(ctx)
}

// begin begins a transaction. A server that is silent meanwhile is taken for one
// that is away; for a connection that nobody uses one may wait longer.
func (e *Engine) begin(ctx context.Context, query string) (pgx.Tx, error) {
	for {
		limit, cancel := context.WithTimeout(ctx, e.silence)
		tx, err := e.pool.BeginTx(limit, pgx.TxOptions{BeginQuery: query})
		silent := limit.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !silent {
			return tx, err
		}
		if s := e.pool.Stat(); s.AcquiredConns() >= s.MaxConns() {
			continue
		}
		e.pool.Reset() // the other connections lead to the same silence
		return nil, fmt.Errorf("it has not answered for %s: %w", e.silence, err)
	}
}

// view runs f in a transaction that sees one state of the database. It may run
// f several times.
func (e *Engine) view(ctx context.Context, f func(*session) error) error {
	return e.retry(ctx, func() error {
		tx, err := e.begin(ctx, beginView)
		if err != nil {
			return err
		}
		defer rollback(ctx, tx)
		return f(&session{tx, e})
	})
}

// retry calls f again while the server is away or others are in the way.
func (e *Engine) retry(ctx context.Context, f func() error) error {
	start := time.Now()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		err := f()
		if err == nil {
			return nil
		}
		if stopped := ctx.Err(); stopped != nil {
			return stopped
		}
		if !passes(err) || time.Since(start)+pause > e.wait {
			return e.told(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// passes says whether what failed may work when it is tried again: nothing of it
// has been done.
func passes(err error) bool {
	if hidden := (untried{}); errors.As(err, &hidden) {
		return false
	}
	if errors.Is(err, errLost) || errors.Is(err, errUnsettled) || errors.Is(err, pgx.ErrTxCommitRollback) {
		return true
	}
	if answer := (*pgconn.PgError)(nil); errors.As(err, &answer) {
		switch answer.Code {
		case "40001", // serialization_failure
			"40P01", // deadlock_detected
			"55P03", // lock_not_available
			"42P01", // undefined_table: the vectors have just got another table
			"53300": // too_many_connections
			return true
		}
		return broken(answer)
	}
	return unreachable(err)
}

// broken says whether the server said that it ends the connection.
func broken(answer *pgconn.PgError) bool {
	return strings.HasPrefix(answer.Code, "57P0") || strings.HasPrefix(answer.Code, "08")
}

// unreachable says whether the connection failed, or could not be made.
func unreachable(err error) bool {
	var network net.Error
	var connecting *pgconn.ConnectError
	return errors.As(err, &connecting) || errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err)
}

// A serverError names the server to an error, and what to do about it.
type serverError struct {
	server, advice string
	err            error
}

func (e *serverError) Error() string {
	// Several lines come from trying several addresses.
	return fmt.Sprintf("%s: %s%s", e.server, strings.Join(strings.Fields(e.err.Error()), " "), e.advice)
}

func (e *serverError) Unwrap() error { return e.err }

// Is says whether the server is away, where that is the target.
func (e *serverError) Is(target error) bool {
	if answer := (*pgconn.PgError)(nil); errors.As(e.err, &answer) {
		return target == retrieve.ErrAway && broken(answer)
	}
	return target == retrieve.ErrAway && unreachable(e.err)
}

// told names the server to errors that are its own; others are Ibid's words.
func (e *Engine) told(err error) error {
	if already := (*serverError)(nil); err == nil || errors.As(err, &already) {
		return err
	}
	answer := (*pgconn.PgError)(nil)
	if errors.As(err, &answer) {
		advice := ""
		switch {
		case strings.HasPrefix(answer.Code, "28"):
			advice = ": check the user and the password of the store"
		case answer.Code == "3D000":
			advice = ": create the database, or name another one"
		case answer.Code == "42501":
			advice = ": the user of the store needs more rights; let its administrator grant them"
		case strings.HasPrefix(answer.Code, "53"):
			advice = ": the server has run out of disk, memory or connections"
		case broken(answer):
			advice = ": check that the server runs"
		}
		return &serverError{e.server, advice, err}
	}
	if unreachable(err) {
		return &serverError{e.server, ": check that the server runs and can be reached from here", err}
	}
	return err
}
