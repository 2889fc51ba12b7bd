// Package rest makes one request of the API. It waits for the rate limit, retries the
// request if that is safe, and returns a Response. It knows URLs, headers, bytes and the API
// key. The caller interprets the response.
package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-querystring/query"
	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/time/rate"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/internal/secret"
)

// Config configures a Client.
type Config struct {
	Base          string   // every path begins with a slash
	Authorization []string // the header's value
	UserAgent     []string // the header's value
	Routes        []route.Route
	Transport     http.RoundTripper
	Timeout       time.Duration // of one attempt
	Retries       backoff.Policy
	Rate          *rate.Limiter
	Mask          secret.Mask                    // hides secrets in errors
	Observe       func(context.Context, Attempt) // called after each attempt; may be nil
}

// Attempt describes an attempt that has ended, for an observer.
type Attempt struct {
	Outcome
	Retry    bool          // another attempt follows
	Wait     time.Duration // before that attempt
	Pause    time.Duration // the rate-limit pause that this attempt started or extended; else 0
	Response *Response     // of the request so far; the observer must not change or keep it
}

// Client makes requests to one service. Each request passes through these functions, in this
// order:
//
//	Do         builds the request
//	wait       waits for the end of a rate-limit pause, then for the rate limit
//	RoundTrip  makes one attempt (attempt.go) over the caller's transport
//	checkRetry decides whether another attempt follows, and when (decide.go)
type Client struct {
	Config
	base         *url.URL
	prepareRetry retryablehttp.PrepareRetry // calls wait
	pause        pause
}

// New returns a Client. It does no I/O.
func New(cfg Config) *Client {
	c := &Client{Config: cfg}
	c.base, _ = url.Parse(cfg.Base)                                                        // the caller has checked it
	c.prepareRetry = func(req *http.Request) error { return c.wait(req.Context(), false) } // polls are not retried
	return c
}

// Request is one request of an operation.
type Request struct {
	Operation     route.Operation
	Route         *route.Route // for an operation outside the table, with an escaped path; else nil
	ID            string       // the meeting's id; "" if the path has none
	Query         any          // a struct for go-querystring, url.Values or nil
	Body          any          // for encoding/json, or nil
	MaxResponse   int64        // how many bytes of a 2xx response to read; 0 means 4 MiB
	HasExternalID bool         // the body has an external id, so the service recognizes a retry
	Once          bool         // this is a poll, which is never retried
	Wanted        func() bool  // called just before the request is sent; false cancels it; may be nil
}

// call is one request under way.
type call struct {
	Response
	in        Request
	client    *Client
	ctx       context.Context // the caller's
	url       url.URL
	req       retryablehttp.Request
	retryLoop retryablehttp.Client
	http      http.Client // of retryLoop
	current   AttemptInfo
	outcome   Outcome // of the current attempt
}

// Do makes one request. The caller must release the response.
func (c *Client) Do(ctx context.Context, in Request) *Response {
	k := &call{in: in, client: c, ctx: ctx, current: AttemptInfo{Operation: in.Operation, ID: in.ID, Poll: in.Once}}
	err := k.build()
	if err == nil {
		err = c.wait(ctx, in.Once)
	}
	if err == nil && in.Wanted != nil && !in.Wanted() {
		err = errors.New("canceled before it was sent")
	}
	if err == nil {
		_, err = k.retryLoop.Do(&k.req) // k has the response
	}
	k.end(err)
	return &k.Response
}

