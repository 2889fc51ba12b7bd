package minutestest

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/inspector"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/recent"
)

// BaseURL is the base URL of every [Server] for those who come through its [Server.HTTPClient].
// Other clients cannot reach it.
const BaseURL = "https://" + apiHost

// TB is the four methods that [NewServer] needs of a test: a *testing.T, *testing.B or *testing.F
// has them.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Server is a Meeting Minutes Service in memory, with the storage that takes its audio. It is safe
// for use by many goroutines at once, in and out of synctest bubbles. Two Servers share nothing.
type Server struct {
	world     World
	keepAudio bool
	seed      uint64
	audit     *audit
	engine    *engine.Service
	edge      edge
	faults    faults
	journal   recent.List[Request] // in the order in which they ended
	count     atomic.Uint64        // requests that have arrived
	inspector *inspector.Inspector
	network   *network
	http      *http.Client
	log       func(Request) // nil: none
	tb        TB            // nil: none, or a *testing.F
	helper    func()        // of tb

	mu        sync.Mutex
	closed    bool
	listening []*http.Server
}

// Option changes a setting of a new [Server].
type Option func(*Server)

// WithWorld makes the Server begin with w instead of [DefaultWorld].
func WithWorld(w World) Option { return func(s *Server) { s.world = w } }

// WithMinPollInterval replaces [MinPollInterval] for the audit and in the Cache-Control of
// meetings, so that a suite without virtual time need not wait half a minute. A [minutes.Client]
// never polls more often than that anyway.
func WithMinPollInterval(d time.Duration) Option { return func(s *Server) { s.audit.interval = d } }

// WithSeed makes ids, cursors and upload URLs repeat exactly: the same requests at the same times,
// one after the other, get the same responses on every run. A seed of 0 is none.
//
// The Server has no jitter, but each Client has: a poll comes up to a second late, and a retry
// after a random wait. So after a wait ids still repeat, but timestamps, upload URLs and what a
// poll finds may not.
func WithSeed(seed uint64) Option { return func(s *Server) { s.seed = seed } }

// WithAudio keeps the bytes of recordings for [Server.Meeting]. Otherwise recordings are hashed and
// counted only, and cost no memory.
func WithAudio() Option { return func(s *Server) { s.keepAudio = true } }

// WithoutAudit turns the audit off for violations of these kinds; without kinds, for all of them.
// [Server.Violations] does not contain these kinds. To assert on violations that must not fail the
// test, make the Server with [New], and close it yourself.
func WithoutAudit(kinds ...ViolationKind) Option {
	if len(kinds) == 0 {
		kinds = violationKinds
	}
	return func(s *Server) { s.audit.ignored = append(s.audit.ignored, kinds...) }
}

// WithEdgeLimit makes the Server reject requests as the service's edge does: with a 429 that has no
// envelope, and Retry-After. Each key may send perSecond requests in each second of the clock,
// which in a synctest bubble is the bubble's. Uploads have no limit. In [Server.Requests], the
// Fault of a rejected request is "edge limit".
func WithEdgeLimit(perSecond int) Option { return func(s *Server) { s.edge.limit = perSecond } }

// WithLog calls log with each request when it has ended, in the goroutine that serves it, before
// the response is complete. Requests that are served at once are logged at once.
//
// The Server holds no lock meanwhile: log may call each of its methods but Close, and may use a
// client of it if that does not log without end. The request is in [Server.Requests] by then. The
// response waits until log returns. A panic in log crashes the program.
func WithLog(log func(Request)) Option { return func(s *Server) { s.log = log } }

// NewServer returns a Server for one test. When the test ends, the Server is closed. Every
// violation (see [Server.Violations]) and every fault that was applied fewer times than asked fails the
// test. If the test failed for any reason, and go test has -artifacts, [Server.Report] goes to the
// test's ArtifactDir, and the test's log contains its path.
//
// A Server made in a synctest bubble is for that bubble alone. When the test ends, it lets an hour
// of the bubble's time pass, so that goroutines that were canceled in the middle of a sleep can
// end. One made outside serves any number of bubbles, each on its own time. One made with a
// *testing.F serves all the inputs of its fuzz target; within that, a mistake such as an invalid
// Match panics.
func NewServer(tb TB, opts ...Option) *Server {
	tb.Helper()
	s, err := newServer(tb, opts)
	if err != nil {
		tb.Fatalf("minutestest: NewServer: %v", err)
		return nil
	}
	tb.Cleanup(func() {
		_ = s.Close()
		s.fails(tb)
		s.explain(tb)
		if inBubble() {
			// Time stops with the test. A goroutine that still sleeps then, as in the ReadAt of a slow
			// recording, is a deadlock to package synctest.
			time.Sleep(time.Hour)
		}
	})
	return s
}

// New returns a Server that belongs to no test, for TestMain and for programs. Its owner closes it.
// It panics if the options are invalid, which is a mistake in the code; a World from elsewhere is
// checked by [LoadWorld].
func New(opts ...Option) *Server {
	s, err := newServer(nil, opts)
	if err != nil {
		panic(mistake{"New", err})
	}
	return s
}

