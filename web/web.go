// Package web shows Ibid over HTTP: the page, the JSON API with its
// server-sent events, and the viewer that a citation's link leads to.
//
// [New] makes one [http.Handler] out of what it is given; the package holds no
// state of its own beyond the count of questions in hand, opens no port and
// reads no environment. [NewHTTPServer] wraps the handler in a server with the
// time limits that a server on the open network needs.
//
// Documents and models are untrusted: every word of theirs leaves as JSON or
// through html/template, never as markup, and the Content-Security-Policy on
// every reply forbids whatever is not served from here.
package web

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/trace"

	"ibid/answer"
	"ibid/cite"
	"ibid/ingest"
	"ibid/retrieve"
)

// An Asker answers questions; [answer.Answerer] is one.
type Asker interface {
	Ask(ctx context.Context, q answer.Question) iter.Seq2[answer.Event, error]
}

// A Searcher finds passages; [retrieve.Index] is one.
type Searcher interface {
	Search(ctx context.Context, q retrieve.Query) ([]retrieve.Passage, error)
}

// A Library gives stored documents; [retrieve.Index] is one.
type Library interface {
	// Document gives a document with its text; an error that wraps
	// [retrieve.ErrNotFound] when there is none of that id.
	Document(ctx context.Context, id string) (*ingest.Document, error)
	// Documents lists what is stored, ordered by id, without texts.
	Documents(ctx context.Context, f retrieve.Filter) ([]retrieve.DocumentInfo, error)
	// Holds says whether Documents would list any, without making the list.
	Holds(ctx context.Context, f retrieve.Filter) (bool, error)
}

// Options are what a server is made of. Asker, Searcher, Library and Logger
// are required.
type Options struct {
	Asker    Asker
	Searcher Searcher
	Library  Library
	// Summarizer answers POST /api/summarize. Nil means that there is no such
	// address.
	Summarizer Summarizer
	// Uploads takes in documents at POST /api/documents, reads one anew at POST
	// /api/documents/ID, and deletes one. Nil means that nobody may.
	Uploads Uploads
	// UploadCollection is the collection of what is sent.
	UploadCollection string
	// Drawer draws the pages that the viewer shows beside their text. Nil means
	// that none are.
	Drawer Drawer
	// Originals gives the files that documents were read from. Nil means that
	// only their text is shown.
	Originals Originals
	// Ledger keeps the answers and summaries that were interrupted, so that
	// they can be taken up again, and records of the others; nil keeps none.
	Ledger retrieve.Ledger
	// KeepAnswers is how long what came of a run is kept in the ledger, so that
	// it can be shown again; 0 keeps nothing.
	KeepAnswers time.Duration
	// Runs are the answers that go on without a reader; nil makes new ones. Who
	// shuts the server down shuts them down too.
	Runs *Runs
	// Upstream is the model itself, which clients of the OpenAI API may ask
	// without documents. Nil means that none can be.
	Upstream Upstream
	// Embedder makes the vectors of POST /v1/embeddings. Nil means that there is
	// no such address.
	Embedder retrieve.Embedder
	// NoLinks leaves the numbers in answers to clients of the OpenAI API as they
	// are. Otherwise they are Markdown links.
	NoLinks bool
	// Logger gets one line a request. Questions, answers and document texts
	// are never logged.
	Logger *slog.Logger

	// Citing says what counts as one source and how quotes are found. Its
	// Link is set here: citations lead to the viewer.
	Citing cite.Options

	// Indexing tells how far the sync of the served folders is: files
	// accounted for, files seen so far, and whether the first sync has ended.
	// Nil means that there is nothing to wait for.
	Indexing func() (done, total int, ready bool)
	// Reachable tells why the store does not answer, for GET /readyz. Nil means
	// that it always does.
	Reachable func(ctx context.Context) error
	// Troubles lists the files of the last sync that were skipped or failed.
	// Nil means that none are known.
	Troubles func() []ingest.Change

	// Addr is the address that the server listens on, "127.0.0.1:8080". A
	// loopback one answers only to loopback names in the Host header; any
	// other answers to IP addresses as well, never to unknown names: a page
	// of another site can rebind its own name to this server, but no address.
	Addr string
	// PublicURL is where people reach the server, with a path prefix if a
	// proxy serves it under one; empty means http:// and the request's Host.
	PublicURL string
	// AllowHosts are further names to answer to, without a port.
	AllowHosts []string

	// Keys guards everything but the routes that are public: what a request
	// reaches is decided by the key that it shows. Nil lets everyone in who
	// reaches the server.
	Keys retrieve.Keyring
	// KeyRate is how many questions and searches one key may ask in a minute;
	// those over it get 429. 0 means [DefaultKeyRate].
	KeyRate int
	// TrustProxies are the networks of proxies that say in X-Forwarded-For whom
	// a request is from. From anyone else that header says nothing.
	TrustProxies []netip.Prefix

	// Metrics are what GET /metrics gives; nil makes new ones.
	Metrics *Metrics
	// Figures tells the size of the store for the metrics. Nil means that it
	// is not told.
	Figures func(ctx context.Context) (StoreFigures, error)

	// Tracer makes the spans of requests; nil makes none.
	Tracer trace.Tracer

	// Version is shown on the page and by GET /healthz.
	Version string
	// MaxAsks bounds the questions and searches in hand at one time; those
	// over it get 429. 0 means [DefaultMaxAsks].
	MaxAsks int
}

