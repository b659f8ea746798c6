package web

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// requestID gives each request an id for the log and the client. An id from the client is
// ignored.
func requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := rand.Text()
		c.Response().Header().Set(echo.HeaderXRequestID, id)
		r := c.Request()
		c.SetRequest(r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id)))
		return next(c)
	}
}

// dropSlowSenders ends requests whose clients stop sending the body.
func dropSlowSenders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if r := c.Request(); r.ContentLength != 0 {
			r.Body = &boundedBody{ReadCloser: r.Body, control: http.NewResponseController(c.Response().Writer)}
		}
		return next(c)
	}
}

// A boundedBody allows [bodyTimeout] for each partBytes of a request's body.
type boundedBody struct {
	io.ReadCloser
	control *http.ResponseController
	due     int // bytes until the next deadline is set
}

func (p *boundedBody) Read(b []byte) (int, error) {
	if p.due <= 0 {
		if err := ignoreUnsupported(p.control.SetReadDeadline(time.Now().Add(bodyTimeout))); err != nil {
			return 0, err
		}
		p.due = partBytes
	}
	n, err := p.ReadCloser.Read(b)
	p.due -= n
	if errors.Is(err, io.EOF) {
		// The deadline is only for receiving: processing the body may take longer.
		if err := ignoreUnsupported(p.control.SetReadDeadline(time.Time{})); err != nil {
			return n, err
		}
	}
	return n, err
}

// ignoreUnsupported ignores the error of a connection without deadlines, as in tests.
func ignoreUnsupported(err error) error {
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// logRequests logs a line for each request, with the route's pattern instead of the path,
// since paths and queries contain names of documents.
func logRequests(logger *slog.Logger, metrics *Metrics) echo.MiddlewareFunc {
	return middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
		HandleError: true, LogError: true, LogStatus: true, LogMethod: true, LogRoutePath: true,
		LogLatency: true, LogResponseSize: true, LogRemoteIP: true,
		LogValuesFunc: func(c echo.Context, v middleware.RequestLoggerValues) error {
			level := slog.LevelInfo
			if v.RoutePath == staticRoute && v.Error == nil { // each page requests about twenty files
				level = slog.LevelDebug
			}
			attrs := []slog.Attr{
				slog.String("method", v.Method), slog.String("route", v.RoutePath),
				slog.Int("status", v.Status), slog.Int64("took_ms", v.Latency.Milliseconds()),
				slog.Int64("bytes", v.ResponseSize), slog.String("from", v.RemoteIP),
			}
			if caller := holderFrom(c.Request().Context()); caller != nil {
				attrs = append(attrs, slog.String("key", caller.key.ID))
			}
			if v.Error != nil {
				p := problemFor(v.Error)
				metrics.problems.WithLabelValues(p.Code).Inc()
				attrs = append(attrs, slog.String("code", p.Code))
				if p.Status >= 500 {
					level = slog.LevelError
				}
				if p.Status >= 500 || p.Code == "reader_gone" {
					attrs = append(attrs, slog.String("error", v.Error.Error()))
				}
			}
			logger.LogAttrs(c.Request().Context(), level, "request", attrs...)
			return nil
		},
	})
}

// recoverPanics turns a panic into a 500 and a line in the log.
func recoverPanics(logger *slog.Logger) echo.MiddlewareFunc {
	return middleware.RecoverWithConfig(middleware.RecoverConfig{
		DisableErrorHandler: true, // the request logger passes the error on
		LogErrorFunc: func(c echo.Context, err error, stack []byte) error {
			logger.LogAttrs(c.Request().Context(), slog.LevelError, "panic",
				slog.String("error", err.Error()), slog.String("stack", string(stack)))
			return err
		},
	})
}

type requestIDKey struct{}

func requestIDFrom(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// A requestLog adds the id of the request to every line logged for it.
type requestLog struct{ slog.Handler }

func (h requestLog) Handle(ctx context.Context, r slog.Record) error {
	if id := requestIDFrom(ctx); id != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("id", id))
	}
	return h.Handler.Handle(ctx, r)
}

func (h requestLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestLog{h.Handler.WithAttrs(attrs)}
}

func (h requestLog) WithGroup(name string) slog.Handler { return requestLog{h.Handler.WithGroup(name)} }
