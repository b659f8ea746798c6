package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"ibid/retrieve"
)

// A holder is who sent a request, where keys guard the server.
type holder struct {
	key     *heldKey
	session *[sha256.Size]byte // nil for one who sent the key itself
	until   time.Time          // when its key or session ends by itself; zero: never
}

type holderOf struct{}

// holderFrom gives who sent the request of a context; nil where no keys guard
// the server, or the route is public.
func holderFrom(ctx context.Context) *holder {
	c, _ := ctx.Value(holderOf{}).(*holder)
	return c
}

// A heldKey is a key in use. What is counted of it outlives a reading of the ring.
type heldKey struct {
	retrieve.Key
	*usage
}

// usage is what is counted of a key.
type usage struct {
	rate *rate.Limiter

	mu    sync.Mutex // guards what follows
	asks  int        // in hand
	noted time.Time  // when its use was written down last
	from  []string   // addresses that have shown it, the latest last
}

// maxFrom is how many addresses are remembered for a key.
const maxFrom = 16

// shownFrom notes that the key was shown from an address.
func (u *usage) shownFrom(address string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if i := slices.Index(u.from, address); i >= 0 {
		u.from = slices.Delete(u.from, i, i+1)
	} else if len(u.from) == maxFrom {
		u.from = slices.Delete(u.from, 0, 1)
	}
	u.from = append(u.from, address)
}

func (u *usage) knows(address string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Contains(u.from, address)
}

// How soon a change of the keys is seen, by whichever process it was made.
const (
	// freshFor is how long a request relies on what was read before it.
	freshFor = time.Second
	// lookEvery is how often those are looked at that last longer.
	lookEvery = 2 * time.Second
	// trustFor is how long keys that cannot be read again are relied on.
	trustFor = 4 * time.Second
	// usedEvery is how exactly the last use of a key is kept.
	usedEvery = 10 * time.Minute
	// ringTimeout bounds one look at the store.
	ringTimeout = 2 * time.Second
)

// keys is the ring in memory, kept in step with the store.
type keys struct {
	store  retrieve.Keyring
	rate   rate.Limit // questions of one key a second
	burst  int
	logger *slog.Logger

	reading sync.Mutex // held while the store is read

	mu       sync.Mutex // guards what follows
	read     time.Time  // when the store was last found to be as it is here
	revision int64
	keys     map[string]*heldKey // by id
	sessions map[[sha256.Size]byte]retrieve.Session
	held     map[*hold]struct{}
	timer    *time.Timer // nil while nothing is held
}

// newKeys makes the ring of a store, from which it is read when it is needed;
// perMinute is how many questions one key may ask in a minute.
func newKeys(store retrieve.Keyring, perMinute int, logger *slog.Logger) *keys {
	return &keys{store: store, rate: rate.Limit(float64(perMinute) / 60), burst: perMinute, logger: logger, held: map[*hold]struct{}{}}
}

// refresh reads the ring when it was read more than an age ago. It fails when
// what is here is too old to rely on.
func (k *keys) refresh(ctx context.Context, age time.Duration) error {
	if k.age() < age {
		return nil
	}
	k.reading.Lock()
	defer k.reading.Unlock()
	if k.age() < age {
		return nil // another has read it meanwhile
	}
	// Others wait for it too, whether this request goes on or not.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ringTimeout)
	defer cancel()
	at := time.Now()
	err := k.load(ctx, at)
	if err == nil || k.age() < trustFor {
		return nil
	}
	return &Problem{Status: http.StatusServiceUnavailable, Code: "keys_unreadable", cause: err,
		Detail: "the server cannot read who may use it: try again, and if it stays so look at the server's log"}
}

// age is how long ago the ring was read.
func (k *keys) age() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys == nil {
		return 1<<63 - 1
	}
	return time.Since(k.read)
}

func (k *keys) load(ctx context.Context, at time.Time) error {
	revision, err := k.store.Revision(ctx)
	if err != nil {
		return err
	}
	k.mu.Lock()
	same := k.keys != nil && k.revision == revision
	if same {
		k.read = at
	}
	k.mu.Unlock()
	if same {
		return nil
	}
	ring, err := k.store.Ring(ctx)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.keys
	k.read, k.revision = at, ring.Revision
	k.keys, k.sessions = map[string]*heldKey{}, map[[sha256.Size]byte]retrieve.Session{}
	for _, key := range ring.Keys {
		held := &heldKey{Key: key}
		if old := before[key.ID]; old != nil {
			held.usage = old.usage
		} else {
			held.usage = &usage{rate: rate.NewLimiter(k.rate, k.burst), noted: key.Used}
		}
		k.keys[key.ID] = held
	}
	for _, s := range ring.Sessions {
		k.sessions[s.Digest] = s
	}
	return nil
}

