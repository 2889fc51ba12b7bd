// Package rest makes one request of the API: it waits for its turn, repeats what
// is safe to repeat, and returns a reply or a failure. It knows URLs, headers,
// bytes and the API key. The caller decides what a reply means.
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
	Mask          secret.Mask                    // what must not show in an error
	Observe       func(context.Context, Attempt) // called after each attempt; may be nil
}

// Client makes requests to one service. A request passes through these layers:
//
//	Do        builds the request                                            (rest.go)
//	limiter   waits for the end of a cool-down, then for the rate limit     (limiter.go)
//	retries   are made if safe; each goes through the limiter again         (retry.go)
//	attempt   RoundTrip sets header and time limit, and reads the reply     (attempt.go, header.go)
//	transport is the caller's
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
		CheckRetry:   tryAgain, // waits, too, so that Backoff need not
		Backoff:      func(time.Duration, time.Duration, int, *http.Response) time.Duration { return 0 },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	return c
}

// Locate returns the route of a request and its URL without the query. The id is
// escaped, so that it is one segment.
func (c *Client) Locate(in Request) (row *route.Route, address string) {
	row = in.Route
	if row == nil {
		row = &c.Routes[slices.IndexFunc(c.Routes, func(r route.Route) bool { return r.Operation == in.Operation })]
	}
	before, after, _ := strings.Cut(row.Path, route.Param)
	return row, c.Base + before + url.PathEscape(in.ID) + after
}

// Request is one request of an operation.
type Request struct {
	Operation     route.Operation
	Route         *route.Route // if the operation is not in the table, its route with the path escaped; else nil
	ID            string       // the meeting's id; "" if the path holds none
	Query         any          // a struct for go-querystring, url.Values or nil
	Body          any          // for encoding/json, or nil
	MaxReply      int64        // how many bytes of a 2xx reply are read; 0 means 4 MiB
	HasExternalID bool         // the body holds an external id, so the service recognises a repeat
	Once          bool         // never repeat the request
	Wanted        func() bool  // called just before sending; if it returns false nothing is sent; nil means always send
}

// Failure is a request that did not succeed. Reply is the last reply to any of its
// attempts; Status is 0 if there was none.
type Failure struct {
	Reply
	Route *route.Route
	Path  string
	// RetryAfter is what the reply asked for, or what is left of the cool-down
	// that held the request back.
	RetryAfter time.Duration
	Cooling    bool    // a cool-down held the request back
	Acted      bool    // an attempt may have taken effect
	Causes     []error // what else ended the request, besides the reply; without secrets
}

// apiCall is one request on its way through the layers. It is the context of its
// http.Request: each layer finds it there.
type apiCall struct {
	context.Context // the caller's

	client     *Client
	id         string
	limit      int64 // how many bytes of a 2xx reply are read
	once       bool
	repeatable bool // may be sent again after an attempt that may have taken effect

	// req does not change after the first attempt has begun: a transport may read it
	// after an attempt has ended.
	req retryablehttp.Request

	attempts atomic.Int32     // begun so far; a transport may read it after the attempt has ended
	began    time.Time        // start of the current attempt; set only if Observe is
	conn     *roundtrip.Conn  // of the current attempt; nil if a lost connection needs no closer look
	status   int              // of the current attempt's reply, even if the body broke off; 0 if there was no reply
	limited  io.LimitedReader // reads the current attempt's reply
	outcome  Failure          // of the attempts so far; if they succeed, its Reply is returned
}

// Do makes one request. It returns a 2xx reply or a failure. The caller must release
// it after reading it.
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
	if err != nil {
		call.outcome.Causes = backoff.Causes(ctx, append(call.outcome.Causes, c.Mask.Err(err))...)
	} else if call.outcome.Status/100 == 2 {
		return &call.outcome.Reply, nil
	}
	return nil, &call.outcome // of err, or of a reply that is not 2xx
}

// noHeader is never written to. net/http would copy a request whose Header is nil.
var noHeader = make(http.Header)

// newCall builds the request but for its header, which each attempt makes.
func (c *Client) newCall(ctx context.Context, in Request) (*apiCall, error) {
	row, address := c.Locate(in)
	call := &apiCall{
		Context:    ctx,
		client:     c,
		id:         in.ID,
		limit:      cmp.Or(in.MaxReply, 4<<20),
		once:       in.Once,
		repeatable: row.Repeat == route.Always || row.Repeat == route.WithExternalID && in.HasExternalID,
		outcome:    Failure{Route: row, Path: address[len(c.Base):]},
	}
	target, err := url.Parse(address)
	if err != nil {
		return call, err
	}
	values, ready := in.Query.(url.Values)
	if in.Query != nil && !ready {
		if values, err = query.Values(in.Query); err != nil {
			return call, err
		}
	}
	target.RawQuery = values.Encode()
	call.req.Request = (&http.Request{
		Method: row.Method, URL: target, Header: noHeader, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(call)
	if in.Body == nil {
		return call, nil
	}
	body, err := json.Marshal(in.Body)
	if err != nil {
		return call, err
	}
	return call, call.req.SetBody(body)
}
