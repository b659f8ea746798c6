package retrieve

import "syscall"

// lowerPriority lowers the priority of the calling thread.
func lowerPriority() {
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), 10) // a sandbox may forbid it
}
