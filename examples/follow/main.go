// Command follow writes the minutes of an organisation into a directory, a Markdown file for each meeting,
// as they become ready. You can stop it and run it again at any time, because the files show which meetings
// it has handled.
//
// Without settings it runs offline, with the in-memory fake of package minutestest, and ends after a few meetings:
//
//	go run ./examples/follow
//
// With MINUTES_BASE_URL and MINUTES_API_KEY set it follows the real service until you stop it:
//
//	go run ./examples/follow -out minutes
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/meeting-minutes/minutes-go"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "follow:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("follow", flag.ContinueOnError)
	flags.SetOutput(stdout)
	out := flags.String("out", "", "directory for the minutes (default: minutes; offline: a temporary one)")
	err := flags.Parse(args)
	if err != nil {
		return err
	}
	if os.Getenv("MINUTES_BASE_URL") == "" && os.Getenv("MINUTES_API_KEY") == "" {
		return offline(ctx, *out, stdout)
	}
	client, err := minutes.NewFromEnv(minutes.WithUserAgent("follow/1.0"))
	if err != nil {
		return err
	}
	if *out == "" {
		*out = "minutes"
	}
	return follow(ctx, client, *out, func(file string) { fmt.Fprintln(stdout, file) })
}
