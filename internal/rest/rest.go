// Package rest makes one request of the API: it waits for its turn, repeats what
// is safe to repeat, and returns a reply or a failure. It knows URLs, headers,
// bytes and the API key. What a reply means is its caller's to say.
package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-querystring/query"
	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/time/rate"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/roundtrip"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/internal/secret"
)

// Config is what a Client is made from.
type Config struct {
	Base          string   // every path begins with a slash
	Authorization []string // the header's value
	UserAgent     []string // likewise
	Routes        []route.Route
	Transport     http.RoundTripper
	Timeout       time.Duration // of one attempt
	Retries       backoff.Policy
	Rate          *rate.Limiter
	Mask          secret.Mask                    // what must not show in an error
	Observe       func(context.Context, Attempt) // told of each attempt; may be nil
}

// Client makes requests to one service. A request passes these layers, from the
// caller inwards:
//
//	Do        builds the request                                    (rest.go)
//	limiter   holds it back in a cool-down, then paces it           (limiter.go)
//	retries   repeat what is safe to repeat, each past the limiter  (retry.go)
//	attempt   header, time limit, reading the reply                 (attempt.go, header.go)
//	transport the caller's
type Client struct {
	Config
	http *retryablehttp.Client

	mu    sync.Mutex
	until time.Time // end of the cool-down
}

// New returns a Client. It does no I/O.
func New(cfg Config) *Client {
	c := &Client{Config: cfg}
	c.http = &retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: c},
		RetryMax:     c.Retries.Max,
		CheckRetry:   ended, // which waits, too
		Backoff:      func(time.Duration, time.Duration, int, *http.Response) time.Duration { return 0 },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	return c
}

// Locate returns the route of a request and its URL without the query. An id is put
// in as one segment.
func (c *Client) Locate(in Request) (row *route.Route, address string) {
	row = in.Route
	if row == nil {
		row = &c.Routes[slices.IndexFunc(c.Routes, func(r route.Route) bool { return r.Operation == in.Operation })]
	}
	before, after, _ := strings.Cut(row.Path, route.Param)
	return row, c.Base + before + url.PathEscape(in.ID) + after
}

// Request is what an operation asks for.
type Request struct {
	Operation route.Operation
	Route     *route.Route // of an operation that is not in the table, its path escaped; else nil
	ID        string       // of the meeting, where the path holds one
	Query     any          // a struct for go-querystring, url.Values or nil
	Body      any          // for encoding/json, or nil
	MaxReply  int64        // how many bytes of a success are read; 0 means 4 MiB
	Known     bool         // the body carries an external id, by which a repeat is recognised
	Once      bool         // not repeated, however it fails
	Wanted    func() bool  // asked once it may go out; false: it is not sent. nil: it is
}

// Failure is a request that came to no success. Its Reply is the last one that
// any attempt received; Status is 0 where there was none.
type Failure struct {
	Reply
	Route *route.Route
	Path  string
	// RetryAfter is what the reply asked for, or what is left of the cool-down
	// that held the request back.
	RetryAfter time.Duration
	Cooling    bool    // a cool-down held the request back
	Acted      bool    // an attempt may have taken effect
	Causes     []error // what ended the request besides a reply, without secrets
}

// call is one request on its way through the layers. It travels as the context
// of its http.Request, which is how each layer finds it.
type call struct {
	context.Context // the caller's

	client *Client
	id     string
	limit  int64 // of a success
	once   bool
	again  bool // may be sent again after an attempt that may have taken effect

	// What is sent. Nothing of it changes once the first attempt has begun: one
	// that was abandoned may still be reading it.
	req retryablehttp.Request

	attempts atomic.Int32     // a transport may ask for it, and late
	began    time.Time        // the current attempt, where it is observed
	conn     *roundtrip.Conn  // of the current attempt; nil where it does not matter
	heard    int              // the status of its reply, whole or not; 0 where none came
	limited  io.LimitedReader // of its reply's body
	out      Failure          // what the attempts have come to so far
}

// Do makes one request. It returns a reply of 2xx, or a failure. Both are to be
// released when they have been read.
func (c *Client) Do(ctx context.Context, in Request) (*Reply, *Failure) {
	call, err := c.newCall(ctx, in)
	if err == nil {
		err = call.wait()
	}
	if err == nil && in.Wanted != nil && !in.Wanted() {
		err = errors.New("the request was not wanted any more when it might go out")
	}
	if err == nil {
		_, err = c.http.Do(&call.req) // the reply has been read
	}
	switch {
	case err != nil:
		call.out.Causes = backoff.Causes(ctx, append(call.out.Causes, c.Mask.Err(err))...)
	case call.out.Status/100 == 2:
		return &call.out.Reply, nil
	}
	return nil, &call.out
}

// noHeader is never written to. Without a header, net/http would copy the request.
var noHeader = make(http.Header)

// newCall builds the request. Its header is left to each attempt.
func (c *Client) newCall(ctx context.Context, in Request) (*call, error) {
	row, address := c.Locate(in)
	call := &call{
		Context: ctx,
		client:  c,
		id:      in.ID,
		limit:   cmp.Or(in.MaxReply, 4<<20),
		once:    in.Once,
		again:   row.Repeat == route.Always || row.Repeat == route.WithExternalID && in.Known,
		out:     Failure{Route: row, Path: address[len(c.Base):]},
	}
	target, err := url.Parse(address)
	if err != nil {
		return call, err
	}
	values, ready := in.Query.(url.Values)
	if in.Query != nil && !ready {
		values, err = query.Values(in.Query)
	}
	target.RawQuery = values.Encode()
	call.req.Request = (&http.Request{
		Method: row.Method, URL: target, Header: noHeader, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(call)
	if in.Body == nil || err != nil {
		return call, err
	}
	body, err := json.Marshal(in.Body)
	if err == nil {
		err = call.req.SetBody(body)
	}
	return call, err
}
