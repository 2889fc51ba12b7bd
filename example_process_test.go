package minutes_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/meeting-minutes/minutes-go"
)

// Process does the whole job. After a crash, the same call continues, and never uploads the
// recording twice.
func ExampleMeetingsService_Process() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()

	for range 2 {
		// A multipart.File of a web form is an io.ReaderAt, so it needs no copy.
		upload := strings.NewReader(strings.Repeat("sound", 1000))
		recording := minutes.FromReaderAt(upload, upload.Size(), "audio/mpeg")
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
	fmt.Println(len(srv.Requests(minutes.OpUpload)), "upload")
	// Output:
	// # Weekly true
	// # Weekly false
	// 1 upload
}

// Report a job's progress: the percentage of the upload, and the meeting's states.
func ExampleMeetingsService_Process_progress() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()
	sound := strings.NewReader(strings.Repeat("sound", 1000))
	recording := minutes.FromReaderAt(sound, sound.Size(), "audio/mpeg")
	params := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20"}

	var percent atomic.Int64 // for a progress bar; Progress runs on another goroutine
	result, err := client.Meetings.Process(ctx, params, recording, &minutes.ProcessOptions{
		Progress: func(sent, total int64) { percent.Store(100 * sent / total) },
		OnStatus: func(m *minutes.Meeting) { fmt.Println("now", m.Status) },
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(percent.Load(), "% sent,", len(result.Minutes.Content) > 0)
	// Output:
	// now minutes_ready
	// 100 % sent, true
}

// Process many jobs: four uploads at a time, any number of waits.
func ExampleMeetingsService_ProcessAll() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()

	jobs := func(yield func(minutes.Job) bool) {
		for _, day := range []string{"2026-11-19", "2026-11-20"} {
			job := minutes.Job{
				Params: &minutes.MeetingCreateParams{Title: "Stand-up", Date: day, ExternalID: "stand-up-" + day},
				Source: minutes.FromReader(strings.NewReader("sound of "+day), "audio/mpeg"),
			}
			if !yield(job) {
				return
			}
		}
	}
	var done []string
	for result, err := range client.Meetings.ProcessAll(context.Background(), jobs, nil) {
		if err != nil {
			log.Print(err) // and the others continue
			continue
		}
		done = append(done, result.Params.ExternalID)
	}
	slices.Sort(done)
	fmt.Println(done)
	// Output: [stand-up-2026-11-19 stand-up-2026-11-20]
}

// A service responds with the id of a meeting and does the rest in the background. After a crash,
// the same call continues.
func ExampleMeetingsService_Resume() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()
	recording := minutes.FromFile("examples/quickstart/recording/standup.mp3")

	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20"})
	if err != nil {
		log.Fatal(err)
	}
	id := m.ID // put it into your response and into a table of jobs

	for range 2 { // the second time after a crash
		result, err := client.Meetings.Resume(ctx, id, recording, &minutes.ProcessOptions{Format: minutes.FormatMarkdown})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.Meeting.Status, len(srv.Requests(minutes.OpUpload)), "upload")
	}
	// Output:
	// minutes_ready 1 upload
	// minutes_ready 1 upload
}
