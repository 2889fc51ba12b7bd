// Command batch turns a directory of recordings into a directory of minutes. You can interrupt it and run
// it again at any time, because nothing is uploaded twice.
//
// By default it runs offline, with the in-memory fake of package minutestest and with invented recordings:
//
//	go run ./examples/batch
//
// With MINUTES_BASE_URL and MINUTES_API_KEY set it uses the real service:
//
//	go run ./examples/batch -in recordings -out minutes
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
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "batch:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("batch", flag.ContinueOnError)
	flags.SetOutput(stdout)
	in := flags.String("in", "", "directory of the recordings (offline default: some are invented)")
	out := flags.String("out", "minutes", "directory for the minutes (offline: always a temporary one)")
	uploads := flags.Int("uploads", 4, "how many recordings are uploaded at a time")
	restart := flags.Bool("restart", false,
		"delete meetings that failed in an earlier run, and process their recordings again")
	err := flags.Parse(args)
	if err != nil {
		return err
	}
	b := batch{in: *in, out: *out, restart: *restart, stdout: stdout}
	if os.Getenv("MINUTES_BASE_URL") != "" || os.Getenv("MINUTES_API_KEY") != "" {
		b.client, err = minutes.NewFromEnv(minutes.WithUserAgent("batch/1.0"), minutes.WithUploadConcurrency(*uploads))
	} else {
		fmt.Fprintln(stdout, "Offline, with the in-memory fake. "+
			"Set MINUTES_BASE_URL and MINUTES_API_KEY to use the real service.")
		b.client = minutestest.New().Client(minutes.WithUploadConcurrency(*uploads))
		b.in, b.out, err = offlineDirs(*in)
	}
	if err != nil {
		return err
	}
	if b.in == "" {
		return errors.New("-in names no directory of recordings")
	}
	return b.run(ctx)
}

// offlineDirs keeps invented minutes away from real ones, because a later run would mix them up.
func offlineDirs(in string) (recordings, out string, err error) {
	dir, err := os.MkdirTemp("", "minutes-batch-")
	if in != "" || err != nil {
		return in, filepath.Join(dir, "minutes"), err
	}
	in = filepath.Join(dir, "recordings")
	err = os.Mkdir(in, 0o755)
	for _, name := range []string{"Board meeting", "Budget 2027", "Interview", "Retrospective", "Stand-up"} {
		recording := []byte("ID3\x04 and the sound of " + name)
		err = errors.Join(err, os.WriteFile(filepath.Join(in, name+".mp3"), recording, 0o644))
	}
	return in, filepath.Join(dir, "minutes"), err
}
