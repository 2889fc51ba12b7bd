// Command quickstart turns a recording into minutes: it creates a meeting,
// uploads the recording, follows the meeting's status and prints the minutes.
//
// By default it runs offline, against the in-memory fake of package
// minutestest and with the recording of a short meeting that ships with it:
//
//	go run ./examples/quickstart
//
// With MINUTES_BASE_URL and MINUTES_API_KEY set it does the same against the
// real service:
//
//	go run ./examples/quickstart -audio weekly.mp3 -title "Weekly" -participants "Ada Lovelace,Ben Okafor"
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "quickstart:", err)
		}
		os.Exit(1)
	}
}

// options are the flags.
type options struct{ audio, title, format, participants string }

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.audio, "audio", "", "the recording (default: the one that ships with the example)")
	flags.StringVar(&o.title, "title", "Stand-up", "what the meeting is called")
	flags.StringVar(&o.format, "format", "markdown", "of the minutes: markdown or html")
	flags.StringVar(&o.participants, "participants", "", "names of those attending, separated by commas")
	return o, flags.Parse(args)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	recording := recordingOf(o.audio)
	opened, err := recording(ctx) // so that no meeting is created for a file that cannot be read
	if err != nil {
		return err
	}
	_ = opened.Close() // it was only read

	service, err := connect(o.audio == "", stderr)
	if err != nil {
		return err
	}
	defer service.close()
	if o.audio == "" && o.participants == "" && service.offline() {
		o.participants = speakers
	}
	meeting, err := create(ctx, service.client, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "Created meeting %s, %q\n", meeting.ID, meeting.Title)
	err = upload(ctx, service.client, meeting.ID, recording, stderr)
	if err != nil {
		return err
	}
	err = service.settle(ctx, meeting.ID)
	if err != nil {
		return err
	}
	result, err := wait(ctx, service.client, meeting.ID, o, stderr)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, strings.TrimSpace(result.Minutes.Content))
	return err
}

// create creates the meeting.
func create(ctx context.Context, client *minutes.Client, o options) (*minutes.Meeting, error) {
	ids, err := memberIDs(ctx, client, o.participants)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	meeting, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{
		Title:          o.title,
		Date:           minutes.DateOf(now),
		Time:           minutes.TimeOfDay(now),
		ParticipantIDs: ids,
	})
	return meeting, err
}

// upload uploads the recording and shows how far it is.
func upload(
	ctx context.Context, client *minutes.Client, id string, recording minutes.Source, stderr io.Writer,
) error {
	bar := newBar(stderr)
	defer bar.finish()
	return client.Meetings.Upload(ctx, id, recording, &minutes.UploadOptions{Progress: bar.show})
}

// wait waits for the minutes and shows the meeting's status.
func wait(
	ctx context.Context, client *minutes.Client, id string, o options, stderr io.Writer,
) (*minutes.Result, error) {
	result, err := client.Meetings.WaitForMinutes(ctx, id, &minutes.WaitOptions{
		Format: minutes.Format(o.format),
		OnStatus: func(m *minutes.Meeting) {
			fmt.Fprintf(stderr, "Status: %s\n", m.Status)
		},
	})
	if err != nil {
		return nil, err
	}
	if d := result.Meeting.Duration(); d > 0 {
		fmt.Fprintf(stderr, "The recording is %s long.\n", d)
	}
	fmt.Fprintln(stderr)
	return result, nil
}

// memberIDs finds the members with the given names.
func memberIDs(ctx context.Context, client *minutes.Client, names string) ([]string, error) {
	if names == "" {
		return nil, nil
	}
	members, err := client.Members.List(ctx)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]string)
	for _, m := range members {
		byName[strings.ToLower(m.Name)] = m.ID
	}
	var ids []string
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		id, ok := byName[strings.ToLower(name)]
		if !ok {
			return nil, fmt.Errorf("the organisation has no member called %q", name)
		}
		ids = append(ids, id)
	}
	return ids, nil
}
