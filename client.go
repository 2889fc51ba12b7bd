package minutes

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/time/rate"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// Client calls the Meeting Minutes Service, and is safe for concurrent use. Create one Client and share it:
// the rate limit, the pause after a 429 and the polling work per Client, so two Clients do not respect each
// other's limits. A Client starts goroutines only for calls that are running, so it needs no Close. It is
// safe to print, because every verb of fmt masks the API key.
type Client struct {
	Meetings   *MeetingsService   // from a recording to the minutes
	Members    *MembersService    // people of the organisation
	Projects   *ProjectsService   // groups of meetings
	Templates  *TemplatesService  // how minutes are written
	Vocabulary *VocabularyService // terms that transcripts should spell right
	Usage      *UsageService      // the remaining quota
}

// New returns a Client for the service at baseURL, which is the address before "/v1" and may have a path.
// It makes no request, so a wrong key only shows later. Because each request contains the API key, baseURL
// must use https, except on localhost, 127.0.0.0/8 and ::1. For the same reason, the Client sends the key
// only to the host of baseURL, and follows no redirect. If a parameter or an option cannot be used, New
// returns a *ParamError that names it. In a test with testing/synctest, call New inside the bubble.
func New(baseURL, apiKey string, opts ...Option) (*Client, error) {
	return newClient("baseURL", baseURL, "apiKey", apiKey, opts)
}

// NewFromEnv calls [New] with the environment variables MINUTES_BASE_URL and MINUTES_API_KEY, without
// surrounding white space. If one of them is missing or invalid, NewFromEnv returns a *ParamError that
// names the variable.
func NewFromEnv(opts ...Option) (*Client, error) {
	const base, key = "MINUTES_BASE_URL", "MINUTES_API_KEY"
	return newClient(base, strings.TrimSpace(os.Getenv(base)), key, strings.TrimSpace(os.Getenv(key)), opts)
}

// newClient is New with names for its parameters, which errors show.
func newClient(baseName, baseURL, keyName, apiKey string, opts []Option) (*Client, error) {
	base, err := parseBaseURL(baseName, baseURL)
	if err = cmp.Or(err, checkAPIKey(keyName, apiKey)); err != nil {
		return nil, err
	}
	c := defaults()
	for _, opt := range opts {
		if opt.apply == nil {
			return nil, &ParamError{Param: "opts", Reason: "contains an Option that no With function returned"}
		}
		if err := opt.apply(c); err != nil {
			return nil, err
		}
	}
	c.ready(base, apiKey)
	s := service{c}
	return &Client{
		Meetings:   &MeetingsService{s},
		Members:    &MembersService{s},
		Projects:   &ProjectsService{s},
		Templates:  &TemplatesService{s},
		Vocabulary: &VocabularyService{s},
		Usage:      &UsageService{s},
	}, nil
}

// parseBaseURL never quotes base, which is the key if the caller has swapped the arguments.
func parseBaseURL(name, base string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(base, "/")) // every path begins with a slash
	if err != nil || !utf8.ValidString(base) {
		return nil, &ParamError{Param: name, Reason: "is not a URL"}
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "443"), 10, 16)
	u.Host = strings.ToLower(u.Host) // net/http bypasses proxies for localhost, but not for LOCALHOST
	return u, cmp.Or(
		checkThat(name, base != "", "must not be empty"),
		checkThat(name, u.Scheme == "https" || u.Scheme == "http",
			"must be an absolute URL that begins with https:// (is it the API key?)"),
		checkThat(name, u.Hostname() != "", "has no host"),
		checkThat(name, u.User == nil && !strings.ContainsAny(base, "?#"), "must not contain credentials, a query or a fragment"),
		checkThat(name, err == nil && port > 0, "has an invalid port"),
		checkThat(name, u.Scheme == "https" || isLoopback(u.Hostname()), "must use https, because the host is not loopback"),
		checkThat(name, u.Path != "/v1", "must not end with /v1, because the Client adds it"),
	)
}

// isLoopback reports whether requests to host stay on this machine. It returns false for
// x.localhost, because net/http may send such requests to HTTP_PROXY.
func isLoopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

func checkAPIKey(name, key string) error {
	printable := !strings.Contains(key, " ") && !strings.ContainsFunc(key, notPrintableASCII)
	return cmp.Or(
		checkThat(name, key != "", "must not be empty"),
		checkThat(name, !strings.Contains(key, "://"), "is a URL (is it the base URL?)"),
		checkThat(name, printable, "must be printable ASCII without white space, as issued and without the word Bearer"),
	)
}

