package minutes

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/time/rate"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// Client calls the Meeting Minutes Service, and is safe for concurrent use. Create one Client and
// share it: each has a rate limit, a pause after a 429 and a poller of its own, so two Clients do
// not respect each other's limits. A Client starts goroutines only for calls that are running, so
// it needs no Close. It is safe to print, because every verb of fmt masks the API key.
type Client struct {
	Meetings   *MeetingsService   // from a recording to the minutes
	Members    *MembersService    // people of the organisation
	Projects   *ProjectsService   // groups of meetings
	Templates  *TemplatesService  // how minutes are written
	Vocabulary *VocabularyService // terms that transcripts should spell right
	Usage      *UsageService      // the remaining quota
}

// New returns a Client for the service at baseURL, which is the address before "/v1" and may have a
// path. It makes no request, so the first call, not New, reports a wrong key. Because each request
// contains the API key, baseURL must use https, except on localhost, 127.0.0.0/8 and ::1, or with
// [WithInsecureHTTP]. For the same reason, the Client sends the key only to the host of baseURL,
// and follows no redirect. apiKey must be empty with [WithAPIKeyFunc]. If a parameter or an option
// cannot be used, New returns a *ParamError that names it. In a test with testing/synctest, call
// New inside the bubble.
func New(baseURL, apiKey string, opts ...Option) (*Client, error) {
	set, err := settingsOf(opts)
	if err != nil {
		return nil, err
	}
	return newClient(set, "baseURL", baseURL, "apiKey", apiKey)
}

// NewFromEnv calls [New] with the environment variables MINUTES_BASE_URL and MINUTES_API_KEY,
// without surrounding white space. If one of them is missing or invalid, NewFromEnv returns a
// *ParamError that names the variable. With [WithAPIKeyFunc], it does not read MINUTES_API_KEY.
func NewFromEnv(opts ...Option) (*Client, error) {
	set, err := settingsOf(opts)
	if err != nil {
		return nil, err
	}
	const base = "MINUTES_BASE_URL"
	const key = "MINUTES_API_KEY"
	apiKey := ""
	if set.apiKeyFunc == nil {
		apiKey = strings.TrimSpace(os.Getenv(key))
	}
	return newClient(set, base, strings.TrimSpace(os.Getenv(base)), key, apiKey)
}

// newClient is New with names for its parameters, which errors show.
func newClient(set *settings, baseName, baseURL, keyName, apiKey string) (*Client, error) {
	base, err := parseBaseURL(baseName, baseURL, set.insecureHTTP)
	if err != nil {
		return nil, err
	}
	if set.apiKeyFunc == nil {
		err = checkAPIKey(keyName, apiKey)
		set.apiKeyFunc = rest.FixedKey(apiKey)
	} else {
		err = checkThat(keyName, apiKey == "", "must be empty, because WithAPIKeyFunc returns the key")
	}
	if err != nil {
		return nil, err
	}
	s := service{newCore(*set, base, rest.NewMask(apiKey))}
	return &Client{
		Meetings:   &MeetingsService{s},
		Members:    &MembersService{s},
		Projects:   &ProjectsService{s},
		Templates:  &TemplatesService{s},
		Vocabulary: &VocabularyService{s},
		Usage:      &UsageService{s},
	}, nil
}

const urlForm = "it must begin with https://, or with http:// if the host is loopback"

// parseBaseURL never quotes base, which is the key if the caller has swapped the arguments.
func parseBaseURL(name, base string, insecureHTTP bool) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(base, "/")) // every path begins with a slash
	if err != nil || !utf8.ValidString(base) {
		return nil, &ParamError{Param: name, Reason: "is not a URL; " + urlForm}
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "443"), 10, 16)
	u.Host = strings.ToLower(u.Host) // net/http bypasses proxies for localhost, but not for LOCALHOST
	return u, cmp.Or(
		checkThat(name, base != "", "must not be empty"),
		checkThat(name, u.Scheme == "https" || u.Scheme == "http",
			urlForm+" (is it the API key?)"),
		checkThat(name, u.Hostname() != "", "has no host"),
		checkThat(name, u.User == nil && !strings.ContainsAny(base, "?#"),
			"must not contain credentials, a query or a fragment"),
		checkThat(name, err == nil && port > 0, "has an invalid port"),
		checkThat(name, u.Scheme == "https" || insecureHTTP || isLoopback(u.Hostname()),
			"must use https, because the host is not loopback (see WithInsecureHTTP)"),
		checkThat(name, u.Path != "/v1", "must not end with /v1, because the Client adds it"),
	)
}

