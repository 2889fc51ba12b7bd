// Command observability shows what a Client does: OpenTelemetry spans of its
// requests, and Prometheus metrics.
//
// It runs offline, with the in-memory fake of package minutestest, in which
// a few things go wrong:
//
//	cd examples/observability && go run .
//
// For your own program, copy watch.go.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal("observability: ", err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	server := troubled()
	defer func() { _ = server.Close() }()       // nothing is left to be done about it
	exported := tracetest.NewInMemoryExporter() // replaces an OTLP exporter
	spans := sdk.NewTracerProvider(sdk.WithSyncer(exported))
	registry := prometheus.NewRegistry()

	client := server.Client(watch(server.HTTPClient().Transport, spans, registry)...)
	if err := work(ctx, client, spans); err != nil {
		return err
	}

	for _, span := range exported.GetSpans() {
		fmt.Fprintf(out, "%-20s %s\n", span.Name, shown(span.Attributes))
	}
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(out, family); err != nil {
			return err
		}
	}
	return nil
}

// work is one job with its span.
func work(ctx context.Context, client *minutes.Client, spans *sdk.TracerProvider) error {
	ctx, span := spans.Tracer("example").Start(ctx, "weekly")
	defer span.End()
	source := minutes.FromReader(strings.NewReader("Good morning."), "audio/mpeg")
	_, err := client.Meetings.Process(ctx, &minutes.MeetingCreateParams{
		Title: "Weekly", Date: "2026-11-20", ExternalID: "weekly-2026-11-20",
	}, source, nil)
	return err
}

// troubled returns an in-memory fake that rejects some requests at first. It
// writes the minutes as soon as the audio is there, because otherwise the Client
// would wait for thirty seconds between two polls.
func troubled() *minutestest.Server {
	var server *minutestest.Server
	server = minutestest.New(minutestest.WithLog(func(r minutestest.Request) {
		if r.Operation == minutes.OpUpload && r.Status == http.StatusOK {
			server.Advance(r.MeetingID, minutes.StatusMinutesReady)
		}
	}))
	server.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate}, minutestest.RateLimit("1"))
	server.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.RefuseUpload(http.StatusTooManyRequests, "SlowDown"))
	server.Inject(minutestest.Match{Operation: minutes.OpMeetingsMinutes}, minutestest.BadGateway())
	return server
}

func shown(attributes []attribute.KeyValue) string {
	var b strings.Builder
	for _, a := range attributes {
		switch a.Key {
		case "minutes.attempt", "http.response.status_code", "url.full":
			fmt.Fprintf(&b, " %s=%s", a.Key, a.Value.String())
		}
	}
	return b.String()
}