// byKey gives who shows a key, nil if there is no such key. An expired one is
// an error.
func (k *keys) byKey(key string) (*holder, error) {
	digest := sha256.Sum256([]byte(key))
	k.mu.Lock()
	defer k.mu.Unlock()
	var found *heldKey
	for _, held := range k.keys {
		if subtle.ConstantTimeCompare(held.Digest[:], digest[:]) == 1 {
			found = held
		}
	}
	if found == nil {
		return nil, nil
	}
	c := &holder{key: found, until: found.Expires}
	return c, c.expired(time.Now())
}

// bySession gives who shows a session's token, nil if there is no such session.
func (k *keys) bySession(token string) (*holder, error) {
	digest := sha256.Sum256([]byte(token))
	k.mu.Lock()
	defer k.mu.Unlock()
	// Found by a digest of what is shown, of which nobody chooses the bytes.
	s, ok := k.sessions[digest]
	held := k.keys[s.Key]
	if !ok || held == nil {
		return nil, nil
	}
	c := &holder{key: held, session: &digest, until: s.Started.Add(retrieve.MaxSessionAge)}
	if !held.Expires.IsZero() && held.Expires.Before(c.until) {
		c.until = held.Expires
	}
	return c, c.expired(time.Now())
}

func (w *holder) expired(now time.Time) error {
	if w.until.IsZero() || now.Before(w.until) {
		return nil
	}
	return keyExpired(w.key.Name)
}

func keyExpired(name string) *Problem {
	return unauthorized("key_expired", "the key %q, or the session begun with it, has expired: make another with 'ibid keys make', or give the key again", name)
}

// ended says why a holder may no longer go on, if that is so. k.mu is held.
func (k *keys) ended(c *holder, now time.Time) error {
	held := k.keys[c.key.ID]
	gone := held == nil || held.Digest != c.key.Digest
	if c.session != nil && !gone {
		_, there := k.sessions[*c.session]
		gone = !there
	}
	if gone {
		return unauthorized("key_revoked", "the key was revoked, or the session ended, while this was going on")
	}
	if !held.Expires.IsZero() && !now.Before(held.Expires) {
		return keyExpired(held.Name)
	}
	return c.expired(now)
}

// unauthorized refuses who shows no key, or one that does not let in.
func unauthorized(code, format string, args ...any) *Problem {
	return &Problem{Status: http.StatusUnauthorized, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// A hold is work that goes on only as long as its holder's key.
type hold struct {
	by     *holder
	cancel context.CancelCauseFunc
}

// while gives a context that ends when its holder's key is revoked or expires,
// or its session ends, with the reason as its cause. For work that outlives its
// request, give a context without the request's cancellation.
func (k *keys) while(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	h := &hold{holderFrom(ctx), cancel}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held[h] = struct{}{}
	if k.timer == nil {
		k.timer = time.AfterFunc(lookEvery, k.look)
	}
	return ctx, func() {
		k.mu.Lock()
		delete(k.held, h)
		k.mu.Unlock()
		cancel(nil)
	}
}

// look ends what goes on with keys that have ended, as long as anything does.
func (k *keys) look() {
	unreadable := k.refresh(context.Background(), freshFor)
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for h := range k.held {
		if err := errors.Join(unreadable, k.ended(h.by, now)); err != nil {
			h.cancel(err)
			delete(k.held, h)
		}
	}
	if len(k.held) == 0 {
		k.timer = nil
		return
	}
	k.timer.Reset(lookEvery)
}

// used notes the use of a key, now and then.
func (k *keys) used(ctx context.Context, key *heldKey) {
	now := time.Now()
	key.mu.Lock()
	due := now.Sub(key.noted) >= usedEvery
	if due {
		key.noted = now
	}
	key.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ringTimeout)
	defer cancel()
	if err := k.store.Used(ctx, key.ID, now); err != nil && !errors.Is(err, context.Canceled) {
		k.logger.WarnContext(ctx, "the use of a key was not noted", "key", key.ID, "error", err)
	}
}
