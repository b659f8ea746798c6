package state

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"ibid/retrieve"
)

// A tx runs statements in one transaction. Statements are written once for both dialects:
// parameters are "?", tables are named ibid.NAME, strings are stored as bytes and booleans as 0 and
// 1. A statement that fails ends the transaction; [Store.update] or [Store.view] returns its error,
// in plain words.
//
// A tx is not safe for concurrent use, and rows must be closed before the next statement.
type tx struct {
	ctx  context.Context // of the transaction
	conn *sql.Conn
	s    *Store
	// busy is set while rows are being read. Meanwhile SQLite would run another statement, but
	// PostgreSQL would not.
	busy bool
	// options are the driver's options, which precede the arguments of each query.
	options []any
	damaged []*damagedError // see markDamaged
	began   int64           // the era that the transaction began, or 0
	written int64           // the last revision that it wrote, or 0
}

// An ended is the panic value of a transaction that cannot continue.
type ended struct{ err error }

// check ends the transaction if there is an error.
func check(err error) {
	if err != nil {
		panic(ended{err})
	}
}

// catch calls f and returns the error with which [check] ended it.
func catch(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case ended:
			err = r.err
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// markDamaged records that a document is damaged. After the transaction, view and viewOnce set it
// aside.
func (t *tx) markDamaged(number int64, reason string) {
	t.damaged = append(t.damaged, &damagedError{number, "", reason})
}

func (t *tx) checkIdle() {
	if t.busy {
		panic("a statement began while the rows of another are being read")
	}
}

// try runs a statement and returns the number of rows that it changed.
func (t *tx) try(query string, args ...any) (rows int64, err error) {
	t.checkIdle()
	r, err := t.conn.ExecContext(t.ctx, t.s.dialect.text(query), storedForm(args)...)
	if err != nil {
		return 0, t.s.explain(err)
	}
	return r.RowsAffected()
}

// exec is like try, except that an error ends the transaction.
func (t *tx) exec(query string, args ...any) (rows int64) {
	rows, err := t.try(query, args...)
	check(err)
	return rows
}

// rows yields the rows that a query returns.
func (t *tx) rows(query string, args ...any) iter.Seq[row] {
	return func(yield func(row) bool) {
		t.checkIdle()
		rows, err := t.conn.QueryContext(t.ctx, t.s.dialect.text(query), slices.Concat(t.options, storedForm(args))...)
		check(t.s.explain(err))
		t.busy = true
		defer func() {
			t.busy = false
			_ = rows.Close() // the loop may have been left early
		}()
		for rows.Next() {
			if !yield(row{rows}) {
				return
			}
		}
		check(t.s.explain(cmp.Or(rows.Err(), rows.Close())))
	}
}

// row returns the first row of a query. If the query returns no row, scanning it returns
// [sql.ErrNoRows].
func (t *tx) row(query string, args ...any) scanner { return firstRow{t, query, args} }

// A row is the current row of a result.
type row struct{ *sql.Rows }

// Scan reports a value with the wrong type for its column as a damaged row.
func (r row) Scan(dest ...any) error {
	if err := r.Rows.Scan(dest...); err != nil {
		return errRow // the driver's message does not help
	}
	return nil
}

type firstRow struct {
	t     *tx
	query string
	args  []any
}

func (r firstRow) Scan(dest ...any) (err error) {
	found := false
	for row := range r.t.rows(r.query, r.args...) {
		if !found {
			found, err = true, row.Scan(dest...)
		}
	}
	if !found {
		return sql.ErrNoRows
	}
	return err
}

// column returns the only column of the rows of a query.
func column[T any](t *tx, query string, args ...any) (all []T) {
	for r := range t.rows(query, args...) {
		var v T
		check(r.Scan(&v))
		all = append(all, v)
	}
	return all
}

// value returns the only column of the only row of a query.
func value[T any](t *tx, query string, args ...any) (v T) {
	check(t.row(query, args...).Scan(&v))
	return v
}

// rowsOf returns the rows of a query as scan reads them. Rows for which scan returns errRow are
// returned separately, as far as they could be read.
func rowsOf[T any](t *tx, scan func(scanner) (T, error), query string, args ...any) (whole, damaged []T) {
	for r := range t.rows(query, args...) {
		v, err := scan(r)
		if errors.Is(err, errRow) {
			damaged = append(damaged, v)
			continue
		}
		check(err)
		whole = append(whole, v)
	}
	return whole, damaged
}

// anyRow returns the values of a row of n columns.
func anyRow(r scanner, n int) []any {
	values, dest := make([]any, n), make([]any, n)
	for i := range dest {
		dest[i] = &values[i]
	}
	check(r.Scan(dest...))
	return values
}

// maxParameters is the largest number of parameters of a statement. SQLite accepts 32,766 and
// PostgreSQL 65,535.
const maxParameters = 4096

// insert stores rows with the named columns, and the checksum of each row in the column sum.
// Conflict is an ON CONFLICT clause or empty.
func (t *tx) insert(table, columns, conflict string, rows ...[]any) {
	summed := make([][]any, len(rows))
	for i, r := range rows {
		summed[i] = append(slices.Clip(r), rowSum(r...))
	}
	t.insertSummed(table, columns+", sum", conflict, summed)
}

// insertSummed is like insert, for rows that already include their checksums.
func (t *tx) insertSummed(table, columns, conflict string, rows [][]any) {
	values := "(" + marks(strings.Count(columns, ",")+1) + ")"
	for part := range slices.Chunk(rows, maxParameters/strings.Count(values, "?")) {
		all := strings.Repeat(values+", ", len(part)-1) + values
		t.exec("INSERT INTO ibid."+table+" ("+columns+") VALUES "+all+" "+conflict, slices.Concat(part...)...)
	}
}

// marks returns n parameters of a statement, separated by commas.
func marks(n int) string { return strings.Repeat("?, ", n-1) + "?" }

// maxList is the largest number of values that [inList] accepts.
const maxList = 512

// inList returns the parameters and arguments of "IN (…)" for 1 to maxList values. It repeats the last
// value up to a power of two, to keep the number of different statements small.
func inList[T any](values []T) (list string, args []any) {
	n := 1
	for n < len(values) {
		n *= 2
	}
	for i := range n {
		args = append(args, values[min(i, len(values)-1)])
	}
	return "(" + marks(n) + ")", args
}

// lock locks a name until the transaction ends, and waits for any other transaction that has locked
// it. In SQLite a transaction that writes is alone anyway.
func (t *tx) lock(name string) { t.s.dialect.lock(t, nil, []string{name}) }

// storedForm returns arguments in the form in which they are stored.
func storedForm(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		if a == nil {
			continue
		}
		switch v := plainValue(a).(type) {
		case string:
			out[i] = []byte(v)
		case []byte:
			if v == nil {
				v = []byte{}
			}
			out[i] = v
		default:
			out[i] = v
		}
	}
	return out
}

