package retrieve

import (
	"context"
	"errors"
	"time"
)

// A Keyring keeps who may use a server: the keys, and the sessions that were
// begun with them. Of a key and of a session's token it keeps the SHA-256
// digest alone. It is safe for concurrent use, by several processes too.
// Writes are durable when they return nil.
type Keyring interface {
	// Revision grows when a key is added or revoked and when a session begins
	// or ends, by whichever process; it costs little to ask.
	Revision(ctx context.Context) (int64, error)
	// Ring gives all keys and sessions as they are at one moment.
	Ring(ctx context.Context) (Ring, error)
	// Add keeps a new key. [ErrKeyName] if one has its name.
	Add(ctx context.Context, k Key) error
	// Revoke forgets a key with its sessions; [ErrNotFound] if there is none
	// of that id.
	Revoke(ctx context.Context, id string) error
	// Used notes when a key was used; it is no change of the ring.
	Used(ctx context.Context, id string, at time.Time) error
	// Begin keeps a session, and forgets those that began more than
	// [MaxSessionAge] before it. Of its key it keeps the latest [MaxSessions].
	// [ErrNotFound] if the key has been revoked.
	Begin(ctx context.Context, s Session) error
	// End forgets a session; there need not be one.
	End(ctx context.Context, digest [32]byte) error
}

// ErrKeyName says that a key cannot be added because of its name.
var ErrKeyName = errors.New("there is a key of that name already")

// A Ring is what a [Keyring] keeps.
type Ring struct {
	Revision int64
	Keys     []Key // by when they were made
	Sessions []Session
	// Damaged counts keys and sessions that can no longer be read: nobody is
	// let in by them.
	Damaged int
}

// A Key lets whoever has it use a server. Times are kept to the second.
type Key struct {
	// ID names the key in the log and beside what it began; it is no secret.
	ID string
	// Name is what people call it, one key at a time.
	Name string
	// Digest is the SHA-256 of the key itself.
	Digest [32]byte
	// Write lets it change what others read: documents.
	Write bool
	// Collections are the only ones it reaches; none are named where it
	// reaches all.
	Collections []string
	Created     time.Time
	Expires     time.Time // zero: never
	Used        time.Time // about when it was used last; zero: never
}

// A Session is a browser that was let in with a key.
type Session struct {
	Digest  [32]byte // the SHA-256 of its token
	Key     string   // the key's id
	Started time.Time
}

// What is kept of sessions.
const (
	// MaxSessionAge is how long one lasts.
	MaxSessionAge = 30 * 24 * time.Hour
	// MaxSessions is how many one key has at a time.
	MaxSessions = 100
)

// Seconds is a time as keyrings keep it, in seconds since 1970; 0 for the zero time.
func Seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// AtSeconds is the time that [Seconds] made a number of.
func AtSeconds(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(n, 0)
}
