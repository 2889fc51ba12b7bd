package minutes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/internal/secret"
	"github.com/meeting-minutes/minutes-go/internal/storage"
)

// Client calls the Meeting Minutes Service. It is safe for concurrent use;
// make one and share it, since its rate limit, its cool-down after a 429 and
// its thirty-second floor between looks at a meeting hold for each Client on
// its own. It holds a goroutine only while somebody waits, and needs no closing.
// It prints masked under every verb of fmt.
type Client struct {
	Meetings   *MeetingsService   // from a recording to its minutes
	Members    *MembersService    // people of the organisation
	Projects   *ProjectsService   // what meetings are grouped under
	Templates  *TemplatesService  // what shapes minutes
	Vocabulary *VocabularyService // terms that transcripts should spell right
	Usage      *UsageService      // what is left of the quota
}

// New returns a Client for the service at baseURL, the address before "/v1".
// It does no I/O. baseURL must be https, save for localhost, 127.0.0.0/8 and ::1,
// and may have a path; the API key is sent to its host alone, and redirects are
// refused. What cannot be used is reported as a *ParamError that names the parameter
// or option. In a test with testing/synctest, create the Client inside the bubble.
func New(baseURL, apiKey string, opts ...Option) (*Client, error) {
	return newClient("baseURL", baseURL, "apiKey", apiKey, opts)
}

// NewFromEnv is [New] with MINUTES_BASE_URL and MINUTES_API_KEY of the environment,
// without white space around them. A *ParamError names the variable.
func NewFromEnv(opts ...Option) (*Client, error) {
	const base, key = "MINUTES_BASE_URL", "MINUTES_API_KEY"
	return newClient(base, strings.TrimSpace(os.Getenv(base)), key, strings.TrimSpace(os.Getenv(key)), opts)
}

// newClient is New, whose parameters have these names where they came from.
func newClient(baseName, baseURL, keyName, apiKey string, opts []Option) (*Client, error) {
	base, err := parseBaseURL(baseName, baseURL)
	if err = cmp.Or(err, checkAPIKey(keyName, apiKey)); err != nil {
		return nil, err
	}
	shared := defaults()
	for _, opt := range opts {
		if opt == nil {
			return nil, &ParamError{"opts", "must not hold nil"}
		}
		if err := opt(shared); err != nil {
			return nil, err
		}
	}
	shared.ready(*base, apiKey)
	c := func() *core { return shared }
	return &Client{
		Meetings:   &MeetingsService{c},
		Members:    &MembersService{c},
		Projects:   &ProjectsService{c},
		Templates:  &TemplatesService{c},
		Vocabulary: &VocabularyService{c},
		Usage:      &UsageService{c},
	}, nil
}

// DoOption changes what [Client.Do] does.
type DoOption int

// Idempotent says that doing a request twice is the same as doing it once, so
// that it is repeated as a GET is.
const Idempotent DoOption = 1

// Do makes a request that this package has no method for, as it makes every other:
// with the API key, at the Client's pace, through its cool-downs, limits and
// retries, told to its observer as OpDo. path stands below the base URL, begins
// with a slash and is escaped (see [url.PathEscape]): "/v1/meetings/mtg_1/notes".
// in is sent as JSON and the reply is decoded into out, each unless it is nil.
//
// A GET is repeated as the package's own are; any other method only where it
// certainly took no effect (a 429, or a connection that was never made), unless
// Idempotent is given. A reply of more than 4 MiB is refused. What Do sees of a
// meeting is no look to those who wait: the thirty seconds between two looks are
// the caller's to keep.
//
// It also reads fields that a type of this package does not know, into a struct that
// embeds the type, as the example shows.
//
// Errors: *Error as for every call; *ParamError for what cannot be sent.
func (c *Client) Do(ctx context.Context, method, path string, query url.Values, in, out any, opts ...DoOption) error {
	row := route.Route{Operation: route.Operation(OpDo), Method: method, Path: path}
	if method == http.MethodGet || slices.Contains(opts, Idempotent) {
		row.Repeat = route.Always
	}
	wrong := wrongPath(path)
	if err := cmp.Or(checkThat("method", slices.Contains(methods, method), methodReason),
		checkThat("path", wrong == "", wrong)); err != nil {
		return err
	}
	request := rest.Request{Operation: row.Operation, Route: &row, Query: query}
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return &ParamError{Param: "in", Reason: "cannot be written as JSON"}
		}
		request.Body = json.RawMessage(body)
	}
	shared := c.Meetings.core()
	reply, err := shared.send(ctx, request)
	if err != nil {
		return err
	}
	defer reply.Release()
	return shared.decode(request, reply, out)
}

