// Package site reads web sites. It crawls them within limits, stores the fetched pages in a folder,
// and presents them as a file system.
package site

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/temoto/robotstxt"

	"ibid/ingest/child"
)

// Limits bound a crawl. Zero means the default.
type Limits struct {
	Pages int // addresses requested
	Depth int // consecutive links followed
}

// Defaults of the limits.
const (
	DefaultPages = 5000
	DefaultDepth = 20
)

// Fixed limits.
const (
	maxBody     = 32 << 20 // unpacked bytes of a page
	maxBytes    = 1 << 30  // unpacked bytes of all pages together
	maxTime     = time.Hour
	parallel    = 4 // requests at a time
	maxSitemaps = 50
	maxRobots   = 512 << 10
	maxSitemap  = 50 << 20
	savedPages  = 100 // pages between two saves of the index
	// longestDelay is the longest time between requests that robots.txt may ask for.
	longestDelay = 10 * time.Second
	// resumable is the age up to which an unfinished crawl is resumed.
	resumable = 24 * time.Hour
)

// A Report describes the outcome of a crawl.
type Report struct {
	Pages      int // addresses requested
	Fetched    int // new or changed pages among them
	Disallowed int // addresses that robots.txt does not allow
	// Limits are the limits that were reached.
	Limits []Notice
}

// A Notice describes a part of a site that was left out.
type Notice struct {
	// Code identifies the kind of notice. Codes are stable.
	Code string `json:"code"`
	// N is the number in the notice, of pages, addresses, links, sitemaps, minutes or megabytes.
	N int `json:"n"`
	// Address is the page or sitemap; empty for the site.
	Address string `json:"address,omitempty"`
	// Detail is the notice in English.
	Detail string `json:"detail"`
}

func (n Notice) String() string { return n.Detail }

// A crawl is one crawl of a site.
type crawl struct {
	*Site
	force    bool
	progress func(done, total int)
	children *child.Pool

	scope  url.URL // addresses on its host below its path are read
	depth  int
	robots map[string]*robotstxt.RobotsData // by origin
	delay  time.Duration                    // between requests

	queue    []item
	seen     map[string]bool
	taken    map[string]string   // addresses by document path
	twins    map[string]*url.URL // by address of the page
	twinOf   map[string]*url.URL // the page, by address of the twin
	listed   []*url.URL          // twins in order
	running  int
	bytes    int64
	deferred bool // the next crawl resumes this one
	report   Report
}

// An item is an address to request.
type item struct {
	url         *url.URL
	depth, hops int // hops are redirects
	previous    page
}

// A result is the outcome of a request.
type result struct {
	item
	reply  *response // nil if no reply was needed
	err    error
	body   []byte
	ending string // of the page's format; empty if it is not read
	found  foundLinks
}

// Crawl requests the pages of the site and updates the mirror. An address that ends in "/" is read
// with all pages below it that links or sitemaps lead to. A sitemap is read with the pages in it.
// Any other address is one page.
//
// A page that has not changed is not sent again, unless force is set. Pages left out because of a
// limit keep their last version. err describes a failure of the address itself or of the mirror;
// the file system reports failures of other pages. An interrupted crawl is resumed.
func (s *Site) Crawl(ctx context.Context, force bool, progress func(done, total int)) (report Report, err error) {
	c := &crawl{
		Site: s, force: force, progress: progress, robots: make(map[string]*robotstxt.RobotsData), children: child.NewPool(childRole),
		seen: make(map[string]bool), taken: make(map[string]string),
		twins: make(map[string]*url.URL), twinOf: make(map[string]*url.URL),
	}
	l := &s.Limits
	l.Pages, l.Depth = cmp.Or(l.Pages, DefaultPages), cmp.Or(l.Depth, DefaultDepth)
	for u, p := range s.ByURL {
		c.taken[p.Path] = u
	}
	if !s.Ended.IsZero() || time.Since(s.Started) > resumable {
		s.Started, s.Ended = time.Now(), time.Time{}
	}
	defer s.Fetcher.Close()
	defer c.children.Close()
	first, err := c.begin(ctx)
	if err != nil {
		return report, fmt.Errorf("reading %s: %w", s.address, err)
	}
	if err := errors.Join(c.run(ctx, first), s.save()); err != nil {
		return c.report, err
	}
	if !c.deferred {
		s.Ended = time.Now()
		err = s.clean()
	}
	s.setFiles()
	return c.report, errors.Join(err, s.save())
}

