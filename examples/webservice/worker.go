package main

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meeting-minutes/minutes-go"
)

// worker works on all jobs that are due at once: most of them wait. ProcessAll asks for the next job when an upload has
// ended, so an instance never takes a job that it cannot upload yet.
type worker struct {
	*table
	client *minutes.Client
	// After a rejected key, or for lack of quota, every other upload would fail in the same way. Then stopped is what was
	// left of the quota, and no job begins until Usage.Get shows more.
	stopped atomic.Pointer[minutes.Usage]
}

// run works until ctx is done, and then gives up its leases, so that other instances continue at once.
func (w *worker) run(ctx context.Context) {
	var renewing sync.WaitGroup
	defer renewing.Wait()
	renewing.Go(func() {
		for sleep(ctx, w.lease/3) {
			if err := w.renew(ctx); err != nil && ctx.Err() == nil {
				slog.Error("cannot renew the leases", "error", err)
			}
		}
	})
	for ctx.Err() == nil { // ProcessAll ends if the key is rejected
		w.processAll(ctx)
	}
}

func (w *worker) processAll(ctx context.Context) {
	taking, stop := context.WithCancel(ctx) // so that jobs ends with ProcessAll, even while it sleeps
	defer stop()
	for result, err := range w.client.Meetings.ProcessAll(ctx, w.jobs(taking), &minutes.ProcessOptions{Format: minutes.FormatMarkdown}) {
		if result != nil {
			w.decide(ctx, result, err)
		}
	}
}

// jobs yields jobs when they are due.
func (w *worker) jobs(ctx context.Context) iter.Seq[minutes.Job] {
	return func(yield func(minutes.Job) bool) {
		for ctx.Err() == nil {
			if before := w.stopped.Load(); before != nil { // another upload would end in another failed meeting
				sleep(ctx, 5*time.Minute)
				now, err := w.client.Usage.Get(ctx)
				if err == nil && (now.CreditsRemaining > before.CreditsRemaining || now.TranscribeSecondsRemaining > before.TranscribeSecondsRemaining) {
					w.stopped.Store(nil)
				}
				continue
			}
			j, err := w.take(ctx)
			if err != nil {
				if !errors.Is(err, sql.ErrNoRows) && ctx.Err() == nil {
					slog.Error("cannot take a job", "error", err)
				}
				sleep(ctx, time.Second)
				continue
			}
			params := &minutes.MeetingCreateParams{Title: j.name, Date: j.date, ExternalID: j.id}
			if !yield(minutes.Job{Params: params, Source: minutes.FromFile(w.path(&j))}) {
				w.store(ctx, &job{id: j.id, state: "queued", due: time.Now()})
				return
			}
		}
	}
}

// decide decides what becomes of a job after an attempt.
func (w *worker) decide(ctx context.Context, result *minutes.Result, err error) {
	j := &job{id: result.Params.ExternalID, state: "queued", due: time.Now()}
	failed, _ := errors.AsType[*minutes.MeetingFailedError](err)
	asked, _ := minutes.RetryAfter(err)
	switch {
	case err == nil:
		j.state, j.minutes = "done", result.Minutes.Content
	case ctx.Err() != nil: // another instance continues
	case failed != nil && !result.Created: // in an earlier attempt, so the next one needs a new meeting
		if err = w.client.Meetings.Delete(ctx, failed.MeetingID); err != nil {
			j.due = j.due.Add(time.Minute)
		}
	case minutes.KeyRejected(err):
		w.stop(&minutes.Usage{CreditsRemaining: -1}, err) // until the service accepts the key again
	case failed != nil && w.outOfQuota(ctx, failed):
	case minutes.Retryable(err):
		j.due = j.due.Add(max(asked, time.Minute))
	default:
		j.state = "failed" // until somebody asks for another attempt
	}
	if err != nil {
		j.problem = err.Error()
	}
	w.store(ctx, j)
}

// outOfQuota reports whether a meeting failed for lack of quota. Then no other job begins.
func (w *worker) outOfQuota(ctx context.Context, failed *minutes.MeetingFailedError) bool {
	usage, err := w.client.Usage.Get(ctx)
	if err != nil {
		usage = &minutes.Usage{CreditsRemaining: -1} // unknown
	}
	out := failed.Status == minutes.StatusTranscribeBlocked || failed.Status == minutes.StatusMinutesFailed && usage.CreditsRemaining <= 0
	if out {
		w.stop(usage, failed)
	}
	return out
}

func (w *worker) stop(usage *minutes.Usage, reason error) {
	slog.Error("no other job begins", "reason", reason) // alert on this
	w.stopped.Store(usage)
}

// store stores what became of a job, even if ctx is done. Only then is the recording removed.
func (w *worker) store(ctx context.Context, j *job) {
	err := w.finish(context.WithoutCancel(ctx), j)
	if err == nil && j.state == "done" {
		err = os.Remove(w.path(j))
	}
	slog.Info("attempt ended", "job", j.id, "state", j.state, "problem", j.problem, "error", err)
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err() == nil
}
