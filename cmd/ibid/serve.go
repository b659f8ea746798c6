package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/ingest"
	"ibid/retrieve"
	"ibid/web"
)

type serveCmd struct {
	Folders    []string `arg:"" optional:"" name:"folder" help:"Folders to bring up to date in the background; what was ingested before is there in any case."`
	Addr       string   `help:"Address to listen on; port 0 takes a free one." default:"127.0.0.1:8080" placeholder:"HOST:PORT" group:"Server"`
	PublicURL  string   `help:"Where people reach the server, if not at its own address." name:"public-url" placeholder:"URL" group:"Server"`
	AllowHost  []string `help:"Further host name to answer to; may be repeated." placeholder:"NAME" group:"Server"`
	JSON       bool     `help:"Log JSON objects, one a line, on standard error." name:"json" group:"Server"`
	Watch      bool     `help:"Go on reading what changes in the folders." default:"true" negatable:""`
	Uploads    string   `help:"Whether documents may be sent and deleted over HTTP: ${enum}. Auto is on, unless other machines reach the server and no keys guard it." enum:"auto,on,off" default:"auto" placeholder:"KIND" group:"Server"`
	MaxUpload  int      `help:"Largest upload, in MB." default:"64" placeholder:"N" group:"Server"`
	MaxUploads int      `help:"Most that all uploads together may take, in MB." default:"4096" placeholder:"N" group:"Server"`
	KeepDays   int      `help:"Days for which answers are kept, so that they can be shown again and shared by their links; 0 keeps none." default:"90" placeholder:"N" group:"Server"`
	MaxAsks    int      `help:"Questions and searches in hand at a time; those over it are turned away with 429." default:"512" placeholder:"N" group:"Server"`
	PriceIn    float64  `help:"What a million tokens of prompts cost, for the metrics." placeholder:"X" group:"Server"`
	PriceOut   float64  `help:"What a million tokens of replies cost, for the metrics." placeholder:"X" group:"Server"`

	MetricsAddr string `help:"Address that gives the metrics, and nothing else, to everyone who reaches it; unset: /metrics of the server alone." placeholder:"HOST:PORT" group:"Server"`
	logConfig
	authConfig
	Links bool `help:"Make the numbers in answers under /v1 links to their sources, in Markdown." default:"true" negatable:"" group:"Server"`
	syncConfig
	citeConfig
	rerankConfig
	modelConfig
	readConfig
	storeConfig
}

// drain is how long answers in hand may go on after the signal to stop, and
// farewell how long those that are cut short then may take to say so.
const (
	drain    = 6 * time.Second
	farewell = 2 * time.Second
)

