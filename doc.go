// Package minutes is a client for the Meeting Minutes Service, which turns
// recordings into transcripts and written minutes.
//
// # From a recording to its minutes
//
// [MeetingsService.Process] does the whole job:
//
//	client, err := minutes.NewFromEnv() // MINUTES_BASE_URL, MINUTES_API_KEY
//	…
//	recording, err := minutes.OpenRecording("weekly.mp3")
//	…
//	defer recording.Close()
//	result, err := client.Meetings.Process(ctx, &minutes.MeetingCreateParams{
//		Title:      "Weekly",
//		Date:       "2026-11-20",
//		ExternalID: "weekly-2026-11-20", // safe to run again after a crash
//	}, recording, &minutes.ProcessOptions{Format: minutes.FormatMarkdown})
//	…
//	fmt.Println(result.Minutes.Content)
//
// A service that has to answer before the minutes are there takes it in two:
// [MeetingsService.Create] tells the id, and [MeetingsService.Finish] does the rest,
// now or after a restart, from whatever state the meeting is in. The single steps
// are [MeetingsService.Upload], which sends the audio straight to storage,
// [MeetingsService.WaitForMinutes], and [MeetingsService.Transcript]. For many
// at a time there are [MeetingsService.ProcessAll] and
// [MeetingsService.WaitAll]. A Client has four uploads under way at a time, unless
// [WithUploads] says otherwise, and any number of waits.
//
// # Waiting
//
// The service sends no events; a client looks at a meeting's status, and is
// asked to do so no more than every thirty seconds. A Client keeps that floor
// for every meeting, whoever waits for it, and looks at many meetings with few
// requests: [MeetingsService.Wait] says what counts as a look, and LookedAt of
// WaitOptions and ProcessOptions carries one over a restart. What a page of the listing
// shows on the way is free: the interface asks the thirty seconds of the single
// meeting.
//
// A wait has no time limit but its context, and WaitOptions.NoAudio for a
// meeting that nothing is uploaded to, unless looks keep failing: after twenty in
// a row, ten minutes and more, it ends with a *WaitError, and can be begun again.
// A 429 is no failure: it slows all waits down, for as long as it takes. Many
// waits are one loop: [MeetingsService.WaitAll], or
// [MeetingsService.WaitAllForMinutes], which fetches, too.
//
// # Errors
//
//   - [*Error]: an API call failed. Compare its [Code] with errors.Is, as in
//     errors.Is(err, minutes.ErrNotFound); it has the request id to quote.
//   - [*StorageError]: storage did not take the recording.
//   - [*MeetingFailedError]: the meeting ended in one of its four failure states.
//   - [*WaitError]: a wait ended before the meeting did.
//   - [*ParamError]: a parameter cannot be used; no request was made. Compare what
//     is wrong with a recording with [ErrRecordingEmpty] and its like.
//
// No error, log or printed value holds the API key or the query of a presigned
// URL, which is what makes it one.
//
// [Retryable] tells what is worth trying again, later and by the caller, and
// [KeyRefused] what no other call with the key will do better. Whether a write
// without a reply took effect is not known; Create with an ExternalID, Process with
// one, and Finish may be called again in any case.
//
// # What is repeated
//
// Only what is provably safe, up to four times unless [WithRetries] says
// otherwise:
//
//   - after a 429, every request: the service's edge refused it, and nothing was
//     done. The whole Client cools down, as long as Retry-After says, up to a
//     minute; a call that was asked to wait longer returns at once, with
//     Error.RetryAfter;
//   - where the connection was never made, every request;
//   - after a lost connection, a time-out or a 500, 502, 503 or 504: requests that
//     do no more when they are done twice (GET, PUT, DELETE, the request for an
//     upload URL, and Create with an ExternalID), and uploads;
//   - after any other refusal, none, but uploads also after 408, 429, 499, 520 to
//     527 and S3's RequestTimeout and OperationAborted; once, with a new URL, where
//     the URL had expired; and after a 417, without the header Expect.
//
// # Proxies and certificates
//
// A Client made without [WithHTTPClient] goes through the proxies of the
// environment (HTTPS_PROXY, NO_PROXY; see [http.ProxyFromEnvironment]) and trusts
// the certificates of the system. For a proxy or a certificate authority of
// one's own, give it an http.Client with a transport that knows them, cloned from
// http.DefaultTransport; the example of WithHTTPClient shows how. API calls and
// uploads both go through it. An upload that finds no way through a proxy names
// the proxy, without its password. A proxy that takes in a whole recording to
// scan it may need a longer [WithUploadTimeouts].
//
// # Documented and assumed
//
// The interface of the service, version 1.1.0, does not show everything. What
// it does not show and this package has to know, such as the routes in
// [WithRoute], is marked as assumed where it stands; an assumed route can be
// overridden.
//
// # Testing
//
// Package minutestest has the whole service in memory. With testing/synctest, a
// test of an hour's wait takes milliseconds.
package minutes
