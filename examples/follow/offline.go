package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

var titles = []string{"Stand-up", "Planning", "Retrospective", "Budget 2027"}

// offline follows the in-memory fake until the minutes of all titles are written. Other members of the
// organisation have held these meetings, and their minutes are ready, so the first list page shows them.
func offline(ctx context.Context, dir string, stdout io.Writer) (err error) {
	fmt.Fprintln(stdout, "Offline, with the in-memory fake. "+
		"Set MINUTES_BASE_URL and MINUTES_API_KEY to use the real service.")
	if dir == "" {
		dir, err = os.MkdirTemp("", "minutes-follow-")
		if err != nil {
			return err
		}
	}
	server := minutestest.New()
	defer server.Close()
	for _, title := range titles {
		server.AddMeetings("org_acme", minutestest.WorldMeeting{
			Title: title, CreatorID: "emp_ada", Visibility: minutes.VisibilityOrganisation,
		})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left := len(titles)
	return follow(ctx, server.Client(), dir, func(file string) {
		fmt.Fprintln(stdout, file)
		left--
		if left == 0 {
			cancel()
		}
	})
}
