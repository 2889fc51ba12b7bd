package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// The transcript exists before the minutes do.
func ExampleMeetingsService_Wait() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()
	srv.Script(minutestest.Script{Transcript: "spk_0: Shall we ship on Monday?\nspk_1: Yes."})
	id := created(client, "Weekly")

	_, err := client.Meetings.Wait(ctx, id, &minutes.WaitOptions{
		Until:        minutes.StatusTranscribed,
		AudioTimeout: time.Hour, // fail if nobody has uploaded by then
		OnStatus:     func(m *minutes.Meeting) { fmt.Println(m.Title, "is", m.Status) },
	})
	if err != nil {
		log.Fatal(err)
	}
	transcript, err := client.Meetings.Transcript(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	for turn := range transcript.Turns() {
		fmt.Printf("%s: %s\n", turn.Speaker, turn.Text)
	}
	// Output:
	// Weekly is minutes_ready
	// spk_0: Shall we ship on Monday?
	// spk_1: Yes.
}

// The steps of Process, one by one.
func ExampleMeetingsService_WaitForMinutes() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()
	id := created(client, "Weekly")

	written, err := client.Meetings.WaitForMinutes(context.Background(), id, &minutes.WaitOptions{Format: minutes.FormatMarkdown})
	if failed, ok := errors.AsType[*minutes.MeetingFailedError](err); ok {
		fmt.Println("create another:", failed.Status)
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Contains(written.Content, "Weekly"))
	// Output: true
}

// Wait for meetings that someone else created.
func ExampleMeetingsService_WaitAll() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()
	ids := []string{created(client, "Weekly"), "mtg_unknown"}

	for result, err := range client.Meetings.WaitAll(context.Background(), slices.Values(ids), nil) {
		switch {
		case errors.Is(err, minutes.ErrUnauthenticated):
			return // the other waits would fail, too
		case err != nil:
			wait, _ := errors.AsType[*minutes.WaitError](err)
			fmt.Println(wait.MeetingID, errors.Is(err, minutes.ErrNotFound))
		default:
			fmt.Println(result.Meeting.Title, result.Minutes.Format)
		}
	}
	// Unordered output:
	// Weekly html
	// mtg_unknown true
}
