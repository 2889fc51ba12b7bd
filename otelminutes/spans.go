package otelminutes

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/meeting-minutes/minutes-go"
)

// addSpan makes the span of an attempt that ended at end. It returns the span's context, so that metrics
// can name the span as an exemplar.
func addSpan(ctx context.Context, tracer trace.Tracer, a minutes.Attempt, ended time.Time) context.Context {
	ctx, span := tracer.Start(ctx, a.Method+" "+string(a.Operation),
		trace.WithSpanKind(trace.SpanKindClient),
		trace.WithTimestamp(ended.Add(-a.Duration)),
		trace.WithAttributes(spanAttributes(a)...),
	)
	switch {
	case a.Err != nil:
		span.SetStatus(codes.Error, a.Err.Error())
	case failed(a):
		span.SetStatus(codes.Error, "") // the status code says why
	}
	span.End(trace.WithTimestamp(ended))
	return ctx
}

func spanAttributes(a minutes.Attempt) []attribute.KeyValue {
	attributes := append(httpAttributes(a), semconv.URLFull(a.URL))
	if a.Number > 1 {
		attributes = append(attributes, semconv.HTTPRequestResendCount(a.Number-1))
	}
	if a.Operation == minutes.OpUpload {
		attributes = append(attributes, semconv.HTTPRequestBodySize(int(a.Sent)))
	}
	if a.MeetingID != "" {
		attributes = append(attributes, meetingIDKey.String(a.MeetingID))
	}
	if a.Code != "" {
		attributes = append(attributes, codeKey.String(string(a.Code)))
	}
	if a.RequestID != "" {
		attributes = append(attributes, requestIDKey.String(a.RequestID))
	}
	if a.Pause > 0 {
		attributes = append(attributes, pauseKey.Float64(a.Pause.Seconds()))
	}
	return attributes
}
