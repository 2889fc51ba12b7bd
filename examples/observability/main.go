// Command observability prints the OpenTelemetry spans of a Client's requests, and serves its metrics to
// Prometheus. It runs offline, with the in-memory fake of package minutestest, in which a few things go wrong:
//
//	cd examples/observability && go run . # and with -listen localhost:9464 it serves until you stop it
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
	"github.com/meeting-minutes/minutes-go/otelminutes"
)

func main() {
	listen := flag.String("listen", "", "the address that serves the metrics")
	flag.Parse()
	spans := tracetest.NewInMemoryExporter() // yours is an OTLP exporter, with trace.WithBatcher
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSyncer(spans)))
	reader, err := prometheus.New(prometheus.WithoutScopeInfo())
	if err != nil {
		log.Fatal(err)
	}
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))

	server := minutestest.New()
	server.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate}, minutestest.RateLimit("1"))
	server.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.RefuseUpload(503, "SlowDown"))
	client := server.Client(otelminutes.New()) // yours is minutes.New(baseURL, apiKey, otelminutes.New())
	otelminutes.Watch(client)
	ctx, span := otel.Tracer("example").Start(context.Background(), "weekly")
	params := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20"}
	recording := minutes.FromReader(strings.NewReader("Good morning."), "audio/mpeg")
	_, err = client.Meetings.Process(ctx, params, recording, nil)
	if err != nil {
		log.Fatal(err)
	}
	span.End()
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name, s.EndTime.Sub(s.StartTime), s.Attributes)
	}
	if *listen != "" {
		log.Fatal(http.ListenAndServe(*listen, promhttp.Handler()))
	}
	metrics := httptest.NewRecorder()
	promhttp.Handler().ServeHTTP(metrics, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	fmt.Print(metrics.Body)
}
