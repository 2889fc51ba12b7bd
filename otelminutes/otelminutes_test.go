package otelminutes_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
	"github.com/meeting-minutes/minutes-go/otelminutes"
)

// telemetry is what a program would export.
type telemetry struct {
	spans  *tracetest.InMemoryExporter
	traces *sdk.TracerProvider
	reader *metric.ManualReader
	meters *metric.MeterProvider
}

func newTelemetry() telemetry {
	spans := tracetest.NewInMemoryExporter()
	reader := metric.NewManualReader()
	return telemetry{
		spans:  spans,
		traces: sdk.NewTracerProvider(sdk.WithSyncer(spans)),
		reader: reader,
		meters: metric.NewMeterProvider(metric.WithReader(reader)),
	}
}

// option returns the Option under test.
func (e telemetry) option() minutes.Option {
	return otelminutes.New(otelminutes.WithTracerProvider(e.traces), otelminutes.WithMeterProvider(e.meters))
}

// metrics returns the metrics so far, by name.
func (e telemetry) metrics(t *testing.T) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, e.reader.Collect(t.Context(), &all))
	found := map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			found[m.Name] = m
		}
	}
	return found
}

// process makes the minutes of one meeting within a span, and returns the span's context.
func (e telemetry) process(t *testing.T, client *minutes.Client) trace.SpanContext {
	t.Helper()
	ctx, span := e.traces.Tracer("test").Start(t.Context(), "weekly")
	defer span.End()
	params := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20", ExternalID: "weekly-2026-11-20"}
	source := minutes.FromReader(strings.NewReader("Good morning."), "audio/mpeg")
	_, err := client.Meetings.Process(ctx, params, source, nil)
	require.NoError(t, err)
	return span.SpanContext()
}

// attempts returns the spans without that of process.
func (e telemetry) attempts() tracetest.SpanStubs {
	spans := e.spans.GetSpans()
	return spans[:len(spans)-1]
}

// troubled returns a fake that rejects a create with 503 and the request for an upload URL with 429, and in
// which the first upload stalls.
func troubled(t *testing.T) *minutestest.Server {
	t.Helper()
	srv := minutestest.NewServer(t)
	unavailable := minutestest.Respond(503, "text/plain", "").Delayed(2 * time.Second)
	srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate}, unavailable)
	srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsUploadURL}, minutestest.RateLimit("7"))
	srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.Delay(time.Hour))
	return srv
}

// outcome holds those attributes of a span that differ from attempt to attempt.
type outcome map[attribute.Key]any

const (
	status = attribute.Key("http.response.status_code")
	failed = attribute.Key("error.type")
	code   = attribute.Key("meetings.code")
	resend = attribute.Key("http.request.resend_count")
	size   = attribute.Key("http.request.body.size")
)

func outcomeOf(s tracetest.SpanStub) outcome {
	kept := outcome{}
	for _, a := range s.Attributes {
		switch a.Key {
		case failed, code:
			kept[a.Key] = a.Value.AsString()
		case status, resend, size:
			kept[a.Key] = int(a.Value.AsInt64())
		}
	}
	return kept
}