// isLoopback reports whether requests to host stay on this machine. It returns false for
// x.localhost, because net/http may send such requests to HTTP_PROXY.
func isLoopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

// allowsHTTP reports whether an upload to target may use http: if target and the service are
// loopback, or if the service has http itself because of WithInsecureHTTP.
func (c *core) allowsHTTP(target *url.URL) bool {
	loopback := isLoopback(c.base.Hostname()) && isLoopback(target.Hostname())
	return loopback || c.insecureHTTP && c.base.Scheme == "http"
}

func checkAPIKey(name, key string) error {
	printable := !strings.Contains(key, " ") && !strings.ContainsFunc(key, notPrintableASCII)
	return cmp.Or(
		checkThat(name, key != "", "must not be empty"),
		checkThat(name, !strings.Contains(key, "://"), "is a URL (is it the base URL?)"),
		checkThat(name, printable,
			"must be printable ASCII without white space, as issued and without the word Bearer"),
	)
}

// Stats describes what a Client is doing at one moment, for gauges.
type Stats struct {
	Waiting   int       // meetings that calls and loops are waiting for, or whose texts they are fetching
	Oldest    time.Time // the earliest CreatedAt of these that a response has shown; zero if there is none
	Polled    time.Time // when a poll or a list page of a wait last succeeded; zero if none has
	Uploading int       // upload slots in use
}

// Stats returns what the Client is doing now. It makes no request, so you may call it as often as you
// like.
func (c *Client) Stats() Stats {
	shared := c.Meetings.core
	var s Stats
	s.Waiting, s.Oldest, s.Polled = shared.poller.Stats()
	fetching, oldest := shared.fetches.stats()
	s.Waiting += fetching
	s.Oldest = earliest(s.Oldest, oldest)
	s.Uploading = len(shared.uploadSlots)
	return s
}

// service is embedded in all services of a Client.
type service struct{ core *core }

// core is what the services of a Client share. After New, only what its fields point to changes.
type core struct {
	settings
	base *url.URL
	mask *rest.Mask // removes the API key from texts that come from outside

	api             *rest.Client
	storageThrottle *rest.Throttle            // holds back all uploads after a 429 or 503 from storage
	lastStored      atomic.Pointer[time.Time] // when storage took a recording last; nil if it never did
	poller          *poll.Poller[*Meeting]    // shared by all waits
	uploadSlots     chan struct{}             // holds a token for each upload under way
	fetchSlots      chan struct{}             // holds a token for each request for minutes or a transcript under way
	fetches         fetches
	unknownStatuses sync.Map  // each Status that the log has warned of
	unfitElements   sync.Map  // each unfitElement that the log has warned of
	warnOfAudio     sync.Once // of audio that a call found instead of uploading its own
}

func newCore(set settings, base *url.URL, mask *rest.Mask) *core {
	if set.storageTransport == nil {
		set.storageTransport = rest.StorageTransport(set.transport)
	}
	c := &core{
		settings:        set,
		base:            base,
		mask:            mask,
		storageThrottle: rest.NewThrottle(rate.NewLimiter(rate.Inf, 0)),
		uploadSlots:     make(chan struct{}, set.uploadConcurrency),
		fetchSlots:      make(chan struct{}, 8),
	}
	c.poller = poll.New(polled{c}, c.logTrouble)
	cfg := rest.Config{
		Base:       base,
		Key:        set.apiKeyFunc,
		Mask:       mask,
		UserAgent:  set.userAgent,
		Transport:  rest.APITransport(set.transport),
		Timeout:    set.attemptTimeout,
		MaxRetries: set.maxRetries,
		Throttle:   rest.NewThrottle(set.rateLimit),
	}
	if len(set.observers) > 0 {
		cfg.Observe = c.observeRequest
	}
	c.api = rest.New(cfg)
	return c
}