// build builds the request without its header, which each attempt sets. It escapes the id,
// so that the id is one segment of the path.
func (k *call) build() error {
	k.Route = k.in.Route
	if k.Route == nil {
		k.Route = &k.client.Routes[slices.IndexFunc(k.client.Routes, func(r route.Route) bool { return r.Operation == k.in.Operation })]
	}
	before, after, _ := strings.Cut(k.Route.Path, route.Param)
	k.Path = before + url.PathEscape(k.in.ID) + after
	path, err := url.PathUnescape(k.Path)
	if err != nil {
		return err
	}
	values, ok := k.in.Query.(url.Values)
	if !ok && k.in.Query != nil {
		if values, err = query.Values(k.in.Query); err != nil {
			return err
		}
	}
	base := k.client.base
	k.url = url.URL{Scheme: base.Scheme, Host: base.Host, Path: base.Path + path, RawPath: base.EscapedPath() + k.Path, RawQuery: values.Encode()}
	req := &http.Request{Method: k.Route.Method, URL: &k.url, Header: noHeader, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	k.req.Request = req.WithContext(k.ctx)
	k.http.Transport = k
	k.retryLoop = retryablehttp.Client{
		HTTPClient:   &k.http,
		RetryMax:     k.client.Retries.Max,
		CheckRetry:   k.checkRetry,
		Backoff:      func(wait, _ time.Duration, _ int, _ *http.Response) time.Duration { return wait }, // RetryWaitMin
		PrepareRetry: k.client.prepareRetry,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	if k.in.Body == nil {
		return nil
	}
	body, err := json.Marshal(k.in.Body)
	if err != nil {
		return err
	}
	return k.req.SetBody(body)
}

// noHeader stays empty. It saves a copy: net/http copies a request whose Header is nil.
var noHeader = make(http.Header)

// wait waits until a request may be sent: for the end of a rate-limit pause, then for
// the rate limit. If the context's deadline is earlier, it returns DeadlineExceeded at
// once. This wait does not count against an attempt's time limit.
func (c *Client) wait(ctx context.Context, poll bool) error {
	for {
		if err := c.pause.wait(ctx, poll); err != nil {
			return err
		}
		err := c.Rate.Wait(ctx)
		if err != nil && ctx.Err() == nil { // the limiter's error is only a text (golang/go#54541)
			err = fmt.Errorf("the rate limit outlasts the context's deadline: %w", context.DeadlineExceeded)
		}
		if err != nil || c.pause.left() <= 0 { // a 429 may have arrived meanwhile
			return err
		}
	}
}

// RoundTrip makes one attempt: the call is the transport of go-retryablehttp. The call has no
// method CloseIdleConnections, since go-retryablehttp would call it after a failed request and
// so close the connections of all requests.
func (k *call) RoundTrip(req *http.Request) (resp *http.Response, _ error) {
	k.current.Number++
	if resp, k.outcome = k.attempt(req); k.outcome.Err != nil {
		return nil, k.outcome.Err
	}
	return resp, nil
}

// checkRetry decides, after each attempt, whether to retry. It also starts the rate-limit pause
// and reports the attempt to the observer.
func (k *call) checkRetry(_ context.Context, _ *http.Response, err error) (bool, error) {
	k.outcome.Err = err
	o, c := k.outcome, k.client
	k.MayHaveTakenEffect = k.MayHaveTakenEffect || o.mayHaveTakenEffect()
	now := circumstances{
		repeatable: k.repeatable(),
		polledPage: k.in.Once && k.Route.Operation == route.MeetingsList,
		wait:       c.Retries.Wait(k.current.Number, o.retryAfter),
		pauseLeft:  c.pause.left(),
		timeLeft:   backoff.Left(k.ctx),
	}
	if !k.in.Once {
		now.retriesLeft = c.Retries.Max + 1 - k.current.Number
	}
	d := decide(o, now)
	k.retryLoop.RetryWaitMin = d.wait
	d.pause = c.pause.ended(o, d.pause)
	if c.Observe != nil {
		c.Observe(WithAttempt(k.ctx, k.current), Attempt{o, d.retry, d.wait, d.pause, &k.Response})
	}
	return d.retry, nil
}

// end sets the Causes of a request that failed. If err prevented a retry, the error of the last
// attempt is a cause, too.
func (k *call) end(err error) {
	var causes []error
	if paused, ok := errors.AsType[pausedError](err); ok {
		k.RetryAfter, k.Paused = time.Duration(paused), true
	}
	if last := k.outcome.Err; last != nil && !errors.Is(err, last) {
		causes = append(causes, k.client.Mask.Err(last))
	}
	if err != nil {
		causes = append(causes, k.client.Mask.Err(err))
	}
	if err != nil || k.outcome.worthRetrying(k.repeatable()) { // the context may have prevented a retry
		k.Causes = backoff.Causes(k.ctx, causes...)
	}
}