// begin fetches the first page and determines the scope of the site.
func (c *crawl) begin(ctx context.Context) (first result, err error) {
	allowed := func(u *url.URL) error {
		robots, err := c.robotsOf(ctx, u)
		if err == nil && !robots.TestAgent(u.RequestURI(), Agent) {
			err = errors.New("robots.txt does not allow it")
		}
		return err
	}
	reply, at, err := c.Fetcher.follow(ctx, request{url: c.address, limit: maxSitemap}, allowed)
	switch {
	case err != nil:
		return first, err
	case reply.status != http.StatusOK:
		return first, statusError(reply.status)
	}
	c.scope = url.URL{Scheme: at.Scheme, Host: at.Host, Path: "/"}
	if group := c.robots[origin(at)].FindGroup(Agent); group.CrawlDelay > 0 {
		c.delay = min(group.CrawlDelay, longestDelay)
	}
	c.seen[at.String()] = true
	first = result{item: item{url: at}, reply: reply}
	var sitemaps []*url.URL
	whole := isSitemap(reply.body)
	if whole {
		first.reply, sitemaps = nil, []*url.URL{at}
	} else if strings.HasSuffix(at.Path, "/") || strings.HasSuffix(c.address.Path, "/") {
		c.depth, c.scope.Path = c.Limits.Depth, sitePath(c.address, at)
		for _, ref := range append([]string{"/sitemap.xml"}, c.robots[origin(at)].Sitemaps...) {
			if u := resolve(at, ref); u != nil {
				sitemaps = append(sitemaps, u)
			}
		}
	}
	if err := c.readTwins(ctx, at); err != nil {
		return first, err
	}
	if whole {
		c.depth = 1 // the pages with listed twins are not part of a sitemap
	}
	if err := c.readSitemaps(ctx, sitemaps); err != nil || whole {
		return first, err
	}
	if c.readReply(ctx, &first); first.ending == ".html" {
		c.preferTwin(ctx, &first, c.twins[at.String()])
	}
	if first.ending == "" {
		return first, fmt.Errorf("it is %s, which is not read: give the address of a page or a sitemap",
			cmp.Or(reply.kind, "of no known kind"))
	}
	return first, nil
}

// sitePath returns the path of a site whose address led to a page. An address that ends in "/" may
// redirect to a page that does not: /docs/ to /docs, / to /home.html.
func sitePath(address, at *url.URL) string {
	switch {
	case strings.HasSuffix(at.Path, "/"):
		return at.Path
	case strings.HasPrefix(at.Path+"/", address.Path) &&
		strings.TrimPrefix(at.Host, "www.") == strings.TrimPrefix(address.Host, "www."):
		return address.Path
	case path.Ext(at.Path) == "":
		return at.Path + "/"
	}
	return at.Path[:strings.LastIndex(at.Path, "/")+1]
}

// robotsOf returns the robots.txt rules of an address's site.
func (c *crawl) robotsOf(ctx context.Context, u *url.URL) (*robotstxt.RobotsData, error) {
	if rules := c.robots[origin(u)]; rules != nil {
		return rules, nil
	}
	at := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"}
	reply, _, err := c.Fetcher.follow(ctx, request{url: at, limit: maxRobots}, func(*url.URL) error { return nil })
	if err != nil {
		return nil, err
	}
	rules, err := robotstxt.FromStatusAndBytes(reply.status, reply.body)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", at, err)
	}
	if reply.status >= http.StatusInternalServerError {
		return nil, fmt.Errorf("%s: %w", at, statusError(reply.status))
	}
	c.robots[origin(u)] = rules
	return rules, nil
}

