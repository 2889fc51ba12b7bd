package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/meeting-minutes/minutes-go"
)

// The task queues. A worker runs few uploads, which cost bandwidth, and thousands
// of waits, which cost next to nothing.
const (
	uploadQueue = "minutes-uploads"
	waitQueue   = "minutes-waits" // and of the workflow
	maxUploads  = 4
	maxWaits    = 10_000
)

// silence is the time without a heartbeat after which a worker counts as dead.
// The SDK sends at most one heartbeat per minute.
const silence = 2 * time.Minute

// job is what a workflow is started with.
type job struct {
	Path  string // of the recording, where every worker finds it
	Title string
	Date  string // YYYY-MM-DD
}

// uploaded is what Upload returns and Wait gets.
type uploaded struct {
	MeetingID string
}

// ingest is the workflow. It turns a recording into a file of minutes, and
// returns the file's path. The workflow's id is the meeting's external id, so
// there is one meeting, however often the workflow is killed or started. An
// external id has at most 128 characters, and Temporal accepts only printable
// ASCII.
func ingest(ctx workflow.Context, j job) (minutesPath string, err error) {
	var up uploaded
	err = workflow.ExecuteActivity(on(ctx, uploadQueue), "Upload", j).Get(ctx, &up)
	if err != nil {
		return "", err
	}
	err = workflow.ExecuteActivity(on(ctx, waitQueue), "Wait", up).Get(ctx, &minutesPath)
	return minutesPath, err
}

// on makes activities run on a queue, and retries them until they succeed.
func on(ctx workflow.Context, queue string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           queue,
		StartToCloseTimeout: 24 * time.Hour, // of one attempt; dead workers are found by their silence
		HeartbeatTimeout:    silence,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 5 * time.Second, MaximumInterval: 5 * time.Minute},
	})
}

// activities are the activities of one process: it has one Client, whose one
// poller serves all of the waits.
type activities struct {
	client *minutes.Client
	dir    string // destination of the minutes
}

// workers returns the workers of a process. A worker that ends by itself, as
// when the namespace was deleted, calls ended.
func workers(c client.Client, a *activities, ended func(error)) []worker.Worker {
	uploads := worker.New(c, uploadQueue, worker.Options{
		MaxConcurrentActivityExecutionSize: maxUploads, WorkerStopTimeout: 10 * time.Second, OnFatalError: ended,
		DisableWorkflowWorker: true,
	})
	uploads.RegisterActivity(a.Upload)
	waits := worker.New(c, waitQueue, worker.Options{
		MaxConcurrentActivityExecutionSize: maxWaits, WorkerStopTimeout: 10 * time.Second, OnFatalError: ended,
	})
	waits.RegisterActivity(a.Wait)
	waits.RegisterWorkflow(ingest)
	return []worker.Worker{uploads, waits}
}

// Upload creates the meeting, or finds it again, and uploads its audio.
func (a *activities) Upload(ctx context.Context, j job) (up uploaded, err error) {
	err = sendHeartbeats(ctx, func(ctx context.Context, r *report) error {
		m, _, err := a.client.Meetings.Create(ctx, &minutes.MeetingCreateParams{
			Title: j.Title, Date: j.Date, ExternalID: activity.GetInfo(ctx).WorkflowExecution.ID,
		})
		if err != nil {
			return err
		}
		open := minutes.FromFile(j.Path)
		_, err = a.client.Meetings.Resume(ctx, m.ID, open, &minutes.ProcessOptions{
			Until: minutes.StatusAudioUploaded, OnStatus: r.status, Progress: r.progress,
		})
		up = uploaded{m.ID}
		return err
	})
	return up, err
}

// Wait waits for the minutes and writes them to a file. Their text would fill
// Temporal's database.
func (a *activities) Wait(ctx context.Context, up uploaded) (path string, err error) {
	var result *minutes.Result
	err = sendHeartbeats(ctx, func(ctx context.Context, r *report) error {
		result, err = a.client.Meetings.Resume(ctx, up.MeetingID, nil, &minutes.ProcessOptions{
			Format: minutes.FormatMarkdown, OnStatus: r.status,
		})
		return err
	})
	if err != nil {
		return "", err
	}
	path = filepath.Join(a.dir, url.PathEscape(activity.GetInfo(ctx).WorkflowExecution.ID)+".md")
	return path, write(path, result.Minutes.Content) // Temporal retries every error
}

// write leaves a whole file, or none.
func write(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// beat is the content of a heartbeat.
type beat struct {
	Status      minutes.Status // of the meeting, once it was seen
	Sent, Total int64          // of the recording, in bytes
}

// report holds what the Client last reported.
type report struct {
	mu   sync.Mutex
	beat beat
}

func (r *report) status(m *minutes.Meeting) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beat.Status = m.Status
}

func (r *report) progress(sent, total int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beat.Sent = sent
	r.beat.Total = total
}

func (r *report) send(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	activity.RecordHeartbeat(ctx, r.beat)
}

// sendHeartbeats runs work while a ticker sends heartbeats, since OnStatus is not
// called during a stage. A worker that is stopped gives its work back at once, for
// others.
func sendHeartbeats(ctx context.Context, work func(context.Context, *report) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var r report
	var ticking sync.WaitGroup
	ticking.Go(func() {
		defer cancel()
		ticker := time.NewTicker(silence / 10)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				r.send(ctx)
			case <-activity.GetWorkerStopChannel(ctx):
				return
			case <-ctx.Done():
				return
			}
		}
	})
	err := work(ctx, &r)
	canceled := ctx.Err() != nil
	cancel()
	ticking.Wait()
	if canceled {
		return err // Temporal canceled the activity, or this worker stops and another one continues
	}
	return verdict(err)
}

// verdict decides whether Temporal retries. The error that it returns does not
// wrap err, because Temporal would then log everything twice.
func verdict(err error) error {
	failed, _ := errors.AsType[*minutes.MeetingFailedError](err)
	switch {
	case err == nil, minutes.Retryable(err):
		return err
	case minutes.KeyRejected(err): // all workflows fail until somebody replaces the key
		return temporal.NewApplicationErrorWithOptions(err.Error(), "KeyRejected",
			temporal.ApplicationErrorOptions{NextRetryDelay: 10 * time.Minute})
	case failed != nil:
		return temporal.NewNonRetryableApplicationError(err.Error(), string(failed.Status), nil)
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), "NotRetryable", nil)
}
