package cite

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"

	"ibid/cite/rewrite"
	"ibid/ingest"
	"ibid/retrieve"
)

// webAddress returns the http or https address that a passage's document was
// fetched from or names in its metadata, or "".
func webAddress(p retrieve.Passage) string {
	u, err := url.Parse(rewrite.Link(cmp.Or(p.Meta[ingest.AddressKey], p.Meta["url"])))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	return u.String()
}

// original returns the address of a quote in the original of its document. It returns "" if the
// document was not fetched from the web, unless [Options.LinkDocuments] allows the address in
// its metadata.
func (n *numbering) original(p retrieve.Passage, quote string) string {
	if p.Meta[ingest.AddressKey] == "" && (!n.options.LinkDocuments || p.Root == retrieve.Uploads) {
		return ""
	}
	return Original(webAddress(p), p, quote)
}

// Original returns the address of a quote in the original of its document, which
// is at address: with the page of a PDF, the anchor of a heading, and in HTML the
// words themselves as a text fragment. An address with a fragment is returned
// unchanged. For an address that must not be a link it returns "".
func Original(address string, p retrieve.Passage, quote string) string {
	address = rewrite.Link(address)
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
	if p.Format == "html" || p.Meta[ingest.AddressKey] != "" {
		if words := textFragment(quote); words != "" {
			fragment += ":~:" + words
		}
	}
	if fragment == "" {
		return address
	}
	return address + "#" + fragment
}

// textFragment returns the text directive by which a browser finds and marks a
// quote: its first and last words. See
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
