// Package rest makes one request of the API. It waits for the rate limit, retries what
// is safe to retry, and returns a response or a failure. It knows URLs, headers, bytes
// and the API key. The caller decides what a response means.
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
	"sync"
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

// Client makes requests to one service. Each passes through these layers, in the order
// of this file:
//
//	Do         builds the request
//	wait       waits for the end of a rate-limit pause, then for the rate limit
//	checkRetry decides whether go-retryablehttp makes another attempt (decide.go)
//	RoundTrip  makes one attempt (attempt.go) over the caller's transport
type Client struct {
	Config

	mu          sync.Mutex
	pausedUntil time.Time
}

// New returns a Client. It does no I/O.
func New(cfg Config) *Client { return &Client{Config: cfg} }

// Request is one request of an operation.
type Request struct {
	Operation     route.Operation
	Route         *route.Route // of an operation that is not in the table, with its path escaped; else nil
	ID            string       // the meeting's id; "" if the path has none
	Query         any          // a struct for go-querystring, url.Values or nil
	Body          any          // for encoding/json, or nil
	MaxResponse   int64        // how many bytes of a 2xx response to read; 0 means 4 MiB
	HasExternalID bool         // the body holds an external id, so the service recognizes a retry
	Once          bool         // never retry the request; the poller sets it
	Wanted        func() bool  // called just before sending; if it returns false, nothing is sent; may be nil
}

// call is one request on its way through the layers.
type call struct {
	Request
	client    *Client
	retryLoop retryablehttp.Client
	http      http.Client
	req       retryablehttp.Request

	number   int      // of the current attempt, from 1
	outcome  outcome  // of the current attempt
	decision decision // after the current attempt
	failure  Failure  // of all attempts so far; if the last succeeds, Do returns its Response
}

// Do makes one request. It returns a 2xx response, or a failure. The caller must
// release it after reading it.
func (c *Client) Do(ctx context.Context, in Request) (*Response, *Failure) {
	call, err := c.newCall(ctx, in)
	if err == nil {
		err = call.wait(call.req.Request)
	}
	if err == nil && in.Wanted != nil && !in.Wanted() {
		err = errors.New("canceled before it was sent")
	}
	if err == nil {
		_, err = call.retryLoop.Do(&call.req) // call.failure keeps the response
	}
	if err == nil && call.failure.Status/100 == 2 {
		return &call.failure.Response, nil
	}
	return nil, call.fail(ctx, err)
}

// newCall builds the request except for its header, which each attempt sets.
func (c *Client) newCall(ctx context.Context, in Request) (*call, error) {
	row, address := c.Locate(in)
	in.Route = row
	k := &call{Request: in, client: c, failure: Failure{Route: row, Path: address[len(c.Base):]}}
	k.http.Transport = k
	k.retryLoop = retryablehttp.Client{
		HTTPClient:   &k.http,
		RetryMax:     c.Retries.Max,
		CheckRetry:   k.checkRetry,
		Backoff:      k.backoff,
		PrepareRetry: k.wait,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	target, err := url.Parse(address)
	if err != nil {
		return k, err
	}
	values, ok := in.Query.(url.Values)
	if !ok && in.Query != nil {
		if values, err = query.Values(in.Query); err != nil {
			return k, err
		}
	}
	target.RawQuery = values.Encode()
	req := &http.Request{Method: row.Method, URL: target, Header: noHeader, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	k.req.Request = req.WithContext(ctx)
	if in.Body == nil {
		return k, nil
	}
	body, err := json.Marshal(in.Body)
	if err != nil {
		return k, err
	}
	return k, k.req.SetBody(body)
}

// noHeader is never written to. net/http would copy a request whose Header is nil.
var noHeader = make(http.Header)

// Locate returns the route of a request and its URL without the query. The id is
// escaped, so that it is one segment of the path.
func (c *Client) Locate(in Request) (row *route.Route, address string) {
	row = in.Route
	if row == nil {
		row = &c.Routes[slices.IndexFunc(c.Routes, func(r route.Route) bool { return r.Operation == in.Operation })]
	}
	before, after, _ := strings.Cut(row.Path, route.Param)
	return row, c.Base + before + url.PathEscape(in.ID) + after
}

// wait waits until the request may be sent: for the end of a rate-limit pause, then
// for the rate limit. If the context's deadline is earlier, it returns
// DeadlineExceeded at once. This wait does not count against an attempt's time limit.
func (k *call) wait(req *http.Request) error {
	ctx := req.Context()
	for {
		for left := k.client.pauseLeft(); left > 0; left = k.client.pauseLeft() {
			if ctx.Err() == nil && !backoff.Outlives(ctx, left) {
				k.failure.RetryAfter, k.failure.Paused = left, true
				return fmt.Errorf("the rate-limit pause after a 429 outlasts the context's deadline: %w", context.DeadlineExceeded)
			}
			if err := backoff.Sleep(ctx, left); err != nil {
				return err
			}
		}
		err := k.client.Rate.Wait(ctx)
		if err != nil && ctx.Err() == nil { // the limiter's error is only a text (golang/go#54541)
			err = fmt.Errorf("the rate limit outlasts the context's deadline: %w", context.DeadlineExceeded)
		}
		if err != nil || k.client.pauseLeft() <= 0 { // a 429 may have arrived meanwhile
			return err
		}
	}
}

// checkRetry decides whether to retry, after each attempt. It reports the attempt to
// the observer and begins the rate-limit pause.
func (k *call) checkRetry(ctx context.Context, _ *http.Response, err error) (retry bool, _ error) {
	k.outcome.err = err
	k.failure.MayHaveTakenEffect = k.failure.MayHaveTakenEffect || k.outcome.mayHaveTakenEffect()
	k.decision = decide(k.facts(ctx))
	paused := time.Duration(0)
	if k.decision.pause {
		paused = k.client.pause(k.decision.wait)
	}
	if observe := k.client.Observe; observe != nil {
		observe(WithAttempt(ctx, k.info()), Attempt{k.outcome.took, err, k.decision.retry, k.decision.wait, paused, &k.failure})
	}
	if k.decision.stopped {
		return false, ctx.Err()
	}
	return k.decision.retry, nil
}

// backoff returns how long go-retryablehttp waits before the next attempt.
func (k *call) backoff(time.Duration, time.Duration, int, *http.Response) time.Duration {
	return k.decision.wait
}

// RoundTrip makes one attempt. The call is the transport of its own http.Client. It has
// no CloseIdleConnections: go-retryablehttp calls that after a failed request, and would
// close the connections of all requests.
func (k *call) RoundTrip(req *http.Request) (resp *http.Response, _ error) {
	k.number++
	resp, k.outcome = k.attempt(req)
	return resp, k.outcome.err
}

// fail returns the failure of a request that ended with err, or with a response that is
// not 2xx. If err prevented a retry, the error of the last attempt is a cause, too.
func (k *call) fail(ctx context.Context, err error) *Failure {
	if err == nil {
		return &k.failure
	}
	causes := []error{k.client.Mask.Err(err)}
	if last := k.outcome.err; last != nil && !errors.Is(err, last) {
		causes = []error{k.client.Mask.Err(last), causes[0]}
	}
	k.failure.Causes = backoff.Causes(ctx, causes...)
	return &k.failure
}
