package web

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/ingest"
)

// Metrics are the metrics of one server for Prometheus. No label has a value that a client, a
// document or a model chose: unexpected values count as "other".
type Metrics struct {
	registry *prometheus.Registry
	server   atomic.Pointer[serverState] // nil until a server exists

	requests *prometheus.HistogramVec // route, method
	replies  *prometheus.CounterVec   // route, method, status
	problems *prometheus.CounterVec   // code
	answers  *prometheus.CounterVec   // kind, outcome
	calls    *prometheus.HistogramVec // role
	failures *prometheus.CounterVec   // role, kind
	tokens   *prometheus.CounterVec   // role, direction
	files    *prometheus.CounterVec   // action
}

// StoreFigures are figures about the store, its index and the readers of files.
type StoreFigures struct {
	Documents, Chunks int
	Bytes             int64 // on disk; negative if unknown
	// Lag is the number of changes missing from the search index; negative if unknown, or if
	// each search updates the index.
	Lag int64
	// ReaderDeaths counts the child processes that died reading a file.
	ReaderDeaths int64
}

// NewMetrics makes metrics.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	quick := []float64{.0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
	with := promauto.With(m.registry)
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return with.NewHistogramVec(prometheus.HistogramOpts{Namespace: "ibid", Name: name, Help: help, Buckets: quick}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return with.NewCounterVec(prometheus.CounterOpts{Namespace: "ibid", Name: name, Help: help}, labels)
	}
	m.requests = histogram("http_request_duration_seconds", "Time to the end of a reply, by route.", "route", "method")
	m.replies = counter("http_requests_total", "Requests, by route and status.", "route", "method", "status")
	m.problems = counter("problems_total", "Errors sent to clients, by code: too_fast and too_many_questions are rejections for "+
		"load, no_key and bad_key for a missing or wrong key.", "code")
	m.answers = counter("answers_total", "Answers and summaries, by how they ended.", "kind", "outcome")
	m.calls = histogram("model_call_duration_seconds", "Duration of calls to a model, by purpose.", "role")
	m.failures = counter("model_call_failures_total", "Calls to a model that failed, by kind.", "role", "kind")
	m.tokens = counter("model_tokens_total", "Tokens of calls to models: prompt, completion, and reasoning, which is part of "+
		"completion.", "role", "direction")
	m.files = counter("sync_files_total", "Files that a sync visited, by outcome.", "action")
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), stateCollector{m})
	return m
}

func (m *Metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

// CountFile counts a file that a sync visited.
func (m *Metrics) CountFile(c ingest.Change) {
	m.files.WithLabelValues(string(c.Action)).Inc()
}

// measure counts requests.
func measure(m *Metrics, routes accessTable) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			start := time.Now()
			err := next(c)
			route, method := "other", "other"
			if routes[routeOf(c)] != 0 {
				route, method = c.Path(), c.Request().Method
			}
			m.requests.WithLabelValues(route, method).Observe(time.Since(start).Seconds())
			m.replies.WithLabelValues(route, method, strconv.Itoa(c.Response().Status)).Inc()
			return err
		}
	}
}

// send replies with the metrics. They cover all collections, so the key must, too.
func (m *Metrics) send(c echo.Context) error {
	if caller := holderFrom(c.Request().Context()); caller != nil && len(caller.key.Collections) > 0 {
		return problem(http.StatusForbidden, "outside_key",
			"the metrics cover all collections: use a key for all of them")
	}
	m.handler().ServeHTTP(c.Response(), c.Request())
	return nil
}

// serverState is the state of a server that is collected when the metrics are read.
type serverState struct {
	limiter limiter
	catalog *catalog
	figures func(context.Context) (StoreFigures, error)
	encoded func() (done, total int)
	logger  *slog.Logger
}

// stateCollector collects the state of the server.
type stateCollector struct{ m *Metrics }

// Describe describes nothing, since the metrics depend on the server.
func (stateCollector) Describe(chan<- *prometheus.Desc) {}

