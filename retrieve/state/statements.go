package state

import (
	"context"
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"
)

// A fileConnector opens connections to the file of a store.
type fileConnector struct {
	s    *Store
	mode fileMode
}

func (f fileConnector) Driver() driver.Driver { return &sqlite.Driver{} }

func (f fileConnector) Connect(context.Context) (driver.Conn, error) {
	mode := f.mode
	if f.s.readOnly {
		var err error
		if mode, err = f.s.readOnlyMode(); err != nil {
			return nil, err
		}
	}
	conn, err := f.Driver().Open(dataSource(f.s.place, mode))
	if err != nil {
		return nil, err
	}
	return &fileConn{conn.(sqliteConn), map[string]driver.Stmt{}}, nil
}

// sqliteConn is the part of the driver's connection that database/sql and backups use.
type sqliteConn interface {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
	NewBackup(to string) (*sqlite.Backup, error)
}

// A fileConn keeps its prepared statements: preparing a statement takes SQLite longer than
// executing most. The rows of a statement must be closed before it is used again.
type fileConn struct {
	sqliteConn
	kept map[string]driver.Stmt
}

// The number of statements that a connection keeps, and the size of the longest. Longer statements
// insert many rows and are hardly ever repeated.
const (
	maxKept      = 100
	maxKeptBytes = 1000
)

// prepare returns the statement of a query, or nil if statements of its length are not kept.
func (c *fileConn) prepare(query string) (driver.Stmt, error) {
	if s, ok := c.kept[query]; ok || len(query) > maxKeptBytes {
		return s, nil
	}
	if len(c.kept) >= maxKept {
		if err := c.forget(); err != nil {
			return nil, err
		}
	}
	s, err := c.Prepare(query)
	if err == nil {
		c.kept[query] = s
	}
	return s, err
}

// forget closes the statements.
func (c *fileConn) forget() (err error) {
	for _, s := range c.kept {
		err = errors.Join(err, s.Close())
	}
	clear(c.kept)
	return err
}

func (c *fileConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.prepare(query)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return c.sqliteConn.ExecContext(ctx, query, args)
	}
	return s.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (c *fileConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.prepare(query)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	return s.(driver.StmtQueryContext).QueryContext(ctx, args)
}

func (c *fileConn) Close() error { return errors.Join(c.forget(), c.sqliteConn.Close()) }