// Run listens at once, ingests in the background, and answers from what is in.
func (c *serveCmd) Run(ctx context.Context, s surroundings) (err error) {
	paths, err := checkFolders(c.Folders)
	if err != nil {
		return err
	}
	if err := c.syncConfig.check(); err != nil {
		return err
	}
	if err := errors.Join(c.checkAddr(), c.authConfig.check()); err != nil {
		return err
	}
	if c.MaxAsks < 1 {
		return usageError("--max-asks %d: give the number of questions in hand at a time, 1 or more", c.MaxAsks)
	}
	citing, err := c.citing()
	if err != nil {
		return err
	}
	// What a server holds for long is the library; what each question adds is
	// soon gone. Collecting it twice as often costs little and halves what it takes.
	if s.getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	if c.PriceIn < 0 || c.PriceOut < 0 {
		return usageError("--price-in and --price-out are prices: give 0 or more")
	}
	metrics := web.NewMetrics(web.Price{In: c.PriceIn, Out: c.PriceOut})
	logger := c.logger(s.stderr, c.JSON)
	tracer, endTraces, err := startTraces(ctx, s.getenv, logger)
	if err != nil {
		return err
	}
	defer endTraces()
	if tracer != nil {
		c.prepare = web.PassTrace
	}
	options, err := c.index(c.endpointConfig, s.getenv)
	if err != nil {
		return err
	}
	reader, err := c.reader(c.Data)
	if err != nil {
		return err
	}
	lib, err := openMeasured(ctx, c.storeConfig, options, s, func(e retrieve.Embedder) retrieve.Embedder {
		return metrics.Embedder(web.TraceEmbedder(tracer, e))
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lib.close()) }()
	lib.reader = reader
	answerer, err := lib.answerer(c.modelConfig, c.endpointConfig, s.getenv)
	if err != nil {
		return err
	}
	for _, m := range []struct {
		name string
		of   *answer.Model
	}{{c.Model, &answerer.Model}, {c.GateModel, &answerer.GateModel}, {c.RefineModel, &answerer.RefineModel}} {
		*m.of = metrics.Model(web.TraceModel(tracer, m.name, *m.of))
	}
	keys, err := c.guarded(ctx, lib.store.Keyring())
	if err != nil {
		return err
	}
	proxies, err := c.proxies()
	if err != nil {
		return err
	}
	upstream, err := c.upstream(s.getenv)
	if err != nil {
		return err
	}
	uploads, err := c.uploads(ctx, lib, keys != nil)
	if err != nil {
		return err
	}
	var accept web.Uploads
	var collection string
	if uploads != nil {
		defer func() { err = errors.Join(err, uploads.Dir.Close()) }()
		accept, collection = uploads, uploads.Root.Collection
	}
	progress := progress{synced: metrics.Synced}
	troubles := progress.troubles
	if uploads != nil {
		troubles = func() []ingest.Change { return append(progress.troubles(), uploads.Troubles()...) }
	}
	files := &drawer{lib, uploadsIn(c.Data), c.shared()}
	var runs web.Runs
	handler, err := web.New(web.Options{
		Uploads: accept, Drawer: files, Originals: files,
		Asker: answerer, Searcher: lib.Index, Library: lib.Index, Logger: logger,
		Summarizer: answerer, Ledger: lib.store.Ledger(), Runs: &runs, KeepAnswers: time.Duration(c.KeepDays) * 24 * time.Hour,
		Upstream: upstream, Embedder: lib.embedder, NoLinks: !c.Links,
		Indexing: progress.indexing, Troubles: troubles, Reachable: lib.reachable,
		Keys: keys, KeyRate: c.Rate, TrustProxies: proxies, UploadCollection: collection,
		Addr: c.Addr, PublicURL: c.PublicURL, AllowHosts: c.AllowHost, Version: version(), Citing: citing,
		MaxAsks: c.MaxAsks, Metrics: metrics, Tracer: tracer, Figures: func(ctx context.Context) (web.StoreFigures, error) { return lib.figures(ctx, c.placeConfig) },
	})
	if err != nil {
		return usageError("%w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listening on %s: the port is in use: stop the server that has it, or choose another with --addr (port 0 takes a free one)", c.Addr)
	}
	if err != nil {
		return fmt.Errorf("listening on %s: %w", c.Addr, err)
	}
	var scraped net.Listener
	if c.MetricsAddr != "" {
		if scraped, err = (&net.ListenConfig{}).Listen(ctx, "tcp", c.MetricsAddr); err != nil {
			return errors.Join(fmt.Errorf("listening on %s (--metrics-addr): %w", c.MetricsAddr, err), listener.Close())
		}
	}
	if _, err := fmt.Fprintf(s.stdout, "listening on http://%s\n", listener.Addr()); err != nil {
		return errors.Join(err, listener.Close())
	}
	if len(paths) == 0 {
		if err := lib.tell(ctx, c.placeConfig, logger); err != nil {
			return errors.Join(err, listener.Close())
		}
	}

	// What follows ends together: the first to fail, or a signal, stops the rest.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := web.NewHTTPServer(c.Addr, handler)
	asks, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server.BaseContext = func(net.Listener) context.Context { return asks }
	var background sync.WaitGroup
	folders := c.folders(lib, paths, c.Watch)
	if uploads != nil {
		background.Go(func() {
			if err := uploads.Sync(ctx); err != nil && ctx.Err() == nil {
				logger.Error("uploads not read", "error", err)
			}
		})
	}
	background.Go(func() { progress.sync(ctx, folders, logger) })
	if scraped != nil {
		figures := web.NewHTTPServer(c.MetricsAddr, metrics.Handler())
		logger.Info("metrics", "address", "http://"+scraped.Addr().String())
		background.Go(func() {
			if err := figures.Serve(scraped); !errors.Is(err, http.ErrServerClosed) {
				logger.Error("metrics not served", "error", err)
			}
		})
		defer context.AfterFunc(ctx, func() { _ = figures.Close() })() // at the latest by the stop below
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	select {
	case err = <-served:
	case <-ctx.Done():
		logger.Info("stopping", "drain", drain)
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		drained := make(chan struct{})
		go func() {
			runs.Shutdown(limit)
			close(drained)
		}()
		if server.Shutdown(limit) != nil {
			<-drained // who follows a run is to see how it ended
			cut()     // answers still running end with an error of their own
			last, done := context.WithTimeout(context.WithoutCancel(ctx), farewell)
			if server.Shutdown(last) != nil {
				err = server.Close()
			}
			done()
		}
		<-drained
		cancel()
		if e := <-served; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}
	stop()
	runs.Shutdown(ctx)
	background.Wait()
	return err
}

// tell says what a server answers from that is given no folder.
func (l *library) tell(ctx context.Context, place placeConfig, logger *slog.Logger) error {
	documents, _, err := retrieve.Count(ctx, l.store, retrieve.Filter{})
	if err != nil {
		return fmt.Errorf("counting the documents in %s: %w", place, err)
	}
	if documents == 0 {
		logger.Warn("there are no documents yet: run 'ibid ingest FOLDER', or 'ibid serve FOLDER'", "in", place.String())
		return nil
	}
	logger.Info("answering", "documents", documents, "in", place.String())
	return nil
}

// reachable asks the store for the least that it knows.
func (l *library) reachable(ctx context.Context) error {
	_, err := l.store.Revision(ctx)
	return err
}

// upstream is the model itself, for clients that ask it without documents; nil
// without one.
func (c *serveCmd) upstream(getenv func(string) string) (web.Upstream, error) {
	if c.Model == "" {
		return nil, nil
	}
	o, err := c.options(getenv, c.Model)
	if err != nil {
		return nil, err
	}
	relay, err := openai.NewRelay(o)
	if err != nil {
		return nil, usageError("--base-url %s, --model %s: %w", o.BaseURL, c.Model, err)
	}
	return relay, nil
}

// checkAddr refuses what is no address.
func (c *serveCmd) checkAddr() error {
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		return usageError("--addr %q is no address: give HOST:PORT, 127.0.0.1:8080 for one", c.Addr)
	}
	return nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// uploads opens the folder of the uploads in the data directory; nil where there
// are to be none.
func (c *serveCmd) uploads(ctx context.Context, lib *library, guarded bool) (*ingest.Uploads, error) {
	if c.MaxUpload < 1 || c.MaxUploads < 1 {
		return nil, usageError("--max-upload and --max-uploads are sizes in MB: give 1 or more, or --uploads off")
	}
	if c.Uploads == "off" || c.Uploads == "auto" && !guarded && (!c.local() || c.PublicURL != "") {
		return nil, nil
	}
	if c.Data == "" {
		return nil, usageError("there is no home folder to keep uploads in: name a folder with --data, or say --uploads off")
	}
	path := uploadsIn(c.Data)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the uploads: %w", err)
	}
	root, err := lib.AddRoot(ctx, "", c.Collection)
	if err != nil {
		return nil, fmt.Errorf("adding the uploads: %w", err)
	}
	dir, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of the uploads: %w", err)
	}
	return &ingest.Uploads{
		Dir: dir, Root: root, MaxBytes: int64(c.MaxUpload) << 20, MaxTotal: int64(c.MaxUploads) << 20,
		Syncer: &ingest.Syncer{Sink: lib.Index, Reader: lib.reader}, Shared: c.shared(),
	}, nil
}

