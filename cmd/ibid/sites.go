package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"ibid/ingest"
	"ibid/ingest/site"
	"ibid/retrieve"
	"ibid/web"
)

// rereadSites is the interval between readings of a web site, and retrySites the time until the
// next attempt after a failure.
const (
	rereadSites = 24 * time.Hour
	retrySites  = time.Hour
)

func (c crawlConfig) check() error {
	if c.MaxPages < 1 || c.MaxDepth < 1 {
		return usageError("--max-pages and --max-depth must be 1 or more")
	}
	return nil
}

// address returns the canonical address of a site.
func (c crawlConfig) address(address, data string) (string, error) {
	if data == "" {
		return "", usageError("the home folder for web pages is unknown: name a folder with --data")
	}
	address, err := site.Address(&site.Fetcher{Private: c.FetchPrivate}, address)
	if err != nil {
		return "", usageError("%w", err)
	}
	return address, nil
}

func (f *folder) isSite() bool { return ingest.IsAddress(f.path) }

// open opens the files of the folder, or the mirror of the site.
func (f *folder) open() (fs.FS, io.Closer, error) {
	if f.isSite() {
		s, err := f.openSite()
		return s, s, err
	}
	dir, err := os.OpenRoot(f.path)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the folder %s: %w", f.path, err)
	}
	return dir.FS(), dir, nil
}

func (f *folder) openSite() (*site.Site, error) {
	s, err := site.Open(site.Folder(f.lib.place.Data, f.path), f.path)
	if err != nil {
		return nil, err
	}
	s.Fetcher = &site.Fetcher{Private: f.crawl.FetchPrivate}
	s.Limits = site.Limits{Pages: f.crawl.MaxPages, Depth: f.crawl.MaxDepth}
	return s, nil
}

// fetch crawls the site. A site without any page yet does not become a root.
func (f *folder) fetch(ctx context.Context, s *site.Site, root ingest.Root) error {
	f.attempted = time.Now()
	report, err := s.Crawl(ctx, f.syncer.Force, f.onPage)
	if report.Disallowed > 0 {
		f.onNotice(site.Notice{Code: "disallowed", N: report.Disallowed,
			Detail: fmt.Sprintf("its robots.txt excludes %s", countOf(report.Disallowed, "page"))})
	}
	for _, limit := range report.Limits {
		limit.Detail = "the site was not read completely: " + limit.Detail
		f.onNotice(limit)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	known, failed := f.lib.StoredDocuments(ctx, root)
	if failed == nil && len(known) == 0 {
		_, failed = f.lib.State.DeleteRoot(ctx, root.Name, false)
		failed = errors.Join(failed, os.RemoveAll(site.Folder(f.lib.place.Data, f.path)))
	}
	return errors.Join(err, failed)
}

// waitForSite waits until the site is due. gone reports whether its root was removed.
func (f *folder) waitForSite(ctx context.Context) (gone bool, err error) {
	s, err := f.openSite()
	if err != nil {
		return false, err
	}
	started, ended := s.LastCrawl()
	if err := s.Close(); err != nil {
		return false, err
	}
	due := started.Add(rereadSites)
	if ended.IsZero() {
		due = started.Add(retrySites)
	}
	if retry := f.attempted.Add(retrySites); due.Before(retry) && !f.attempted.IsZero() {
		due = retry
	}
	select {
	case <-time.After(time.Until(due)):
	case <-f.reread:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	roots, err := f.lib.Roots(ctx)
	return !slices.ContainsFunc(roots, func(r ingest.Root) bool { return r.Path == f.path }), err
}

// SiteStates lists the sites that the server reads.
func (srv *server) SiteStates() []web.SiteState {
	p := &srv.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	states := slices.Collect(maps.Values(p.sites))
	slices.SortFunc(states, func(a, b web.SiteState) int { return strings.Compare(a.Address, b.Address) })
	return states
}

func (p *syncProgress) setSite(address string, change func(*web.SiteState)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sites[address]
	s.Address, s.Notices = address, slices.Clone(s.Notices)
	change(&s)
	p.sites[address] = s
}

// AddSite adds the site or page at an address to a collection, by default the server's. It is
// read, or read again, in the background.
func (srv *server) AddSite(ctx context.Context, address, collection string) (ingest.Root, error) {
	if err := ingest.CheckCollection(collection); err != nil && collection != "" {
		return ingest.Root{}, err
	}
	address, err := srv.address(strings.TrimSpace(address), srv.Data)
	if err != nil {
		return ingest.Root{}, err
	}
	root, err := srv.lib.AddRoot(ctx, address, cmp.Or(collection, srv.Collection))
	if err == nil && collection != "" && root.Collection != collection {
		err = retrieve.ErrTaken
	}
	if err != nil {
		return ingest.Root{}, fmt.Errorf("adding the site %s: %w", address, err)
	}
	srv.progress.setSite(address, func(s *web.SiteState) { *s = web.SiteState{Address: address, Reading: true} })
	if f, isNew := srv.followSite(address); !isNew {
		select {
		case f.reread <- struct{}{}:
		default: // a reading is already requested
		}
	}
	return root, nil
}

// followSites reads the given sites and the stored ones whenever they are due.
func (srv *server) followSites(ctx context.Context, given []string) {
	for _, address := range given {
		if _, err := srv.lib.AddRoot(ctx, address, srv.Collection); err != nil {
			srv.logger.Error("a site could not be added", "site", address, "error", err)
			continue
		}
		srv.followSite(address)
	}
	roots, err := srv.lib.Roots(ctx)
	if err != nil && ctx.Err() == nil {
		srv.logger.Error("the sites could not be listed", "error", err)
	}
	for _, r := range roots {
		if ingest.IsAddress(r.Path) && srv.Watch && srv.Data != "" {
			srv.followSite(r.Path)
		}
	}
}

// followSite begins to read a site whenever it is due, unless it already does.
func (srv *server) followSite(address string) (f *folder, isNew bool) {
	p := &srv.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.followed[address]; f != nil {
		return f, false
	}
	f = srv.folder(srv.lib, address, srv.crawlConfig)
	f.reread = make(chan struct{}, 1)
	p.followed[address] = f
	srv.background(func(ctx context.Context) { p.followSite(ctx, f, srv.logger) })
	return f, true
}

// followSite reads a site whenever it is due, until ctx is done or its root is removed.
func (p *syncProgress) followSite(ctx context.Context, f *folder, logger *slog.Logger) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.folders, f.path)
		delete(p.sites, f.path)
		delete(p.followed, f.path)
	}()
	f.onNotice = func(notice site.Notice) {
		logger.Warn("site", "address", f.path, "notice", notice.Detail)
		p.setSite(f.path, func(s *web.SiteState) { s.Notices = append(s.Notices, notice) })
	}
	f.onPage = func(done, total int) { p.setSite(f.path, func(s *web.SiteState) { s.Done, s.Total = done, total }) }
	for first := true; ; first = false {
		gone, err := f.waitForSite(ctx)
		if err != nil && ctx.Err() == nil {
			logger.Error("a site is no longer read", "site", f.path, "error", err)
		}
		if gone || err != nil {
			return
		}
		p.setSite(f.path, func(s *web.SiteState) { *s = web.SiteState{Address: f.path, Reading: true} })
		all, err := p.syncFolder(ctx, f, logger, first)
		p.setSite(f.path, func(s *web.SiteState) {
			s.Reading, s.Done, s.Total = false, all.Seen, all.Seen
			if err != nil {
				s.Error = err.Error()
			}
		})
	}
}
