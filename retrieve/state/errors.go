package state

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"ibid/retrieve"
)

var (
	// ErrDamaged reports that a database cannot be read or that its tables contradict each other.
	ErrDamaged = errors.New("the database is damaged")
	// ErrLayout reports that the database has the tables of another version of Ibid.
	ErrLayout = errors.New("this version of ibid cannot read it")
)

// A failure is an error of the database in plain words.
type failure struct {
	message string // the whole message
	// unavailable means that the database was unreachable; busy means that another process had
	// locked it. In both cases nothing was changed, and the operation may be tried again.
	unavailable, busy bool
	damaged           bool
	full              bool  // the disk
	err               error // of the driver, for errors.As
}

func (f *failure) Error() string { return f.message }
func (f *failure) Unwrap() error { return f.err }

func (f *failure) Is(target error) bool {
	return f.unavailable && target == retrieve.ErrUnavailable || f.damaged && target == ErrDamaged || f.full && target == syscall.ENOSPC
}

// explain returns an error of the driver in plain words. Other errors are
// returned unchanged.
func (s *Store) explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err // the caller's context explains it better
	}
	if done := (*failure)(nil); errors.As(err, &done) {
		return err
	}
	if f := s.classify(err); f != nil {
		f.err = err
		return f
	}
	return err
}

// explainRow explains the error of a damaged row that belongs to no document, and requests a
// repair.
func (s *Store) explainRow(err error) error {
	explained, document := (*failure)(nil), (*damagedError)(nil)
	if !errors.Is(err, errRow) || errors.As(err, &explained) || errors.As(err, &document) {
		return err
	}
	what := fmt.Sprintf("%v: %s has a row that does not match its checksum", ErrDamaged, s.place)
	return s.requestRepair(&failure{message: what, damaged: true, err: err})
}

// isDamage reports whether an error means that stored data is lost or changed. Failures of the
// disk, missing permissions and other processes are not damage.
func isDamage(err error) bool { return errors.Is(err, errRow) || errors.Is(err, ErrDamaged) }

// reportAfter is how long the database is unreachable before the outage is reported.
const reportAfter = time.Second

// retry calls f again while the database is unreachable or busy, for at most the time wait.
func (s *Store) retry(ctx context.Context, wait time.Duration, f func() error) error {
	start := time.Now()
	wait = min(wait, retrieve.WaitOf(ctx, wait))
	for pause := time.Millisecond; ; pause = min(2*pause, s.maxPause) {
		err := f()
		if err == nil {
			s.waiting.Store(false)
			s.answered.Store(time.Now().UnixNano())
			return nil
		}
		if stopped := ctx.Err(); stopped != nil {
			return stopped
		}
		of := (*failure)(nil)
		if !errors.As(err, &of) || !of.unavailable && !of.busy {
			return err
		}
		passed, next := time.Since(start), pause/2+rand.N(pause)
		if passed+next > wait {
			return fmt.Errorf("%w (tried for %s)", err, passed.Round(time.Second))
		}
		silent := min(passed, time.Since(time.Unix(0, s.answered.Load())))
		if of.unavailable && silent > reportAfter && s.report != nil && !s.waiting.Swap(true) {
			s.report(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(next):
		}
	}
}
