package jobs_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// temporalActivity is an attempt, with a heartbeat each second.
func temporalActivity(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for {
			select {
			case <-time.After(time.Second):
				activity.RecordHeartbeat(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
	err := process(ctx, int(activity.GetInfo(ctx).Attempt))
	what, pause := next(ctx, err)
	switch what {
	case again:
		return temporal.NewApplicationErrorWithOptions(err.Error(), "Again",
			temporal.ApplicationErrorOptions{NextRetryDelay: pause})
	case discard:
		return temporal.NewNonRetryableApplicationError(err.Error(), "Discard", nil)
	}
	return err // another worker goes on at once
}

func temporalWorkflow(ctx workflow.Context, limit time.Duration) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: limit,
		HeartbeatTimeout:    5 * time.Second,
	})
	return workflow.ExecuteActivity(ctx, temporalActivity).Get(ctx, nil)
}

func temporalClient(server string) (temporalclient.Client, error) {
	return temporalclient.Dial(temporalclient.Options{
		HostPort: server, Namespace: os.Getenv("TEMPORAL_NAMESPACE"), Logger: silent{},
	})
}

type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

func temporalWorker(ctx context.Context) error {
	address, queue, _ := strings.Cut(os.Getenv("JOBS_SERVER"), " ")
	c, err := temporalClient(address)
	if err != nil {
		return err
	}
	defer c.Close()
	w := worker.New(c, queue, worker.Options{WorkerStopTimeout: 2 * time.Second})
	w.RegisterWorkflow(temporalWorkflow)
	w.RegisterActivity(temporalActivity)
	err = w.Start()
	if err != nil {
		return err
	}
	<-ctx.Done()
	w.Stop()
	return nil
}

func temporalEngine(t *testing.T) engine {
	t.Helper()
	server := os.Getenv("TEMPORAL_ADDRESS")
	if server == "" {
		t.Skip("no Temporal server: set TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE")
	}
	c, err := temporalClient(server)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	var run temporalclient.WorkflowRun
	return engine{
		server: server + " " + t.Name(),
		races:  true,
		enqueue: func() {
			d, err := time.ParseDuration(limitOf(t))
			require.NoError(t, err)
			options := temporalclient.StartWorkflowOptions{TaskQueue: t.Name()}
			run, err = c.ExecuteWorkflow(t.Context(), options, temporalWorkflow, d)
			require.NoError(t, err)
		},
		state: func() string {
			for {
				described, err := c.DescribeWorkflow(t.Context(), run.GetID(), run.GetRunID())
				require.NoError(t, err)
				said := described.RawResponse
				switch status := said.WorkflowExecutionInfo.Status; {
				case status != enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
					return strings.ToLower(status.String())
				case len(said.PendingActivities) > 0:
					return "to be tried again"
				}
				time.Sleep(100 * time.Millisecond) // the workflow has yet to learn that its activity has ended
			}
		},
	}
}