// call makes the request of one operation, and returns what the response says. The Response is nil
// only with a *ParamError; its Status is 0 if the service sent none that counts. If isPartial(err),
// the first result holds the rest of the list.
func call[T any](ctx context.Context, c *core, op Operation, in rest.Request) (*T, *rest.Response, error) {
	out := new(T)
	resp, err := c.callInto(ctx, op, in, out)
	if err != nil && !isPartial(err) {
		return nil, resp, err
	}
	return out, resp, err
}

// callInto makes the request, and decodes the response into out unless out is nil. The route is
// that of the table, except for OpDo, whose request brings its own. A nil ctx or an unusable id is
// a *ParamError. Any outcome but a whole 2xx that can be decoded is an *Error.
func (c *core) callInto(ctx context.Context, op Operation, in rest.Request, out any) (*rest.Response, error) {
	err := checkGiven("ctx", ctx != nil)
	if err != nil {
		return nil, err
	}
	in.Operation = string(op)
	if row := c.routes.Of(in.Operation); row != nil {
		before, param, after := route.Split(row.Path)
		if param != "" {
			err = c.checkID("id", in.ID)
			if err != nil {
				return nil, err
			}
		}
		if param == route.Meeting {
			in.MeetingID = in.ID
		}
		in.Method = row.Method
		in.Path = before + url.PathEscape(in.ID) + after
		in.Repeatable = in.Repeatable || row.Repeatable
	}
	in.Header, _ = ctx.Value(headerKey{}).(http.Header)
	resp, err := c.api.Call(ctx, in)
	if to, ok := ctx.Value(responseKey{}).(*Response); ok && to != nil && resp.Status != 0 {
		*to = c.response(resp)
	}
	if err != nil || resp.Status/100 != 2 {
		return resp, c.newError(resp, err)
	}
	return resp, c.decode(resp, out)
}

// Before a request, the Client only checks that the service will receive it as the caller means it.

// checkThat returns a ParamError for param unless ok.
func checkThat(param string, ok bool, reason string) error {
	if ok {
		return nil
	}
	return &ParamError{Param: param, Reason: reason}
}

// checkUTF8 returns a ParamError unless values that identify something are valid UTF-8. JSON would
// replace their other bytes, so that two values became one, and named another object. Texts that
// identify nothing, such as titles, may lose such bytes.
func checkUTF8(param string, values ...string) error {
	invalid := slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) })
	return checkThat(param, !invalid, "is not valid UTF-8")
}

func checkGiven(param string, given bool) error { return checkThat(param, given, "must not be nil") }

// checkID returns a ParamError for an id that would change the path of the request, and for one
// that contains the API key, because errors, logs and observers show ids.
func (c *core) checkID(param, id string) error {
	switch {
	case id == "":
		return &ParamError{Param: param, Reason: "must not be empty"}
	case id == "." || id == "..":
		return &ParamError{Param: param, Reason: "is a relative path, not an id"}
	case strings.ContainsFunc(id, unicode.IsControl):
		return &ParamError{Param: param, Reason: "contains a control character"}
	case c.mask.Text(id) != id:
		return &ParamError{Param: param, Reason: "contains the API key"}
	}
	return checkUTF8(param, id)
}

// pathProblem returns why a path cannot be sent unchanged or would lead to another path, or "".
func pathProblem(escaped string) string {
	u, err := url.Parse(escaped)
	switch {
	case err != nil || !strings.HasPrefix(escaped, "/"),
		u.EscapedPath() != escaped || strings.ContainsFunc(u.Path, unicode.IsControl):
		return "must begin with a slash, be escaped, and not contain a query, a fragment or a control character"
	case path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/"):
		return "must not contain empty or relative segments"
	}
	return ""
}

func notPrintableASCII(r rune) bool { return r < ' ' || r >= 0x7f }