// update runs f in one durable transaction. It may run f several times, but commits once. f must
// not keep data from a failed run.
func (s *Store) update(ctx context.Context, f func(*tx)) error {
	if s.readOnly {
		return s.refusal()
	}
	return s.retry(ctx, s.wait, func() error {
		var began, latest int64
		err := s.resolveCommit(ctx, s.transact(ctx, s.write, s.dialect.beginUpdate, f, func(t *tx) error {
			began, latest = t.began, t.written
			return s.dialect.commit(t)
		}))
		switch {
		case errors.Is(err, retrieve.ErrUnavailable): // another server may take over without the latest changes
			s.era.Store(newEra())
		case err == nil && began != 0:
			s.begun.Store(began)
		}
		if err == nil {
			s.noteRevision(latest)
		}
		return s.explainRow(err)
	})
}

// newEra returns a random number.
func newEra() int64 { return 1 + rand.Int64N(math.MaxInt64) }

// refusal returns the error of a change to a library that is open for reading.
func (s *Store) refusal() error {
	if err := s.CheckRoom(); err != nil {
		return fmt.Errorf("%w: %w", retrieve.ErrReadOnly, err)
	}
	return fmt.Errorf("%w: %s cannot be written: check its permissions and those of its folder", retrieve.ErrReadOnly, s.place)
}

