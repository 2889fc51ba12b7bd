// Package rest makes one request of the API: it sends it, retries it if that is safe, and
// returns the last response. It knows URLs, headers, bytes and the API key, but no operation; the
// caller interprets the response.
//
// Read [New] first: it assembles the chain that each attempt passes through. Then follow an
// attempt (attempt.go has its description): limit.go, wholeresponse.go, credentials.go,
// transport.go, and at last retry.go, which asks decide.go what follows it. They use connection.go
// (what an error of a connection means) and secret.go (how errors lose secrets). How long limit.go waits
// is in throttle.go and lane.go.
package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/google/go-querystring/query"
	"github.com/hashicorp/go-retryablehttp"
)

// Config configures a Client. Every field is required, unless its comment says otherwise.
type Config struct {
	Base       *url.URL                              // without a trailing slash; the path of each request follows it
	Key        func(context.Context) (string, error) // the API key of an attempt; FixedKey for one that never changes
	UserAgent  string
	Transport  http.RoundTripper
	Timeout    time.Duration // of one attempt
	MaxRetries int           // after the first attempt
	Throttle   *Throttle
	Mask       *Mask                                // hides the API key in texts that come from outside; gets each key
	Observe    func(context.Context, AttemptReport) // is called after each attempt; may be nil
}

// Client makes requests to one service.
type Client struct {
	Config
	timedOut error // of an attempt that took longer than Timeout
	retries  retryablehttp.Client
}

// FixedKey returns key for each attempt.
func FixedKey(key string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return key, nil }
}

// New returns a Client. It does no I/O. Each attempt at a request passes through these links:
//
//	retryablehttp  sends the request, asks checkRetry whether to repeat it, and waits in beforeRetry
//	http.Client    only wraps errors, with the URL; wholeResponse hides redirects from it
//	limit          waits until a 429's pause is over, and then for its turn: at a lower pace after
//	               several 429s, and within the Client's own rate limit
//	wholeResponse  has the timeout, and reads the whole response
//	credentials    sets the header, with the API key
//	transports     keep a request that must not be repeated off idle connections
//	Transport      connects to the service
func New(cfg Config) *Client {
	c := &Client{Config: cfg}
	// It is not context.DeadlineExceeded, which means the caller's deadline.
	c.timedOut = fmt.Errorf("no response within %v: %w", cfg.Timeout, os.ErrDeadlineExceeded)
	var chain http.RoundTripper = newTransports(cfg.Transport)
	chain = &credentials{next: chain, apiKey: c.apiKey, userAgent: []string{cfg.UserAgent}}
	chain = &wholeResponse{next: chain, timeout: cfg.Timeout, timedOut: c.timedOut}
	chain = &limit{next: chain, throttle: cfg.Throttle}
	c.retries = retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: chain},
		RetryMax:     math.MaxInt, // decide counts
		CheckRetry:   c.checkRetry,
		Backoff:      noBackoff,
		PrepareRetry: beforeRetry,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	return c
}

// Request is one request. It travels in the context of its attempts.
type Request struct {
	Operation  string // for observers and transports
	ID         string // that stands in the path; "" if there is none
	MeetingID  string // for observers and transports; "" if the path has no meeting
	Method     string
	Path       string        // escaped; begins with a slash
	Query      any           // a struct for go-querystring, url.Values or nil
	Header     http.Header   // is sent, too, except for Authorization; may be nil
	Body       any           // for encoding/json, or nil
	Repeatable bool          // sending the request twice has the same effect as sending it once
	Background bool          // gives way to requests that are not
	Once       bool          // is one attempt, because the caller repeats it
	Patience   time.Duration // retry for at least this long after the first failure, unless MaxRetries is 0
	Send       func() bool   // is called just before the request is sent; false cancels it; may be nil
	MaxBody    int64         // how many bytes of a response to read; 0 means 4 MiB
	Buffer     *bytes.Buffer // if not nil, holds the body of the Response until the next request with this Buffer
}

