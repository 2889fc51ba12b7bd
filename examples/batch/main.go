// Command batch turns a folder of recordings into a folder of minutes. It can
// be interrupted and run again at any time: nothing is uploaded twice.
//
// By default it runs offline, with recordings that it makes itself and against
// the in-memory service of package minutestest:
//
//	cd examples/batch && go run .
//
// With MINUTES_BASE_URL and MINUTES_API_KEY set it uses the real service:
//
//	go run . -in recordings -out minutes
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/meeting-minutes/minutes-go"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for anything
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errInterrupted):
		os.Exit(130)
	case errors.Is(err, errFailures): // the summary has listed them
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "batch:", err)
		os.Exit(2)
	}
}

var (
	errInterrupted = errors.New("interrupted")
	errFailures    = errors.New("some recordings have no minutes")
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("batch", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var (
		in      = flags.String("in", "", "folder of the recordings (offline default: some are made)")
		out     = flags.String("out", "", "folder for the minutes (default: minutes; offline: a temporary one)")
		format  = flags.String("format", "markdown", "of the minutes: markdown or html")
		uploads = flags.Int("uploads", 4, "how many recordings are uploaded at a time")
		titles  = flags.Bool("title-from-name", true, "title a meeting by its file's name, else by its date")
		restart = flags.Bool("restart", false, "delete meetings that failed in an earlier run, and try these recordings again")
	)
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("%q is not a flag", flags.Arg(0))
	case extensions[minutes.Format(*format)] == "":
		return fmt.Errorf("-format %q is neither markdown nor html", *format)
	case *uploads < 1:
		return errors.New("-uploads must be at least 1")
	}

	client, offline, err := connect(*uploads)
	if err != nil {
		return err
	}
	if offline {
		fmt.Fprintln(stderr, "Offline, with the service in memory, which makes up what is said.")
		fmt.Fprintln(stderr, "Set MINUTES_BASE_URL and MINUTES_API_KEY to use the real one.")
		if err := offlineFolders(in, out); err != nil {
			return err
		}
	}
	switch {
	case *in == "":
		return errors.New("-in names no folder of recordings")
	case *out == "":
		*out = "minutes"
	}
	return process(ctx, client, settings{
		in: *in, out: *out,
		format: minutes.Format(*format),
		titles: *titles, restart: *restart,
	}, stdout, stderr)
}

// offlineFolders keeps made-up minutes away from real ones, because a later run
// could not distinguish them. It also makes recordings if there are none.
func offlineFolders(in, out *string) error {
	if *in != "" && *out != "" {
		return nil
	}
	dir, err := os.MkdirTemp("", "minutes-batch-")
	if err != nil {
		return err
	}
	if *out == "" {
		*out = filepath.Join(dir, "minutes")
	}
	if *in == "" {
		*in = filepath.Join(dir, "recordings")
		return makeRecordings(*in, samples)
	}
	return nil
}
