package rest

import (
	"context"
	"time"
)

// Attempt is one attempt at a request, for observers. Only Request and Number are set while it is
// under way.
type Attempt struct {
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
func WithAttempt(ctx context.Context, a *Attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

// AttemptOf returns the attempt that ctx belongs to, or nil.
func AttemptOf(ctx context.Context) *Attempt {
	a, _ := ctx.Value(attemptKey{}).(*Attempt)
	return a
}
