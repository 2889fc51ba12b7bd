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
	"strconv"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// The codes that the program exits with.
const (
	exitDone   = 0
	exitFailed = 1 // a bad world, an address in use
	exitUsage  = 2 // bad flags
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
	if err := serve(ctx, s, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "minutes-fake: %v\n", err)
		return exitFailed
	}
	return exitDone
}

// grace is how long requests under way have when the program is told to stop.
const grace = 2 * time.Second

func serve(ctx context.Context, s settings, stdout, stderr io.Writer) error {
	world, err := loadWorld(s.world)
	if err != nil {
		return err
	}
	world.Stages = faster(world.Stages, s.speed)
	requests, counts := newRequestLog(s.log, stderr), new(counts)
	options := []minutestest.Option{minutestest.WithWorld(world), minutestest.WithLog(func(r minutestest.Request) {
		counts.add(r)
		requests.served(r)
	})}
	if s.keepAudio {
		options = append(options, minutestest.WithAudio())
	}
	fake := minutestest.New(options...)
	defer func() { _ = fake.Close() }()

	listener, err := listen("-addr", s.addr)
	if err != nil {
		return err
	}
	edge := &edge{limit: s.edgeLimit, next: fake.Handler(), refused: requests.refused, now: time.Now}
	if s.trustForwarded {
		edge.next = forwarded(edge.next)
	}
	servers := []*http.Server{start(listener, newServer(edge))}
	baseURL := urlOf(listener)

	var controlURL string
	if s.control != controlOff {
		listener, err := listenControl(s.control, listener)
		if err != nil {
			_ = servers[0].Close()
			return err
		}
		control := newControl(fake, world, edge, counts, s, baseURL)
		server := newControlServer(control)
		server.BaseContext = func(net.Listener) context.Context { return ctx } // who watches, watches no longer
		servers = append(servers, start(listener, server))
		controlURL = urlOf(listener)
	}
	env := environment(world, fake.Key(), baseURL, controlURL)
	if s.printEnv {
		_, _ = io.WriteString(stdout, strings.Join(env, "\n")+"\n") // at once, for who waits for it
	} else {
		banner(stdout, world, env, baseURL, controlURL)
	}

	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	for _, server := range servers {
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}
	return nil
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

// newControlServer is newServer for the control API, where a body has no reason
// to take long. Those of the service have a time-out of its own.
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
// service's, of the loopback address, or any other port where that one is
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
