package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// grace is how long requests under way may take when the program stops.
const grace = 2 * time.Second

// process is the program while it serves.
type process struct {
	settings settings
	world    minutestest.World // as the program began
	began    time.Time
	lines    *lossyWriter

	servers             []*http.Server
	baseURL, controlURL string

	mu    sync.Mutex
	fake  *fake
	found int // violations, and faults and scripts without use, before the last reset
}

// serve serves until ctx is done. It returns how much there was that -strict minds.
func serve(ctx context.Context, s settings, stdout, stderr io.Writer) (found int, err error) {
	p := &process{settings: s, began: time.Now(), world: minutestest.DefaultWorld()}
	if s.world != "" {
		if p.world, err = loadWorld(s.world); err != nil {
			return 0, err
		}
	}
	if s.envFile != "" {
		if err := removeEnvFile(s.envFile); err != nil { // so that its presence means that this program is ready
			return 0, err
		}
		defer func() { _ = removeEnvFile(s.envFile) }()
	}
	p.lines = newLossyWriter(stderr)
	defer p.lines.finish()
	if p.fake, err = p.newFake(p.world); err != nil {
		return 0, err
	}
	defer p.shutdown()
	if err := p.listen(); err != nil {
		return 0, err
	}
	if err := p.announce(stdout); err != nil {
		return 0, err
	}
	<-ctx.Done()
	p.shutdown()
	return p.begin(nil), nil
}

// now returns the fake that serves at present.
func (p *process) now() *fake {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fake
}

// begin replaces the fake, unless next is nil, and returns how much -strict has found so far.
// Everything that a reset removes belongs to a fake, so a new one is a reset.
func (p *process) begin(next *fake) (found int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.fake
	for _, text := range old.complaints() {
		p.found++
		if p.settings.strict {
			fmt.Fprintf(p.lines, "minutes-fake: %s\n", text)
		}
	}
	if next != nil {
		p.fake = next
	}
	old.end()
	_ = old.Close()
	return p.found
}

// listen starts the service, and the control API unless that is off.
func (p *process) listen() error {
	listener, err := listen("-addr", p.settings.addr)
	if err != nil {
		return err
	}
	p.baseURL = p.start(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.now().Handler().ServeHTTP(w, r)
	}))
	if p.settings.control == controlOff {
		return nil
	}
	if listener, err = listenControl(p.settings.control, listener); err != nil {
		return err
	}
	p.controlURL = p.start(listener, newControl(p))
	return nil
}

// start serves h, and returns the URL.
func (p *process) start(l net.Listener, h http.Handler) string {
	server := &http.Server{
		Handler:                      h,
		DisableGeneralOptionsHandler: true, // since "OPTIONS *" is a path like others
		ErrorLog:                     log.New(io.Discard, "", 0),
		ReadHeaderTimeout:            10 * time.Second,
		IdleTimeout:                  2 * time.Minute,
	}
	p.servers = append(p.servers, server)
	go func() { _ = server.Serve(l) }()
	addr := l.Addr().(*net.TCPAddr)
	if addr.IP.IsUnspecified() {
		return "http://" + net.JoinHostPort(loopback, strconv.Itoa(addr.Port))
	}
	return "http://" + addr.String()
}

func listen(name, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // without the address, which the message has already
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, addr, err)
	}
	return l, nil
}

// listenControl listens on addr. With controlNext that is the loopback port after the service's, or
// any other if that one is taken.
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

// announce says that the program is ready, and where.
func (p *process) announce(stdout io.Writer) error {
	key := p.fake.Key()
	for _, o := range p.world.Organisations {
		for _, k := range o.Keys {
			key = cmp.Or(key, k.Secret) // the first, if none has every scope
		}
	}
	env := environment(key, p.baseURL, p.controlURL)
	if p.settings.envFile != "" {
		if err := writeEnvFile(p.settings.envFile, env); err != nil {
			return fmt.Errorf("-env-file %s: %w", p.settings.envFile, err)
		}
	}
	if p.settings.printEnv {
		_, _ = io.WriteString(stdout, strings.Join(env, "\n")+"\n") // in one piece, for programs that wait for it
	} else {
		banner(stdout, p.world, env, p.baseURL, p.controlURL)
	}
	return nil
}

// shutdown lets requests under way finish, but not for long.
func (p *process) shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	p.now().end() // since the inspector's events never finish
	for _, server := range p.servers {
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}
}

// removeEnvFile removes a file, but nothing that is no file.
func removeEnvFile(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("-env-file %s: this is no file", path)
	case err == nil:
		err = os.Remove(path)
	}
	if err != nil {
		return fmt.Errorf("-env-file: %w", err)
	}
	return nil
}

// writeEnvFile writes the variables in one step, and for the owner only, because they hold a key.
func writeEnvFile(path string, env []string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".minutes-fake-*")
	if err != nil {
		return err
	}
	_, err = file.WriteString(strings.Join(env, "\n") + "\n")
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}
