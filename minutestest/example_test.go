package minutestest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A meeting from its recording to its minutes.
func Example() {
	srv := minutestest.New() // in a test: minutestest.NewServer(t)
	defer srv.Close()
	if err := srv.Script(minutestest.Script{Title: "Weekly", Markdown: "# Weekly\n\nWe ship on Friday."}); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	client := srv.Client()
	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-21", ParticipantIDs: []string{"emp_ada"}})
	if err != nil {
		log.Fatal(err)
	}
	recording := strings.NewReader("any bytes will do")
	err = client.Meetings.Upload(ctx, m.ID, minutes.Recording{Audio: recording, Size: recording.Size(), ContentType: "audio/ogg"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := srv.Advance(m.ID, minutes.StatusMinutesReady); err != nil { // or let time pass
		log.Fatal(err)
	}
	got, err := client.Meetings.WaitForMinutes(ctx, m.ID, &minutes.WaitOptions{Format: minutes.FormatMarkdown})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(got.Content)
	// Output:
	// # Weekly
	//
	// We ship on Friday.
}

// The connection breaks after the meeting was created, and before the client
// has heard of it. An external id makes the second try safe.
func ExampleServer_Inject() {
	srv := minutestest.New()
	defer srv.Close()
	lost := srv.Inject(minutestest.Match{Operation: "meetings.create"}, minutestest.LoseReply())

	client := srv.Client(minutes.WithRetries(2, time.Millisecond, time.Millisecond))
	m, _, err := client.Meetings.Create(context.Background(), &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-21", ExternalID: "weekly-47"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Title, lost.Struck(), len(srv.Requests("meetings.create")), len(srv.Violations()))
	// Output: Weekly 1 2 0
}

// Where meetings take no time, Process finds the minutes at its first look, on a
// real clock, too.
func ExampleServer_Script() {
	srv := minutestest.New()
	defer srv.Close()
	if err := srv.Script(minutestest.Script{Stages: minutestest.Stages{Prepare: 1, Transcribe: 1, Write: 1}}); err != nil {
		log.Fatal(err)
	}

	recording := strings.NewReader("any bytes will do")
	params := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-21"}
	result, err := srv.Client().Meetings.Process(context.Background(), params,
		minutes.Recording{Audio: recording, Size: recording.Size(), ContentType: "audio/ogg"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Meeting.Status)
	// Output: minutes_ready
}

func ExampleServer_Update() {
	srv := minutestest.New()
	defer srv.Close()
	err := srv.Update("org_acme", func(o *minutestest.Organisation) { o.Key("key_ci").Scopes = []string{"meetings:read"} })
	if err != nil {
		log.Fatal(err)
	}
	_, err = srv.Client().Members.List(context.Background())
	fmt.Println(errors.Is(err, minutes.ErrInsufficientScope))
	// Output: true
}

func ExampleLoadWorld() {
	_, err := minutestest.LoadWorld(strings.NewReader(`{"organisations":[{"id":"org_acme",
		"members":[{"id":"emp_ada","name":"Ada Lovelace"}],
		"keys":[{"secret":"key_ada","member_id":"emp_eve"}]}]}`))
	fmt.Println(err)
	// Output: world: organisations[0].keys[0].member_id: no member "emp_eve"
}

// A fuzz test has one Server for all of its inputs. Benchmarks and tests of
// their own inputs make theirs in the same way.
func ExampleNewServer_fuzzing() {
	FuzzTitle := func(f *testing.F) {
		srv := minutestest.NewServer(f)
		f.Add("Weekly")
		f.Fuzz(func(t *testing.T, title string) {
			m, _, err := srv.Client().Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: title, Date: "2026-11-21"})
			if err == nil && m.Title == "" {
				t.Errorf("%q has become a meeting without a title", title)
			}
		})
	}
	_ = FuzzTitle
}

// A benchmark on a Server of its own.
func ExampleNewServer_benchmark() {
	result := testing.Benchmark(func(b *testing.B) {
		client := minutestest.NewServer(b).Client()
		for b.Loop() {
			if _, err := client.Usage.Get(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	fmt.Println(result.N > 0)
}
