package retrieve

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A stepping state has a fixed revision, and a stepping searcher a revision that grows with each
// read, up to a limit.
type stepping struct {
	State
	Searcher
	revision, end int64
}

type steppingSearcher struct{ *stepping }

func (s *stepping) Revision(context.Context) (int64, int64, error) { return 1000, 0, nil }

func (s steppingSearcher) Revision(context.Context) (int64, int64, error) {
	s.revision = min(s.revision+1, s.end)
	return s.revision, 0, nil
}

// TestAwait checks that a search waits for a searcher only while a feed updates it.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stepping{revision: 100, end: 100}
		f := newFollower(s, steppingSearcher{s}, "", Options{Wait: 200 * time.Millisecond})
		for _, tt := range []struct {
			end   int64
			waits bool
		}{{100, true}, {100, false}, {100, false}, {103, true}, {103, true}, {103, false}, {500, true}, {1000, true}} {
			s.end = tt.end
			began := time.Now()
			missing, err := f.waitForFeed(t.Context())
			if waited := time.Since(began) > f.wait; err != nil || missing != 1000-s.revision || waited != tt.waits {
				t.Errorf("end %d: missing = %d, %v, after %s", tt.end, missing, err, time.Since(began))
			}
		}
	})
}
