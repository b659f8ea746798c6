package site

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// A twin is the Markdown version of a page at its own address, by convention the page's address
// with ".md". It is read instead of the page. Its document has the address of the page if a link
// leads to that page, and the twin's address otherwise.

// readTwins adds the pages in the site's llms.txt (https://llmstxt.org), if links are followed, and
// records their twins. The file is optional.
func (c *crawl) readTwins(ctx context.Context, at *url.URL) error {
	read := ""
	for _, ref := range []string{"llms.txt", "/llms.txt"} {
		list := resolve(at, ref)
		if list == nil || list.String() == read || !c.allows(list) {
			continue
		}
		read = list.String()
		reply, _, err := c.Fetcher.follow(ctx, request{url: list, limit: maxSitemap}, c.checkHost)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || reply.status != http.StatusOK || !isPlain(reply.kind) {
			continue
		}
		f, err := c.linksIn(ctx, list, ".md", reply.body)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.noteUnread(list, err)
		}
		for _, u := range parseURLs(f.Links) {
			page := *u
			if path, ok := strings.CutSuffix(u.Path, ".md"); ok && c.checkHost(u) == nil && c.allows(u) {
				if dir, ok := strings.CutSuffix(path, "/index"); ok {
					path = dir + "/"
				}
				page.Path, page.RawPath = path, ""
				c.twins[page.String()], c.twinOf[u.String()] = u, &page
				if c.depth > 0 {
					c.listed = append(c.listed, u)
				}
				continue
			}
			c.enqueue(&page, 1, 0)
		}
		return nil
	}
	return nil
}

// enqueueListed adds the twins of pages that no link led to.
func (c *crawl) enqueueListed() {
	for _, u := range c.listed {
		page := c.twinOf[u.String()]
		delete(c.twinOf, u.String())
		if c.seen[page.String()] || c.ByURL[page.String()] != nil {
			delete(c.ByURL, u.String()) // left by a crawl in which no link led to the page
			continue
		}
		delete(c.twins, page.String())
		c.enqueue(u, 1, 0)
	}
	c.listed = nil
}

// isPlain reports whether a media type is text without markup.
func isPlain(kind string) bool {
	return kind == "text/plain" || kind == "text/markdown" || kind == "text/x-markdown"
}

// getPage requests a page, or its twin if it has a known twin that exists.
func (c *crawl) getPage(ctx context.Context, r *result, ask request) (*response, error) {
	if twin := c.twins[r.url.String()]; twin != nil {
		asked := ask
		asked.url, asked.wants = twin, isPlain
		reply, err := c.Fetcher.get(ctx, asked)
		if err == nil && (reply.status == http.StatusNotModified || reply.status == http.StatusOK && isPlain(reply.kind)) {
			reply.kind = "text/markdown"
			return reply, nil
		}
	}
	return c.Fetcher.get(ctx, ask)
}

// preferTwin replaces the body of a page with the body of its twin, if it has one.
func (c *crawl) preferTwin(ctx context.Context, r *result, twin *url.URL) {
	if twin == nil || c.checkHost(twin) != nil || !c.allows(twin) {
		return
	}
	reply, err := c.Fetcher.get(ctx, request{url: twin, limit: maxBody, wants: isPlain})
	if err == nil && reply.status == http.StatusOK && isPlain(reply.kind) && len(reply.body) > 0 {
		r.body, r.ending = reply.body, ".md"
	}
}
