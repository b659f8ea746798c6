//go:build !unix

package child

import "os/exec"

func limitFiles() error { return nil }

func setGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) {
	// The only possible error is that the process has ended.
	_ = cmd.Process.Kill()
}
