package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
	"github.com/meeting-minutes/minutes-go/otelminutes"
)

// Prometheus accepts the names and units of all metrics, as promtool check metrics does, and they are those
// of the alert rules in docs/alerts.yaml.
func TestMetrics_PassPromlint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		registry := client.NewRegistry()
		reader, err := prometheus.New(prometheus.WithRegisterer(registry))
		require.NoError(t, err)
		provider := otelminutes.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
		server := minutestest.NewServer(t)
		server.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate}, minutestest.RateLimit("1"))
		server.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.Delay(time.Hour))
		params := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20"}
		recording := minutes.FromReader(strings.NewReader("Good morning."), "audio/mpeg")
		caller := server.Client(otelminutes.New(provider))
		defer otelminutes.Watch(caller, provider)()
		_, err = caller.Meetings.Process(t.Context(), params, recording, nil)
		require.NoError(t, err)
		waiting, _, err := caller.Meetings.Create(t.Context(), params)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() { _, _ = caller.Meetings.Wait(ctx, waiting.ID, nil) })
		time.Sleep(time.Minute)

		scrape := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(scrape, request)
		text := scrape.Body.String()
		for _, sample := range []string{
			`http_client_request_duration_seconds_count{`,
			`http_client_request_body_size_bytes_count{`,
			`meetings_client_attempts_total{error_type="429",meetings_code="RATE_LIMITED",meetings_operation=`,
			`meetings_client_attempts_total{meetings_operation="meetings.get",meetings_shared="true"`,
			`meetings_client_retries_total{`,
			`meetings_client_upload_stalls_total{`,
			`meetings_client_pause_duration_seconds_sum{`,
			`meetings_client_waiting{`,
			`meetings_client_waiting_age_seconds{`,
			`meetings_client_poll_age_seconds{`,
			`meetings_client_uploading{`,
		} {
			require.Contains(t, text, "\n"+sample)
		}
		cancel()
		wait.Wait()
		problems, err := promlint.New(strings.NewReader(text)).Lint()
		require.NoError(t, err)
		require.Empty(t, problems)
	})
}
