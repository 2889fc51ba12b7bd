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

// Outcome is what happened in one attempt.
type Outcome struct {
	Status     int           // of the response, even if its body broke off; 0 if there was none
	Err        error         // nil if there is a whole response; its text may contain a secret
	Took       time.Duration // from the beginning to the end
	retryAfter time.Duration // from a whole response
	neverSent  bool          // the attempt certainly got no connection
}

// rateLimited reports whether the service's edge sent a 429. The service itself did nothing.
func (o Outcome) rateLimited() bool { return o.Err == nil && o.Status == http.StatusTooManyRequests }

// mayHaveTakenEffect reports whether the service may have carried out the request. It did not
// if the status is 4xx, even if the response broke off after that.
func (o Outcome) mayHaveTakenEffect() bool { return !o.neverSent && o.Status/100 != 4 }

// attempt sends the request once and reads the whole response, within the attempt's
// time limit. A response that breaks off counts as a lost connection.
func (k *call) attempt(req *http.Request) (resp *http.Response, o Outcome) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(WithAttempt(k.ctx, k.current), k.client.Timeout)
	defer cancel()
	// Trace the connection if it matters whether the request may have arrived: a request that
	// is not repeatable must not be retried then, and a DELETE whose retry gets a 404 succeeded.
	var conn *backoff.Conn
	if !k.repeatable() || k.Route.Method == http.MethodDelete {
		conn = new(backoff.Conn)
		ctx = conn.Trace(ctx)
	}
	attempt := req.WithContext(ctx)
	attempt.Header = k.header()
	resp, o.Err = backoff.RoundTrip(k.client.Transport, attempt)
	if o.Err != nil {
		o.neverSent = conn != nil && conn.NeverMade(o.Err)
	} else {
		o.Status = resp.StatusCode
		k.RetryAfter = backoff.RetryAfter(resp.StatusCode, resp.Header)
		o.Err = k.read(resp, cmp.Or(k.in.MaxResponse, 4<<20))
	}
	switch {
	case o.Err == nil, k.ctx.Err() == nil && (o.Status == http.StatusTooManyRequests || o.Status >= 500):
		o.Err, o.retryAfter = nil, k.RetryAfter // the status decides, even if the body broke off
	case ctx.Err() != nil && k.ctx.Err() == nil: // not context.DeadlineExceeded, which means the caller's deadline
		o.Err = fmt.Errorf("no response within %v: %w", k.client.Timeout, os.ErrDeadlineExceeded)
	}
	o.Took = time.Since(began)
	return resp, o
}

var jsonType = []string{"application/json"}

// header returns a new header for each attempt, because a transport may still read the header
// of an attempt that has ended.
func (k *call) header() http.Header {
	h := http.Header{"Authorization": k.client.Authorization, "User-Agent": k.client.UserAgent, "Accept": jsonType}
	if k.in.Body != nil {
		h["Content-Type"] = jsonType
	}
	return h
}

// AttemptInfo identifies an attempt.
type AttemptInfo struct {
	Operation route.Operation
	ID        string // the meeting's id; "" if the path has none
	Number    int    // from 1
	Poll      bool   // made by the poller, which never retries
}

type attemptKey struct{}

// attemptContext is the context of an attempt. It saves an allocation over context.WithValue.
type attemptContext struct {
	context.Context
	info AttemptInfo
}

func (c *attemptContext) Value(key any) any {
	if key == (attemptKey{}) {
		return c.info
	}
	return c.Context.Value(key)
}

// WithAttempt returns a context for an attempt.
func WithAttempt(ctx context.Context, info AttemptInfo) context.Context {
	return &attemptContext{ctx, info}
}

// AttemptOf returns the attempt that ctx is for.
func AttemptOf(ctx context.Context) (info AttemptInfo, ok bool) {
	info, ok = ctx.Value(attemptKey{}).(AttemptInfo)
	return info, ok
}
