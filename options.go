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

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

const version = "0.1.0" // of this package

// Option configures a new Client; see the functions that begin with With.
type Option struct{ apply func(*settings) error }

// settings are what the options of a Client change.
type settings struct {
	transport         http.RoundTripper // of API requests; nil: the default
	attemptTimeout    time.Duration     // of one attempt at an API request
	storageTransport  http.RoundTripper // of uploads; nil: like transport, but over HTTP/1.1
	uploadTimeouts    UploadTimeouts
	uploadConcurrency int
	maxRetries        int
	rateLimit         *rate.Limiter
	userAgent         string
	apiKeyFunc        func(context.Context) (string, error) // nil: the key is a parameter of New
	insecureHTTP      bool                                  // http is permitted for every host
	routes            route.Routes
	log               *slog.Logger
	observers         []func(context.Context, Attempt)
}

func defaultSettings() *settings {
	return &settings{
		attemptTimeout:    30 * time.Second,
		uploadTimeouts:    UploadTimeouts{Stall: time.Minute, Response: 5 * time.Minute}, // some proxies scan first
		uploadConcurrency: 4,
		maxRetries:        rest.DefaultMaxRetries,
		rateLimit:         rate.NewLimiter(100, 100), // only slows runaway loops down
		userAgent:         "minutes-go/" + version,
		routes:            slices.Clone(route.Table),
		log:               slog.New(slog.DiscardHandler),
	}
}

// settingsOf returns the default settings, as opts change them.
func settingsOf(opts []Option) (*settings, error) {
	set := defaultSettings()
	for _, opt := range opts {
		if opt.apply == nil {
			return nil, &ParamError{Param: "opts", Reason: "contains an Option that no With function returned"}
		}
		err := opt.apply(set)
		if err != nil {
			return nil, err
		}
	}
	return set, nil
}

// option returns an Option that calls set if ok, and otherwise makes New fail.
func option(name string, ok bool, reason string, set func(*settings)) Option {
	return Option{func(s *settings) error {
		if ok {
			set(s)
		}
		return checkThat(name, ok, reason)
	}}
}

// WithAPIKeyFunc makes the Client ask get for the API key of each attempt, so that a key can change
// without a new Client, and waits outlast the change. New then gets an empty apiKey.
//
//   - The Client calls get often, and on many goroutines at once, so get should cache the key, and
//     obey its context. An empty key is an error. Surrounding white space does not matter, so get
//     may return the content of a file.
//   - After a 401, the Client asks again. If the key has changed, the Client repeats the request
//     once. Otherwise the key counts as rejected, which ends all waits unless the 401 has no code;
//     see [KeyRejected].
//   - So get must return the new key before the old one is revoked. If the old key works for another
//     hour after the new one is issued, cache a key for less than an hour.
//   - If get returns an error, or takes as long as an attempt may take, the call ends with an
//     *[Error] that wraps the error. [Retryable] is true, and the Client does not retry by itself.
//     A wait goes on, but after ten minutes of nothing else all waits and Follow end with the error,
//     as after a rejected key.
//   - For poller requests, which belong to no call, get receives a context that has none of your
//     values. So do not look up a tenant in the context: create one Client for each key.
//   - If get returns the cancellation or the deadline of another context, for example because callers
//     share one request for the key, the call's error matches neither.
//
// No error or log shows any key that get has returned.
func WithAPIKeyFunc(get func(context.Context) (string, error)) Option {
	return option("WithAPIKeyFunc", get != nil, "must not be nil", func(s *settings) {
		s.apiKeyFunc = func(ctx context.Context) (string, error) {
			key, err := get(ctx)
			key = strings.TrimSpace(key)
			return key, cmp.Or(err, checkAPIKey("WithAPIKeyFunc", key))
		}
	})
}

// WithInsecureHTTP permits http for every host, not just loopback. If the base URL has http, upload
// URLs may have http, too. Use it only in a network that you trust, for example for a fake in
// another container: everyone on the way can read the API key, the recordings and the minutes, and
// change them.
func WithInsecureHTTP() Option {
	return option("WithInsecureHTTP", true, "", func(s *settings) { s.insecureHTTP = true })
}

