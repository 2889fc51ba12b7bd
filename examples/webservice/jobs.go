package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/meeting-minutes/minutes-go"
)

// A job is queued, done or failed. While an instance works on it, owner is that instance, and due is the end of its
// lease; otherwise due is the earliest time of the next try. So any instance may take a queued job at due.
const schema = `CREATE TABLE IF NOT EXISTS jobs (
	name TEXT PRIMARY KEY, -- also the external id of the meeting
	meeting TEXT NOT NULL, -- its id
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
	db, err := sql.Open("sqlite",
		"file:"+filepath.Join(dir, "jobs.db")+"?_pragma=busy_timeout(10000)&_pragma=synchronous(FULL)")
	if err == nil {
		db.SetMaxOpenConns(1)
		_, err = db.ExecContext(ctx, schema)
	}
	return &instance{db, dir, rand.Text(), lease, client}, errors.Join(dirErr, err)
}

func (in *instance) path(name string) string {
	return filepath.Join(in.dir, "of-"+url.PathEscape(name))
}

// nextJob takes a lease on a due job, or returns sql.ErrNoRows. It is one statement, so no two instances take the same.
func (in *instance) nextJob(ctx context.Context) (name, meeting string, err error) {
	now := time.Now()
	err = in.db.QueryRowContext(ctx, `UPDATE jobs SET owner = ?, due = ? WHERE name =
		(SELECT name FROM jobs WHERE state = 'queued' AND due <= ? ORDER BY due LIMIT 1) RETURNING name, meeting`,
		in.me, now.Add(in.lease).UnixMilli(), now.UnixMilli()).Scan(&name, &meeting)
	return name, meeting, err
}

// renew extends the leases of all jobs that this instance works on, until ctx is done.
func (in *instance) renew(ctx context.Context) {
	for sleep(ctx, in.lease/3) {
		due := time.Now().Add(in.lease).UnixMilli()
		_, err := in.db.ExecContext(ctx, `UPDATE jobs SET due = ? WHERE owner = ?`, due, in.me)
		if err != nil && ctx.Err() == nil {
			slog.Error("cannot renew the leases", "error", err)
		}
	}
}

// finish stores what a try came to, even if ctx is done, and gives up the lease. It removes the recording of a job
// that is done. If another instance has taken over, nothing changes.
func (in *instance) finish(ctx context.Context, name, state string, after time.Duration, text string) {
	err := in.db.QueryRowContext(context.WithoutCancel(ctx), `UPDATE jobs SET owner = '', state = ?, due = ?, text = ?
		WHERE name = ? AND owner = ? RETURNING name`,
		state, time.Now().Add(after).UnixMilli(), text, name, in.me).Scan(&name)
	if err == nil && state == "done" {
		err = os.Remove(in.path(name))
	}
	slog.Info("try ended", "job", name, "state", state, "error", err)
}

// run works until ctx is done, and then gives up its leases, so that other instances continue at once. It takes a job
// when the upload of another has ended, so it never holds one that another instance could upload.
func (in *instance) run(ctx context.Context) {
	go in.renew(ctx)
	uploads := make(chan struct{}, 4)
	var jobs sync.WaitGroup
	defer jobs.Wait()
	for ctx.Err() == nil {
		uploads <- struct{}{} // for which no upload waits when ctx is done
		uploaded := sync.OnceFunc(func() { <-uploads })
		name, meeting, err := in.nextJob(ctx)
		switch {
		case err != nil:
			if !errors.Is(err, sql.ErrNoRows) && ctx.Err() == nil {
				slog.Error("cannot take a job", "error", err)
			}
			uploaded()
			sleep(ctx, 5*time.Second)
		case in.stopped(ctx):
			in.finish(ctx, name, "queued", 0, "")
			uploaded()
			sleep(ctx, 5*time.Minute)
		default:
			jobs.Go(func() { in.resume(ctx, name, meeting, uploaded) })
		}
	}
}

// stopped reports whether every upload would fail, because the quota is used up or the key is rejected.
func (in *instance) stopped(ctx context.Context) bool {
	usage, err := in.client.Usage.Get(ctx)
	usedUp := err == nil && (usage.CreditsRemaining <= 0 || usage.TranscribeSecondsRemaining <= 0)
	stopped := minutes.KeyRejected(err) || usedUp
	if stopped {
		slog.Error("no job begins", "usage", usage, "error", err) // alert on this
	}
	return stopped
}

// resume does what remains to be done for a job, and decides what becomes of it. OnStatus comes after its upload.
func (in *instance) resume(ctx context.Context, name, meeting string, uploaded func()) {
	defer uploaded()
	result, err := in.client.Meetings.Resume(ctx, meeting, minutes.FromFile(in.path(name)), &minutes.ProcessOptions{
		Format: minutes.FormatMarkdown, OnStatus: func(*minutes.Meeting) { uploaded() },
	})
	if err == nil {
		in.finish(ctx, name, "done", 0, result.Minutes.Content)
		return
	}
	state := "queued"
	asked, _ := minutes.RetryAfter(err)
	after := min(max(asked, time.Minute), time.Hour) // some servers ask for years
	failed, _ := errors.AsType[*minutes.MeetingFailedError](err)
	switch {
	case ctx.Err() != nil:
		after = 0 // another instance continues
	case errors.Is(err, minutes.ErrNotFound): // a person has deleted the meeting, or the next case
		_ = in.create(ctx, name) // if this fails, the next try comes here again
	case failed != nil && (failed.Status == minutes.StatusTranscribeBlocked || in.stopped(ctx)): // for lack of quota
		_ = in.client.Meetings.Delete(ctx, meeting) // if this fails, the next try comes here again
		after = time.Hour
	case !minutes.Retryable(err) && !minutes.KeyRejected(err):
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
