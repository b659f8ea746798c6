//go:build !linux

package ingest

import (
	"os"
	"os/exec"
)

func executable() (string, error) { return os.Executable() }

// limitChild sets no limits of the system here: the parent's limits of time
// and output, and the runtime's limit of memory, stand alone.
func limitChild() error { return nil }

func ownGroup(*exec.Cmd) {}

func outOfTime(*os.ProcessState) bool { return false }
