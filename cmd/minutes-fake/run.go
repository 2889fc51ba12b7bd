package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// The codes that the program exits with.
const (
	exitDone   = 0
	exitFailed = 1 // a bad world, an address in use
	exitUsage  = 2 // bad flags
	exitStrict = 3 // -strict, and a client did what it must not do
)

// run is the program: it serves until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(stdout, help())
		return exitDone
	case err != nil:
		fmt.Fprintf(stderr, "minutes-fake: %v (see minutes-fake -help)\n", err)
		return exitUsage
	case s.version:
		fmt.Fprintf(stdout, "minutes-fake %s\n", version())
		return exitDone
	}
	found, err := serve(ctx, s, stdout, stderr)
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "minutes-fake: %v\n", err)
		return exitFailed
	case s.strict && found > 0:
		return exitStrict
	}
	return exitDone
}

// grace is how long requests under way have when the program stops.
const grace = 2 * time.Second

// serve runs the service until ctx ends. It returns how many violations and
// unused faults there were.
func serve(ctx context.Context, s settings, stdout, stderr io.Writer) (found int, err error) {
	world, err := loadWorld(s.world)
	if err != nil {
		return 0, err
	}
	world.Stages = faster(world.Stages, s.speed)
	if s.envFile != "" {
		if err := removeEnvFile(s.envFile); err != nil {
			return 0, err
		}
		defer func() { _ = os.Remove(s.envFile) }()
	}
	lines := newLossyWriter(stderr)
	defer lines.finish()
	p := &process{settings: s, world: world, lines: lines, requests: newRequestLog(s.log, lines), counts: new(counts)}
	p.fake = minutestest.New(p.options()...)
	defer func() { _ = p.fake.Close() }()
	defer p.end()
	if err := p.listen(ctx); err != nil {
		return 0, err
	}
	if err := p.announce(stdout); err != nil {
		return 0, err
	}
	<-ctx.Done()
	p.end()
	p.judge()
	return int(p.found.Load()), nil
}

// process is the program while it serves.
type process struct {
	settings settings
	world    minutestest.World
	lines    *lossyWriter
	requests requestLog
	counts   *counts
	fake     *minutestest.Server
	found    atomic.Int64 // violations and unused faults, also before resets

	servers             []*http.Server
	baseURL, controlURL string
}

func (p *process) options() []minutestest.Option {
	options := []minutestest.Option{
		minutestest.WithWorld(p.world),
		minutestest.WithMinPollInterval(p.settings.minPollInterval),
		minutestest.WithLog(func(r minutestest.Request) {
			p.counts.add(r)
			p.requests.served(r)
		}),
	}
	if p.settings.keepAudio {
		options = append(options, minutestest.WithAudio())
	}
	return options
}

// listen starts the service, and the control API unless that is off.
func (p *process) listen(ctx context.Context) error {
	listener, err := listen("-addr", p.settings.addr)
	if err != nil {
		return err
	}
	edge := &edge{limit: p.settings.edgeLimit, next: p.fake.Handler(), rejected: p.requests.rejected, now: time.Now}
	front := withDocument(edge)
	if p.settings.trustForwarded {
		front = forwarded(front)
	}
	p.servers = append(p.servers, start(listener, newServer(front)))
	p.baseURL = urlOf(listener)
	if p.settings.control == controlOff {
		return nil
	}
	if listener, err = listenControl(p.settings.control, listener); err != nil {
		return err
	}
	control := newControl(p.fake, p.world, edge, p.counts, p.settings, p.baseURL)
	control.dropped, control.judge = p.lines.dropped.Load, p.judge
	server := newControlServer(control)
	server.BaseContext = func(net.Listener) context.Context { return ctx } // who watches, watches no longer
	p.servers = append(p.servers, start(listener, server))
	p.controlURL = urlOf(listener)
	return nil
}

// announce says that the program is ready, and where.
func (p *process) announce(stdout io.Writer) error {
	env := environment(p.world, p.fake.Key(), p.baseURL, p.controlURL)
	if p.settings.envFile != "" {
		if err := writeEnvFile(p.settings.envFile, env); err != nil {
			return err
		}
	}
	if p.settings.printEnv {
		_, _ = io.WriteString(stdout, strings.Join(env, "\n")+"\n") // at once, for who waits for it
	} else {
		banner(stdout, p.world, env, p.baseURL, p.controlURL)
	}
	return nil
}

// end lets requests under way finish, but not for long.
func (p *process) end() {
	ending, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	for _, server := range p.servers {
		if server.Shutdown(ending) != nil {
			_ = server.Close()
		}
	}
}

// judge counts, and with -strict prints, what would fail a test in Go: at the end, and before each reset.
func (p *process) judge() {
	var found []string
	for _, v := range p.fake.Violations() {
		found = append(found, v.String())
	}
	found = append(found, p.fake.UnusedFaults()...)
	if p.settings.strict {
		for _, text := range found {
			fmt.Fprintf(p.lines, "minutes-fake: %s\n", text)
		}
	}
	p.found.Add(int64(len(found)))
}

func start(l net.Listener, server *http.Server) *http.Server {
	go func() { _ = server.Serve(l) }()
	return server
}

// newServer returns a server for h that no client can hold for ever, nor fill
// the memory of.
func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:                      h,
		DisableGeneralOptionsHandler: true, // "OPTIONS *" is a path like others
		// What clients do to their connections is theirs to report.
		ErrorLog:          log.New(io.Discard, "", 0),
		MaxHeaderBytes:    64 << 10,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
	}
}

// newControlServer is newServer for the control API, with time limits for
// bodies. The service limits the time of its bodies itself.
func newControlServer(c *control) *http.Server {
	server := newServer(c)
	server.ReadTimeout = time.Minute
	return server
}

func listen(name, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, addr, plain(err))
	}
	return l, nil
}

// listenControl listens on addr. With controlNext that is the port after the
// service's, of the loopback address, or any other port if that one is
// taken.
func listenControl(addr string, service net.Listener) (net.Listener, error) {
	if addr != controlNext {
		return listen("-control", addr)
	}
	port := service.Addr().(*net.TCPAddr).Port + 1
	if l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port))); err == nil {
		return l, nil
	}
	return listen("-control", net.JoinHostPort(loopback, "0"))
}

const loopback = "127.0.0.1"

// plain is what went wrong with a socket, without the words around it.
func plain(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// urlOf is an address to come to l by.
func urlOf(l net.Listener) string {
	addr := l.Addr().(*net.TCPAddr)
	if addr.IP.IsUnspecified() {
		return "http://" + net.JoinHostPort(loopback, strconv.Itoa(addr.Port))
	}
	return "http://" + addr.String()
}
