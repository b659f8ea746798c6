package web

import (
	"cmp"
	"context"
	"io/fs"
	"iter"
	"log/slog"
	"net/netip"
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
	// Ledger stores records and runs. Interrupted runs can be resumed.
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
	// Reachable returns an error if the store is unreachable, for GET /readyz.
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
	// If nil, no key is needed.
	Keys retrieve.Keyring
	// KeyRate is how many questions and searches a key may send in a minute or, if Keys is
	// nil, an address of another machine; more get a 429. 0 means [DefaultKeyRate].
	KeyRate int
	// UserRate is how many of these a key may send for one user, named in the request or by a
	// trusted proxy. 0 means [DefaultUserRate].
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
	// SelfTest returns "" if the model has passed its self-test; otherwise it says that the
	// test failed or has not ended.
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
	pages, err := loadPages(a, &o)
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
		home:          &homePage{documents: documents},
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
