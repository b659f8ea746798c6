package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ibid/data"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/web"
)

type serveCmd struct {
	Folders []string `arg:"" optional:"" name:"folder" help:"Folders to sync and watch; folders ingested before are not read again."`

	Addr      string `help:"Address to listen on; port 0 picks a free one." default:"127.0.0.1:8080" placeholder:"HOST:PORT" group:"Server"`
	PublicURL string `help:"Address at which people reach the server, if not --addr." name:"public-url" placeholder:"URL" group:"Server"`

	AllowHost  []string `help:"Additional host name that the server accepts; repeatable." placeholder:"NAME" group:"Server"`
	JSON       bool     `help:"Log a JSON object per line to standard error." name:"json" group:"Server"`
	Watch      bool     `help:"Watch the folders and re-read files that change." default:"true" negatable:""`
	Uploads    string   `help:"@uploads" enum:"auto,on,off" default:"auto" placeholder:"KIND" group:"Server"`
	MaxUpload  int      `help:"Size limit of an upload, in MB." default:"64" placeholder:"N" group:"Server"`
	MaxUploads int      `help:"Size limit of all uploads together, in MB." default:"4096" placeholder:"N" group:"Server"`
	KeepDays   int      `help:"Days to keep answers and the links that share them; 0: keep none." default:"90" placeholder:"N" group:"Server"`
	MaxAsks    int      `help:"Concurrent questions and searches; more are refused with 429." default:"512" placeholder:"N" group:"Server"`

	// Drain is how long answers may continue after the signal to stop. Tests set it.
	Drain time.Duration `hidden:"" noenv:"" default:"6s"`
	logConfig
	authConfig
	webhookConfig
	Relay bool `help:"Forward requests for the model itself, from keys with the scope relay." group:"Server"`
	Links bool `help:"Link the numbers in answers under /v1 to their sources, in Markdown." default:"true" negatable:"" group:"Server"`
	syncConfig
	crawlConfig
	encodeConfig
	citeConfig
	rerankConfig
	modelConfig
	readConfig
	storeConfig
}

// endTime is how long a stopping server waits for its next answer to report that it was cut off.
// On a slow machine, all answers together may take longer.
const endTime = 3 * time.Second

// Run listens at once, syncs the folders in the background, and answers from the stored
// documents.
func (c *serveCmd) Run(ctx context.Context, s surroundings) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	paths, err := c.checkFolders(c.Folders, c.Data)
	if err != nil {
		return err
	}
	srv := &server{
		serveCmd: c, surroundings: s, paths: paths, logger: newLogger(s.stderr, c.LogLevel, c.JSON),
		metrics: web.NewMetrics(),
	}
	if srv.hook, err = c.webhook(s.getenv, srv.logger); err != nil {
		return err
	}
	if err := srv.open(ctx, s); err != nil {
		return errors.Join(err, srv.close())
	}
	defer func() { err = errors.Join(err, srv.close()) }()
	handler, err := srv.handler()
	if err != nil {
		return err
	}
	listener, err := c.listen(ctx)
	if err != nil {
		return err
	}
	defer listener.Close() // the server closes it, except after an early error
	if _, err := fmt.Fprintf(s.stdout, "listening on http://%s\n", listener.Addr()); err != nil {
		return err
	}
	return srv.serve(ctx, handler, listener)
}

func (c *serveCmd) check() error {
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		return usageError("--addr %q is not an address: give HOST:PORT, for example 127.0.0.1:8080", c.Addr)
	}
	if c.MaxAsks < 1 {
		return usageError("--max-asks %d: give the number of concurrent questions, 1 or more", c.MaxAsks)
	}
	if c.MaxUpload < 1 || c.MaxUploads < 1 {
		return usageError("--max-upload and --max-uploads are sizes in MB: give 1 or more, or --uploads off")
	}
	return errors.Join(c.syncConfig.check(), c.crawlConfig.check(), c.authConfig.check())
}

