package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ibid/retrieve"
)

// Keyring gives the keyring that is kept in the same database.
func (e *Engine) Keyring() retrieve.Keyring { return keyring{e} }

type keyring struct{ engine *Engine }

// change runs f alone among all that change the ring. Where f says that it has
// changed something that is made known.
func (r keyring) change(ctx context.Context, f func(*session) (changed bool, err error)) error {
	return r.engine.update(ctx, func(s *session) error {
		if err := r.engine.lock(ctx, s, ringLock); err != nil {
			return err
		}
		changed, err := f(s)
		if err != nil || !changed {
			return err
		}
		_, err = s.exec(ctx, `UPDATE ibid.ring SET revision = revision + 1`)
		return err
	})
}

func (r keyring) Revision(ctx context.Context) (revision int64, err error) {
	err = r.engine.view(ctx, func(s *session) error { return ringRevision(ctx, s, &revision) })
	if err != nil {
		return 0, fmt.Errorf("look for new keys: %w", err)
	}
	return revision, nil
}

func ringRevision(ctx context.Context, s *session, revision *int64) error {
	return s.row(ctx, `SELECT revision FROM ibid.ring`).Scan(revision)
}

func (r keyring) Ring(ctx context.Context) (ring retrieve.Ring, err error) {
	err = r.engine.view(ctx, func(s *session) error {
		ring = retrieve.Ring{}
		if err := ringRevision(ctx, s, &ring.Revision); err != nil {
			return err
		}
		rows, err := s.query(ctx, `SELECT id, name, digest, write, collections, created, expires, used FROM ibid.keys ORDER BY created, name`)
		if err != nil {
			return err
		}
		var id, name, digest, collections []byte
		var write bool
		var created, expires, used, started int64
		_, err = pgx.ForEachRow(rows, []any{&id, &name, &digest, &write, &collections, &created, &expires, &used}, func() error {
			k := retrieve.Key{ID: string(id), Name: string(name), Write: write, Created: retrieve.AtSeconds(created), Expires: retrieve.AtSeconds(expires), Used: retrieve.AtSeconds(used)}
			if copy(k.Digest[:], digest) != len(k.Digest) || json.Unmarshal(collections, &k.Collections) != nil {
				ring.Damaged++
				return nil
			}
			ring.Keys = append(ring.Keys, k)
			return nil
		})
		if err != nil {
			return err
		}
		if rows, err = s.query(ctx, `SELECT digest, key, started FROM ibid.sessions`); err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, []any{&digest, &id, &started}, func() error {
			x := retrieve.Session{Key: string(id), Started: retrieve.AtSeconds(started)}
			if copy(x.Digest[:], digest) != len(x.Digest) {
				ring.Damaged++
				return nil
			}
			ring.Sessions = append(ring.Sessions, x)
			return nil
		})
		return err
	})
	if err != nil {
		return retrieve.Ring{}, fmt.Errorf("read the keys: %w", err)
	}
	return ring, nil
}

func (r keyring) Add(ctx context.Context, k retrieve.Key) error {
	collections, err := json.Marshal(k.Collections)
	if err == nil {
		err = r.change(ctx, func(s *session) (bool, error) {
			added, err := s.exec(ctx, `INSERT INTO ibid.keys (id, name, digest, write, collections, created, expires, used) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (name) DO NOTHING`,
				[]byte(k.ID), []byte(k.Name), k.Digest[:], k.Write, collections, retrieve.Seconds(k.Created), retrieve.Seconds(k.Expires), retrieve.Seconds(k.Used))
			if err == nil && added == 0 {
				err = retrieve.ErrKeyName
			}
			return true, err
		})
	}
	if err != nil {
		return fmt.Errorf("keep the key %q: %w", k.Name, err)
	}
	return nil
}

func (r keyring) Revoke(ctx context.Context, id string) error {
	err := r.change(ctx, func(s *session) (bool, error) {
		gone, err := s.exec(ctx, `DELETE FROM ibid.keys WHERE id = $1`, []byte(id))
		if err == nil && gone == 0 {
			err = retrieve.ErrNotFound
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("revoke the key %s: %w", id, err)
	}
	return nil
}

func (r keyring) Used(ctx context.Context, id string, at time.Time) error {
	err := r.engine.update(ctx, func(s *session) error {
		_, err := s.exec(ctx, `UPDATE ibid.keys SET used = $2 WHERE id = $1 AND used < $2`, []byte(id), retrieve.Seconds(at))
		return err
	})
	if err != nil {
		return fmt.Errorf("note the use of the key %s: %w", id, err)
	}
	return nil
}

func (r keyring) Begin(ctx context.Context, x retrieve.Session) error {
	err := r.change(ctx, func(s *session) (bool, error) {
		var there bool
		if err := s.row(ctx, `SELECT EXISTS (SELECT 1 FROM ibid.keys WHERE id = $1)`, []byte(x.Key)).Scan(&there); err != nil {
			return false, err
		}
		if !there {
			return false, retrieve.ErrNotFound
		}
		_, err := s.exec(ctx, `DELETE FROM ibid.sessions WHERE started < $1 OR digest = $2 OR digest IN (
			SELECT digest FROM ibid.sessions WHERE key = $3 AND digest <> $2 ORDER BY started DESC, digest OFFSET $4)`,
			retrieve.Seconds(x.Started.Add(-retrieve.MaxSessionAge)), x.Digest[:], []byte(x.Key), retrieve.MaxSessions-1)
		if err != nil {
			return false, err
		}
		_, err = s.exec(ctx, `INSERT INTO ibid.sessions (digest, key, started) VALUES ($1, $2, $3)`, x.Digest[:], []byte(x.Key), retrieve.Seconds(x.Started))
		return true, err
	})
	if err != nil {
		return fmt.Errorf("keep a session of the key %s: %w", x.Key, err)
	}
	return nil
}

func (r keyring) End(ctx context.Context, digest [32]byte) error {
	err := r.change(ctx, func(s *session) (bool, error) {
		gone, err := s.exec(ctx, `DELETE FROM ibid.sessions WHERE digest = $1`, digest[:])
		return gone > 0, err
	})
	if err != nil {
		return fmt.Errorf("end a session: %w", err)
	}
	return nil
}
