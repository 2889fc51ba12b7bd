// Package backoff has what the engines share about attempts and retries: the default
// transports, whether a failed attempt had a connection, and how long to wait.
package backoff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Longest is the longest Retry-After that the Client waits out.
const Longest = 60 * time.Second

// far is the longest wait that a server or a caller can ask for, about 68 years. It prevents
// overflows.
const far = (1<<31 - 1) * time.Second

// Policy sets how often to retry a request, and how long to wait before each retry.
type Policy struct {
	Max              int // retries after the first attempt
	WaitMin, WaitMax time.Duration
}

// Wait returns a random wait before retry n, which counts from 1. It is between WaitMin and
// WaitMin·2ⁿ, but at most WaitMax, so that clients that failed together do not retry together.
// If WaitMin is 0, the bound is half a second·2ⁿ. The wait is at least asked, the server's
// Retry-After.
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

// RetryAfter returns the Retry-After of a response, which is a number of seconds or a date. It
// is 0 without one, and for every status except 429 and 503.
func RetryAfter(status int, header http.Header) time.Duration {
	if status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return 0
	}
	value := header.Get("Retry-After")
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err == nil || errors.Is(err, strconv.ErrRange) { // if out of range, seconds is the largest number
		return time.Duration(seconds) * time.Second
	}
	at, _ := http.ParseTime(value) // if it is not a date, at is the zero time, which has passed
	return min(max(0, time.Until(at)), far)
}

// Sleep waits for d, or until ctx is done.
func Sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	return ctx.Err()
}

// Left returns the time until the deadline of ctx. It returns 0 if ctx is done.
func Left(ctx context.Context) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return math.MaxInt64
}

// Causes returns errs. If ctx is done, it adds the error and the cause of ctx, unless errs has
// them. After context.WithCancelCause, a transport returns only the cause, which does not match
// context.Canceled.
func Causes(ctx context.Context, errs ...error) []error {
	for _, more := range []error{context.Cause(ctx), ctx.Err()} {
		if more != nil && !errors.Is(errors.Join(errs...), more) {
			errs = append(errs, more)
		}
	}
	return errs
}

// ContextError returns the error of a context that is done, with its cause.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
