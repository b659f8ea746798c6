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

// requestID gives each request an id for the log and the client. The client's own id is ignored.
func requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := rand.Text()
		c.Response().Header().Set(echo.HeaderXRequestID, id)
		r := c.Request()
		c.SetRequest(r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id)))
		return next(c)
	}
}

// freshDeadline removes the write deadline that an earlier request left on the connection.
func freshDeadline(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := setWriteDeadline(c.Response(), time.Time{}); err != nil {
			return fmt.Errorf("lifting the write deadline: %w", err)
		}
		return next(c)
	}
}

// setWriteDeadline bounds the following writes, where the writer supports deadlines.
func setWriteDeadline(w http.ResponseWriter, t time.Time) error {
	err := http.NewResponseController(w).SetWriteDeadline(t)
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// logRequests logs a line for each request: the route's pattern and not its path,
// since paths and queries contain names of documents.
func logRequests(logger *slog.Logger, metrics *Metrics) echo.MiddlewareFunc {
	return middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
		HandleError: true, LogError: true, LogStatus: true, LogMethod: true, LogRoutePath: true,
		LogLatency: true, LogResponseSize: true, LogRemoteIP: true,
		LogValuesFunc: func(c echo.Context, v middleware.RequestLoggerValues) error {
			level := slog.LevelInfo
			if v.RoutePath == staticRoute && v.Error == nil { // a page requests twenty of them
				level = slog.LevelDebug
			}
			attrs := []slog.Attr{
				slog.String("method", v.Method), slog.String("route", v.RoutePath),
				slog.Int("status", v.Status), slog.Duration("took", v.Latency),
				slog.Int64("bytes", v.ResponseSize), slog.String("from", v.RemoteIP),
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
