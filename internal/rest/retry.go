package rest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// MaxRetryAfter is the longest Retry-After that the Client obeys. If the service asks for more, the
// caller gets the response.
const MaxRetryAfter = time.Minute

// notSent is why there was no attempt: the wait for its turn has failed, there is no API key, or
// the caller has called it off.
type notSent struct{ error }

var errCalledOff = errors.New("canceled before it was sent")

// checkRetry is retryablehttp's CheckRetry: it takes the outcome of an attempt to decide, and reports
// the attempt to the observer. It returns an error if a retry is due, but ctx is done or there is no
// key.
func (c *Client) checkRetry(ctx context.Context, _ *http.Response, err error) (bool, error) {
	k := callOf(ctx)
	o := outcome{pause: c.Throttle.Left(k.Background)}
	unsent, isUnsent := errors.AsType[notSent](err)
	if isUnsent {
		o.unsent = true
		k.decide(o)
		k.failure = Join(k.failure, unsent.error)
		if errors.Is(unsent.error, ErrPaused) {
			k.response.RetryAfter = o.pause
		}
		return false, nil
	}
	a := k.attempt
	a.Err = notCanceled(ctx, c.Mask.Err(err))
	k.failure = a.Err
	o.status = a.Status
	o.err = err
	o.unconnected = k.unconnected
	if o.status != 0 {
		o.retryAfter = k.response.RetryAfter
	}
	key, keyErr := c.keyAfter401(ctx, k)
	o.key = key
	next := k.decide(o)
	if next.step == retry && ctx.Err() == nil { // otherwise this outcome says more than ctx.Err() would
		a.WillRetry = true
		a.RetryIn = next.within
	}
	if c.Observe != nil {
		c.Observe(ctx, *a)
	}
	switch {
	case keyErr != nil:
		k.failure = Join(k.failure, keyErr)
		return false, keyErr
	case next.step == stop || a.WillRetry:
		return a.WillRetry, nil
	}
	return false, ctx.Err() // nil if only the deadline is too near: then the caller gets this outcome
}

// decide decides what follows an attempt.
func (k *call) decide(o outcome) decision {
	k.next, k.state = decide(k.state, o, time.Now())
	if k.next.dropResponse {
		k.response = Response{Request: &k.Request}
	}
	k.response.MayHaveTakenEffect = k.state.mayHaveTakenEffect
	return k.next
}

// beforeRetry is retryablehttp's PrepareRetry: it waits. Its Backoff does not, because it cannot know
// the call if there was no response.
func beforeRetry(req *http.Request) error {
	return Sleep(req.Context(), callOf(req.Context()).next.delay())
}

// noBackoff is retryablehttp's Backoff: beforeRetry waits.
func noBackoff(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return 0 }

// DefaultMaxRetries makes a call that is safe to repeat survive any outage of 15 seconds, since its
// delays add up to 15.75 to 31.5 seconds. With one less, an eighth of the calls would fail in an
// outage of ten.
const DefaultMaxRetries = 6

// Delay returns the wait before retry n, from 0: retryAfter, and exponential backoff. It is random,
// so that clients that failed together do not retry together, but has at least half of its longest
// value, so that a call survives a short outage.
func Delay(n int, retryAfter time.Duration) time.Duration {
	half := longestDelay(n, 0) / 2
	return retryAfter + half + rand.N(half+1)
}

// longestDelay returns the longest value of Delay.
func longestDelay(n int, retryAfter time.Duration) time.Duration {
	const first = 500 * time.Millisecond
	const most = 30 * time.Second
	return retryAfter + min(first<<min(n, 6), most)
}

// RetryAfter returns the Retry-After of a response, which is a number of seconds or a date. A date is
// compared with the response's own Date, because this machine's clock may be wrong. RetryAfter is 0
// without the header, and for every status except 429 and 503.
func RetryAfter(resp *http.Response) time.Duration {
	if resp == nil {
		return 0
	}
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	value := resp.Header.Get("Retry-After")
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err == nil || errors.Is(err, strconv.ErrRange) { // if out of range, seconds is the largest number
		return time.Duration(seconds) * time.Second
	}
	at, _ := http.ParseTime(value) // if it is not a date, at is the zero time, which has passed
	now, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(0, at.Sub(now))
}