// progress is how far the sync of the served folders is.
type progress struct {
	mu      sync.Mutex
	files   []count // of each folder
	ready   bool
	trouble [][]ingest.Change // of each folder

	synced func(ingest.Change) // told of every file that is new, or read for the first time
}

type count struct{ done, total int }

func (p *progress) indexing() (done, total int, ready bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.files {
		done, total = done+n.done, total+n.total
	}
	return done, total, p.ready
}

func (p *progress) troubles() []ingest.Change {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Concat(p.trouble...)
}

// sync brings the folders up to date one after the other, then goes on with
// those that are watched until ctx is done.
func (p *progress) sync(ctx context.Context, folders []*folder, logger *slog.Logger) {
	p.mu.Lock()
	p.files, p.trouble = make([]count, len(folders)), make([][]ingest.Change, len(folders))
	p.mu.Unlock()
	for i, f := range folders {
		p.once(ctx, i, f, logger, false)
	}
	if ctx.Err() == nil {
		p.mu.Lock()
		p.ready = true
		p.mu.Unlock()
	}
	var following sync.WaitGroup
	for i, f := range folders {
		if f.watcher == nil {
			continue
		}
		if err := f.watcher.Trouble(); err != nil {
			logger.Warn("folder not watched", "folder", f.path, "error", err)
		}
		following.Go(func() {
			err := f.follow(ctx, func() error { p.once(ctx, i, f, logger, true); return nil })
			if err != nil {
				logger.Error("folder no longer watched", "folder", f.path, "error", err)
			}
		})
	}
	following.Wait()
}