// Each attempt, of an API call or of an upload, is a client span, in order and without overlap, below the
// caller's span. The requests that waits share have none.
func TestNew_TracesEachAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := troubled(t)
		e := newTelemetry()
		parent := e.process(t, srv.Client(e.option()))

		type span struct {
			name    string
			outcome outcome
			code    codes.Code
		}
		var got []span
		var last time.Time
		for _, s := range e.attempts() {
			got = append(got, span{s.Name, outcomeOf(s), s.Status.Code})
			assert.Equal(t, trace.SpanKindClient, s.SpanKind)
			assert.Equal(t, parent.SpanID(), s.Parent.SpanID())
			assert.False(t, s.StartTime.Before(last), s.Name)
			last = s.EndTime
		}
		require.Equal(t, []span{
			{"POST meetings.create", outcome{status: 503, failed: "503"}, codes.Error},
			{"POST meetings.create", outcome{status: 201, resend: 1}, codes.Unset},
			{"POST meetings.upload_url", outcome{status: 429, failed: "429", code: "RATE_LIMITED"}, codes.Error},
			{"POST meetings.upload_url", outcome{status: 200, resend: 1}, codes.Unset},
			{"PUT storage.put", outcome{failed: "timeout", size: 13}, codes.Error},
			{"POST meetings.upload_url", outcome{status: 200}, codes.Unset},
			{"PUT storage.put", outcome{status: 200, size: 13, resend: 1}, codes.Unset},
			{"GET meetings.minutes", outcome{status: 200}, codes.Unset},
		}, got)

		rejected := e.attempts()[0]
		require.Equal(t, 2*time.Second, rejected.EndTime.Sub(rejected.StartTime))
		require.Empty(t, rejected.Status.Description)
		upload := e.attempts()[4]
		require.Contains(t, upload.Status.Description, "no response for 5m0s")
		require.Greater(t, upload.EndTime.Sub(upload.StartTime), 5*time.Minute)
	})
}

// A span has the attributes that the conventions require, and names the meeting and the operation.
func TestNew_SetsAttributesOfConventions(t *testing.T) {
	t.Parallel()
	for base, server := range map[string]struct {
		address string
		port    int
	}{
		"https://minutes.example":              {"minutes.example", 443},
		"https://minutes.example:8443/gateway": {"minutes.example", 8443},
		"http://localhost":                     {"localhost", 80},
		"http://[::1]:8080":                    {"::1", 8080},
	} {
		t.Run(base, func(t *testing.T) {
			t.Parallel()
			e := newTelemetry()
			hc := &http.Client{Transport: respond(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 404, Body: io.NopCloser(strings.NewReader(
					`{"error":{"code":"NOT_FOUND","message":"no such meeting","request_id":"req_1"}}`))}, nil
			})}
			client, err := minutes.New(base, "key_0123456789", minutes.WithHTTPClient(hc), e.option())
			require.NoError(t, err)
			_, err = client.Meetings.Get(t.Context(), "mtg_1")
			require.ErrorIs(t, err, minutes.ErrNotFound)

			spans := e.spans.GetSpans()
			require.Len(t, spans, 1)
			require.Equal(t, "GET meetings.get", spans[0].Name)
			require.ElementsMatch(t, []attribute.KeyValue{
				attribute.String("server.address", server.address),
				attribute.Int("server.port", server.port),
				attribute.String("http.request.method", "GET"),
				attribute.String("url.full", base+"/v1/meetings/mtg_1"),
				attribute.Int("http.response.status_code", 404),
				attribute.String("error.type", "404"),
				attribute.String("meetings.operation", "meetings.get"),
				attribute.String("meetings.meeting_id", "mtg_1"),
				attribute.String("meetings.code", "NOT_FOUND"),
				attribute.String("meetings.request_id", "req_1"),
			}, spans[0].Attributes)
			require.Equal(t, codes.Error, spans[0].Status.Code)
			require.Equal(t, semconv.SchemaURL, spans[0].InstrumentationScope.SchemaURL)
		})
	}
}

// Spans and metrics name the version of the package, which the User-Agent has, too.
func TestNew_NamesItsVersion(t *testing.T) {
	t.Parallel()
	e := newTelemetry()
	userAgent := ""
	service := respond(func(r *http.Request) (*http.Response, error) {
		userAgent = r.UserAgent()
		return &http.Response{StatusCode: 404, Body: http.NoBody}, nil
	})
	client, err := minutes.New("https://minutes.example", "key_0123456789",
		minutes.WithHTTPClient(&http.Client{Transport: service}), e.option(), otelminutes.New(otelminutes.Option{}))
	require.NoError(t, err)
	_, err = client.Meetings.Get(t.Context(), "mtg_1")
	require.Error(t, err)
	require.Equal(t, userAgent, "minutes-go/"+e.spans.GetSpans()[0].InstrumentationScope.Version)
	var all metricdata.ResourceMetrics
	require.NoError(t, e.reader.Collect(t.Context(), &all))
	require.Equal(t, userAgent, "minutes-go/"+all.ScopeMetrics[0].Scope.Version)
}

