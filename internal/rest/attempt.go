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
	Err        error         // nil if there is a whole response; may show a secret
	Took       time.Duration // from the beginning to the end
	retryAfter time.Duration // which a whole response asks for
	neverSent  bool          // it certainly had no connection
}

// rateLimited reports a 429. The service's edge rejected the request before the service
// did anything.
func (o Outcome) rateLimited() bool { return o.Err == nil && o.Status == http.StatusTooManyRequests }

// mayHaveTakenEffect reports whether the service may have done what was asked. A 4xx
// took no effect, even if its body broke off.
func (o Outcome) mayHaveTakenEffect() bool { return !o.neverSent && o.Status/100 != 4 }

// attempt sends the request once and reads the whole response, within the attempt's
// time limit. A response that breaks off counts as a lost connection.
func (k *call) attempt(req *http.Request) (resp *http.Response, o Outcome) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(WithAttempt(k.ctx, k.info()), k.client.Timeout)
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
		o.Err, o.retryAfter = nil, k.RetryAfter // the status is enough, even if the body broke off
	case ctx.Err() != nil && k.ctx.Err() == nil: // not DeadlineExceeded, which is the caller's context
		o.Err = fmt.Errorf("no response within %v: %w", k.client.Timeout, os.ErrDeadlineExceeded)
	}
	o.Took = time.Since(began)
	return resp, o
}

var jsonType = []string{"application/json"}

// header returns the header of an attempt. Each attempt has its own, because a transport
// may still read it after the attempt has ended.
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

func (k *call) info() AttemptInfo {
	return AttemptInfo{k.Route.Operation, k.in.ID, k.number, k.in.Once}
}

type attemptKey struct{}

// attemptContext is the context of an attempt. context.WithValue would cost an allocation more.
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

// WithAttempt returns the context of an attempt.
func WithAttempt(ctx context.Context, info AttemptInfo) context.Context {
	return &attemptContext{ctx, info}
}

// AttemptOf returns the attempt that a context belongs to.
func AttemptOf(ctx context.Context) (info AttemptInfo, ok bool) {
	info, ok = ctx.Value(attemptKey{}).(AttemptInfo)
	return info, ok
}
