package rest

import (
	"context"
	"time"
)

// AttemptReport is what observers and transports learn about an attempt at a request. Only Request and
// Number are set while it is under way.
type AttemptReport struct {
	Request *Request
	Number  int // from 1

	Response  *Response     // nil if Err is not nil; an observer must not change or keep it
	Status    int           // of the response, even if its body broke off; 0 if there was none
	Err       error         // why there is no whole response; without secrets
	Took      time.Duration // from the beginning to the end
	WillRetry bool          // another attempt is planned
	RetryIn   time.Duration // the longest wait before that attempt, unless others go first
	Pause     time.Duration // of all requests, which this attempt started or extended; else 0
}

type attemptKey struct{}

// WithAttempt returns a context for an attempt.
func WithAttempt(ctx context.Context, a *AttemptReport) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

// AttemptOf returns the attempt that ctx belongs to, or nil.
func AttemptOf(ctx context.Context) *AttemptReport {
	a, _ := ctx.Value(attemptKey{}).(*AttemptReport)
	return a
}
