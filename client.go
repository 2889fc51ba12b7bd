package minutes

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"unicode/utf8"
)

// Client calls the Meeting Minutes Service. It is safe for concurrent use;
// make one and share it, since its rate limit, its cool-down after a 429 and
// its thirty-second floor between looks at a meeting hold for each Client on
// its own. It holds a goroutine only while somebody waits, and needs no closing.
// It prints masked under every verb of fmt.
type Client struct {
	Meetings   *MeetingsService
	Members    *MembersService
	Projects   *ProjectsService
	Templates  *TemplatesService
	Vocabulary *VocabularyService
	Usage      *UsageService

	core *core
}

// The environment variables that [NewFromEnv] reads.
const (
	envBaseURL = "MINUTES_BASE_URL"
	envAPIKey  = "MINUTES_API_KEY"
)

// New returns a Client for the service at baseURL, the address before "/v1".
// It does no I/O. baseURL must be https, save for a loopback host, and may
// have a path; the API key is sent to its host alone, and redirects are
// refused.
//
// What cannot be used is reported as a *ParamError that names the parameter or
// option.
func New(baseURL, apiKey string, opts ...Option) (*Client, error) {
	base, err := parseBaseURL(baseURL)
	if err != nil {
		return nil, err
	}
	if err := checkAPIKey(apiKey); err != nil {
		return nil, err
	}
	cfg := defaults()
	for _, opt := range opts {
		if opt == nil {
			return nil, &ParamError{"opts", "must not hold nil"}
		}
		if err := opt(cfg); err != nil {
			return nil, err
		}
	}
	c := newCore(base, apiKey, cfg)
	return &Client{
		Meetings:   &MeetingsService{c},
		Members:    &MembersService{c},
		Projects:   &ProjectsService{c},
		Templates:  &TemplatesService{c},
		Vocabulary: &VocabularyService{c},
		Usage:      &UsageService{c},
		core:       c,
	}, nil
}

// NewFromEnv is [New] with the base URL of MINUTES_BASE_URL and the API key of
// MINUTES_API_KEY; white space around them is dropped. A *ParamError names the
// variable.
func NewFromEnv(opts ...Option) (*Client, error) {
	var values [2]string
	for i, name := range []string{envBaseURL, envAPIKey} {
		values[i] = strings.TrimSpace(os.Getenv(name))
		if values[i] == "" {
			return nil, &ParamError{name, "is not set in the environment"}
		}
	}
	c, err := New(values[0], values[1], opts...)
	if bad, ok := errors.AsType[*ParamError](err); ok {
		switch bad.Param {
		case "baseURL":
			bad.Param = envBaseURL
		case "apiKey":
			bad.Param = envAPIKey
		}
	}
	return c, err
}

// Format prints the Client without its API key, under every verb.
func (c Client) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.mask()) }

// LogValue keeps the API key out of structured logs.
func (c Client) LogValue() slog.Value { return slog.StringValue(c.mask()) }

func (c Client) mask() string {
	if c.core == nil {
		return "minutes.Client(made without New)"
	}
	return "minutes.Client(" + c.core.base.String() + ", key masked)"
}

// parseBaseURL never quotes its input: swapped arguments put a key there.
func parseBaseURL(raw string) (url.URL, error) {
	bad := func(reason string) (url.URL, error) { return url.URL{}, &ParamError{"baseURL", reason} }
	if raw == "" {
		return bad("must not be empty")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || !utf8.ValidString(raw):
		return bad("is not a URL")
	case u.Scheme != "https" && u.Scheme != "http":
		return bad("must be an absolute URL that begins with https:// (is it the API key?)")
	case u.Hostname() == "":
		return bad("names no host")
	case u.User != nil:
		return bad("must not hold credentials")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return bad("must not hold a query or a fragment")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return bad("must be https, since the host is not loopback")
	case strings.ContainsFunc(u.Path, isControl):
		return bad("holds a control character")
	}
	base := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	for strings.HasSuffix(base.EscapedPath(), "/") { // the table's paths begin with one
		base.Path, base.RawPath = strings.TrimSuffix(base.Path, "/"), strings.TrimSuffix(base.RawPath, "/")
	}
	if base.Path == "/v1" {
		return bad("must end before /v1, which every path begins with")
	}
	return base, nil
}

func isLoopback(host string) bool {
	host = strings.ToLower(host)
	ip := net.ParseIP(host)
	return ip.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

func checkAPIKey(key string) error {
	switch {
	case key == "":
		return &ParamError{"apiKey", "must not be empty"}
	case strings.Contains(key, "://"):
		return &ParamError{"apiKey", "is a URL (is it the base URL?)"}
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return &ParamError{"apiKey", "must be printable ASCII without white space, as issued and without the word Bearer"}
	}
	return nil
}
