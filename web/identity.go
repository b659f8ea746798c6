package web

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
	"golang.org/x/net/http/httpguts"

	"ibid/retrieve"
)

// A Grant says what the members of a group may do.
type Grant struct {
	Group    string // "*": all signed-in users
	Write    bool
	Settings bool
	// Collections are the collections that the grant is for; empty means all.
	Collections []string
}

// ParseGrant reads GROUP=SCOPE:COLLECTION,…, such as staff=read:handbook. The scope is
// read, write or settings; the collection "*" means all.
func ParseGrant(s string) (Grant, error) {
	at := strings.LastIndexByte(s, '=')
	scope, names, ok := strings.Cut(s[at+1:], ":")
	g := Grant{Group: strings.TrimSpace(s[:max(at, 0)]), Write: scope != "read", Settings: scope == "settings"}
	switch {
	case g.Group == "" || !ok || !slices.Contains([]string{"read", "write", "settings"}, scope):
		return Grant{}, errors.New("give GROUP=read:COLLECTION or GROUP=write:COLLECTION")
	case names == "*":
		return g, nil
	case g.Settings:
		return Grant{}, errors.New("the settings apply to all collections: give settings:*")
	}
	g.Collections = strings.Split(names, ",")
	if slices.Contains(g.Collections, "") || slices.Contains(g.Collections, "*") {
		return Grant{}, errors.New("name collections, separated by commas, or * alone for all")
	}
	return g, nil
}

// A SignIn says how trusted proxies identify people who have signed in.
type SignIn struct {
	User   string // header with the name
	Groups string // header with the groups, separated by commas
	Grants []Grant
}

// Check fails if a header name is invalid or has another meaning.
func (s *SignIn) Check() error {
	for _, name := range []string{s.User, s.Groups} {
		switch h := http.CanonicalHeaderKey(name); {
		case !httpguts.ValidHeaderFieldName(name), h == "Authorization", h == "Cookie", h == "Host", h == "Origin", h == "X-Forwarded-For":
			return fmt.Errorf("%q cannot be the header of a name or of groups: give one like X-Forwarded-User", name)
		}
	}
	if strings.EqualFold(s.User, s.Groups) {
		return fmt.Errorf("the name and the groups cannot both be in %s", s.User)
	}
	return nil
}

// people identifies callers that have signed in at a trusted proxy.
type people struct {
	SignIn
	proxies []netip.Prefix
	logger  *slog.Logger
}

// proxyIdentity returns the name and the groups that a trusted proxy sends, or "" for a
// caller that has not signed in. Headers from other senders are ignored; a warning without
// their values is logged.
func (p *people) proxyIdentity(c echo.Context) (name, in string, _ error) {
	if p == nil {
		return "", "", nil
	}
	r := c.Request()
	names, groups := r.Header.Values(p.User), r.Header.Values(p.Groups)
	if len(names) == 0 && len(groups) == 0 {
		return "", "", nil
	}
	if !p.trusts(r.RemoteAddr) {
		p.logger.WarnContext(r.Context(), "a name was ignored: its sender is not one of --trust-proxy", "header", p.User, "from", r.RemoteAddr)
		return "", "", nil
	}
	if len(names) > 1 || len(groups) > 1 {
		return "", "", unauthorized("bad_identity", "%s or %s came twice: the proxy must replace what a client sends in them", p.User, p.Groups)
	}
	name = strings.TrimSpace(r.Header.Get(p.User)) // empty if the caller has not signed in
	if len(name) > maxPersonName || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", "", unauthorized("bad_identity", "the name in %s cannot be used: it is longer than %d bytes, or cannot be printed", p.User,
			maxPersonName)
	}
	return name, r.Header.Get(p.Groups), nil
}

// maxPersonName is the longest name of a person, in bytes.
const maxPersonName = 200

// trusts reports whether the other end of a connection is a trusted proxy.
func (p *people) trusts(remote string) bool {
	from, err := netip.ParseAddrPort(remote)
	a := from.Addr().Unmap().WithZone("")
	return err == nil && slices.ContainsFunc(p.proxies, func(n netip.Prefix) bool { return n.Contains(a) })
}

// identify returns the holder for the name and groups that a trusted proxy sent. A group that
// may only read does not extend the write access of another group.
func (p *people) identify(name, in string) (*holder, error) {
	groups := strings.Split(in, ",")
	for i := range groups {
		groups[i] = strings.TrimSpace(groups[i])
	}
	mine := slices.DeleteFunc(slices.Clone(p.Grants), func(g Grant) bool { return g.Group != "*" && !slices.Contains(groups, g.Group) })
	if len(mine) == 0 {
		return nil, problem(http.StatusForbidden, "no_group",
			"%q is signed in, but is in no group that may use this server: ask its operator", name)
	}
	key := retrieve.Key{ID: "user:" + name, Name: name, Collections: unionOf(mine),
		Settings: slices.ContainsFunc(mine, func(g Grant) bool { return g.Settings })}
	writing := slices.DeleteFunc(mine, func(g Grant) bool { return !g.Write })
	key.Write = len(writing) > 0
	return &holder{key: &key, person: true, writes: unionOf(writing)}, nil
}

// unionOf returns the collections of grants; nil means all.
func unionOf(grants []Grant) (collections []string) {
	for _, g := range grants {
		if len(g.Collections) == 0 {
			return nil
		}
		collections = append(collections, g.Collections...)
	}
	return collections
}
