package rest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// outcome is what happened in one attempt.
type outcome struct {
	err        error         // nil if there is a whole response; may show a secret
	status     int           // of the response, even if its body broke off; 0 if there was none
	retryAfter time.Duration // which a whole response asks for
	neverSent  bool          // it certainly had no connection
	took       time.Duration
}

// rateLimited reports a 429. The service's edge rejected the request before the service
// did anything.
func (o outcome) rateLimited() bool { return o.err == nil && o.status == http.StatusTooManyRequests }

// mayHaveTakenEffect reports whether the service may have done what was asked. A 4xx
// took no effect, even if its body broke off.
func (o outcome) mayHaveTakenEffect() bool { return !o.neverSent && o.status/100 != 4 }

// attempt sends the request once and reads the whole response, within the attempt's
// time limit. A response that breaks off counts as a lost connection. No body is left
// open.
func (k *call) attempt(req *http.Request) (*http.Response, outcome) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(WithAttempt(req.Context(), k.info()), k.client.Timeout)
	defer cancel()
	// Trace the connection if the request must not be retried after the service may have
	// read it. Also for DELETE: a retry that gets a 404 succeeds if the first attempt may
	// have arrived.
	var conn *backoff.Conn
	if !k.repeatable() || k.Route.Method == http.MethodDelete {
		conn = new(backoff.Conn)
		ctx = conn.Trace(ctx)
	}
	attempt := req.WithContext(ctx)
	attempt.Header = k.header()
	resp, err := backoff.RoundTrip(k.client.Transport, attempt)
	o := outcome{neverSent: err != nil && conn != nil && conn.NeverMade(err)}
	if err == nil {
		o.status = resp.StatusCode
		k.failure.RetryAfter = backoff.RetryAfter(resp.StatusCode, resp.Header)
		err = k.failure.read(resp, cmp.Or(k.MaxResponse, 4<<20))
		// The status of a 429 or 5xx is enough, even if the body broke off.
		if req.Context().Err() == nil && (o.status == http.StatusTooManyRequests || o.status >= 500) {
			err = nil
		}
	}
	switch {
	case err == nil:
		o.retryAfter = k.failure.RetryAfter
	case ctx.Err() != nil && req.Context().Err() == nil: // not DeadlineExceeded, which is the caller's context
		err = fmt.Errorf("no response within %v: %w", k.client.Timeout, os.ErrDeadlineExceeded)
	}
	if o.err = err; err != nil {
		resp = nil
	}
	o.took = time.Since(began)
	return resp, o
}

// AttemptInfo identifies an attempt.
type AttemptInfo struct {
	Operation route.Operation
	ID        string // the meeting's id; "" if the path has none
	Number    int    // from 1
	Poll      bool   // made by the poller, which never retries
}

func (k *call) info() AttemptInfo { return AttemptInfo{k.Route.Operation, k.ID, k.number, k.Once} }

// attemptContext is the context of an attempt. It carries an AttemptInfo, as
// context.WithValue would.
type attemptContext struct {
	context.Context
	info AttemptInfo
}

type attemptKey struct{}

func (c *attemptContext) Value(key any) any {
	if key == (attemptKey{}) {
		return c.info
	}
	return c.Context.Value(key)
}

// WithAttempt returns the context of an attempt.
func WithAttempt(ctx context.Context, info AttemptInfo) context.Context {
	return &attemptContext{ctx, info}
}

// AttemptOf returns the attempt that a context belongs to.
func AttemptOf(ctx context.Context) (info AttemptInfo, ok bool) {
	info, ok = ctx.Value(attemptKey{}).(AttemptInfo)
	return info, ok
}

// Attempt describes an attempt that has ended.
type Attempt struct {
	Took     time.Duration
	Err      error         // nil if there was a response; may show a secret
	Retry    bool          // another attempt follows
	Wait     time.Duration // before another attempt; set even if Retry is false
	Pause    time.Duration // of all requests, begun by this attempt; 0 if none, or if a longer one was running
	*Failure               // of all attempts so far; must not be changed
}
