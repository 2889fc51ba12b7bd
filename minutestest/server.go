package minutestest

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/engine"
	"github.com/meeting-minutes/minutes-go/internal/fake/inspector"
	"github.com/meeting-minutes/minutes-go/internal/fake/mistake"
	"github.com/meeting-minutes/minutes-go/internal/fake/recent"
)

// BaseURL is the Server's address for the clients that it returns. It exists only inside this
// process.
const BaseURL = "https://api.minutes.test"

// TB has the methods of a *testing.T, *testing.B or *testing.F that [NewServer] needs.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Server is one in-memory fake, with its own meetings and storage. It is safe for concurrent use,
// inside and outside synctest bubbles, and shares nothing with other Servers.
type Server struct {
	world      World
	audit      *audit
	engine     *engine.Service
	edge       edge
	injections injections
	// journal has the requests in the order in which they ended.
	journal recent.List[Request]
	// arrivals is the number of requests that have arrived.
	arrivals  atomic.Uint64
	inspector *inspector.Inspector
	network   *network
	// inside and outside are the clients that all share, inside and outside synctest bubbles.
	inside  *http.Client
	outside *http.Client
	// log gets each request; nil: nobody does.
	log      func(Request)
	reporter reporter
	// inTest is whether a test made the Server, so that the line of a call says something.
	inTest bool

	mu        sync.Mutex
	listening []*http.Server
}

// config is what Options change.
type config struct {
	world     World
	keepAudio bool
	seed      uint64
	speed     float64
	edgeLimit int
	log       func(Request)
	// interval is the shortest time between two polls of a meeting.
	interval time.Duration
	// ignored are the kinds that the audit does not report.
	ignored []ViolationKind
}

// Option changes a setting of a new [Server].
type Option struct{ apply func(*config) error }

// option returns an Option that cannot be invalid.
func option(apply func(*config)) Option {
	return Option{func(c *config) error {
		apply(c)
		return nil
	}}
}

// WithWorld makes the Server begin with w instead of [DefaultWorld].
func WithWorld(w World) Option { return option(func(c *config) { c.world = w }) }

// WithMinPollInterval replaces [MinPollInterval] for the audit and in the Cache-Control of
// meetings, so that your own poller need not wait half a minute in a test without virtual time. A
// shorter interval does not speed up a [minutes.Client], because that never polls more often than
// every thirty seconds.
func WithMinPollInterval(d time.Duration) Option {
	return Option{func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("WithMinPollInterval: %s is not over 0", d)
		}
		c.interval = d
		return nil
	}}
}

// WithSeed makes runs deterministic: the same requests at the same times, one after the other, get
// the same ids, cursors and upload URLs on every run. A seed of 0 has no effect.
//
// The Server has no jitter, but a Client waits for a random time before it retries and after a 429.
// Ids of meetings stay the same even then, because they depend only on the order of the creates.
// Timestamps, upload URLs and what a poll finds may differ.
func WithSeed(seed uint64) Option { return option(func(c *config) { c.seed = seed }) }

// WithSpeed divides the duration of every stage of a meeting by factor, whether a World or a
// [Script] sets it.
func WithSpeed(factor float64) Option {
	return Option{func(c *config) error {
		if !(factor > 0) { // NaN, too
			return fmt.Errorf("WithSpeed: %v is not over 0", factor)
		}
		c.speed = factor
		return nil
	}}
}

// WithAudio keeps the bytes of recordings for [Server.Meeting]. Without it, recordings are only
// hashed and counted, so they cost no memory.
func WithAudio() Option { return option(func(c *config) { c.keepAudio = true }) }

// WithoutAudit turns the audit off for violations of these kinds, or of all if you name none.
// [Server.Violations] then omits them. To assert on violations that must not fail the test, make
// the Server with [New] instead, and close it yourself.
func WithoutAudit(kinds ...ViolationKind) Option {
	if len(kinds) == 0 {
		kinds = violationKinds
	}
	return Option{func(c *config) error {
		for _, kind := range kinds {
			if _, err := ParseViolationKind(string(kind)); err != nil {
				return fmt.Errorf("WithoutAudit: %w", err)
			}
		}
		c.ignored = append(c.ignored, kinds...)
		return nil
	}}
}

// WithEdgeLimit makes the Server reject requests as the proxy in front of the service does, with a 429 that has
// Retry-After but no error envelope. Each key may send perSecond requests in each second of the
// clock, which in a synctest bubble is virtual; 0 means no limit. Uploads have no limit, because
// storage has no edge. In [Server.Requests], the Fault of a rejected request is "edge limit".
func WithEdgeLimit(perSecond int) Option {
	return Option{func(c *config) error {
		if perSecond < 0 {
			return fmt.Errorf("WithEdgeLimit: %d is negative", perSecond)
		}
		c.edgeLimit = perSecond
		return nil
	}}
}

