package openai

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Abilities are the optional features that a server and its model support, as far as
// replies have shown. With the zero value every feature is requested.
type Abilities struct {
	// Since is the time of the first finding. Findings expire after [abilitiesLast],
	// because the server may have been replaced.
	Since time.Time

	// The server has rejected these parts of a request, so requests omit them.
	NoUsage, NoTemperature, NoOdds, NoFormat bool
	NewMaxTokens                             bool
	// Odds is the number of verdicts that came with the probabilities of yes and no,
	// minus the number that came without them, at most mostOdds.
	Odds int
	// Thinks says that the model's replies contain reasoning. Servers count it
	// against the requested length, so no length is requested.
	Thinks bool
}

const (
	abilitiesLast = 7 * 24 * time.Hour
	mostOdds      = 8
)

// abilities holds the abilities of a client's server.
type abilities struct {
	mu       sync.Mutex
	known    Abilities
	reported Abilities       // last value passed to hook
	hook     func(Abilities) // nil for none
}

// Remember sets the abilities that were detected earlier. When a reply changes them,
// learned is called with the new abilities.
func (c *abilities) Remember(a Abilities, learned func(Abilities)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.reported, c.hook = a, a.withoutOdds(), learned
}

// Abilities returns the abilities detected so far.
func (c *abilities) Abilities() Abilities {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.known.Since) > abilitiesLast {
		c.known = Abilities{}
	}
	return c.known.withoutOdds()
}

// withoutOdds reduces Odds to its sign, since its value changes with each verdict.
func (a Abilities) withoutOdds() Abilities {
	a.Odds = max(-1, min(a.Odds, 1))
	return a
}

// changeAbilities calls change with the abilities, and sets Since at the first change.
func (c *abilities) changeAbilities(change func(*Abilities)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.known
	if change(&c.known); c.known != before && c.known.Since.IsZero() {
		c.known.Since = time.Now().UTC().Truncate(time.Second)
	}
}

// reportAbilities calls the hook if the abilities have changed.
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

// learnOdds records whether a verdict came with the probabilities of yes and no. They
// are no longer requested once more verdicts came without them: the server does not
// report them, or the model begins its replies with other words, so that a reply
// restricted by a schema is more informative.
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

// adaptRequest records that the server rejects an optional part of the request. If the error
// names no part, the parts that only verdicts have are omitted. Later calls request them again
// if omitting them did not help.
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
