// Package upload sends one recording to storage. It requests an upload URL, makes the PUT
// and retries it. If a response is lost, it checks whether the audio arrived. It knows
// HTTP and the errors of S3. It does not know the Client, and calls the API through an
// interface of two methods.
//
//	Do          makes attempts until the audio is stored or the upload has failed
//	requestURL  gets an upload URL
//	attempt     makes one PUT and returns its outcome    (attempt.go, body.go, response.go)
//	decide      decides what follows an attempt          (decide.go)
//	check       checks whether the audio arrived
package upload

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/secret"
)

// pollInterval is the time between two polls of a meeting.
const pollInterval = 30 * time.Second

// API calls the service, for the meeting of the upload.
type API interface {
	// UploadURL requests an upload URL. valid is how long the URL can be used.
	UploadURL(ctx context.Context) (target *url.URL, valid time.Duration, err error)
	// HasAudio polls the meeting and reports whether it has audio. HasAudio first waits until
	// pollInterval has passed since the last poll. The first call after UploadURL polls at once.
	HasAudio(ctx context.Context) (bool, error)
}

// Upload is the upload of one recording.
type Upload struct {
	API        API
	Recording  Recording
	WithoutMD5 bool                    // do not send the header Content-MD5
	Shared     bool                    // other workers may upload to the meeting: accept their audio
	Progress   func(sent, total int64) // called after each read of the recording; may be nil

	Transport http.RoundTripper
	UserAgent []string
	Mask      secret.Mask // hides secrets in errors
	Timeouts  Timeouts
	Retries   backoff.Policy
	// Begin is called before each attempt. It returns the context of the attempt. If Begin
	// returns an error, the attempt fails.
	Begin   func(ctx context.Context, number int) (context.Context, error)
	Observe func(ctx context.Context, o Outcome, retry bool, wait time.Duration) // called after each attempt

	target        *url.URL    // the upload URL; nil before the first
	expires       time.Time   // when target expires
	urlMask       secret.Mask // Mask, and the secrets of target
	md5           string      // the value of Content-MD5; empty until needed
	withoutExpect bool        // storage rejected the header Expect
	past          history
	nextPollAt    time.Time // when HasAudio will poll again; zero: at once
}

// Failure is an upload that failed.
type Failure struct {
	Response          // of the last Outcome that has one
	Host      string  // of storage; empty if there was no upload URL
	Retryable bool    // another upload may succeed later
	Causes    []error // the errors of the last attempt, of a check or the API, and of ctx, in this order
}

// Do uploads the recording. It returns nil once the audio is stored. It returns soon after
// ctx has ended, even if Recording.Audio or Progress blocks.
func (u *Upload) Do(ctx context.Context) *Failure {
	u.past = history{maxRetries: u.Retries.Max, shared: u.Shared}
	f := new(Failure)
	hasAudio, err := u.requestURL(ctx)
	for !hasAudio && err == nil {
		d := u.try(ctx, f)
		if d.done {
			return nil
		}
		if backoff.Sleep(ctx, d.wait) != nil {
			break
		}
		hasAudio, err = u.check(ctx, d.checks)
		if !hasAudio && err == nil && d.needsURL {
			hasAudio, err = u.requestURL(ctx)
		}
		if !d.retry {
			break
		}
	}
	if hasAudio {
		return nil
	}
	if err != nil {
		f.Causes = append(f.Causes, err)
	}
	f.Causes = backoff.Causes(ctx, f.Causes...)
	return f
}

// requestURL gets an upload URL. If the API returns none, requestURL checks whether an earlier
// attempt or another worker has uploaded audio.
func (u *Upload) requestURL(ctx context.Context) (hasAudio bool, err error) {
	sentAt := time.Now()
	target, valid, err := u.API.UploadURL(ctx)
	if err != nil {
		hasAudio, checkErr := u.check(ctx, u.past.checks())
		switch {
		case hasAudio:
			return true, nil
		case checkErr != nil:
			err = fmt.Errorf("%w; before that: %w", checkErr, err)
		}
		return false, err
	}
	u.target, u.urlMask, u.expires = target, u.Mask.WithQuery(target), sentAt.Add(valid)
	u.nextPollAt, u.past.urlMaybeUsedUp = time.Time{}, false
	return false, nil
}

// try makes an attempt, decides what follows, and updates f.
func (u *Upload) try(ctx context.Context, f *Failure) (d decision) {
	attemptCtx, err := u.Begin(ctx, u.past.attempts+1)
	o := Outcome{Err: err, Target: u.target, Size: u.Recording.Size, urlLeft: time.Until(u.expires)}
	if err == nil {
		o = u.attempt(attemptCtx)
	}
	wait := u.Retries.Wait(u.past.attempts+1, min(o.RetryAfter, backoff.Longest))
	d, u.past = decide(u.past, o, wait, backoff.Left(ctx))
	u.Observe(attemptCtx, o, d.retry, d.wait)
	u.withoutExpect = u.withoutExpect || o.rejectedHeader == "Expect"
	u.WithoutMD5 = u.WithoutMD5 || o.rejectedHeader == "Content-Md5"
	f.Host, f.Retryable, f.Causes = u.target.Host, d.retryable, nil
	if o.StatusCode != 0 {
		f.Response = o.Response
	}
	if o.Err != nil {
		f.Causes = []error{o.Err}
	}
	return d
}
