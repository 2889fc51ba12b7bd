package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// work does one job until it has ended. It returns an error if all other jobs have to stop, too.
func work(ctx context.Context, client *minutes.Client, job minutes.Job) error {
	options := new(minutes.ProcessOptions)
	for {
		_, err := client.Meetings.Process(ctx, job.Params, job.Source, options)
		failed, ended := errors.AsType[*minutes.MeetingFailedError](err)
		noQuota := minutes.QuotaExhausted(err)
		if ended && failed.Status == minutes.StatusMinutesFailed {
			usage, err := client.Usage.Get(ctx)
			noQuota = err == nil && usage.CreditsRemaining == 0
		}
		pause, _ := minutes.RetryAfter(err)
		switch {
		case err == nil:
			return jobEnded("done")
		case ctx.Err() != nil || minutes.KeyRejected(err): // like every other job
			return err
		case noQuota: // or until Usage.ResetAt; then delete the meeting and create it again
			options.Restart, pause = true, time.Hour
		case minutes.Retryable(err):
			pause = max(pause, time.Minute)
		case errors.Is(err, minutes.ErrMeetingGone): // someone does not want the minutes
			return jobEnded("deleted")
		default: // *MeetingFailedError, ErrRecordingEmpty …: a person decides
			return jobEnded("given up")
		}
		sleep(ctx, pause)
	}
}

func jobEnded(outcome string) error {
	fmt.Println(" ", outcome)
	return nil
}

// sleep returns at once in this example. A real program waits for d, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	fmt.Println("  again in", d)
	ctx.Value(meanwhile{}).(func())()
}

type meanwhile struct{} // what happens during a pause

// A program handles failures: it retries, pauses, gives up one job, or stops all.
func Example_handleFailures() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()
	quota := func(credits, seconds int) {
		_ = srv.Update("org_acme", func(o *minutestest.Organisation) { o.Credits, o.TranscribeSeconds = &credits, &seconds })
	}
	ctx := context.WithValue(context.Background(), meanwhile{}, func() { quota(100, 3600) })

	for _, situation := range []struct {
		name  string
		begin func(about minutestest.Match)
	}{
		{"the storage is overloaded", func(about minutestest.Match) {
			about.Operation = minutes.OpUpload
			srv.Inject(about, minutestest.RefuseUpload(503, "SlowDown").WithHeader("Retry-After", "90"))
		}},
		{"no transcription time is left", func(minutestest.Match) { quota(100, 0) }},
		{"no credits are left", func(minutestest.Match) { quota(0, 3600) }},
		{"the audio is rejected", func(about minutestest.Match) {
			_ = srv.Script(minutestest.Script{Title: about.Title, Outcome: minutes.StatusAudioRejected})
		}},
		{"someone deletes the meeting", func(about minutestest.Match) {
			about.Operation = minutes.OpMeetingsGet
			srv.Inject(about, minutestest.Call(func(r minutestest.Request) { _ = client.Meetings.Delete(ctx, r.MeetingID) }))
		}},
		{"the key is revoked", func(minutestest.Match) {
			_ = srv.Update("org_acme", func(o *minutestest.Organisation) { o.Key(srv.Key()).Revoked = true })
		}},
	} {
		fmt.Println(situation.name)
		situation.begin(minutestest.Match{Title: situation.name})
		err := work(ctx, client, minutes.Job{
			Params: &minutes.MeetingCreateParams{Title: situation.name, Date: "2026-11-20", ExternalID: situation.name},
			Source: minutes.FromReaderAt(strings.NewReader("sound"), 5, "audio/mpeg"),
		})
		if err != nil {
			fmt.Println("  stop everything:", minutes.KeyRejected(err))
			break
		}
	}
	// Output:
	// the storage is overloaded
	//   again in 1m30s
	//   done
	// no transcription time is left
	//   again in 1h0m0s
	//   done
	// no credits are left
	//   again in 1h0m0s
	//   done
	// the audio is rejected
	//   given up
	// someone deletes the meeting
	//   deleted
	// the key is revoked
	//   stop everything: true
}
