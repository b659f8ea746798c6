// Package web serves Ibid over HTTP: the page, the JSON API with its server-sent events, the
// OpenAI API, the Model Context Protocol, and the viewer that citations link to.
//
// [New] returns an [http.Handler]; it opens no port and reads no environment. [NewHTTPServer]
// wraps the handler in a server with time limits for an open network. [ServeMCP] serves the
// Model Context Protocol without HTTP.
//
// Documents and models are untrusted: their text is sent as JSON or through html/template,
// never as markup, and the Content-Security-Policy of every reply forbids content from other
// servers.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/semaphore"

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

// A Library reads stored documents; [retrieve.Index] is one.
type Library interface {
	// Document returns a document with its text, or an error that wraps
	// [retrieve.ErrNotFound].
	Document(ctx context.Context, id string) (*ingest.Document, error)
	// Documents lists documents by id, without texts.
	Documents(ctx context.Context, f retrieve.Filter) ([]retrieve.DocumentInfo, error)
	// Holds reports whether Documents would list any document, without making the list.
	Holds(ctx context.Context, f retrieve.Filter) (bool, error)
}

// Options are the parts of a server. Interfaces, functions and pointers are required unless
// their comment says otherwise.
type Options struct {
	Asker      Asker
	Searcher   Searcher
	Library    Library
	Summarizer Summarizer
	// UploadFolders adds, rereads and deletes documents. If nil, these routes do not exist
	// and the next three options are unused.
	UploadFolders UploadFolders
	// UploadCollection is the default collection of uploaded documents.
	UploadCollection string
	// Sample is a library that people can try: a button uploads its files.
	Sample fs.FS
	// Sites adds web sites.
	Sites Sites
	// Drawer draws the pages that the viewer shows next to their text.
	Drawer Drawer
	// Originals reads the files of documents.
	Originals Originals
	// Ledger stores records, and runs so that interrupted ones can be resumed.
	Ledger retrieve.Ledger
	// KeepAnswers is how long records are kept; 0 means not at all.
	KeepAnswers time.Duration
	// Answers are the answers in progress. The caller must call its Shutdown.
	Answers *Answers
	// Upstream is the model itself, which writes JSON by a schema for clients of the OpenAI
	// API. Its name is empty while there is no model.
	Upstream Upstream
	// Settings are the settings that people may change on the page.
	Settings Settings
	// SettingsCode is required for an endpoint on another machine if Keys is nil.
	SettingsCode string
	// Relay lets clients ask the model itself, under its own name and without documents. If
	// Keys is set, the key must permit it.
	Relay bool
	// NoLinks disables the Markdown links of numbers in the OpenAI API.
	NoLinks bool
	// Logger receives one line per request. Questions, answers and document texts are never
	// logged.
	Logger *slog.Logger

	// Citing configures sources and quotes. Its Link is ignored: citations link to the
	// viewer.
	Citing cite.Options

	// Indexing reports the progress of the sync.
	Indexing func() Indexing
	// RunEnded is called when an answer or summary that has an id ends. kind is "ask" or
	// "summarize". It may be nil, and must not block.
	RunEnded func(run, kind, state string)
	// Reachable returns why the store is unreachable, for GET /readyz.
	Reachable func(ctx context.Context) error
	// Troubles lists the files that the last sync skipped or could not read.
	Troubles func() []ingest.Change

	// Addr is the address that the server listens on, such as "127.0.0.1:8080". With a
	// loopback address only loopback names are accepted in the Host header; otherwise IP
	// addresses too, but never unknown names: a page of another site can rebind its name to
	// this server.
	Addr string
	// PublicURL is where people reach the server, including the path prefix of a proxy. If
	// empty, it is http:// and the request's Host.
	PublicURL string
	// AllowHosts are additional accepted host names, without a port.
	AllowHosts []string

	// Origins are other sites whose pages may ask and search, such as "https://example.org".
	Origins []string

	// Keys guard everything except the public routes. A caller sees only what its key allows.
	// If nil, everybody is let in.
	Keys retrieve.Keyring
	// KeyRate is how many questions and searches a key may send in a minute or, if Keys is
	// nil, an address of another machine; more get a 429. 0 means [DefaultKeyRate].
	KeyRate int
	// UserRate is how many of these may be for one user, named in the request or by a trusted
	// proxy. 0 means [DefaultUserRate].
	UserRate int
	// TrustProxies are the networks of proxies whose X-Forwarded-For is trusted.
	TrustProxies []netip.Prefix
	// SignIn, if set together with Keys, admits people that these proxies name; may be nil.
	SignIn *SignIn

	// Metrics are the metrics for GET /metrics.
	Metrics *Metrics
	// Figures returns the size of the store for the metrics.
	Figures func(ctx context.Context) (StoreFigures, error)

	// Encoded returns how many of the stored chunks are encoded. The total is 0 if no encoder
	// is used.
	Encoded func() (done, total int)

	// Model returns the name of the model that writes answers, shown on the page, or "".
	Model func(ctx context.Context) string
	// SelfTest returns "" if the model has passed its self-test, else that it failed or has
	// not ended.
	SelfTest func(ctx context.Context) string
	// Suggest asks the model for about n questions that the passages answer; may be nil.
	Suggest func(ctx context.Context, passages []retrieve.Passage, n int) ([]string, error)
	// Version is shown on the page and by GET /healthz.
	Version string
	// MaxAsks is the maximum number of questions and searches answered at a time; more get a
	// 429. 0 means [DefaultMaxAsks].
	MaxAsks int
}