func (c *serveCmd) listen(ctx context.Context) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listening on %s: the port is in use: stop the server that uses it, or choose another "+
			"with --addr (port 0 picks a free one)", c.Addr)
	}
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", c.Addr, err)
	}
	return listener, nil
}

type server struct {
	*serveCmd
	paths   []string // of the folders, absolute
	logger  *slog.Logger
	metrics *web.Metrics
	hook    *webhook // nil sends nothing

	surroundings
	lib         *openedLibrary
	search      web.CountingSearcher
	modelsInUse atomic.Pointer[models]
	changing    sync.Mutex   // held while the models in use are replaced
	looked      atomic.Int64 // when settings were last checked for changes, in Unix nanoseconds
	// background runs a function until the server stops; nil until the server serves.
	background func(func(context.Context))
	keys       retrieve.Keyring // nil if none are required
	uploads    *ingest.Root     // of uploads into the server's collection; nil if there are none
	shelves    uploadFolders    // of the uploads of each collection
	progress   syncProgress
	answers    web.Answers
}

// open opens the library and its answerer. The caller must call close, even after an error.
func (srv *server) open(ctx context.Context, s surroundings) error {
	options, err := srv.index(srv.endpointConfig, s.getenv)
	if err != nil {
		return err
	}
	reader := srv.reader(srv.Data)
	srv.lib, err = openLibrary(ctx, srv.storeConfig, options, s)
	if err != nil {
		return err
	}
	srv.lib.reader = reader
	srv.search = srv.searcher()
	c, err := readChosen(ctx, srv.lib.State)
	if err != nil {
		return err
	}
	if err := srv.useModels(ctx, c); err != nil {
		return err
	}
	if srv.keys, err = srv.requiredKeys(ctx, srv.lib.State.Keyring()); err != nil {
		return err
	}
	if srv.Relay && srv.keys == nil {
		return usageError("--relay without keys lets every program that reaches the server use the model at your cost: " +
			"use keys (--auth on) and make one with --scope relay, or omit it")
	}
	srv.progress = syncProgress{onChange: srv.metrics.CountFile, folders: map[string]folderProgress{}, sites: map[string]web.SiteState{},
		followed: map[string]*folder{}}
	if srv.uploads, err = srv.uploadsRoot(ctx); err != nil || srv.uploads == nil {
		return err
	}
	return srv.openShelves(ctx)
}

func (srv *server) close() error {
	var err error
	for _, u := range srv.shelves.all() {
		err = errors.Join(err, u.Dir.Close())
	}
	if srv.lib != nil {
		err = errors.Join(err, srv.lib.close())
	}
	return err
}

// requestWait is how long a request waits for an unreachable database.
const requestWait = 10 * time.Second

// uploadsRoot returns the root of the uploads into the server's collection, or nil if
// uploads are off.
func (srv *server) uploadsRoot(ctx context.Context) (*ingest.Root, error) {
	if srv.Uploads == "off" || srv.Uploads == "auto" && srv.keys == nil && (!srv.isLocal() || srv.PublicURL != "") {
		return nil, nil
	}
	if srv.Data == "" {
		return nil, usageError("the home folder for uploads is unknown: name a folder with --data, or use --uploads off")
	}
	root, err := srv.lib.AddRoot(ctx, "", srv.Collection)
	if errors.Is(err, syscall.ENOSPC) { // each upload is refused with this reason
		root, err = ingest.Root{Name: retrieve.Uploads, Collection: srv.Collection}, nil
	}
	if errors.Is(err, retrieve.ErrReadOnly) && srv.Uploads == "auto" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("adding the uploads: %w", err)
	}
	return &root, nil
}

// searcher returns the index, limited to one search at a time per core, but at least two.
// Searches that mostly wait for another server are not limited.
func (srv *server) searcher() web.CountingSearcher {
	if srv.EmbedModel != "" || srv.RerankModel != "" {
		return srv.lib.Index
	}
	return web.LimitSearches(srv.lib.Index, max(2, runtime.GOMAXPROCS(0)))
}

