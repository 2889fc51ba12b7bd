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

// Option changes a setting of a Client that is being made. One that cannot be
// used makes New return a *ParamError.
type Option func(*core) error

const attemptTimeout = 30 * time.Second // of an API call

// defaults is what a Client does unless told otherwise. The service publishes no
// rate limit, so the limiter only keeps a runaway loop from becoming a flood.
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

// option sets something, unless it is not ok.
func option(name string, ok bool, reason string, set func(*core)) Option {
	return func(c *core) error {
		if !ok {
			return &ParamError{name, reason}
		}
		set(c)
		return nil
	}
}

// WithHTTPClient uses hc's transport for API calls and, without
// [WithStorageHTTPClient], for uploads, and its Timeout, where not zero, as the limit
// of one try of an API call (30 s otherwise); uploads have no such limit. hc itself
// is never changed; its Jar and CheckRedirect are not used, since the service knows
// no cookies and redirects are refused. A transport of one's own should have an
// ExpectContinueTimeout, as http.DefaultTransport has: without it an upload that
// storage refuses may show as a broken connection alone.
//
// A transport that traces or logs sees each upload's presigned URL, whose query
// is a credential: whoever has it can upload. Where whole URLs are recorded, as
// most tracing transports do, give uploads another with WithStorageHTTPClient.
//
// Without this option a Client goes through the proxies of the environment
// (HTTPS_PROXY, NO_PROXY; see [http.ProxyFromEnvironment]) and trusts the
// certificates of the system. For a proxy or a certificate authority of one's
// own, the transport is a clone of http.DefaultTransport that knows them; the
// example shows how. An upload that finds no way through a proxy names the proxy,
// without its password.
func WithHTTPClient(hc *http.Client) Option {
	ok := hc != nil && hc.Timeout >= 0
	return option("WithHTTPClient", ok, "must not be nil, nor its Timeout negative", func(c *core) {
		c.Transport, c.Timeout = cmp.Or(hc.Transport, sharedTransport()), cmp.Or(hc.Timeout, attemptTimeout)
	})
}

// WithStorageHTTPClient uses hc's transport for uploads alone, and leaves that of
// [WithHTTPClient] to the API calls. hc is never changed; its Timeout, Jar and
// CheckRedirect are not used. Give it no transport that records whole URLs: the
// query of a presigned URL is a credential. What [WithObserver] tells of uploads,
// and [FromContext], hold none of it.
func WithStorageHTTPClient(hc *http.Client) Option {
	return option("WithStorageHTTPClient", hc != nil, "must not be nil",
		func(c *core) { c.storage = cmp.Or(hc.Transport, sharedTransport()) })
}

// WithObserver tells observe of each [Event], with the context of the call that it
// belongs to, where there is one. observe is called from many goroutines at once,
// and requests wait for it; it may use the Client. Without an observer nothing is
// measured.
func WithObserver(observe func(context.Context, Event)) Option {
	return option("WithObserver", observe != nil, "must not be nil",
		func(c *core) { c.observer, c.Observe = observe, c.attempted })
}

// WithLogger logs each try of each request at debug level: operation, method,
// path, status, number of the try, wait before the next one and request id; at
// info level, that a 429 holds all requests back; at warn level, a wait whose
// looks fail three times in a row, and that they work again. Nothing secret is logged.
func WithLogger(l *slog.Logger) Option {
	return option("WithLogger", l != nil, "must not be nil",
		func(c *core) { c.log, c.Observe = l, c.attempted })
}

// WithUserAgent puts product, such as "myapp/1.2", before this package's own
// name in the User-Agent header.
func WithUserAgent(product string) Option {
	ok := product != "" && strings.TrimSpace(product) == product && !strings.ContainsFunc(product, isNoASCII)
	return option("WithUserAgent", ok, "must be printable ASCII, not empty, and without white space around it",
		func(c *core) { c.UserAgent = []string{product + " minutes-go/" + version} })
}

// WithRetries sets how often a request is repeated after its first try (4
// unless set; 0 switches repeats off) and the bounds of the wait before repeat
// n, which is random between waitMin and the smaller of waitMax and
// waitMin·2ⁿ (0.5 s and 15 s unless set; a waitMin of 0 doubles from 0.5 s), and
// never shorter than the service's Retry-After. Where that is more than a minute,
// the call returns at once, with Error.RetryAfter. It holds for uploads too. Where
// the audio may have arrived all the same, the meeting is looked at before the
// repeat, and again where the whole recording had been handed over; two looks on
// one upload URL are thirty seconds apart, so such a repeat takes longer.
//
// What is repeated is only what is provably safe:
//
//   - after a 429, every request: the service's edge refused it, and nothing was
//     done. The whole Client cools down, as long as Retry-After says, up to a minute;
//   - where the connection was never made, every request;
//   - after a lost connection, a time-out or a 500, 502, 503 or 504: requests that
//     do no more when they are done twice (GET, PUT, DELETE, the request for an
//     upload URL, and Create with an ExternalID), and uploads;
//   - after any other refusal, none, but uploads also after 408, 429, 499, 520 to
//     527 and S3's RequestTimeout and OperationAborted; once, with a new URL, where
//     the URL had expired; and after a 417, without the header Expect.
//
// Requests of [Client.Do] have rules of their own.
func WithRetries(max int, waitMin, waitMax time.Duration) Option {
	ok := max >= 0 && waitMin >= 0 && waitMax >= waitMin
	return option("WithRetries", ok, "needs max >= 0 and 0 <= waitMin <= waitMax",
		func(c *core) { c.Retries = backoff.Policy{Max: max, WaitMin: waitMin, WaitMax: waitMax} })
}

