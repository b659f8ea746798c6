package web

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	outcome "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
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

// orNoTracer returns a tracer that makes no spans for nil.
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