// respond is a transport.
type respond func(*http.Request) (*http.Response, error)

func (f respond) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The type of an error is one of few values, whatever its text says.
func TestNew_ClassifiesErrors(t *testing.T) {
	t.Parallel()
	for want, failure := range map[string]error{
		"canceled":                          context.Canceled,
		"timeout":                           fmt.Errorf("reading mtg_1: %w", os.ErrDeadlineExceeded),
		"*net.OpError":                      &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("refused by mtg_1")},
		"*errors.errorString":               io.ErrUnexpectedEOF,
		"syscall.Errno":                     syscall.ECONNRESET,
		"*tls.CertificateVerificationError": &tls.CertificateVerificationError{Err: errors.New("untrusted")},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			e := newTelemetry()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			hc := &http.Client{Transport: respond(func(*http.Request) (*http.Response, error) {
				if errors.Is(failure, context.Canceled) {
					cancel()
				}
				return nil, failure
			})}
			client, err := minutes.New("https://minutes.example", "key_0123456789",
				minutes.WithHTTPClient(hc), minutes.WithMaxRetries(0), e.option())
			require.NoError(t, err)
			_, err = client.Usage.Get(ctx)
			require.Error(t, err)
			spans := e.spans.GetSpans()
			require.Len(t, spans, 1)
			require.Contains(t, spans[0].Attributes, attribute.String("error.type", want))
			require.Equal(t, codes.Error, spans[0].Status.Code)
			require.Equal(t, failure.Error(), spans[0].Status.Description)
		})
	}
}

// sums returns the points of a counter by their attributes.
func sums(t *testing.T, m metricdata.Metrics) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	sum, ok := m.Data.(metricdata.Sum[int64])
	require.True(t, ok, m.Name)
	require.True(t, sum.IsMonotonic)
	for _, p := range sum.DataPoints {
		found[p.Attributes.Encoded(attribute.DefaultEncoder())] = p.Value
	}
	return found
}

// The counters account for every attempt, those of the poller included.
func TestNew_CountsAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := troubled(t)
		e := newTelemetry()
		e.process(t, srv.Client(e.option()))
		got := e.metrics(t)
		polls := int64(0)
		for _, r := range srv.Requests() {
			if r.Operation == minutes.OpMeetingsGet {
				polls++
			}
		}
		require.Positive(t, polls)
		require.Equal(t, map[string]int64{
			"error.type=503,meetings.operation=meetings.create,meetings.shared=false": 1,
			"meetings.operation=meetings.create,meetings.shared=false":                1,
			"error.type=429,meetings.code=RATE_LIMITED," +
				"meetings.operation=meetings.upload_url,meetings.shared=false": 1,
			"meetings.operation=meetings.upload_url,meetings.shared=false":            2,
			"error.type=timeout,meetings.operation=storage.put,meetings.shared=false": 1,
			"meetings.operation=storage.put,meetings.shared=false":                    1,
			"meetings.operation=meetings.get,meetings.shared=true":                    polls,
			"meetings.operation=meetings.minutes,meetings.shared=false":               1,
		}, sums(t, got["meetings.client.attempts"]))
		require.Equal(t, map[string]int64{
			"meetings.operation=meetings.create":     1,
			"meetings.operation=meetings.upload_url": 1,
			"meetings.operation=storage.put":         1,
		}, sums(t, got["meetings.client.retries"]))
		require.Equal(t, map[string]int64{"": 1}, sums(t, got["meetings.client.upload.stalls"]))
		require.Len(t, got, 6)
	})
}

