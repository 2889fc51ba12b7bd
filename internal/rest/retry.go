package rest

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/failure"
)

// MaxRetryAfter is the longest Retry-After that the Client obeys. If the service asks for more, the
// caller gets the response.
const MaxRetryAfter = time.Minute

// notSent is why there was no attempt: the wait for its turn has failed, there is no API key, or
// the caller has called it off.
type notSent struct{ error }

var errCalledOff = errors.New("canceled before it was sent")

// checkRetry notes how an attempt ended, decides whether another one follows, and reports the
// attempt to the observer. It returns an error if a retry was due, but ctx is done or there is no key.
func (c *Client) checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	k := callOf(ctx)
	if unsent, ok := errors.AsType[notSent](err); ok {
		k.cannotGoOn(unsent.error)
		if errors.Is(unsent.error, ErrPaused) {
			k.response.RetryAfter = c.Throttle.Left(k.Background)
		}
		return false, nil
	}
	a := k.attempt
	a.Err = notCanceled(ctx, c.Mask.Err(err))
	k.failure = a.Err
	k.noteEffect(err)
	// The next attempt waits for backoff, while the pause of the link limit goes on. So it waits for
	// the longer of the two.
	longest := max(longestDelay(a.Number-1, RetryAfter(resp)), c.Throttle.Left(k.Background))
	useful := !k.Once && k.worthRetrying(resp, err)
	if useful {
		k.firstFailure = cmp.Or(k.firstFailure, time.Now())
		useful = k.hasRetries(c.MaxRetries)
	}
	newKey, keyErr := c.newKey(ctx, k)
	if newKey {
		useful = true
		longest = max(0, c.Throttle.Left(k.Background))
	}
	if useful && ctx.Err() == nil && !tooLate(ctx, longest) { // else this outcome says more than DeadlineExceeded would
		a.WillRetry = true
		a.RetryIn = longest
	}
	if c.Observe != nil {
		c.Observe(ctx, *a)
	}
	switch {
	case keyErr != nil:
		k.cannotGoOn(keyErr)
		return false, keyErr
	case useful && !a.WillRetry:
		// A retry was due, but ctx is done, or its deadline is too near. In the latter case, the caller
		// gets the response or the error of this attempt.
		return false, ctx.Err()
	}
	return a.WillRetry, nil
}

// cannotGoOn notes why there is no attempt with the next key, or why an attempt was not sent. It
// drops a 401, which concerned an earlier key. Other responses stay.
func (k *call) cannotGoOn(why error) {
	k.failure = Join(k.failure, why)
	if k.response.Status == http.StatusUnauthorized {
		k.response = Response{Request: &k.Request, MayHaveTakenEffect: k.response.MayHaveTakenEffect}
	}
}

// backoff returns the wait before a retry. After a 401, there is a new key, which need not wait.
func backoff(_, _ time.Duration, retry int, resp *http.Response) time.Duration {
	if resp != nil && resp.StatusCode == http.StatusUnauthorized {
		return 0
	}
	return Delay(retry, RetryAfter(resp))
}

// noteEffect notes whether the service may have carried out the request, after an attempt that
// ended with err or a response.
func (k *call) noteEffect(err error) {
	if k.attempt.Status/100 == 4 || k.neverSent(err) { // a 4xx is a rejection, so nothing was done
		return
	}
	k.response.MayHaveTakenEffect = true
	// Without a response to this attempt, k has that of an earlier one. A 4xx there would say that
	// nothing was done.
	if k.attempt.Status == 0 && k.response.Status/100 == 4 {
		k.response = Response{Request: &k.Request, MayHaveTakenEffect: true}
	}
}

// hasRetries reports whether the call has retries left, of maxRetries or because of its Patience.
func (k *call) hasRetries(maxRetries int) bool {
	patient := maxRetries > 0 && time.Since(k.firstFailure) < k.Patience
	return k.attempts <= maxRetries || patient
}

// neverSent reports whether the server cannot have received the last attempt, which ended with err.
func (k *call) neverSent(err error) bool { return k.unconnected || NeverSent(err) }

// worthRetrying reports whether another attempt is safe and may succeed, after one that ended with
// resp or err.
func (k *call) worthRetrying(resp *http.Response, err error) bool {
	kind := KindOf(k.attempt.Status, err)
	if err != nil && k.unconnected && kind == failure.Lost {
		kind = failure.NotConnected
	}
	retried := failure.Means[kind].Retried
	return (retried == failure.Always || retried == failure.IfSafe && k.Repeatable) && RetryAfter(resp) <= MaxRetryAfter
}

// KindOf returns the kind of a failure, from the status of the response, which is 0 if there was
// none, and from the error of the transport. A code of the service, which this package does not
// know, may say more.
func KindOf(status int, err error) failure.Kind {
	switch {
	case Misconfigured(err):
		return failure.Misconfigured
	case status == http.StatusTooManyRequests:
		return failure.RateLimited
	case status == http.StatusUnauthorized:
		return failure.KeyDoubted
	case slices.Contains([]int{500, 502, 503, 504}, status):
		return failure.ServerFailed
	case status == http.StatusRequestTimeout, status >= 500:
		return failure.ServerUnsure
	case NeverSent(err):
		return failure.NotConnected
	case err != nil, status == 0:
		return failure.Lost
	case status/100 == 2:
		return failure.Unreadable
	}
	return failure.ForeignStatus
}

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
	const first, most = 500 * time.Millisecond, 30 * time.Second
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
