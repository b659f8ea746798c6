package enginetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ibid/retrieve"
)

// Keyring runs the contract of the keyring against a backend.
func Keyring(t *testing.T, b Backend) {
	run(t, b, []contract{
		{"NoKey", testNoKey},
		{"Keys", testKeys},
		{"Used", testUsed},
		{"OneName", testOneName},
		{"Sessions", testSessions},
		{"SessionRoom", testSessionRoom},
		{"SessionMeetsRevoke", testSessionMeetsRevoke},
	})
}

// whole is a time in whole seconds, as keyrings store it.
func whole() time.Time { return time.Unix(1_700_000_000, 0) }

func session(key, token string, started time.Time) retrieve.Session {
	return retrieve.Session{Digest: sha256.Sum256([]byte(token)), Key: key, Started: started}
}

func testNoKey(t *testing.T, open func() retrieve.Store) {
	ctx, r := t.Context(), open().Keyring()
	ring, err := r.Ring(ctx)
	if revision, other := r.Revision(ctx); err != nil || other != nil || ring.Revision != revision || len(ring.Keys) != 0 || len(ring.Sessions) != 0 || ring.Damaged != 0 {
		t.Errorf("an empty ring: %+v, %v; revision %d, %v", ring, err, revision, other)
	}
	if err := r.Revoke(ctx, "k1"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("revoking what is not there: %v", err)
	}
	if err := r.Begin(ctx, session("k1", "s", whole())); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a session of no key: %v", err)
	}
	must(t, r.Used(ctx, "k1", whole()))
	must(t, r.End(ctx, [32]byte{}))
}

// ringOf returns the ring, and checks that all handles have the same.
func ringOf(t *testing.T, handles ...retrieve.Store) retrieve.Ring {
	t.Helper()
	var first retrieve.Ring
	for i, e := range handles {
		ring, err := e.Keyring().Ring(t.Context())
		must(t, err)
		slices.SortFunc(ring.Sessions, byDigest)
		if i == 0 {
			first = ring
		}
		if diff := cmp.Diff(first, ring); diff != "" {
			t.Errorf("the ring in two places (-first +second):\n%s", diff)
		}
		if revision, err := e.Keyring().Revision(t.Context()); err != nil || revision != ring.Revision {
			t.Errorf("the revision is %d, that of the ring %d: %v", revision, ring.Revision, err)
		}
	}
	return first
}

func byDigest(a, b retrieve.Session) int { return slices.Compare(a.Digest[:], b.Digest[:]) }

// grown returns the ring, and checks whether its revision has grown.
func grown(t *testing.T, what string, yes bool, since int64, handles ...retrieve.Store) retrieve.Ring {
	t.Helper()
	ring := ringOf(t, handles...)
	if ring.Revision > since != yes || ring.Revision < since {
		t.Errorf("after %s the revision is %d, before it was %d", what, ring.Revision, since)
	}
	return ring
}

func testKeys(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	e, other := open(), open()
	seen := ringOf(t, e, other).Revision
	keys := []retrieve.Key{
		{ID: "k1", Name: "the page", Digest: sha256.Sum256([]byte("one")), Write: true, Created: whole()},
		{ID: "k2", Name: "a bot: 'é\"", Digest: sha256.Sum256([]byte("two")), Collections: []string{"law", "ta'x"}, Created: whole().Add(time.Second), Expires: whole().Add(time.Hour)},
		{ID: "k3", Name: "another", Digest: sha256.Sum256([]byte("three")), Collections: []string{"law"}, Created: whole().Add(2 * time.Second), Expires: whole().Add(time.Minute)},
	}
	check := func(what string, changed bool, want ...retrieve.Key) {
		t.Helper()
		ring := grown(t, what, changed, seen, e, other)
		seen = ring.Revision
		if diff := cmp.Diff(want, ring.Keys); diff != "" {
			t.Errorf("the keys after %s (-want +got):\n%s", what, diff)
		}
	}
	must(t, e.Keyring().Add(ctx, keys[1]))
	check("adding", true, keys[1])
	must(t, other.Keyring().Add(ctx, keys[0]))
	check("adding elsewhere", true, keys[:2]...)
	must(t, e.Keyring().Add(ctx, keys[2]))
	check("adding a third", true, keys...)
	if err := other.Keyring().Add(ctx, retrieve.Key{ID: "k4", Name: keys[1].Name, Created: whole()}); !errors.Is(err, retrieve.ErrKeyName) {
		t.Errorf("a second key of a name: %v", err)
	}
	check("refusing a key", false, keys...)
	if err := e.Keyring().Revoke(ctx, "k4"); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("revoking what is not there: %v", err)
	}
	check("revoking nothing", false, keys...)
	must(t, other.Keyring().Revoke(ctx, "k1"))
	check("revoking elsewhere", true, keys[1:]...)
	must(t, e.Close())
	e = open()
	check("opening again", false, keys[1:]...)
	// The name can be used again.
	keys[0].ID, keys[0].Created = "k5", whole().Add(time.Minute)
	must(t, e.Keyring().Add(ctx, keys[0]))
	check("adding under the name of one revoked", true, keys[1], keys[2], keys[0])
}

