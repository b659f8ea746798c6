package site

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// notPublic are the ranges among the public ones that lead to this machine, to its network or to no
// host on the internet. 168.63.129.16 serves a cloud's metadata.
var notPublic = func() (prefixes []netip.Prefix) {
	for p := range strings.FieldsSeq(`0.0.0.0/8 100.64.0.0/10 168.63.129.16/32 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24
		198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 2001::/23 2001:db8::/32 2002::/16 3fff::/20`) {
		prefixes = append(prefixes, netip.MustParsePrefix(p))
	}
	return prefixes
}()

// publicIPv6 is the only IPv6 range in use on the internet.
var publicIPv6 = netip.MustParsePrefix("2000::/3")

// isPublic reports whether an address belongs to an internet host.
func isPublic(a netip.Addr) bool {
	if a = a.Unmap(); a.Zone() != "" || !a.IsGlobalUnicast() || a.IsPrivate() || a.Is6() && !publicIPv6.Contains(a) {
		return false
	}
	return !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(a) })
}

// maxAddress is the longest address in bytes that is fetched.
const maxAddress = 2048

// parse parses an address and normalises it: lower-case host, no default port, no fragment.
func parse(address string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		return nil, errors.New("it is not an address: write it as https://example.org/docs/")
	}
	return normalize(u)
}

// normalize is like parse for a parsed address.
func normalize(u *url.URL) (*url.URL, error) {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("only http and https addresses are fetched")
	case u.Opaque != "":
		return nil, errors.New("the address has no host")
	case u.User != nil:
		return nil, errors.New("the address contains a name or password, which Ibid does not send: remove them")
	case len(u.String()) > maxAddress:
		return nil, fmt.Errorf("the address is longer than %d bytes", maxAddress)
	}
	n := *u
	n.Fragment, n.RawFragment, n.ForceQuery = "", "", false
	host, port := strings.ToLower(n.Hostname()), n.Port()
	if strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) {
		var err error
		if host, err = idna.Lookup.ToASCII(host); err != nil {
			return nil, errors.New("the address has no valid host")
		}
	}
	// Remove the dots of a fully qualified name, and characters written like dots.
	if host = strings.TrimRight(host, "."); host == "" {
		return nil, errors.New("the address has no host")
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if n.Host = host; port != "" && port != map[string]string{"http": "80", "https": "443"}[n.Scheme] {
		n.Host += ":" + port
	}
	n.Path = cmp.Or(n.Path, "/")
	return &n, nil
}

// maxPath is the longest path of a document in bytes.
const maxPath = 400

// documentPath returns the path of the document for a page: the path of its address, with the
// ending of its format. [Site] makes it unique.
func documentPath(u *url.URL, ending string) string {
	var segments []string
	for s := range strings.SplitSeq(strings.Trim(u.EscapedPath(), "/"), "/") {
		if plain, err := url.PathUnescape(s); err == nil {
			s = plain
		}
		s = strings.Map(func(r rune) rune {
			if r == '/' || r == '\\' || r == '#' || r == unicode.ReplacementChar || unicode.IsControl(r) {
				return '-'
			}
			return r
		}, strings.ToValidUTF8(s, "-"))
		if strings.HasPrefix(s, ".") { // hidden files are left out
			s = "_" + s[1:]
		}
		if s != "" {
			segments = append(segments, s)
		}
	}
	if strings.HasSuffix(u.Path, "/") {
		segments = append(segments, "index")
	}
	p := strings.Join(segments, "/")
	if ext := strings.ToLower(path.Ext(p)); ext == ending || slices.Contains([]string{".htm", ".xhtml", ".markdown"}, ext) {
		p = p[:len(p)-len(ext)]
	}
	if u.RawQuery != "" {
		p += "?" + strings.NewReplacer("/", "-", "#", "-").Replace(strings.ToValidUTF8(u.RawQuery, "-"))
	}
	if len(p) > maxPath {
		p = strings.ToValidUTF8(p[:maxPath], "") + "~" + hash(u.String())[:8]
	}
	return p + ending
}

// hash returns a name for a text that every file system accepts.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}
