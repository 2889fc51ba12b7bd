// Package backoff says how long to wait before a request is repeated, and waits.
package backoff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Longest is the longest Retry-After that is waited for.
const Longest = 60 * time.Second

// far bounds what a server or a caller can ask for, so that sums of two waits
// never overflow. It is some 68 years, or 31 bits of seconds.
const far = (1<<31 - 1) * time.Second

// Policy says how often to repeat a request, and how long to wait before.
type Policy struct {
	Max              int // repeats after the first attempt
	WaitMin, WaitMax time.Duration
}

// Wait draws the wait before repeat n, from 1: anything between WaitMin and the
// smaller of WaitMax and WaitMin·2ⁿ, so that clients that failed together do not
// come back together. A WaitMin of 0 grows from half a second. Where the server
// asked for a wait, it is somewhat longer than asked.
func (p Policy) Wait(n int, asked time.Duration) time.Duration {
	most := min(p.WaitMax, far)
	top := cmp.Or(p.WaitMin, time.Second/2)
	for ; n > 0 && top < most; n-- {
		top *= 2
	}
	top = max(min(top, most), p.WaitMin)
	wait := p.WaitMin + rand.N(top-p.WaitMin+1)
	return max(wait, asked+rand.N(min(asked, p.WaitMin)+1))
}

// RetryAfter is how long a reply of this status asks to wait: seconds, or until
// a date. It counts on 429 and 503 alone, and is 0 where nothing is asked.
func RetryAfter(status int, header http.Header) time.Duration {
	if status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return 0
	}
	value := header.Get("Retry-After")
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err == nil || errors.Is(err, strconv.ErrRange) { // which has the most
		return time.Duration(seconds) * time.Second
	}
	at, _ := http.ParseTime(value) // of anything else the zero time, which has passed
	return min(max(0, time.Until(at)), far)
}

// Sleep waits for d, or for ctx to end.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err()
}

// Outlives reports whether ctx's deadline is further away than d.
func Outlives(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > d
}

// Causes lists errs and, where ctx is done, its error and its cause, each once.
// A transport returns the cause alone of a context made with
// context.WithCancelCause, and that is no context.Canceled.
func Causes(ctx context.Context, errs ...error) []error {
	for _, more := range []error{context.Cause(ctx), ctx.Err()} {
		if more != nil && !errors.Is(errors.Join(errs...), more) {
			errs = append(errs, more)
		}
	}
	return errs
}

// ContextError is the error of a context that is done, with its cause.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
