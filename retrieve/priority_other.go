//go:build !linux

package retrieve

// lowerPriority does nothing: other systems have no priority per thread, or it is untested there.
func lowerPriority() {}
