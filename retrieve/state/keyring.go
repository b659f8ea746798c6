package state

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"ibid/retrieve"
)

// Keyring returns the keyring in the same database.
func (s *Store) Keyring() retrieve.Keyring { return keyring{s} }

type keyring struct{ s *Store }

const (
	// settingRing is the setting of the keyring's revision.
	settingRing = "keyring"
	// ringLock is held while keys and sessions are changed.
	ringLock = "keyring"
)

func (t *tx) ringRevision() (int64, error) {
	value, err := t.setting(settingRing)
	if value == "" {
		return 0, err
	}
	return strconv.ParseInt(value, 10, 64)
}

// change runs f alone among all changes of the keyring, and makes the change
// known.
func (k keyring) change(ctx context.Context, f func(*tx) error) error {
	return k.s.update(ctx, func(t *tx) error {
		if err := t.lock(ringLock); err != nil {
			return err
		}
		if err := f(t); err != nil {
			return err
		}
		return t.ringChanged()
	})
}

// ringChanged makes a change of the keyring known.
func (t *tx) ringChanged() error {
	revision, err := t.ringRevision()
	if err != nil {
		return err
	}
	return t.set(settingRing, strconv.FormatInt(revision+1, 10))
}

func (k keyring) Revision(ctx context.Context) (revision int64, err error) {
	err = within(ctx, k.s.view, func(t *tx) error {
		revision, err = t.ringRevision()
		return err
	}, "looking for new keys")
	return revision, err
}

const (
	keyColumns     = "id, name, digest, write, collections, created, expires, used"
	sessionColumns = "digest, key, started"
)

// Bits of the column write.
const (
	permitWrite = 1 << iota
	permitRelay
	permitSettings
	onlyPublic
)

func scanKey(row scanner) (key retrieve.Key, err error) {
	var digest, collections []byte
	var permits, created, expires, used int64
	err = checked(row, &key.ID, &key.Name, &digest, &permits, &collections, &created, &expires, &used)
	if err == nil && (copy(key.Digest[:], digest) != len(key.Digest) || json.Unmarshal(collections, &key.Collections) != nil) {
		err = errRow
	}
	key.Write, key.Relay, key.Settings = permits&permitWrite != 0, permits&permitRelay != 0, permits&permitSettings != 0
	key.Public = permits&onlyPublic != 0
	key.Created, key.Expires, key.Used = retrieve.AtSeconds(created), retrieve.AtSeconds(expires), retrieve.AtSeconds(used)
	return key, err
}

func scanSession(row scanner) (x retrieve.Session, err error) {
	var digest []byte
	var started int64
	err = checked(row, &digest, &x.Key, &started)
	if err == nil && copy(x.Digest[:], digest) != len(x.Digest) {
		err = errRow
	}
	x.Started = retrieve.AtSeconds(started)
	return x, err
}

func (k keyring) Ring(ctx context.Context) (ring retrieve.Ring, err error) {
	err = k.s.view(ctx, func(t *tx) error {
		revision, err := t.ringRevision()
		if err != nil {
			return err
		}
		keys, bad, err := rowsOf(t, scanKey, `SELECT `+keyColumns+`, sum FROM ibid.keys ORDER BY created, name`)
		if err != nil {
			return err
		}
		sessions, worse, err := rowsOf(t, scanSession, `SELECT `+sessionColumns+`, sum FROM ibid.sessions`)
		ring = retrieve.Ring{Revision: revision, Keys: keys, Sessions: sessions, Damaged: len(bad) + len(worse)}
		return err
	})
	return ring, err
}

func (k keyring) Add(ctx context.Context, key retrieve.Key) error {
	return k.change(ctx, func(t *tx) error {
		var n int
		err := t.row(`SELECT count(*) FROM ibid.keys WHERE name = ? OR id = ?`, key.Name, key.ID).Scan(&n)
		if err == nil && n > 0 {
			err = retrieve.ErrKeyName
		}
		if err != nil {
			return err
		}
		return t.insertKey(key)
	})
}

// insertKey stores a key, or when it was used if it is stored.
func (t *tx) insertKey(key retrieve.Key) error {
	collections, err := json.Marshal(key.Collections)
	if err != nil {
		return err
	}
	permits := 0
	if key.Write {
		permits |= permitWrite
	}
	if key.Relay {
		permits |= permitRelay
	}
	if key.Settings {
		permits |= permitSettings
	}
	if key.Public {
		permits |= onlyPublic
	}
	return t.insert("keys", keyColumns, "ON CONFLICT (id) DO UPDATE SET used = excluded.used, sum = excluded.sum", []any{key.ID, key.Name,
		key.Digest, permits, collections, retrieve.Seconds(key.Created), retrieve.Seconds(key.Expires), retrieve.Seconds(key.Used)})
}

func (k keyring) Used(ctx context.Context, id string, at time.Time) error {
	return within(ctx, k.s.update, func(t *tx) error {
		if err := t.lock(ringLock); err != nil { // it may be being revoked
			return err
		}
		key, err := scanKey(t.row(`SELECT `+keyColumns+`, sum FROM ibid.keys WHERE id = ?`, id))
		if errors.Is(unlessWhole(err), retrieve.ErrNotFound) || err == nil && !at.After(key.Used) {
			return nil
		}
		if err != nil {
			return err
		}
		key.Used = at
		return t.insertKey(key)
	}, "storing the use of the key %s", id)
}

func (k keyring) Revoke(ctx context.Context, id string) error {
	return k.change(ctx, func(t *tx) error {
		n, err := t.exec(`DELETE FROM ibid.keys WHERE id = ?`, id)
		if err == nil && n == 0 {
			err = retrieve.ErrNotFound
		}
		if err != nil {
			return err
		}
		_, err = t.exec(`DELETE FROM ibid.sessions WHERE key = ?`, id)
		return err
	})
}

func (k keyring) Begin(ctx context.Context, x retrieve.Session) error {
	return k.change(ctx, func(t *tx) error {
		var n int
		if err := sought(t.row(`SELECT 1 FROM ibid.keys WHERE id = ?`, x.Key).Scan(&n)); err != nil {
			return err
		}
		// SQLite has no OFFSET without a LIMIT.
		_, err := t.exec(`DELETE FROM ibid.sessions WHERE started < ? OR digest = ? OR digest IN (
			SELECT digest FROM ibid.sessions WHERE key = ? AND digest <> ? ORDER BY started DESC, digest LIMIT 1000000 OFFSET ?)`,
			retrieve.Seconds(x.Started.Add(-retrieve.MaxSessionAge)), x.Digest, x.Key, x.Digest, retrieve.MaxSessions-1)
		if err != nil {
			return err
		}
		return t.insertSession(x)
	})
}

func (t *tx) insertSession(x retrieve.Session) error {
	return t.insert("sessions", sessionColumns, "", []any{x.Digest, x.Key, retrieve.Seconds(x.Started)})
}

func (k keyring) End(ctx context.Context, digest [32]byte) error {
	return k.change(ctx, func(t *tx) error {
		_, err := t.exec(`DELETE FROM ibid.sessions WHERE digest = ?`, digest)
		return err
	})
}
