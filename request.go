package minutes

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-querystring/query"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/internal/secret"
	"github.com/meeting-minutes/minutes-go/internal/storage"
)

// Every operation takes this one path. Its layers, from the caller inwards:
//
//	do        checks the id, builds the request, decodes the reply     (request.go)
//	pace      holds back during a cool-down, then paces                (pace.go)
//	retries   repeats what is safe to repeat, through pace each time   (retry.go)
//	wire      one try: header, time limit, reading the reply           (wire.go)
//	transport the caller's, or a pooled one
//
// Uploads to storage take another one (upload.go).

// request is what an operation asks for.
type request struct {
	op         route.Operation
	id         string // of the meeting, where the path holds one
	query      any    // a struct for go-querystring, or nil
	body       any    // for encoding/json, or nil
	repeatable bool   // the caller's reference makes a repeat harmless
	once       bool   // not repeated, however it fails
}

// reply is what an operation decodes into. missing names the first field
// without which the reply cannot be used, or returns "".
type reply[T any] interface {
	*T
	missing() string
}

// boundRoute is a row of the route table, its path split at the parameter.
type boundRoute struct {
	route.Route
	before, after string
}

func bind(row route.Route) boundRoute {
	before, after, _ := strings.Cut(row.Path, route.Param)
	return boundRoute{row, before, after}
}

func bindRoutes() map[route.Operation]boundRoute {
	routes := make(map[route.Operation]boundRoute, len(route.Table))
	for _, row := range route.Table {
		routes[row.Operation] = bind(row)
	}
	return routes
}

// core is the part of a Client that its services share.
type core struct {
	base     url.URL
	routes   map[route.Operation]boundRoute
	api      *retryablehttp.Client
	storage  http.RoundTripper
	template *http.Request // copied for each request
	retries  retries
	pace     pace

	uploadLimits storage.Limits
	poller       *poller
	log          *slog.Logger // nil: none

	// Header values that never change are made once. What is secret stands
	// behind a pointer, since fmt prints the address of one that it finds in a
	// struct, also under a verb that does not fit.
	userAgent     []string
	authorization *[]string
	mask          *secret.Mask
}

func newCore(base url.URL, apiKey string, cfg *config) *core {
	transport := cfg.http.Transport
	if transport == nil {
		transport = sharedTransport()
	}
	timeout := cfg.http.Timeout
	if timeout == 0 {
		timeout = defaultTryTimeout
	}
	c := &core{
		base:     base,
		routes:   cfg.routes,
		storage:  transport,
		template: &http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1},
		retries:  cfg.retries,
		pace:     pace{limiter: cfg.limiter},
		log:      cfg.log,

		uploadLimits: cfg.uploads,

		userAgent:     []string{cfg.userAgent},
		authorization: &[]string{"Bearer " + apiKey},
		mask:          &secret.Mask{apiKey},
	}
	c.api = c.retryingClient(&http.Client{
		Transport:     &wire{transport, &tryTimeoutError{timeout}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	c.poller = newPoller(c)
	return c
}

// do runs one operation and decodes its reply.
func do[T any, R reply[T]](ctx context.Context, c *core, in request) (*T, error) {
	out, _, err := doStatus[T, R](ctx, c, in)
	return out, err
}

// doStatus is do, with the status of a reply that was a success.
func doStatus[T any, R reply[T]](ctx context.Context, c *core, in request) (*T, int, error) {
	call, err := c.send(ctx, in)
	if call != nil {
		defer call.release()
	}
	if err != nil {
		return nil, 0, err
	}
	out := new(T)
	if _, empty := any(out).(*nothing); !empty {
		if err := call.decode(out, R(out).missing); err != nil {
			return nil, 0, err
		}
	}
	return out, call.last.status, nil
}

// send puts one request through the layers. Without an error the call holds a
// reply of 2xx.
func (c *core) send(ctx context.Context, in request) (*call, error) {
	if ctx == nil {
		return nil, &ParamError{"ctx", "must not be nil"}
	}
	row := c.routes[in.op]
	if row.HasParam() {
		if err := checkID("id", in.id); err != nil {
			return nil, err
		}
	}
	escaped := url.PathEscape(in.id)
	call := &call{
		Context: ctx,
		core:    c,
		row:     row,
		path:    row.before + escaped + row.after,
		once:    in.once,
		again:   row.Repeat == route.Always || row.Repeat == route.WithExternalID && in.repeatable,
	}
	if err := call.build(in, escaped); err != nil {
		return nil, err
	}
	return call, call.run()
}

// build makes the request. Its header is left to each try.
func (c *call) build(in request, escapedID string) error {
	if err := c.address(in, escapedID); err != nil {
		return err
	}
	c.req.Request = c.core.template.WithContext(c)
	c.req.Method = c.row.Method
	c.req.URL = &c.url
	c.req.Header = make(http.Header) // or net/http copies the request to give it one
	if in.body == nil {
		return nil
	}
	body, err := json.Marshal(in.body)
	if err == nil {
		err = c.req.SetBody(body)
	}
	if err != nil {
		return fmt.Errorf("minutes: encoding the body of %s: %w", in.op, err)
	}
	return nil
}

// address fills in the URL: the base, the route and the query.
func (c *call) address(in request, escapedID string) error {
	c.url = c.core.base
	if escapedID == in.id && c.url.RawPath == "" {
		c.url.Path += c.path
	} else {
		c.url.RawPath = c.url.EscapedPath() + c.path
		c.url.Path += c.row.before + in.id + c.row.after
	}
	if in.query != nil {
		values, err := query.Values(in.query)
		if err != nil {
			return fmt.Errorf("minutes: encoding the query of %s: %w", in.op, err)
		}
		c.url.RawQuery = values.Encode()
	}
	return nil
}
