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

// version of this package, for the User-Agent header.
const version = "0.1.0"

// Option changes a setting of a new Client. The With functions return one. If it cannot
// be used, New returns a *ParamError.
type Option struct{ apply func(*core) error }

const attemptTimeout = 30 * time.Second // of an API call

// defaults returns a core with the default settings. The service publishes no rate limit,
// so the limiter only keeps a runaway loop from becoming a flood.
func defaults() *core {
	return &core{
		Config: rest.Config{
			UserAgent: []string{"minutes-go/" + version},
			Routes:    slices.Clone(route.Table),
			Transport: sharedTransport(),
			Timeout:   attemptTimeout,
			Retries:   backoff.Policy{Max: 4, WaitMin: 500 * time.Millisecond, WaitMax: 15 * time.Second},
			Rate:      rate.NewLimiter(100, 100), // a second, and at once
		},
		log:      slog.New(slog.DiscardHandler),
		observer: func(context.Context, Event) {},
		uploads:  upload.Timeouts{Stall: time.Minute, Response: 5 * time.Minute}, // a long reply, for what scans it on the way
		slots:    uploadSlots{limit: 4},
	}
}

// option returns an Option that sets something if ok.
func option(name string, ok bool, reason string, set func(*core)) Option {
	return Option{func(c *core) error {
		if ok {
			set(c)
		}
		return checkThat(name, ok, reason)
	}}
}

// WithHTTPClient uses hc's transport for API calls and, without [WithStorageHTTPClient], for
// uploads. The Client never changes hc, and ignores its Jar and CheckRedirect.
//
//   - hc.Timeout limits one attempt of an API call (default 30 s), but no upload.
//   - Set the transport's ExpectContinueTimeout, as http.DefaultTransport does. Otherwise an
//     upload that storage rejects may only show as a broken connection.
//   - A transport that records whole URLs, as most tracing transports do, sees the presigned
//     URL of each upload, which is a credential. Give uploads another transport.
//   - For your own proxy or certificate authority, clone http.DefaultTransport and set them;
//     see the example. If a proxy rejects a connection, the error names it, without its
//     password.
//
// Without this option a Client uses the proxies of the environment (see
// [http.ProxyFromEnvironment]) and the system's certificates. Uploads then use HTTP/1.1:
// HTTP/2 is many times slower over distance.
func WithHTTPClient(hc *http.Client) Option {
	ok := hc != nil && hc.Timeout >= 0
	return option("WithHTTPClient", ok, "must not be nil, nor its Timeout negative", func(c *core) {
		c.Transport, c.Timeout = cmp.Or(hc.Transport, sharedTransport()), cmp.Or(hc.Timeout, attemptTimeout)
	})
}

// WithStorageHTTPClient uses hc's transport only for uploads. API calls keep that of
// [WithHTTPClient]. The Client never changes hc, and ignores its Timeout, Jar and
// CheckRedirect.
func WithStorageHTTPClient(hc *http.Client) Option {
	return option("WithStorageHTTPClient", hc != nil, "must not be nil",
		func(c *core) { c.storage = cmp.Or(hc.Transport, storageTransport()) })
}

// WithObserver calls observe for each [Event], with the context of the call that caused
// it, if there is one. Many goroutines call observe at once, and requests wait for it. It
// may use the Client.
func WithObserver(observe func(context.Context, Event)) Option {
	return option("WithObserver", observe != nil, "must not be nil",
		func(c *core) { c.observer, c.Observe = observe, c.observeAttempt })
}

// WithLogger logs, without secrets:
//
//   - at debug level, each attempt of each request: operation, method, path, status,
//     number of the attempt, wait before the next one and request id;
//   - at info level, that a 429 pauses all requests;
//   - at warn level, that a wait's polls failed three times in a row, that they succeed
//     again, and that a Store did not delete a state.
func WithLogger(l *slog.Logger) Option {
	return option("WithLogger", l != nil, "must not be nil",
		func(c *core) { c.log, c.Observe = l, c.observeAttempt })
}

