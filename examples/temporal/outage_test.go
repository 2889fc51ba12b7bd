package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
)

// outage is a Temporal server that is away for a while. Its one workflow ends at done.
type outage struct {
	client.Client
	from, to, done time.Time
}

func (o *outage) CheckHealth(context.Context, *client.CheckHealthRequest) (*client.CheckHealthResponse, error) {
	if now := time.Now(); now.After(o.from) && now.Before(o.to) {
		return nil, errors.New("connection refused")
	}
	return &client.CheckHealthResponse{}, nil
}

func (o *outage) ExecuteWorkflow(context.Context, client.StartWorkflowOptions, any, ...any) (client.WorkflowRun, error) {
	return &endsAt{at: o.done}, nil
}

type endsAt struct {
	client.WorkflowRun
	at time.Time
}

func (r *endsAt) Get(ctx context.Context, path any) error {
	*path.(*string) = "weekly.md"
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(r.at)):
		return nil
	}
}

// locked is a Builder for several goroutines.
type locked struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func TestStart_LogsThatItWaitsForServer(t *testing.T) {
	t.Parallel()
	const address = "temporal.example:7233"
	for name, tc := range map[string]struct {
		from, to time.Duration // of the outage
		want     []string
	}{
		"never away":      {0, 0, nil},
		"away and back":   {time.Minute, 3 * time.Minute, []string{"does not answer (connection refused). Waiting for it", "answers again"}},
		"away to the end": {time.Minute, time.Hour, []string{"does not answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				server := &outage{from: began.Add(tc.from), to: began.Add(tc.to), done: began.Add(10 * time.Minute)}
				var stdout strings.Builder
				var status locked
				require.NoError(t, start(t.Context(), &stdout, &status, server, address, []string{"weekly.mp3"}))
				assert.Equal(t, "weekly.mp3: weekly.md\n", stdout.String())
				lines := strings.Split(strings.TrimSpace(status.text.String()), "\n")
				require.Len(t, lines, 1+len(tc.want), "one line for each change")
				assert.Equal(t, "Started or found 1 workflow. Waiting for the minutes.", lines[0])
				for i, text := range tc.want {
					assert.Contains(t, lines[i+1], "The Temporal server at "+address+" "+text)
				}
				assert.Equal(t, 10*time.Minute, time.Since(began))
			})
		})
	}
}

func TestOnline_NamesUnreachableServer(t *testing.T) {
	t.Parallel()
	err := online(t.Context(), t.Output(), t.Output(), "127.0.0.1:1", []string{"weekly.mp3"})
	assert.ErrorContains(t, err, "no Temporal server at TEMPORAL_ADDRESS 127.0.0.1:1: ")
}
