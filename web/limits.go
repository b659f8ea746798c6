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

	// maxAddresses is how many addresses are counted separately; the rest are
	// counted together.
	maxAddresses = 10_000
)

// addressCounts count what each address has done in the current minute.
type addressCounts struct {
	most int // that one may do

	mu     sync.Mutex // guards what follows
	began  time.Time  // the minute
	counts map[netip.Prefix]int
}

// networkOf is what addressCounts count as one: an IPv4 address, or the network of 64
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
// are too many. It begins a minute when the last has passed. a.mu is held.
func (a *addressCounts) counted(address string, now time.Time) netip.Prefix {
	if now.Sub(a.began) >= time.Minute {
		a.began, a.counts = now, map[netip.Prefix]int{}
	}
	p := networkOf(address)
	if a.counts[p] == 0 && len(a.counts) >= maxAddresses {
		return netip.Prefix{}
	}
	return p
}

// wait returns for how long an address has to wait that has done the most.
func (a *addressCounts) wait(address string, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts[a.counted(address, now)] < a.most {
		return 0
	}
	return time.Minute - now.Sub(a.began)
}

func (a *addressCounts) add(address string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts[a.counted(address, now)]++
}

func tooMany(code string, wait time.Duration, format string, args ...any) *Problem {
	return &Problem{Status: http.StatusTooManyRequests, Code: code, Detail: fmt.Sprintf(format, args...), retryAfter: wait}
}

func setRetryAfter(c echo.Context, wait time.Duration) {
	c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(max(1, int(math.Ceil(wait.Seconds())))))
}

// A limiter bounds the questions that are answered at a time, and, where no keys
// guard the server, those of one address in a minute. Those over its limits are
// rejected rather than queued.
type limiter struct {
	slots chan struct{}
	asked *addressCounts
}

func newLimiter(most, rate int) limiter {
	return limiter{make(chan struct{}, most), &addressCounts{most: rate}}
}

type addressKey struct{}

// withAddress notes the address of a caller without a key, to limit its questions.
// Programs of the same machine have no limit.
func withAddress(c echo.Context) {
	if r := c.Request(); !isLoopback(c.RealIP()) {
		c.SetRequest(r.WithContext(context.WithValue(r.Context(), addressKey{}, c.RealIP())))
	}
}

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
// if one key has half of them, or if the key or address has asked too often in a minute.
func (l limiter) acquire(ctx context.Context) (release func(), _ error) {
	releaseKey := func() {}
	if caller := holderFrom(ctx); caller != nil {
		var err error
		if releaseKey, err = caller.key.acquire(max(1, cap(l.slots)/2)); err != nil {
			return nil, err
		}
	} else if address, ok := ctx.Value(addressKey{}).(string); ok {
		if wait := l.asked.wait(address, time.Now()); wait > 0 {
			return nil, tooMany("too_fast", wait, "this address has asked %d questions in a minute: ask again after the time in Retry-After",
				l.asked.most)
		}
		l.asked.add(address, time.Now())
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
