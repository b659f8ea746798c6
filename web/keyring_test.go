package web

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ibid/answer"
	"ibid/retrieve"
)

// ring is a Keyring in memory.
type ring struct {
	mu       sync.Mutex
	revision int64
	keys     map[string]retrieve.Key
	sessions map[[32]byte]retrieve.Session
	broken   error // returned by every call
}

func newRing() *ring {
	return &ring{keys: map[string]retrieve.Key{}, sessions: map[[32]byte]retrieve.Session{}}
}

// make adds a key whose name is also its id, and returns the key itself.
func (r *ring) make(t testing.TB, name string, change func(*retrieve.Key)) string {
	t.Helper()
	secret, digest := NewKey()
	k := retrieve.Key{ID: name, Name: name, Digest: digest, Created: time.Now()}
	if change != nil {
		change(&k)
	}
	must(t, r.Add(t.Context(), k))
	return secret
}

// writer makes a key that may write.
func writer(k *retrieve.Key) { k.Write = true }

// writingOnlyIn returns a change to a key, so that it may write in some collections.
func writingOnlyIn(collections ...string) func(*retrieve.Key) {
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

func (r *ring) RecordUse(_ context.Context, id string, at time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k, ok := r.keys[id]; ok {
		k.Used = at
		r.keys[id] = k
	}
	return r.broken
}

func (r *ring) BeginSession(_ context.Context, s retrieve.Session) error {
	return r.change(func() error {
		if _, ok := r.keys[s.Key]; !ok {
			return fmt.Errorf("key %q: %w", s.Key, retrieve.ErrNotFound)
		}
		r.sessions[s.Digest] = s
		return nil
	})
}

func (r *ring) EndSession(_ context.Context, digest [32]byte) error {
	return r.change(func() error { delete(r.sessions, digest); return nil })
}

func (r *ring) breakDown() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = errors.New("the disk is gone: ibid_CANARY")
}

func digestOf(s string) [32]byte { return sha256.Sum256([]byte(s)) }