// WithLog calls log with each request when it has ended, in the goroutine that serves it. Calls may
// run concurrently. [Server.Requests] contains the request by then, but the client gets the end of
// its response only after log has returned.
//
// The Server holds no lock while it calls log, so log may call any method except Close. It may also
// send requests itself, if that does not cause an endless chain of logged requests. A panic in log
// crashes the program.
func WithLog(log func(Request)) Option { return option(func(c *config) { c.log = log }) }

// NewServer returns a Server for one test, and closes it when the test ends. Then every violation
// (see [Server.Violations]) and every fault that was applied fewer times than you asked fails the
// test. If the test failed for any reason, and go test has -artifacts, NewServer writes
// [Server.Report] to the test's ArtifactDir and logs the path.
//
// A Server made in a synctest bubble belongs to that bubble. At the end of the test it lets an hour
// of virtual time pass, so that goroutines that were canceled in the middle of a sleep can end. A
// Server made outside serves any number of bubbles, each on its own time.
//
// A Server made with a *testing.F serves all inputs of its fuzz target. There, a mistake such as an
// invalid Match panics, because a fuzz target cannot use the *testing.F.
func NewServer(tb TB, opts ...Option) *Server {
	if tb == nil {
		panic(mistake.Mistake{Method: "NewServer", Err: errors.New("there is no test; New makes a Server without one")})
	}
	tb.Helper()
	s, err := newServer(reporterOf(tb), opts)
	if err != nil {
		testReporter{tb}.Mistake("NewServer", err)
		return nil
	}
	s.inTest = true
	tb.Cleanup(func() {
		_ = s.Close()
		s.failTest(tb)
		s.explain(tb)
		if inBubble() {
			// Time stops with the test. A goroutine that still sleeps then, as in the ReadAt of a
			// slow recording, is a deadlock to package synctest.
			time.Sleep(time.Hour)
		}
	})
	return s
}

// New returns a Server for TestMain and programs; call Close when you are done. Violations and
// unused faults then have no consequence, so read [Server.Violations] and [Server.UnusedFaults]
// yourself. A mistake in a call, such as an unknown organisation, panics, and so does New itself if
// an option is invalid. If a World comes from a file, use [LoadWorld], which returns an error
// instead.
func New(opts ...Option) *Server {
	s, err := newServer(programReporter{}, opts)
	if err != nil {
		programReporter{}.Mistake("New", err)
	}
	return s
}

func newServer(r reporter, opts []Option) (*Server, error) {
	c := config{world: DefaultWorld(), interval: MinPollInterval}
	for _, opt := range opts {
		if opt.apply == nil {
			return nil, errors.New("an Option is empty; the functions that begin with With make Options")
		}
		err := opt.apply(&c)
		if err != nil {
			return nil, err
		}
	}
	service, err := engine.New(engine.Config{
		World:           c.world,
		KeepAudio:       c.keepAudio,
		Seed:            c.seed,
		Speed:           c.speed,
		MinPollInterval: c.interval,
		Storage:         map[string]string{apiHost: "https://" + storageHost},
	})
	if err != nil {
		return nil, mistake.At("world", "%s", err)
	}
	s := &Server{
		world:    c.world,
		engine:   service,
		audit:    newAudit(c.interval, c.ignored, service.Meeting),
		edge:     edge{limit: c.edgeLimit},
		journal:  recent.List[Request]{Max: journalSize},
		log:      c.log,
		reporter: r,
	}
	s.inspector = inspector.New(source{s})
	s.network = newNetwork(s.Handler(), s.dialError)
	s.inside = s.network.client(0, true)
	s.outside = s.network.client(0, false)
	return s, nil
}

// Client returns a client of the Server with [Server.Key], without a rate limit unless opts set
// one. For [minutes.WithAPIKeyFunc], use ClientWithKey with an empty key. The audit treats each
// Client as a separate program, such as a second worker or the process after a crash.
//
// Call it in the synctest bubble that uses the Client. A request by a Client from outside
// fails with a 400 (minutes.ErrBadRequest) that says so. A Client made in a bubble must not be used
// outside it: Go then ends the program.
func (s *Server) Client(opts ...minutes.Option) *minutes.Client {
	s.reporter.Helper()
	secret := s.Key()
	if secret == "" {
		s.reporter.Mistake("Client", errors.New("the World's first organisation has no integration key "+
			"that has every scope and never expires"))
		return nil
	}
	return s.ClientWithKey(secret, opts...)
}