func testUsed(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	e, other := open(), open()
	for _, id := range []string{"k1", "k2"} {
		must(t, e.Keyring().Add(ctx, retrieve.Key{ID: id, Name: id, Created: whole()}))
	}
	before := ringOf(t, e, other).Revision
	for _, after := range []time.Duration{time.Minute, time.Hour, time.Second} {
		must(t, other.Keyring().Used(ctx, "k2", whole().Add(after)))
	}
	must(t, e.Keyring().Used(ctx, "gone", whole()))
	ring := ringOf(t, e, other)
	if ring.Revision != before || len(ring.Keys) != 2 || !ring.Keys[0].Used.IsZero() || !ring.Keys[1].Used.Equal(whole().Add(time.Hour)) {
		t.Errorf("the ring of revision %d, before %d: %+v", ring.Revision, before, ring.Keys)
	}
}

// testOneName adds several keys with one name at once: one succeeds.
func testOneName(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	handles := []retrieve.Store{open(), open(), open()}
	for round := range 5 {
		var mu sync.Mutex
		var added []string
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				k := retrieve.Key{ID: fmt.Sprintf("%d-%d", round, i), Name: fmt.Sprint(round), Created: whole().Add(time.Duration(round) * time.Second)}
				switch err := handles[i%len(handles)].Keyring().Add(ctx, k); {
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
		if ring := ringOf(t, handles...); len(added) != 1 || len(ring.Keys) != round+1 || ring.Keys[round].ID != added[0] {
			t.Errorf("%q were added, there are %+v", added, ring.Keys)
		}
	}
}

func testSessions(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	e, other := open(), open()
	for _, id := range []string{"k1", "k2"} {
		must(t, e.Keyring().Add(ctx, retrieve.Key{ID: id, Name: id, Created: whole()}))
	}
	seen := ringOf(t, e, other).Revision
	check := func(what string, changed bool, want ...retrieve.Session) {
		t.Helper()
		ring := grown(t, what, changed, seen, e, other)
		seen = ring.Revision
		slices.SortFunc(want, byDigest)
		if diff := cmp.Diff(want, ring.Sessions); diff != "" {
			t.Errorf("the sessions after %s (-want +got):\n%s", what, diff)
		}
	}
	a, b, c := session("k1", "a", whole()), session("k1", "b", whole().Add(time.Minute)), session("k2", "c", whole())
	must(t, e.Keyring().Begin(ctx, a))
	check("beginning", true, a)
	must(t, other.Keyring().Begin(ctx, a))
	seen = ringOf(t, e, other).Revision
	check("beginning the same again", false, a)
	must(t, other.Keyring().Begin(ctx, b))
	must(t, other.Keyring().Begin(ctx, c))
	check("beginning elsewhere", true, a, b, c)
	must(t, other.Keyring().End(ctx, b.Digest))
	check("an end", true, a, c)
	must(t, e.Keyring().End(ctx, b.Digest))
	check("the same end again", false, a, c)
	must(t, e.Close())
	e = open()
	check("opening again", false, a, c)
	must(t, other.Keyring().Revoke(ctx, "k1"))
	check("revoking its key", true, c)
	if err := e.Keyring().Begin(ctx, a); !errors.Is(err, retrieve.ErrNotFound) {
		t.Errorf("a session of a revoked key: %v", err)
	}
	check("a refused session", false, c)
}

func testSessionRoom(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	e, other := open(), open()
	for _, id := range []string{"k1", "k2"} {
		must(t, e.Keyring().Add(ctx, retrieve.Key{ID: id, Name: id, Created: whole()}))
	}
	must(t, e.Keyring().Begin(ctx, session("k2", "first", whole())))
	const more = 5
	for n := range retrieve.MaxSessions + more {
		must(t, []retrieve.Store{e, other}[n%2].Keyring().Begin(ctx, session("k1", fmt.Sprint(n), whole().Add(time.Duration(n)*time.Second))))
	}
	count := map[string]int{}
	for _, s := range ringOf(t, e, other).Sessions {
		if count[s.Key]++; s.Key == "k1" && s.Started.Before(whole().Add(more*time.Second)) {
			t.Errorf("a session is kept that began at %v", s.Started)
		}
	}
	if count["k1"] != retrieve.MaxSessions || count["k2"] != 1 {
		t.Errorf("sessions are kept: %v", count)
	}
	last := session("k2", "last", whole().Add(retrieve.MaxSessionAge+time.Hour))
	must(t, other.Keyring().Begin(ctx, last))
	if got := ringOf(t, e, other).Sessions; len(got) != 1 || got[0].Digest != last.Digest {
		t.Errorf("after a month are kept: %+v", got)
	}
}

// testSessionMeetsRevoke begins a session while its key is revoked: in the end there
// is neither.
func testSessionMeetsRevoke(t *testing.T, open func() retrieve.Store) {
	ctx := t.Context()
	e, other := open(), open()
	for i := range 10 {
		key := fmt.Sprint(i)
		must(t, e.Keyring().Add(ctx, retrieve.Key{ID: key, Name: key, Created: whole()}))
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := other.Keyring().Begin(ctx, session(key, key, whole())); err != nil && !errors.Is(err, retrieve.ErrNotFound) {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if err := e.Keyring().Revoke(ctx, key); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if ring := ringOf(t, e, other); len(ring.Keys) != 0 || len(ring.Sessions) != 0 {
			t.Errorf("after revoking: %+v", ring)
		}
	}
}
