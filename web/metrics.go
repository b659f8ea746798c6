package web

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/ingest"
)

// Metrics are what Prometheus reads from one server. No label has a value that a
// client, a document or a model chose: values that are not expected count as "other".
type Metrics struct {
	registry *prometheus.Registry
	server   atomic.Pointer[serverState] // nil before there is a server

	requests *prometheus.HistogramVec // route, method
	replies  *prometheus.CounterVec   // route, method, status
	problems *prometheus.CounterVec   // code
	answers  *prometheus.CounterVec   // kind, outcome
	stages   *prometheus.HistogramVec // kind, stage
	refusals *prometheus.CounterVec   // reason
	calls    *prometheus.HistogramVec // role
	failures *prometheus.CounterVec   // role, kind
	tokens   *prometheus.CounterVec   // role, direction
	files    *prometheus.CounterVec   // action
}

// StoreFigures are the size of the store, and how reading files went.
type StoreFigures struct {
	Documents, Chunks int
	Bytes             int64 // on disk; negative if unknown
	// Lag is how many changes the search index lacks; negative if unknown, or if each
	// search brings it up to date.
	Lag int64
	// ReaderDeaths counts the child processes that died reading a file.
	ReaderDeaths int64
}

// NewMetrics makes metrics.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	quick := []float64{.0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "ibid", Name: name, Help: help, Buckets: buckets}, labels)
		m.registry.MustRegister(h)
		return h
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "ibid", Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	m.requests = histogram("http_request_duration_seconds", "Time to the end of a reply, by route.", quick, "route", "method")
	m.replies = counter("http_requests_total", "Requests, by route and status.", "route", "method", "status")
	m.problems = counter("problems_total", "Errors that clients got, by their code: too_fast and too_many_questions are rejections for "+
		"load, no_key and bad_key for lack of a key.", "code")
	m.answers = counter("answers_total", "Answers and summaries, by how they ended.", "kind", "outcome")
	m.stages = histogram("answer_stage_duration_seconds", "Time of the stages of an answer: retrieve until passages are found, gate from "+
		"then until all are judged, first_text from the beginning to the first word, whole to the last.", quick, "kind", "stage")
	m.refusals = counter("refusals_total", "Questions that the documents do not answer, by reason.", "reason")
	m.calls = histogram("model_call_duration_seconds", "Time of a call to a model, by purpose.", quick, "role")
	m.failures = counter("model_call_failures_total", "Calls to a model that failed, by kind.", "role", "kind")
	m.tokens = counter("model_tokens_total", "Tokens of calls to models: prompt, completion, and reasoning, which is part of "+
		"completion.", "role", "direction")
	m.files = counter("sync_files_total", "Files that a sync visited, by outcome.", "action")
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), stateCollector{m})
	return m
}

// Handler serves the metrics at /metrics to everybody: it is for an address of its own.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	return mux
}

// Synced counts a file that a sync visited.
func (m *Metrics) Synced(c ingest.Change) {
	m.files.WithLabelValues(string(c.Action)).Inc()
}

// known returns the value if it is expected, else "other".
func known(value string, among ...string) string {
	if slices.Contains(among, value) {
		return value
	}
	return "other"
}

// measure counts requests.
func measure(m *Metrics, routes accessTable) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			start := time.Now()
			err := next(c)
			route, method := "other", known(c.Request().Method, http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete,
				http.MethodOptions)
			if _, ok := routes.ofRequest(c); ok {
				route = c.Path()
			}
			m.requests.WithLabelValues(route, method).Observe(time.Since(start).Seconds())
			m.replies.WithLabelValues(route, method, strconv.Itoa(c.Response().Status)).Inc()
			return err
		}
	}
}

// send replies with the metrics, which count what is in every collection.
func (m *Metrics) send(c echo.Context) error {
	if caller := holderFrom(c.Request().Context()); caller != nil && len(caller.key.Collections) > 0 {
		return problem(http.StatusForbidden, "outside_key",
			"the metrics count what is in every collection: use a key for all of them, or --metrics-addr")
	}
	m.Handler().ServeHTTP(c.Response(), c.Request())
	return nil
}

// serverState is what the metrics report of a server at the moment they are read.
type serverState struct {
	limiter limiter
	catalog *catalog
	figures func(context.Context) (StoreFigures, error)
	logger  *slog.Logger
}

