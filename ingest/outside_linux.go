package ingest

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// canBecome says that a child can limit itself and become another program.
const canBecome = true

// become puts another program in the place of this one, under limits that it
// cannot raise.
func become(args, env []string, seconds uint64) error {
	for _, l := range [...]struct {
		resource  int
		soft, max uint64
	}{
		{unix.RLIMIT_DATA, toolMemory, toolMemory},
		{unix.RLIMIT_CPU, seconds, seconds + 1}, // at the soft limit the signal tells why, see outOfTime
		{unix.RLIMIT_FSIZE, 0, 0},
		{unix.RLIMIT_NOFILE, toolFiles, toolFiles},
		{unix.RLIMIT_CORE, 0, 0},
	} {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.soft, Max: l.max}); err != nil {
			return fmt.Errorf("limiting it: resource %d: %w", l.resource, err)
		}
	}
	return unix.Exec(args[0], args, env)
}