// service is embedded in all services of a Client.
type service struct{ core *core }

// core is shared by the services of a Client. After New, it never changes.
type core struct {
	rest.Config                   // of api
	storage     http.RoundTripper // for uploads; nil until ready, if they use the transport for API calls
	routes      route.Routes
	log         *slog.Logger
	observers   []func(context.Context, Attempt)
	uploads     UploadTimeouts
	slots       chan struct{}

	api             *rest.Client
	storageThrottle *rest.Throttle         // holds back all uploads after a 429 or 503 from storage
	poller          *poll.Poller[*Meeting] // shared by all waits
	fetches         chan struct{}          // a token for each request for minutes or a transcript that is under way
}

// ready prepares a core for requests, after the options have set the fields.
func (c *core) ready(base *url.URL, apiKey string) {
	c.Base, c.Key, c.Mask = base, rest.NewSecret(apiKey), rest.NewMask(apiKey)
	c.storageThrottle = rest.NewThrottle(rate.NewLimiter(rate.Inf, 0))
	c.storage = cmp.Or(c.storage, rest.StorageTransport(c.Transport))
	c.Transport = rest.APITransport(c.Transport)
	if len(c.observers) > 0 {
		c.Observe = c.observeRequest
	}
	c.poller = poll.New(polled{c}, c.logTrouble)
	c.fetches = make(chan struct{}, 8)
	c.api = rest.New(c.Config)
}

// do runs one operation, and returns what the response says.
func do[T any](ctx context.Context, c *core, op Operation, in rest.Request) (*T, error) {
	out, _, err := doResponse[T](ctx, c, op, in)
	return out, err
}

// doResponse is do, and also returns the response.
func doResponse[T any](ctx context.Context, c *core, op Operation, in rest.Request) (*T, *rest.Response, error) {
	sent := c.poller.Sending()
	out := new(T)
	resp, err := c.request(ctx, op, in, out)
	if err != nil {
		return nil, nil, err
	}
	if m, ok := any(out).(*Meeting); ok && !in.Background { // the poller records its own polls
		c.record(m, sent)
	}
	return out, resp, nil
}

// request calls send with the route of an operation from the table. It returns a *ParamError if the
// request cannot be sent unchanged.
func (c *core) request(ctx context.Context, op Operation, in rest.Request, out any) (*rest.Response, error) {
	row := c.routes.Of(string(op))
	before, after, hasID := strings.Cut(row.Path, route.Param)
	if hasID {
		if err := c.checkID("id", in.ID); err != nil {
			return nil, err
		}
	}
	in.Operation, in.Method, in.Path = row.Operation, row.Method, before+url.PathEscape(in.ID)+after
	in.Repeatable = in.Repeatable || row.Repeatable
	return c.send(ctx, in, out)
}

// send makes one request, and decodes the response into out unless out is nil. Once ctx is checked, it
// returns an *Error unless the response is a whole 2xx that can be decoded, and the response even then.
func (c *core) send(ctx context.Context, in rest.Request, out any) (*rest.Response, error) {
	if err := checkGiven("ctx", ctx != nil); err != nil {
		return nil, err
	}
	in.Header, _ = ctx.Value(headerKey{}).(http.Header)
	resp, err := c.api.Do(ctx, in)
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

func checkGiven(param string, given bool) error { return checkThat(param, given, "must not be nil") }

// checkID returns a ParamError for an id that would change the path of the request, and for one that
// contains the API key, because errors, logs and observers show ids.
func (c *core) checkID(param, id string) error {
	switch {
	case id == "":
		return &ParamError{Param: param, Reason: "must not be empty"}
	case id == "." || id == "..":
		return &ParamError{Param: param, Reason: "is a relative path, not an id"}
	case strings.ContainsFunc(id, unicode.IsControl):
		return &ParamError{Param: param, Reason: "contains a control character"}
	case c.Mask.Text(id) != id:
		return &ParamError{Param: param, Reason: "contains the API key"}
	}
	return nil
}

// pathProblem returns why a path cannot be sent unchanged or would lead to another path, or "".
func pathProblem(escaped string) string {
	u, err := url.Parse(escaped)
	switch {
	case err != nil || !strings.HasPrefix(escaped, "/") || u.EscapedPath() != escaped || strings.ContainsFunc(u.Path, unicode.IsControl):
		return "must begin with a slash, be escaped, and not contain a query, a fragment or a control character"
	case path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/"):
		return "must not contain empty or relative segments"
	}
	return ""
}

func notPrintableASCII(r rune) bool { return r < ' ' || r >= 0x7f }
