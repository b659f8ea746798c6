//go:build !linux

package child

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

func executable() (string, error) { return os.Executable() }

// limitProcess makes this process watch its own memory, because these systems have no such limit.
// The parent watches the time.
func limitProcess() error {
	if err := limitFiles(); err != nil {
		return err
	}
	go func() {
		for range time.Tick(watchMemory) {
			if n := memoryInUse(); n > Memory {
				// The panic ends the process, and the parent reads its message.
				panic(fmt.Sprintf("out of memory: %d MB are in use", n>>20))
			}
		}
	}()
	return nil
}

// watchMemory is the interval at which a child checks its memory.
const watchMemory = 50 * time.Millisecond

func allowSeconds(uint64) error { return nil }

// wallTime limits a request, since these systems have no limit of processor time.
const wallTime = Seconds * time.Second

var started = time.Now()

// ProcessorTime returns the time since the process started, by which these systems limit requests.
func ProcessorTime() time.Duration { return time.Since(started) }

// timeUp is the signal that ends a process at its limit of processor time, where such a limit
// exists.
const timeUp = syscall.SIGKILL

func wasEndedBy(*os.ProcessState, syscall.Signal) bool { return false }
