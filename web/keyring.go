package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"time"

	"ibid/retrieve"
)

// A holder is the caller of a request to a server with keys.
type holder struct {
	key     *retrieve.Key
	digest  [sha256.Size]byte // of the key or, if session is set, of a session's token
	session bool
	expires time.Time // when its key or session expires; zero: never
	// person is set if a proxy named the caller, who has no key in the keyring. writes are
	// then the collections that the caller may change; nil means all.
	person bool
	writes []string
	// user is the user that a proxy named in addition to a key, if any
	user string
}

type holderKey struct{}

// holderFrom returns the caller of the request that a context belongs to. It returns nil if
// no keys guard the server or the route is public.
func holderFrom(ctx context.Context) *holder {
	h, _ := ctx.Value(holderKey{}).(*holder)
	return h
}

// How soon a change of the keys by another process takes effect.
const (
	freshFor    = time.Second      // how old the keyring may be when a request begins
	checkEvery  = 2 * time.Second  // between checks of the keys of longer requests
	trustFor    = 4 * time.Second  // how long keys remain valid while the store is unreachable
	noteEvery   = 10 * time.Minute // precision of a key's last use
	ringTimeout = 2 * time.Second  // for one read of the store
)

// A keyring holds the store's keys and sessions in memory. It is read on demand.
type keyring struct {
	store  retrieve.Keyring
	logger *slog.Logger

	reading sync.Mutex // held while the store is read

	mu       sync.Mutex // guards the fields below
	read     time.Time  // when the keyring was last known to equal the store
	revision int64
	keys     map[string]*retrieve.Key // by id
	sessions map[[sha256.Size]byte]retrieve.Session
	used     map[string]time.Time // when the last use of each key was stored, by id
}

// refresh reads the store unless the keyring is younger than maxAge. It fails if the keyring
// is too old to rely on.
func (k *keyring) refresh(ctx context.Context, maxAge time.Duration) error {
	if k.age() < maxAge {
		return nil
	}
	k.reading.Lock()
	defer k.reading.Unlock()
	if k.age() < maxAge {
		return nil // another request has just read it
	}
	// Other requests wait for this read, so it does not end with this request.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ringTimeout)
	defer cancel()
	err := k.load(ctx, time.Now())
	if err == nil || k.age() < trustFor {
		return nil
	}
	return &Problem{Status: http.StatusServiceUnavailable, Code: "keys_unreadable", cause: err,
		Detail: "the server cannot read its keys: ask again later; the server's log has the reason"}
}

func (k *keyring) age() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys == nil {
		return 1<<63 - 1
	}
	return time.Since(k.read)
}

func (k *keyring) load(ctx context.Context, at time.Time) error {
	revision, err := k.store.Revision(ctx)
	if err != nil {
		return err
	}
	if k.keys != nil && k.revision == revision { // the keyring changes only under k.reading
		k.mu.Lock()
		defer k.mu.Unlock()
		k.read = at
		return nil
	}
	ring, err := k.store.Ring(ctx)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.read, k.revision = at, ring.Revision
	k.keys, k.sessions, k.used = map[string]*retrieve.Key{}, map[[sha256.Size]byte]retrieve.Session{}, map[string]time.Time{}
	for _, key := range ring.Keys {
		k.keys[key.ID], k.used[key.ID] = &key, key.Used
	}
	for _, s := range ring.Sessions {
		k.sessions[s.Digest] = s
	}
	return nil
}

// find returns the holder of a key or of a session's token, or nil if it is unknown. If it has
// expired, find returns the holder and an error.
func (k *keyring) find(digest [sha256.Size]byte, session bool) (*holder, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := &holder{digest: digest, session: session}
	if session {
		// A map lookup leaks no useful timing, since callers cannot choose the bytes of a digest.
		s := k.sessions[digest]
		h.key, h.expires = k.keys[s.Key], s.Started.Add(retrieve.MaxSessionAge)
	} else {
		for _, held := range k.keys {
			if subtle.ConstantTimeCompare(held.Digest[:], digest[:]) == 1 {
				h.key, h.expires = held, held.Expires
			}
		}
	}
	if h.key == nil {
		return nil, nil
	}
	if session && !h.key.Expires.IsZero() && h.key.Expires.Before(h.expires) {
		h.expires = h.key.Expires
	}
	if !h.expires.IsZero() && !time.Now().Before(h.expires) {
		return h, unauthorized("key_expired", "the key %q, or the session begun with it, has expired: make another with 'ibid keys make', or "+
			"enter the key again", h.key.Name)
	}
	return h, nil
}

func unauthorized(code, format string, args ...any) *Problem {
	return &Problem{Status: http.StatusUnauthorized, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// withRevocation returns a context that is canceled when its holder's key is revoked or
// expires, or its session ends, with the reason as its cause. For work that outlives its
// request, pass a context without the request's cancellation.
func (k *keyring) withRevocation(ctx context.Context) (context.Context, context.CancelFunc) {
	by := holderFrom(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	if by.person {
		return ctx, func() { cancel(nil) } // the proxy identifies the caller in each request
	}
	var check func()
	check = func() {
		if ctx.Err() != nil {
			return
		}
		err := k.refresh(ctx, freshFor)
		if err == nil {
			var still *holder
			if still, err = k.find(by.digest, by.session); still == nil {
				err = unauthorized("key_revoked", "the key was revoked, or the session ended, during the request")
			}
		}
		if err != nil {
			cancel(err)
		} else {
			time.AfterFunc(checkEvery, check)
		}
	}
	first := time.AfterFunc(checkEvery, check)
	return ctx, func() {
		first.Stop()
		cancel(nil)
	}
}

// recordUse stores that a key was used, at most once in [noteEvery].
func (k *keyring) recordUse(ctx context.Context, key *retrieve.Key) {
	now := time.Now()
	k.mu.Lock()
	before, held := k.used[key.ID] // people are not in k.used
	due := held && now.Sub(before) >= noteEvery
	if due {
		k.used[key.ID] = now
	}
	k.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ringTimeout)
	defer cancel()
	if err := k.store.RecordUse(ctx, key.ID, now); err != nil && !errors.Is(err, context.Canceled) {
		k.logger.WarnContext(ctx, "the use of a key could not be stored", "key", key.ID, "error", err)
	}
}

// A key is keyPrefix, 256 random bits and their CRC-32, both in base 62: "ibid_"
// and 49 letters and digits. The prefix lets secret scanners find leaked keys;
// the checksum reveals mistyped ones without a server.
const (
	keyPrefix    = "ibid_"
	secretDigits = 43 // of 256 bits
	sumDigits    = 6  // of 32 bits
)

// NewKey makes a key. Only its digest is stored.
func NewKey() (key string, digest [sha256.Size]byte) {
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	digits := base62(new(big.Int).SetBytes(secret[:]), secretDigits)
	key = keyPrefix + digits + keySum(digits)
	return key, sha256.Sum256([]byte(key))
}

func keySum(digits string) string {
	return base62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(digits)))), sumDigits)
}

func base62(n *big.Int, digits int) string {
	text := n.Text(62)
	return strings.Repeat("0", digits-len(text)) + text
}

var errNoKey = errors.New(`it does not begin with "` + keyPrefix + `", is incomplete, or has a typing mistake`)

func checkKey(key string) error {
	digits, ok := strings.CutPrefix(key, keyPrefix)
	if !ok || len(digits) != secretDigits+sumDigits || keySum(digits[:secretDigits]) != digits[secretDigits:] {
		return errNoKey
	}
	return nil
}
