package minutes_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/meeting-minutes/minutes-go"
)

// Handle the minutes of every meeting of the organisation, as a webhook would. The
// program stores which meetings it has handled, so that a restart continues.
func ExampleMeetingsService_Follow() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()
	created(client, "Weekly") // by someone else
	firstRun := time.Now().Add(-time.Hour)
	handled := map[string]bool{} // a table of your database

	for result, err := range client.Meetings.Follow(ctx, &minutes.FollowOptions{
		Since: firstRun,
		Skip:  func(m *minutes.Meeting) bool { return handled[m.ID] },
	}) {
		if result == nil {
			log.Fatal(err) // ctx is done, or the service rejected the key
		}
		if err == nil {
			fmt.Println(result.Meeting.Title, len(result.Minutes.Content) > 0)
		}
		handled[result.Meeting.ID] = true // after its minutes are stored; or it failed
		break                             // only in this example: leave it out
	}
	// Output: Weekly true
}
