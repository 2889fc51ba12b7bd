package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// quick is a service whose meetings have their minutes at once.
func quick() *minutestest.Server {
	world := minutestest.DefaultWorld()
	world.Stages = minutestest.Stages{Prepare: 1, Transcribe: 1, Write: 1}
	return minutestest.New(minutestest.WithWorld(world))
}

// The whole job. After a crash the same call goes on where the last one was: the
// recording is not uploaded again.
func ExampleMeetingsService_Process() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()

	for range 2 {
		// A file of a web form needs no copy: a multipart.File is a Recording's Audio.
		upload := strings.NewReader(strings.Repeat("sound", 1000))
		recording := minutes.Recording{Audio: upload, Size: upload.Size(), ContentType: "audio/mpeg"}
		result, err := client.Meetings.Process(context.Background(), &minutes.MeetingCreateParams{
			Title:      "Weekly",
			Date:       "2026-11-20",
			ExternalID: "weekly-2026-11-20",
		}, recording, &minutes.ProcessOptions{Format: minutes.FormatMarkdown})
		if err != nil {
			log.Fatal(err)
		}
		heading, _, _ := strings.Cut(result.Minutes.Content, "\n")
		fmt.Println(heading, result.Created)
	}
	fmt.Println(len(srv.Requests(minutestest.OpUpload)), "upload")
	// Output:
	// # Weekly true
	// # Weekly false
	// 1 upload
}

// Many jobs: four uploads at a time, any number of waits.
func ExampleMeetingsService_ProcessAll() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()

	jobs := func(yield func(minutes.Job) bool) {
		for _, day := range []string{"2026-11-19", "2026-11-20"} {
			job := minutes.Job{
				Params: &minutes.MeetingCreateParams{Title: "Stand-up", Date: day, ExternalID: "stand-up-" + day},
				Open: func() (minutes.Recording, error) { // os.Open, or minutes.OpenRecording
					return minutes.RecordingFromReader(strings.NewReader("sound of "+day), "audio/mpeg")
				},
			}
			if !yield(job) {
				return
			}
		}
	}
	var done []string
	for result, err := range client.Meetings.ProcessAll(context.Background(), jobs, nil) {
		if err != nil {
			log.Print(err) // and the others go on
			continue
		}
		done = append(done, result.Params.ExternalID)
	}
	slices.Sort(done)
	fmt.Println(done)
	// Output: [stand-up-2026-11-19 stand-up-2026-11-20]
}

// Meetings that somebody else has created, as they end.
func ExampleMeetingsService_WaitAll() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()
	ids := []string{created(client, "Weekly"), "mtg_unknown"}

	for meeting, err := range client.Meetings.WaitAll(context.Background(), slices.Values(ids), nil) {
		switch {
		case errors.Is(err, minutes.ErrUnauthenticated):
			return // it will not do better with the others
		case err != nil:
			wait, _ := errors.AsType[*minutes.WaitError](err)
			fmt.Println(wait.MeetingID, errors.Is(err, minutes.ErrNotFound))
		default:
			fmt.Println(meeting.Title, meeting.Status)
		}
	}
	// Unordered output:
	// Weekly minutes_ready
	// mtg_unknown true
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

// created makes a meeting and uploads its recording.
func created(client *minutes.Client, title string) (id string) {
	ctx := context.Background()
	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: title, Date: "2026-11-20"})
	if err != nil {
		log.Fatal(err)
	}
	sound := strings.NewReader(strings.Repeat("sound", 1000))
	if err := client.Meetings.Upload(ctx, m.ID, minutes.Recording{Audio: sound, Size: sound.Size(), ContentType: "audio/mpeg"}, nil); err != nil {
		log.Fatal(err)
	}
	return m.ID
}
