package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// settings are the program's flags.
type settings struct {
	addr      string
	control   string
	world     string
	speed     float64
	edgeLimit int
	log       string
	keepAudio bool
	printEnv  bool
	envFile   string
	strict    bool
	version   bool

	minPollInterval time.Duration

	trustForwarded bool // the headers of a proxy in front
}

// What -control takes beside an address.
const (
	controlNext = "next"
	controlOff  = "off"
)

var logForms = []string{"text", "json", "none"}

// flags binds s to its flags. Defaults and usage are only here.
func (s *settings) flags() *flag.FlagSet {
	set := flag.NewFlagSet("minutes-fake", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	set.StringVar(&s.addr, "addr", loopback+":8080", "serve on this `address`; port 0 means any free port")
	set.StringVar(&s.control, "control", controlNext, "serve the control API on this `address`; next means the port after the service's, off switches it off")
	set.StringVar(&s.world, "world", "", "start with the world in this JSON `file` instead of a small default one")
	set.Float64Var(&s.speed, "speed", 1, "shorten the stages of meetings by the factor `n`")
	set.IntVar(&s.edgeLimit, "edge-limit", 0, "reject more than `n` requests per second and key with a bare 429; 0 means no limit")
	set.StringVar(&s.log, "log", "text", "log each request on stderr in this `form`: text, json or none")
	set.BoolVar(&s.keepAudio, "keep-audio", false, "keep the bytes of recordings for the control API")
	set.BoolVar(&s.printEnv, "print-env", false, "print the variables to set, one per line, and nothing else")
	set.StringVar(&s.envFile, "env-file", "", "write the variables to this `file` when ready, and remove it at exit")
	set.DurationVar(&s.minPollInterval, "min-poll-interval", minutestest.MinPollInterval, "set the minimum poll interval to this `duration`")
	set.BoolVar(&s.strict, "strict", false, "at exit and at each reset, print violations and unused faults; the exit status is 3 if there were any")
	set.BoolVar(&s.trustForwarded, "trust-forwarded", false, "read a client's scheme, host and address from X-Forwarded-Proto, -Host and -For; use it only behind a proxy that sets them")
	set.BoolVar(&s.version, "version", false, "print the version and exit")
	return set
}

func parse(args []string) (settings, error) {
	var s settings
	set := s.flags()
	if err := set.Parse(args); err != nil {
		return s, err
	}
	switch {
	case set.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q", set.Arg(0))
	case !(s.speed > 0 && s.speed <= 1e9):
		return s, fmt.Errorf("-speed %v: a number over 0 expected", s.speed)
	case s.minPollInterval <= 0:
		return s, fmt.Errorf("-min-poll-interval %s: a duration over 0 expected", s.minPollInterval)
	case s.edgeLimit < 0:
		return s, fmt.Errorf("-edge-limit %d: no negative number expected", s.edgeLimit)
	case !slices.Contains(logForms, s.log):
		return s, fmt.Errorf("-log %q: one of %s expected", s.log, strings.Join(logForms, ", "))
	case s.control != controlNext && s.control != controlOff && !isAddress(s.control):
		return s, fmt.Errorf("-control %q: host:port, next or off expected", s.control)
	case !isAddress(s.addr):
		return s, fmt.Errorf("-addr %q: host:port expected", s.addr)
	case isAddress(s.control) && s.control == s.addr && !strings.HasSuffix(s.addr, ":0"):
		return s, errors.New("-control and -addr are the same address")
	}
	return s, nil
}

func isAddress(s string) bool {
	_, _, err := net.SplitHostPort(s)
	return err == nil
}

func help() string {
	var b strings.Builder
	b.WriteString("minutes-fake serves the Meeting Minutes Service in memory, with its storage.\n\n" +
		"usage: minutes-fake [flags]\n\n")
	new(settings).flags().VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		fmt.Fprintf(&b, "  %-18s %s", strings.TrimSpace("-"+f.Name+" "+value), usage)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" {
			fmt.Fprintf(&b, " (default %s)", f.DefValue)
		}
		b.WriteByte('\n')
	})
	b.WriteString("\nIt prints its addresses and API keys, and stops at Ctrl-C.\n")
	return b.String()
}

// version is that of the module the program was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
