package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// lastTraces is how long the traces that are left may take to be sent at the end.
const lastTraces = 3 * time.Second

// tracing says whether OpenTelemetry's own variables ask for traces.
func tracing(getenv func(string) string) bool {
	if getenv("OTEL_SDK_DISABLED") == "true" || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != ""
}

// startTraces makes what sends traces over OTLP/HTTP, as the standard variables
// say: nil, and nothing is made, where they name no endpoint. Call end.
func startTraces(ctx context.Context, getenv func(string) string, logger *slog.Logger) (tracer trace.Tracer, end func(), err error) {
	if !tracing(getenv) {
		return nil, func() {}, nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if p := getenv(name); p != "" {
			if p != "http/protobuf" {
				return nil, nil, usageError("%s=%s: traces are sent by http/protobuf only", name, p)
			}
			break
		}
	}
	exporter, err := otlptracehttp.New(ctx) // reads the variables itself
	if err != nil {
		return nil, nil, fmt.Errorf("getting ready to send traces: %w", err)
	}
	_, number, _ := strings.Cut(version(), " ")
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "ibid"), attribute.String("service.version", number)), resource.WithFromEnv())
	if err != nil {
		return nil, nil, fmt.Errorf("reading what traces are to say of this service: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Warn("traces not sent", "error", err) }))
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	return provider.Tracer("ibid"), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTraces)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			logger.Warn("traces not sent", "error", err)
		}
	}, nil
}
