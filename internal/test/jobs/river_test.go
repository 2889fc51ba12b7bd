package jobs_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/require"
)

type recording struct{}

func (recording) Kind() string { return "recording" }

type riverJob struct {
	river.WorkerDefaults[recording]
}

func (riverJob) Work(ctx context.Context, job *river.Job[recording]) error {
	err := process(ctx, job.Attempt)
	what, pause := next(ctx, err)
	switch what {
	case again:
		return river.JobSnooze(pause) // counts no attempt
	case discard:
		return river.JobCancel(err)
	}
	return err // after StopAndCancel, River makes the job available and counts no attempt
}

func riverWorker(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, os.Getenv("JOBS_SERVER"))
	if err != nil {
		return err
	}
	defer pool.Close()
	jobs := river.NewWorkers()
	river.AddWorker(jobs, riverJob{})
	c, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:               map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
		Workers:              jobs,
		JobTimeout:           limit(), // without a limit, River never rescues the job of a killed worker
		RescueStuckJobsAfter: limit() + time.Second,
	})
	if err != nil {
		return err
	}
	background := context.WithoutCancel(ctx) // if the ctx of Start ends, an attempt counts
	err = c.Start(background)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return c.StopAndCancel(background)
}

func riverEngine(t *testing.T) engine {
	t.Helper()
	address := startPostgres(t)
	pool, err := pgxpool.New(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	for pool.Ping(t.Context()) != nil { // it listens before it is ready
		time.Sleep(100 * time.Millisecond)
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	require.NoError(t, err)
	_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	require.NoError(t, err)
	return engine{
		server: address,
		enqueue: func() {
			c, err := river.NewClient(riverpgxv5.New(pool), &river.Config{})
			require.NoError(t, err)
			_, err = c.Insert(t.Context(), recording{}, nil)
			require.NoError(t, err)
		},
		state: func() string {
			var state string
			var attempt, most, snoozes int
			err := pool.QueryRow(t.Context(), `SELECT state, attempt, max_attempts,
				coalesce((metadata->>'snoozes')::int, 0) FROM river_job`).Scan(&state, &attempt, &most, &snoozes)
			require.NoError(t, err)
			return fmt.Sprintf("%s, attempt %d of %d", state, attempt, most)
		},
	}
}
