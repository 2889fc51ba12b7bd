package minutes

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/internal/upload"
)

const version = "0.1.0" // of this package

// Option changes a setting of a new Client. The functions that begin with With return Options. If
// an Option cannot be used, New returns a *ParamError.
type Option struct{ apply func(*core) error }

const attemptTimeout = 30 * time.Second // of an API call

// defaults returns a core with the default settings. The service publishes no rate limit. The
// limiter only slows runaway loops down.
func defaults() *core {
	return &core{
		Config: rest.Config{
			UserAgent: []string{"minutes-go/" + version},
			Routes:    slices.Clone(route.Table),
			Transport: sharedTransport(),
			Timeout:   attemptTimeout,
			Retries:   backoff.Policy{Max: 4, WaitMin: 500 * time.Millisecond, WaitMax: 15 * time.Second},
			Rate:      rate.NewLimiter(100, 100), // requests a second, and in a burst
		},
		log:      slog.New(slog.DiscardHandler),
		observer: func(context.Context, Event) {},
		uploads:  upload.Timeouts{Stall: time.Minute, Response: 5 * time.Minute}, // some proxies scan the recording first
		slots:    make(uploadSlots, 4),
	}
}

// option returns an Option that calls set if ok, and otherwise makes New fail.
func option(name string, ok bool, reason string, set func(*core)) Option {
	return Option{func(c *core) error {
		if ok {
			set(c)
		}
		return checkThat(name, ok, reason)
	}}
}

// WithHTTPClient uses hc's transport for API calls. Uploads use the same transport, unless you add
// [WithStorageHTTPClient]. The Client never changes hc, and ignores hc.Jar and hc.CheckRedirect.
//
//   - hc.Timeout limits one attempt of an API call, but no upload. 0 means 30 seconds.
//   - Set ExpectContinueTimeout of the transport. http.DefaultTransport has 1 second. With 0, an
//     upload that storage rejects may fail with a broken connection and no reason.
//   - If the transport records URLs, give uploads another transport. The presigned URL of an upload
//     is a credential.
//   - For your own proxy or certificate authority, clone http.DefaultTransport; see the example.
//   - If storage is far away, uploads over HTTP/2 are slow; see docs/uploads.md.
//
// Without this option, the Client uses the system's certificates and the proxies of the
// environment; see [http.ProxyFromEnvironment]. Uploads use HTTP/1.1.
func WithHTTPClient(hc *http.Client) Option {
	ok := hc != nil && hc.Timeout >= 0
	return option("WithHTTPClient", ok, "must not be nil or have a negative Timeout", func(c *core) {
		c.Transport, c.Timeout = cmp.Or(hc.Transport, sharedTransport()), cmp.Or(hc.Timeout, attemptTimeout)
	})
}

// WithStorageHTTPClient uses hc's transport for uploads only. If hc.Transport is nil, uploads use a
// transport of this package, with HTTP/1.1. The Client never changes hc, and ignores hc.Timeout,
// hc.Jar and hc.CheckRedirect.
func WithStorageHTTPClient(hc *http.Client) Option {
	return option("WithStorageHTTPClient", hc != nil, "must not be nil",
		func(c *core) { c.storage = cmp.Or(hc.Transport, storageTransport()) })
}

// WithObserver calls observe for each [Event], with the context of the call. Events of polls belong
// to no call: their context has no deadline and none of your values. The Client calls observe on
// many goroutines at once, and requests wait until observe returns. observe may use the Client.
func WithObserver(observe func(context.Context, Event)) Option {
	return option("WithObserver", observe != nil, "must not be nil",
		func(c *core) { c.observer, c.Observe = observe, c.observeAttempt })
}

// WithLogger logs to l, without secrets:
//
//   - at debug level, each attempt of each request;
//   - at info level, each time a 429 makes the Client pause all API requests;
//   - at warn level, a meeting whose polls have failed three times in a row, and the first
//     successful poll after that.
func WithLogger(l *slog.Logger) Option {
	return option("WithLogger", l != nil, "must not be nil",
		func(c *core) { c.log, c.Observe = l, c.observeAttempt })
}

// WithUserAgent puts product, such as "myapp/1.2", before this package's name in User-Agent.
func WithUserAgent(product string) Option {
	ok := product != "" && strings.TrimSpace(product) == product && !strings.ContainsFunc(product, notPrintableASCII)
	return option("WithUserAgent", ok, "must be printable ASCII, not empty, and without white space around it",
		func(c *core) { c.UserAgent = []string{product + " minutes-go/" + version} })
}

// RetryPolicy sets how often the Client retries a request, and how long it waits before each retry.
// The zero value disables retries.
type RetryPolicy struct {
	Max int // retries after the first attempt
	// The wait before a retry is random. Before the first retry, it is between WaitMin and twice
	// WaitMin. The upper bound doubles with each further retry, up to WaitMax. If WaitMin is 0, the
	// first upper bound is a second. A longer Retry-After lengthens the wait.
	WaitMin, WaitMax time.Duration
}