// Limits on what a client may send and hold.
const (
	// MaxBody is the largest request body, in bytes.
	MaxBody = 256 << 10
	// MaxQuestion is the longest question, in bytes.
	MaxQuestion = answer.MaxQuestionBytes
	// MaxTopK is the largest top_k of a question or search.
	MaxTopK = 100
	// DefaultMaxAsks is the default of [Options.MaxAsks].
	DefaultMaxAsks = 512
)

// Time limits on a connection.
const (
	bodyTimeout  = 15 * time.Second // to send a request body, or a part of a file
	replyTimeout = 30 * time.Second // to take a reply
	eventTimeout = 10 * time.Second // to take one event of a stream
	heartbeat    = 15 * time.Second // between comments on a silent stream: proxies give up after 60 s
)

// server holds what the handlers share.
type server struct {
	Options
	public   *url.URL // nil without a PublicURL
	asks     chan struct{}
	files    map[string]file
	pages    *pages
	apiDocs  docsPage
	access   map[string]access // by method and pattern
	keys     *keys             // nil without Keys
	tries    tries
	drawings *drawings
	markdown *markdown

	storeAway  atomic.Bool  // when it was asked last
	ledgerFrom atomic.Int64 // when runs are kept again, as nanoseconds of the Unix time
}

// New makes the handler. It fails when a required option is missing or the
// public URL is not an absolute http or https URL.
func New(o Options) (*echo.Echo, error) {
	s, err := newServer(o)
	if err != nil {
		return nil, err
	}
	return s.routed()
}

// newServer makes what stands behind the routes.
func newServer(o Options) (*server, error) {
	if o.Asker == nil || o.Searcher == nil || o.Library == nil || o.Logger == nil {
		return nil, errors.New("making the web server: Asker, Searcher, Library and Logger are required")
	}
	if o.Indexing == nil {
		o.Indexing = func() (int, int, bool) { return 0, 0, true }
	}
	if o.Troubles == nil {
		o.Troubles = func() []ingest.Change { return nil }
	}
	if o.Runs == nil {
		o.Runs = new(Runs)
	}
	if o.MaxAsks <= 0 {
		o.MaxAsks = DefaultMaxAsks
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(Price{})
	}
	o.Logger = slog.New(requestLog{o.Logger.Handler()})
	if o.KeyRate <= 0 {
		o.KeyRate = DefaultKeyRate
	}
	var ring *keys
	if o.Keys != nil {
		ring = newKeys(o.Keys, o.KeyRate, o.Logger)
		o.narrow()
	}
	s := &server{Options: o, asks: make(chan struct{}, o.MaxAsks), access: accesses(), keys: ring, drawings: newDrawings(), markdown: newMarkdown()}
	if o.PublicURL != "" {
		u, err := url.Parse(strings.TrimRight(o.PublicURL, "/"))
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, fmt.Errorf("reading the public URL %q: give an absolute address such as https://docs.example.org", o.PublicURL)
		}
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		s.public = u
	}
	s.Metrics.server.Store(s)
	return s, nil
}

