//go:build !linux

package ingest

import "errors"

// canBecome says that a child can limit itself and become another program.
// Here the parent's limits of time and output stand alone.
const canBecome = false

func become([]string, []string, uint64) error { return errors.ErrUnsupported }
