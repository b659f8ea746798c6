//go:build !linux

package child

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

func executable() (string, error) { return os.Executable() }

// limitProcess has this process watch its own memory, because these systems
// have no limit for it. The parent watches the time.
func limitProcess() error {
	if err := limitFiles(); err != nil {
		return err
	}
	go func() {
		for range time.Tick(watchMemory) {
			if n := memoryInUse(); n > Memory {
				// It ends the process, and the parent reads why.
				panic(fmt.Sprintf("out of memory: %d MB are in use", n>>20))
			}
		}
	}()
	return nil
}

// watchMemory is how often a child looks at its memory.
const watchMemory = 50 * time.Millisecond

func allowSeconds(uint64) error { return nil }

// wallTime bounds a request, as these systems have no limit of processor time.
const wallTime = Seconds * time.Second

var started = time.Now()

// ProcessorTime returns the time since the process started, by which these systems
// limit requests.
func ProcessorTime() time.Duration { return time.Since(started) }

// timeUp ends a process that has used its processor time, on systems that limit it.
const timeUp = syscall.SIGKILL

func wasEndedBy(*os.ProcessState, syscall.Signal) bool { return false }
