// Package upload sends one recording to storage: it requests an upload URL, makes the
// PUT, retries it, and checks whether the audio arrived if the response was lost. It sees
// the API through two methods; it knows HTTP and the errors of S3, but no Client.
//
//	Do       repeats the steps below until the audio is there or the upload failed
//	attempt  makes one PUT and returns its outcome   (attempt.go, body.go, response.go)
//	decide   decides what follows                    (decide.go)
//	wait     waits, checks whether the audio arrived, and gets a new URL
package upload

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/secret"
)

// API is what an upload needs from the service, for its meeting.
type API interface {
	// UploadURL requests a URL to PUT the recording to, which is valid for so long.
	UploadURL(ctx context.Context) (target *url.URL, valid time.Duration, err error)
	// HasAudio reports whether the meeting has audio. It waits until the meeting may be
	// polled: up to pollInterval after another poll, at once after UploadURL.
	HasAudio(ctx context.Context) (bool, error)
}

// pollInterval is the minimum time between two polls of a meeting.
const pollInterval = 30 * time.Second

// Upload is the upload of one recording.
type Upload struct {
	API        API
	Recording  Recording
	WithoutMD5 bool                    // never send the header Content-MD5
	Shared     bool                    // other workers may upload to the meeting: their audio is as good
	Progress   func(sent, total int64) // called after each part that was handed over; may be nil

	Transport http.RoundTripper
	UserAgent []string
	Mask      secret.Mask // hides secrets in errors; those of the URL are added
	Timeouts  Timeouts
	Retries   backoff.Policy
	Begin     func(ctx context.Context, number int) (context.Context, error)       // returns the context of an attempt; an error fails the attempt
	Observe   func(ctx context.Context, o Outcome, retry bool, wait time.Duration) // called after each attempt

	target    *url.URL
	expires   time.Time   // of target
	mask      secret.Mask // Mask and the secrets of target
	header    http.Header // of the next attempt
	past      history
	nextCheck time.Time // HasAudio would wait until then
}

// Failure is an upload that failed.
type Failure struct {
	Response          // the last that any attempt received; StatusCode is 0 if there was none
	Unstarted bool    // there was no upload URL: Causes are the API's errors
	Retryable bool    // another upload may succeed later
	Causes    []error // why the last attempt got no response; then why a check or the API failed
}

// ErrPartialAudio is among the Causes if the meeting has audio that is not the whole recording.
var ErrPartialAudio = errors.New("the meeting has audio, but no attempt handed over the whole recording")

// Do uploads the recording. It returns nil if the audio is there. It returns soon after ctx
// has ended, even if Recording.Audio or Progress blocks.
func (u *Upload) Do(ctx context.Context) *Failure {
	u.past, u.mask = history{retries: u.Retries.Max, shared: u.Shared}, u.Mask
	u.header = http.Header{"Content-Type": {u.Recording.ContentType}, "User-Agent": u.UserAgent, "Expect": {"100-continue"}}
	d, f := decision{retry: true, newURL: true}, &Failure{Unstarted: true}
	for {
		if retry, failure := u.wait(ctx, d, f); !retry {
			return failure
		}
		if err := u.addMD5(ctx); err != nil {
			return &Failure{Causes: backoff.Causes(ctx, err)}
		}
		attemptCtx, err := u.Begin(ctx, u.past.attempts+1)
		o := Outcome{Err: err, Target: u.target, Size: u.Recording.Size, urlLeft: time.Until(u.expires)}
		if err == nil {
			o = u.attempt(attemptCtx)
		}
		wait := u.Retries.Wait(u.past.attempts+1, min(o.RetryAfter, backoff.Longest))
		o.noTime = ctx.Err() != nil || !backoff.Outlives(ctx, wait)
		d, u.past = decide(u.past, o, wait)
		u.Observe(attemptCtx, o, d.retry, d.wait)
		if d.stored {
			return nil
		}
		u.header.Del(o.without)
		u.WithoutMD5 = u.WithoutMD5 || o.without == "Content-Md5"
		f = &Failure{Response: f.Response, Retryable: d.retryable}
		if o.StatusCode != 0 {
			f.Response = o.Response
		}
		if o.Err != nil {
			f.Causes = []error{o.Err}
		}
	}
}

// wait does what d says before the next attempt. If retry is false the upload is over, and
// failure is nil if a check found the audio. f is the failure as far as it is known.
func (u *Upload) wait(ctx context.Context, d decision, f *Failure) (retry bool, failure *Failure) {
	_ = backoff.Sleep(ctx, d.wait) // ctx is checked next
	if ctx.Err() != nil && u.past.attempts > 0 {
		f.Causes = backoff.Causes(ctx, f.Causes...)
		return false, f
	}
	over, failure := u.check(ctx, d.checks, f)
	if over || !d.newURL {
		return !over && d.retry, failure
	}
	if err := u.renew(ctx); err != nil { // perhaps because the meeting has audio
		f.Causes = append(f.Causes, err)
		_, failure = u.check(ctx, u.past.checks(), f)
		return false, failure
	}
	return true, nil
}

// check checks up to n times whether the audio arrived. If it did, or if a check fails, the
// upload is over.
func (u *Upload) check(ctx context.Context, n int, f *Failure) (over bool, failure *Failure) {
	for range n {
		if !backoff.Outlives(ctx, time.Until(u.nextCheck)) {
			break // ctx would end before the check
		}
		found, err := u.API.HasAudio(ctx)
		u.nextCheck = time.Now().Add(pollInterval)
		switch {
		case found && (u.past.sentAll || u.Shared):
			return true, nil
		case found:
			err = ErrPartialAudio
		}
		if err != nil {
			f.Causes = append(f.Causes, err)
			return true, f
		}
	}
	return false, f
}

// renew gets a new URL.
func (u *Upload) renew(ctx context.Context) error {
	sentAt := time.Now()
	target, valid, err := u.API.UploadURL(ctx)
	if err != nil {
		return err
	}
	u.target, u.mask, u.expires = target, u.Mask.WithQuery(target), sentAt.Add(valid)
	u.nextCheck, u.past.urlUsed = time.Time{}, false
	return nil
}
