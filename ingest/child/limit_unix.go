//go:build unix

package child

import (
	"fmt"
	"os/exec"
	"syscall"
)

// limitFiles prevents this process from writing files and dumping core.
func limitFiles() error {
	for _, resource := range []int{syscall.RLIMIT_FSIZE, syscall.RLIMIT_CORE} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{}); err != nil {
			return fmt.Errorf("resource %d: %w", resource, err)
		}
	}
	return nil
}

// setGroup puts the child into its own process group, which is killed as a whole.
func setGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) {
	// The only possible error is that the group has ended.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}
