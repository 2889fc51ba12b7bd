// Package upload sends one recording to storage. It requests an upload URL, sends the recording with a PUT,
// retries a PUT that failed, and finds out whether the audio arrived although the response was lost. It sees
// the API through two methods and knows HTTP and the errors of S3, but no Client and no Meeting.
//
//	Do       repeats the steps below until the audio is there or the upload has failed  (upload.go)
//	attempt  makes one PUT and returns its outcome                 (attempt.go, body.go, response.go)
//	decide   decides what follows                                                      (decide.go)
//	wait     waits, checks whether the audio arrived, and gets a new URL                (upload.go)
package upload

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/secret"
)

// API is what an upload needs from the service, for its meeting.
type API interface {
	// UploadURL requests a URL to PUT the recording to. The URL is valid for so long.
	UploadURL(ctx context.Context) (target *url.URL, valid time.Duration, err error)
	// HasAudio reports whether the meeting has audio. It waits until the meeting may be polled: for up to
	// 30 seconds after another poll, but not after a request for an upload URL.
	HasAudio(ctx context.Context) (bool, error)
}

// pollInterval is the minimum time between two polls of a meeting.
const pollInterval = 30 * time.Second

// Upload is the upload of one recording.
type Upload struct {
	API        API
	Recording  Recording
	ContentMD5 bool                    // send the header Content-MD5
	Shared     bool                    // other workers may upload to the meeting: their audio is as good
	Progress   func(sent, total int64) // called after each part that was handed over; may be nil

	Transport http.RoundTripper
	UserAgent []string
	Mask      secret.Mask // secrets to keep out of errors; those of the URL are added
	Timeouts  Timeouts
	Retries   backoff.Policy
	Begin     func(ctx context.Context, number int) context.Context // returns the context for an attempt
	Observe   func(context.Context, Attempt)                        // called after each attempt; may be nil

	target    *url.URL
	mask      secret.Mask // Mask and the secrets of target
	expires   time.Time   // of target
	header    http.Header // of the next attempt
	past      history
	last      Response  // the last that any attempt received
	nextCheck time.Time // HasAudio would wait until then
}

// Attempt describes an attempt that has ended.
type Attempt struct {
	Response
	Target  *url.URL // a secret
	Err     error    // why there was no response
	Stalled bool     // one of the Timeouts was over
	Sent    int64    // bytes that were handed over, of Size
	Size    int64
	Took    time.Duration
	Retry   bool          // another attempt follows, unless the audio turns out to have arrived
	Wait    time.Duration // before the checks and the retry
}

// Failure is an upload that failed.
type Failure struct {
	Response          // the last that any attempt received; StatusCode is 0 if there was none
	Unstarted bool    // there was no upload URL: Causes are the API's errors
	Retryable bool    // another upload may succeed later
	Causes    []error // why the last attempt failed, if there was no response, and then the checks or the API
}

// ErrPartialAudio is a cause of a Failure: the meeting has audio, but no attempt sent all of it.
var ErrPartialAudio = errors.New("the meeting has audio, but no attempt handed over the whole recording")

// Do uploads the recording. It returns nil if the audio is there. It returns soon after ctx has ended, even
// if Recording.Audio or Progress blocks.
func (u *Upload) Do(ctx context.Context) *Failure {
	u.past, u.mask = history{retries: u.Retries.Max, shared: u.Shared}, u.Mask
	u.header = http.Header{"Content-Type": {u.Recording.ContentType}, "User-Agent": u.UserAgent, "Expect": {"100-continue"}}
	d, f := decision{steps: []step{newURL}, lastChecks: u.past.lastChecks(), retry: true}, &Failure{Unstarted: true}
	if u.ContentMD5 {
		sum, err := u.digest(ctx)
		if err != nil {
			return &Failure{Causes: backoff.Causes(ctx, err)}
		}
		u.header.Set("Content-Md5", sum)
	}
	for {
		if retry, failure := u.wait(ctx, d, f); !retry {
			return failure
		}
		attemptCtx := u.Begin(ctx, u.past.attempts+1)
		o := u.attempt(attemptCtx)
		wait := u.Retries.Wait(u.past.attempts+1, min(o.RetryAfter, backoff.Longest))
		o.noTime = ctx.Err() != nil || !backoff.Outlives(ctx, wait)
		d, u.past = decide(u.past, o, wait)
		if u.Observe != nil {
			u.Observe(attemptCtx, Attempt{o.Response, u.target, o.err, o.stalled, o.sent, u.Recording.Size, o.took, d.retry, d.wait})
		}
		if d.stored {
			return nil
		}
		if o.StatusCode != 0 {
			u.last = o.Response
		}
		f = &Failure{Response: u.last, Retryable: d.retryable}
		if o.err != nil {
			f.Causes = []error{o.err}
		}
	}
}

// wait does what d says before the next attempt. Without retry, the upload is over: a check found the audio, or
// it failed. f is the failure as far as it is known.
func (u *Upload) wait(ctx context.Context, d decision, f *Failure) (retry bool, _ *Failure) {
	_ = backoff.Sleep(ctx, d.wait) // ctx is checked next
	if ctx.Err() != nil && u.past.attempts > 0 {
		f.Causes = backoff.Causes(ctx, f.Causes...)
		return false, f
	}
	if d.without != "" {
		u.header.Del(d.without)
	}
	for len(d.steps) > 0 {
		s := d.steps[0]
		d.steps = d.steps[1:]
		if s == newURL {
			if err := u.renew(ctx); err != nil {
				f.Causes = append(f.Causes, err)
				d.retry, d.steps = false, slices.Repeat([]step{check}, d.lastChecks)
			}
			continue
		}
		if !backoff.Outlives(ctx, time.Until(u.nextCheck)) {
			continue // ctx would end before the check
		}
		found, err := u.API.HasAudio(ctx)
		u.nextCheck = time.Now().Add(pollInterval)
		if found && !d.partial {
			return false, nil
		}
		if found {
			err = ErrPartialAudio
		}
		if err != nil {
			f.Causes = append(f.Causes, err)
			return false, f
		}
	}
	return d.retry, f
}

// renew gets a new URL. After that, the meeting may be polled at once.
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
