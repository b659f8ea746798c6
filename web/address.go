package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
)

// An address is where people reach the server.
type address struct {
	public *url.URL // nil without a public URL
}

func newAddress(publicURL string) (address, error) {
	if publicURL == "" {
		return address{}, nil
	}
	u, err := url.Parse(strings.TrimRight(publicURL, "/"))
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return address{}, fmt.Errorf("reading the public URL %q: give an absolute address such as https://docs.example.org", publicURL)
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return address{u}, nil
}

// base is the absolute address that links begin with, without a trailing slash.
func (a address) base(c echo.Context) string {
	if a.public != nil {
		return a.public.String()
	}
	// Not c.Scheme(): it trusts X-Forwarded-Proto from any client.
	scheme := "http"
	if c.IsTLS() {
		scheme = "https"
	}
	return scheme + "://" + c.Request().Host
}

// prefix is the path below which a proxy serves this server, "" for none.
func (a address) prefix() string {
	if a.public == nil {
		return ""
	}
	return a.public.EscapedPath()
}

func (a address) secure() bool { return a.public != nil && a.public.Scheme == "https" }

// stripPrefix removes the public URL's path from a request's path, unless the proxy has
// removed it already.
func (a address) stripPrefix(next echo.HandlerFunc) echo.HandlerFunc {
	if a.prefix() == "" {
		return next
	}
	below := func(path, prefix string) string {
		if rest, ok := strings.CutPrefix(path, prefix); ok && (rest == "" || rest[0] == '/') {
			return "/" + strings.TrimPrefix(rest, "/")
		}
		return path
	}
	return func(c echo.Context) error {
		u := c.Request().URL
		u.Path = below(u.Path, a.public.Path)
		if u.RawPath != "" {
			u.RawPath = below(u.RawPath, a.prefix())
		}
		return next(c)
	}
}

// Link returns the address of the viewer page for a document with the bytes from start to end
// of its text marked, below base ("http://host:port", a path prefix allowed). An invalid
// range marks nothing.
func Link(base, document string, start, end int) string {
	segments := strings.Split(document, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	link := strings.TrimRight(base, "/") + "/documents/" + strings.Join(segments, "/")
	if start >= 0 && end > start {
		link += fmt.Sprintf("?start=%d&end=%d#quote", start, end)
	}
	return link
}

// parseLink is the reverse of [Link]: it returns the document's id, which follows route in
// the escaped path, and the range in the query.
func parseLink(u *url.URL, route string) (document string, r textRange, err error) {
	document, err = url.PathUnescape(strings.TrimPrefix(u.EscapedPath(), route))
	if err != nil {
		return "", textRange{}, invalid("bad_document", "the address is not the address of a document: %v", err)
	}
	q := u.Query()
	r.quote = quoteRef{Digest: q.Get("digest"), Hash: q.Get("quote")}
	for _, p := range []struct {
		name string
		to   *int
	}{{"start", &r.Start}, {"end", &r.End}, {"at", &r.At}, {"page", &r.Page}} {
		v := q.Get(p.name)
		if v == "" {
			continue
		}
		if *p.to, err = parseNumber(v); err != nil {
			return "", textRange{}, invalid("bad_range", "%s is %.40q: give a number, 0 or more", p.name, v)
		}
	}
	return document, r, nil
}

// parseNumber parses a number in an address, from 0 to 2³¹-1.
func parseNumber(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err
}

// A textRange is the part of a document's text that an address asks for, in bytes.
type textRange struct {
	Start, End int // to mark; nothing is marked unless End is greater than Start
	At         int // the place to show if nothing is marked
	Page       int // the page to show even if text is marked; 0 for none

	quote quoteRef // the words that were between Start and End
}

// contentSecurityPolicy lets a page load only what this server serves.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func setHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set(echo.HeaderContentSecurityPolicy, contentSecurityPolicy)
		h.Set(echo.HeaderXContentTypeOptions, "nosniff")
		h.Set(echo.HeaderReferrerPolicy, "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		return next(c)
	}
}

