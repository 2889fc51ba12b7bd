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
// observer's events, which contain no query.
func watch(plain http.RoundTripper, spans trace.TracerProvider, registry prometheus.Registerer) []minutes.Option {
	w := &watcher{tracer: spans.Tracer("minutes"), metrics: newMetrics(registry)}
	traced := otelhttp.NewTransport(named{plain},
		otelhttp.WithTracerProvider(spans),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string {
			a, _ := minutes.AttemptFromContext(r.Context())
			return string(a.Operation) // not the path, which has an id in it
		}),
		// What the poller asks belongs to no caller's trace; the metrics count it.
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

func attributes(a minutes.Attempt) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("minutes.operation", string(a.Operation)),
		attribute.String("minutes.meeting_id", a.MeetingID),
		attribute.Int("minutes.attempt", a.Number),
	}
}

// watcher makes metrics and spans of events.
type watcher struct {
	tracer  trace.Tracer
	metrics metrics
}

func (w *watcher) observe(ctx context.Context, e minutes.Event) {
	m := w.metrics
	switch e := e.(type) {
	case minutes.Attempt:
		op := string(e.Operation)
		m.attempts.WithLabelValues(op, strconv.Itoa(e.StatusCode), string(e.Code)).Inc()
		m.duration.WithLabelValues(op).Observe(e.Duration.Seconds())
		if e.Number > 1 {
			m.retries.WithLabelValues(op).Inc()
		}
		if e.Stalled {
			m.stalls.Inc()
		}
		if e.Poll && e.Operation == minutes.OpMeetingsGet && e.StatusCode/100 != 2 && e.StatusCode != http.StatusTooManyRequests {
			m.failedPolls.Inc()
		}
		m.sent.Add(float64(e.Sent))
		if e.Operation == minutes.OpUpload {
			w.uploaded(ctx, e)
		}
	case minutes.RateLimited:
		m.pauses.Inc()
		m.pauseSeconds.Add(e.Pause.Seconds())
		trace.SpanFromContext(ctx).AddEvent("rate-limit pause", trace.WithAttributes(attribute.String("for", e.Pause.String())))
	case minutes.PollCycle:
		m.cycles.Inc()
		m.waits.Set(float64(e.Waits))
		m.polled.WithLabelValues("page").Add(float64(e.Pages))
		m.polled.WithLabelValues("get").Add(float64(e.Gets))
	}
}

// uploaded makes the span of an attempt of an upload, now that it has ended.
func (w *watcher) uploaded(ctx context.Context, e minutes.Attempt) {
	end := time.Now()
	_, span := w.tracer.Start(ctx, string(e.Operation), trace.WithTimestamp(end.Add(-e.Duration)),
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes(e)...),
		trace.WithAttributes(attribute.Int("http.response.status_code", e.StatusCode), attribute.Int64("minutes.sent", e.Sent)))
	switch {
	case e.Err != nil:
		span.SetStatus(codes.Error, e.Err.Error())
	case e.StatusCode/100 != 2:
		span.SetStatus(codes.Error, string(e.Code))
	}
	span.End(trace.WithTimestamp(end))
}

// metrics answer the questions of the person on call. No label is an id.
type metrics struct {
	attempts, retries, polled    *prometheus.CounterVec
	duration                     *prometheus.HistogramVec
	pauses, pauseSeconds, stalls prometheus.Counter
	failedPolls, cycles, sent    prometheus.Counter
	waits                        prometheus.Gauge
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
		polled:   counters("meetings_polled_total", "Requests of the poller in cycles that ended: pages and GETs.", "what"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "meetings_attempt_seconds", Help: "How long attempts took.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 120, 600},
		}, []string{"operation"}),
		pauses:       counter("meetings_rate_limit_pauses_total", "Pauses of all requests after a 429."),
		pauseSeconds: counter("meetings_rate_limit_pause_seconds_total", "Total length of these pauses."),
		stalls:       counter("meetings_upload_stalls_total", "Attempts of uploads that were given up, as nothing moved."),
		failedPolls:  counter("meetings_failed_polls_total", "Polls of single meetings that failed, except by a 429."),
		cycles:       counter("meetings_poll_cycles_total", "Cycles of the poller that ended."),
		sent:         counter("meetings_upload_bytes_total", "Bytes of recordings handed over, repeats included."),
		waits:        prometheus.NewGauge(prometheus.GaugeOpts{Name: "meetings_waits", Help: "Meetings waited for when the last turn ended."}),
	}
	r.MustRegister(m.duration, m.waits)
	return m
}
