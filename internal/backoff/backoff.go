// Package backoff answers the questions that every engine asks before a retry: did the
// failed attempt ever have a connection, and how long to wait?
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

// far bounds the waits that servers and callers can ask for, so that the sum of two
// never overflows. It is 31 bits of seconds, about 68 years.
const far = (1<<31 - 1) * time.Second

// Policy sets how often to retry a request, and how long to wait before each retry.
type Policy struct {
	Max              int // retries after the first attempt
	WaitMin, WaitMax time.Duration
}

// Wait draws the wait before retry n, from 1. It lies between WaitMin and the smaller
// of WaitMax and WaitMin·2ⁿ, so that clients that failed together do not return
// together. If WaitMin is 0, it grows from half a second. The wait is never shorter
// than asked, the server's Retry-After.
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

// RetryAfter returns how long a response asks to wait: a number of seconds, or until a
// date. It counts only on 429 and 503, and is 0 if the response asks for nothing.
func RetryAfter(status int, header http.Header) time.Duration {
	if status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return 0
	}
	value := header.Get("Retry-After")
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err == nil || errors.Is(err, strconv.ErrRange) { // out of range, it is the largest number
		return time.Duration(seconds) * time.Second
	}
	at, _ := http.ParseTime(value) // if it is no date, the zero time, which has passed
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

// Left returns how much time ctx has left: 0 if it is done.
func Left(ctx context.Context) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return math.MaxInt64
}

// Causes lists errs and, if ctx is done, its error and its cause, each once. After a
// context.WithCancelCause a transport returns only the cause, which is not
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
