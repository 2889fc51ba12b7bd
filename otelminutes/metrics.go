package otelminutes

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.43.0/httpconv"

	"github.com/meeting-minutes/minutes-go"
)

// metrics holds the instruments of a Client.
type metrics struct {
	duration httpconv.ClientRequestDuration
	bodySize httpconv.ClientRequestBodySize
	attempts metric.Int64Counter
	retries  metric.Int64Counter
	stalls   metric.Int64Counter
	pauses   metric.Float64Histogram
	paused   *pause
	codes    *boundedCodes
}

func newMetrics(meter metric.Meter) metrics {
	return metrics{
		duration: handled(httpconv.NewClientRequestDuration(meter)),
		bodySize: handled(httpconv.NewClientRequestBodySize(meter,
			metric.WithExplicitBucketBoundaries(1<<10, 1<<14, 1<<18, 1<<20, 1<<22, 1<<24, 1<<26, 1<<28, 1<<30))),
		attempts: handled(meter.Int64Counter("meetings.client.attempts", metric.WithUnit("{attempt}"),
			metric.WithDescription("Attempts at requests that have ended."))),
		retries: handled(meter.Int64Counter("meetings.client.retries", metric.WithUnit("{attempt}"),
			metric.WithDescription("Attempts at requests, without the first one at each."))),
		stalls: handled(meter.Int64Counter("meetings.client.upload.stalls", metric.WithUnit("{attempt}"),
			metric.WithDescription("Attempts at uploads that exceeded an upload timeout."))),
		pauses: handled(meter.Float64Histogram("meetings.client.pause.duration", metric.WithUnit("s"),
			metric.WithDescription("How much longer each 429 made the pause of all API requests."),
			metric.WithExplicitBucketBoundaries(0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300))),
		paused: new(pause),
		codes:  new(boundedCodes),
	}
}

// handled returns the instrument of a pair, and passes the error to the program's handler. An instrument
// that has an error records nothing.
func handled[T any](instrument T, err error) T {
	if err != nil {
		otel.Handle(err)
	}
	return instrument
}

// add counts an attempt that ended at end.
func (m *metrics) add(ctx context.Context, a minutes.Attempt, ended time.Time) {
	operation := operationKey.String(string(a.Operation))
	common := attribute.NewSet(httpAttributes(a)...)
	m.duration.RecordSet(ctx, a.Duration.Seconds(), common)
	if a.Operation == minutes.OpUpload {
		m.bodySize.RecordSet(ctx, a.Sent, common)
	}
	outcome := []attribute.KeyValue{operation, sharedKey.Bool(a.Shared)}
	if failed(a) {
		outcome = append(outcome, errorType(a))
	}
	if a.Code != "" {
		outcome = append(outcome, codeKey.String(m.codes.label(string(a.Code))))
	}
	m.attempts.Add(ctx, 1, metric.WithAttributes(outcome...))
	if a.Number > 1 {
		m.retries.Add(ctx, 1, metric.WithAttributes(operation))
	}
	if a.Stalled {
		m.stalls.Add(ctx, 1)
	}
	if a.Pause > 0 {
		m.pauses.Record(ctx, m.paused.extend(ended, a.Pause).Seconds())
	}
}

// boundedCodes bounds the values of the attribute meetings.code, because an SDK drops the attributes of all
// further series after 2,000, and others choose the codes.
type boundedCodes struct {
	mu   sync.Mutex
	seen map[string]bool
}

// label returns code, or "_OTHER" if that would be too many.
func (c *boundedCodes) label(code string) string {
	const most = 100 // the service and S3 have fewer
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.seen[code]:
		return code
	case len(c.seen) == most:
		return "_OTHER"
	case c.seen == nil:
		c.seen = make(map[string]bool)
	}
	c.seen[code] = true
	return code
}

// pause is the last rate-limit pause of the Clients that share an option of New, usually one.
type pause struct {
	mu    sync.Mutex
	until time.Time
}

// extend notes that a pause of length d begins at now, and returns by how much that moves the end of the
// pause. So the sum of the results is the time that the Client has paused, although pauses overlap.
func (p *pause) extend(now time.Time, d time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	begin := now
	if p.until.After(now) {
		begin = p.until
	}
	until := now.Add(d)
	if !until.After(begin) {
		return 0
	}
	p.until = until
	return until.Sub(begin)
}