// Collect collects the metrics.
func (c stateCollector) Collect(out chan<- prometheus.Metric) {
	s := c.m.server.Load()
	if s == nil {
		return
	}
	put := func(kind prometheus.ValueType, name, help string, value float64) {
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("ibid_"+name, help, nil, nil), kind, value)
	}
	gauge := func(name, help string, value int) { put(prometheus.GaugeValue, name, help, float64(value)) }
	gauge("questions_in_hand", "Questions and searches in progress.", len(s.limiter.slots))
	gauge("questions_limit", "Maximum number of questions and searches in progress.", cap(s.limiter.slots))
	i, ready, troubles := s.catalog.indexing(), 0, 0
	if i.Ready {
		ready = 1
	}
	gauge("sync_ready", "1 after the folders have been read once.", ready)
	gauge("sync_done_files", "Files of the folders that the sync has finished.", i.Done)
	gauge("sync_seen_files", "Files of the folders that the sync has seen.", i.Total)
	for _, t := range s.catalog.troubles() {
		if t.Action == ingest.Failed {
			troubles++
		}
	}
	gauge("sync_failed_files", "Files that the last sync could not read.", troubles)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	f, err := s.figures(ctx)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			s.logger.WarnContext(ctx, "the size of the store could not be read", "error", err)
		}
		return
	}
	gauge("store_documents", "Documents in the store.", f.Documents)
	gauge("store_chunks", "Chunks in the store.", f.Chunks)
	if done, total := s.encoded(); total > 0 {
		gauge("store_chunks_encoded", "Chunks that the encoder has encoded.", done)
	}
	if f.Bytes >= 0 {
		gauge("store_bytes", "Size of the store on disk, in bytes.", int(f.Bytes))
	}
	if f.Lag >= 0 {
		gauge("index_lag_changes", "Changes of the store that are missing in the search index in a cluster.", int(f.Lag))
	}
	put(prometheus.CounterValue, "reader_deaths_total", "Child processes that died while reading a file.", float64(f.ReaderDeaths))
}

// MeasureModel returns a model that measures its calls, or nil for nil.
func (m *Metrics) MeasureModel(model answer.Model) answer.Model {
	if model == nil {
		return nil
	}
	return measuredModel{model, m}
}

// callerTokens counts the tokens of a request, even if its answer is cut off before [answer.Usage].
type callerTokens struct{ prompt, completion atomic.Int64 }

type callerTokensKey struct{}

type measuredModel struct {
	answer.Model
	m *Metrics
}

func (w measuredModel) Complete(ctx context.Context, p answer.Prompt) iter.Seq2[answer.Piece, error] {
	return func(yield func(answer.Piece, error) bool) {
		role, start := string(p.Role), time.Now()
		var used answer.Tokens
		var text []byte
		finished := false
		var failed error
		for piece, err := range w.Model.Complete(ctx, p) {
			used, failed = piece.Usage, err
			finished = finished || piece.Finish != "" || err != nil
			if !finished { // if the model finishes, its server reports the tokens
				text = append(text, piece.Text...)
			}
			if !yield(piece, err) {
				break
			}
		}
		if !finished {
			used.Prompt += ingest.CountTokens(p.System) + ingest.CountTokens(p.User)
			used.Completion += ingest.CountTokens(string(text))
		}
		if s, ok := ctx.Value(callerTokensKey{}).(*callerTokens); ok {
			s.prompt.Add(int64(used.Prompt))
			s.completion.Add(int64(used.Completion))
		}
		w.m.calls.WithLabelValues(role).Observe(time.Since(start).Seconds())
		for direction, n := range map[string]int{"prompt": used.Prompt, "completion": used.Completion, "reasoning": used.Reasoning} {
			w.m.tokens.WithLabelValues(role, direction).Add(float64(n))
		}
		if failed != nil {
			kind := "other"
			if of := (*openai.Error)(nil); errors.As(failed, &of) {
				kind = string(of.Kind)
			} else if errors.Is(failed, context.Canceled) {
				kind = string(openai.Canceled)
			}
			w.m.failures.WithLabelValues(role, kind).Inc()
		}
	}
}
