package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

var titles = []string{"Stand-up", "Planning", "Retrospective", "Budget 2027"}

// offline follows an in-memory service until the minutes of all titles are written.
func offline(ctx context.Context, dir string, stdout io.Writer) (err error) {
	fmt.Fprintln(stdout, "Offline, with the service in memory. Set MINUTES_BASE_URL and MINUTES_API_KEY to use the real one.")
	if dir == "" {
		if dir, err = os.MkdirTemp("", "minutes-follow-"); err != nil {
			return err
		}
	}
	server := minutestest.New()
	defer server.Close()
	for _, title := range titles {
		if err := meet(ctx, server, title); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left := len(titles)
	return follow(ctx, server.Client(), dir, func(file string) {
		fmt.Fprintln(stdout, file)
		if left--; left == 0 {
			cancel()
		}
	})
}

// meet creates a meeting, as another member of the organisation would, and has its minutes written at once. So the
// first page of the listing shows them.
func meet(ctx context.Context, server *minutestest.Server, title string) error {
	other := server.Client()
	m, _, err := other.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: title, Date: "2026-11-20"})
	if err != nil {
		return err
	}
	recording := minutes.FromReader(strings.NewReader("a recording"), "audio/mpeg")
	if err := other.Meetings.Upload(ctx, m.ID, recording, nil); err != nil {
		return err
	}
	server.Advance(m.ID, minutes.StatusMinutesReady)
	return nil
}
