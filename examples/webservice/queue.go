package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/meeting-minutes/minutes-go"
)

// These metrics answer the first questions of the person on call.
// examples/observability has more.
var (
	attempts = promauto.NewCounterVec(prometheus.CounterOpts{Name: "meetings_attempts_total", Help: "Attempts of requests."}, []string{"operation", "status"})
	outcomes = promauto.NewCounterVec(prometheus.CounterOpts{Name: "webservice_outcomes_total", Help: "Attempts at jobs, by the state that followed."}, []string{"state"})
	pauses   = promauto.NewCounterVec(prometheus.CounterOpts{Name: "webservice_pauses_total", Help: "Pauses of the queue. Alert on each."}, []string{"reason"})
)

func observe(_ context.Context, e minutes.Event) {
	if a, ok := e.(minutes.Attempt); ok {
		attempts.WithLabelValues(string(a.Operation), strconv.Itoa(a.StatusCode)).Inc()
	}
}

var errPaused = errors.New("the queue is paused")

// queue works on all jobs that are due at once: most of them wait, and the Client uploads
// four at a time. During a pause, it begins no job and no upload.
type queue struct {
	*table
	client *minutes.Client
	resume atomic.Int64 // the end of the pause, as a Unix time
}

// run begins jobs when they are due. When ctx is done, it returns once they have stopped.
func (q *queue) run(ctx context.Context) {
	var jobs sync.WaitGroup
	defer jobs.Wait()
	for ctx.Err() == nil {
		for j := q.next(ctx); j != nil; j = q.next(ctx) {
			jobs.Go(func() { q.work(ctx, j) })
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// next marks a job that is due as running, and returns it; nil if there is none.
func (q *queue) next(ctx context.Context) (j *job) {
	if q.paused() {
		return nil
	}
	text, err := q.do(ctx, `UPDATE jobs SET job = json_set(job, '$.state', 'running') WHERE name =
		(SELECT name FROM jobs WHERE state = 'queued' AND due <= ? ORDER BY due LIMIT 1) RETURNING job`, time.Now().Unix())
	if err != nil && ctx.Err() == nil {
		slog.Error("cannot read the jobs", "error", err)
	}
	_ = json.Unmarshal(text, &j) // fails only if there is none
	return j
}

// work makes one attempt at a job. If ctx ends it, the next process makes another.
func (q *queue) work(ctx context.Context, j *job) {
	err := q.attempt(ctx, j)
	if ctx.Err() != nil {
		return
	}
	j.State, j.Problem = "done", ""
	if err != nil {
		q.decide(ctx, j, err)
	}
	if err := q.save(ctx, j); err != nil {
		slog.Error("cannot save a job", "job", j.ID, "error", err)
	}
	outcomes.WithLabelValues(j.State).Inc()
	slog.Info("attempt ended", "job", j.ID, "meeting", j.Meeting, "state", j.State, "problem", j.Problem)
}

// attempt does the remaining steps of a job. It stores each step before it starts the next one.
func (q *queue) attempt(ctx context.Context, j *job) error {
	for j.Meeting == "" {
		m, _, err := q.client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: j.Name, Date: j.Date, ExternalID: j.ID})
		if err == nil && m.Status.Failed() { // in an earlier attempt
			err = q.client.Meetings.Delete(ctx, m.ID)
		} else if err == nil {
			j.Meeting = m.ID
			err = q.save(ctx, j)
		}
		if err != nil {
			return err
		}
	}
	if j.Minutes == "" {
		source := func(ctx context.Context) (minutes.Recording, error) {
			if q.paused() { // since the attempt began
				return minutes.Recording{}, errPaused
			}
			return minutes.FromFile(q.path(j))(ctx)
		}
		result, err := q.client.Meetings.Resume(ctx, j.Meeting, source, &minutes.ProcessOptions{Format: minutes.FormatMarkdown})
		if err != nil {
			return err
		}
		j.Minutes = result.Minutes.Content
		if err := q.save(ctx, j); err != nil {
			return err
		}
	}
	return os.RemoveAll(q.path(j)) // only now; an earlier attempt may have done it
}

// decide sets what becomes of a job after an attempt that failed. Its recording is kept.
func (q *queue) decide(ctx context.Context, j *job, err error) {
	asked, _ := minutes.RetryAfter(err)
	failure, ended := errors.AsType[*minutes.MeetingFailedError](err)
	if ended {
		j.Meeting = "" // another attempt, if there is one, deletes it and creates it again
	}
	j.State, j.Problem = "queued", err.Error()
	switch {
	case errors.Is(err, errPaused), ended && q.outOfQuota(ctx, failure): // later
	case minutes.KeyRejected(err): // every other job would fail, too
		q.pause("key", math.MaxInt64, err) // until the program is restarted
	case minutes.Retryable(err):
		j.Due = time.Now().Add(max(asked, time.Minute)).Unix()
	case errors.Is(err, minutes.ErrMeetingGone):
		j.State, j.Meeting = "deleted", "" // another program deleted it
	default:
		j.State = "failed" // for good, or unexpectedly
	}
}

// outOfQuota reports whether a meeting failed for lack of quota. Then it pauses the queue.
func (q *queue) outOfQuota(ctx context.Context, failure *minutes.MeetingFailedError) bool {
	usage, err := q.client.Usage.Get(ctx)
	if err != nil {
		usage = &minutes.Usage{CreditsRemaining: 1} // unknown
	}
	out := minutes.QuotaExhausted(failure) || failure.Status == minutes.StatusMinutesFailed && usage.CreditsRemaining == 0
	if out {
		reset, _ := usage.ResetAt() // in the past if there is none
		q.pause("quota", max(time.Until(reset), time.Hour), failure)
	}
	return out
}

func (q *queue) paused() bool { return time.Now().Unix() < q.resume.Load() }

// pause begins a pause with an alert, or changes the end of one.
func (q *queue) pause(reason string, d time.Duration, err error) {
	until := time.Now().Add(d)
	if q.resume.Swap(until.Unix()) <= time.Now().Unix() {
		pauses.WithLabelValues(reason).Inc()
		slog.Error("the queue is paused", "reason", reason, "until", until, "error", err)
	}
}
