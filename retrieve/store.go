package retrieve

// A Store keeps a whole library, and what stands beside it: one [Engine] with
// the [Ledger] and the [Keyring] of the servers that use it. Closing the engine
// closes all of it.
type Store interface {
	Engine
	Ledger() Ledger
	Keyring() Keyring
}
