// Command testing is a small program with a test suite: it makes a list of
// tasks from a meeting's recording. README.md says which test shows what.
//
// It runs offline, with a generated recording and with the in-memory fake
// of package minutestest:
//
//	go run ./examples/testing
//
// With MINUTES_BASE_URL and MINUTES_API_KEY set it uses the real service:
//
//	go run ./examples/testing -audio weekly.mp3 -title Weekly
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testing:", advice(err))
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("testing", flag.ContinueOnError)
	audio := flags.String("audio", "", "the recording (offline default: one is made up)")
	title := flags.String("title", "Weekly", "what the meeting was about")
	date := flags.String("date", minutes.DateOf(time.Now()), "day of the meeting")
	err := flags.Parse(args)
	if err != nil {
		return err
	}
	client, err := connect()
	if err != nil {
		return err
	}
	recording := madeUp()
	if *audio != "" {
		recording = minutes.FromFile(*audio)
	}
	list, err := desk{client}.process(ctx, *title, *date, recording)
	if err != nil {
		return err
	}
	_, err = io.WriteString(stdout, list.String())
	return err
}

// connect returns a client of the real service if the environment names one,
// else of the in-memory fake, whose meetings take no time.
func connect() (*minutes.Client, error) {
	if os.Getenv("MINUTES_BASE_URL") != "" {
		return minutes.NewFromEnv()
	}
	fake := minutestest.New()
	fake.Script(minutestest.Script{Transcript: spoken})
	return fake.Client(), nil
}

const spoken = "spk_0: We decided to ship on Monday.\n" +
	"spk_1: I will write the notes.\n" +
	"spk_0: I will tell support by Friday."

// madeUp is a recording for the in-memory fake, which does not listen to it.
func madeUp() minutes.Source {
	sound := strings.NewReader(strings.Repeat("hum", 1000))
	return minutes.FromReaderAt(sound, sound.Size(), "audio/mpeg")
}
