package otelminutes

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/meeting-minutes/minutes-go"
)

// Watch makes gauges of client.Stats: how many meetings the Client waits for, how old the oldest of them
// is, how long ago a poll last succeeded, and how many uploads are under way. Call it once for each Client
// that lives as long as the program. If another Client ends earlier, call stop, after which its gauges are
// gone. The gauges of several Clients have no attribute that tells them apart, so give each a MeterProvider
// of its own, or watch only one. It uses the global MeterProvider unless opts name another.
func Watch(client *minutes.Client, opts ...Option) (stop func()) {
	c := configOf(opts)
	meter := c.meters.Meter(scope, metric.WithInstrumentationVersion(version), metric.WithSchemaURL(semconv.SchemaURL))
	waiting := handled(meter.Int64ObservableGauge("meetings.client.waiting", metric.WithUnit("{meeting}"),
		metric.WithDescription("Meetings that calls and loops are waiting for.")))
	oldest := handled(meter.Float64ObservableGauge("meetings.client.waiting.age", metric.WithUnit("s"),
		metric.WithDescription("Time since the creation of the oldest of these.")))
	polled := handled(meter.Float64ObservableGauge("meetings.client.poll.age", metric.WithUnit("s"),
		metric.WithDescription("Time since a poll or a list page last succeeded.")))
	uploading := handled(meter.Int64ObservableGauge("meetings.client.uploading", metric.WithUnit("{upload}"),
		metric.WithDescription("Upload slots in use.")))
	observe := func(_ context.Context, o metric.Observer) error {
		s := client.Stats()
		o.ObserveInt64(waiting, int64(s.Waiting))
		o.ObserveInt64(uploading, int64(s.Uploading))
		if !s.Oldest.IsZero() {
			o.ObserveFloat64(oldest, time.Since(s.Oldest).Seconds())
		}
		if !s.Polled.IsZero() {
			o.ObserveFloat64(polled, time.Since(s.Polled).Seconds())
		}
		return nil
	}
	registration := handled(meter.RegisterCallback(observe, waiting, oldest, polled, uploading))
	return func() {
		err := registration.Unregister()
		if err != nil {
			otel.Handle(err)
		}
	}
}
