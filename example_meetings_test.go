package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"slices"
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

func ExampleMeetingsService_Update() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{
		Title:     "Budget",
		Date:      "2026-03-09",
		Time:      "14:30",
		ProjectID: "prj_apollo",
	})
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

func ExampleMeetingsService_All() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	createThree(client)
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

// A page and its cursor, for example for a list in a web application.
func ExampleMeetingsService_List() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	createThree(client)
	page, err := client.Meetings.List(ctx, &minutes.MeetingListParams{Limit: 2})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(page.Meetings), "meetings, and more:", page.NextCursor != "")
	page, err = client.Meetings.List(ctx, &minutes.MeetingListParams{Limit: 2, Cursor: page.NextCursor})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(page.Meetings), "meeting, and more:", page.NextCursor != "")
	// Output:
	// 2 meetings, and more: true
	// 1 meeting, and more: false
}

// createThree creates three meetings.
func createThree(client *minutes.Client) {
	for _, title := range []string{"Budget", "Stand-up", "Retrospective"} {
		params := &minutes.MeetingCreateParams{Title: title, Date: "2026-03-10"}
		_, _, err := client.Meetings.Create(context.Background(), params)
		if err != nil {
			log.Fatal(err)
		}
	}
}

// The ids of the people who take part, so that the minutes can name the speakers.
func ExampleMembersService_List() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()
	invited := []string{"Ada Lovelace", "Ben Okafor", "A Guest"}

	members, err := client.Members.List(ctx)
	if err != nil {
		log.Fatal(err)
	}
	params := &minutes.MeetingCreateParams{Title: "Budget", Date: "2026-03-09"}
	for _, member := range members {
		if slices.Contains(invited, member.Name) {
			params.ParticipantIDs = append(params.ParticipantIDs, member.ID)
		}
	}
	m, _, err := client.Meetings.Create(ctx, params)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.ParticipantIDs)
	// Output: [emp_ada emp_ben]
}

func ExampleMeetingsService_Upload() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()

	params := &minutes.MeetingCreateParams{Title: "Stand-up", Date: "2026-03-10"}
	m, _, err := client.Meetings.Create(ctx, params)
	if err != nil {
		log.Fatal(err)
	}
	recording := minutes.FromFile("examples/quickstart/recording/standup.mp3")

	percent := int64(0)
	err = client.Meetings.Upload(ctx, m.ID, recording, &minutes.UploadOptions{
		Progress: func(sent, total int64) { percent = 100 * sent / total },
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(percent, "%")
	// Output: 100 %
}

// A browser uploads the recording by itself, because it must not have the API key. The server hands
// it the presigned URL, and waits.
func ExampleMeetingsService_UploadURL() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()
	browser := func(url, contentType string) { // a PUT with fetch or XMLHttpRequest
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, strings.NewReader("sound"))
		if err != nil {
			log.Fatal(err)
		}
		req.Header.Set("Content-Type", contentType)
		resp, err := srv.HTTPClient().Do(req)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(resp.StatusCode, resp.Body.Close())
	}

	params := &minutes.MeetingCreateParams{Title: "Interview", Date: "2026-11-20"}
	m, _, err := client.Meetings.Create(ctx, params)
	if err != nil {
		log.Fatal(err)
	}
	target, err := client.Meetings.UploadURL(ctx, m.ID, "audio/webm")
	if err != nil {
		log.Fatal(err)
	}
	browser(target.UploadURL.Reveal(), "audio/webm")
	result, err := client.Meetings.WaitForMinutes(ctx, m.ID, &minutes.WaitOptions{
		AudioTimeout: time.Hour, // the user may have closed the page
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Minutes.Format)
	// Output:
	// 200 <nil>
	// html
}

