package minutestest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A meeting from its recording to its minutes.
func Example() {
	srv := minutestest.New() // in a test: minutestest.NewServer(t)
	defer srv.Close()
	srv.Script(minutestest.Script{Title: "Weekly", Markdown: "# Weekly\n\nWe ship on Friday."})

	ctx := context.Background()
	client := srv.Client()
	m, _, err := client.Meetings.Create(ctx,
		&minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-21", ParticipantIDs: []string{"emp_ada"}})
	if err != nil {
		log.Fatal(err)
	}
	recording := strings.NewReader("any bytes will do")
	err = client.Meetings.Upload(ctx, m.ID, minutes.FromReaderAt(recording, recording.Size(), "audio/ogg"), nil)
	if err != nil {
		log.Fatal(err)
	}
	srv.Advance(m.ID, minutes.StatusMinutesReady) // or let time pass
	got, err := client.Meetings.WaitForMinutes(ctx, m.ID, &minutes.WaitOptions{Format: minutes.FormatMarkdown})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(got.Minutes.Content)
	// Output:
	// # Weekly
	//
	// We ship on Friday.
}

// The connection breaks after the meeting was created, and before the client has heard of it. An
// external id makes the second try safe.
func ExampleServer_Inject() {
	srv := minutestest.New()
	defer srv.Close()
	lost := srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate}, minutestest.LoseResponse())

	client := srv.Client(minutes.WithMaxRetries(2))
	m, _, err := client.Meetings.Create(context.Background(),
		&minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-21", ExternalID: "weekly-47"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Title, lost.Applied(), len(srv.Requests(minutes.OpMeetingsCreate)), len(srv.Violations()))
	// Output: Weekly 1 2 0
}

// A script decides how a meeting ends.
func ExampleServer_Script() {
	srv := minutestest.New()
	defer srv.Close()
	srv.Script(minutestest.Script{Title: "Weekly", Outcome: minutes.StatusAudioRejected})
	client := srv.Client()

	recording := strings.NewReader("any bytes will do")
	params := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-21"}
	_, err := client.Meetings.Process(context.Background(), params,
		minutes.FromReaderAt(recording, recording.Size(), "audio/ogg"), nil)
	if failed, ok := errors.AsType[*minutes.MeetingFailedError](err); ok {
		fmt.Println(failed.Status)
	}
	// Output: audio_rejected
}

// A script holds this meeting while it is transcribed, so the program can inspect it. Advance moves
// it on.
func ExampleServer_Advance() {
	srv := minutestest.New()
	defer srv.Close()
	srv.Script(minutestest.Script{Title: "Weekly", Hold: minutes.StatusTranscribing})
	ctx := context.Background()
	client := srv.Client()
	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-21"})
	if err != nil {
		log.Fatal(err)
	}
	recording := strings.NewReader("any bytes will do")
	err = client.Meetings.Upload(ctx, m.ID, minutes.FromReaderAt(recording, recording.Size(), "audio/ogg"), nil)
	if err != nil {
		log.Fatal(err)
	}

	for _, until := range []minutes.Status{minutes.StatusTranscribing, minutes.StatusMinutesReady} {
		status := srv.Advance(m.ID, until)
		_, err = client.Meetings.Minutes(ctx, m.ID, minutes.FormatMarkdown)
		fmt.Println(status, errors.Is(err, minutes.ErrMinutesNotReady))
	}
	// Output:
	// transcribing true
	// minutes_ready false
}

func ExampleServer_Update() {
	srv := minutestest.New()
	defer srv.Close()
	srv.Update("org_acme",
		func(o *minutestest.Organisation) { o.Key("key_ci").Scopes = []minutes.Scope{minutes.ScopeMeetingsRead} })
	_, err := srv.Client().Members.List(context.Background())
	fmt.Println(errors.Is(err, minutes.ErrInsufficientScope))
	// Output: true
}