// Format prints the Client without its API key, under every verb.
func (c Client) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.mask()) }

// LogValue keeps the API key out of structured logs.
func (c Client) LogValue() slog.Value { return slog.StringValue(c.mask()) }

func (c Client) mask() string {
	return "minutes.Client(" + cmp.Or(c.Meetings.core().Base, "made without New") + ", key masked)"
}

// parseBaseURL never quotes its input: swapped arguments put a key there.
func parseBaseURL(name, base string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(base, "/")) // every path begins with one
	if err != nil || !utf8.ValidString(base) {
		return nil, &ParamError{name, "is not a URL"}
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "443"), 10, 16)
	u.Host = strings.ToLower(u.Host) // net/http asks no proxy for localhost, but does for LOCALHOST
	return u, cmp.Or(
		checkThat(name, base != "", "must not be empty"),
		checkThat(name, u.Scheme == "https" || u.Scheme == "http",
			"must be an absolute URL that begins with https:// (is it the API key?)"),
		checkThat(name, u.Hostname() != "", "names no host"),
		checkThat(name, u.User == nil && !strings.ContainsAny(base, "?#"), "must not hold credentials, a query or a fragment"),
		checkThat(name, err == nil && port > 0, "names a port that does not exist"),
		checkThat(name, u.Scheme == "https" || isLoopback(u.Hostname()), "must be https, since the host is not loopback"),
		checkThat(name, !strings.ContainsFunc(u.Path, unicode.IsControl), "holds a control character"),
		checkThat(name, u.Path != "/v1", "must end before /v1, which every path begins with"),
	)
}

// isLoopback reports whether requests to host stay on this machine. Other names
// may lead here, too, such as x.localhost, but net/http sends requests for them
// through HTTP_PROXY.
func isLoopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

func checkAPIKey(name, key string) error {
	printable := !strings.Contains(key, " ") && !strings.ContainsFunc(key, isNoASCII)
	return cmp.Or(
		checkThat(name, key != "", "must not be empty"),
		checkThat(name, !strings.Contains(key, "://"), "is a URL (is it the base URL?)"),
		checkThat(name, printable, "must be printable ASCII without white space, as issued and without the word Bearer"),
	)
}

// service is any of the services. Its handle leads to what those of a Client share.
// It is a function because printing by reflection (a test's diff, a debugger's dump)
// follows every pointer but enters no closure. Behind it are the API key and a
// transport, whose idle connections keep what they sent last.
type service struct{ handle func() *core }

// core is what the handle leads to, also where a service is nil or was not made by New.
func (s *service) core() *core {
	if s == nil || s.handle == nil {
		return defaults().ready(url.URL{}, "") // every request fails
	}
	return s.handle()
}

// core is what the services of a Client share. Options set what is in it; Observe
// is set where there is a log or an observer.
type core struct {
	rest.Config                   // of api
	storage     http.RoundTripper // nil: that of Config
	log         *slog.Logger
	observer    func(context.Context, Event)
	uploads     storage.Limits
	places      places // for uploads
	local       bool   // the service is on this machine, and so may its storage be

	api    *rest.Client
	poller *poll.Poller // that all waits share
}

// ready returns a core that is set, ready for requests. It never changes afterwards.
// base is empty where New has not made the Client.
func (c *core) ready(base url.URL, apiKey string) *core {
	c.Base, c.local = base.String(), isLoopback(base.Hostname())
	c.Authorization, c.Mask = []string{"Bearer " + apiKey}, secret.Mask{apiKey}
	c.storage = cmp.Or(c.storage, c.Transport)
	c.poller = poll.New(polled{c})
	if c.Observe != nil {
		c.poller.Observer = polled{c}
	}
	c.api = rest.New(c.Config)
	return c
}