// readSitemaps adds the pages of sitemaps and of the sitemaps that they name.
func (c *crawl) readSitemaps(ctx context.Context, sitemaps []*url.URL) error {
	read := make(map[string]bool)
	for len(sitemaps) > 0 {
		at := sitemaps[0]
		sitemaps = sitemaps[1:]
		if read[at.String()] || at.Host != c.scope.Host || !c.allows(at) {
			continue
		}
		if len(read) == maxSitemaps {
			c.noteLimit("many_sitemaps", maxSitemaps, nil, "more than %d sitemaps")
			return nil
		}
		read[at.String()] = true
		reply, _, err := c.Fetcher.follow(ctx, request{url: at, limit: maxSitemap}, c.checkHost)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, errTooLarge) {
			c.noteLimit("large_sitemap", maxSitemap>>20, at, "the sitemap %[2]s has more than %[1]d MB")
		}
		if err != nil || reply.status != http.StatusOK {
			continue
		}
		m, err := c.linksIn(ctx, at, sitemapEnding, reply.body)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			c.noteUnread(at, err)
		case m.More:
			c.noteLimit("long_sitemap", maxPages, at, "the sitemap %[2]s has more than %[1]d addresses")
		case m.Large:
			c.noteLimit("large_sitemap", maxSitemap>>20, at, "the sitemap %[2]s has more than %[1]d MB, unpacked")
		}
		for _, u := range parseURLs(m.Links) {
			c.enqueue(u, 1, 0)
		}
		sitemaps = append(sitemaps, parseURLs(m.Sitemaps[:min(len(m.Sitemaps), max(maxPages-len(sitemaps), 0))])...)
	}
	return nil
}

// enqueue adds an address to the queue if it belongs to the site and is new.
func (c *crawl) enqueue(u *url.URL, depth, hops int) {
	if c.checkHost(u) != nil || !strings.HasPrefix(u.Path, c.scope.Path) || depth > c.depth {
		return
	}
	if u.Scheme != c.scope.Scheme && u.Port() == "" {
		same := *u
		same.Scheme = c.scope.Scheme
		u = &same
	}
	key := u.String()
	if c.seen[key] || c.twinOf[key] != nil || c.report.Disallowed == maxPages && !c.allows(u) {
		return
	}
	if len(c.queue)+c.report.Pages >= c.Limits.Pages {
		c.noteLimit("many_pages", c.Limits.Pages, nil, "it has more than %d pages (--max-pages)")
		return
	}
	c.seen[key] = true
	if !c.allows(u) {
		c.report.Disallowed++
		delete(c.ByURL, key)
		return
	}
	it := item{url: u, depth: depth, hops: hops}
	if p := c.ByURL[key]; p != nil {
		it.previous = *p
	}
	c.queue = append(c.queue, it)
}

func (c *crawl) allows(u *url.URL) bool {
	robots := c.robots[origin(&c.scope)]
	return robots == nil || robots.TestAgent(u.RequestURI(), Agent)
}

// checkHost returns the reason why an address is not part of the site, or nil.
func (c *crawl) checkHost(u *url.URL) error {
	if u.Host != c.scope.Host {
		return errors.New("it redirects to another site")
	}
	return nil
}

// noteLimit records that a limit was reached. format has a verb for n.
func (c *crawl) noteLimit(code string, n int, at *url.URL, format string) {
	notice := Notice{Code: code, N: n, Detail: fmt.Sprintf(format, n)}
	if at != nil {
		notice.Address = at.String()
		notice.Detail = fmt.Sprintf(format, n, at)
	}
	if !slices.Contains(c.report.Limits, notice) {
		c.report.Limits = append(c.report.Limits, notice)
	}
}

