package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"iter"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/meeting-minutes/minutes-go"
)

// A job is queued, done or failed. While an instance works on it, owner is that instance, and due is the end of its lease;
// otherwise due is the earliest time of the next attempt. So in both cases any instance may take a queued job at due.
const schema = `CREATE TABLE IF NOT EXISTS jobs (
	name TEXT PRIMARY KEY, -- also the external id of the meeting
	state TEXT NOT NULL DEFAULT 'queued', owner TEXT NOT NULL DEFAULT '', due INTEGER NOT NULL DEFAULT 0, -- in ms
	text TEXT NOT NULL DEFAULT '') STRICT` // the minutes, or the last problem

// instance works on all jobs that are due at once: most of them wait. The recordings are files beside the database.
type instance struct {
	db      *sql.DB
	dir, me string // me is a name for this instance
	lease   time.Duration
	client  *minutes.Client
}

func open(ctx context.Context, dir string, lease time.Duration, client *minutes.Client) (*instance, error) {
	dirErr := os.MkdirAll(dir, 0o700)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "jobs.db")+"?_pragma=busy_timeout(10000)&_pragma=synchronous(FULL)")
	if err == nil {
		db.SetMaxOpenConns(1)
		_, err = db.ExecContext(ctx, schema)
	}
	return &instance{db, dir, rand.Text(), lease, client}, errors.Join(dirErr, err)
}

func (in *instance) path(name string) string {
	return filepath.Join(in.dir, "of-"+url.PathEscape(name))
}

// take takes a lease on a job that is due, or returns sql.ErrNoRows. No two instances can take the same job, because one
// statement finds and changes it.
func (in *instance) take(ctx context.Context) (name string, err error) {
	now := time.Now()
	err = in.db.QueryRowContext(ctx, `UPDATE jobs SET owner = ?, due = ? WHERE name =
		(SELECT name FROM jobs WHERE state = 'queued' AND due <= ? ORDER BY due LIMIT 1) RETURNING name`,
		in.me, now.Add(in.lease).UnixMilli(), now.UnixMilli()).Scan(&name)
	return name, err
}

// renew extends the leases of all jobs that this instance works on, until ctx is done.
func (in *instance) renew(ctx context.Context) {
	for sleep(ctx, in.lease/3) {
		_, err := in.db.ExecContext(ctx, `UPDATE jobs SET due = ? WHERE owner = ?`, time.Now().Add(in.lease).UnixMilli(), in.me)
		if err != nil && ctx.Err() == nil {
			slog.Error("cannot renew the leases", "error", err)
		}
	}
}

// finish stores what an attempt came to, even if ctx is done, and gives up the lease. The recording of a job that is done
// is removed. If another instance has taken over, nothing changes, because that one will store what its own attempt comes to.
func (in *instance) finish(ctx context.Context, name, state string, after time.Duration, text string) {
	err := in.db.QueryRowContext(context.WithoutCancel(ctx), `UPDATE jobs SET owner = '', state = ?, due = ?, text = ?
		WHERE name = ? AND owner = ? RETURNING name`, state, time.Now().Add(after).UnixMilli(), text, name, in.me).Scan(&name)
	if err == nil && state == "done" {
		err = os.Remove(in.path(name))
	}
	slog.Info("attempt ended", "job", name, "state", state, "error", err)
}

// run works until ctx is done, and then gives up its leases, so that other instances continue at once.
func (in *instance) run(ctx context.Context) {
	go in.renew(ctx)
	for ctx.Err() == nil { // ProcessAll ends if the key is rejected
		taking, stop := context.WithCancel(ctx) // so that jobs ends with ProcessAll, even while it sleeps
		for result, err := range in.client.Meetings.ProcessAll(ctx, in.jobs(taking), &minutes.ProcessOptions{Format: minutes.FormatMarkdown}) {
			if result != nil {
				in.decide(ctx, result, err)
			}
		}
		stop()
	}
}

// jobs yields jobs when they are due. ProcessAll asks for the next one when an upload has ended, so an instance never takes
// a job that it cannot upload yet.
func (in *instance) jobs(ctx context.Context) iter.Seq[minutes.Job] {
	return func(yield func(minutes.Job) bool) {
		for ctx.Err() == nil {
			name, err := in.take(ctx)
			if err != nil {
				if !errors.Is(err, sql.ErrNoRows) && ctx.Err() == nil {
					slog.Error("cannot take a job", "error", err)
				}
				sleep(ctx, 5*time.Second)
				continue
			}
			stopped := in.stopped(ctx)
			params := &minutes.MeetingCreateParams{Title: name, Date: minutes.DateOf(time.Now()), ExternalID: name}
			if !stopped && yield(minutes.Job{Params: params, Source: minutes.FromFile(in.path(name))}) {
				continue
			}
			in.finish(ctx, name, "queued", 0, "")
			if !stopped || !sleep(ctx, 5*time.Minute) {
				return
			}
		}
	}
}

// stopped reports whether every upload would end in a failed meeting, because the quota is used up or the key is rejected.
// It costs a request for each job, but a failed meeting costs an upload.
func (in *instance) stopped(ctx context.Context) bool {
	usage, err := in.client.Usage.Get(ctx)
	if err == nil && usage.CreditsRemaining > 0 && usage.TranscribeSecondsRemaining > 0 {
		return false
	}
	slog.Error("no job begins", "usage", usage, "error", err) // alert on this
	return true
}

// decide decides what becomes of a job after an attempt.
func (in *instance) decide(ctx context.Context, result *minutes.Result, err error) {
	name := result.Params.ExternalID
	if err == nil {
		in.finish(ctx, name, "done", 0, result.Minutes.Content)
		return
	}
	state, after := "queued", time.Duration(0)
	failed, _ := errors.AsType[*minutes.MeetingFailedError](err)
	asked, _ := minutes.RetryAfter(err)
	switch {
	case ctx.Err() != nil: // another instance continues
	case failed != nil && !result.Created: // in an earlier attempt, so the next one needs a new meeting
		_ = in.client.Meetings.Delete(ctx, failed.MeetingID) // if this fails, the next attempt comes here again
		after = time.Minute
	case failed != nil && failed.Status == minutes.StatusTranscribeBlocked: // it needs more seconds than are left
		after = time.Hour
	case minutes.KeyRejected(err) || failed != nil && in.stopped(ctx): // then no job begins until that is over
	case minutes.Retryable(err):
		after = max(asked, time.Minute)
	default:
		state = "failed" // until somebody uploads the recording again
	}
	in.finish(ctx, name, state, after, err.Error())
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err() == nil
}
