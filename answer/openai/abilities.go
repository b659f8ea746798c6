package openai

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Abilities are what a server and its model were found to be capable of. The zero
// Abilities have everything requested.
type Abilities struct {
	// Since is when the first of them was found out. They are forgotten after
	// [abilitiesLast], since the server may have been replaced.
	Since time.Time

	// Parts of a request that the server has refused are left out.
	NoUsage, NoTemperature, NoOdds, NoFormat bool
	NewMaxTokens                             bool
	// Odds is how many more verdicts came with the chances of yes and no than without,
	// up to mostOdds.
	Odds int
	// Thinks says that replies of the model have thoughts. Servers count them
	// against the requested length, so no length is requested any more.
	Thinks bool
}

const (
	abilitiesLast = 7 * 24 * time.Hour
	mostOdds      = 8
)

// abilities are those of the server of a client.
type abilities struct {
	mu       sync.Mutex
	known    Abilities
	reported Abilities       // what learned has got
	hook     func(Abilities) // nil for none
}

// Remember begins with the abilities that were found out before. After a reply that
// showed others, learned gets them.
func (c *abilities) Remember(a Abilities, learned func(Abilities)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.reported, c.hook = a, a.withoutOdds(), learned
}

// Abilities returns what has been found out.
func (c *abilities) Abilities() Abilities {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.known.Since) > abilitiesLast {
		c.known = Abilities{}
	}
	return c.known.withoutOdds()
}

// withoutOdds leaves out what changes with each verdict.
func (a Abilities) withoutOdds() Abilities {
	a.Odds = max(-1, min(a.Odds, 1))
	return a
}

// changeAbilities changes the abilities.
func (c *abilities) changeAbilities(change func(*Abilities)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.known
	if change(&c.known); c.known != before && c.known.Since.IsZero() {
		c.known.Since = time.Now().UTC().Truncate(time.Second)
	}
}

// reportAbilities passes on the abilities if they are new.
func (c *abilities) reportAbilities() {
	c.mu.Lock()
	now := c.known.withoutOdds()
	hook := c.hook
	if now == c.reported {
		hook = nil
	}
	c.reported = now
	c.mu.Unlock()
	if hook != nil {
		hook(now)
	}
}

// learnOdds records whether a verdict came with the chances of yes and no. They are
// no longer asked for where more came without: the server does not tell them, or the
// model begins with other words, and a restricted reply says more.
func (c *abilities) learnOdds(req chatRequest, r *reply) {
	if !req.LogProbs || r.text.Len() == 0 {
		return
	}
	c.changeAbilities(func(a *Abilities) {
		if r.yes > 0 {
			a.Odds = min(a.Odds+1, mostOdds)
		} else if a.Odds--; a.Odds < 0 {
			a.NoOdds = true
		}
	})
}

// adaptRequest records that the server refuses an optional part of the request. Where the error
// names none, what a verdict has more than an answer is left out, and asked for again by
// later calls if that was not it.
func (c *abilities) adaptRequest(req chatRequest, r *reply, e *Error) *Error {
	if e.Kind != Rejected {
		return e
	}
	for _, part := range []struct {
		sent  bool
		names []string // in an error
		leave func(*Abilities)
	}{
		{req.StreamOptions != nil, []string{"stream_options", "include_usage"}, func(a *Abilities) { a.NoUsage = true }},
		{req.Temperature != nil, []string{"temperature"}, func(a *Abilities) { a.NoTemperature = true }},
		{req.LogProbs, []string{"logprobs"}, func(a *Abilities) { a.NoOdds = true }},
		{req.ResponseFormat != nil, []string{"response_format", "json_schema"}, func(a *Abilities) { a.NoFormat = true }},
		//lint:ignore SA1019 see newRequest
		{req.MaxTokens != 0, []string{"max_completion_tokens"}, func(a *Abilities) { a.NewMaxTokens = true }}, // the name to use instead
	} {
		if part.sent && slices.ContainsFunc(part.names, func(name string) bool {
			return e.param == name || strings.Contains(e.Detail, name)
		}) {
			c.changeAbilities(part.leave)
			e.adapted = true
			return e
		}
	}
	if req.LogProbs || req.ResponseFormat != nil {
		r.simplified, e.adapted = true, true
	} else if !r.simplified {
		return e
	}
	c.changeAbilities(func(a *Abilities) { a.NoOdds, a.NoFormat = e.adapted, e.adapted })
	return e
}
