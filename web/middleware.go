package web

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// requestID names each request in the log and to the client. A client's own id is not taken over.
func requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := rand.Text()
		c.Response().Header().Set(echo.HeaderXRequestID, id)
		r := c.Request()
		c.SetRequest(r.WithContext(context.WithValue(r.Context(), requestIDOf{}, id)))
		return next(c)
	}
}

// freshDeadline lifts the write deadline that an earlier request left on a kept-alive connection.
func freshDeadline(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := setWriteDeadline(c.Response(), time.Time{}); err != nil {
			return fmt.Errorf("lifting the write deadline: %w", err)
		}
		return next(c)
	}
}

// setWriteDeadline bounds the writes that follow. Writers without deadlines
// (a recorder in a test, an HTTP proxy's buffer) are let be.
func setWriteDeadline(w http.ResponseWriter, t time.Time) error {
	err := http.NewResponseController(w).SetWriteDeadline(t)
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// log writes a line a request: the route's pattern and not its path, since
// paths and queries hold names of documents.
func (s *server) log() echo.MiddlewareFunc {
	return middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
		HandleError: true, LogError: true, LogStatus: true, LogMethod: true, LogRoutePath: true,
		LogLatency: true, LogResponseSize: true, LogRemoteIP: true,
		LogValuesFunc: func(c echo.Context, v middleware.RequestLoggerValues) error {
			level := slog.LevelInfo
			if v.RoutePath == staticRoute && v.Error == nil { // a page asks for twenty of them
				level = slog.LevelDebug
			}
			attrs := []slog.Attr{
				slog.String("method", v.Method), slog.String("route", v.RoutePath),
				slog.Int("status", v.Status), slog.Duration("took", v.Latency),
				slog.Int64("bytes", v.ResponseSize), slog.String("from", v.RemoteIP),
			}
			if v.Error != nil {
				p := problemFor(v.Error)
				s.Metrics.problems.WithLabelValues(p.Code).Inc()
				attrs = append(attrs, slog.String("code", p.Code))
				if p.Status >= 500 {
					level = slog.LevelError
				}
				if p.Status >= 500 || p.Code == "reader_gone" {
					attrs = append(attrs, slog.String("error", v.Error.Error()))
				}
			}
			s.Logger.LogAttrs(c.Request().Context(), level, "request", attrs...)
			return nil
		},
	})
}

// recover turns a panic into a 500 and a line in the log.
func (s *server) recover() echo.MiddlewareFunc {
	return middleware.RecoverWithConfig(middleware.RecoverConfig{
		DisableErrorHandler: true, // the request logger hands the error on
		LogErrorFunc: func(c echo.Context, err error, stack []byte) error {
			s.Logger.LogAttrs(c.Request().Context(), slog.LevelError, "panic",
				slog.String("error", err.Error()), slog.String("stack", string(stack)))
			return err
		},
	})
}
