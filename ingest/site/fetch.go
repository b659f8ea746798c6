package site

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Agent is the name by which robots.txt addresses Ibid.
const Agent = "Ibid"

// Limits of a request.
const (
	requestTime = 30 * time.Second
	dialTime    = 10 * time.Second
	maxHeader   = 64 << 10
	maxTries    = 3
	// tryPause is the pause before a request is repeated, unless the server asks for another.
	// longestPause limits the pause that a server asks for.
	tryPause     = time.Second
	longestPause = 30 * time.Second
)

// A RefusedError is the reason why an address is not fetched.
type RefusedError struct{ Address, Reason string }

func (e *RefusedError) Error() string { return e.Address + " is not fetched: " + e.Reason }

// A Fetcher requests addresses over HTTP and HTTPS, without cookies, credentials or a proxy. Its
// zero value is ready for use by any number of goroutines.
type Fetcher struct {
	// Private allows all addresses and ports. Otherwise only public addresses and the default ports
	// are allowed.
	Private bool

	once   sync.Once
	client *http.Client
	// Replaced by tests.
	lookup  func(ctx context.Context, host string) ([]netip.Addr, error)
	connect func(ctx context.Context, network, address string) (net.Conn, error)
	pause   time.Duration
}

func (f *Fetcher) start() {
	f.once.Do(func() {
		if f.lookup == nil {
			f.lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
				return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
			}
		}
		if f.connect == nil {
			f.connect = (&net.Dialer{Timeout: dialTime}).DialContext
		}
		f.pause = cmp.Or(f.pause, tryPause)
		f.client = &http.Client{
			Transport: &http.Transport{
				DialContext: f.dial, ForceAttemptHTTP2: true, TLSHandshakeTimeout: dialTime, IdleConnTimeout: requestTime,
				MaxIdleConnsPerHost: parallel, MaxResponseHeaderBytes: maxHeader,
			},
			// The crawl decides whether to follow a redirect, as for any other link.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	})
}

// Close closes the idle connections.
func (f *Fetcher) Close() {
	f.start()
	f.client.CloseIdleConnections()
}

// check returns the reason why an address is not fetched, as far as the address alone shows it, or
// nil.
func (f *Fetcher) check(u *url.URL) error {
	n, err := normalize(u)
	switch {
	case err != nil:
		return &RefusedError{u.Redacted(), err.Error()}
	case f.Private:
		return nil
	case n.Port() != "":
		return &RefusedError{u.String(), "only the ports 80 and 443 are used without --fetch-private"}
	}
	if a, err := netip.ParseAddr(n.Hostname()); err == nil && !isPublic(a) {
		return notPublicError(u.String(), a)
	}
	return nil
}

func notPublicError(address string, a netip.Addr) error {
	return &RefusedError{address, fmt.Sprintf("%s is not a public address: use --fetch-private to allow it", a)}
}

// dial connects to a host at the addresses that were checked.
func (f *Fetcher) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addresses, err := f.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, a := range addresses {
		conn, err := f.connect(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil {
			return conn, nil
		}
		failed = cmp.Or(failed, err)
	}
	return nil, failed
}

// resolve returns the addresses of a host. It returns an error if any of them is not public.
func (f *Fetcher) resolve(ctx context.Context, host string) (addresses []netip.Addr, err error) {
	if a, err := netip.ParseAddr(host); err == nil {
		addresses = []netip.Addr{a}
	} else if addresses, err = f.lookup(ctx, host); err != nil {
		return nil, err
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("the name %s has no address", host)
	}
	for i, a := range addresses {
		if addresses[i] = a.Unmap(); !f.Private && !isPublic(a) {
			return nil, notPublicError(host, a)
		}
	}
	return addresses, nil
}

// A request describes what to fetch.
type request struct {
	url *url.URL
	// etag and modified describe the stored version.
	etag, modified string
	limit          int64                  // of the unpacked body in bytes
	wants          func(kind string) bool // reports whether to read a body of a media type; nil means always
}

// A response is the reply to a request.
type response struct {
	status   int
	location *url.URL // target of a redirect; nil if it is not fetched
	kind     string   // media type
	body     []byte   // if the status is 200 and the body is wanted
	etag     string
	modified string
	wait     time.Duration // requested by the server
}

// errTooLarge means that a body is larger than the limit.
var errTooLarge = errors.New("too large")

// get sends a request, and repeats it if the server is busy or the connection breaks.
func (f *Fetcher) get(ctx context.Context, r request) (*response, error) {
	f.start()
	if err := f.check(r.url); err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		reply, err := f.sendOnce(ctx, r)
		var refused *RefusedError
		var unknown *net.DNSError
		if n == maxTries || ctx.Err() != nil || errors.As(err, &refused) || errors.As(err, &unknown) && unknown.IsNotFound ||
			errors.Is(err, errTooLarge) || errors.Is(err, context.DeadlineExceeded) ||
			err == nil && reply.status != http.StatusTooManyRequests && reply.status < 500 {
			return reply, err
		}
		pause := f.pause << n
		if reply != nil && reply.wait > 0 {
			pause = min(reply.wait, longestPause)
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// sendOnce sends a request once.
func (f *Fetcher) sendOnce(ctx context.Context, r request) (*response, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	sent, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url.String(), nil)
	if err != nil {
		return nil, err
	}
	sent.Header.Set("User-Agent", Agent+" (reads documents for a local search)")
	sent.Header.Set("Accept", "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5")
	for name, value := range map[string]string{"If-None-Match": r.etag, "If-Modified-Since": r.modified} {
		if value != "" {
			sent.Header.Set(name, value)
		}
	}
	got, err := f.client.Do(sent)
	if err != nil {
		return nil, cmp.Or(errors.Unwrap(err), err) // the outer error repeats the address
	}
	defer got.Body.Close()
	reply := &response{status: got.StatusCode, etag: got.Header.Get("ETag"), modified: got.Header.Get("Last-Modified")}
	seconds, _ := strconv.Atoi(got.Header.Get("Retry-After")) // a date is ignored
	reply.wait = time.Duration(seconds) * time.Second
	kind, _, _ := strings.Cut(got.Header.Get("Content-Type"), ";")
	reply.kind = strings.ToLower(strings.TrimSpace(kind))
	if location, err := got.Location(); err == nil && got.StatusCode/100 == 3 {
		if reply.location, err = normalize(location); err != nil {
			return nil, &RefusedError{location.Redacted(), err.Error()}
		}
	}
	if got.StatusCode != http.StatusOK || r.wants != nil && !r.wants(reply.kind) {
		return reply, nil
	}
	if reply.body, err = io.ReadAll(io.LimitReader(got.Body, r.limit+1)); err != nil {
		return nil, fmt.Errorf("the reply ended early: %w", err)
	}
	if int64(len(reply.body)) > r.limit {
		return nil, fmt.Errorf("the page is %w: it has more than %d MB", errTooLarge, r.limit>>20)
	}
	return reply, nil
}

// maxRedirects is the largest number of consecutive redirects.
const maxRedirects = 10

// follow is like get, but follows redirects.
func (f *Fetcher) follow(ctx context.Context, r request, allowed func(*url.URL) error) (*response, *url.URL, error) {
	for range maxRedirects + 1 {
		if err := allowed(r.url); err != nil {
			return nil, nil, err
		}
		reply, err := f.get(ctx, r)
		if err != nil || reply.location == nil {
			return reply, r.url, err
		}
		r.url = reply.location
	}
	return nil, nil, fmt.Errorf("more than %d redirects", maxRedirects)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
