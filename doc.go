// Package minutes is a client for the Meeting Minutes Service, which turns recordings of meetings
// into transcripts and written minutes.
//
// [MeetingsService.Process] creates a meeting, uploads the recording, waits, and fetches the
// minutes:
//
//	client, err := minutes.NewFromEnv() // MINUTES_BASE_URL, MINUTES_API_KEY
//	params := &minutes.MeetingCreateParams{
//		Title:      "Weekly",
//		Date:       "2026-11-20",
//		ExternalID: "weekly-2026-11-20",
//	}
//	result, err := client.Meetings.Process(ctx, params, minutes.FromFile("weekly.mp3"), nil)
//
// The ExternalID makes the call idempotent, so you can run it again after a crash. If you stored
// the meeting's id instead, call [MeetingsService.Resume]. [MeetingsService.ProcessAll] processes
// many recordings concurrently. To wait for meetings whose recordings someone else uploads, use
// [MeetingsService.Wait] or [MeetingsService.WaitAll]. The service has no webhook;
// [MeetingsService.Follow] finds new meetings instead.
//
// Package [github.com/meeting-minutes/minutes-go/minutestest] is an in-memory fake of the service
// for tests. With [testing/synctest], an hour's wait takes milliseconds.
//
// # Waiting
//
// The service sends no events, so the Client polls each meeting until its status is final. It polls at
// most once in thirty seconds, as the service asks, however many waits there are for the meeting. If
// many meetings are pending, the Client reads list pages instead, because one page shows fifty
// meetings. One poll does not wait for the interval: the first after this Client has uploaded a
// recording, or requested an upload URL, because the status is then about to change.
//
// A wait has no overall timeout, so set a deadline on ctx.
//
// # Errors
//
//   - [*Error]: an API call failed; compare its code, as in errors.Is(err, minutes.ErrNotFound).
//   - [*StorageError]: storage did not accept the recording.
//   - [*MeetingFailedError]: the meeting reached one of the four failure statuses, which are final.
//   - [*WaitError]: a wait, or the fetch after it, ended without a result.
//   - [*ParamError]: the Client cannot use a parameter or a recording, and did not send it.
//
// What follows an error:
//
//   - [Retryable]: try again later; [RetryAfter] says when, if the service did.
//   - [KeyRejected], [ErrInsufficientScope]: someone must fix the key, its scopes or the organisation;
//     until then, other calls fail as well.
//   - *ParamError, [ErrBadRequest], [ErrNotFound], [ErrExternalIDTaken]: the input must change.
//   - *MeetingFailedError: the failure is final; delete the meeting and create it again.
//   - [context.Canceled]: you ended the call.
//
// Any call can return these errors, so most methods do not list them:
//
//   - [ErrRateLimited], [ErrInternal], [ErrInsufficientScope], and the codes for which
//     [KeyRejected] is true.
//   - An *Error with an empty Code: there was no response (then it wraps the network's or the
//     context's error), or the response has no code of the service, such as a proxy's page.
//   - A *ParamError for an unusable id, or a required parameter that is nil.
//
// No error, attempt, log or printed value contains the API key or a presigned URL's query.
//
// # Operations and scopes
//
// Section numbers refer to the API guide, [docs/api.md], which describes version 1.1.0 of the service.
// Its [section 4] lists all operations and scopes. "Assumed" marks what the service's own API
// reference does not specify, so the real service may differ; [WithRoute] overrides an assumed
// route.
//
// # Further reading
//
//   - [Uploads]: formats of recordings, recordings from a URL or a browser, broken uploads.
//   - [Waiting]: many meetings at once, and what ends a wait.
//   - [Following]: new meetings without webhooks, from cron or Lambda, with dead letters.
//   - [Errors]: what the Client retries, its timeouts, and a loop that handles every error.
//   - [Restarts]: crashes, failed meetings, several instances, key rotation, many tenants.
//   - [Job engines]: Temporal, River, asynq, JetStream and cron.
//   - [Observability]: logs, metrics and traces.
//   - [Testing]: a line of code for each of about fifty situations.
//   - [Troubleshooting]: symptom, cause, and what to do.
//   - [Examples]: small programs that run unchanged, without an account.
//
// [docs/api.md]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md
// [section 4]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#4-operations
// [Uploads]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/uploads.md
// [Waiting]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/polling.md
// [Following]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/follow.md
// [Job engines]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/jobs.md
// [Errors]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/errors.md
// [Restarts]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/restarts.md
// [Observability]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/observability.md
// [Testing]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/testing.md
// [Troubleshooting]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/troubleshooting.md
// [Examples]: https://github.com/meeting-minutes/minutes-go/tree/main/examples
package minutes
