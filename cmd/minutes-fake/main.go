// Command minutes-fake is the in-memory fake of the Meeting Minutes Service as a program: for test
// suites in any language, and for trying things by hand. README.md shows how to use it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

func main() {
	const hangup = syscall.Signal(1) // SIGHUP, which package syscall leaves out on js
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, hangup)
	context.AfterFunc(ctx, stop) // so that a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// The exit statuses of the program.
const (
	exitDone   = 0
	exitFailed = 1 // an invalid world, or an address that is in use
	exitUsage  = 2
	exitStrict = 3 // with -strict: a client broke a rule, or a fault or script was of no use
)

// run is the program. It serves until ctx is done or, with -exit-on-eof, until stdin ends.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
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
	case s.healthcheck != "":
		err := checkHealth(ctx, s.healthcheck)
		if err != nil {
			fmt.Fprintf(stderr, "minutes-fake: -healthcheck: %v\n", err)
			return exitFailed
		}
		return exitDone
	}
	if s.exitOnEOF {
		ctx = untilEOF(ctx, stdin, slog.New(s.logHandler(stderr)))
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

// settings are the program's flags.
type settings struct {
	addr    string
	control string
	// world is the path of a file; "": the default World.
	world   string
	log     string
	envFile string

	speed           float64
	seed            uint64
	edgeLimit       uint64
	minPollInterval time.Duration
	// withoutAudit are the kinds of violations that are off.
	withoutAudit []minutestest.ViolationKind
	// auditOff is whether all kinds are.
	auditOff bool
	strict   bool
	// cors is whether web pages may use the service.
	cors bool
	// exitOnEOF is whether the program ends with its standard input.
	exitOnEOF bool

	printEnv bool
	// healthcheck is the address of another minutes-fake, which this one asks instead of serving.
	healthcheck string
	version     bool
}

const (
	loopback    = "127.0.0.1"
	controlNext = "next" // values of -control besides an address
	controlOff  = "off"
)

// flags binds s to its flags.
func (s *settings) flags() *flag.FlagSet {
	set := flag.NewFlagSet("minutes-fake", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&s.addr, "addr", loopback+":8080",
		"serve on this `address`; port 0 means any free port")
	set.StringVar(&s.control, "control", controlNext,
		"serve the control API on this `address`; next means the port after the service's, or another if that is "+
			"taken, and off switches it off")
	set.StringVar(&s.world, "world", "",
		"start with the world in this JSON `file` instead of a small default one")
	s.speed = 1
	set.Func("speed", "make the stages that a world or a script sets `n` times shorter (default 1)", s.readSpeed)
	set.Func("seed", "make ids and cursors the same in every run with this `number`; 0 means none",
		func(text string) error { return readCount(&s.seed, text) })
	set.Func("edge-limit",
		"reject more than `n` requests per second and key with a 429 and Retry-After: 1; 0 means no limit",
		func(text string) error { return readCount(&s.edgeLimit, text) })
	set.StringVar(&s.log, "log", "text",
		"log each request on stderr in this `form`: text, json or none")
	set.BoolVar(&s.printEnv, "print-env", false,
		"print the variables to set, one per line, and nothing else")
	set.StringVar(&s.envFile, "env-file", "",
		"write the variables to this `file` when ready, and remove it at exit, unless the program is killed")
	s.minPollInterval = minutestest.MinPollInterval
	set.Func("min-poll-interval",
		fmt.Sprintf("let clients poll a meeting after this `duration`, such as 100ms (default %s)", s.minPollInterval),
		s.readMinPollInterval)
	set.Func("without-audit",
		"report no violations of these `kinds`, such as poll,repeat; all means none at all", s.readKinds)
	set.BoolVar(&s.strict, "strict", false,
		"at exit and at each reset, print violations, unused faults and scripts that no meeting matched; "+
			"the exit status is 3 if there were any, even before a reset")
	set.BoolVar(&s.cors, "cors", false,
		"let web pages of any origin use the service and its storage, for tests in a browser; "+
			"nothing promises that the real service does")
	set.BoolVar(&s.exitOnEOF, "exit-on-eof", false,
		"exit at the end of standard input: if that is a pipe from the program that started this one, "+
			"it ends when that program does, even if it is killed")
	set.StringVar(&s.healthcheck, "healthcheck", "",
		"ask the control API at this `address` whether it is ready, instead of serving; the exit status is 0 if it is")
	set.BoolVar(&s.version, "version", false, "print the version and exit")
	return set
}

// readSpeed reads the value of -speed.
func (s *settings) readSpeed(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0 && n <= 1e9) { // nor NaN
		return errors.New("a number over 0 expected, such as 10")
	}
	s.speed = n
	return nil
}

