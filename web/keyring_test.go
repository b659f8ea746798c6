package web

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ibid/retrieve"
)

// ring is a Keyring held in memory.
type ring struct {
	mu       sync.Mutex
	revision int64
	keys     map[string]retrieve.Key
	sessions map[[32]byte]retrieve.Session
	broken   error // of every call
}

func newRing() *ring {
	return &ring{keys: map[string]retrieve.Key{}, sessions: map[[32]byte]retrieve.Session{}}
}

// make adds a key under a name, which is its id too, and gives the key itself.
func (r *ring) make(t testing.TB, name string, change func(*retrieve.Key)) string {
	t.Helper()
	secret, digest := NewKey()
	k := retrieve.Key{ID: name, Name: name, Digest: digest, Created: time.Now()}
	if change != nil {
		change(&k)
	}
	if err := r.Add(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	return secret
}

// writer and only change a key that is made.
func writer(k *retrieve.Key) { k.Write = true }

func only(collections ...string) func(*retrieve.Key) {
	return func(k *retrieve.Key) { k.Write, k.Collections = true, collections }
}

func (r *ring) change(f func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return r.broken
	}
	r.revision++
	return f()
}

func (r *ring) Revision(context.Context) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.revision, r.broken
}

func (r *ring) Ring(context.Context) (retrieve.Ring, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := slices.SortedFunc(maps.Values(r.keys), func(a, b retrieve.Key) int { return strings.Compare(a.ID, b.ID) })
	return retrieve.Ring{Revision: r.revision, Keys: keys, Sessions: slices.Collect(maps.Values(r.sessions))}, r.broken
}

func (r *ring) Add(_ context.Context, k retrieve.Key) error {
	return r.change(func() error {
		if _, taken := r.keys[k.ID]; taken {
			return retrieve.ErrKeyName
		}
		r.keys[k.ID] = k
		return nil
	})
}

func (r *ring) Revoke(_ context.Context, id string) error {
	return r.change(func() error {
		if _, ok := r.keys[id]; !ok {
			return fmt.Errorf("key %q: %w", id, retrieve.ErrNotFound)
		}
		delete(r.keys, id)
		maps.DeleteFunc(r.sessions, func(_ [32]byte, s retrieve.Session) bool { return s.Key == id })
		return nil
	})
}

func (r *ring) Used(_ context.Context, id string, at time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k, ok := r.keys[id]; ok {
		k.Used = at
		r.keys[id] = k
	}
	return r.broken
}

func (r *ring) Begin(_ context.Context, s retrieve.Session) error {
	return r.change(func() error {
		if _, ok := r.keys[s.Key]; !ok {
			return fmt.Errorf("key %q: %w", s.Key, retrieve.ErrNotFound)
		}
		r.sessions[s.Digest] = s
		return nil
	})
}

func (r *ring) End(_ context.Context, digest [32]byte) error {
	return r.change(func() error { delete(r.sessions, digest); return nil })
}

func (r *ring) breakDown() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = errors.New("the disk is gone: ibid_CANARY")
}

func digestOf(s string) [32]byte { return sha256.Sum256([]byte(s)) }
