package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// Every rejection has a code to branch on, and a request id for support.
func ExampleError() {
	srv := minutestest.New()
	defer srv.Close()
	client := srv.Client()

	_, err := client.Meetings.Minutes(context.Background(), "mtg_unknown", minutes.FormatMarkdown)
	switch {
	case errors.Is(err, minutes.ErrMinutesNotReady):
		fmt.Println("later")
	case errors.Is(err, minutes.ErrNotFound):
		refused, _ := errors.AsType[*minutes.Error](err)
		fmt.Println(refused.StatusCode, refused.Code, refused.RequestID != "")
	}
	// Output: 404 NOT_FOUND true
}

// Storage rejected the recording.
func ExampleStorageError() {
	srv := minutestest.New()
	defer srv.Close()
	srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.RefuseUpload(400, "EntityTooLarge"))
	client := srv.Client()
	ctx := context.Background()

	m, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20"})
	if err != nil {
		log.Fatal(err)
	}
	sound := strings.NewReader(strings.Repeat("sound", 1000))
	err = client.Meetings.Upload(ctx, m.ID, minutes.FromReaderAt(sound, sound.Size(), "audio/mpeg"), nil)
	if refused, ok := errors.AsType[*minutes.StorageError](err); ok {
		fmt.Println(refused.StatusCode, refused.Code, "later again:", minutes.Retryable(err))
	}
	// Output: 400 EntityTooLarge later again: false
}

// A meeting failed without minutes. The interface has one state for all reasons, so check the
// remaining credits. The transcript exists in any case.
func ExampleMeetingFailedError() {
	srv := quick()
	defer srv.Close()
	srv.Update("org_acme", func(o *minutestest.Organisation) { o.Credits = new(0) })
	client := srv.Client()
	ctx := context.Background()
	id := created(client, "Weekly")

	_, err := client.Meetings.WaitForMinutes(ctx, id, nil)
	failed, ok := errors.AsType[*minutes.MeetingFailedError](err)
	if !ok {
		log.Fatal(err)
	}
	if failed.Status == minutes.StatusMinutesFailed {
		usage, err := client.Usage.Get(ctx)
		if err != nil {
			log.Fatal(err)
		}
		if usage.CreditsRemaining == 0 {
			fmt.Println("top up first, then create the meeting again")
		}
		transcript, err := client.Meetings.Transcript(ctx, failed.Meeting.ID)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("there is a transcript:", transcript.Text != "")
	}
	// Output:
	// top up first, then create the meeting again
	// there is a transcript: true
}

// A wait ends with its context. The meeting continues, and another wait can follow.
func ExampleWaitError() {
	srv := minutestest.New()
	defer srv.Close()
	srv.Script(minutestest.Script{Hold: minutes.StatusTranscribing})
	client := srv.Client()
	id := created(client, "Weekly")
	srv.Advance(id, minutes.StatusTranscribing)

	ctx, cancel := context.WithCancel(context.Background())
	_, err := client.Meetings.Wait(ctx, id, &minutes.WaitOptions{
		OnStatus: func(*minutes.Meeting) { cancel() }, // instead of a deadline
	})
	if wait, ok := errors.AsType[*minutes.WaitError](err); ok {
		fmt.Println(wait.Meeting.Title, "was last seen", wait.Meeting.Status)
		fmt.Println(errors.Is(err, context.Canceled))
	}
	// Output:
	// Weekly was last seen transcribing
	// true
}

// The Client rejects invalid parameters before any request.
func ExampleParamError() {
	srv := minutestest.New()
	defer srv.Close()

	_, err := srv.Client().Meetings.Get(context.Background(), "")
	if bad, ok := errors.AsType[*minutes.ParamError](err); ok {
		fmt.Println(bad.Param, bad.Reason)
	}
	empty := minutes.FromReader(strings.NewReader(""), "audio/mpeg")
	err = srv.Client().Meetings.Upload(context.Background(), "mtg_1", empty, nil)
	fmt.Println(errors.Is(err, minutes.ErrRecordingEmpty))
	// Output:
	// id must not be empty
	// true
}

// A program that processes many recordings decides what to do after each error.
func ExampleRetryable() {
	advice := func(err error) string {
		failed, ended := errors.AsType[*minutes.MeetingFailedError](err)
		switch {
		case minutes.KeyRejected(err):
			return "stop everything: the key was rejected"
		case minutes.Retryable(err):
			return "run it again later, unchanged"
		case ended:
			return "it ended in " + string(failed.Status) + ": delete the meeting, create it again"
		case errors.Is(err, context.Canceled):
			return "this program stops: run it again when it is back"
		case errors.Is(err, minutes.ErrNotFound):
			return "the meeting was deleted"
		default:
			return "fix the call: " + err.Error()
		}
	}
	fmt.Println(advice(&minutes.Error{StatusCode: 401, Code: minutes.ErrUnauthenticated}))
	fmt.Println(advice(&minutes.Error{StatusCode: 500, Code: minutes.ErrInternal}))
	fmt.Println(advice(&minutes.MeetingFailedError{Status: minutes.StatusTranscriptionFailed}))
	fmt.Println(advice(&minutes.WaitError{MeetingID: "mtg_1", Err: context.Canceled}))
	fmt.Println(advice(&minutes.Error{StatusCode: 404, Code: minutes.ErrNotFound}))
	fmt.Println(advice(minutes.ErrRecordingEmpty))
	// Output:
	// stop everything: the key was rejected
	// run it again later, unchanged
	// it ended in transcription_failed: delete the meeting, create it again
	// this program stops: run it again when it is back
	// the meeting was deleted
	// fix the call: the recording is empty
}