// See the requests of a client, and the history of its meeting.
func ExampleServer_Requests() {
	srv := minutestest.New()
	defer srv.Close()
	ctx := context.Background()
	client := srv.Client()
	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-21"})
	if err != nil {
		log.Fatal(err)
	}
	recording := strings.NewReader("any bytes will do")
	err = client.Meetings.Upload(ctx, m.ID, minutes.FromReaderAt(recording, recording.Size(), "audio/ogg"), nil)
	if err != nil {
		log.Fatal(err)
	}

	for _, r := range srv.Requests() {
		fmt.Println(r.Operation, r.Status, r.Header.Get("Content-Type"))
	}
	seen, _ := srv.Meeting(m.ID)
	fmt.Println(seen.Creator, seen.Audio.Size, seen.Audio.SHA256[:8])
	// Output:
	// meetings.create 201 application/json
	// meetings.upload_url 200 application/json
	// storage.put 200 audio/ogg
	// int_ci 17 d48e8b0a
}

// The audit reports a client that polls twice. With NewServer, the test fails.
func ExampleServer_Violations() {
	srv := minutestest.New()
	defer srv.Close()
	ctx := context.Background()
	client := srv.Client()
	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-21"})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 { // Wait would have let thirty seconds pass
		if _, err := client.Meetings.Get(ctx, m.ID); err != nil {
			log.Fatal(err)
		}
	}
	for _, v := range srv.Violations() {
		fmt.Println(v.Kind, v.Operation, v.Caller)
	}
	// Output: poll meetings.get int_ci
}

// On a socket, for programs that are not this one.
func ExampleServer_Listen() {
	srv := minutestest.New()
	defer srv.Close()
	baseURL, err := srv.Listen("") // a free port of 127.0.0.1
	if err != nil {
		log.Fatal(err)
	}

	client, err := minutes.New(baseURL, srv.Key()) // in another process
	if err != nil {
		log.Fatal(err)
	}
	members, err := client.Members.List(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(members), "members")
	// Output: 5 members
}

// Pages of one meeting each, as the API reference allows.
func ExampleServer_SetPageSizes() {
	srv := minutestest.New()
	defer srv.Close()
	srv.SetPageSizes(1)

	ctx := context.Background()
	client := srv.Client()
	for _, title := range []string{"Weekly", "Budget"} {
		if _, _, err := client.Meetings.Create(ctx,
			&minutes.MeetingCreateParams{Title: title, Date: "2026-11-21"}); err != nil {
			log.Fatal(err)
		}
	}
	for m, err := range client.Meetings.All(ctx, nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.Title)
	}
	fmt.Println(len(srv.Requests(minutes.OpMeetingsList)), "pages")
	// Output:
	// Budget
	// Weekly
	// 2 pages
}

// A page for the browser, of all that happened. A test that fails under go test -artifacts leaves
// it by itself.
func ExampleServer_Report() {
	srv := minutestest.New()
	defer srv.Close()
	if _, err := srv.Client().Members.List(context.Background()); err != nil {
		log.Fatal(err)
	}

	var page bytes.Buffer // or a file
	err := srv.Report(&page)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Contains(page.String(), "members.list"))
	// Output: true
}

// The usual world with less quota, and a key that may only read.
func ExampleWithWorld() {
	world := minutestest.DefaultWorld()
	acme := &world.Organisations[0]
	acme.Credits = new(3)
	acme.Keys = append(acme.Keys,
		minutestest.Key{Secret: "key_reader", IntegrationID: "int_ci",
			Scopes: []minutes.Scope{minutes.ScopeMeetingsRead}})
	srv := minutestest.New(minutestest.WithWorld(world))
	defer srv.Close()

	ctx := context.Background()
	reader := srv.ClientWithKey("key_reader")
	usage, err := reader.Usage.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, _, err = reader.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-21"})
	fmt.Println(usage.CreditsRemaining, errors.Is(err, minutes.ErrInsufficientScope))
	// Output: 3 true
}

func ExampleLoadWorld() {
	_, err := minutestest.LoadWorld(strings.NewReader(`{"organisations":[{"id":"org_acme",
		"members":[{"id":"emp_ada","name":"Ada Lovelace"}],
		"keys":[{"secret":"key_ada","member_id":"emp_eve"}]}]}`))
	fmt.Println(err)
	// Output: world: organisations[0].keys[0].member_id: no member "emp_eve"
}
