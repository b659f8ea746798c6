package child

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// canBecome reports whether a child can limit itself and become another program.
const canBecome = true

// executable names this very binary, even when its file has been replaced.
func executable() (string, error) { return "/proc/self/exe", nil }

type limit struct {
	resource  int
	soft, max uint64
}

func setLimits(limits ...limit) error {
	limits = append(limits, limit{unix.RLIMIT_FSIZE, 0, 0}, limit{unix.RLIMIT_CORE, 0, 0})
	for _, l := range limits {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.soft, Max: l.max}); err != nil {
			return fmt.Errorf("resource %d: %w", l.resource, err)
		}
	}
	return nil
}

// limitProcess limits this process: memory for data rather than address space,
// of which a Go program maps more than it uses, time, and no writing to files.
func limitProcess() error {
	err := setLimits(
		limit{unix.RLIMIT_DATA, Memory, Memory},
		limit{unix.RLIMIT_CPU, Seconds, (maxRequests + 1) * (Seconds + 1)}, // see allowSeconds
		limit{unix.RLIMIT_NOFILE, 16, 16},
	)
	if err != nil {
		return err
	}
	return dieOfTime()
}

// dieOfTime resets the signal of the time limit, so that it ends the process.
// Go's own handler ignores it, and one of ours would not run while compiled
// WebAssembly runs, which never yields.
func dieOfTime() error {
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

// ownGroup puts the child into a process group of its own, which is killed as a whole.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) {
	// The only error is that the group has ended.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
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

// endedBy reports whether a signal of the system ended the child.
func endedBy(state *os.ProcessState, signal syscall.Signal) bool {
	if state == nil {
		return false
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}

// become replaces this process with another program, under limits that it cannot raise.
func become(args, env []string, seconds uint64) error {
	err := setLimits(
		limit{unix.RLIMIT_DATA, programMemory, programMemory},
		limit{unix.RLIMIT_CPU, seconds, seconds + 1}, // at the soft limit the signal says why
		limit{unix.RLIMIT_NOFILE, programFiles, programFiles},
	)
	if err != nil {
		return fmt.Errorf("limiting it: %w", err)
	}
	return unix.Exec(args[0], args, env)
}