// routed makes the handler of all routes.
func (s *server) routed() (_ *echo.Echo, err error) {
	if s.files, err = loadFiles(); err != nil {
		return nil, err
	}
	if s.pages, err = loadPages(); err != nil {
		return nil, err
	}
	if s.apiDocs, err = loadDocs(); err != nil {
		return nil, err
	}
	crossOrigin, err := s.crossOrigin()
	if err != nil {
		return nil, err
	}

	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.IPExtractor = peer(s.TrustProxies)
	e.HTTPErrorHandler = s.handleError
	// Pre: these hold for unknown routes as well.
	e.Pre(s.measure, s.stripPrefix, requestID, headers, s.log(), s.recover(), freshDeadline, s.checkHost, crossOrigin)
	// Use: the route is known.
	if s.Tracer != nil {
		e.Use(s.traced)
	}
	e.Use(s.listed, s.admit)

	get := func(path string, h echo.HandlerFunc) {
		e.Add(http.MethodGet, path, h)
		e.Add(http.MethodHead, path, h)
	}
	get("/", s.home)
	get(staticRoute, s.static)
	get("/documents", s.documentList)
	get("/documents/*", s.viewer)
	e.POST("/api/ask", s.ask, s.bounded)
	e.POST("/api/search", s.search, s.bounded)
	if s.Summarizer != nil {
		e.POST("/api/summarize", s.summarize, s.bounded)
	}
	s.routeRuns(e, get)
	s.routeFeedback(e, get)
	get("/api/collections", s.collections)
	get("/api/documents", s.documents)
	get("/api/documents/*", s.document)
	if s.Uploads != nil {
		e.POST("/api/documents", s.upload, s.bounded)
		e.POST("/api/documents/*", s.reread, s.bounded)
		e.DELETE("/api/documents/*", s.remove)
	}
	s.routeMCP(e)
	s.routeV1(e, get)
	s.addKeyRoutes(e)
	get("/openapi.json", s.openapi)
	get("/docs", s.docs)
	get("/metrics", s.metrics)
	get("/healthz", s.healthz)
	get("/readyz", s.readyz)
	return e, nil
}

// NewHTTPServer gives a server for the handler with time limits against
// clients that send slowly. There is no limit on writing a whole reply, since
// an answer streams for as long as it takes; each write has its own.
func NewHTTPServer(addr string, h http.Handler) *http.Server {
	return &http.Server{
		Addr:              addr,
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
}

// base is the absolute address that links begin with, without a slash at its end.
func (s *server) base(c echo.Context) string {
	if s.public != nil {
		return s.public.String()
	}
	// Not c.Scheme(): it believes X-Forwarded-Proto from anyone.
	scheme := "http"
	if c.IsTLS() {
		scheme = "https"
	}
	return scheme + "://" + c.Request().Host
}

// prefix is the path that a proxy serves us under, "" for none.
func (s *server) prefix() string {
	if s.public == nil {
		return ""
	}
	return s.public.EscapedPath()
}

// Indexing is the progress of the sync, as replies carry it.
type Indexing struct {
	Done  int  `json:"done"`
	Total int  `json:"total"`
	Ready bool `json:"ready"`
}

func (s *server) indexing() Indexing {
	done, total, ready := s.Indexing()
	return Indexing{Done: done, Total: total, Ready: ready}
}

func (s *server) healthz(c echo.Context) error {
	return reply(c, http.StatusOK, health{"ok", s.Version})
}

// health is the reply of GET /healthz.
type health struct {
	Status  string `json:"status"`
	Version string `json:"version,omitempty"`
}

// readiness is the reply of GET /readyz.
type readiness struct {
	Indexing
	// Reason says why the server is not ready.
	Reason string `json:"reason,omitempty"`
}

// storeTimeout is how long a store may take to answer whether it is there.
const storeTimeout = 2 * time.Second

// readyz says whether to send questions here. What exactly is wrong with the
// store is for the log, and said there once.
func (s *server) readyz(c echo.Context) error {
	r := readiness{Indexing: s.indexing()}
	if !r.Ready {
		r.Reason = "the folders are being read for the first time"
	}
	if s.Reachable != nil {
		ctx, cancel := context.WithTimeout(c.Request().Context(), storeTimeout)
		defer cancel()
		err := s.Reachable(ctx)
		if err != nil && c.Request().Context().Err() != nil {
			return fmt.Errorf("asking the store: %w", c.Request().Context().Err())
		}
		if err != nil {
			r.Ready, r.Reason = false, "the store does not answer: the log of the server says why"
		}
		if away := err != nil; s.storeAway.Swap(away) != away {
			if away {
				s.Logger.Error("the store does not answer", "error", err)
			} else {
				s.Logger.Info("the store answers again")
			}
		}
	}
	if r.Reason == "" {
		return reply(c, http.StatusOK, r)
	}
	c.Response().Header().Set(echo.HeaderRetryAfter, "2")
	return reply(c, http.StatusServiceUnavailable, r)
}
