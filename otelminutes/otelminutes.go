// Package otelminutes records OpenTelemetry traces and metrics of a [minutes.Client]:
//
//	client, err := minutes.NewFromEnv(otelminutes.New())
//
// It follows version 1.43.0 of the semantic conventions for HTTP clients: each attempt at a request,
// whether an API call's or an upload's, is a client span, and there is no span around a whole call. Start
// one yourself, and pass its context to the call: the spans of the attempts become its children.
//
// A span is named after the method and the operation, such as "POST meetings.create", and never contains a
// query, so the credential of a presigned URL stays secret. Spans contain ids of meetings, but the
// attributes of metrics never do. docs/observability.md lists both, and says how to send the trace's id to
// the service.
package otelminutes

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"strconv"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/meeting-minutes/minutes-go"
)

const (
	scope   = "github.com/meeting-minutes/minutes-go/otelminutes"
	version = "0.1.0" // of the scope; the same as that of package minutes
)

// Option changes a setting of [New] or [Watch].
type Option struct{ apply func(*config) }

type config struct {
	tracers trace.TracerProvider
	meters  metric.MeterProvider
}

// WithTracerProvider records spans with p instead of the global TracerProvider, which nil selects.
func WithTracerProvider(p trace.TracerProvider) Option {
	return Option{func(c *config) { c.tracers = cmp.Or(p, otel.GetTracerProvider()) }}
}

// WithMeterProvider makes metrics with p instead of the global MeterProvider, which nil selects.
func WithMeterProvider(p metric.MeterProvider) Option {
	return Option{func(c *config) { c.meters = cmp.Or(p, otel.GetMeterProvider()) }}
}

func configOf(opts []Option) config {
	c := config{tracers: otel.GetTracerProvider(), meters: otel.GetMeterProvider()}
	for _, opt := range opts {
		if opt.apply != nil { // the zero Option changes nothing
			opt.apply(&c)
		}
	}
	return c
}

// New returns an option for [minutes.New] that records spans and metrics of each attempt at a request. It
// uses the global providers unless opts name others. Poller requests make no spans, because
// they belong to no call, but the metrics count them.
func New(opts ...Option) minutes.Option {
	c := configOf(opts)
	tracer := c.tracers.Tracer(scope,
		trace.WithInstrumentationVersion(version), trace.WithSchemaURL(semconv.SchemaURL))
	metrics := newMetrics(c.meters.Meter(scope,
		metric.WithInstrumentationVersion(version), metric.WithSchemaURL(semconv.SchemaURL)))
	return minutes.WithObserver(func(ctx context.Context, a minutes.Attempt) {
		ended := time.Now()
		if !a.Shared {
			ctx = addSpan(ctx, tracer, a, ended)
		}
		metrics.add(ctx, a, ended)
	})
}

// The attributes that the conventions do not define. Their prefix is not "minutes", because promtool
// takes that word in the name of a metric for a unit.
const (
	operationKey = attribute.Key("meetings.operation")
	codeKey      = attribute.Key("meetings.code")       // of an error response
	sharedKey    = attribute.Key("meetings.shared")     // the request is one that waits share
	meetingIDKey = attribute.Key("meetings.meeting_id") // only of spans
	requestIDKey = attribute.Key("meetings.request_id") // only of spans
	pauseKey     = attribute.Key("meetings.pause")      // only of spans: for how many seconds a 429 pauses all requests
)

// httpAttributes returns the attributes that the conventions ask for in spans and metrics alike, and the
// operation.
func httpAttributes(a minutes.Attempt) []attribute.KeyValue {
	host, port := server(a.URL)
	attributes := []attribute.KeyValue{
		semconv.HTTPRequestMethodKey.String(a.Method),
		semconv.ServerAddress(host),
		semconv.ServerPort(port),
		operationKey.String(string(a.Operation)),
	}
	if a.StatusCode != 0 {
		attributes = append(attributes, semconv.HTTPResponseStatusCode(a.StatusCode))
	}
	if failed(a) {
		attributes = append(attributes, errorType(a))
	}
	return attributes
}

// server returns the host and the port of a URL.
func server(rawURL string) (host string, port int) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", 0
	}
	port, err = strconv.Atoi(u.Port())
	if err == nil {
		return u.Hostname(), port
	}
	if u.Scheme == "http" {
		return u.Hostname(), 80
	}
	return u.Hostname(), 443
}

// failed reports whether the Client takes the attempt for a failure. It follows no redirect, so a 3xx is one.
func failed(a minutes.Attempt) bool { return a.Err != nil || a.StatusCode/100 != 2 }

// errorType returns why an attempt failed, as one of few values.
func errorType(a minutes.Attempt) attribute.KeyValue {
	switch {
	case a.Err == nil:
		return semconv.ErrorTypeKey.String(strconv.Itoa(a.StatusCode))
	case errors.Is(a.Err, context.Canceled):
		return semconv.ErrorTypeKey.String("canceled")
	case errors.Is(a.Err, context.DeadlineExceeded), errors.Is(a.Err, os.ErrDeadlineExceeded):
		return semconv.ErrorTypeKey.String("timeout")
	}
	return semconv.ErrorType(a.Err)
}
