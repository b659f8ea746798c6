package retrieve

import "context"

// A Store is a whole library: one [Engine] with the [Ledger] and the [Keyring]
// of the servers that use it. Closing the engine closes all three.
type Store interface {
	Engine
	Ledger() Ledger
	Keyring() Keyring
}

// An Inspector is a [Store] on a database server that can describe the server.
type Inspector interface {
	// Inspect returns what an operator asks first: the versions of the server
	// and its extensions, its layout, its size.
	Inspect(ctx context.Context) ([]Trait, error)
}

// A Trait is one line of an [Inspector]'s description.
type Trait struct {
	Name, Value string
	// Next is what to do about it; empty when nothing is wrong.
	Next string
}
