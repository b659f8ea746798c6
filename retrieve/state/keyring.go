package state

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"ibid/retrieve"
)

// Keyring returns the keyring in the same database.
func (s *Store) Keyring() retrieve.Keyring { return keyring{s} }

type keyring struct{ s *Store }

const (
	// settingRing is the name of the setting that has the keyring's revision.
	settingRing = "keyring"
	// ringLock is held while keys and sessions are changed.
	ringLock = "keyring"
)

func (t *tx) ringRevision() (revision int64) {
	if value := t.setting(settingRing); value != "" {
		_, err := fmt.Sscan(value, &revision)
		check(err)
	}
	return revision
}

// change runs f, which changes the keyring, under the keyring's lock, and increments its revision.
func (k keyring) change(ctx context.Context, f func(*tx)) error {
	return k.s.update(ctx, func(t *tx) {
		t.lock(ringLock)
		f(t)
		t.advanceRing()
	})
}

// advanceRing increments the keyring's revision.
func (t *tx) advanceRing() { t.set(settingRing, fmt.Sprint(t.ringRevision()+1)) }

func (k keyring) Revision(ctx context.Context) (revision int64, err error) {
	err = inTransaction(ctx, k.s.view, func(t *tx) { revision = t.ringRevision() }, "looking for new keys")
	return revision, err
}

const (
	keyColumns     = "id, name, digest, write, collections, created, expires, used"
	sessionColumns = "digest, key, started"
)

// permissions returns the permissions in the order of the bits of the column write.
func permissions(key *retrieve.Key) [4]*bool {
	return [4]*bool{&key.Write, &key.Relay, &key.Settings, &key.Public}
}

func scanKey(row scanner) (key retrieve.Key, err error) {
	var digest, collections []byte
	var bits, created, expires, used int64
	err = scanChecked(row, &key.ID, &key.Name, &digest, &bits, &collections, &created, &expires, &used)
	if err == nil && (copy(key.Digest[:], digest) != len(key.Digest) || json.Unmarshal(collections, &key.Collections) != nil) {
		err = errRow
	}
	for i, permit := range permissions(&key) {
		*permit = bits>>i&1 != 0
	}
	key.Created, key.Expires, key.Used = retrieve.AtSeconds(created), retrieve.AtSeconds(expires), retrieve.AtSeconds(used)
	return key, err
}

func scanSession(row scanner) (x retrieve.Session, err error) {
	var digest []byte
	var started int64
	err = scanChecked(row, &digest, &x.Key, &started)
	if err == nil && copy(x.Digest[:], digest) != len(x.Digest) {
		err = errRow
	}
	x.Started = retrieve.AtSeconds(started)
	return x, err
}

func (k keyring) Ring(ctx context.Context) (ring retrieve.Ring, err error) {
	err = k.s.view(ctx, func(t *tx) {
		keys, bad := rowsOf(t, scanKey, `SELECT `+keyColumns+`, sum FROM ibid.keys ORDER BY created, name`)
		sessions, worse := rowsOf(t, scanSession, `SELECT `+sessionColumns+`, sum FROM ibid.sessions`)
		ring = retrieve.Ring{Revision: t.ringRevision(), Keys: keys, Sessions: sessions, Damaged: len(bad) + len(worse)}
	})
	return ring, err
}

func (k keyring) Add(ctx context.Context, key retrieve.Key) error {
	return k.change(ctx, func(t *tx) {
		if value[int](t, `SELECT count(*) FROM ibid.keys WHERE name = ? OR id = ?`, key.Name, key.ID) > 0 {
			check(retrieve.ErrKeyName)
		}
		t.insertKey(key)
	})
}

// insertKey stores a key. If the key exists, it only updates the time of its last use.
func (t *tx) insertKey(key retrieve.Key) {
	collections, err := json.Marshal(key.Collections)
	check(err)
	bits := 0
	for i, permit := range permissions(&key) {
		if *permit {
			bits |= 1 << i
		}
	}
	t.insert("keys", keyColumns, "ON CONFLICT (id) DO UPDATE SET used = excluded.used, sum = excluded.sum", []any{key.ID, key.Name,
		key.Digest, bits, collections, retrieve.Seconds(key.Created), retrieve.Seconds(key.Expires), retrieve.Seconds(key.Used)})
}

func (k keyring) RecordUse(ctx context.Context, id string, at time.Time) error {
	return inTransaction(ctx, k.s.update, func(t *tx) {
		t.lock(ringLock) // another process may be revoking it
		key, err := scanKey(t.row(`SELECT `+keyColumns+`, sum FROM ibid.keys WHERE id = ?`, id))
		if err == nil && at.After(key.Used) { // neither revoked nor damaged
			key.Used = at
			t.insertKey(key)
		}
	}, "storing the use of the key %s", id)
}

func (k keyring) Revoke(ctx context.Context, id string) error {
	return k.change(ctx, func(t *tx) {
		if t.exec(`DELETE FROM ibid.keys WHERE id = ?`, id) == 0 {
			check(retrieve.ErrNotFound)
		}
		t.exec(`DELETE FROM ibid.sessions WHERE key = ?`, id)
	})
}

func (k keyring) BeginSession(ctx context.Context, x retrieve.Session) error {
	return k.change(ctx, func(t *tx) {
		var n int
		check(notFoundError(t.row(`SELECT 1 FROM ibid.keys WHERE id = ?`, x.Key).Scan(&n)))
		// SQLite has no OFFSET without a LIMIT.
		t.exec(`DELETE FROM ibid.sessions WHERE started < ? OR digest = ? OR digest IN (
			SELECT digest FROM ibid.sessions WHERE key = ? AND digest <> ? ORDER BY started DESC, digest LIMIT 1000000 OFFSET ?)`,
			retrieve.Seconds(x.Started.Add(-retrieve.MaxSessionAge)), x.Digest, x.Key, x.Digest, retrieve.MaxSessions-1)
		t.insert("sessions", sessionColumns, "", []any{x.Digest, x.Key, retrieve.Seconds(x.Started)})
	})
}

func (k keyring) EndSession(ctx context.Context, digest [32]byte) error {
	return k.change(ctx, func(t *tx) { t.exec(`DELETE FROM ibid.sessions WHERE digest = ?`, digest) })
}
