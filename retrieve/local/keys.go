package local

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"ibid/retrieve"
)

// keySchema is laid out when the first key is added, for the reasons of
// ledgerSchema. Keys are not salvaged from a damaged file either: what cannot
// be read whole lets nobody in. Times are in seconds, 0 for none. The sums of
// keys leave out when they were used.
const keySchema = `
CREATE TABLE key_changes (
	one      INTEGER PRIMARY KEY,
	revision INTEGER NOT NULL
);
CREATE TABLE access_keys (
	id          TEXT PRIMARY KEY,
	name        TEXT NOT NULL,
	digest      BLOB NOT NULL,
	write       INTEGER NOT NULL,
	collections TEXT NOT NULL,
	created     INTEGER NOT NULL,
	expires     INTEGER NOT NULL,
	used        INTEGER NOT NULL,
	sum         INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE sessions (
	digest  BLOB PRIMARY KEY,
	key     TEXT NOT NULL,
	started INTEGER NOT NULL,
	sum     INTEGER NOT NULL
) WITHOUT ROWID;
`

// Keyring gives the keyring that is kept in the same database.
func (e *Engine) Keyring() retrieve.Keyring { return keyring{e} }

// OpenKeyring opens the keyring of a data directory alone: nothing of the
// library is read into memory. Call close when done with it. A directory that is
// new, or has to be repaired, is opened whole.
func OpenKeyring(ctx context.Context, dir string, opts Options) (r retrieve.Keyring, close func() error, err error) {
	e, err := attach(ctx, dir, opts)
	if err == nil {
		if err = e.filled(); err == nil {
			err = e.view(ctx, func(tx *sql.Tx) error { return checkFormat(ctx, tx) })
		}
		if err == nil && !e.marked() {
			return keyring{e}, func() error { return errors.Join(e.disconnect(), e.lock.Close()) }, nil
		}
		e.abandon()
		if err != nil && !isDamage(err) && !errors.Is(err, errEmptied) {
			return nil, nil, fmt.Errorf("open the keys of %s: %w", dir, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("open the keys of %s: %w", dir, err)
	}
	if e, err = Open(ctx, dir, opts); err != nil {
		return nil, nil, err
	}
	return e.Keyring(), e.Close, nil
}

type keyring struct{ engine *Engine }

func keySum(k retrieve.Key, collections string) int64 {
	var s sum
	s.text(k.ID)
	s.text(k.Name)
	s.bytes(k.Digest[:])
	if k.Write {
		s.number(1)
	} else {
		s.number(0)
	}
	s.text(collections)
	s.number(retrieve.Seconds(k.Created))
	s.number(retrieve.Seconds(k.Expires))
	return s.value()
}

func sessionSum(x retrieve.Session) int64 {
	var s sum
	s.bytes(x.Digest[:])
	s.text(x.Key)
	s.number(retrieve.Seconds(x.Started))
	return s.value()
}

// hasKeys tells whether a key has ever been added here.
func hasKeys(ctx context.Context, tx *sql.Tx) (bool, error) { return hasTable(ctx, tx, "access_keys") }

// ringChanged makes a change of the ring known.
func ringChanged(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO key_changes (one, revision) VALUES (1, 1) ON CONFLICT (one) DO UPDATE SET revision = revision + 1`)
	return err
}

func (r keyring) Revision(ctx context.Context) (revision int64, err error) {
	err = r.engine.view(ctx, func(tx *sql.Tx) error {
		revision, err = ringRevision(ctx, tx)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("look for new keys: %w", err)
	}
	return revision, nil
}

func ringRevision(ctx context.Context, tx *sql.Tx) (revision int64, err error) {
	if yes, err := hasKeys(ctx, tx); err != nil || !yes {
		return 0, err
	}
	err = tx.QueryRowContext(ctx, `SELECT revision FROM key_changes WHERE one = 1`).Scan(&revision)
	return revision, scanned(err)
}

func (r keyring) Ring(ctx context.Context) (ring retrieve.Ring, err error) {
	err = r.engine.view(ctx, func(tx *sql.Tx) error {
		ring = retrieve.Ring{}
		yes, err := hasKeys(ctx, tx)
		if err != nil || !yes {
			return err
		}
		if ring.Revision, err = ringRevision(ctx, tx); err != nil {
			return err
		}
		return errors.Join(
			eachRow(ctx, tx, `SELECT `+keyColumns+` FROM access_keys ORDER BY created, name`, func(rows *sql.Rows) error {
				k, err := scanKey(rows)
				if errors.Is(err, errRow) {
					ring.Damaged++
					return nil
				}
				ring.Keys = append(ring.Keys, k)
				return err
			}),
			eachRow(ctx, tx, `SELECT `+sessionColumns+` FROM sessions`, func(rows *sql.Rows) error {
				x, err := scanSession(rows)
				if errors.Is(err, errRow) {
					ring.Damaged++
					return nil
				}
				ring.Sessions = append(ring.Sessions, x)
				return err
			}))
	})
	if err != nil {
		return retrieve.Ring{}, fmt.Errorf("read the keys: %w", err)
	}
	return ring, nil
}

// The columns that scanKey and scanSession read.
const (
	keyColumns     = `id, name, digest, write, collections, created, expires, used, sum`
	sessionColumns = `digest, key, started, sum`
)

func scanKey(rows *sql.Rows) (k retrieve.Key, err error) {
	var digest []byte
	var collections string
	var created, expires, used, sum int64
	if err := scanned(rows.Scan(&k.ID, &k.Name, &digest, &k.Write, &collections, &created, &expires, &used, &sum)); err != nil {
		return k, err
	}
	k.Created, k.Expires, k.Used = retrieve.AtSeconds(created), retrieve.AtSeconds(expires), retrieve.AtSeconds(used)
	if copy(k.Digest[:], digest) != len(digest) || keySum(k, collections) != sum {
		return k, fmt.Errorf("key %q: %w", k.ID, errRow)
	}
	if err := json.Unmarshal([]byte(collections), &k.Collections); err != nil {
		return k, fmt.Errorf("key %q: %w: %w", k.ID, errRow, err)
	}
	return k, nil
}

func scanSession(rows *sql.Rows) (x retrieve.Session, err error) {
	var digest []byte
	var started, sum int64
	if err := scanned(rows.Scan(&digest, &x.Key, &started, &sum)); err != nil {
		return x, err
	}
	x.Started = retrieve.AtSeconds(started)
	if copy(x.Digest[:], digest) != len(digest) || sessionSum(x) != sum {
		return x, fmt.Errorf("a session: %w", errRow)
	}
	return x, nil
}

// eachRow calls f on every row of a query.
func eachRow(ctx context.Context, tx *sql.Tx, query string, f func(*sql.Rows) error) (err error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (r keyring) Add(ctx context.Context, k retrieve.Key) error {
	collections, err := json.Marshal(k.Collections)
	if err != nil {
		return fmt.Errorf("write down the collections of the key %s: %w", k.Name, err)
	}
	err = r.engine.update(ctx, func(tx *sql.Tx) error {
		yes, err := hasKeys(ctx, tx)
		if err != nil {
			return err
		}
		if !yes {
			if _, err := tx.ExecContext(ctx, keySchema); err != nil {
				return err
			}
		}
		var taken bool
		if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM access_keys WHERE name = ? OR id = ?)`, k.Name, k.ID).Scan(&taken); err != nil {
			return err
		}
		if taken {
			return retrieve.ErrKeyName
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO access_keys (id, name, digest, write, collections, created, expires, used, sum) VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?)`,
			k.ID, k.Name, k.Digest[:], k.Write, string(collections), retrieve.Seconds(k.Created), retrieve.Seconds(k.Expires), keySum(k, string(collections)))
		if err != nil {
			return err
		}
		return ringChanged(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("keep the key %s: %w", k.Name, err)
	}
	return nil
}

func (r keyring) Revoke(ctx context.Context, id string) error {
	err := r.engine.update(ctx, func(tx *sql.Tx) error {
		if yes, err := hasKeys(ctx, tx); err != nil || !yes {
			return errors.Join(err, notFound(yes))
		}
		result, err := tx.ExecContext(ctx, `DELETE FROM access_keys WHERE id = ?`, id)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, notFound(n > 0))
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE key = ?`, id); err != nil {
			return err
		}
		return ringChanged(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("revoke the key %s: %w", id, err)
	}
	return nil
}

