//go:build !linux

package ingest

import (
	"fmt"
	"os"
	"runtime/metrics"
	"time"
)

func executable() (string, error) { return os.Executable() }

// limitChild has this process watch its own memory: these systems have no
// limit that holds for it. Time is watched by the parent.
func limitChild() error {
	if err := limitFiles(); err != nil {
		return err
	}
	go func() {
		for range time.Tick(watchMemory) {
			if n := memoryInUse(); n > childMemory {
				// Nobody recovers it: it ends the process, and the parent reads why.
				panic(fmt.Sprintf("out of memory: %d MB are in use", n>>20))
			}
		}
	}()
	return nil
}

// watchMemory is how often a child looks at its memory.
const watchMemory = 50 * time.Millisecond

// memoryInUse is what the Go runtime has of the system and not given back.
func memoryInUse() uint64 {
	figures := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(figures)
	return figures[0].Value.Uint64() - figures[1].Value.Uint64()
}

func childGrown() bool { return memoryInUse() > childMemory/2 }

func allowSeconds(uint64) error { return nil }

func outOfTime(*os.ProcessState) bool { return false }
