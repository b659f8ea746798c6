package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/labstack/echo/v4"
)

// contentSecurityPolicy lets a page load only what this server serves.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// headers sets the security headers on every reply, errors included.
func headers(next echo.HandlerFunc) echo.HandlerFunc {
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

// hostCheck refuses requests for unknown hosts. A site that rebinds its name to
// this server's address could otherwise read it through a visitor's browser.
type hostCheck struct {
	address
	listen  string // address that the server listens on
	allowed []string
}

func (h hostCheck) check(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !h.allows(c.Request().Host) {
			return &Problem{Status: http.StatusForbidden, Code: "host_not_allowed",
				Detail: fmt.Sprintf("this server does not answer as %q: use the address it was started with, "+
					"or start it with --public-url or --allow-host", c.Request().Host)}
		}
		return next(c)
	}
}

func (h hostCheck) allows(hostport string) bool {
	host := hostname(hostport)
	if host == "" {
		return false
	}
	if isLoopback(host) || (h.public != nil && strings.EqualFold(host, h.public.Hostname())) {
		return true
	}
	for _, allowed := range h.allowed {
		if strings.EqualFold(host, hostname(allowed)) {
			return true
		}
	}
	// An address cannot be rebound; a name can.
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

// refuseCrossOrigin refuses changes that another site's page makes a browser send.
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
				return &Problem{Status: http.StatusForbidden, Code: "cross_origin",
					Detail: "a page of another site may not send requests here; if this page is served through a proxy, start the server with " +
						"--public-url", cause: err}
			}
			return next(c)
		}
	}, nil
}

// ipExtractor returns how to find the address that a request comes from.
// X-Forwarded-For is the client's own claim unless a trusted proxy sent it: then
// its last address that is no trusted proxy counts.
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
