package ingest

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// executable names this very binary, even when its file has been replaced.
func executable() (string, error) { return "/proc/self/exe", nil }

// limitChild limits this process: memory for data rather than address space,
// of which a Go program maps more than it uses; no file may be written.
func limitChild() error {
	for _, l := range [...]struct {
		resource int
		limit    uint64
	}{
		{unix.RLIMIT_DATA, childMemory},
		{unix.RLIMIT_CPU, childSeconds},
		{unix.RLIMIT_FSIZE, 0},
		{unix.RLIMIT_NOFILE, 16},
		{unix.RLIMIT_CORE, 0},
	} {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.limit, Max: l.limit}); err != nil {
			return fmt.Errorf("resource %d: %w", l.resource, err)
		}
	}
	return nil
}

// ownGroup puts the child into a process group of its own, which is killed as
// a whole.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// outOfTime reports whether the system ended the child for its use of the
// processor.
func outOfTime(state *os.ProcessState) bool {
	if state == nil {
		return false
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return false
	}
	used := state.UserTime() + state.SystemTime()
	return status.Signal() == syscall.SIGXCPU || status.Signal() == syscall.SIGKILL && used.Seconds() >= childSeconds-1
}
