package minutes_test

import (
	"context"
	"fmt"
	"log"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// Turn a recording into minutes. With the real service, NewFromEnv returns the Client; the rest is
// the same.
func Example() {
	srv := quick() // the service in memory; its meetings take no time
	defer srv.Close()
	script := minutestest.Script{Transcript: "spk_0: The search is faster now.\nspk_0: We decided to ship on Monday.\nspk_1: I will write the notes."}
	srv.Script(script)
	client := srv.Client()
	ctx := context.Background()

	recording := minutes.FromFile("examples/quickstart/recording/standup.mp3")
	result, err := client.Meetings.Process(ctx, &minutes.MeetingCreateParams{
		Title:          "Weekly",
		Date:           "2026-11-20",
		ExternalID:     "weekly-2026-11-20", // safe to run again after a crash
		ParticipantIDs: []string{"emp_ada", "emp_ben"},
	}, recording, &minutes.ProcessOptions{Format: minutes.FormatMarkdown})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Minutes.Content)
	// Output:
	// # Weekly
	//
	// *Standard minutes*
	//
	// - **Date:** 2026-11-20
	// - **Duration:** 0:00:08
	// - **Participants:** Ada Lovelace, Ben Okafor
	//
	// ## Summary
	//
	// - **Ada Lovelace:** The search is faster now.
	//
	// ## Decisions
	//
	// - **Ada Lovelace:** We decided to ship on Monday.
	//
	// ## Actions
	//
	// - **Ben Okafor:** I will write the notes.
}

// quick is a service whose meetings have minutes at once.
func quick() *minutestest.Server {
	world := minutestest.DefaultWorld()
	world.Stages = minutestest.Stages{Prepare: 1, Transcribe: 1, Write: 1}
	return minutestest.New(minutestest.WithWorld(world))
}