// WithUploads sets how many uploads the Client has under way at a time (4 unless
// set), whoever began them: Upload, Process, Finish or ProcessAll. The others wait
// for a place, as long as their contexts let them, which counts as no stall. A
// recording that the Client opens itself is opened once it has its place.
func WithUploads(n int) Option {
	return option("WithUploads", n >= 1, "must be at least 1", func(c *core) { c.slots.limit = n })
}

// WithUploadTimeouts sets when an attempt of an upload is given up, and repeated
// as [WithRetries] says: where no byte of the recording moves for stall (a minute
// unless set), and where no reply comes for reply after its last byte was handed
// over (five minutes unless set). A proxy that takes in a whole recording to scan
// it, before it passes it on, needs a long reply. Uploads have no other limit.
func WithUploadTimeouts(stall, reply time.Duration) Option {
	return option("WithUploadTimeouts", stall > 0 && reply > 0, "needs stall > 0 and reply > 0",
		func(c *core) { c.uploads = upload.Timeouts{Stall: stall, Response: reply} })
}

// WithRateLimit paces the requests of the Client, repeats included, to
// perSecond with bursts of at most burst (100 and 100 unless set). Uploads to
// storage are not paced. WithRateLimit(0, 0) takes the limiter off.
func WithRateLimit(perSecond float64, burst int) Option {
	none := perSecond == 0 && burst == 0
	ok := none || perSecond > 0 && !math.IsInf(perSecond, 0) && burst >= 1
	limit := cmp.Or(rate.Limit(perSecond), rate.Inf)
	return option("WithRateLimit", ok, "needs perSecond > 0 and burst >= 1, or 0 and 0 for no limit",
		func(c *core) { c.Rate = rate.NewLimiter(limit, burst) })
}

// Operation names an operation of the service, in errors, events and [WithRoute].
type Operation string

// The operations, in the order of the interface, each named after its method:
// OpMeetingsGet is [MeetingsService.Get]. [WithRoute] takes those whose routes are
// assumed.
const (
	OpMembersList   = Operation(route.MembersList)
	OpMembersCreate = Operation(route.MembersCreate)

	OpMeetingsList            = Operation(route.MeetingsList)
	OpMeetingsCreate          = Operation(route.MeetingsCreate)
	OpMeetingsGet             = Operation(route.MeetingsGet)
	OpMeetingsUpdate          = Operation(route.MeetingsUpdate)
	OpMeetingsDelete          = Operation(route.MeetingsDelete)
	OpMeetingsSetParticipants = Operation(route.MeetingsSetParticipants)
	OpMeetingsUploadURL       = Operation(route.MeetingsUploadURL)
	OpMeetingsMinutes         = Operation(route.MeetingsMinutes)
	OpTranscript              = Operation(route.MeetingsTranscript) // assumed: GET /v1/meetings/{meeting_id}/transcript

	OpProjectsList      = Operation(route.ProjectsList)      // assumed: GET /v1/projects
	OpProjectsCreate    = Operation(route.ProjectsCreate)    // assumed: POST /v1/projects
	OpTemplatesList     = Operation(route.TemplatesList)     // assumed: GET /v1/templates
	OpUsageGet          = Operation(route.UsageGet)          // assumed: GET /v1/usage
	OpVocabularyGet     = Operation(route.VocabularyGet)     // assumed: GET /v1/vocabulary
	OpVocabularyReplace = Operation(route.VocabularyReplace) // assumed: PUT /v1/vocabulary
	OpVocabularyAdd     = Operation(route.VocabularyAdd)     // assumed: POST /v1/vocabulary/terms

	OpUpload = Operation(route.Upload) // the PUT of a recording to storage
	OpDo     = Operation("do")         // a request of Client.Do
)

// methods are those that a request can have.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

const methodReason = "must be GET, POST, PUT, PATCH or DELETE"

// WithRoute overrides an assumed route. path begins with a slash, stands below
// the base URL and, for OpTranscript, holds {meeting_id} once. What may be
// repeated after a failure stays with the operation, whatever the method.
func WithRoute(op Operation, method, path string) Option {
	return func(c *core) error {
		at := slices.IndexFunc(c.Routes, func(r route.Route) bool { return r.Operation == route.Operation(op) })
		if at < 0 || c.Routes[at].Basis != route.Assumed {
			return &ParamError{"WithRoute", "op: is not an operation whose route is assumed"}
		}
		row, plain := &c.Routes[at], strings.ReplaceAll(path, route.Param, "x")
		asMany := strings.Count(path, route.Param) == strings.Count(row.Path, route.Param)
		wrong := wrongPath(plain)
		row.Method, row.Path = method, path
		return cmp.Or(
			checkThat("WithRoute", slices.Contains(methods, method), "method: "+methodReason),
			checkThat("WithRoute", asMany, "path: must hold "+route.Param+" exactly where the operation is about one meeting"),
			checkThat("WithRoute", !strings.Contains(path, "%"), "path: must not hold escapes"),
			checkThat("WithRoute", plain == "/" || wrong == "", "path: "+wrong),
		)
	}
}
