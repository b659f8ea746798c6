package site

import (
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"io"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of the links in a page, and of the pages and sitemaps in a sitemap.
const (
	maxLinks = 10_000
	maxPages = 50_000
)

// foundLinks are the addresses in a page or sitemap.
type foundLinks struct {
	Links    []string // in order; unique in a page
	More     bool     // more than maxLinks or, in a sitemap, maxPages were found
	Twin     string   // address of the page as Markdown, or ""
	Sitemaps []string // in a sitemap
	Large    bool     // the unpacked sitemap exceeds maxSitemap bytes
	known    map[string]bool
}

// parseURLs parses addresses found by a child process.
func parseURLs(addresses []string) (all []*url.URL) {
	for _, a := range addresses {
		if u, err := parse(a); err == nil {
			all = append(all, u)
		}
	}
	return all
}

// add adds the target of a link.
func (f *foundLinks) add(base *url.URL, ref string) {
	u := resolve(base, ref)
	if u == nil || f.known[u.String()] || notPages[strings.ToLower(path.Ext(u.Path))] {
		return
	}
	if f.More = len(f.Links) >= maxLinks; f.More {
		return
	}
	if f.known == nil {
		f.known = make(map[string]bool)
	}
	f.known[u.String()] = true
	f.Links = append(f.Links, u.String())
}

// notPages are endings of addresses that are not documents.
var notPages = func() map[string]bool {
	endings := make(map[string]bool)
	for e := range strings.FieldsSeq(`.png .jpg .jpeg .gif .svg .webp .avif .ico .bmp .tif .tiff .css .js .mjs .map .json .xml .rss .atom
		.woff .woff2 .ttf .otf .eot .mp3 .mp4 .m4a .webm .ogg .wav .avi .mov .zip .gz .tgz .bz2 .xz .7z .rar .tar .whl .jar .exe .msi .dmg
		.deb .rpm .apk .iso .bin .wasm .inv .ics .epub .docx .xlsx .pptx .doc .xls .ppt`) {
		endings[e] = true
	}
	return endings
}()

// resolve returns the address of a reference, or nil if it is not fetched.
func resolve(base *url.URL, ref string) *url.URL {
	ref = strings.TrimSpace(ref)
	if ref == "" || ref[0] == '#' {
		return nil
	}
	u, err := base.Parse(ref)
	if err != nil {
		return nil
	}
	if u, err = normalize(u); err != nil {
		return nil
	}
	return u
}

// sitemapEnding selects sitemaps in linksIn.
const sitemapEnding = ".xml"

// linksIn returns the addresses in a page with the ending, or in a sitemap.
func linksIn(page *url.URL, ending string, body []byte) foundLinks {
	switch ending {
	case ".html":
		return htmlLinks(page, body)
	case ".md", ".txt":
		return markdownLinks(page, body)
	case sitemapEnding:
		return sitemapLinks(page, body, maxSitemap)
	}
	return foundLinks{}
}

// htmlLinks reads the tokens of a page without building a tree.
func htmlLinks(page *url.URL, body []byte) (f foundLinks) {
	base := page
	z := html.NewTokenizer(bytes.NewReader(body))
	for {
		switch z.Next() {
		case html.ErrorToken: // end of the page
			return f
		case html.StartTagToken, html.SelfClosingTagToken:
			name, hasAttributes := z.TagName()
			tag := atom.Lookup(name)
			if !hasAttributes || tag != atom.A && tag != atom.Area && tag != atom.Link && tag != atom.Base {
				continue
			}
			attributes := make(map[string]string)
			for more := true; more; {
				var key, value []byte
				key, value, more = z.TagAttr()
				attributes[string(key)] = string(value)
			}
			href := attributes["href"]
			rel := strings.Fields(strings.ToLower(attributes["rel"]))
			switch {
			case tag == atom.Base:
				if u := resolve(page, href); u != nil && base == page {
					base = u
				}
			case tag != atom.Link:
				f.add(base, href)
			case slices.Contains(rel, "alternate") && attributes["type"] == "text/markdown":
				if u := resolve(base, href); u != nil {
					f.Twin = u.String()
				}
			case slices.Contains(rel, "next") || slices.Contains(rel, "prev"):
				f.add(base, href)
			}
		}
	}
}

// markdownLink matches a link or an address between angle brackets.
var markdownLink = regexp.MustCompile(`\]\(\s*<?([^\s()<>]+(?:\([^\s()<>]*\))?[^\s()<>]*)|<(https?://[^\s<>]+)>`)

func markdownLinks(page *url.URL, body []byte) (f foundLinks) {
	for _, m := range markdownLink.FindAllSubmatch(body, maxLinks+1) {
		f.add(page, string(m[1])+string(m[2]))
	}
	return f
}

// isSitemap reports whether a body begins like a sitemap.
func isSitemap(body []byte) bool {
	head := body[:min(len(body), 1024)]
	return bytes.HasPrefix(body, []byte("\x1f\x8b")) ||
		bytes.Contains(head, []byte("<urlset")) || bytes.Contains(head, []byte("<sitemapindex"))
}

// sitemapLinks reads a sitemap (https://www.sitemaps.org/protocol.html), plain or compressed, as
// far as it is well formed. limit is the largest unpacked size in bytes.
func sitemapLinks(at *url.URL, body []byte, limit int64) (f foundLinks) {
	if bytes.HasPrefix(body, []byte("\x1f\x8b")) {
		unpacked, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return f
		}
		if body, err = io.ReadAll(io.LimitReader(unpacked, limit+1)); err != nil {
			return f
		}
		if f.Large = int64(len(body)) > limit; f.Large {
			return f
		}
	}
	if !isSitemap(body) {
		return f
	}
	type entries []struct {
		Address string `xml:"loc"`
	}
	var list struct {
		Pages    entries `xml:"url"`
		Sitemaps entries `xml:"sitemap"`
	}
	d := xml.NewDecoder(bytes.NewReader(body))
	d.Strict = false
	_ = d.Decode(&list) // keeps the entries before any damage
	resolved := func(all entries) (out []string) {
		f.More = f.More || len(all) > maxPages
		for _, e := range all[:min(len(all), maxPages)] {
			if u := resolve(at, e.Address); u != nil {
				out = append(out, u.String())
			}
		}
		return out
	}
	f.Links, f.Sitemaps = resolved(list.Pages), resolved(list.Sitemaps)
	return f
}
