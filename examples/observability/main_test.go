package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/meeting-minutes/minutes-go"
)

// everything is all that an exporter is given.
func everything(t *testing.T, spans tracetest.SpanStubs) string {
	t.Helper()
	text, err := json.Marshal(spans)
	require.NoError(t, err)
	return fmt.Sprintf("%s %+v", text, spans)
}

// No exported span holds a presigned query, and each request of the job has one.
func TestSpans_HaveNoPresignedQuery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := troubled()
		defer server.Close()
		exported := tracetest.NewInMemoryExporter()
		spans := sdk.NewTracerProvider(sdk.WithSyncer(exported))
		client := server.Client(watch(server.HTTPClient().Transport, spans, prometheus.NewRegistry())...)
		require.NoError(t, work(t.Context(), client, spans))

		names := map[string]int{}
		for _, span := range exported.GetSpans() {
			names[span.Name]++
			require.Equal(t, exported.GetSpans()[0].SpanContext.TraceID(), span.SpanContext.TraceID(), "one trace")
		}
		require.Equal(t, map[string]int{
			"weekly": 1, "meetings.create": 2, "meetings.upload_url": 1, "storage.put": 2, "meetings.minutes": 2,
		}, names)
		require.NotContains(t, everything(t, exported.GetSpans()), "X-Amz-")
		require.NotContains(t, everything(t, exported.GetSpans()), server.Key())
	})
}

// The test above would see it: with uploads through otelhttp, too, it is there.
func TestTracedStorage_LeaksPresignedQuery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := troubled()
		defer server.Close()
		exported := tracetest.NewInMemoryExporter()
		spans := sdk.NewTracerProvider(sdk.WithSyncer(exported))
		client := server.Client(minutes.WithHTTPClient(&http.Client{
			Transport: otelhttp.NewTransport(server.HTTPClient().Transport, otelhttp.WithTracerProvider(spans)),
		}))
		require.NoError(t, work(t.Context(), client, spans))
		require.Contains(t, everything(t, exported.GetSpans()), "X-Amz-")
	})
}

// The program reports its work in spans and in metrics.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), &out))
		for _, line := range []string{
			`meetings_attempts_total{code="RATE_LIMITED",operation="meetings.create",status="429"} 1`,
			`meetings_attempts_total{code="",operation="meetings.create",status="201"} 1`,
			`meetings_attempts_total{code="SlowDown",operation="storage.put",status="429"} 1`,
			`meetings_retries_total{operation="meetings.minutes"} 1`,
			`meetings_rate_limit_pauses_total 1`,
			`meetings_upload_stalls_total 0`,
			`meetings_poller_requests_total{operation="meetings.get"} 1`,
		} {
			require.Contains(t, out.String(), line+"\n")
		}
		_, metrics, _ := strings.Cut(out.String(), "# HELP") // as promtool check metrics
		problems, err := promlint.New(strings.NewReader("# HELP" + metrics)).Lint()
		require.NoError(t, err)
		require.Empty(t, problems)
		require.Regexp(t, `(?m)^meetings.create +.*url.full=https://\S+/v1/meetings .*minutes.attempt=2`, out.String())
		require.NotContains(t, out.String(), "X-Amz-")
	})
}
