package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/meeting-minutes/minutes-go"
)

// A program runs each of its jobs in a loop like this one. The Client has already retried
// each request, so the loop handles what remains.
func ExampleRetryable_loop() {
	stopAll := func(err error) error { return fmt.Errorf("stop all jobs and alert someone: %w", err) }
	retryEvery := time.Millisecond // a minute in your program

	run := func(ctx context.Context, job func(context.Context) error) error {
		for {
			err := job(ctx) // a job with FromReader must call it again in each attempt, with a new reader
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
		&minutes.Error{StatusCode: 401, Code: minutes.ErrUnauthenticated, Method: "GET", Path: "/v1/meetings/mtg_1"},
		&minutes.Error{StatusCode: 404, Code: minutes.ErrNotFound, Operation: minutes.OpMeetingsGet},
		minutes.ErrRecordingEmpty,
	} {
		attempts := 0
		err := run(context.Background(), func(context.Context) error {
			if attempts++; attempts == 2 {
				return nil
			}
			return err
		})
		fmt.Println(attempts, err)
	}
	// Output:
	// 2 <nil>
	// 1 stop all jobs and alert someone: minutes: GET /v1/meetings/mtg_1: 401 UNAUTHENTICATED
	// 1 <nil>
	// 1 the recording is empty
}
