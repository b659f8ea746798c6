package web

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	outcome "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"ibid/answer"
	"ibid/retrieve"
)

// Spans never contain words of a question, an answer or a document.

// traceRequests makes a span of each request to a known route that is not public,
// in the trace that the client's header traceparent names.
func traceRequests(tracer trace.Tracer, routes accessTable) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if a, ok := routes.ofRequest(c); !ok || a == public {
				return next(c)
			}
			return traceRequest(tracer, next, c)
		}
	}
}

func traceRequest(tracer trace.Tracer, next echo.HandlerFunc, c echo.Context) error {
	r := c.Request()
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := tracer.Start(ctx, r.Method+" "+c.Path(), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", r.Method), attribute.String("http.route", c.Path()), attribute.String("ibid.request_id",
			requestIDFrom(ctx))))
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

// span makes a span of a stage of an answer that has ended.
func (m *answerMeter) span(name string, from time.Time, attributes ...attribute.KeyValue) {
	if m.tracer == nil {
		return
	}
	_, span := m.tracer.Start(m.ctx, name, trace.WithTimestamp(from), trace.WithAttributes(attributes...))
	span.End()
}

// TraceModel returns a model whose calls are spans with its name; the model itself
// if it or the tracer is nil.
func TraceModel(tracer trace.Tracer, name string, model answer.Model) answer.Model {
	if tracer == nil || model == nil {
		return model
	}
	return tracedModel{model, tracer, name}
}

type tracedModel struct {
	answer.Model
	tracer trace.Tracer
	name   string
}

func (m tracedModel) Complete(ctx context.Context, p answer.Prompt) iter.Seq2[answer.Piece, error] {
	return func(yield func(answer.Piece, error) bool) {
		ctx, span := m.tracer.Start(ctx, "chat "+m.name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.request.model", m.name), attribute.String("ibid.role",
				roleName(p.Role))))
		defer span.End()
		var used answer.Tokens
		defer func() {
			if used.Reported {
				span.SetAttributes(attribute.Int("gen_ai.usage.input_tokens", used.Prompt), attribute.Int("gen_ai.usage.output_tokens",
					used.Completion))
			}
		}()
		for piece, err := range m.Model.Complete(ctx, p) {
			used = piece.Usage
			if piece.Finish != "" {
				span.SetAttributes(attribute.StringSlice("gen_ai.response.finish_reasons", []string{known(piece.Finish, "stop", "length",
					"content_filter")}))
			}
			if err != nil {
				markFailed(span, failureKind(err))
			}
			if !yield(piece, err) {
				return
			}
		}
	}
}

func markFailed(span trace.Span, kind string) {
	span.SetAttributes(attribute.String("error.type", kind))
	span.SetStatus(outcome.Error, kind)
}

// TraceEmbedder returns an embedder whose calls are spans if they belong to a trace,
// which those of a sync do not; the embedder itself if the tracer is nil.
func TraceEmbedder(tracer trace.Tracer, e retrieve.Embedder) retrieve.Embedder {
	if tracer == nil {
		return e
	}
	return withVocabulary(tracedEmbedder{e, tracer}, e)
}

type tracedEmbedder struct {
	retrieve.Embedder
	tracer trace.Tracer
}

func (e tracedEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return e.Embedder.Embed(ctx, texts)
	}
	ctx, span := e.tracer.Start(ctx, "embeddings "+e.Space(), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "embeddings"), attribute.String("gen_ai.request.model",
			e.Space()), attribute.Int("ibid.texts", len(texts))))
	defer span.End()
	rows, err := e.Embedder.Embed(ctx, texts)
	if err != nil {
		markFailed(span, failureKind(err))
	}
	return rows, err
}

// PassTrace adds the trace of a request's context to its headers.
func PassTrace(r *http.Request) {
	propagation.TraceContext{}.Inject(r.Context(), propagation.HeaderCarrier(r.Header))
}
