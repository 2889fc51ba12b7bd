package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/meeting-minutes/minutes-go"
)

// TestMain runs the tests, or in a child process, a worker of the engine that JOBS_WORKER names.
func TestMain(m *testing.M) {
	name := os.Getenv("JOBS_WORKER")
	if name == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := workers[name](ctx)
	stop()
	if err != nil {
		fmt.Println("worker:", err)
		os.Exit(1)
	}
}

// workers run the jobs of an engine until ctx is done, and then stop as the engine's documentation
// recommends.
var workers = map[string]func(ctx context.Context) error{
	"River":          riverWorker,
	"asynq":          asynqWorker,
	"NATS JetStream": natsWorker,
	"cron":           cronWorker,
	"Temporal":       temporalWorker,
}

// limit is how long an attempt may take.
func limit() time.Duration {
	d, err := time.ParseDuration(os.Getenv("JOBS_LIMIT"))
	if err != nil {
		panic(err)
	}
	return d
}

var client = sync.OnceValues(func() (*minutes.Client, error) { return minutes.NewFromEnv() })

// report is what a worker tells the test about an attempt, as a line of JSON.
type report struct {
	Attempt   int
	Ended     bool
	Done      bool   // Process returned minutes
	Ctx       string // ctx.Err() and its cause when Process returned
	Error     string // the kind of Process's error
	Retryable bool
}

func (r report) print() {
	line, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	fmt.Println("report", string(line))
}

// process is the job of every engine. An engine counts its attempts from 1.
func process(ctx context.Context, attempt int) error {
	report{Attempt: attempt}.print()
	c, err := client()
	if err != nil {
		return err
	}
	_, err = c.Meetings.Process(ctx, &minutes.MeetingCreateParams{
		Title: "Weekly", Date: "2026-11-20", ExternalID: "weekly-2026-11-20",
	}, minutes.FromReaderAt(strings.NewReader("ID3, and sound"), 14, "audio/mpeg"), nil)
	r := report{Attempt: attempt, Ended: true, Done: err == nil, Ctx: "live", Retryable: minutes.Retryable(err)}
	if ctx.Err() != nil {
		r.Ctx = fmt.Sprintf("`%v`, cause `%v`", ctx.Err(), context.Cause(ctx))
	}
	switch {
	case errors.Is(err, context.Canceled):
		r.Error = "`context.Canceled`"
	case errors.Is(err, context.DeadlineExceeded):
		r.Error = "`context.DeadlineExceeded`"
	case minutes.KeyRejected(err):
		r.Error = "`KeyRejected`"
	case err != nil:
		r.Error = fmt.Sprintf("`%T`", err)
	}
	r.print()
	return err
}

// A verdict is what to do with a job after an attempt, whatever the engine calls it.
type verdict int

const (
	done    verdict = iota
	stopped         // the worker stops, and another one should go on
	again           // after the pause, without counting a failure
	discard         // and keep the error for a person
)

// next decides what follows an attempt.
func next(ctx context.Context, err error) (verdict, time.Duration) {
	asked, _ := minutes.RetryAfter(err)
	switch {
	case err == nil:
		return done, 0
	case minutes.Retryable(err): // also after the attempt's own deadline
		return again, min(max(asked, time.Second), time.Hour)
	case ctx.Err() != nil:
		return stopped, 0
	case minutes.KeyRejected(err), errors.Is(err, minutes.ErrInsufficientScope):
		return again, 10 * time.Minute // every job fails until somebody replaces the key
	}
	return discard, 0
}
