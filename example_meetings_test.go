package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func ExampleMeetingsService_Create() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	starts := time.Date(2026, 3, 9, 14, 30, 0, 0, time.UTC)
	params := &minutes.MeetingCreateParams{
		Title:          "Budget",
		Date:           minutes.DateOf(starts),
		Time:           minutes.TimeOfDay(starts),
		ExternalID:     "crm-4711", // makes it safe to run this again
		ParticipantIDs: []string{"emp_ada", "emp_ben"},
	}
	for range 2 {
		m, created, err := client.Meetings.Create(ctx, params)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.Title, m.Date, m.Time, m.Status, created)
	}
	// Output:
	// Budget 2026-03-09 14:30 created true
	// Budget 2026-03-09 14:30 created false
}

func ExampleMeetingsService_FindByExternalID() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()

	_, err := client.Meetings.FindByExternalID(context.Background(), "crm-4711")
	if errors.Is(err, minutes.ErrNotFound) {
		fmt.Println("no such meeting yet")
	}
	// Output: no such meeting yet
}

func ExampleMeetingsService_Update() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Budget", Date: "2026-03-09", Time: "14:30", ProjectID: "prj_apollo"})
	if err != nil {
		log.Fatal(err)
	}
	m, err = client.Meetings.Update(ctx, m.ID, &minutes.MeetingUpdateParams{
		Title: new("Budget, second round"),
		Time:  new(""), // clears it; nil fields stay
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, %s, %q, %s\n", m.Title, m.Date, m.Time, m.ProjectID)
	// Output: Budget, second round, 2026-03-09, "", prj_apollo
}

// Other participants, while the meeting has no audio.
func ExampleMeetingsService_SetParticipants() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Budget", Date: "2026-03-09"})
	if err != nil {
		log.Fatal(err)
	}
	m, err = client.Meetings.SetParticipants(ctx, m.ID, []string{"emp_ada"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.ParticipantIDs)

	_, err = client.Meetings.SetParticipants(ctx, created(client, "Weekly"), []string{"emp_ada"})
	fmt.Println(errors.Is(err, minutes.ErrParticipantsLocked))
	// Output:
	// [emp_ada]
	// true
}

func ExampleMeetingsService_All() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	for _, title := range []string{"Budget", "Stand-up", "Retrospective"} {
		_, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: title, Date: "2026-03-10"})
		if err != nil {
			log.Fatal(err)
		}
	}
	for m, err := range client.Meetings.All(ctx, &minutes.MeetingListParams{DateFrom: "2026-03-01"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.Title)
	}
	// Output:
	// Retrospective
	// Stand-up
	// Budget
}

// One page at a time, as for the pages of a web site.
func ExampleMeetingsService_List() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	for _, title := range []string{"Budget", "Stand-up", "Retrospective"} {
		_, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: title, Date: "2026-03-10"})
		if err != nil {
			log.Fatal(err)
		}
	}
	page, err := client.Meetings.List(ctx, &minutes.MeetingListParams{Limit: 2})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(page.Meetings), "newest")
	page, err = client.Meetings.List(ctx, &minutes.MeetingListParams{Limit: 2, Cursor: page.NextCursor})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(page.Meetings[0].Title, page.NextCursor == "")
	// Output:
	// 2 newest
	// Budget true
}

func ExampleMeetingsService_Upload() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Stand-up", Date: "2026-03-10"})
	if err != nil {
		log.Fatal(err)
	}
	// For a file, use FromFile.
	recording := minutes.FromReader(strings.NewReader(strings.Repeat("sound", 1000)), "audio/mpeg")

	var percent, size int64
	err = client.Meetings.Upload(ctx, m.ID, recording, &minutes.UploadOptions{
		Progress: func(sent, total int64) { percent, size = 100*sent/total, total },
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d %% of %d bytes\n", percent, size)
	// Output: 100 % of 5000 bytes
}

// Process creates no meeting for a file that is not a recording.
func ExampleFromFile() {
	srv := minutestest.New()
	defer srv.Close()
	params := &minutes.MeetingCreateParams{Title: "Stand-up", Date: "2026-03-10"}

	_, err := srv.Client().Meetings.Process(context.Background(), params, minutes.FromFile("go.mod"), nil)
	fmt.Println(err)
	fmt.Println(len(srv.Requests()), "requests")
	// Output:
	// minutes: path: the recording is not a known audio or video format; pass its content type to FromReader or FromReaderAt
	// 0 requests
}

func ExampleTranscript_Turns() {
	transcript := &minutes.Transcript{Text: "spk_0: Shall we ship on Monday?\nspk_1: Yes.\n"}
	for turn := range transcript.Turns() {
		fmt.Printf("%s says %q\n", turn.Speaker, turn.Text)
	}
	// Output:
	// spk_0 says "Shall we ship on Monday?"
	// spk_1 says "Yes."
}