// noteUnread records a list of addresses that can't be read.
func (c *crawl) noteUnread(at *url.URL, err error) {
	c.report.Limits = append(c.report.Limits, Notice{Code: "unread_list", Address: at.String(), Detail: fmt.Sprintf("%s: %s", at, err)})
}

// run works through the queue, and then through pages found by earlier crawls.
func (c *crawl) run(ctx context.Context, first result) (err error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	results := make(chan result)
	if first.reply != nil { // no sitemap
		c.report.Pages++
	}
	err = c.merge(first)
	for err == nil {
		if len(c.queue) == 0 && c.running == 0 {
			c.enqueueListed()
		}
		if len(c.queue) == 0 && c.running == 0 {
			for _, u := range slices.Sorted(maps.Keys(c.ByURL)) {
				c.enqueueKnown(c.ByURL[u])
			}
		}
		for len(c.queue) > 0 && c.running < parallel && (c.delay == 0 || c.running == 0) && ctx.Err() == nil && c.canContinue() {
			next := c.queue[0]
			c.queue = c.queue[1:]
			c.running++
			c.report.Pages++
			go func() { results <- c.visit(ctx, next) }()
		}
		if c.running == 0 {
			break
		}
		r := <-results
		c.running--
		if ctx.Err() == nil || r.err == nil {
			err = c.merge(r)
		}
		if c.progress != nil {
			c.progress(c.report.Pages-c.running, min(c.report.Pages+len(c.queue), c.Limits.Pages))
		}
	}
	for ; c.running > 0; c.running-- {
		<-results
	}
	if err == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && len(c.queue) > 0 {
		c.deferred = true
		c.noteLimit("slow", int(maxTime.Minutes()), nil, "it took longer than %d minutes; the next run resumes there")
		return nil
	}
	return cmp.Or(err, ctx.Err())
}

// enqueueKnown adds a page found by an earlier crawl.
func (c *crawl) enqueueKnown(p *page) {
	if c.seen[p.URL] {
		return
	}
	u, err := parse(p.URL)
	if err != nil || u.Host != c.scope.Host || !c.allows(u) {
		delete(c.ByURL, p.URL)
		return
	}
	c.seen[p.URL] = true
	c.queue = append(c.queue, item{url: u, depth: p.Depth, previous: *p})
}

// canContinue reports whether another page may be requested, and records the limit if not.
func (c *crawl) canContinue() bool {
	switch {
	case c.report.Pages >= c.Limits.Pages:
		c.noteLimit("many_pages", c.Limits.Pages, nil, "it has more than %d pages (--max-pages)")
	case c.bytes >= maxBytes:
		c.noteLimit("large", int(maxBytes>>20), nil, "it stopped after %d MB")
	default:
		return true
	}
	return false
}

// visit requests one page and stores its body if it is new.
func (c *crawl) visit(ctx context.Context, it item) (r result) {
	r.item = it
	before, ending := c.body(it.previous), path.Ext(it.previous.Path)
	if before != nil {
		if r.found, r.err = c.linksIn(ctx, it.url, ending, before); r.err != nil {
			before = nil // request the whole page
		}
	}
	if before != nil {
		r.body, r.ending = before, ending
		if it.previous.Failed == "" && !it.previous.Looked.Before(c.Started) {
			return r // read before this crawl was interrupted
		}
	}
	if c.delay > 0 {
		if r.err = sleep(ctx, c.delay); r.err != nil {
			return r
		}
	}
	ask := request{url: it.url, limit: maxBody, wants: func(kind string) bool { return endingOf(it.url, kind) != "" }}
	if before != nil && !c.force {
		ask.etag, ask.modified = it.previous.ETag, it.previous.Changed
	}
	if r.reply, r.err = c.getPage(ctx, &r, ask); r.err == nil {
		c.readReply(ctx, &r)
	}
	return r
}

