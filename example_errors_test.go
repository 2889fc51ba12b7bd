package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

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

// A meeting failed without minutes. The API has one status for all reasons, so check the remaining
// credits. The transcript exists in any case.
func ExampleMeetingFailedError() {
	srv := minutestest.New()
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

// A failure status is final, so delete the meeting and process the recording again.
func ExampleMeetingFailedError_tryAgain() {
	srv := minutestest.New()
	defer srv.Close()
	srv.Script(minutestest.Script{ExternalID: "weekly-47", Outcome: minutes.StatusTranscriptionFailed})
	client := srv.Client()
	ctx := context.Background()
	params := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20", ExternalID: "weekly-47"}
	recording := minutes.FromFile("examples/quickstart/recording/standup.mp3")

	result, err := client.Meetings.Process(ctx, params, recording, nil)
	if failed, ok := errors.AsType[*minutes.MeetingFailedError](err); ok {
		fmt.Println(failed.Status)
		err = client.Meetings.Delete(ctx, failed.MeetingID)
		if err != nil { // cannot be undone
			log.Fatal(err)
		}
		srv.Script(minutestest.Script{ExternalID: "weekly-47"}) // this time it works
		result, err = client.Meetings.Process(ctx, params, recording, nil)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Meeting.Status)
	// Output:
	// transcription_failed
	// minutes_ready
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

// Storage, and not the service, rejected the recording. Its errors have codes of their own.
func ExampleStorageError() {
	srv := minutestest.New()
	defer srv.Close()
	srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.RefuseUpload(403, "AccessDenied"))
	client := srv.Client()
	ctx := context.Background()
	meeting, _, err := client.Meetings.Create(ctx, &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20"})
	if err != nil {
		log.Fatal(err)
	}

	err = client.Meetings.Upload(ctx, meeting.ID, minutes.FromFile("examples/quickstart/recording/standup.mp3"), nil)
	rejected, ok := errors.AsType[*minutes.StorageError](err)
	if ok {
		fmt.Println(rejected.StatusCode, rejected.Code, minutes.Retryable(err))
		fmt.Println(rejected.MeetingID == meeting.ID) // the meeting exists, without audio
	}
	// Output:
	// 403 AccessDenied false
	// true
}

// If the service asks for more than a minute, the call returns at once, and the program decides.
func ExampleRetryAfter() {
	srv := minutestest.New()
	defer srv.Close()
	srv.Inject(minutestest.Match{Operation: minutes.OpUsageGet}, minutestest.RateLimit("120"))
	client := srv.Client()

	_, err := client.Usage.Get(context.Background())
	wait, ok := minutes.RetryAfter(err)
	if ok {
		fmt.Println("again in", wait)
	}
	// Output: again in 2m0s
}

// A program runs each of its jobs in a loop like this one. The Client has already retried each
// request, so the loop handles what remains.
func ExampleRetryable_loop() {
	stopAll := func(err error) error { return fmt.Errorf("stop all jobs and alert someone: %w", err) }
	retryEvery := time.Millisecond // a minute in your program

	run := func(ctx context.Context, job func(context.Context) error) error {
		for {
			err := job(ctx) // which calls FromReader, if it does, each time with a new reader
			switch {
			case err == nil || ctx.Err() != nil:
				return err // the job is done, or the program is stopping
			case minutes.KeyRejected(err):
				return stopAll(err) // every job will fail until someone fixes the key
			case errors.Is(err, minutes.ErrNotFound):
				return nil // someone deleted the meeting: drop the job
			case !minutes.Retryable(err):
				return err // give up: a failed meeting, an unusable recording, …
			}
			wait, _ := minutes.RetryAfter(err) // 0 if the service did not ask for a time
			select {
			case <-ctx.Done():
			case <-time.After(max(wait, retryEvery)):
			}
		}
	}

	for _, err := range []error{
		&minutes.Error{StatusCode: 503},
		&minutes.Error{StatusCode: 401, Code: minutes.ErrUnauthenticated, Method: "GET", Path: "/v1/usage"},
		&minutes.Error{StatusCode: 404, Code: minutes.ErrNotFound},
		minutes.ErrRecordingEmpty,
	} {
		runs := 0
		err := run(context.Background(), func(context.Context) error {
			runs++
			if runs == 2 {
				return nil
			}
			return err
		})
		fmt.Println(runs, err)
	}
	// Output:
	// 2 <nil>
	// 1 stop all jobs and alert someone: minutes: GET /v1/usage: 401 UNAUTHENTICATED
	// 1 <nil>
	// 1 the recording is empty
}

// Without WithAPIKeyFunc, a new key needs a new Client. It continues what the old one was waiting
// for.
func ExampleKeyRejected() {
	srv := minutestest.New()
	defer srv.Close()
	srv.Script(minutestest.Script{Hold: minutes.StatusTranscribing})
	ctx := context.Background()
	old := srv.ClientWithKey("key_ada")
	next := srv.ClientWithKey("key_ci")
	m, _, err := old.Meetings.Create(ctx, &minutes.MeetingCreateParams{
		Title:      "Weekly",
		Date:       "2026-11-20",
		Visibility: minutes.VisibilityOrganisation,
	})
	if err != nil {
		log.Fatal(err)
	}
	recording := minutes.FromFile("examples/quickstart/recording/standup.mp3")

	srv.Update("org_acme", func(o *minutestest.Organisation) { o.Key("key_ada").Revoked = true })
	_, err = old.Meetings.Resume(ctx, m.ID, recording, nil)
	if minutes.KeyRejected(err) {
		fmt.Println("continue with the new key")
		opts := &minutes.ProcessOptions{Until: minutes.StatusAudioUploaded}
		_, err = next.Meetings.Resume(ctx, m.ID, recording, opts)
	}
	fmt.Println(err)
	// Output:
	// continue with the new key
	// <nil>
}

// Stop while the quota is used up: ask for the usage every few minutes instead of uploading the
// next recording, which would fail in the same way.
func ExampleUsageService_Get_quota() {
	srv := minutestest.New()
	defer srv.Close()
	quota := func(seconds int) {
		srv.Update("org_acme", func(o *minutestest.Organisation) { o.TranscribeSeconds = &seconds })
	}
	quota(0)
	client := srv.Client()
	ctx := context.Background()
	sleep := func(d time.Duration) error { // in your program, select on ctx.Done() and time.After(d)
		fmt.Println("again in", d)
		quota(3600) // somebody tops up meanwhile
		return ctx.Err()
	}
	params := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20", ExternalID: "weekly-47"}
	recording := minutes.FromFile("examples/quickstart/recording/standup.mp3")

	_, err := client.Meetings.Process(ctx, params, recording, nil)
	failed, ok := errors.AsType[*minutes.MeetingFailedError](err)
	if !ok || failed.Status != minutes.StatusTranscribeBlocked {
		log.Fatal(err)
	}
	for {
		usage, err := client.Usage.Get(ctx)
		if err == nil && usage.TranscribeSecondsRemaining > 0 {
			break
		}
		err = sleep(5 * time.Minute) // or until usage.ResetAt
		if err != nil {
			log.Fatal(err) // the program is stopping
		}
	}
	err = client.Meetings.Delete(ctx, failed.MeetingID)
	if err != nil {
		log.Fatal(err)
	}
	result, err := client.Meetings.Process(ctx, params, recording, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Meeting.Status)
	// Output:
	// again in 5m0s
	// minutes_ready
}
