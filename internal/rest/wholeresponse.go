package rest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// wholeResponse sends the request and reads the whole response, both within the timeout. So nothing
// after this link waits for the network. A body that breaks off is a lost connection, except that
// of a 429 or a 5xx, whose status says enough.
type wholeResponse struct {
	next     http.RoundTripper
	timeout  time.Duration
	timedOut error // if the timeout has passed
}

func (l *wholeResponse) RoundTrip(req *http.Request) (*http.Response, error) {
	k := callOf(req.Context())
	a := &AttemptReport{Request: &k.Request, Number: k.state.attempts + 1}
	k.attempt = a
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(WithAttempt(req.Context(), a), l.timeout, l.timedOut)
	defer cancel()
	var way *connecting
	if req.Method != http.MethodGet { // it does not matter whether a GET was sent
		way = new(connecting)
		ctx = way.trace(ctx)
	}
	resp, err := l.next.RoundTrip(k.unrepeated(req.WithContext(ctx)))
	k.unconnected = way != nil && way.failed()
	if _, ok := err.(notSent); ok { // the link credentials had no key
		return nil, err
	}
	if err == nil {
		err = k.read(resp)
	}
	a.Took = time.Since(began)
	callerLeft := req.Context().Err() != nil
	statusSuffices := a.Status == http.StatusTooManyRequests || a.Status >= 500
	switch {
	case err == nil, statusSuffices && !callerLeft:
		a.Response = &k.response
		return resp, nil
	case errors.Is(context.Cause(ctx), l.timedOut):
		err = l.timedOut
	}
	return nil, err
}

// unrepeated returns req in a form that http.Transport does not repeat by itself, because only checkRetry
// knows what may be repeated. http.Transport repeats a POST with the header Idempotency-Key if it has
// GetBody or no body.
func (k *call) unrepeated(req *http.Request) *http.Request {
	req.GetBody = nil
	if req.Body == nil && !k.Repeatable {
		req.Body = io.NopCloser(http.NoBody) // which http.Transport does not know to be empty
	}
	return req
}

// read reads the response into that of the call, and closes the body.
func (k *call) read(resp *http.Response) error {
	if resp == nil {
		return errors.New("the transport returned neither a response nor an error")
	}
	k.attempt.Status = resp.StatusCode
	r := &k.response
	r.Status = resp.StatusCode
	r.Header = resp.Header
	r.RetryAfter = RetryAfter(resp)
	err := k.readBody(resp)
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

// readBody reads the body up to MaxBody, and closes it.
func (k *call) readBody(resp *http.Response) error {
	stream := cmp.Or[io.ReadCloser](resp.Body, http.NoBody) // careless transports leave it out
	defer stream.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols { // whose body is a connection that no context ends
		stream = http.NoBody
	}
	most := cmp.Or(k.MaxBody, 4<<20)
	body := cmp.Or(k.Buffer, &k.buffer)
	body.Reset()
	body.Grow(int(min(max(resp.ContentLength, 0), most)) + bytes.MinRead)
	k.stream = io.LimitedReader{R: stream, N: most + 1}
	_, err := body.ReadFrom(&k.stream)
	k.response.Body = body.Bytes()
	k.response.CutAt = 0
	if int64(body.Len()) > most {
		k.response.Body = k.response.Body[:most]
		k.response.CutAt = most
	}
	return err
}
