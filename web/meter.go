package web

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	outcome "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/cite"
	"ibid/ingest"
	"ibid/retrieve"
)

// An answerMeter measures one answer.
type answerMeter struct {
	*Metrics
	tracer trace.Tracer
	ctx    context.Context
	kind   string // "ask" or "summarize"
	began  time.Time
	found  time.Time // when the search ended, or zero
	gated  time.Time // when all passages were judged, or zero
	text   bool      // there is some

	sources                       int
	refused, incomplete, fellBack bool
}

// errLeft means that the reader stopped reading.
var errLeft = errors.New("the reader left")

func (m *answerMeter) observeStage(name string, from time.Time) {
	m.stages.WithLabelValues(m.kind, name).Observe(time.Since(from).Seconds())
}

// endGate ends the stage of the gate, once.
func (m *answerMeter) endGate() {
	if m.gated.IsZero() && !m.found.IsZero() {
		m.gated = time.Now()
		m.observeStage("gate", m.found)
		m.span("gate", m.found)
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
		m.span("retrieve", m.began, attribute.Int("ibid.passages", len(e.Passages)))
	case answer.Kept:
		m.endGate()
	case answer.Judged:
		m.verdicts.WithLabelValues(string(e.Decision), e.By).Inc()
	case answer.Unanswered:
		m.endGate()
		m.refused = true
		m.refusals.WithLabelValues(e.Reason).Inc()
	case answer.Stepped:
		m.dropped.Add(float64(len(e.Invented)))
	case answer.Fallback:
		m.fellBack = true
	case answer.Incomplete:
		m.incomplete = true
	case answer.Warning:
		m.warnings.Inc()
	case answer.Text:
		if !m.text {
			m.text = true
			m.observeStage("first_text", m.began)
		}
	case cite.Cited:
		m.sources++
	case cite.Quoted:
		m.citations.WithLabelValues(string(e.Verdict)).Inc()
	case cite.Unsupported:
		m.unsupported.WithLabelValues(e.Reason).Inc()
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
	if m.gated.IsZero() {
		m.gated = m.began
	}
	m.span("answer", m.gated, attribute.String("ibid.outcome", outcome), attribute.Int("ibid.sources", m.sources))
	if outcome == "canceled" || outcome == "failed" {
		return
	}
	m.observeStage("whole", m.began)
	if !m.refused {
		m.Metrics.sources.Observe(float64(m.sources))
	}
}

// Model returns a model whose calls are measured, and are spans with its name; nil
// for nil. Without a tracer there are no spans.
func (m *Metrics) Model(model answer.Model, name string, tracer trace.Tracer) answer.Model {
	if model == nil {
		return nil
	}
	return observedModel{model, name, m, orNoTracer(tracer)}
}

type observedModel struct {
	answer.Model
	name   string
	m      *Metrics
	tracer trace.Tracer
}

func (w observedModel) Complete(ctx context.Context, p answer.Prompt) iter.Seq2[answer.Piece, error] {
	return func(yield func(answer.Piece, error) bool) {
		role, start := string(p.Role), time.Now()
		ctx, span := w.tracer.Start(ctx, "chat "+w.name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.request.model", w.name),
			attribute.String("ibid.role", role)))
		defer span.End()
		var used answer.Tokens
		var text []byte
		finished := false
		var failed error
		for piece, err := range w.Model.Complete(ctx, p) {
			used, failed = piece.Usage, err
			if piece.Finish != "" {
				finish := known(piece.Finish, "stop", "length") // the server's own word
				span.SetAttributes(attribute.StringSlice("gen_ai.response.finish_reasons", []string{finish}))
			}
			finished = finished || piece.Finish != "" || err != nil
			if !finished { // the server's own counts come at the end
				text = append(text, piece.Text...)
			}
			if !yield(piece, err) {
				break
			}
		}
		if used.Reported {
			span.SetAttributes(attribute.Int("gen_ai.usage.input_tokens", used.Prompt),
				attribute.Int("gen_ai.usage.output_tokens", used.Completion))
		}
		if failed != nil {
			markFailed(span, failureKind(failed))
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
	m.upstream.WithLabelValues(role).Add(float64(max(1, used.Requests)))
	m.tokens.WithLabelValues(role, "prompt").Add(float64(used.Prompt))
	m.tokens.WithLabelValues(role, "completion").Add(float64(used.Completion))
	m.tokens.WithLabelValues(role, "reasoning").Add(float64(used.Reasoning))
	if m.cost != nil {
		m.cost.Add((m.price.In*float64(used.Prompt) + m.price.Out*float64(used.Completion)) / 1e6)
	}
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

// Embedder returns an embedder whose calls are measured, and are spans if they
// belong to a trace, which those of a sync do not. Without a tracer there are none.
func (m *Metrics) Embedder(e retrieve.Embedder, tracer trace.Tracer) retrieve.Embedder {
	observed := observedEmbedder{e, m, orNoTracer(tracer)}
	if v, ok := e.(retrieve.Vocabulary); ok {
		return struct {
			retrieve.Embedder
			retrieve.Vocabulary
		}{observed, v}
	}
	return observed
}

type observedEmbedder struct {
	retrieve.Embedder
	m      *Metrics
	tracer trace.Tracer
}

func (w observedEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	tracer := w.tracer
	if !trace.SpanContextFromContext(ctx).IsValid() {
		tracer = orNoTracer(nil)
	}
	start := time.Now()
	ctx, span := tracer.Start(ctx, "embeddings "+w.Space(), trace.WithAttributes(attribute.String("gen_ai.operation.name", "embeddings"),
		attribute.String("gen_ai.request.model", w.Space()), attribute.Int("ibid.texts", len(texts))))
	defer span.End()
	rows, err := w.Embedder.Embed(ctx, texts)
	w.m.embeds.Observe(time.Since(start).Seconds())
	w.m.embedded.Add(float64(len(rows)))
	if err != nil {
		w.m.embedFailed.Inc()
		markFailed(span, failureKind(err))
	}
	return rows, err
}

func markFailed(span trace.Span, kind string) {
	span.SetAttributes(attribute.String("error.type", kind))
	span.SetStatus(outcome.Error, kind)
}

// Spans never contain words of a question, an answer or a document.

// traceRequests makes a span of each request to a known route that is not public,
// in the trace that the client's header traceparent names.
func traceRequests(tracer trace.Tracer, routes accessTable) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if a, ok := routes.ofRequest(c); !ok || a == public {
				return next(c)
			}
			r := c.Request()
			ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
			ctx, span := tracer.Start(ctx, r.Method+" "+c.Path(), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
				attribute.String("http.request.method", r.Method), attribute.String("http.route", c.Path()),
				attribute.String("ibid.request_id", requestIDFrom(ctx))))
			defer span.End()
			c.SetRequest(r.WithContext(ctx))
			err := next(c)
			status := c.Response().Status
			if err != nil {
				p := problemFor(err)
				span.SetAttributes(attribute.String("error.type", p.Code))
				if !c.Response().Committed {
					status = p.Status
				}
				if p.Status >= http.StatusInternalServerError {
					span.SetStatus(outcome.Error, p.Code)
				}
			}
			span.SetAttributes(attribute.Int("http.response.status_code", status))
			return err
		}
	}
}

// span makes a span of a stage of an answer that has ended.
func (m *answerMeter) span(name string, from time.Time, attributes ...attribute.KeyValue) {
	_, span := m.tracer.Start(m.ctx, name, trace.WithTimestamp(from), trace.WithAttributes(attributes...))
	span.End()
}

func orNoTracer(t trace.Tracer) trace.Tracer {
	if t == nil {
		return noop.NewTracerProvider().Tracer("")
	}
	return t
}

// PassTrace adds the trace of a request's context to its headers.
func PassTrace(r *http.Request) {
	propagation.TraceContext{}.Inject(r.Context(), propagation.HeaderCarrier(r.Header))
}
