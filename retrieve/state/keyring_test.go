package state

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"ibid/data/datatest"
	"ibid/retrieve"
)

// keyTime returns a time in whole seconds, as keyrings store it.
func keyTime(after time.Duration) time.Time { return time.Unix(1_700_000_000, 0).Add(after) }

func session(key, token string, started time.Time) retrieve.Session {
	return retrieve.Session{Digest: sha256.Sum256([]byte(token)), Key: key, Started: started}
}

func addKeys(t *testing.T, s *Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		must(t, s.Keyring().Add(t.Context(), retrieve.Key{ID: id, Name: id, Created: keyTime(0)}))
	}
}

// ringOf returns the keyring, which must be equal through all handles.
func ringOf(t *testing.T, handles ...*Store) (first retrieve.Ring) {
	t.Helper()
	for i, s := range handles {
		ring, err := s.Keyring().Ring(t.Context())
		must(t, err)
		slices.SortFunc(ring.Sessions, byDigest)
		if i == 0 {
			first = ring
		}
		datatest.Same(t, "keyring of two handles", first, ring)
		if revision, err := s.Keyring().Revision(t.Context()); err != nil || revision != ring.Revision {
			t.Errorf("Revision = %d, of the keyring %d: %v", revision, ring.Revision, err)
		}
	}
	return first
}

func byDigest(a, b retrieve.Session) int { return slices.Compare(a.Digest[:], b.Digest[:]) }

func TestSessionRoom(t *testing.T) {
	onTwoHandles(t, func(t *testing.T, a, b *Store) {
		ctx := t.Context()
		addKeys(t, a, "k1", "k2")
		must(t, a.Keyring().BeginSession(ctx, session("k2", "first", keyTime(0))))
		var rows [][]any
		for n := range retrieve.MaxSessions {
			x := session("k1", fmt.Sprint(n), keyTime(time.Duration(n)*time.Second))
			rows = append(rows, []any{x.Digest, x.Key, x.Started.Unix()})
		}
		must(t, a.update(ctx, func(t *tx) { t.insert("sessions", sessionColumns, "", rows...) }))
		const more = 3
		for n := range more {
			must(t, []*Store{a, b}[n%2].Keyring().BeginSession(ctx, session("k1", fmt.Sprint("more ", n), keyTime(time.Hour))))
		}
		count := map[string]int{}
		for _, x := range ringOf(t, a, b).Sessions {
			if count[x.Key]++; x.Key == "k1" && x.Started.Before(keyTime(more*time.Second)) {
				t.Errorf("a session from before the limit is kept: %v", x.Started)
			}
		}
		if count["k1"] != retrieve.MaxSessions || count["k2"] != 1 {
			t.Errorf("sessions are kept: %v", count)
		}
		last := session("k2", "last", keyTime(retrieve.MaxSessionAge+2*time.Hour))
		must(t, b.Keyring().BeginSession(ctx, last))
		if got := ringOf(t, a, b).Sessions; len(got) != 1 || got[0].Digest != last.Digest {
			t.Errorf("sessions after a month = %+v", got)
		}
	})
}

// TestKeysTogether checks that if several keys with one name are added at once, one is
// stored, and that a session that begins while its key is revoked does not remain.
func TestKeysTogether(t *testing.T) {
	onTwoHandles(t, func(t *testing.T, a, b *Store) {
		ctx, handles := t.Context(), []*Store{a, b}
		for round := range 5 {
			var mu sync.Mutex
			var added []string
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					k := retrieve.Key{ID: fmt.Sprintf("%d-%d", round, i), Name: "name", Created: keyTime(0)}
					switch err := handles[i%2].Keyring().Add(ctx, k); {
					case err == nil:
						mu.Lock()
						added = append(added, k.ID)
						mu.Unlock()
					case !errors.Is(err, retrieve.ErrKeyName):
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if ring := ringOf(t, a, b); len(added) != 1 || len(ring.Keys) != 1 || ring.Keys[0].ID != added[0] {
				t.Fatalf("keys added = %q, stored = %+v", added, ring.Keys)
			}
			wg.Go(func() {
				err := b.Keyring().BeginSession(ctx, session(added[0], "s", keyTime(0)))
				if err != nil && !errors.Is(err, retrieve.ErrNotFound) {
					t.Error(err)
				}
			})
			wg.Go(func() {
				must(t, a.Keyring().Revoke(ctx, added[0]))
			})
			wg.Wait()
			if ring := ringOf(t, a, b); len(ring.Keys) != 0 || len(ring.Sessions) != 0 {
				t.Errorf("keyring after revoking = %+v", ring)
			}
		}
	})
}