func (r keyring) Used(ctx context.Context, id string, at time.Time) error {
	err := r.engine.update(ctx, func(tx *sql.Tx) error {
		if yes, err := hasKeys(ctx, tx); err != nil || !yes {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE access_keys SET used = max(used, ?) WHERE id = ?`, retrieve.Seconds(at), id)
		return err
	})
	if err != nil {
		return fmt.Errorf("note the use of the key %s: %w", id, err)
	}
	return nil
}

func (r keyring) Begin(ctx context.Context, x retrieve.Session) error {
	err := r.engine.update(ctx, func(tx *sql.Tx) error {
		if yes, err := hasKeys(ctx, tx); err != nil || !yes {
			return errors.Join(err, notFound(yes))
		}
		var there bool
		if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM access_keys WHERE id = ?)`, x.Key).Scan(&there); err != nil || !there {
			return errors.Join(err, notFound(there))
		}
		for _, forget := range []struct {
			which     string
			arguments []any
		}{
			{`started < ?`, []any{retrieve.Seconds(x.Started.Add(-retrieve.MaxSessionAge))}},
			{`digest IN (SELECT digest FROM sessions WHERE key = ? ORDER BY started DESC LIMIT -1 OFFSET ?)`, []any{x.Key, retrieve.MaxSessions - 1}},
			{`digest = ?`, []any{x.Digest[:]}},
		} {
			if _, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE `+forget.which, forget.arguments...); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO sessions (digest, key, started, sum) VALUES (?, ?, ?, ?)`, x.Digest[:], x.Key, retrieve.Seconds(x.Started), sessionSum(x)); err != nil {
			return err
		}
		return ringChanged(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("keep a session of the key %s: %w", x.Key, err)
	}
	return nil
}

func (r keyring) End(ctx context.Context, digest [32]byte) error {
	err := r.engine.update(ctx, func(tx *sql.Tx) error {
		if yes, err := hasKeys(ctx, tx); err != nil || !yes {
			return err
		}
		result, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE digest = ?`, digest[:])
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return err
		}
		return ringChanged(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("end a session: %w", err)
	}
	return nil
}

// keys checks the keys and the sessions.
func (v *verifier) keys() error {
	if yes, err := hasKeys(v.ctx, v.tx); err != nil || !yes {
		return err
	}
	err := v.each(`SELECT `+keyColumns+` FROM access_keys`, func(rows *sql.Rows) error {
		k, err := scanKey(rows)
		if errors.Is(err, errRow) {
			v.found("", "the key %q is damaged and lets nobody in: make it anew with 'ibid keys make'", k.Name)
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return v.each(`SELECT `+sessionColumns+` FROM sessions`, func(rows *sql.Rows) error {
		_, err := scanSession(rows)
		if errors.Is(err, errRow) {
			v.found("", "a browser's session is damaged and lets nobody in: its user gives the key again")
			return nil
		}
		return err
	})
}
