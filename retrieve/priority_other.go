//go:build !linux

package retrieve

// lowerPriority does nothing: on other systems threads have no priority, or it is untested.
func lowerPriority() {}