// readReply reads a reply: its status, and the body if it is a page.
func (c *crawl) readReply(ctx context.Context, r *result) {
	switch s := r.reply.status; {
	case s == http.StatusNotModified && r.body != nil:
	case s == http.StatusOK:
		r.body, r.ending = nil, endingOf(r.url, r.reply.kind)
		if r.ending == "" {
			return
		}
		r.body = r.reply.body
		if r.found, r.err = c.linksIn(ctx, r.url, r.ending, r.body); r.err == nil {
			c.preferTwin(ctx, r, resolve(r.url, r.found.Twin))
		}
	case r.reply.location != nil && r.hops == maxRedirects:
		r.err = fmt.Errorf("more than %d redirects", maxRedirects)
	case r.reply.location == nil && s != http.StatusNotFound && s != http.StatusGone:
		r.err = statusError(s)
	}
}

// merge updates the page of a result and adds its links to the queue.
func (c *crawl) merge(r result) error {
	if r.reply == nil && r.err == nil && r.body == nil {
		return nil // a list of pages
	}
	key := r.url.String()
	p := c.ByURL[key]
	if p == nil {
		p = &page{URL: key}
	}
	p.Depth, p.Looked = r.depth, time.Now()
	c.ByURL[key] = p
	switch {
	case r.err != nil:
		p.Failed = r.err.Error()
		c.setPath(p, r.url, cmp.Or(path.Ext(p.Path), ".html"), c.taken)
	case r.reply != nil && r.reply.location != nil:
		delete(c.ByURL, key)
		c.enqueue(r.reply.location, r.depth, r.hops+1)
	case r.ending == "" || r.reply != nil && r.reply.status != http.StatusOK && r.reply.status != http.StatusNotModified:
		delete(c.ByURL, key) // it no longer exists, or is no longer a page
	default:
		if err := c.updatePage(p, r); err != nil {
			return fmt.Errorf("storing %s: %w", r.url, err)
		}
	}
	if r.found.More {
		c.noteLimit("many_links", maxLinks, r.url, "%[2]s has more than %[1]d links")
	}
	for _, u := range parseURLs(r.found.Links) {
		c.enqueue(u, r.depth+1, 0)
	}
	if c.report.Pages%savedPages == 0 {
		return c.save()
	}
	return nil
}

// updatePage updates a page that is read, and stores its body if it is new.
func (c *crawl) updatePage(p *page, r result) error {
	p.Failed = ""
	if r.reply != nil && r.reply.status == http.StatusOK {
		p.ETag, p.Changed = r.reply.etag, r.reply.modified
		if sum := digest(r.body); sum != p.Digest || c.body(*p) == nil {
			if err := c.write(hash(p.URL), r.body); err != nil {
				return err
			}
			p.Digest, p.Size, p.Read = sum, int64(len(r.body)), time.Now()
			c.report.Fetched++
		}
		c.bytes += p.Size
	} else if r.reply != nil { // unchanged, perhaps with a new ETag
		p.ETag, p.Changed = cmp.Or(r.reply.etag, p.ETag), cmp.Or(r.reply.modified, p.Changed)
	}
	c.setPath(p, r.url, r.ending, c.taken)
	return nil
}

// endingOf returns the document ending for a media type, or "" if the type is not read.
func endingOf(u *url.URL, kind string) string {
	switch kind {
	case "text/html", "application/xhtml+xml":
		return ".html"
	case "text/markdown", "text/x-markdown":
		return ".md"
	case "application/pdf":
		return ".pdf"
	case "", "text/plain", "application/octet-stream":
		switch ext := strings.ToLower(path.Ext(u.Path)); {
		case ext == ".md" || ext == ".markdown":
			return ".md"
		case kind == "text/plain":
			return ".txt"
		case ext == ".html" || ext == ".htm":
			return ".html"
		case ext == ".txt" || ext == ".pdf":
			return ext
		}
	}
	return ""
}

func statusError(status int) error {
	return fmt.Errorf("the server replied with %d %s", status, http.StatusText(status))
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