// watch makes the metrics report the state of a server.
func (m *Metrics) watch(s serverState) { m.server.Store(&s) }

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
	gauge := func(name, help string, kind prometheus.ValueType, value float64) {
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("ibid_"+name, help, nil, nil), kind, value)
	}
	gauge("questions_in_hand", "Questions and searches that are being answered.", prometheus.GaugeValue, float64(len(s.limiter.slots)))
	gauge("questions_limit", "Maximum of questions and searches answered at a time.", prometheus.GaugeValue, float64(cap(s.limiter.slots)))
	i := s.catalog.indexing()
	ready := 0.
	if i.Ready {
		ready = 1
	}
	gauge("sync_ready", "1 when the folders have been read once.", prometheus.GaugeValue, ready)
	gauge("sync_done_files", "Files of the folders that the sync is done with.", prometheus.GaugeValue, float64(i.Done))
	gauge("sync_seen_files", "Files of the folders that the sync has seen.", prometheus.GaugeValue, float64(i.Total))
	troubles := 0
	for _, t := range s.catalog.troubles() {
		if t.Action == ingest.Failed {
			troubles++
		}
	}
	gauge("sync_failed_files", "Files that the last sync could not read.", prometheus.GaugeValue, float64(troubles))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	f, err := s.figures(ctx)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			s.logger.WarnContext(ctx, "the size of the store could not be read", "error", err)
		}
		return
	}
	gauge("store_documents", "Documents in the store.", prometheus.GaugeValue, float64(f.Documents))
	gauge("store_chunks", "Chunks in the store.", prometheus.GaugeValue, float64(f.Chunks))
	if f.Bytes >= 0 {
		gauge("store_bytes", "Size of the store on disk, in bytes.", prometheus.GaugeValue, float64(f.Bytes))
	}
	if f.Lag >= 0 {
		gauge("index_lag_changes", "Changes of the store that the search index in a cluster lacks.", prometheus.GaugeValue, float64(f.Lag))
	}
	gauge("reader_deaths_total", "Child processes that died reading a file.", prometheus.CounterValue, float64(f.ReaderDeaths))
}

// An answerMeter measures one answer.
type answerMeter struct {
	*Metrics
	kind  string // "ask" or "summarize"
	began time.Time
	found time.Time // when the search ended, or zero
	gated bool      // all passages were judged
	text  bool      // there is some

	refused, incomplete, fellBack bool
}

// errLeft means that the reader stopped reading.
var errLeft = errors.New("the reader left")

func (m *answerMeter) observeStage(name string, from time.Time) {
	m.stages.WithLabelValues(m.kind, name).Observe(time.Since(from).Seconds())
}

// endGate ends the stage of the gate, once.
func (m *answerMeter) endGate() {
	if !m.gated && !m.found.IsZero() {
		m.gated = true
		m.observeStage("gate", m.found)
	}
}

// pass measures the events of an answer with numbers, and returns how they ended.
func (m *answerMeter) pass(events iter.Seq2[answer.Event, error], yield func(answer.Event, error) bool) error {
	for e, err := range events {
		m.measure(e)
		if !yield(e, err) && err == nil {
			return errLeft
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *answerMeter) measure(e answer.Event) {
	switch e := e.(type) {
	case answer.Retrieved:
		m.found = time.Now()
		m.observeStage("retrieve", m.began)
	case answer.Kept:
		m.endGate()
	case answer.Unanswered:
		m.endGate()
		m.refused = true
		m.refusals.WithLabelValues(e.Reason).Inc()
	case answer.Fallback:
		m.fellBack = true
	case answer.Incomplete:
		m.incomplete = true
	case answer.Text:
		if !m.text {
			m.text = true
			m.observeStage("first_text", m.began)
		}
	}
}

func (m *answerMeter) end(ctx context.Context, err error) {
	outcome := "answered"
	switch {
	case ctx.Err() != nil || errors.Is(err, errLeft) || errors.Is(err, context.Canceled):
		outcome = "canceled"
	case err != nil:
		outcome = "failed"
	case m.refused:
		outcome = "refused"
	case m.incomplete:
		outcome = "incomplete"
	case m.fellBack:
		outcome = "fallback"
	}
	m.answers.WithLabelValues(m.kind, outcome).Inc()
	if outcome != "canceled" && outcome != "failed" {
		m.observeStage("whole", m.began)
	}
}

// Model returns a model whose calls are measured; nil for nil.
func (m *Metrics) Model(model answer.Model) answer.Model {
	if model == nil {
		return nil
	}
	return observedModel{model, m}
}

type observedModel struct {
	answer.Model
	m *Metrics
}

func (w observedModel) Complete(ctx context.Context, p answer.Prompt) iter.Seq2[answer.Piece, error] {
	return func(yield func(answer.Piece, error) bool) {
		role, start := string(p.Role), time.Now()
		var used answer.Tokens
		var text []byte
		finished := false
		var failed error
		for piece, err := range w.Model.Complete(ctx, p) {
			used, failed = piece.Usage, err
			finished = finished || piece.Finish != "" || err != nil
			if !finished { // the server's own counts come at the end
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
		w.m.recordCall(role, time.Since(start), used, failed)
	}
}

func (m *Metrics) recordCall(role string, took time.Duration, used answer.Tokens, err error) {
	m.calls.WithLabelValues(role).Observe(took.Seconds())
	m.tokens.WithLabelValues(role, "prompt").Add(float64(used.Prompt))
	m.tokens.WithLabelValues(role, "completion").Add(float64(used.Completion))
	m.tokens.WithLabelValues(role, "reasoning").Add(float64(used.Reasoning))
	if err != nil {
		m.failures.WithLabelValues(role, failureKind(err)).Inc()
	}
}

func failureKind(err error) string {
	var e *openai.Error
	switch {
	case errors.As(err, &e):
		return string(e.Kind)
	case errors.Is(err, context.Canceled):
		return string(openai.Canceled)
	}
	return "other"
}
