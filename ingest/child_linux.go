package ingest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// executable names this very binary, even when its file has been replaced.
func executable() (string, error) { return "/proc/self/exe", nil }

// limitChild limits this process: memory for data rather than address space,
// of which a Go program maps more than it uses; no file may be written.
func limitChild() error {
	for _, l := range [...]struct {
		resource  int
		soft, max uint64
	}{
		{unix.RLIMIT_DATA, childMemory, childMemory},
		{unix.RLIMIT_CPU, childSeconds, (childFiles + 1) * (childSeconds + 1)}, // see allowSeconds
		{unix.RLIMIT_FSIZE, 0, 0},
		{unix.RLIMIT_NOFILE, 16, 16},
		{unix.RLIMIT_CORE, 0, 0},
	} {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.soft, Max: l.max}); err != nil {
			return fmt.Errorf("resource %d: %w", l.resource, err)
		}
	}
	return dieOfTime()
}

// dieOfTime gives the signal that a process gets at its limit of time back to
// the kernel, which ends it. Go's own handler takes no notice of it, and one of
// ours would not run beside compiled code that never yields.
func dieOfTime() error {
	var byDefault [64]byte // a struct sigaction of zeros, in every layout of it
	size := uintptr(8)     // of a set of signals
	if strings.HasPrefix(runtime.GOARCH, "mips") {
		size = 16
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGXCPU), uintptr(unsafe.Pointer(&byDefault)), 0, size, 0, 0)
	if errno != 0 {
		return fmt.Errorf("the signal at the limit of time: %w", errno)
	}
	return nil
}

// allowSeconds lets this process use so much more processor time. The limit of
// the system counts from the process's start.
func allowSeconds(seconds uint64) error {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return err
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CPU, &limit); err != nil {
		return err
	}
	limit.Cur = min(limit.Max, uint64(used.Utime.Sec+used.Stime.Sec)+1+seconds)
	return unix.Setrlimit(unix.RLIMIT_CPU, &limit)
}

// childGrown says that this process holds so much memory that the next file
// would have too little left of what it may use.
func childGrown() bool {
	stat, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return true
	}
	fields := bytes.Fields(stat)
	if len(fields) < 6 {
		return true
	}
	pages, err := strconv.Atoi(string(fields[5])) // of data and stack
	return err != nil || pages*os.Getpagesize() > childMemory/2
}

// ownGroup puts the child into a process group of its own, which is killed as
// a whole.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) {
	// The only error is that there is no such group any more.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}

// outOfTime reports whether the system ended the child for its use of the
// processor.
func outOfTime(state *os.ProcessState) bool {
	if state == nil {
		return false
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGXCPU
}