// Limits on requests.
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
	bodyTimeout  = 15 * time.Second // for partBytes of a request's body
	writeTimeout = 10 * time.Second // for partBytes of a reply; less than heartbeat
	partBytes    = 64 << 10
	heartbeat    = 15 * time.Second // between comments on a silent stream, since proxies give up after 60 s
)

// setDefaults sets the defaults of missing options.
func (o *Options) setDefaults() {
	o.MaxAsks, o.KeyRate = cmp.Or(max(o.MaxAsks, 0), DefaultMaxAsks), cmp.Or(max(o.KeyRate, 0), DefaultKeyRate)
	o.UserRate = cmp.Or(max(o.UserRate, 0), DefaultUserRate)
	o.UploadCollection = cmp.Or(o.UploadCollection, ingest.DefaultCollection)
	o.Logger = slog.New(requestLog{o.Logger.Handler()})
}

// newAsking returns the parts that all routes for questions share.
func (o *Options) newAsking(a address) *asking {
	c := &catalog{Library: o.Library, Searcher: o.Searcher, indexing: o.Indexing, troubles: o.Troubles}
	if c.folders = o.UploadFolders; c.folders != nil {
		c.uploads = o.UploadCollection
	}
	return &asking{catalog: c, asker: o.Asker, summarizer: o.Summarizer, answering: &answering{
		address: a, citations: o.Citing, indexing: o.Indexing, markdown: newMarkdown(), metrics: o.Metrics, logger: o.Logger,
		records: &recordStore{c, o.Answers, o.Ledger, o.KeepAnswers}, runEnded: o.RunEnded}}
}

// handlers are the parts of the server that have routes.
type handlers struct {
	limiter       limiter
	home          *homePage
	catalog       *catalog
	documents     *documents
	suggestions   *suggestions
	asking        *asking
	batch         *batch
	runs          *runHandlers
	conversations *conversationHandlers
	feedback      *feedbackHandlers
	mcp           *mcpHTTP
	openAI        *openAI
	settings      *settingsHandlers
	key           *keyForm
	metrics       *Metrics
	health        *health
}

// New returns the handler of all routes. It fails if the public URL is not an absolute http
// or https URL.
func New(o Options) (*echo.Echo, error) {
	o.setDefaults()
	a, err := newAddress(o.PublicURL)
	if err != nil {
		return nil, err
	}
	guard := &keyGuard{address: a, access: accessTable{}, origins: o.Origins}
	if o.Keys != nil {
		guard.keys = &keyring{store: o.Keys, logger: o.Logger}
		if o.SignIn != nil {
			guard.people = &people{SignIn: *o.SignIn, proxies: o.TrustProxies, logger: o.Logger}
		}
		o.restrictToKeys()
	}
	pages, err := loadPages(a, o.Version, o.Keys != nil)
	if err != nil {
		return nil, err
	}
	asking, limiter := o.newAsking(a), newLimiter(o.MaxAsks, o.KeyRate, o.UserRate)
	asking.catalog.keys = guard.keys
	answering, catalog, records := asking.answering, asking.catalog, asking.answering.records
	documents := &documents{catalog: catalog, pages: pages, records: records, drawer: o.Drawer, originals: o.Originals,
		drawing: semaphore.NewWeighted(maxDrawing), sample: o.Sample, sites: o.Sites,
		model: o.Model, modelDetail: answering.modelDetail, summarize: o.Summarizer != nil}
	o.Metrics.server.Store(&serverState{limiter, catalog, o.Figures, o.Encoded, o.Logger})
	h := &handlers{limiter: limiter, catalog: catalog, documents: documents, asking: asking, metrics: o.Metrics,
		home:          newHomePage(documents, o.KeepAnswers > 0),
		suggestions:   &suggestions{library: catalog, asker: o.Asker, logger: o.Logger, model: o.Model, suggest: o.Suggest},
		batch:         newBatch(asking, limiter),
		mcp:           newMCPHTTP(&mcpServer{asking, answering, catalog, limiter, o.Version}),
		runs:          &runHandlers{asking, answering, records, guard.keys},
		conversations: &conversationHandlers{records, a},
		feedback:      &feedbackHandlers{records},
		openAI:        &openAI{asking, answering, records, &v1Library{catalog, a, o.Upstream, o.Relay}, upstreamModel{o.Upstream}, !o.NoLinks},
		settings:      &settingsHandlers{o.Settings, answering, o.SettingsCode},
		key:           &keyForm{guard, pages},
		health: &health{version: o.Version, indexing: catalog.indexing, reachable: o.Reachable, detail: answering.modelDetail,
			selfTest: o.SelfTest, encoded: o.Encoded, logger: o.Logger}}
	return h.newRouter(&o, guard, pages)
}