// WithRetries sets how the Client retries requests. The default is 4 retries, with waits between
// 0.5 and 15 seconds. No value may be negative, and WaitMax must not be less than WaitMin.
//
// The Client retries an API call only if the retry is safe:
//
//   - After a 429: every request. Before the retry, the Client pauses all API requests.
//   - If there was no connection: every request, except after a TLS failure or a 4xx of a proxy.
//   - After a lost connection, a timeout, or a 500, 502, 503 or 504: GET, PUT, DELETE, the request
//     for an upload URL, and Create with an ExternalID.
//
// The Client retries the PUT of an upload after each of these failures, and also
//
//   - after 408, 499 and 520 to 527;
//   - after S3's error codes RequestTimeout, IncompleteBody, BadDigest, OperationAborted and
//     ConditionalRequestConflict;
//   - if the upload URL had expired: once, with a new URL;
//   - after a 417, without the header Expect;
//   - if storage rejected the header Content-MD5: without that header.
//
// If the header Retry-After asks for more than a minute, the call returns its error at once. The
// function [RetryAfter] gets the time from the error. [Client.Do] has its own rules.
func WithRetries(p RetryPolicy) Option {
	ok := p.Max >= 0 && p.WaitMin >= 0 && p.WaitMax >= p.WaitMin
	return option("WithRetries", ok, "needs Max >= 0 and 0 <= WaitMin <= WaitMax", func(c *core) { c.Retries = backoff.Policy(p) })
}

// WithUploadConcurrency sets the number of upload slots to n, 1 or more (default 4). Each upload
// needs a slot, whether Upload, Process, Resume or ProcessAll makes it. If no slot is free, an
// upload waits for one, and opens its [Source] only afterwards.
func WithUploadConcurrency(n int) Option {
	return option("WithUploadConcurrency", n >= 1, "must be at least 1", func(c *core) { c.slots = make(uploadSlots, n) })
}

// UploadTimeouts are the time limits of one attempt of an upload. Both must be positive.
type UploadTimeouts struct {
	Stall    time.Duration // the longest time without sending a byte of the recording
	Response time.Duration // the longest time from the last byte to the response
}

// WithUploadTimeouts sets when the Client gives up an attempt of an upload. The default is a minute
// for Stall and five minutes for Response. Behind a proxy that scans recordings, Response must be
// long. Only the context limits a whole upload.
func WithUploadTimeouts(t UploadTimeouts) Option {
	return option("WithUploadTimeouts", t.Stall > 0 && t.Response > 0, "needs Stall > 0 and Response > 0",
		func(c *core) { c.uploads = upload.Timeouts(t) })
}

// WithRateLimit limits the API requests of the Client to perSecond, with bursts of at most burst.
// Polls and retries count, but uploads to storage do not. The default is 100 requests a second, in
// bursts of 100. WithRateLimit(0, 0) removes the limit.
func WithRateLimit(perSecond float64, burst int) Option {
	none := perSecond == 0 && burst == 0
	ok := none || perSecond > 0 && !math.IsInf(perSecond, 0) && burst >= 1
	limit := cmp.Or(rate.Limit(perSecond), rate.Inf)
	return option("WithRateLimit", ok, "needs perSecond > 0 and burst >= 1, or 0 and 0 for no limit",
		func(c *core) { c.Rate = rate.NewLimiter(limit, burst) })
}

// methods lists the methods that a request can have.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

const methodReason = "must be GET, POST, PUT, PATCH or DELETE"

// WithRoute overrides an assumed route. path follows the base URL and begins with a slash. For
// OpMeetingsTranscript, path contains {meeting_id} once. WithRoute does not change whether the
// Client retries the operation.
func WithRoute(op Operation, method, path string) Option {
	return Option{func(c *core) error {
		at := slices.IndexFunc(c.Routes, func(r route.Route) bool { return r.Operation == route.Operation(op) })
		if at < 0 || c.Routes[at].Basis != route.Assumed {
			return &ParamError{"WithRoute", "op: is not an operation whose route is assumed"}
		}
		row, example := &c.Routes[at], strings.ReplaceAll(path, route.Param, "x")
		asMany := strings.Count(path, route.Param) == strings.Count(row.Path, route.Param)
		problem := pathProblem(example)
		row.Method, row.Path = method, path
		return cmp.Or(
			checkThat("WithRoute", slices.Contains(methods, method), "method: "+methodReason),
			checkThat("WithRoute", asMany, "path: must contain "+route.Param+" once for OpMeetingsTranscript, and not for other operations"),
			checkThat("WithRoute", !strings.Contains(path, "%"), "path: must not contain escapes"),
			checkThat("WithRoute", example == "/" || problem == "", "path: "+problem),
		)
	}}
}
