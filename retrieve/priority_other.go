//go:build !linux

package retrieve

// lowerPriority does nothing: elsewhere a thread has no priority of its own, or one
// that cannot be tested here.
func lowerPriority() {}