// view runs f in a read-only transaction that sees one state of the database. It may run f several
// times. Documents that f marked as damaged, or that its error reports as damaged, are set aside
// afterwards.
func (s *Store) view(ctx context.Context, f func(*tx)) error {
	// There is nothing to commit, and a commit fails if a page that was read is damaged.
	return s.readWith(ctx, s.dialect.beginView, f, func(t *tx) error { return t.rollback() })
}

// viewOnce is like view, but without a transaction: each statement of f sees its own state of the
// database.
func (s *Store) viewOnce(ctx context.Context, f func(*tx)) error {
	return s.readWith(ctx, "", f, func(*tx) error { return nil })
}

func (s *Store) readWith(ctx context.Context, begin string, f func(*tx), end func(*tx) error) error {
	var damaged []*damagedError
	err := s.retry(ctx, s.wait, func() error {
		return s.transact(ctx, s.read, begin, func(t *tx) {
			if begin == "" && !s.planned.Load() {
				t.options = s.dialect.keepPlan // every search sends the query, and planning takes longer than executing it
			}
			defer func() { damaged = t.damaged }()
			f(t)
		}, end)
	})
	found := (*damagedError)(nil)
	if errors.As(err, &found) {
		damaged = append(damaged, found)
	}
	if len(damaged) > 0 && (err == nil || found != nil) {
		return errors.Join(err, s.setAside(ctx, damaged...))
	}
	return s.explainRow(err)
}

// inTransaction runs f with view or update. Its error names the operation.
func inTransaction(ctx context.Context, by func(context.Context, func(*tx)) error, f func(*tx), format string, args ...any) error {
	if err := by(ctx, f); err != nil {
		return fmt.Errorf(format+": %w", append(args, err)...)
	}
	return nil
}

// transact runs f between the begin statement, unless that is empty, and end.
func (s *Store) transact(ctx context.Context, db *sql.DB, begin string, f func(*tx), end func(*tx) error) (err error) {
	if err := s.checkPlace(); err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err == nil {
		defer conn.Close() // returns it to the pool
	}
	if s.closed.Load() {
		err = errors.New("the library has been closed")
	}
	if err != nil {
		return s.explain(err)
	}
	t := &tx{ctx: ctx, conn: conn, s: s}
	open := begin != ""
	defer func() {
		if open {
			_ = t.rollback() // the error that led here is more useful
		}
	}()
	if open {
		if err := t.begin(begin); err != nil {
			return err
		}
	}
	if err := catch(func() { f(t) }); err != nil {
		return err
	}
	open = false
	return end(t)
}

// begin begins the transaction. A server that does not reply within t.s.silence counts as
// unreachable.
func (t *tx) begin(statement string) error {
	ctx, cancel := context.WithTimeout(t.ctx, t.s.silence)
	defer cancel()
	_, err := t.conn.ExecContext(ctx, statement)
	if err != nil && t.ctx.Err() == nil && ctx.Err() != nil {
		return &failure{message: fmt.Sprintf("%s does not reply: check that it is running", t.s.place), unavailable: true, err: err}
	}
	return t.s.explain(err)
}

// rollback ends a transaction that changes nothing. If that fails, it closes the connection.
func (t *tx) rollback() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), time.Second)
	defer cancel()
	if _, err := t.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		t.discard()
	}
	return nil
}

// discard closes the connection instead of returning it to the pool.
func (t *tx) discard() { _ = t.conn.Raw(func(any) error { return driver.ErrBadConn }) }
