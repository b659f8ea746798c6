package ingest

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is what this process has used of its processors' time.
func processorTime() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
