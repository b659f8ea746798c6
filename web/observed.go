package web

import (
	"context"
	"errors"
	"iter"
	"time"

	"go.opentelemetry.io/otel/attribute"
	outcome "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"ibid/answer"
	"ibid/answer/openai"
	"ibid/ingest"
	"ibid/retrieve"
)

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
				finish := known(piece.Finish, "stop", "length", "content_filter") // the server's own word
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
			span.SetAttributes(attribute.Int("gen_ai.usage.input_tokens", used.Prompt), attribute.Int("gen_ai.usage.output_tokens", used.Completion))
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

// recordCall counts a call to a model.
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

// failureKind is the kind of a failed call.
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