// Others choose the codes, so metrics have no more than a hundred of them.
func TestNew_BoundsCodes(t *testing.T) {
	t.Parallel()
	e := newTelemetry()
	n := 0
	answer := answers(func() string {
		n++
		return fmt.Sprintf(`{"error":{"code":"CODE_%d"}}`, n)
	})
	c, err := minutes.New("https://minutes.example", "key_0123456789abcdef", e.option(),
		minutes.WithRateLimit(0, 0), minutes.WithHTTPClient(&http.Client{Transport: answer}))
	require.NoError(t, err)
	for range 3000 {
		_, err = c.Usage.Get(t.Context())
		require.Error(t, err)
	}
	counts := sums(t, e.metrics(t)["meetings.client.attempts"])
	require.Len(t, counts, 101)
	require.EqualValues(t, 2900,
		counts["error.type=400,meetings.code=_OTHER,meetings.operation=usage.get,meetings.shared=false"])
}

// answers is a service that answers every request with a 400.
type answers func() string

func (a answers) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 400, Body: io.NopCloser(strings.NewReader(a())), Request: req}, nil
}

// The histograms of the conventions have their attributes and buckets.
func TestNew_MeasuresDurationsAndSizes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := troubled(t)
		e := newTelemetry()
		e.process(t, srv.Client(e.option()))
		got := e.metrics(t)

		durations, ok := got["http.client.request.duration"].Data.(metricdata.Histogram[float64])
		require.True(t, ok)
		rejected := attribute.NewSet(
			attribute.String("http.request.method", "POST"), attribute.String("server.address", "api.minutes.test"),
			attribute.Int("server.port", 443), attribute.Int("http.response.status_code", 503),
			attribute.String("error.type", "503"), attribute.String("meetings.operation", "meetings.create"),
		)
		attempts := 0
		for _, p := range durations.DataPoints {
			attempts += int(p.Count)
			if p.Attributes.Equals(&rejected) {
				require.InDelta(t, 2, p.Sum, 0)
				bounds := []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
				require.Equal(t, bounds, p.Bounds)
				rejected = attribute.Set{}
			}
		}
		require.Zero(t, rejected.Len(), "the rejected create is there")
		require.Len(t, srv.Requests(), attempts)

		sizes, ok := got["http.client.request.body.size"].Data.(metricdata.Histogram[int64])
		require.True(t, ok)
		require.Len(t, sizes.DataPoints, 2, "uploads: one that stalled, and one that did not")
		for _, p := range sizes.DataPoints {
			require.Equal(t, int64(13), p.Sum)
			operation, _ := p.Attributes.Value("meetings.operation")
			require.Equal(t, "storage.put", operation.AsString())
		}
	})
}

// A 429 that comes during a pause makes it longer, so only the seconds that it adds count.
func TestNew_AddsUpPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Inject(minutestest.Match{Operation: minutes.OpUsageGet},
			minutestest.RateLimit("10").Delayed(time.Second), minutestest.RateLimit("10").Delayed(3*time.Second))
		e := newTelemetry()
		client := srv.Client(e.option(), minutes.WithMaxRetries(0))
		began := time.Now()
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() {
				_, err := client.Usage.Get(t.Context())
				assert.ErrorIs(t, err, minutes.ErrRateLimited)
			})
		}
		calls.Wait()
		_, err := client.Usage.Get(t.Context())
		require.NoError(t, err)
		pauses, ok := e.metrics(t)["meetings.client.pause.duration"].Data.(metricdata.Histogram[float64])
		require.True(t, ok)
		require.Len(t, pauses.DataPoints, 1)
		paused := time.Since(began) - time.Second // until the first 429
		require.InDelta(t, paused.Seconds(), pauses.DataPoints[0].Sum, 1e-6)
		require.Equal(t, uint64(2), pauses.DataPoints[0].Count)
		require.Zero(t, pauses.DataPoints[0].Attributes.Len())
	})
}