// Process does the whole job. After a crash, the same call continues, and never uploads the
// recording twice.
func ExampleMeetingsService_Process() {
	srv := minutestest.New()
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

// Process many jobs: four uploads at a time, any number of waits.
func ExampleMeetingsService_ProcessAll() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()

	jobs := func(yield func(minutes.Job) bool) {
		for _, day := range []string{"2026-11-19", "2026-11-20"} {
			job := minutes.Job{
				Params: &minutes.MeetingCreateParams{
					Title:      "Stand-up",
					Date:       day,
					ExternalID: "stand-up-" + day,
				},
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
			log.Fatal(err) // the service rejected the key
		}
		if result.Err != nil {
			log.Print(result.Err) // and the others continue
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
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx := context.Background()
	recording := minutes.FromFile("examples/quickstart/recording/standup.mp3")

	params := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20"}
	m, _, err := client.Meetings.Create(ctx, params)
	if err != nil {
		log.Fatal(err)
	}
	id := m.ID // put it into your response and into a table of jobs

	opts := &minutes.ProcessOptions{Format: minutes.FormatMarkdown}
	for range 2 { // the second time after a crash
		result, err := client.Meetings.Resume(ctx, id, recording, opts)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.Meeting.Status, len(srv.Requests(minutes.OpUpload)), "upload")
	}
	// Output:
	// minutes_ready 1 upload
	// minutes_ready 1 upload
}

// The transcript exists before the minutes do.
func ExampleMeetingsService_Wait() {
	srv := minutestest.New()
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

// Someone else uploads the recording, and this program only wants the minutes.
func ExampleMeetingsService_WaitForMinutes() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	id := created(client, "Weekly")

	ctx, cancel := context.WithTimeout(context.Background(), 12*time.Hour)
	defer cancel()
	result, err := client.Meetings.WaitForMinutes(ctx, id, &minutes.WaitOptions{
		Format:     minutes.FormatMarkdown,
		Transcript: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	heading, _, _ := strings.Cut(result.Minutes.Content, "\n")
	fmt.Println(heading, result.Transcript.Text != "")
	// Output: # Weekly true
}

// Count what each speaker says. The minutes, and not the transcript, name the speakers.
func ExampleTranscript_Turns() {
	transcript := &minutes.Transcript{
		Text: "spk_0: Shall we ship on Monday?\nspk_1: Yes.\nspk_0: Then I will tell\neverybody.",
	}
	words := map[string]int{}
	for turn := range transcript.Turns() {
		words[turn.Speaker] += len(strings.Fields(turn.Text))
	}
	fmt.Println(words)
	// Output: map[spk_0:10 spk_1:1]
}

// Wait for meetings that someone else created.
func ExampleMeetingsService_WaitAll() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ids := []string{created(client, "Weekly"), "mtg_unknown"}

	for result, err := range client.Meetings.WaitAll(context.Background(), slices.Values(ids), nil) {
		if err != nil {
			log.Fatal(err) // the service rejected the key
		}
		if result.Err != nil {
			fmt.Println(result.MeetingID, errors.Is(result.Err, minutes.ErrNotFound))
			continue
		}
		fmt.Println(result.Meeting.Title, result.Minutes.Format)
	}
	// Unordered output:
	// Weekly html
	// mtg_unknown true
}

// Handle the minutes of every meeting of the organisation, as a webhook would. The program can be
// stopped and started at any time: Since goes back further than its longest outage and the longest
// time from a meeting's creation to its minutes, and Handled knows what it has stored.
func ExampleMeetingsService_Follow() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	created(client, "Weekly")    // by someone else
	handled := map[string]bool{} // a table of your database

	opts := &minutes.FollowOptions{
		Since:   time.Now().AddDate(0, -2, 0),
		Handled: func(m *minutes.Meeting) bool { return handled[m.ID] },
	}
	for result, err := range client.Meetings.Follow(ctx, opts) {
		if err != nil {
			fmt.Println("over:", errors.Is(err, context.Canceled)) // or the service rejected the key
			return
		}
		_, failed := errors.AsType[*minutes.MeetingFailedError](result.Err)
		switch {
		case result.Err == nil:
			fmt.Println(result.Meeting.Title, result.Minutes.Format) // store the minutes
			handled[result.MeetingID] = true
		case failed: // for good
			handled[result.MeetingID] = true
		default: // such as a 403: Follow tries again, because the meeting is not marked
			log.Print(result.Err)
		}
		cancel() // ends this example
	}
	// Output:
	// Weekly html
	// over: true
}
