package weaviate

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ibid/retrieve"
)

// Keyring gives the keyring that is kept in the same cluster.
func (e *Engine) Keyring() retrieve.Keyring { return keyring{e} }

type keyring struct{ engine *Engine }

const (
	ringTask     = "ring"
	ringKind     = "ring"
	keyKind      = "key"
	sessionKind  = "session"
	keyGroup     = "keys"
	sessionGroup = "sessions"
)

// A key and a session are what is stored of them, with times in seconds of the
// Unix time, 0 for none.
type key struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Digest      []byte   `json:"digest"`
	Write       bool     `json:"write"`
	Collections []string `json:"collections"`
	Created     int64    `json:"created"`
	Expires     int64    `json:"expires"`
	Used        int64    `json:"used"`
}

type session struct {
	Digest  []byte `json:"digest"`
	Key     string `json:"key"`
	Started int64  `json:"started"`
}

// stored is how often the ring has changed, twice; it is odd while a change is
// being made, and stays so where the process that made it has ended.
func (r keyring) stored(ctx context.Context) (n int64, err error) {
	_, err = r.engine.wire.item(ctx, ringKind, "", &n)
	return n, err
}

func (r keyring) Revision(ctx context.Context) (int64, error) {
	n, err := r.stored(ctx)
	if err != nil {
		return 0, fmt.Errorf("look for new keys: %w", err)
	}
	return n, nil
}

// change does something to the ring while no other process does. What is going to
// change something says so before: until that has come to pass in all its parts,
// nobody who reads the ring relies on what was read.
func (r keyring) change(ctx context.Context, do func(ctx context.Context, begin func() error) error) error {
	return r.engine.exclusive(ctx, task{Name: ringTask}, func(ctx context.Context, _ *hold) (bool, error) {
		n, err := r.stored(ctx)
		if err != nil {
			return false, err
		}
		say := func(n int64) error { return r.engine.wire.putItem(ctx, item{kind: ringKind, data: n}) }
		begun := false
		err = do(ctx, func() error {
			begun = true
			return say(n | 1)
		})
		if err == nil && begun {
			err = say((n | 1) + 1)
		}
		return false, err
	})
}

func (r keyring) keys(ctx context.Context) ([]key, error) {
	keys, err := itemsOf[key](ctx, r.engine.wire, keyGroup)
	slices.SortFunc(keys, func(a, b key) int { return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Name, b.Name)) })
	return keys, err
}

func (r keyring) Ring(ctx context.Context) (retrieve.Ring, error) {
	ring, err := r.ring(ctx)
	if err != nil {
		return retrieve.Ring{}, fmt.Errorf("read the keys: %w", err)
	}
	return ring, nil
}

func (r keyring) ring(ctx context.Context) (ring retrieve.Ring, err error) {
	// What is read after its revision is no older than that.
	if ring.Revision, err = r.stored(ctx); err != nil {
		return ring, err
	}
	ring.Revision &^= 1 // it is read again while it is being changed
	sessions, err := itemsOf[json.RawMessage](ctx, r.engine.wire, sessionGroup)
	if err != nil {
		return ring, err
	}
	keys, err := r.keys(ctx)
	if err != nil {
		return ring, err
	}
	there := make(map[string]bool)
	for _, k := range keys {
		out := retrieve.Key{ID: k.ID, Name: k.Name, Write: k.Write, Collections: k.Collections, Created: retrieve.AtSeconds(k.Created), Expires: retrieve.AtSeconds(k.Expires), Used: retrieve.AtSeconds(k.Used)}
		if copy(out.Digest[:], k.Digest) != len(out.Digest) {
			ring.Damaged++
			continue
		}
		there[k.ID] = true
		ring.Keys = append(ring.Keys, out)
	}
	for _, data := range sessions {
		var s session
		out := retrieve.Session{}
		if json.Unmarshal(data, &s) != nil || copy(out.Digest[:], s.Digest) != len(out.Digest) {
			ring.Damaged++
			continue
		}
		// One whose key is being revoked is on its way out.
		if out.Key, out.Started = s.Key, retrieve.AtSeconds(s.Started); there[s.Key] {
			ring.Sessions = append(ring.Sessions, out)
		}
	}
	return ring, nil
}

func (r keyring) putKey(ctx context.Context, k key) error {
	return r.engine.wire.putItem(ctx, item{kind: keyKind, name: k.ID, group: keyGroup, data: k})
}