// sharedTransport serves every Client that was given no transport. With one for
// each, Clients that come and go would each leave a pool of connections behind.
var sharedTransport = sync.OnceValue(func() http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          100,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: 2 * time.Second, // uploads wait this long for leave to send the body
	}
})

// do runs one operation: internal/rest makes the request, errors.go says what a
// failure means, and a success is decoded here.
func do[T any](ctx context.Context, c *core, in rest.Request) (*T, error) {
	out, _, err := doReply[T](ctx, c, in)
	return out, err
}

// pick is do for what is answered inside an object that holds nothing else.
func pick[T, F any](ctx context.Context, c *core, in rest.Request, field func(*T) F) (found F, _ error) {
	out, err := do[T](ctx, c, in)
	if err == nil {
		found = field(out)
	}
	return found, err
}

// doReply is do, with the status and the header of the reply.
func doReply[T any](ctx context.Context, c *core, in rest.Request) (*T, *rest.Reply, error) {
	asked := c.poller.Now()
	reply, err := c.send(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	defer reply.Release()
	out := new(T)
	// In one long text, anything may stand.
	if in.MaxReply != maxText && reply.Cut == 0 && hollow(reply.Body()) {
		return nil, nil, c.unusable(in, reply, "the reply holds more elements than its length is worth")
	}
	if err := c.decode(in, reply, out); err != nil {
		return nil, nil, err
	}
	if at := missing(reflect.ValueOf(out).Elem(), reply.Body()); at != "" {
		return nil, nil, c.unusable(in, reply, "the reply lacks "+at[1:])
	}
	switch out := any(out).(type) {
	case *Meeting:
		if in.ID != "" && out.ID != in.ID {
			return nil, nil, c.unusable(in, reply, anotherMeeting)
		}
		c.clean(out)
		if !in.Once { // the poller records its own polls
			c.poller.Record(snapshotOf(out.clone()), asked)
		}
	case *MeetingPage:
		c.clean(out.Meetings...)
	}
	return out, reply, nil
}

const anotherMeeting = "the reply is about another meeting"

// clean masks the API key in those fields of a meeting that errors and logs show.
// A short key is left alone, since an id may hold it by chance.
func (c *core) clean(meetings ...*Meeting) {
	const surely = 16
	if len(c.Mask[0]) < surely {
		return
	}
	for _, m := range meetings {
		m.ID, m.Status = c.Mask.Text(m.ID), Status(c.Mask.Text(string(m.Status)))
	}
}

// send makes one request, and leaves the reply to its caller to decode and release.
func (c *core) send(ctx context.Context, in rest.Request) (*rest.Reply, error) {
	err := cmp.Or(checkThat("Client", c.Base != "", "must be made by New"),
		checkGiven("ctx", ctx != nil), checkTexts(in.Query), checkTexts(in.Body))
	if row, _ := route.Of(in.Operation); err == nil && strings.Contains(row.Path, route.Param) {
		err = checkID("id", in.ID)
	}
	if err != nil {
		return nil, err
	}
	reply, failure := c.api.Do(ctx, in)
	if failure != nil {
		defer failure.Release()
		return nil, c.failed(failure)
	}
	return reply, nil
}

// decode reads the body of a success into out, unless that is nil.
func (c *core) decode(in rest.Request, reply *rest.Reply, out any) error {
	switch {
	case out == nil:
		return nil
	case reply.Cut > 0:
		return c.unusable(in, reply, "the reply is longer than "+strconv.FormatInt(reply.Cut, 10)+" bytes")
	case len(reply.Body()) == 0:
		return c.unusable(in, reply, "the reply is empty")
	}
	if err := json.Unmarshal(reply.Body(), out); err != nil {
		return c.unusable(in, reply, "the reply is not what the interface promises: "+describeBody(reply, err))
	}
	return nil
}

// hollow reports whether a long reply is a list of next to nothing, such as
// [{},{},…], which takes a hundred times its bytes once it is decoded: more than
// every eighth byte is a comma.
func hollow(body []byte) bool {
	const long, most = 64 << 10, 8
	return len(body) > long && (bytes.Count(body, []byte(",")) > len(body)/most || bytes.Count(body, []byte("{")) > len(body)/16)
}