// Neither spans nor metrics contain the API key or the query of a presigned URL, even if a transport and
// the service quote them, and no metric has an id.
func TestNew_ExportsNoSecret(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate}, minutestest.Respond(500, "application/json",
			`{"error":{"code":"`+srv.Key()+`","message":"`+srv.Key()+`","request_id":"`+srv.Key()+`"}}`))
		plain := srv.NewHTTPClient().Transport
		var queries []string // of presigned URLs
		quoting := respond(func(r *http.Request) (*http.Response, error) {
			a, _ := minutes.AttemptFromContext(r.Context())
			switch {
			case a.Operation == minutes.OpUpload:
				queries = append(queries, r.URL.RawQuery)
				if len(queries) == 1 {
					return nil, fmt.Errorf("PUT %s: broken pipe", r.URL)
				}
			case a.Operation == minutes.OpMeetingsUploadURL && a.Number == 1:
				return nil, fmt.Errorf("%s: broken pipe", r.Header.Get("Authorization"))
			}
			return plain.RoundTrip(r)
		})
		e := newTelemetry()
		e.process(t, srv.Client(minutes.WithHTTPClient(&http.Client{Transport: quoting}), e.option()))

		spans, err := json.Marshal(e.spans.GetSpans())
		require.NoError(t, err)
		require.Equal(t, 2, strings.Count(string(spans), "broken pipe"), "the spans show both errors")
		metrics := fmt.Sprintf("%+v", e.metrics(t))
		require.Contains(t, metrics, "storage.put", "the metrics show their attributes")
		meeting := srv.Meetings()[0]
		require.Contains(t, string(spans), meeting.ID, "a span may have an id")
		for _, secret := range append(queries, srv.Key(), "X-Amz-") {
			require.NotContains(t, string(spans), secret)
			require.NotContains(t, metrics, secret)
		}
		for _, id := range []string{meeting.ID, "weekly-2026-11-20", "req_", "mtg_"} {
			require.NotContains(t, metrics, id)
		}
	})
}

// Without options, or with nil, the global providers are used.
func TestNew_UsesGlobalProviders(t *testing.T) { // not parallel: it sets them
	e := newTelemetry()
	otel.SetTracerProvider(e.traces)
	otel.SetMeterProvider(e.meters)
	srv := minutestest.NewServer(t)
	for _, option := range []minutes.Option{
		otelminutes.New(),
		otelminutes.New(otelminutes.WithTracerProvider(nil), otelminutes.WithMeterProvider(nil)),
	} {
		_, err := srv.Client(option).Usage.Get(t.Context())
		require.NoError(t, err)
	}
	require.Len(t, e.spans.GetSpans(), 2)
	require.Contains(t, e.metrics(t), "http.client.request.duration")
}

// Watch shows what the Client is doing when somebody reads the gauges, until it is stopped.
func TestWatch_ObservesStats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		exported := newTelemetry()
		client := srv.Client()
		stop := otelminutes.Watch(client, otelminutes.WithMeterProvider(exported.meters))
		value := func(name string) any {
			switch data := exported.metrics(t)[name].Data.(type) {
			case metricdata.Gauge[int64]:
				return data.DataPoints[0].Value
			case metricdata.Gauge[float64]:
				return data.DataPoints[0].Value
			}
			return nil
		}
		assert.EqualValues(t, 0, value("meetings.client.waiting"))
		assert.Nil(t, value("meetings.client.waiting.age"))
		assert.Nil(t, value("meetings.client.poll.age"))

		params := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20"}
		m, _, err := client.Meetings.Create(t.Context(), params)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var waits sync.WaitGroup
		waits.Go(func() { _, _ = client.Meetings.Wait(ctx, m.ID, nil) })
		time.Sleep(time.Hour + 10*time.Second)
		assert.EqualValues(t, 1, value("meetings.client.waiting"))
		assert.EqualValues(t, 0, value("meetings.client.uploading"))
		assert.InDelta(t, 3610, value("meetings.client.waiting.age"), 1)
		assert.Less(t, value("meetings.client.poll.age"), 40.0)
		cancel()
		waits.Wait()
		stop()
		assert.Nil(t, value("meetings.client.waiting"))
	})
}
