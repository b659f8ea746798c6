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
	return &fileConn{conn.(sqliteConn), map[string]keptStmt{}}, nil
}

// sqliteConn is the part of the driver's connection that database/sql and backups use. It lacks the
// methods that execute a query at once, so that database/sql prepares every query.
type sqliteConn interface {
	driver.Conn
	driver.Pinger
	driver.SessionResetter
	driver.Validator
	NewBackup(to string) (*sqlite.Backup, error)
}

// A fileConn keeps its prepared statements: SQLite takes longer to prepare most statements than to
// execute them. The rows of a statement must be closed before it is used again.
type fileConn struct {
	sqliteConn
	kept map[string]keptStmt
}

// A keptStmt remains open when database/sql closes it.
type keptStmt struct {
	sqliteStmt
}

type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

func (keptStmt) Close() error { return nil }

// The number of statements that a connection keeps, and the size of the longest. Longer statements
// insert many rows and are hardly ever repeated.
const (
	maxKept      = 100
	maxKeptBytes = 1000
)

func (c *fileConn) Prepare(query string) (driver.Stmt, error) {
	if kept, ok := c.kept[query]; ok {
		return kept, nil
	}
	s, err := c.sqliteConn.Prepare(query)
	if err != nil || len(query) > maxKeptBytes {
		return s, err
	}
	if len(c.kept) >= maxKept {
		if err := c.forget(); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	c.kept[query] = keptStmt{s.(sqliteStmt)}
	return c.kept[query], nil
}

// forget closes the statements.
func (c *fileConn) forget() (err error) {
	for _, s := range c.kept {
		err = errors.Join(err, s.sqliteStmt.Close())
	}
	clear(c.kept)
	return err
}

func (c *fileConn) Close() error { return errors.Join(c.forget(), c.sqliteConn.Close()) }
