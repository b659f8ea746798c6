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

// Traces tell when what happened, and how it ended; no span has a word of a
// question, an answer or a document.

// traced makes a span of each request whose route is known and not public. It
// belongs to the trace that the client's header traceparent names.
func (s *server) traced(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if a, ok := s.accessTo(c); !ok || a == public {
			return next(c)
		}
		r := c.Request()
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := s.Tracer.Start(ctx, r.Method+" "+c.Path(), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			attribute.String("http.request.method", r.Method), attribute.String("http.route", c.Path()), attribute.String("ibid.request_id", requestIDFrom(ctx))))
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

// spanned makes a span of a stage of an answer that has ended.
func (w *watch) spanned(name string, from time.Time, attributes ...attribute.KeyValue) {
	if w.tracer == nil {
		return
	}
	_, span := w.tracer.Start(w.ctx, name, trace.WithTimestamp(from), trace.WithAttributes(attributes...))
	span.End()
}

// TraceModel gives a model of a name whose calls are spans; the model itself for
// nil and where there is no tracer.
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
			attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.request.model", m.name), attribute.String("ibid.role", roleName(p.Role))))
		defer span.End()
		var used answer.Tokens
		defer func() {
			if used.Reported {
				span.SetAttributes(attribute.Int("gen_ai.usage.input_tokens", used.Prompt), attribute.Int("gen_ai.usage.output_tokens", used.Completion))
			}
		}()
		for piece, err := range m.Model.Complete(ctx, p) {
			used = piece.Usage
			if piece.Finish != "" {
				span.SetAttributes(attribute.StringSlice("gen_ai.response.finish_reasons", []string{known(piece.Finish, "stop", "length", "content_filter")}))
			}
			if err != nil {
				failed(span, failureKind(err))
			}
			if !yield(piece, err) {
				return
			}
		}
	}
}

func failed(span trace.Span, kind string) {
	span.SetAttributes(attribute.String("error.type", kind))
	span.SetStatus(outcome.Error, kind)
}

// TraceEmbedder gives an embedder whose calls are spans, where they belong to a
// trace: reading a folder makes none. Without a tracer it is the embedder itself.
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
		attribute.String("gen_ai.operation.name", "embeddings"), attribute.String("gen_ai.request.model", e.Space()), attribute.Int("ibid.texts", len(texts))))
	defer span.End()
	rows, err := e.Embedder.Embed(ctx, texts)
	if err != nil {
		failed(span, failureKind(err))
	}
	return rows, err
}

// PassTrace puts the trace that a request belongs to into its headers.
func PassTrace(r *http.Request) {
	propagation.TraceContext{}.Inject(r.Context(), propagation.HeaderCarrier(r.Header))
}