// TestRevokedWhile checks that an answer and its work end with the reason within five seconds
// after the end of its key or session.
func TestRevokedWhile(t *testing.T) {
	for name, tt := range map[string]struct {
		session bool
		end     func(*testing.T, *keyed)
		code    string
	}{
		"key revoked":          {false, func(t *testing.T, k *keyed) { _ = k.ring.Revoke(t.Context(), "writer") }, "key_revoked"},
		"key revoked, session": {true, func(t *testing.T, k *keyed) { _ = k.ring.Revoke(t.Context(), "writer") }, "key_revoked"},
		"session left": {true, func(t *testing.T, k *keyed) { k.send(t, "POST", "/key/leave", "", "Cookie: "+k.cookie+"="+k.session) },
			"key_revoked"},
		"key expired":           {false, func(t *testing.T, k *keyed) { k.expire(t, "writer", time.Second) }, "key_expired"},
		"key expired, session":  {true, func(t *testing.T, k *keyed) { k.expire(t, "writer", time.Second) }, "key_expired"},
		"store cannot be read":  {false, func(_ *testing.T, k *keyed) { k.ring.breakDown() }, "keys_unreadable"},
		"nothing has happened":  {false, func(*testing.T, *keyed) {}, ""},
		"another key's revoked": {true, func(t *testing.T, k *keyed) { _ = k.ring.Revoke(t.Context(), "reader") }, ""},
	} {
		for _, accept := range []string{"text/event-stream", "application/json"} {
			t.Run(name+", "+accept, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					stopped := make(chan time.Time, 1)
					k := newKeyed(t, func(o *Options) {
						o.Asker = asker(func(ctx context.Context, yield func(answer.Event, error) bool) {
							yield(answer.Text{Text: "CANARYBEFORE"}, nil)
							select {
							case <-ctx.Done():
								stopped <- time.Now()
								_ = yield(answer.Text{Text: "CANARYAFTER"}, nil) && yield(answer.Incomplete{Reason: "stopped"}, nil)
							case <-time.After(time.Minute):
								stopped <- time.Now()
								yield(answer.Usage{}, nil)
							}
						})
					})
					header := "Authorization: Bearer " + k.write
					if tt.session {
						header = "Cookie: " + k.cookie + "=" + k.session
					}
					replied := make(chan *httptest.ResponseRecorder)
					go func() {
						replied <- k.send(t, "POST", "/api/ask", `{"question":"Why?"}`, header, "Accept: "+accept)
					}()
					time.Sleep(9 * time.Second)
					began := time.Now()
					tt.end(t, k)
					at, w := <-stopped, <-replied
					if tt.code == "" {
						if at.Sub(began) < 50*time.Second || w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"code"`) {
							t.Errorf("answer ended after %v: %d %s", at.Sub(began), w.Code, w.Body)
						}
						return
					}
					if took := at.Sub(began); took > 5*time.Second && tt.code != "keys_unreadable" || took > 8*time.Second {
						t.Errorf("answer ended after %v", took)
					}
					body := w.Body.String()
					if !strings.Contains(body, `"code":"`+tt.code+`"`) || strings.Contains(body, "CANARYAFTER") {
						t.Errorf("reply: %d %s", w.Code, body)
					}
					if accept == "application/json" && w.Code == http.StatusOK {
						t.Errorf("status = %d: %s", w.Code, body)
					}
					if accept != "application/json" && !strings.Contains(body, "event: error\n") {
						t.Errorf("stream = %s, want an error event", body)
					}
				})
			})
		}
	}
}

// expire sets when a key expires.
func (k *keyed) expire(t *testing.T, id string, in time.Duration) {
	t.Helper()
	err := k.ring.change(func() error {
		key := k.ring.keys[id]
		key.Expires = time.Now().Add(in)
		k.ring.keys[id] = key
		return nil
	})
	must(t, err)
}

// TestRevokedBackground checks that a background run ends with its key.
func TestRevokedBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := make(chan time.Time, 1)
		k := newKeyed(t, func(o *Options) {
			o.Asker = asker(func(ctx context.Context, yield func(answer.Event, error) bool) {
				yield(answer.Text{Text: "First."}, nil)
				<-ctx.Done()
				stopped <- time.Now()
				yield(nil, ctx.Err())
			})
		})
		if w := k.send(t, "POST", "/api/runs", `{"question":"Why?"}`, "Authorization: Bearer "+k.write); w.Code != http.StatusAccepted {
			t.Fatalf("status = %d, want 202: %s", w.Code, w.Body)
		}
		time.Sleep(9 * time.Second)
		began := time.Now()
		must(t, k.ring.Revoke(t.Context(), "writer"))
		if took := (<-stopped).Sub(began); took > 5*time.Second {
			t.Errorf("run ended after %v, want at most 5s", took)
		}
		synctest.Wait()
	})
}

// TestUnreadableKeys checks that no key works while the store cannot be read,
// and that replies do not contain its errors.
func TestUnreadableKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyed(t, nil)
		k.ring.breakDown()
		header := "Authorization: Bearer " + k.write
		if w := k.send(t, "GET", "/api/documents", "", header); w.Code != http.StatusOK {
			t.Errorf("keys read just before: status = %d, want 200", w.Code)
		}
		time.Sleep(trustFor)
		w := k.send(t, "GET", "/api/documents", "", header)
		if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "CANARY") {
			t.Errorf("unreadable keys: status = %d, want 503: %s", w.Code, w.Body)
		}
		if w := k.send(t, "GET", "/healthz", ""); w.Code != http.StatusOK {
			t.Errorf("/healthz: status = %d, want 200", w.Code)
		}
	})
}

func TestNewKey(t *testing.T) {
	form := regexp.MustCompile(`^ibid_[0-9A-Za-z]{49}$`)
	seen := map[string]bool{}
	for range 1000 {
		key, digest := NewKey()
		if !form.MatchString(key) || seen[key] || digest != sha256.Sum256([]byte(key)) || checkKey(key) != nil {
			t.Fatalf("%q is not a new key: %v", key, checkKey(key))
		}
		seen[key] = true
	}
	key, _ := NewKey()
	for at := range len(key) { // each mistake of one character is detected
		other := "0"
		if key[at] == '0' {
			other = "1"
		}
		if wrong := key[:at] + other + key[at+1:]; !errors.Is(checkKey(wrong), errNoKey) {
			t.Errorf("checkKey(%q) accepts a mistyped %q", wrong, key)
		}
	}
	for _, wrong := range []string{"", "ibid_", key[:len(key)-1], key + "0", " " + key, strings.ToUpper(key), strings.ToLower(key),
		strings.TrimPrefix(key, "ibid_"), "\x00" + key[1:]} {
		if checkKey(wrong) == nil {
			t.Errorf("checkKey(%q) = nil, want an error", wrong)
		}
	}
}