func (r keyring) Add(ctx context.Context, k retrieve.Key) error {
	err := r.change(ctx, func(ctx context.Context, begin func() error) error {
		keys, err := r.keys(ctx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(keys, func(o key) bool { return o.Name == k.Name || o.ID == k.ID }) {
			return retrieve.ErrKeyName
		}
		if err := begin(); err != nil {
			return err
		}
		return r.putKey(ctx, key{ID: k.ID, Name: k.Name, Digest: k.Digest[:], Write: k.Write, Collections: k.Collections, Created: retrieve.Seconds(k.Created), Expires: retrieve.Seconds(k.Expires)})
	})
	if err != nil {
		return fmt.Errorf("keep the key %s: %w", k.Name, err)
	}
	return nil
}

func (r keyring) Revoke(ctx context.Context, id string) error {
	err := r.change(ctx, func(ctx context.Context, begin func() error) error {
		var k key
		there, err := r.engine.wire.item(ctx, keyKind, id, &k)
		if err == nil && !there {
			err = retrieve.ErrNotFound
		}
		if err == nil {
			err = begin()
		}
		if err != nil {
			return err
		}
		if err := r.engine.wire.removeItems(ctx, keyKind, id); err != nil {
			return err
		}
		sessions, err := r.sessions(ctx)
		if err != nil {
			return err
		}
		return r.forget(ctx, sessions, func(s session) bool { return s.Key == id })
	})
	if err != nil {
		return fmt.Errorf("revoke the key %s: %w", id, err)
	}
	return nil
}

func (r keyring) sessions(ctx context.Context) ([]session, error) {
	return itemsOf[session](ctx, r.engine.wire, sessionGroup)
}

// forget removes the sessions that are to go.
func (r keyring) forget(ctx context.Context, sessions []session, goes func(session) bool) error {
	var names []string
	for _, s := range sessions {
		if goes(s) {
			names = append(names, hex.EncodeToString(s.Digest))
		}
	}
	return r.engine.wire.removeItems(ctx, sessionKind, names...)
}

func (r keyring) Used(ctx context.Context, id string, at time.Time) error {
	err := r.change(ctx, func(ctx context.Context, _ func() error) error {
		var k key
		there, err := r.engine.wire.item(ctx, keyKind, id, &k)
		if err != nil || !there || k.Used >= retrieve.Seconds(at) {
			return err
		}
		k.Used = retrieve.Seconds(at)
		return r.putKey(ctx, k)
	})
	if err != nil {
		return fmt.Errorf("note the use of the key %s: %w", id, err)
	}
	return nil
}

func (r keyring) Begin(ctx context.Context, x retrieve.Session) error {
	err := r.change(ctx, func(ctx context.Context, begin func() error) error {
		var k key
		there, err := r.engine.wire.item(ctx, keyKind, x.Key, &k)
		if err == nil && !there {
			err = retrieve.ErrNotFound
		}
		if err != nil {
			return err
		}
		sessions, err := r.sessions(ctx)
		if err != nil {
			return err
		}
		old := retrieve.Seconds(x.Started.Add(-retrieve.MaxSessionAge))
		own := slices.DeleteFunc(slices.Clone(sessions), func(s session) bool { return s.Key != x.Key || s.Started < old })
		slices.SortFunc(own, func(a, b session) int { return cmp.Compare(b.Started, a.Started) })
		tooMany := make(map[string]bool)
		for _, s := range own[min(len(own), retrieve.MaxSessions-1):] {
			tooMany[string(s.Digest)] = true
		}
		if err := begin(); err != nil {
			return err
		}
		if err := r.forget(ctx, sessions, func(s session) bool { return s.Started < old || tooMany[string(s.Digest)] }); err != nil {
			return err
		}
		return r.engine.wire.putItem(ctx, item{kind: sessionKind, name: hex.EncodeToString(x.Digest[:]), group: sessionGroup, data: session{x.Digest[:], x.Key, retrieve.Seconds(x.Started)}})
	})
	if err != nil {
		return fmt.Errorf("keep a session of the key %s: %w", x.Key, err)
	}
	return nil
}

func (r keyring) End(ctx context.Context, digest [32]byte) error {
	err := r.change(ctx, func(ctx context.Context, begin func() error) error {
		var s session
		name := hex.EncodeToString(digest[:])
		there, err := r.engine.wire.item(ctx, sessionKind, name, &s)
		if err != nil || !there {
			return err
		}
		if err := begin(); err != nil {
			return err
		}
		return r.engine.wire.removeItems(ctx, sessionKind, name)
	})
	if err != nil {
		return fmt.Errorf("end a session: %w", err)
	}
	return nil
}
