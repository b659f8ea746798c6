package web

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

// Limits on keys.
const (
	// MaxTries is how many wrong keys an address may send in a minute.
	MaxTries = 10
	// DefaultKeyRate is the default of [Options.KeyRate].
	DefaultKeyRate = 600

	triesWindow = time.Minute
	// maxTried is how many addresses are counted separately; the rest are
	// counted together.
	maxTried = 10_000
)

// failedKeys counts the wrong keys that each address has sent in the current
// window. The zero value is ready.
type failedKeys struct {
	mu     sync.Mutex
	began  time.Time // the window
	counts map[netip.Prefix]int
}

// networkOf is what failedKeys counts as one: an IPv4 address, or the network of 64
// bits that one IPv6 host usually has. Whatever is no address is counted as one too.
func networkOf(address string) netip.Prefix {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	a = a.Unmap().WithZone("")
	bits := 64
	if a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits) // as many as it has
	return p
}

// counted returns what an address is counted as: itself, or with others when there
// are too many. It begins a window when the last has passed. f.mu is held.
func (f *failedKeys) counted(address string, now time.Time) netip.Prefix {
	if now.Sub(f.began) >= triesWindow {
		f.began, f.counts = now, map[netip.Prefix]int{}
	}
	p := networkOf(address)
	if f.counts[p] == 0 && len(f.counts) >= maxTried {
		return netip.Prefix{}
	}
	return p
}

// wait returns for how long an address may not send keys.
func (f *failedKeys) wait(address string, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts[f.counted(address, now)] < MaxTries {
		return 0
	}
	return triesWindow - now.Sub(f.began)
}

func (f *failedKeys) add(address string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[f.counted(address, now)]++
}

func tooMany(code string, wait time.Duration, format string, args ...any) *Problem {
	return &Problem{Status: http.StatusTooManyRequests, Code: code, Detail: fmt.Sprintf(format, args...), retryAfter: wait}
}

func setRetryAfter(c echo.Context, wait time.Duration) {
	c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(max(1, int(math.Ceil(wait.Seconds())))))
}

// A limiter bounds the questions that are answered at a time. Those over its
// limits are rejected rather than queued.
type limiter struct{ slots chan struct{} }

func newLimiter(most int) limiter { return limiter{make(chan struct{}, most)} }

func (l limiter) bounded(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		release, err := l.acquire(c.Request().Context())
		if err != nil {
			return err
		}
		defer release()
		return next(c)
	}
}

// acquire takes a slot until release is called. It fails if all slots are taken,
// if one key has half of them, or if the key has asked too often in a minute.
func (l limiter) acquire(ctx context.Context) (release func(), _ error) {
	releaseKey := func() {}
	if caller := holderFrom(ctx); caller != nil {
		var err error
		if releaseKey, err = caller.key.acquire(max(1, cap(l.slots)/2)); err != nil {
			return nil, err
		}
	}
	select {
	case l.slots <- struct{}{}:
		return func() { <-l.slots; releaseKey() }, nil
	default:
		releaseKey()
		return nil, tooMany("too_many_questions", 2*time.Second, "%d questions are being answered already: ask again in a moment",
			cap(l.slots))
	}
}

// acquire counts a question of the key, which may have most at a time, until release is called.
func (u *usage) acquire(most int) (release func(), _ error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.asks >= most {
		return nil, tooMany("too_many_questions", 2*time.Second, "%d questions of this key are being answered already: ask again in a "+
			"moment", u.asks)
	}
	now := time.Now()
	turn := u.rate.ReserveN(now, 1)
	if wait := turn.DelayFrom(now); wait > 0 {
		turn.CancelAt(now)
		return nil, tooMany("too_fast", wait, "this key has asked %d questions in a minute: ask again after the time in Retry-After",
			u.rate.Burst())
	}
	u.asks++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.asks--
	}, nil
}