// ClientWithKey is like [Server.Client] with another key, which need not exist in the World. With
// [minutes.WithAPIKeyFunc] among opts, secret must be empty.
func (s *Server) ClientWithKey(secret string, opts ...minutes.Option) *minutes.Client {
	s.reporter.Helper()
	defaults := []minutes.Option{minutes.WithHTTPClient(s.NewHTTPClient()), minutes.WithRateLimit(0, 0)}
	client, err := minutes.New(BaseURL, secret, append(defaults, opts...)...)
	if err != nil {
		s.reporter.Mistake("Client", err)
	}
	return client
}

// Key returns the secret of the first organisation's first integration key that has every scope, is
// not revoked and never expires, so a client can do everything with it. It is "" if there is none.
// Key looks at the World that the Server began with, so updates do not change the result.
func (s *Server) Key() string {
	if len(s.world.Organisations) == 0 {
		return ""
	}
	for _, k := range s.world.Organisations[0].Keys {
		lacks := func(scope minutes.Scope) bool { return k.Scopes != nil && !slices.Contains(k.Scopes, scope) }
		if k.IntegrationID != "" && !slices.ContainsFunc(engine.Scopes, lacks) && !k.Revoked && k.ExpiresAt == 0 {
			return k.Secret
		}
	}
	return ""
}

// HTTPClient returns an HTTP client that connects only to the Server, in memory: to the service
// under [BaseURL], and to storage under the service's upload URLs. No other host exists. It uses a
// new HTTP/1.1 connection for each request. IP allowlists see it as 127.0.0.1.
//
// A client made in a synctest bubble works only in bubbles, and one made outside only outside.
// Within bubbles, and likewise outside, each call returns the same *http.Client, so copy it before
// you change a field. For the audit, all requests through it that have the same key come from one
// program; see [ViolationKind].
func (s *Server) HTTPClient() *http.Client {
	if inBubble() {
		return s.inside
	}
	return s.outside
}

// NewHTTPClient is like [Server.HTTPClient], but the audit treats each result as a separate
// program. Use it for a second worker that makes its own [minutes.Client], or for the process after
// a crash.
func (s *Server) NewHTTPClient() *http.Client {
	return s.network.client(s.network.clients.Add(1), inBubble())
}

// Handler returns the service and its storage as a handler, for your own HTTP server. Upload URLs
// have the scheme and host of the request that asked for them. A fault that resets the connection
// needs an [http.Hijacker], and without one panics with [http.ErrAbortHandler].
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// Listen also serves on a real socket until [Server.Close], and returns the base URL. If addr is
// "", it takes a free port of 127.0.0.1. In a synctest bubble it returns an error, because virtual
// time does not advance while a goroutine waits for a socket.
func (s *Server) Listen(addr string) (baseURL string, err error) {
	if inBubble() {
		return "", errors.New("minutestest: Listen: a synctest bubble cannot wait for sockets; use Server.HTTPClient")
	}
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("minutestest: %w", err)
	}
	srv := newHTTPServer(s.Handler())
	s.mu.Lock()
	s.listening = append(s.listening, srv)
	s.mu.Unlock()
	go func() { _ = srv.Serve(l) }()
	return "http://" + l.Addr().String(), nil
}

// newHTTPServer returns a server for h that no client can hold for ever.
func newHTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:                      h,
		DisableGeneralOptionsHandler: true, // "OPTIONS *" is a path like others
		ErrorLog:                     log.New(io.Discard, "", 0),
		ReadHeaderTimeout:            10 * time.Second,
		IdleTimeout:                  2 * time.Minute,
	}
}

// Close closes the Server's connections and listeners. It waits up to 0.1 s for open responses. The
// requests that the Server has seen stay readable, and closing it twice does no harm.
func (s *Server) Close() error {
	for _, body := range s.network.leftOpen() {
		s.audit.noteOpenBody(body)
	}
	s.network.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, srv := range s.listening {
		errs = append(errs, srv.Close())
	}
	return errors.Join(errs...)
}

// failTest fails the test for the violations of its clients and for its unused faults.
func (s *Server) failTest(tb TB) {
	tb.Helper()
	const most = 20
	lines := grouped(s.Violations())
	for _, line := range lines[:min(len(lines), most)] {
		tb.Errorf("minutestest: %s", line)
	}
	if len(lines) > most {
		tb.Errorf("minutestest: and %d violations more", len(lines)-most)
	}
	for _, text := range s.UnusedFaults() {
		tb.Errorf("minutestest: %s: correct its Match, or call Optional", text)
	}
}