// WithUserAgent puts product, such as "myapp/1.2", before this package's name in the
// User-Agent header.
func WithUserAgent(product string) Option {
	ok := product != "" && strings.TrimSpace(product) == product && !strings.ContainsFunc(product, notPrintableASCII)
	return option("WithUserAgent", ok, "must be printable ASCII, not empty, and without white space around it",
		func(c *core) { c.UserAgent = []string{product + " minutes-go/" + version} })
}

// RetryPolicy says how often the Client retries a request and how long it waits. The zero
// value disables retries.
type RetryPolicy struct {
	Max int // retries after the first attempt
	// WaitMin and WaitMax bound the wait before retry n, which is random between WaitMin
	// and the smaller of WaitMax and WaitMin·2ⁿ. A WaitMin of 0 doubles from half a second.
	// The wait is never shorter than the service's Retry-After.
	WaitMin, WaitMax time.Duration
}

// WithRetries sets how the Client retries requests. The default is 4 retries, with waits
// between 0.5 and 15 seconds. If the service's Retry-After is over a minute, the call
// returns at once, with Error.RetryAfter.
//
// The Client retries only what is provably safe:
//
//   - after a 429, every request: the service's edge rejected it, and nothing was done.
//     The whole Client pauses for the Retry-After, up to a minute, and then sends requests
//     one at a time until there are no more 429s;
//   - if there was no connection, every request;
//   - after a lost connection, a timeout or a 500, 502, 503 or 504: uploads, and requests
//     that have the same effect if they are made twice (GET, PUT, DELETE, the request for
//     an upload URL, and Create with an ExternalID);
//   - after any other error response, only uploads: after 408, 429, 499, 520 to 527, and
//     S3's RequestTimeout, IncompleteBody, BadDigest, OperationAborted and
//     ConditionalRequestConflict; once, with a new URL, if the URL had expired; after a 417,
//     without the header Expect; once without Content-MD5 if the store rejects that.
//
// If an upload got no response, and the audio may have arrived, the Client polls the meeting
// before the retry, and again if it had sent the whole recording. Two polls on one upload URL
// are thirty seconds apart, so such a retry takes longer. See [Client.Do] for its own rules.
func WithRetries(p RetryPolicy) Option {
	ok := p.Max >= 0 && p.WaitMin >= 0 && p.WaitMax >= p.WaitMin
	return option("WithRetries", ok, "needs Max >= 0 and 0 <= WaitMin <= WaitMax", func(c *core) { c.Retries = backoff.Policy(p) })
}

// WithUploadConcurrency limits the number of concurrent uploads per Client (default 4), by Upload,
// Process, Resume and ProcessAll together. Further uploads wait for a slot until their
// context is done; this is not a stall. A recording that the Client opens itself is opened
// only once its upload has a slot.
func WithUploadConcurrency(n int) Option {
	return option("WithUploadConcurrency", n >= 1, "must be at least 1", func(c *core) { c.slots.limit = n })
}

// UploadTimeouts are the time limits of one attempt of an upload.
type UploadTimeouts struct {
	Stall    time.Duration // without a byte of the recording moving (default a minute)
	Response time.Duration // from the last byte to the response (default five minutes)
}

// WithUploadTimeouts sets when the Client gives up an attempt of an upload, and retries it
// as [WithRetries] says. A proxy that scans a whole recording before it forwards it needs a
// long Response. Uploads have no other time limit.
func WithUploadTimeouts(t UploadTimeouts) Option {
	return option("WithUploadTimeouts", t.Stall > 0 && t.Response > 0, "needs Stall > 0 and Response > 0",
		func(c *core) { c.uploads = upload.Timeouts(t) })
}

// WithRateLimit limits the requests of the Client, including retries, to perSecond with
// bursts of at most burst (default 100 and 100). It does not limit uploads to storage.
// WithRateLimit(0, 0) removes the limit.
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

// WithRoute overrides an assumed route. path follows the base URL, begins with a slash
// and, for OpMeetingsTranscript, holds {meeting_id} once. Whether a request may be retried depends
// on its operation, not on the method.
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
			checkThat("WithRoute", asMany, "path: must hold "+route.Param+" exactly where the operation is about one meeting"),
			checkThat("WithRoute", !strings.Contains(path, "%"), "path: must not hold escapes"),
			checkThat("WithRoute", example == "/" || problem == "", "path: "+problem),
		)
	}}
}
