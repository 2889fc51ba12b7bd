package jobs_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"
)

const asynqMaxRetry = 25

func asynqWorker(ctx context.Context) error {
	temporary := func(err error) bool {
		what, _ := next(ctx, err)
		return what == again
	}
	srv := asynq.NewServer(asynq.RedisClientOpt{Addr: os.Getenv("JOBS_SERVER")}, asynq.Config{
		Concurrency:     100,
		ShutdownTimeout: time.Second,
		IsFailure:       func(err error) bool { return !temporary(err) }, // others count no retry
		RetryDelayFunc: func(_ int, err error, _ *asynq.Task) time.Duration {
			_, pause := next(ctx, err)
			return max(pause, time.Second)
		},
		DelayedTaskCheckInterval: time.Second,
		LogLevel:                 asynq.FatalLevel,
	})
	err := srv.Start(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		retried, _ := asynq.GetRetryCount(ctx)
		err := process(ctx, retried+1)
		what, _ := next(ctx, err)
		if what == discard {
			return fmt.Errorf("%w: %w", asynq.SkipRetry, err) // archived, for a person
		}
		return err // after Shutdown the task is pending already, and counts no retry
	}))
	if err != nil {
		return err
	}
	<-ctx.Done()
	srv.Shutdown()
	return nil
}

func asynqEngine(t *testing.T) engine {
	t.Helper()
	address := startRedis(t)
	redis := asynq.RedisClientOpt{Addr: address}
	c := asynq.NewClient(redis)
	t.Cleanup(func() { _ = c.Close() })
	inspector := asynq.NewInspector(redis)
	t.Cleanup(func() { _ = inspector.Close() })
	const id = "weekly-2026-11-20"
	return engine{
		server: address,
		enqueue: func() {
			d, err := time.ParseDuration(limitOf(t))
			require.NoError(t, err)
			_, err = c.Enqueue(asynq.NewTask("recording", nil), asynq.TaskID(id), asynq.Timeout(d),
				asynq.MaxRetry(asynqMaxRetry), asynq.Retention(time.Hour))
			require.NoError(t, err)
		},
		state: func() string {
			task, err := inspector.GetTaskInfo("default", id)
			require.NoError(t, err)
			return fmt.Sprintf("%s, retry %d of %d", task.State, task.Retried, task.MaxRetry)
		},
	}
}
