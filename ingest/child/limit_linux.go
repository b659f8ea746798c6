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

// executable names this very binary, even when its file has been replaced.
func executable() (string, error) { return "/proc/self/exe", nil }

// limitProcess limits this process: memory for data rather than address space,
// of which a Go program maps more than it uses, time, and no writing to files.
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

// resetTimeSignal resets the signal of the time limit, so that it ends the process.
// Go's own handler ignores it, and one of ours would not run while compiled
// WebAssembly runs, which never yields.
func resetTimeSignal() error {
	var byDefault [64]byte // a zero struct sigaction, in every layout
	size := uintptr(8)     // of a set of signals
	if strings.HasPrefix(runtime.GOARCH, "mips") {
		size = 16
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGXCPU), uintptr(unsafe.Pointer(&byDefault)), 0, size, 0, 0)
	if errno != 0 {
		return fmt.Errorf("resetting the signal of the time limit: %w", errno)
	}
	return nil
}

// allowSeconds grants more processor time, which the system counts from the start of the process.
func allowSeconds(seconds uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CPU, &limit); err != nil {
		return err
	}
	limit.Cur = min(limit.Max, uint64(ProcessorTime()/time.Second)+1+seconds)
	return unix.Setrlimit(unix.RLIMIT_CPU, &limit)
}

// wallTime bounds a request that only waits; the limit of processor time ends what works.
const wallTime = 10 * Seconds * time.Second

// ProcessorTime returns the processor time that this process has used.
func ProcessorTime() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		panic(fmt.Sprintf("unreachable: the system knows its own process: %v", err))
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// timeUp ends a process that has used its processor time.
const timeUp = syscall.SIGXCPU

// wasEndedBy reports whether a signal of the system ended the child.
func wasEndedBy(state *os.ProcessState, signal syscall.Signal) bool {
	if state == nil {
		return false
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}