// Response is the last response that any attempt at a request received. But a 4xx is dropped if a
// later attempt, which may have been sent, got no response, and a 401 if the next key could not be
// tried. The body is in memory.
type Response struct {
	Request    *Request
	Status     int         // 0 if there was no response
	Header     http.Header // nil if there was no response
	Body       []byte
	CutAt      int64         // the length at which a longer body was cut; else 0
	RetryAfter time.Duration // of a 429 or 503, or the rest of the pause after ErrPaused; else 0
	// MayHaveTakenEffect reports that the service may have carried out the request, in this attempt
	// or in an earlier one.
	MayHaveTakenEffect bool
}

// call is a request under way. The links of the chain find it in the context of the request.
type call struct {
	Request
	// sent is the request as retryablehttp sends it.
	sent retryablehttp.Request
	// response is that of the last attempt that counts. The link wholeResponse reads it.
	response Response
	// stream reads the body of a response into buffer, unless the Request brings a Buffer. They are here
	// because that saves two allocations in each attempt.
	stream io.LimitedReader
	buffer bytes.Buffer
	// attempt is the last one. The link wholeResponse begins it.
	attempt *AttemptReport
	// unconnected means that there was no connection; see outcome. For a GET, which is always repeatable,
	// it stays false. The link wholeResponse sets it.
	unconnected bool
	// key is that of the last attempt. The link credentials sets it.
	key string
	// askedAgain means that a 401 has led to another question for the key.
	askedAgain bool
	// state is what decide knows, and next what it said last.
	state state
	next  decision
	// failure is why the last attempt got no whole response, or was not made. It is nil after a whole
	// response, even if ctx ends before the next attempt. checkRetry sets it.
	failure error
}

type callKey struct{}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// Call makes one request, and always returns a Response. Without an error, the Response is
// complete, or a 429 or 5xx whose body may have broken off. An error has no secret and no URL, and
// matches ctx.Err() and context.Cause(ctx) if ctx is done.
func (c *Client) Call(ctx context.Context, r Request) (*Response, error) {
	k := &call{Request: r}
	k.response.Request = &k.Request
	k.state = state{maxRetries: c.MaxRetries, patience: r.Patience, repeatable: r.Repeatable, once: r.Once}
	k.state.deadline, _ = ctx.Deadline()
	err := c.build(context.WithValue(ctx, callKey{}, k), k)
	if err != nil {
		return &k.response, err
	}
	_, err = c.retries.Do(&k.sent)
	if err != nil { // retryablehttp's, which shows the URL; the reason is in k.failure and in ctx
		err = WithCause(ctx, k.failure)
	}
	return &k.response, err
}

// noHeader is never changed.
var noHeader = http.Header{}

// build sets k.sent, without the header, which credentials sets.
func (c *Client) build(ctx context.Context, k *call) error {
	u, err := url.Parse(k.Path)
	if err != nil {
		return c.Mask.Err(err)
	}
	u.RawPath = c.Base.EscapedPath() + u.EscapedPath() // before Path changes
	u.Path = c.Base.Path + u.Path
	u.Scheme = c.Base.Scheme
	u.Host = c.Base.Host
	values, ok := k.Query.(url.Values)
	if !ok && k.Query != nil {
		values, err = query.Values(k.Query)
		if err != nil {
			return err
		}
	}
	u.RawQuery = values.Encode()
	req := new(http.Request).WithContext(ctx)
	req.Method = k.Method
	req.URL = u
	req.Header = noHeader
	req.Proto = "HTTP/1.1"
	req.ProtoMajor = 1
	req.ProtoMinor = 1
	k.sent.Request = req
	if k.Body == nil {
		return nil
	}
	body, err := json.Marshal(k.Body)
	if err != nil {
		return err
	}
	return k.sent.SetBody(body)
}

// WithCause adds ctx.Err() and context.Cause(ctx) to err if ctx is done, because a transport
// returns only one of them.
func WithCause(ctx context.Context, err error) error {
	return Join(Join(err, context.Cause(ctx)), ctx.Err())
}

// notCanceled returns err, or only its text if err is the end of a context although ctx is not done:
// then it is that of another one, as in a function whose result several calls share.
func notCanceled(ctx context.Context, err error) error {
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if ctx.Err() == nil && ended {
		return errors.New(err.Error())
	}
	return err
}

// Join adds more to err in one line, unless err has it.
func Join(err, more error) error {
	if err == nil || more == nil || errors.Is(err, more) {
		return cmp.Or(err, more)
	}
	return fmt.Errorf("%w; %w", err, more)
}
