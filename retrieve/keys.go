package retrieve

import (
	"context"
	"errors"
	"time"
)

// A Keyring stores the keys of a server and the sessions that began with them. It stores only the
// SHA-256 digest of a key or session token. It is safe for concurrent use by several goroutines and
// processes. Writes are durable when they return nil.
type Keyring interface {
	// Revision grows when any process adds or revokes a key or begins or ends a session. It is
	// cheap to call.
	Revision(ctx context.Context) (int64, error)
	// Ring returns a consistent snapshot of all keys and sessions.
	Ring(ctx context.Context) (Ring, error)
	// Add stores a new key. If its name is taken, the error is [ErrKeyName].
	Add(ctx context.Context, k Key) error
	// Revoke deletes a key and its sessions. If there is no key with that id, the error is
	// [ErrNotFound].
	Revoke(ctx context.Context, id string) error
	// RecordUse records the time at which a key was used. It does not change Revision.
	RecordUse(ctx context.Context, id string, at time.Time) error
	// BeginSession stores a session. It deletes sessions that began more than [MaxSessionAge] before it,
	// and all but the latest [MaxSessions] sessions of its key. If the key has been revoked, the
	// error is [ErrNotFound].
	BeginSession(ctx context.Context, s Session) error
	// EndSession deletes a session if it exists.
	EndSession(ctx context.Context, digest [32]byte) error
}

// ErrKeyName reports that the name of a new key is taken.
var ErrKeyName = errors.New("a key with that name already exists")

// A Ring is a snapshot of a [Keyring].
type Ring struct {
	Revision int64
	Keys     []Key // oldest first
	Sessions []Session
	// Damaged is the number of keys and sessions that can no longer be read. They give no access.
	Damaged int
}

// A Key gives access to a server. Times are in whole seconds.
type Key struct {
	// ID names the key in the log and in records; it is not secret.
	ID string
	// Name is unique and chosen by people.
	Name string
	// Digest is the SHA-256 of the key itself.
	Digest [32]byte
	// Write permits changing documents.
	Write bool
	// Relay permits asking the model itself, without documents.
	Relay bool
	// Settings permits seeing and changing the settings of a server.
	Settings bool
	// Public means that people other than its holder know the key, because pages of other sites
	// contain it. It permits only asking and searching, and only from those pages.
	Public bool
	// Collections are the only collections that the key may access; if empty, it may access all.
	Collections []string
	Created     time.Time
	Expires     time.Time // zero if it never expires
	Used        time.Time // approximate time of the last use; zero if it was never used
}

// A Session is a browser that signed in with a key.
type Session struct {
	Digest  [32]byte // the SHA-256 of its token
	Key     string   // the key's id
	Started time.Time
}

// Limits of sessions.
const (
	// MaxSessionAge is the lifetime of a session.
	MaxSessionAge = 30 * 24 * time.Hour
	// MaxSessions is the largest number of sessions of one key.
	MaxSessions = 100
)

// Seconds returns a time as keyrings store it, in seconds since 1970, or 0 for the zero time.
func Seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// AtSeconds is the inverse of [Seconds].
func AtSeconds(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(n, 0)
}