func (srv *server) handler() (http.Handler, error) {
	proxies, err := srv.proxies()
	if err != nil {
		return nil, err
	}
	signIn, err := srv.signIn()
	if err != nil {
		return nil, err
	}
	settings, code := srv.newSettings()
	files := &originals{srv.lib, srv.Data, srv.remote()}
	o := web.Options{
		Drawer: files, Originals: files,
		Asker: srv, Summarizer: srv, Searcher: srv.search, Library: srv.lib.Index, Logger: srv.logger,
		Ledger: srv.lib.State.Ledger(), Answers: &srv.answers, KeepAnswers: time.Duration(srv.KeepDays) * 24 * time.Hour,
		Upstream: upstream{srv}, Relay: srv.Relay, NoLinks: !srv.Links,
		Indexing: srv.progress.indexing, Troubles: srv.progress.listFailures, Reachable: srv.lib.checkReachable,
		Keys: srv.keys, KeyRate: srv.Rate, UserRate: srv.UserRate, TrustProxies: proxies, SignIn: signIn,
		Addr: srv.Addr, PublicURL: srv.PublicURL, AllowHosts: srv.AllowHost, Origins: srv.CORSOrigin, Version: version(), Citing: srv.options(),
		Model: srv.writerModel, SelfTest: srv.selfTest,
		Suggest: func(ctx context.Context, passages []retrieve.Passage, n int) ([]string, error) {
			return srv.currentModels(ctx).answerer.Suggest(ctx, passages, n)
		},
		Settings: settings, SettingsCode: code, MaxAsks: srv.MaxAsks, Metrics: srv.metrics, Figures: srv.lib.figures,
		Encoded: srv.lib.encodedChunks,
		RunEnded: func(run, kind, state string) { // webhooks contain no text
			srv.hook.sendEvent("run.ended", map[string]any{"run": run, "kind": kind, "state": state})
		},
	}
	if srv.uploads != nil {
		o.UploadFolders, o.UploadCollection, o.Sample, o.Sites = srv, srv.uploads.Collection, data.Library(), srv
		o.Troubles = func() []ingest.Change { return append(srv.progress.listFailures(), srv.shelves.failures()...) }
	}
	handler, err := web.New(o)
	if err != nil {
		return nil, usageError("%w", err)
	}
	return handler, nil
}

