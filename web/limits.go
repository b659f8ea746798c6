package web

import (
	"context"
	"fmt"
	"maps"
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

	// DefaultUserRate is the default of [Options.UserRate].
	DefaultUserRate = 60

	// maxCallers is how many callers are counted separately; further callers share one count.
	maxCallers = 10_000
)

// A rateLimit limits how often callers may do something: a number of times at once, and as
// many again over the following minute. The zero value is ready to use.
type rateLimit struct {
	mu     sync.Mutex           // guards the fields below
	freeAt map[string]time.Time // when the caller has its full limit again
	swept  time.Time
	active map[string]int // how many operations of each caller are in progress
}

// begin counts an operation of a caller until end is called. It returns false if the
// limit most is already reached.
func (p *rateLimit) begin(who string, most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active[who] >= most {
		return false
	}
	if p.active == nil {
		p.active = map[string]int{}
	}
	p.active[who]++
	return true
}

func (p *rateLimit) end(who string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active[who]--; p.active[who] == 0 {
		delete(p.active, who)
	}
}

// take counts one operation of a caller, whose limit is most in a minute. If the limit is
// exceeded, it returns how long to wait. If most is 0, there is no limit.
func (p *rateLimit) take(who string, most int, now time.Time) (wait time.Duration) {
	if most <= 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	who = p.countedName(who, now)
	free := p.freeAt[who]
	if free.Before(now) {
		free = now
	}
	free = free.Add(time.Minute / time.Duration(most))
	if wait = free.Sub(now.Add(time.Minute)); wait <= 0 {
		p.freeAt[who] = free
		return 0
	}
	return wait
}

// giveBack undoes one take.
func (p *rateLimit) giveBack(who string, most int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	who = p.countedName(who, now)
	p.freeAt[who] = p.freeAt[who].Add(-time.Minute / time.Duration(most))
}

// countedName returns the name that a caller is counted under: its own, or the shared name ""
// if there are too many callers. p.mu is held.
func (p *rateLimit) countedName(who string, now time.Time) string {
	if now.Sub(p.swept) >= time.Minute {
		maps.DeleteFunc(p.freeAt, func(_ string, free time.Time) bool { return !free.After(now) })
		p.swept = now
	}
	if p.freeAt == nil {
		p.freeAt = map[string]time.Time{}
	}
	if _, known := p.freeAt[who]; !known && len(p.freeAt) >= maxCallers {
		return ""
	}
	return who
}

// networkOf returns the part of an address that is counted: an IPv4 address, or the network
// of 64 bits that one IPv6 host usually has. It returns "" for anything else.
func networkOf(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return ""
	}
	a = a.Unmap().WithZone("")
	bits := 64
	if a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits)
	return p.String()
}

func tooMany(code string, wait time.Duration, format string, args ...any) *Problem {
	return &Problem{Status: http.StatusTooManyRequests, Code: code, Detail: fmt.Sprintf(format, args...), retryAfter: wait}
}

func setRetryAfter(c echo.Context, wait time.Duration) {
	c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(max(1, int(math.Ceil(wait.Seconds())))))
}

// A limiter limits how many questions are answered at a time, and how many a key, or an address
// on a server without keys, may ask in a minute. Questions over a limit are rejected, not
// queued.
type limiter struct {
	slots          chan struct{}
	questions      *rateLimit
	rate, userRate int // in a minute; 0: no limit
}

func newLimiter(most, rate, userRate int) limiter {
	return limiter{make(chan struct{}, most), new(rateLimit), rate, min(userRate, rate)}
}

type addressKey struct{}

// withAddress adds the address of a caller without a key to the request's context, to limit
// its questions. Programs on the same machine have no limit.
func withAddress(c echo.Context) {
	if r := c.Request(); !isLoopback(c.RealIP()) {
		c.SetRequest(r.WithContext(context.WithValue(r.Context(), addressKey{}, c.RealIP())))
	}
}

func (l limiter) limitHandler(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		s, err := l.acquire(c.Request().Context())
		if err != nil {
			return err
		}
		defer func() { s.release() }() // unless a run in the background took it over
		c.Set(slotKey, s)
		return next(c)
	}
}

// A slot is the right of a caller to ask one question, until release is called.
type slot struct {
	limiter
	caller      string // empty for a caller without limits
	userCounted bool   // the question is counted for a user
	release     func()
}

// slotKey is the key of the slot in the context of a request.
const slotKey = "slot"

// acquire takes a slot. It fails if all slots are taken, if one key has half of them, or if
// the key, its user or the address has asked too often in a minute.
func (l limiter) acquire(ctx context.Context) (*slot, error) {
	s, now := &slot{limiter: l, release: func() {}}, time.Now()
	caller := holderFrom(ctx)
	address, _ := ctx.Value(addressKey{}).(string)
	var whose string
	switch {
	case caller != nil:
		s.caller, whose = "key "+caller.key.ID, "key"
		if !l.questions.begin(s.caller, max(1, cap(l.slots)/2)) {
			return nil, tooMany("too_many_questions", 2*time.Second, "too many questions of this key are being answered: ask again in "+
				"a moment")
		}
		s.release = func() { l.questions.end(s.caller) }
	case address != "":
		s.caller, whose = "address "+networkOf(address), "address"
	}
	if s.caller != "" {
		if wait := l.questions.take(s.caller, l.rate, now); wait > 0 {
			s.release()
			return nil, tooMany("too_fast", wait, "this %s has asked %d questions in a minute: ask again after the time in Retry-After",
				whose, l.rate)
		}
	}
	if caller != nil {
		if err := s.countUser(caller.user); err != nil {
			s.release()
			return nil, err
		}
	}
	select {
	case l.slots <- struct{}{}:
		end := s.release
		s.release = func() { <-l.slots; end() }
		return s, nil
	default:
		s.release()
		return nil, tooMany("too_many_questions", 2*time.Second, "%d questions are being answered: ask again in a moment",
			cap(l.slots))
	}
}

// countUser counts the question for a user of the caller, too, so that no user can exhaust
// the caller's limit. A question over the user's limit does not count for the caller.
func (s *slot) countUser(user string) error {
	if s == nil || s.caller == "" || user == "" || s.userCounted {
		return nil
	}
	s.userCounted = true
	now := time.Now()
	if wait := s.questions.take(s.caller+"\x00"+user[:min(len(user), maxUserName)], s.userRate, now); wait > 0 {
		s.questions.giveBack(s.caller, s.rate, now)
		return tooMany("too_fast", wait, "this user has asked %d questions in a minute: ask again after the time in Retry-After", s.userRate)
	}
	return nil
}
