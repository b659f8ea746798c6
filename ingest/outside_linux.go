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
		resource int
		limit    uint64
	}{
		{unix.RLIMIT_DATA, toolMemory},
		{unix.RLIMIT_CPU, seconds},
		{unix.RLIMIT_FSIZE, 0},
		{unix.RLIMIT_NOFILE, toolFiles},
		{unix.RLIMIT_CORE, 0},
	} {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.limit, Max: l.limit}); err != nil {
			return fmt.Errorf("limiting it: resource %d: %w", l.resource, err)
		}
	}
	return unix.Exec(args[0], args, env)
}
