package main

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/meeting-minutes/minutes-go"
)

// watch returns the options by which a Client is traced and measured.
//
// API calls go through otelhttp, which records whole URLs. Uploads must not:
// the query of a presigned URL is a credential, so anyone who reads the traces
// could upload. Uploads go through plain, and their spans are made from the
// observer's attempts, which contain no query.
func watch(plain http.RoundTripper, spans trace.TracerProvider, registry prometheus.Registerer) []minutes.Option {
	w := &watcher{tracer: spans.Tracer("minutes"), metrics: newMetrics(registry)}
	traced := otelhttp.NewTransport(named{plain},
		otelhttp.WithTracerProvider(spans),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string {
			a, _ := minutes.AttemptFromContext(r.Context())
			return string(a.Operation) // not the path, which has an id in it
		}),
		// The poller's requests belong to no caller's trace; the metrics count them.
		otelhttp.WithFilter(func(r *http.Request) bool {
			a, _ := minutes.AttemptFromContext(r.Context())
			return !a.Poll
		}),
	)
	return []minutes.Option{
		minutes.WithHTTPClient(&http.Client{Transport: traced}),
		minutes.WithStorageHTTPClient(&http.Client{Transport: plain}),
		minutes.WithObserver(w.observe),
	}
}

// named adds to the span of a request what the request is.
type named struct{ next http.RoundTripper }

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	if a, ok := minutes.AttemptFromContext(r.Context()); ok {
		trace.SpanFromContext(r.Context()).SetAttributes(attributes(a)...)
	}
	return n.next.RoundTrip(r)
}

func attributes(a minutes.AttemptInfo) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("minutes.operation", string(a.Operation)),
		attribute.String("minutes.meeting_id", a.MeetingID),
		attribute.Int("minutes.attempt", a.Number),
	}
}

// watcher makes metrics and spans of attempts.
type watcher struct {
	tracer  trace.Tracer
	metrics metrics
}

func (w *watcher) observe(ctx context.Context, a minutes.Attempt) {
	m, op := w.metrics, string(a.Operation)
	m.attempts.WithLabelValues(op, strconv.Itoa(a.StatusCode), string(a.Code)).Inc()
	m.duration.WithLabelValues(op).Observe(a.Duration.Seconds())
	m.sent.Add(float64(a.Sent))
	if a.Number > 1 {
		m.retries.WithLabelValues(op).Inc()
	}
	if a.Stalled {
		m.stalls.Inc()
	}
	if a.Poll {
		m.polls.WithLabelValues(op).Inc()
	}
	if a.Pause > 0 {
		m.pauses.Inc()
		m.pauseSeconds.Add(a.Pause.Seconds())
		trace.SpanFromContext(ctx).AddEvent("rate-limit pause", trace.WithAttributes(attribute.String("for", a.Pause.String())))
	}
	if a.Operation == minutes.OpUpload {
		w.uploaded(ctx, a)
	}
}

// uploaded makes the span of an attempt of an upload, now that it has ended.
func (w *watcher) uploaded(ctx context.Context, a minutes.Attempt) {
	end := time.Now()
	_, span := w.tracer.Start(ctx, string(a.Operation), trace.WithTimestamp(end.Add(-a.Duration)),
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes(a.AttemptInfo)...),
		trace.WithAttributes(attribute.Int("http.response.status_code", a.StatusCode), attribute.Int64("minutes.sent", a.Sent)))
	switch {
	case a.Err != nil:
		span.SetStatus(codes.Error, a.Err.Error())
	case a.StatusCode/100 != 2:
		span.SetStatus(codes.Error, string(a.Code))
	}
	span.End(trace.WithTimestamp(end))
}

// metrics answer the questions of the person on call. No label is an id.
type metrics struct {
	attempts, retries, polls           *prometheus.CounterVec
	duration                           *prometheus.HistogramVec
	pauses, pauseSeconds, stalls, sent prometheus.Counter
}

func newMetrics(r prometheus.Registerer) metrics {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		r.MustRegister(c)
		return c
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	m := metrics{
		attempts: counters("meetings_attempts_total", "Attempts of requests that ended; status 0: without a response.", "operation", "status", "code"),
		retries:  counters("meetings_retries_total", "Attempts after the first one of a request.", "operation"),
		polls:    counters("meetings_poller_requests_total", "Attempts of requests that waits share: GETs of meetings and list pages.", "operation"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "meetings_attempt_seconds", Help: "How long attempts took.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 120, 600},
		}, []string{"operation"}),
		pauses:       counter("meetings_rate_limit_pauses_total", "Pauses of all requests after a 429."),
		pauseSeconds: counter("meetings_rate_limit_pause_seconds_total", "Total length of these pauses."),
		stalls:       counter("meetings_upload_stalls_total", "Attempts of uploads that were ended, because no byte was sent or no response came."),
		sent:         counter("meetings_upload_bytes_total", "Bytes of recordings that were sent, including those of retries."),
	}
	r.MustRegister(m.duration)
	return m
}
