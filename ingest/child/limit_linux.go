package child

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// executable returns a path to this very binary, even if its file has been replaced.
func executable() (string, error) { return "/proc/self/exe", nil }

// limitProcess limits this process's data, processor time and file writes. It limits data instead
// of address space, since a Go program maps more memory than it uses.
func limitProcess() error {
	for resource, limit := range map[int]unix.Rlimit{
		unix.RLIMIT_DATA:   {Cur: Memory, Max: Memory},
		unix.RLIMIT_CPU:    {Cur: Seconds, Max: (maxRequests + 1) * (Seconds + 1)}, // see allowSeconds
		unix.RLIMIT_NOFILE: {Cur: 16, Max: 16},
	} {
		if err := unix.Setrlimit(resource, &limit); err != nil {
			return fmt.Errorf("resource %d: %w", resource, err)
		}
	}
	return cmp.Or(limitFiles(), resetTimeSignal())
}

// resetTimeSignal restores the default action of the time limit's signal, which ends the process.
// Go's own handler ignores the signal, and a Go handler would not run while compiled WebAssembly
// runs, since that never yields.
func resetTimeSignal() error {
	var byDefault [64]byte // a zero struct sigaction, in every layout
	size := uintptr(8)     // of a signal set
	if strings.HasPrefix(runtime.GOARCH, "mips") {
		size = 16
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGXCPU), uintptr(unsafe.Pointer(&byDefault)), 0, size, 0, 0)
	if errno != 0 {
		return fmt.Errorf("resetting the signal of the time limit: %w", errno)
	}
	return nil
}

// allowSeconds grants more processor time. The system counts it from the start of the process.
func allowSeconds(seconds uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CPU, &limit); err != nil {
		return err
	}
	limit.Cur = min(limit.Max, uint64(ProcessorTime()/time.Second)+1+seconds)
	return unix.Setrlimit(unix.RLIMIT_CPU, &limit)
}

// wallTime limits a request that only waits. A request that computes ends at the limit of processor
// time.
const wallTime = 10 * Seconds * time.Second

// ProcessorTime returns the processor time that this process has used.
func ProcessorTime() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		panic(fmt.Sprintf("unreachable: the system knows its own process: %v", err))
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// timeUp is the signal that ends a process at its limit of processor time.
const timeUp = syscall.SIGXCPU

// wasEndedBy reports whether a signal ended the child.
func wasEndedBy(state *os.ProcessState, signal syscall.Signal) bool {
	if state == nil {
		return false
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}
