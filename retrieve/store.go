package retrieve

import "context"

// A Store keeps a whole library, and what stands beside it: one [Engine] with
// the [Ledger] and the [Keyring] of the servers that use it. Closing the engine
// closes all of it.
type Store interface {
	Engine
	Ledger() Ledger
	Keyring() Keyring
}

// An Inspector is a [Store] on a server of its own that says what it runs on.
type Inspector interface {
	// Inspect gives what somebody who looks after the server asks first: its
	// version and that of what it needs, how it is laid out, what it takes.
	Inspect(ctx context.Context) ([]Trait, error)
}

// A Trait is one thing that an [Inspector] says.
type Trait struct {
	Name, Value string
	// Next is what to do about it; empty where it is well.
	Next string
}
