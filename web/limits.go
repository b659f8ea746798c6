package web

import (
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
	// MaxTries is how many wrong keys an address may show in a minute.
	MaxTries = 10
	// DefaultKeyRate is the default of [Options.KeyRate].
	DefaultKeyRate = 600

	tryFor = time.Minute
	// maxTried is how many addresses are counted at a time; those over it are
	// counted together.
	maxTried = 10_000
)

// tries counts the wrong keys that each address has shown.
type tries struct {
	mu    sync.Mutex
	from  map[netip.Prefix]*tried
	swept time.Time // of addresses whose minute is over
}

// A tried address has a minute that began with a wrong key.
type tried struct {
	began time.Time
	wrong int
}

// prefixOf is what is counted as one: an IPv4 address, or the network of 64
// bits that one host of IPv6 usually has to itself. What is no address is
// counted as one too.
func prefixOf(address string) netip.Prefix {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	a = a.Unmap().WithZone("")
	bits := 64
	if a.Is4() {
		bits = 32
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

// of gives what an address has tried in the minute, nil if nothing. t.mu is held.
func (t *tries) of(p netip.Prefix, now time.Time) *tried {
	w := t.from[p]
	if w == nil || now.Sub(w.began) >= tryFor {
		return nil
	}
	return w
}

// wait gives how long an address is to show no more keys.
func (t *tries) wait(address string, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := prefixOf(address)
	w := t.of(p, now)
	if w == nil && len(t.from) >= maxTried {
		w = t.of(netip.Prefix{}, now)
	}
	if w == nil || w.wrong < MaxTries {
		return 0
	}
	return tryFor - now.Sub(w.began)
}

// wrong counts a wrong key of an address.
func (t *tries) wrong(address string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := prefixOf(address)
	w := t.of(p, now)
	if w == nil {
		if t.from == nil {
			t.from = map[netip.Prefix]*tried{}
		}
		if len(t.from) >= maxTried && now.Sub(t.swept) >= time.Second {
			t.swept = now
			for p := range t.from {
				if t.of(p, now) == nil {
					delete(t.from, p)
				}
			}
		}
		if len(t.from) >= maxTried {
			p = netip.Prefix{}
			w = t.of(p, now)
		}
		if w == nil {
			w = &tried{began: now}
			t.from[p] = w
		}
	}
	w.wrong++
}

// tooMany refuses what comes too soon.
func tooMany(c echo.Context, code string, wait time.Duration, format string, args ...any) *Problem {
	comeBack(c, wait)
	return &Problem{Status: http.StatusTooManyRequests, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// comeBack says when to try again.
func comeBack(c echo.Context, wait time.Duration) {
	c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(max(1, int(math.Ceil(wait.Seconds())))))
}

// bounded turns away questions over the limits at once, rather than let them
// queue.
func (s *server) bounded(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		release, err := s.acquire(c)
		if err != nil {
			return err
		}
		defer release()
		return next(c)
	}
}

// acquire takes one of the places for questions, until release is called. There
// are limits on the questions of one key in a minute, on those of one key in
// hand, which may be half of all, and on all.
func (s *server) acquire(c echo.Context) (release func(), _ error) {
	done := func() {}
	if who := holderFrom(c.Request().Context()); who != nil {
		var err error
		if done, err = s.ofKey(c, who.key); err != nil {
			return nil, err
		}
	}
	select {
	case s.asks <- struct{}{}:
		return func() { <-s.asks; done() }, nil
	default:
		done()
		return nil, tooMany(c, "too_many_questions", 2*time.Second, "%d questions are being answered already: ask again in a moment", cap(s.asks))
	}
}

// ofKey counts a question of a key until done.
func (s *server) ofKey(c echo.Context, key *heldKey) (done func(), _ error) {
	most := max(1, cap(s.asks)/2)
	key.mu.Lock()
	defer key.mu.Unlock()
	if key.asks >= most {
		return nil, tooMany(c, "too_many_questions", 2*time.Second, "%d questions of this key are being answered already: ask again in a moment", key.asks)
	}
	now := time.Now()
	turn := key.rate.ReserveN(now, 1)
	if wait := turn.DelayFrom(now); wait > 0 {
		turn.CancelAt(now)
		return nil, tooMany(c, "too_fast", wait, "this key has asked %d questions in a minute: ask again after the time in Retry-After", s.keys.burst)
	}
	key.asks++
	return func() {
		key.mu.Lock()
		defer key.mu.Unlock()
		key.asks--
	}, nil
}