// newRouter returns the router with its middleware.
func (h *handlers) newRouter(o *Options, guard *keyGuard, pages *pages) (*echo.Echo, error) {
	crossOrigin, err := guard.address.refuseCrossOrigin()
	if err != nil {
		return nil, err
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.IPExtractor = ipExtractor(o.TrustProxies)
	e.HTTPErrorHandler = errorReplies{pages, h.key}.handle
	// Pre also applies to unknown routes.
	e.Pre(measure(o.Metrics, guard.access), guard.address.stripPrefix, requestID, setHeaders, logRequests(o.Logger, o.Metrics),
		recoverPanics(o.Logger), dropSlowSenders,
		hostCheck{guard.address, o.Addr, o.AllowHosts}.check, guard.admitOrigins(crossOrigin))
	e.Use(guard.admit)
	for _, r := range h.routes(o.UploadFolders != nil, o.Keys != nil) {
		guard.access[r.method+" "+r.path] = r.access
		e.Add(r.method, r.path, r.handler)
		if r.method == http.MethodGet {
			guard.access["HEAD "+r.path] = r.access
			e.Add(http.MethodHead, r.path, r.handler)
		}
	}
	return e, nil
}

// A route is one line of the table of routes.
type route struct {
	method, path string
	access       access // needed if keys guard the server
	handler      echo.HandlerFunc
}

// routes returns the table of all routes. The routes for uploads and for keys are optional.
// HEAD is handled as GET.
func (h *handlers) routes(uploads, keys bool) []route {
	limited, counted := h.limiter.limitHandler, h.catalog.withCodePoints
	table := []route{
		{"GET", "/", readers, compressReplies(h.home.show)},
		{"GET", staticRoute, public, compressReplies(serveStatic)},
		{"GET", "/documents", readers, h.documents.listPage},
		{"GET", "/documents/*", readers, h.documents.viewer},

		{"POST", "/api/ask", visitors, counted(limited(withBody(h.asking.ask)))},
		{"POST", "/api/ask/batch", readers, withBody(h.batch.ask)},
		{"POST", "/api/search", visitors, counted(limited(withBody(h.asking.search)))},
		{"POST", "/api/summarize", readers, counted(limited(withBody(h.asking.summarize)))},
		{"GET", "/api/cite", readers, sendCitePrompt},
		{"POST", "/api/cite", readers, limited(citeAny)},
		{"POST", "/api/runs", readers, limited(withBody(h.runs.begin))},
		{"GET", "/api/runs", readers, h.runs.list},
		{"GET", "/api/runs/:id", readers, counted(h.runs.show)},
		{"DELETE", "/api/runs/:id", readers, h.runs.stop},
		{"PUT", "/api/runs/:id/shared", readers, h.runs.share},
		{"DELETE", "/api/runs/:id/shared", readers, h.runs.share},
		{"GET", "/api/conversations", readers, h.conversations.list},
		{"GET", "/api/conversations/:id", readers, counted(h.conversations.show)},
		{"PATCH", "/api/conversations/:id", readers, withBody(h.conversations.rename)},
		{"DELETE", "/api/conversations/:id", readers, h.conversations.remove},
		{"POST", "/api/feedback", readers, withBody(h.feedback.recordFeedback)},
		{"GET", "/api/feedback", writers, h.feedback.list},
		{"GET", "/api/collections", readers, h.catalog.showCollections},
		{"GET", "/api/suggestions", readers, limited(h.suggestions.list)},
		{"GET", "/api/documents", readers, h.documents.list},
		{"GET", "/api/documents/*", readers, counted(h.documents.show)},
		{"GET", "/api/settings", administrators, limited(h.settings.show)},
		{"PUT", "/api/settings", administrators, limited(h.settings.change)},
		{"POST", "/api/settings/test", administrators, limited(h.settings.test)},
		{"POST", "/api/settings/parts", administrators, limited(h.settings.getPart)},

		{"POST", "/mcp", readers, h.mcp.post},

		{"GET", "/openapi.json", public, compressReplies(sendOpenAPI)},
		{"GET", "/metrics", readers, h.metrics.send},
		{"GET", "/healthz", public, h.health.live},
		{"GET", "/readyz", public, h.health.ready},
	}
	table = append(table, h.openAIRoutes()...)
	if uploads {
		table = append(table, h.uploadRoutes()...)
	}
	if keys {
		table = append(table, h.keyRoutes()...)
	}
	return table
}

func (h *handlers) openAIRoutes() []route {
	limited := h.limiter.limitHandler
	return []route{
		{"POST", "/v1/chat/completions", readers, limited(h.openAI.chat)},
		{"POST", "/v1/completions", readers, limited(h.openAI.completions)},
		{"POST", "/v1/responses", readers, limited(h.openAI.responses)},
		{"GET", "/v1/responses/:id", readers, h.openAI.showResponse},
		{"POST", "/v1/vector_stores/:id/search", readers, limited(h.openAI.library.searchVectors)},
		{"GET", "/v1/vector_stores", readers, h.openAI.library.listStores},
		{"GET", "/v1/vector_stores/:id", readers, h.openAI.library.showStore},
		{"GET", "/v1/files", readers, h.openAI.library.listFiles},
		{"GET", "/v1/files/:id", readers, h.openAI.library.showFile},
		{"GET", "/v1/models", readers, h.openAI.library.listModels},
		{"GET", "/v1/models/*", readers, h.openAI.library.showModel},
	}
}

func (h *handlers) uploadRoutes() []route {
	limited := h.limiter.limitHandler
	return []route{
		{"POST", "/api/documents", writers, limited(h.documents.add)},
		{"POST", "/api/documents/*", writers, limited(h.documents.reread)},
		{"PATCH", "/api/documents/*", writers, limited(withBody(h.documents.setLabels))},
		{"DELETE", "/api/documents/*", writers, h.documents.remove},
		{"POST", "/api/collections", writers, withBody(h.catalog.makeCollection)},
		{"PATCH", "/api/collections/:id", writers, withBody(h.catalog.renameCollection)},
		{"DELETE", "/api/collections/:id", writers, h.catalog.deleteCollection},
		{"POST", "/api/sample", writers, limited(h.documents.addSample)},
	}
}

func (h *handlers) keyRoutes() []route {
	return []route{
		{"GET", resourceMetadata, public, h.mcp.metadata},
		{"GET", "/key", public, h.key.show},
		{"POST", "/key", public, h.key.beginSession},
		{"POST", "/key/leave", public, h.key.endSession},
	}
}

// An HTTPServer is an [http.Server] that drops clients that stop reading. A reply may take
// any time as long as it makes progress.
type HTTPServer struct {
	http.Server
	ended atomic.Int64 // number of replies and connections that have ended
}

// NewHTTPServer returns a server for the handler with time limits on slow clients. A whole
// reply has no limit, since an answer streams for as long as it takes; each write has its
// own.
func NewHTTPServer(addr string, h http.Handler) *HTTPServer {
	s := &HTTPServer{Server: http.Server{
		Addr:              addr,
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}}
	s.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateIdle || state == http.StateClosed {
			s.ended.Add(1)
		}
	}
	return s
}

