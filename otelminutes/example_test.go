package otelminutes_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/otelminutes"
)

// The spans of all attempts in a Process are children of the caller's span.
func ExampleNew() {
	client, err := minutes.NewFromEnv(otelminutes.New())
	if err != nil {
		log.Fatal(err)
	}
	ctx, span := otel.Tracer("example").Start(context.Background(), "standup")
	defer span.End()
	params := &minutes.MeetingCreateParams{Title: "Stand-up", Date: "2026-11-20"}
	_, err = client.Meetings.Process(ctx, params, minutes.FromFile("standup.mp3"), nil)
	if err != nil {
		log.Fatal(err)
	}
}

// A header says to the service, or a gateway, which of the caller's spans its own belong to.
func Example_propagation() {
	service := respond(func(r *http.Request) (*http.Response, error) {
		fmt.Println(r.Header.Get("Traceparent"))
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("[]"))}, nil
	})
	client, err := minutes.New("https://minutes.example", "key_0123456789",
		minutes.WithHTTPClient(&http.Client{Transport: service}), otelminutes.New())
	if err != nil {
		log.Fatal(err)
	}
	ctx := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{15: 1}, SpanID: trace.SpanID{7: 2}, // of a span that your program has started
	}))

	header := http.Header{}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	_, err = client.Do(minutes.ContextWithHeader(ctx, header), minutes.Request{Method: "GET", Path: "/v1/rooms"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	// Output: 00-00000000000000000000000000000001-0000000000000002-00
}
