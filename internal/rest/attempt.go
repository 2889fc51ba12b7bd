package rest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Attempt is one attempt of a request, for observers. Only Request and Number are set while it is under way.
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

// attempt sends the request and reads the whole response, both within the time limit. So nothing after this link waits for
// the network. A body that breaks off is a lost connection, except that of a 429 or a 5xx, whose status says enough.
type attempt struct {
	next    http.RoundTripper
	timeout time.Duration
}

func (l *attempt) RoundTrip(req *http.Request) (*http.Response, error) {
	k := callOf(req.Context())
	k.attempts++
	a := &Attempt{Request: &k.Request, Number: k.attempts}
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
	}
	return nil, err
}

// read reads the response into that of the call, and closes the body.
func (k *call) read(resp *http.Response) error {
	if resp == nil {
		return errors.New("the transport returned neither a response nor an error")
	}
	r, most := &k.response, cmp.Or(k.MaxBody, 4<<20)
	k.attempt.Status = resp.StatusCode
	r.Status, r.Header, r.RetryAfter, r.Limit = resp.StatusCode, resp.Header, RetryAfter(resp), 0
	body := cmp.Or(k.Buffer, new(bytes.Buffer))
	body.Reset()
	stream := cmp.Or[io.ReadCloser](resp.Body, http.NoBody) // careless transports leave it out
	defer stream.Close()
	var err error
	if resp.StatusCode != http.StatusSwitchingProtocols { // whose body is a connection that no context ends
		body.Grow(int(min(max(resp.ContentLength, 0), most)) + bytes.MinRead)
		_, err = body.ReadFrom(io.LimitReader(stream, most+1))
	}
	if r.Body = body.Bytes(); int64(len(r.Body)) > most {
		r.Body, r.Limit = r.Body[:most], most
	}
	resp.Body = http.NoBody
	if r.Header.Get("Location") != "" { // http.Client would follow it, or fail if it is not a URL
		resp.Header = r.Header.Clone()
		resp.Header.Del("Location")
	}
	if err != nil {
		return fmt.Errorf("the response broke off: %w", err)
	}
	return nil
}