// End shuts down the server. It waits as long as replies keep ending; if none ends within
// wait, it closes the remaining connections and returns an error.
func (s *HTTPServer) End(wait time.Duration) error {
	for {
		before := s.ended.Load()
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		err := s.Shutdown(ctx)
		cancel()
		if err == nil {
			return nil
		}
		if s.ended.Load() == before {
			return errors.Join(fmt.Errorf("some replies did not end before the shutdown: %w", err), s.Close())
		}
	}
}

// Serve is [http.Server.Serve] with time limits on writes.
func (s *HTTPServer) Serve(l net.Listener) error { return s.Server.Serve(boundedListener{l}) }

// A boundedListener accepts connections whose writes have a time limit.
type boundedListener struct{ net.Listener }

func (l boundedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return boundedConn{c}, nil
}

// A boundedConn allows [writeTimeout] for each partBytes that it writes. The time begins at
// the write, since the data may have waited in buffers.
type boundedConn struct{ net.Conn }

func (c boundedConn) Write(b []byte) (n int, err error) {
	for part := range slices.Chunk(b, partBytes) {
		if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return n, fmt.Errorf("setting a deadline: %w", err)
		}
		wrote, err := c.Conn.Write(part)
		if n += wrote; err != nil {
			return n, err
		}
	}
	return n, nil
}

// CloseWrite lets the client read a reply that was sent before the end of its request.
func (c boundedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
