package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Attempt is one attempt of a request, for observers. Only Request and Number are set while it
// is under way.
type Attempt struct {
	Request *Request
	Number  int // from 1

	Response  *Response     // nil if Err is not nil; an observer must not change or keep it
	Status    int           // of the response, even if its body broke off; 0 if there was none
	Err       error         // why there is no whole response; without secrets
	Took      time.Duration // from the beginning to the end
	WillRetry bool          // another attempt follows
	RetryIn   time.Duration // the longest wait before that attempt, since the wait is random
	Pause     time.Duration // of all requests, which this attempt started or extended; else 0
}

type attemptKey struct{}

// WithAttempt returns a context for an attempt.
func WithAttempt(ctx context.Context, a *Attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

// AttemptOf returns the request that ctx is an attempt of, and the attempt's number.
func AttemptOf(ctx context.Context) (r *Request, number int, ok bool) {
	a, ok := ctx.Value(attemptKey{}).(*Attempt)
	if !ok {
		return nil, 0, false
	}
	return a.Request, a.Number, true
}

// attempt sends the request and reads the whole response, both within the time limit. So a body
// that breaks off is a lost connection, and nothing after this link waits for the network.
type attempt struct {
	next    http.RoundTripper
	timeout time.Duration
}

func (l *attempt) RoundTrip(req *http.Request) (*http.Response, error) {
	k := callOf(req.Context())
	a := &Attempt{Request: &k.Request, Number: 1}
	if k.attempt != nil {
		a.Number = k.attempt.Number + 1
	}
	k.attempt = a
	began := time.Now()
	ctx, cancel := context.WithTimeout(WithAttempt(req.Context(), a), l.timeout)
	defer cancel()
	resp, err := l.next.RoundTrip(req.WithContext(ctx))
	if err == nil {
		err = k.read(resp)
	}
	a.Took = time.Since(began)
	canceled := req.Context().Err() != nil
	switch {
	case err == nil, !canceled && (a.Status == http.StatusTooManyRequests || a.Status >= 500): // the status decides, even if the body broke off
		a.Response = &k.response
		return resp, nil
	case !canceled && ctx.Err() != nil: // not context.DeadlineExceeded, which means the caller's deadline
		err = fmt.Errorf("no response within %v: %w", l.timeout, os.ErrDeadlineExceeded)
	case Permanent(err) && !isProxyError(err): // the text names no host
		err = fmt.Errorf("connecting to %s: %w", req.URL.Host, err)
	}
	return nil, err
}

// read reads the response into that of the call, and closes the body.
func (k *call) read(resp *http.Response) error {
	if resp == nil {
		return errors.New("the transport returned neither a response nor an error")
	}
	limit := k.MaxBody
	switch {
	case resp.StatusCode/100 != 2:
		limit = 256 << 10
	case limit == 0:
		limit = 4 << 20
	}
	r := &k.response
	r.Status, r.Header, r.RetryAfter, r.Limit = resp.StatusCode, resp.Header, retryAfterOf(resp), 0
	k.attempt.Status = r.Status
	if r.Header.Get("Location") != "" { // http.Client would follow it, or fail if it is not a URL
		resp.Header = r.Header.Clone()
		resp.Header.Del("Location")
	}
	var body bytes.Buffer
	var err error
	if resp.Body != nil && r.Status != http.StatusSwitchingProtocols { // whose body is a connection that no context ends
		body.Grow(int(min(max(resp.ContentLength, 0), limit)) + bytes.MinRead)
		_, err = body.ReadFrom(io.LimitReader(resp.Body, limit+1))
	}
	if resp.Body != nil {
		_ = resp.Body.Close() // read to the end, or to the limit
	}
	r.Body, resp.Body = body.Bytes(), http.NoBody
	if int64(len(r.Body)) > limit {
		r.Limit = limit
	}
	if err != nil {
		return fmt.Errorf("the response broke off: %w", err)
	}
	return nil
}