// WithHTTPClient uses hc's transport for API calls, and for uploads unless you add
// [WithStorageHTTPClient]. The Client never changes hc, and ignores hc.Jar and hc.CheckRedirect.
//
//   - hc.Timeout limits one attempt at an API call, but not uploads. If it is 0, an attempt may
//     take 30 seconds.
//   - If hc.Transport is an [http.Transport], for example with your own proxy or certificate
//     authority, the Client uses three clones of it. Those for API calls send HTTP/2 pings, to
//     notice a dead connection; one of them closes idle connections after a second, and is for
//     requests that are not safe to repeat. The one for uploads uses HTTP/1.1, because uploads are
//     slow over HTTP/2.
//   - The Client uses any other transport unchanged. If yours wraps an [http.Transport], set its
//     HTTP2.SendPingTimeout, an IdleConnTimeout that is shorter than the server's, and its
//     ExpectContinueTimeout so that rejected uploads show a reason. If it hides its TCP connections
//     from [net/http/httptrace], an upload that breaks off is not reset, so storage may keep a part.
//   - If the transport adds a header such as Authorization, or records URLs, give uploads a
//     different transport with WithStorageHTTPClient: storage must not get your credentials, and
//     the presigned URL of an upload is a credential itself.
//   - The transport must not retry, and must not follow redirects, by itself. The Client cannot
//     know what such a transport has sent, so a request that is not safe to repeat could be carried
//     out twice, and a recording could be buffered in memory.
//
// Without this option, the Client uses the system's certificates and the proxy settings of the
// environment (see [http.ProxyFromEnvironment]).
func WithHTTPClient(hc *http.Client) Option {
	ok := hc != nil && hc.Timeout >= 0
	return option("WithHTTPClient", ok, "must not be nil or have a negative Timeout", func(s *settings) {
		s.transport = hc.Transport
		s.attemptTimeout = cmp.Or(hc.Timeout, defaultSettings().attemptTimeout)
	})
}

// WithStorageHTTPClient uses hc's transport for uploads, in the same way as [WithHTTPClient] does,
// and leaves API calls alone. If hc.Transport is nil, uploads use the default transport. hc.Timeout
// is ignored.
func WithStorageHTTPClient(hc *http.Client) Option {
	return option("WithStorageHTTPClient", hc != nil, "must not be nil",
		func(s *settings) { s.storageTransport = rest.StorageTransport(hc.Transport) })
}

// WithObserver calls observe after each attempt, with the context of the call. Attempts that waits
// share belong to no call, so their context has no deadline and none of your values. The Client
// calls observe on many goroutines at once, and each request waits until observe has returned, so
// let it return quickly. It may use the Client. If you add several observers, the Client calls all
// of them in order.
func WithObserver(observe func(context.Context, Attempt)) Option {
	return option("WithObserver", observe != nil, "must not be nil",
		func(s *settings) { s.observers = append(s.observers, observe) })
}

// WithLogger logs to l, without secrets:
//
//   - at debug level, each attempt at a request;
//   - at info level, each time a 429 makes the Client pause all API requests;
//   - at warn level, when polling begins to fail and when it works again, and rare problems, such as
//     a status that this version does not know.
//
// [docs/observability.md] lists all messages.
//
// [docs/observability.md]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/observability.md
func WithLogger(l *slog.Logger) Option {
	return option("WithLogger", l != nil, "must not be nil", func(s *settings) {
		s.log = l
		s.observers = append(s.observers, logAttempts(l))
	})
}

// WithUserAgent puts product, such as "myapp/1.2", before this package's name in User-Agent.
func WithUserAgent(product string) Option {
	ok := product != "" && strings.TrimSpace(product) == product && !strings.ContainsFunc(product, notPrintableASCII)
	return option("WithUserAgent", ok, "must be printable ASCII, not empty, and without white space around it",
		func(s *settings) { s.userAgent = product + " minutes-go/" + version })
}