// catchUp is how many files are read between two looks at what is searched, so
// that a question does not wait until it knows all that was read before it.
const catchUp = 256

// once brings one folder up to date. One that cannot be read is logged, and the
// server goes on with what it has.
func (p *progress) once(ctx context.Context, i int, f *folder, logger *slog.Logger, again bool) {
	var all, news tally
	var trouble []ingest.Change
	start := time.Now()
	f.waiting = func(root, worker string, since time.Time) {
		logger.Info("folder is being read by another process: its changes appear as they are stored", "root", root, "by", retrieve.WhoIs(worker), "since", since)
	}
	err := f.sync(ctx, func(ch ingest.Change, isNew bool) error {
		all.add(ch)
		if isNew {
			news.add(ch)
		}
		if isNew || !again {
			p.synced(ch)
		}
		if ch.Action == ingest.Failed || ch.Action == ingest.Skipped {
			trouble = append(trouble, ch)
		}
		if ch.Action == ingest.Failed && isNew {
			logger.Warn("document not read", "document", ch.Document, "reason", ch.Reason)
		}
		if ch.Done%catchUp == 0 {
			if _, err := f.lib.Stats(ctx, nil); err != nil {
				return err
			}
		}
		if !again {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.files[i], p.trouble[i] = count{ch.Done, ch.Total}, slices.Clip(trouble)
		}
		return nil
	})
	if err == nil {
		_, err = f.lib.Stats(ctx, nil)
	}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		logger.Error("folder not read", "folder", f.path, "error", err)
		return
	case !again:
		more := []any{"folder", f.path, "files", all.String(), "took", time.Since(start).Round(time.Millisecond)}
		if all.Skipped+all.Failed > 0 {
			more = append(more, "why", "the page /documents names what is not taken in, with the reason; 'ibid ingest --help' says what is read")
		}
		logger.Info("folder read", more...)
	case news != (tally{}):
		logger.Info("folder read again", "folder", f.path, "files", news.String(), "took", time.Since(start).Round(time.Millisecond))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files[i], p.trouble[i] = count{all.Seen, all.Seen}, trouble
}
