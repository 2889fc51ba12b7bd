package minutes

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/internal/secret"
	"github.com/meeting-minutes/minutes-go/internal/upload"
)

// Client calls the Meeting Minutes Service. Create one Client and share it between goroutines. The
// rate limit, the pause after a 429 and the poll interval apply to each Client separately. A Client starts goroutines only for calls that are
// running, and needs no Close. Every verb of fmt masks the API key.
type Client struct {
	Meetings   *MeetingsService   // from a recording to the minutes
	Members    *MembersService    // people of the organisation
	Projects   *ProjectsService   // groups of meetings
	Templates  *TemplatesService  // shapes of minutes
	Vocabulary *VocabularyService // terms that transcripts should spell right
	Usage      *UsageService      // the remaining quota
}

// New returns a Client for the service at baseURL, the address before "/v1". New makes no request.
// baseURL may have a path. baseURL must use https, except on localhost, 127.0.0.0/8 and ::1. The
// Client sends the API key only to the host of baseURL, and follows no redirect. If a parameter or
// an option cannot be used, New returns a *ParamError that names it. In a test with
// testing/synctest, call New inside the bubble.
func New(baseURL, apiKey string, opts ...Option) (*Client, error) {
	return newClient("baseURL", baseURL, "apiKey", apiKey, opts)
}

// NewFromEnv calls [New] with the environment variables MINUTES_BASE_URL and MINUTES_API_KEY,
// without surrounding white space. A *ParamError names the variable.
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
	shared := defaults()
	for _, opt := range opts {
		if opt.apply == nil {
			return nil, &ParamError{"opts", "contains an Option that no With function returned"}
		}
		if err := opt.apply(shared); err != nil {
			return nil, err
		}
	}
	shared.ready(*base, apiKey)
	s := service{secret.Hide(shared, "***")}
	return &Client{
		Meetings:   &MeetingsService{s},
		Members:    &MembersService{s},
		Projects:   &ProjectsService{s},
		Templates:  &TemplatesService{s},
		Vocabulary: &VocabularyService{s},
		Usage:      &UsageService{s},
	}, nil
}

func (c *Client) core() *core { return cmp.Or(c.Meetings, new(MeetingsService)).core() }

// Format prints the Client without its API key, for every verb.
func (c Client) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.mask()) }

// LogValue keeps the API key out of structured logs.
func (c Client) LogValue() slog.Value { return slog.StringValue(c.mask()) }

func (c Client) mask() string {
	return "minutes.Client(" + cmp.Or(c.core().Base, "made without New") + ", key masked)"
}

// parseBaseURL never quotes base, which is the key if the caller has swapped the arguments.
func parseBaseURL(name, base string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(base, "/")) // every path begins with a slash
	if err != nil || !utf8.ValidString(base) {
		return nil, &ParamError{name, "is not a URL"}
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
		checkThat(name, !strings.ContainsFunc(u.Path, unicode.IsControl), "contains a control character"),
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

// service is embedded in all services of a Client. It hides the core, because the core holds the
// API key, and because idle connections of the transport keep their last request.
type service struct{ shared secret.Value[*core] }

// core returns the core of the Client. Without New, every request of the core fails.
func (s *service) core() *core {
	if c := s.shared.Reveal(); c != nil {
		return c
	}
	return defaults().ready(url.URL{}, "")
}

// core is shared by the services of a Client. Without a logger and an observer, Observe is nil.
type core struct {
	rest.Config                   // of api
	storage     http.RoundTripper // nil: Config.Transport
	log         *slog.Logger
	observer    func(context.Context, Event)
	uploads     upload.Timeouts
	slots       uploadSlots
	maxAge      atomic.Int64 // the last Cache-Control of a poll, as a time.Duration
	host        string
	local       bool // the service is on this machine, so its storage may be, too

	api    *rest.Client
	poller *poll.Poller // shared by all waits
}

// ready prepares a core for requests, after the options have set the fields. Afterwards the core
// never changes. base is empty if New did not make the Client.
func (c *core) ready(base url.URL, apiKey string) *core {
	c.Base, c.host, c.local = base.String(), base.Host, isLoopback(base.Hostname())
	c.Authorization, c.Mask = []string{"Bearer " + apiKey}, secret.Mask{apiKey}
	if c.storage = cmp.Or(c.storage, c.Transport); c.storage == sharedTransport() {
		c.storage = storageTransport()
	}
	c.poller = poll.New(polled{c})
	if c.Observe != nil {
		c.poller.Observer = polled{c}
	}
	c.api = rest.New(c.Config)
	return c
}

// The transports of Clients without their own.
var sharedTransport, storageTransport = backoff.SharedTransport, backoff.StorageTransport

// do runs one operation: internal/rest makes the request, and decode.go reads the response.
func do[T any](ctx context.Context, c *core, in rest.Request) (*T, error) {
	out, _, err := doResponse[T](ctx, c, in)
	return out, err
}

// pick is do for a value that the response wraps in an object.
func pick[T, F any](ctx context.Context, c *core, in rest.Request, field func(*T) F) (found F, _ error) {
	out, err := do[T](ctx, c, in)
	if err == nil {
		found = field(out)
	}
	return found, err
}

// doResponse is do, and also returns the status and the header of the response.
func doResponse[T any](ctx context.Context, c *core, in rest.Request) (*T, *rest.Response, error) {
	asked, out := c.poller.Now(), new(T)
	resp, err := c.request(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Release()
	if err := c.decode(in, resp, out); err != nil {
		return nil, nil, err
	}
	if m, ok := any(out).(*Meeting); ok && !in.Once { // the poller records its own polls
		c.poller.Record(snapshotOf(m.clone()), asked)
	}
	return out, resp, nil
}

// request makes one request. It returns a *ParamError if the request cannot be sent unchanged. The
// caller releases the response.
func (c *core) request(ctx context.Context, in rest.Request) (*rest.Response, error) {
	err := cmp.Or(checkThat("Client", c.Base != "", "must be made by New"),
		checkGiven("ctx", ctx != nil), checkTexts(in.Query), checkTexts(in.Body))
	if row, _ := route.Of(in.Operation); err == nil && strings.Contains(row.Path, route.Param) {
		err = checkID("id", in.ID)
	}
	if err != nil {
		return nil, err
	}
	resp := c.api.Do(ctx, in)
	if resp.OK() {
		return resp, nil
	}
	defer resp.Release()
	return nil, c.newError(resp)
}