// readCount reads the value of -seed or -edge-limit, which fits into an int.
func readCount(into *uint64, text string) error {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return errors.New("a whole number from 0 expected")
	}
	*into = n
	return nil
}

// readMinPollInterval reads the value of -min-poll-interval.
func (s *settings) readMinPollInterval(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("a duration over 0 expected, such as 100ms or 30s")
	}
	s.minPollInterval = d
	return nil
}

// readKinds reads the value of -without-audit.
func (s *settings) readKinds(list string) error {
	if list == "all" {
		s.auditOff = true
		return nil
	}
	for name := range strings.SplitSeq(list, ",") {
		kind, err := minutestest.ParseViolationKind(name)
		if err != nil {
			return err
		}
		s.withoutAudit = append(s.withoutAudit, kind)
	}
	return nil
}

// parse reads and checks the flags.
func parse(args []string) (settings, error) {
	var s settings
	set := s.flags()
	err := set.Parse(args)
	if err != nil {
		return s, err
	}
	switch {
	case set.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q", set.Arg(0))
	case !slices.Contains([]string{"text", "json", "none"}, s.log):
		return s, fmt.Errorf("-log %q: text, json or none expected", s.log)
	case s.control != controlNext && s.control != controlOff && !isAddress(s.control):
		return s, fmt.Errorf("-control %q: host:port, next or off expected", s.control)
	case !isAddress(s.addr):
		return s, fmt.Errorf("-addr %q: host:port expected", s.addr)
	case s.healthcheck != "" && !isAddress(s.healthcheck):
		return s, fmt.Errorf("-healthcheck %q: host:port expected", s.healthcheck)
	}
	return s, nil
}

func isAddress(s string) bool {
	_, _, err := net.SplitHostPort(s)
	return err == nil
}

// options are the settings that the fake itself has.
func (s *settings) options() []minutestest.Option {
	list := []minutestest.Option{
		minutestest.WithMinPollInterval(s.minPollInterval),
		minutestest.WithSeed(s.seed),
		minutestest.WithSpeed(s.speed),
		minutestest.WithEdgeLimit(int(s.edgeLimit)),
	}
	if s.auditOff || len(s.withoutAudit) > 0 { // WithoutAudit without kinds turns all of them off
		list = append(list, minutestest.WithoutAudit(s.withoutAudit...))
	}
	return list
}

// logHandler writes the log of requests.
func (s *settings) logHandler(w io.Writer) slog.Handler {
	switch s.log {
	case "json":
		return slog.NewJSONHandler(w, nil)
	case "text":
		return slog.NewTextHandler(w, nil)
	}
	return slog.DiscardHandler
}

func help() string {
	var b strings.Builder
	b.WriteString("minutes-fake serves an in-memory fake of the Meeting Minutes Service, including its storage.\n\n")
	b.WriteString("usage: minutes-fake [flags]\n\n")
	set := new(settings).flags()
	set.SetOutput(&b)
	set.PrintDefaults()
	return b.String()
}

// untilEOF returns a context that is done when ctx is or when stdin ends. A pipe ends when the process
// that holds its other end is gone, however that came about.
//
// A flag asks for it, because whoever runs this program may need the rest of stdin: a shell that reads
// its script there, for example.
func untilEOF(ctx context.Context, stdin io.Reader, requests *slog.Logger) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, stdin)
		requests.Info("standard input has ended")
	}()
	return ctx
}

// checkHealth asks the control API of another minutes-fake whether it is ready.
func checkHealth(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/health", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.Header.Get("Minutes-Fake") != "control":
		return fmt.Errorf("what answers at %s is not the control API of minutes-fake", address)
	case resp.StatusCode != http.StatusOK: // as for a name that is not the machine's
		return fmt.Errorf("the control API at %s responds with %s", address, resp.Status)
	}
	return nil
}

// version returns the version of the module that the program was built from.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
