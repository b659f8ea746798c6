//go:build !linux

package ingest

import "time"

func processorTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