// serve answers requests until ctx is done, then lets running answers end.
func (srv *server) serve(ctx context.Context, handler http.Handler, listener net.Listener) (err error) {
	// The first part to fail, or a signal, stops all parts.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var background sync.WaitGroup
	defer func() {
		stop()
		srv.answers.Shutdown(ctx)
		background.Wait()
	}()
	if len(srv.paths) == 0 {
		if err := srv.logContents(ctx); err != nil {
			return err
		}
	}
	if srv.hook != nil {
		background.Go(func() { srv.hook.run(ctx) })
	}
	srv.progress.onEnd = func(root string, all tally, err error) { // without files the root does not exist yet
		state := "done"
		if err != nil {
			state = "failed"
		}
		srv.hook.sendEvent("sync.ended", map[string]any{"root": root, "state": state, "files": all})
	}
	srv.background = func(f func(context.Context)) { background.Go(func() { f(ctx) }) }
	srv.startSelfTest()
	srv.startBackground(listener.Addr().String())
	server := web.NewHTTPServer(srv.Addr, handler)
	asks, cut := context.WithCancel(retrieve.WithWait(context.WithoutCancel(ctx), requestWait))
	defer cut()
	server.BaseContext = func(net.Listener) context.Context { return asks }
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	srv.drain(ctx, server, cut)
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// startBackground starts the background work of a server at addr.
func (srv *server) startBackground(addr string) {
	sites := slices.DeleteFunc(slices.Clone(srv.paths), func(path string) bool { return !ingest.IsAddress(path) })
	folders := srv.folders(srv.lib, slices.DeleteFunc(slices.Clone(srv.paths), ingest.IsAddress), srv.crawlConfig, srv.Watch)
	srv.background(func(ctx context.Context) { srv.progress.sync(ctx, folders, srv.logger) })
	srv.background(func(ctx context.Context) { srv.followSites(ctx, sites) })
	srv.background(func(ctx context.Context) {
		for _, u := range srv.shelves.all() {
			removed, err := u.Sync(ctx)
			if err != nil && ctx.Err() == nil {
				srv.logger.Error("the uploads could not be read", "root", u.Root.Name, "error", err)
			}
			if removed > 0 {
				srv.logger.Warn("documents were removed because their files are no longer among the uploads",
					"root", u.Root.Name, "documents", removed)
			}
		}
	})
	srv.background(srv.followParts)
	srv.background(func(ctx context.Context) { srv.encode(ctx, srv.lib, srv.logger) })

	if srv.modelsInUse.Load().model.Model == "" {
		srv.background(func(ctx context.Context) {
			for _, s := range findModels(ctx, usualServers, addr) {
				srv.logger.Info(modelHint(s))
			}
		})
	}
}

// drain lets requests and runs end, and cuts them off after a time limit.
func (srv *server) drain(ctx context.Context, server *web.HTTPServer, cut func()) {
	srv.logger.Info("stopping", "drain_ms", srv.Drain.Milliseconds())
	ctx = context.WithoutCancel(ctx)
	limit, cancel := context.WithTimeout(ctx, srv.Drain)
	defer cancel()
	var runs sync.WaitGroup
	runs.Go(func() { srv.answers.Shutdown(limit) })
	if server.Shutdown(limit) != nil {
		runs.Wait() // so that their followers get all events
		cut()
		if err := server.End(endTime); err != nil {
			srv.logger.Warn("some clients did not read their replies to the end", "error", err)
		}
	}
	runs.Wait()
}

func (srv *server) logContents(ctx context.Context) error {
	documents, _, err := srv.lib.State.Count(ctx, retrieve.Filter{})
	if err != nil {
		return fmt.Errorf("counting the documents in %s: %w", srv.placeConfig, err)
	}
	if srv.logger.Info("answering", "documents", documents, "in", srv.placeConfig.String()); documents == 0 {
		srv.logger.Warn("there are no documents yet: run 'ibid ingest FOLDER', or 'ibid serve FOLDER'")
	}
	return nil
}

// requiredKeys returns the keys that clients need, or nil if they need none. A server that
// other machines can reach must have a key.
func (c *serveCmd) requiredKeys(ctx context.Context, keyring retrieve.Keyring) (retrieve.Keyring, error) {
	if c.NoAuth || c.Auth == "off" || c.Auth == "auto" && !c.isReachable() && c.AuthHeader == "" {
		return nil, nil
	}
	if c.AuthHeader != "" {
		return keyring, nil // people sign in instead
	}
	ring, err := keyring.Ring(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the keys: %w", err)
	}
	if slices.ContainsFunc(ring.Keys, func(k retrieve.Key) bool { return !isExpired(k) }) {
		return keyring, nil
	}
	next := fmt.Sprintf("make one with 'ibid keys make NAME' for the library in %s", c.placeConfig)
	if len(ring.Keys) > 0 {
		next = "all existing keys have expired: " + next
	}
	if !c.isReachable() {
		return nil, usageError("--auth on needs a key: %s", next)
	}
	where := "--addr " + c.Addr
	if c.isLocal() {
		where = "--public-url " + c.PublicURL
	}
	return nil, usageError("%s lets other machines reach the server, and there is no key: %s; or use --no-auth if everyone "+
		"who reaches the server may read every document", where, next)
}

// isReachable reports whether other machines can reach the server, directly or through a proxy.
func (c *serveCmd) isReachable() bool {
	if !c.isLocal() {
		return true
	}
	u, err := url.Parse(c.PublicURL)
	return c.PublicURL != "" && (err != nil || !isLoopback(u.Hostname()))
}

// isLocal reports whether only this machine can reach the address directly.
func (c *serveCmd) isLocal() bool {
	host, _, err := net.SplitHostPort(c.Addr)
	return err == nil && isLoopback(host)
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
