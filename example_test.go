package minutes_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// Turn a recording into minutes. With the real service, NewFromEnv returns the Client; the rest is
// the same.
func Example() {
	srv := minutestest.New() // the in-memory fake; its meetings take no time
	defer srv.Close()
	srv.Script(minutestest.Script{Transcript: `spk_0: The search is faster now.
spk_0: We decided to ship on Monday.
spk_1: I will write the notes.`})
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

// A program that wants a mock of its own declares an interface with the methods that it calls.
// Everything else can be tested against minutestest.
func Example_consumerInterface() {
	type minutesReader interface {
		Get(ctx context.Context, id string) (*minutes.Meeting, error)
		Minutes(ctx context.Context, id string, format minutes.Format) (*minutes.Minutes, error)
	}
	headline := func(ctx context.Context, meetings minutesReader, id string) (string, error) {
		m, err := meetings.Get(ctx, id)
		if err != nil {
			return "", err
		}
		written, err := meetings.Minutes(ctx, id, minutes.FormatMarkdown)
		if err != nil {
			return "", err
		}
		first, _, _ := strings.Cut(written.Content, "\n")
		return m.Date + " " + first, nil
	}

	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	fmt.Println(headline(context.Background(), client.Meetings, created(client, "Weekly")))
	// Output: 2026-11-20 # Weekly <nil>
}

// created makes a meeting and uploads its recording.
func created(client *minutes.Client, title string) (id string) {
	ctx := context.Background()
	params := &minutes.MeetingCreateParams{Title: title, Date: "2026-11-20"}
	m, _, err := client.Meetings.Create(ctx, params)
	if err != nil {
		log.Fatal(err)
	}
	sound := strings.NewReader(strings.Repeat("sound", 1000))
	recording := minutes.FromReaderAt(sound, sound.Size(), "audio/mpeg")
	err = client.Meetings.Upload(ctx, m.ID, recording, nil)
	if err != nil {
		log.Fatal(err)
	}
	return m.ID
}