// WithMaxRetries limits the retries of a request to n, after its first attempt. The default is 6, and
// 0 switches retries off. Before each retry, the Client waits (exponential backoff with jitter): for a
// quarter to half a second before the first one, and twice as long before each further one, up to 30
// seconds. So, by default, a call outlasts an outage of 15 seconds. Process, Resume and Upload retry
// the upload, and the requests before it, for at least a minute, whatever n is, unless n is 0.
//
// The Client retries an API call only if the retry is safe:
//
//   - After a 429: every request. Before the retry, the Client pauses all API requests.
//   - If there was no connection: every request, except after a TLS failure or a proxy's 4xx to a
//     CONNECT.
//   - After a lost connection, a timeout, or a 500, 502, 503 or 504: GET, PUT and DELETE (in
//     [Client.Do], PUT and DELETE only if Request.Idempotent is set), the request for an upload
//     URL, and Create with an ExternalID.
//
// The Client obeys the header Retry-After up to a minute, which is its longest pause for that. If the
// service asks for more, or if a retry could come after the context's deadline, the call returns its
// error at once, and the function [RetryAfter] says how long to wait; a wait polls again after that
// minute. [Client.Do] and [MeetingsService.Upload] have further rules.
func WithMaxRetries(n int) Option {
	return option("WithMaxRetries", n >= 0, "must not be negative", func(s *settings) { s.maxRetries = n })
}

// WithUploadConcurrency sets the number of upload slots to n, 1 or more (default 4). Each upload
// needs a slot, whether Upload, Process, Resume or ProcessAll makes it. If no slot is free, an
// upload waits for one before it opens its [Source], so waiting uploads hold no files open.
func WithUploadConcurrency(n int) Option {
	return option("WithUploadConcurrency", n >= 1, "must be at least 1", func(s *settings) { s.uploadConcurrency = n })
}

// UploadTimeouts limits one attempt at an upload. A zero field selects the default.
type UploadTimeouts struct {
	// Stall is how long the attempt may go without progress while it connects, reads the recording
	// or sends it. The default is a minute.
	Stall time.Duration
	// Response is how long storage may take to respond after the last byte. The default is five
	// minutes; set more if a proxy scans recordings and needs longer.
	Response time.Duration
}

// WithUploadTimeouts limits one attempt at an upload, so that a connection that hangs does not hold
// its upload slot for ever. If your transport limits its connections, keep [WithUploadConcurrency]
// within that limit, because Stall includes the wait for a connection.
func WithUploadTimeouts(t UploadTimeouts) Option {
	return option("WithUploadTimeouts", t.Stall >= 0 && t.Response >= 0, "must not be negative", func(s *settings) {
		s.uploadTimeouts.Stall = cmp.Or(t.Stall, s.uploadTimeouts.Stall)
		s.uploadTimeouts.Response = cmp.Or(t.Response, s.uploadTimeouts.Response)
	})
}

// WithRateLimit limits the Client's API requests to perSecond, with bursts of at most burst. Polls
// and retries count, but uploads to storage do not. The service publishes no limit, so the default
// of 100 requests a second in bursts of 100 is only this package's choice. WithRateLimit(0, 0)
// removes it.
func WithRateLimit(perSecond float64, burst int) Option {
	none := perSecond == 0 && burst == 0
	ok := none || perSecond > 0 && !math.IsInf(perSecond, 0) && burst >= 1
	limit := cmp.Or(rate.Limit(perSecond), rate.Inf)
	return option("WithRateLimit", ok, "needs perSecond > 0 and burst >= 1, or 0 and 0 for no limit",
		func(s *settings) { s.rateLimit = rate.NewLimiter(limit, burst) })
}

var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

const methodReason = "must be GET, POST, PUT, PATCH or DELETE"

// WithRoute overrides an assumed route, for a service that has the operation at another address.
// path follows the base URL and begins with a slash; for OpMeetingsTranscript, it contains
// {meeting_id} once. A new method does not change the retries: for example,
// [VocabularyService.Replace] is still retried like a PUT if you change its method to POST.
func WithRoute(op Operation, method, path string) Option {
	return Option{func(s *settings) error {
		row := s.routes.Of(string(op))
		if row == nil || !row.Assumed {
			return &ParamError{Param: "WithRoute", Reason: "op: is not an operation whose route is assumed"}
		}
		_, param, _ := route.Split(row.Path)
		asMany := strings.Count(path, "{") == strings.Count(row.Path, "{") && strings.Contains(path, param)
		example := path
		if param != "" {
			example = strings.Replace(path, param, "x", 1)
		}
		problem := pathProblem(example)
		row.Method = method
		row.Path = path
		return cmp.Or(
			checkThat("WithRoute", slices.Contains(methods, method), "method: "+methodReason),
			checkThat("WithRoute", asMany,
				"path: must contain "+route.Meeting+" once for OpMeetingsTranscript, and not for other operations"),
			checkThat("WithRoute", path == "/" || problem == "", "path: "+problem),
		)
	}}
}