// hostCheck refuses requests for unknown hosts. Otherwise a site could rebind its name to
// this server's address and read it through a visitor's browser.
type hostCheck struct {
	address address
	listen  string // address that the server listens on
	allowed []string
}

func (h hostCheck) check(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !h.allows(c.Request().Host) {
			return problem(http.StatusForbidden, "host_not_allowed",
				"this server does not accept the host name %q: use the address that it was started with, "+
					"or start it with --public-url or --allow-host", c.Request().Host)
		}
		return next(c)
	}
}

func (h hostCheck) allows(hostport string) bool {
	host := hostname(hostport)
	if host == "" {
		return false
	}
	if isLoopback(host) || (h.address.public != nil && strings.EqualFold(host, h.address.public.Hostname())) ||
		slices.ContainsFunc(h.allowed, func(allowed string) bool { return strings.EqualFold(host, hostname(allowed)) }) {
		return true
	}
	// An IP address cannot be rebound; a name can.
	_, err := netip.ParseAddr(host)
	return err == nil && !isLoopback(hostname(h.listen))
}

// hostname removes the port, the brackets of IPv6 and a trailing dot from a Host header.
func hostname(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return strings.TrimSuffix(host, ".")
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// refuseCrossOrigin refuses requests for changes from pages of other sites.
func (a address) refuseCrossOrigin() (echo.MiddlewareFunc, error) {
	guard := http.NewCrossOriginProtection()
	if a.public != nil {
		if err := guard.AddTrustedOrigin(a.public.Scheme + "://" + a.public.Host); err != nil {
			return nil, fmt.Errorf("trusting the public URL: %w", err)
		}
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if err := guard.Check(c.Request()); err != nil {
				return problem(http.StatusForbidden, "cross_origin",
					"pages of other sites may not send requests here; if this page is served through a proxy, start the server with "+
						"--public-url").withCause(err)
			}
			return next(c)
		}
	}, nil
}

// ipExtractor returns a function that extracts the client's address from a request.
// X-Forwarded-For is used only if a trusted proxy sent it: the client is then the last address
// in it that is not a trusted proxy.
func ipExtractor(trusted []netip.Prefix) echo.IPExtractor {
	if len(trusted) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range trusted {
		bits := 32
		if p.Addr().Is6() {
			bits = 128
		}
		options = append(options, echo.TrustIPRange(&net.IPNet{IP: p.Masked().Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), bits)}))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}

// origins are the sites whose pages may ask this server, such as "https://example.org".
type origins []string

// CheckOrigin returns an error unless origin has the form that browsers send.
func CheckOrigin(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Scheme+"://"+u.Host != origin {
		return fmt.Errorf("%q is not an origin: give it as https://example.org, without a path", origin)
	}
	return nil
}

// contains reports whether a request comes from a page of these origins.
func (o origins) contains(c echo.Context) bool {
	return slices.Contains(o, c.Request().Header.Get("Origin"))
}

// admitOrigins lets pages of these origins use the routes for visitors. They must send a key
// if keys are in use; cookies and the headers of a proxy are ignored. guard handles all other
// requests.
func (g *keyGuard) admitOrigins(guard echo.MiddlewareFunc) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		guarded := guard(next)
		return func(c echo.Context) error {
			r, h := c.Request(), c.Response().Header()
			if g.access["POST "+r.URL.Path] != visitors || !g.origins.contains(c) {
				return guarded(c)
			}
			h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
			h.Add("Vary", "Origin")
			if r.Method == http.MethodOptions {
				h.Set("Access-Control-Allow-Methods", http.MethodPost)
				h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
				h.Set("Access-Control-Max-Age", "600")
				return c.NoContent(http.StatusNoContent)
			}
			h.Set("Access-Control-Expose-Headers", "Retry-After, X-Request-Id")
			r.Header.Del("Cookie")
			if g.people != nil {
				r.Header.Del(g.people.User)
			}
			return next(c)
		}
	}
}