func newServer(tb TB, opts []Option) (*Server, error) {
	s := &Server{world: DefaultWorld(), audit: newAudit(), journal: recent.List[Request]{Max: journalSize}, helper: func() {}}
	if _, fuzzing := tb.(interface{ Fuzz(any) }); tb != nil && !fuzzing { // no fuzz target may use a *testing.F
		s.tb, s.helper = tb, tb.Helper
	}
	for _, opt := range opts {
		opt(s)
	}
	if err := s.audit.check(); err != nil {
		return nil, err
	}
	var err error
	s.engine, err = engine.New(engine.Config{
		World: s.world, KeepAudio: s.keepAudio, Seed: s.seed, MinPollInterval: s.audit.interval,
		Storage: map[string]string{apiHost: "https://" + storageHost},
	})
	if err != nil {
		return nil, fmt.Errorf("world: %w", err)
	}
	s.audit.meeting = s.engine.Meeting
	s.inspector = inspector.New(source{s})
	s.network = newNetwork(s.Handler(), s.dialFault)
	s.http = s.network.client(0)
	return s, nil
}

// mistake is the value with which a Server of New panics.
type mistake struct {
	method string
	err    error
}

func (m mistake) Error() string { return fmt.Sprintf("minutestest: %s: %v", m.method, m.err) }

// Try calls f and returns the mistake, if a Server of [New] panics in it because an argument of one of
// its methods is invalid. Use it in a program that gets scripts, faults or meetings from elsewhere:
// whether they are valid can depend on what the Server holds, so only the call itself can tell. The
// error does not name the method.
//
//	err := minutestest.Try(func() { srv.Script(script) })
func Try(f func()) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case mistake:
			err = v.err
		default:
			panic(v)
		}
	}()
	f()
	return nil
}

// fail reports a mistake in the code that uses the Server: it fails the test, or panics without
// one.
func (s *Server) fail(method string, err error) {
	s.helper()
	m := mistake{method, err}
	if s.tb == nil {
		panic(m)
	}
	s.tb.Fatalf("%v", m)
}

// Client returns a client of the Server with [Server.Key], without a rate limit unless opts set
// one. For the audit, each Client is a separate program: the Client of a second worker, or of a
// process after a crash.
func (s *Server) Client(opts ...minutes.Option) *minutes.Client {
	s.helper()
	secret := s.Key()
	if secret == "" {
		s.fail("Client", errors.New("the World's first organisation has no integration key that carries every scope"))
		return nil
	}
	return s.ClientWithKey(secret, opts...)
}

// ClientWithKey is like [Server.Client] with another key, which need not exist in the World.
func (s *Server) ClientWithKey(secret string, opts ...minutes.Option) *minutes.Client {
	s.helper()
	defaults := []minutes.Option{minutes.WithHTTPClient(s.NewHTTPClient()), minutes.WithRateLimit(0, 0)}
	client, err := minutes.New(BaseURL, secret, append(defaults, opts...)...)
	if err != nil {
		s.fail("Client", err)
	}
	return client
}

// Key returns the secret of the first integration key with every scope of the World's first
// organisation, or "".
func (s *Server) Key() string {
	if len(s.world.Organisations) == 0 {
		return ""
	}
	for _, k := range s.world.Organisations[0].Keys {
		if k.IntegrationID != "" && k.Scopes == nil && !k.Revoked && k.ExpiresAt == 0 {
			return k.Secret
		}
	}
	return ""
}

// HTTPClient returns an HTTP client that connects only to the Server, in memory: to the service
// under [BaseURL], and to its storage under the service's upload URLs. It makes each connection in
// the goroutine that needs it, uses real HTTP/1.1, and sends one request per connection. Other
// hosts do not exist. The client's address is 127.0.0.1.
//
// It is the same client each time; change a copy. The audit treats all requests through it with one
// key as one program; see [ViolationKind].
func (s *Server) HTTPClient() *http.Client { return s.http }

// NewHTTPClient returns a client as [Server.HTTPClient] does, for another program: a second worker
// that makes its own [minutes.Client], or the process after a crash.
func (s *Server) NewHTTPClient() *http.Client { return s.network.client(s.network.clients.Add(1)) }

// Handler returns the service and its storage as a handler, for your own server. Upload URLs have
// the scheme and host of the request that asked for them. Resets need an [http.Hijacker]; without
// one they panic with [http.ErrAbortHandler].
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// Listen also serves on a real socket, until [Server.Close], and returns the base URL. The address
// "" means a free port of 127.0.0.1. Listen returns an error in a synctest bubble, because the
// bubble's time does not advance while a goroutine waits for a socket.
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

// Close closes the Server's connections and listeners. Responses that are still open have a tenth
// of a second to be closed. The Server's state can still be read. Closing twice does no harm.
func (s *Server) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	listening := s.listening
	s.listening = nil
	s.mu.Unlock()
	if first {
		for _, body := range s.network.leftOpen() {
			s.audit.watchOpenBody(body)
		}
	}
	s.network.close()
	var errs []error
	for _, srv := range listening {
		errs = append(errs, srv.Close())
	}
	return errors.Join(errs...)
}

// fails fails a test for what it has done wrong, or not done.
func (s *Server) fails(tb TB) {
	s.helper()
	const most = 20
	lines := grouped(s.Violations())
	for _, line := range lines[:min(len(lines), most)] {
		tb.Errorf("minutestest: %s", line)
	}
	if len(lines) > most {
		tb.Errorf("minutestest: and %d violations more", len(lines)-most)
	}
	for _, i := range s.faults.unused() {
		tb.Errorf("minutestest: %s: %s: correct its Match, or call Optional", i.line, i.unused())
	}
}
