package cite

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"ibid/retrieve"
)

// link gives an address without white space around it, or "" if it has a
// scheme other than http and https. The scheme is looked for as lenient
// readers do: "java\nscript:" has one.
func link(address string) string {
	address = strings.TrimFunc(address, unicode.IsSpace)
	bare := strings.ToLower(strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7F {
			return -1
		}
		return r
	}, address))
	for i, r := range bare {
		switch {
		case r == ':' && i > 0:
			if s := bare[:i]; s != "http" && s != "https" {
				return ""
			}
			return address
		case 'a' <= r && r <= 'z':
		case i > 0 && ('0' <= r && r <= '9' || r == '+' || r == '.' || r == '-'):
		default:
			return address
		}
	}
	return address
}

// webAddress gives the http or https address that a passage's document says it
// has, in its metadata under "url"; "" if there is none.
func webAddress(p retrieve.Passage) string {
	u, err := url.Parse(link(p.Meta["url"]))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	return u.String()
}

// Original gives the address of a quote's place in the original of its
// document, which is at address: the page of a PDF, the anchor of a heading,
// and in HTML the words themselves as a text fragment. An address that leads to
// a place already stays as it is; one that must not be a link gives "".
func Original(address string, p retrieve.Passage, quote string) string {
	address = link(address)
	if address == "" || strings.Contains(address, "#") {
		return address
	}
	if p.Format == "pdf" {
		if p.Page > 0 {
			address += "#page=" + strconv.Itoa(p.Page)
		}
		return address
	}
	fragment := (&url.URL{Fragment: p.Anchor}).EscapedFragment()
	if p.Format == "html" {
		if words := textFragment(quote); words != "" {
			fragment += ":~:" + words
		}
	}
	if fragment == "" {
		return address
	}
	return address + "#" + fragment
}

// textFragment gives the text directive for a quote: its first and last words,
// which is what a browser needs to find and mark it. See
// https://wicg.github.io/scroll-to-text-fragment/.
func textFragment(quote string) string {
	const few = 4
	words := strings.Fields(quote)
	escape := func(words []string) string {
		// A dash is part of the directive's syntax, like the comma and "&".
		return strings.ReplaceAll(strings.ReplaceAll(url.QueryEscape(strings.Join(words, " ")), "+", "%20"), "-", "%2D")
	}
	switch n := len(words); {
	case n == 0:
		return ""
	case n <= 2*few:
		return "text=" + escape(words)
	default:
		return "text=" + escape(words[:few]) + "," + escape(words[n-few:])
	}
}
