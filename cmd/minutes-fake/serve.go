package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// process is the program while it serves.
type process struct {
	settings settings
	began    time.Time
	lines    *lossyWriter

	servers    []*http.Server
	baseURL    string
	controlURL string
	// envFile is the file as this program wrote it; nil: it has not.
	envFile os.FileInfo

	main *tenant
	// owners has the tenant of each claim.
	owners sync.Map
	// tenants are the others, by the ids of their organisations, and made is how many there have been.
	// turn guards them.
	tenants map[string]*tenant
	made    int
	// turn is held by one request to the control API at a time, so that each sees the whole effect
	// of the one before it.
	turn sync.Mutex
	// found counts what -strict minds, of the fakes that have ended.
	found int
}

// serve serves until ctx is done. It returns how much there was that -strict minds.
func serve(ctx context.Context, s settings, stdout, stderr io.Writer) (found int, err error) {
	p := &process{settings: s, began: time.Now(), lines: newLossyWriter(stderr), tenants: map[string]*tenant{}}
	defer p.lines.finish()
	world := minutestest.DefaultWorld()
	if s.world != "" {
		world, err = loadWorld(s.world)
		if err != nil {
			return 0, err
		}
	}
	p.main, err = p.newTenant("", world)
	if err != nil {
		return 0, err
	}
	err = p.listen()
	if err == nil {
		err = p.announce(stdout)
	}
	if err == nil {
		<-ctx.Done()
	}
	p.removeEnvFile()
	p.shutdown()
	for _, t := range p.all() {
		p.conclude(t.fake.Load())
	}
	return p.found, err
}

// conclude ends a fake, and counts what -strict minds.
func (p *process) conclude(f *fake) {
	faults, scripts := f.useless()
	complaints := slices.Concat(faults, scripts)
	for _, v := range f.Violations() {
		complaints = append(complaints, v.String())
	}
	p.found += len(complaints)
	if p.settings.strict && len(complaints) > 0 { // in one piece, of which no line can be dropped
		fmt.Fprintf(p.lines, "minutes-fake: %s\n", strings.Join(complaints, "\nminutes-fake: "))
	}
	f.setOver()
	_ = f.Close()
}

// listen starts the service, and the control API unless that is off.
func (p *process) listen() error {
	listener, err := net.Listen("tcp", p.settings.addr)
	if err != nil {
		return fmt.Errorf("-addr: %w", err)
	}
	service := http.Handler(http.HandlerFunc(p.serveService))
	if p.settings.cors {
		service = allowPages(service)
	}
	p.baseURL = p.start(listener, service)
	if p.settings.control == controlOff {
		return nil
	}
	listener, err = p.listenControl(listener.Addr().(*net.TCPAddr).Port + 1)
	if err != nil {
		return fmt.Errorf("-control: %w", err)
	}
	p.controlURL = p.start(listener, newControl(p))
	return nil
}

// serveService serves the service and its storage. Upload URLs have the scheme and the host of the
// request that asked for them. Behind a proxy these are the ones that the proxy got, not those that
// it uses itself.
func (p *process) serveService(w http.ResponseWriter, r *http.Request) {
	if proto := forwarded(r, "X-Forwarded-Proto"); proto == "https" && r.TLS == nil {
		r.TLS = &tls.ConnectionState{}
	}
	if host := forwarded(r, "X-Forwarded-Host"); host != "" {
		r.Host = host
	}
	p.tenantOf(r).fake.Load().Handler().ServeHTTP(w, r)
}

// forwarded returns what a header says of the request that the first proxy got.
func forwarded(r *http.Request, name string) string {
	first, _, _ := strings.Cut(r.Header.Get(name), ",")
	return strings.TrimSpace(first)
}

// start serves h, and returns the URL.
func (p *process) start(l net.Listener, h http.Handler) string {
	server := &http.Server{
		Handler:                      h,
		DisableGeneralOptionsHandler: true, // "OPTIONS *" is a path like others
		ErrorLog:                     log.New(io.Discard, "", 0),
		ReadHeaderTimeout:            10 * time.Second,
	}
	p.servers = append(p.servers, server)
	go func() { _ = server.Serve(l) }()
	addr := l.Addr().(*net.TCPAddr)
	if addr.IP.IsUnspecified() {
		return "http://" + net.JoinHostPort(loopback, strconv.Itoa(addr.Port))
	}
	return "http://" + addr.String()
}

// listenControl listens for the control API. With controlNext that is on the loopback port next, or
// on any other if that one is taken.
func (p *process) listenControl(next int) (net.Listener, error) {
	if p.settings.control != controlNext {
		return net.Listen("tcp", p.settings.control)
	}
	if l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(next))); err == nil {
		return l, nil
	}
	return net.Listen("tcp", loopback+":0")
}

// announce says that the program is ready, and where.
func (p *process) announce(stdout io.Writer) error {
	key := p.main.fake.Load().Key()
	for _, o := range p.main.world.Organisations {
		for _, k := range o.Keys {
			key = cmp.Or(key, k.Secret) // the first, if none has every scope
		}
	}
	env := []string{"MINUTES_BASE_URL=" + p.baseURL, "MINUTES_API_KEY=" + key}
	if p.controlURL != "" {
		env = append(env, "MINUTES_CONTROL_URL="+p.controlURL)
	}
	text := strings.Join(env, "\n") + "\n"
	if p.settings.envFile != "" {
		err := p.writeEnvFile(text)
		if err != nil {
			return fmt.Errorf("-env-file: %w", err)
		}
	}
	if p.settings.printEnv {
		_, _ = io.WriteString(stdout, text) // in one piece, for programs that wait for it
	} else {
		p.banner(stdout, env)
	}
	return nil
}

// banner prints the addresses of the service and the keys that it accepts.
func (p *process) banner(w io.Writer, env []string) {
	fmt.Fprintf(w, "The Meeting Minutes Service, in memory.\n\n  service  %s\n", p.baseURL)
	if p.controlURL != "" {
		fmt.Fprintf(w, "  control  %s  (a page, in a browser)\n", p.controlURL)
	}
	for _, o := range p.main.world.Organisations {
		fmt.Fprintf(w, "\nKeys of %s\n\n", cmp.Or(o.Name, o.ID))
		for _, k := range o.Keys {
			fmt.Fprintf(w, "  %-9s %s\n", k.Secret, k.MemberID+k.IntegrationID)
		}
	}
	fmt.Fprintf(w, "\nexport %s\n", strings.Join(env, " "))
}

// shutdown lets requests under way finish, but not for long, because a build may wait for the program.
func (p *process) shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	p.turn.Lock()
	for _, t := range p.all() {
		t.fake.Load().setOver() // because the inspector's events never finish
	}
	p.turn.Unlock()
	for _, server := range p.servers {
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}
}

// writeEnvFile writes or replaces a file, but nothing else, such as a directory.
func (p *process) writeEnvFile(text string) error {
	path := p.settings.envFile
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", path)
	}
	next := path + ".tmp"
	err := os.WriteFile(next, []byte(text), 0o600)
	if err != nil { // for the owner only, because it holds a key
		return err
	}
	info, err := os.Lstat(next)
	if err != nil {
		return err
	}
	p.envFile = info
	return os.Rename(next, path) // so that nobody reads half of it
}

// removeEnvFile removes the file that this program wrote, unless another has replaced it.
func (p *process) removeEnvFile() {
	path := p.settings.envFile
	if info, err := os.Lstat(path); err == nil && os.SameFile(info, p.envFile) {
		_ = os.Remove(path)
	}
}
