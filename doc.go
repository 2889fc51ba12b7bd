// Package minutes is a client for the Meeting Minutes Service, which turns
// recordings into transcripts and written minutes.
//
// # From a recording to its minutes
//
// [MeetingsService.Process] does the whole job:
//
//	client, err := minutes.NewFromEnv() // MINUTES_BASE_URL, MINUTES_API_KEY
//	result, err := client.Meetings.Process(ctx, &minutes.MeetingCreateParams{
//		Title: "Weekly", Date: "2026-11-20",
//		ExternalID: "weekly-2026-11-20", // safe to run again after a crash
//	}, minutes.FromFile("weekly.mp3"), &minutes.ProcessOptions{Format: minutes.FormatMarkdown})
//
// A program that must respond at once calls [MeetingsService.Create] to get the id, and
// then [MeetingsService.Resume] for the rest. Resume continues from any state of the
// meeting, also after a restart. [MeetingsService.ProcessAll] and
// [MeetingsService.WaitAll] handle many meetings. Package minutestest has the whole
// service in memory, for tests in which an hour's wait takes milliseconds.
//
// # Waiting
//
// The service sends no events, so a program must poll a meeting's status. The service
// asks for at least thirty seconds between two polls of a meeting. A Client keeps this
// minimum poll interval for every meeting, however many waits there are, and polls many
// meetings with few requests; see [MeetingsService.Wait]. A wait has no time limit
// except its context, and AudioTimeout for a meeting that nobody uploads to.
//
// # Errors
//
//   - [*Error]: an API call failed. Compare its [ErrorCode] with errors.Is, as in
//     errors.Is(err, minutes.ErrNotFound); it has the request id to quote.
//   - [*StorageError]: storage did not accept the recording.
//   - [*MeetingFailedError]: the meeting ended in one of its four failure states.
//   - [*WaitError]: a wait ended before the meeting did.
//   - [*ParamError]: a parameter or a recording cannot be used.
//
// [Retryable] reports whether it is worth trying again later, and [KeyRejected] whether
// the service rejected the key, so that similar calls will fail too. A Client retries
// only what is provably safe; [WithRetries] has the rules. No error, event, log or
// printed value holds the API key or the query of a presigned URL, which is a
// credential.
//
// # Operations and scopes
//
// The interface document of the service, version 1.1.0, does not show every route.
// This package assumes the others, with their scopes. [WithRoute] overrides an assumed
// route; [Client.Do] makes any other request. A star marks a scope of a documented
// route: that scope alone is assumed.
//
//	Members.List              employees:read   documented  members.list
//	Members.Create            employees:write  documented  members.create
//	Meetings.List             meetings:read    documented  meetings.list
//	Meetings.Create           meetings:write   documented  meetings.create
//	Meetings.Get              meetings:read    documented  meetings.get
//	Meetings.Update           meetings:write   documented  meetings.update
//	Meetings.Delete           meetings:delete  documented  meetings.delete
//	Meetings.SetParticipants  meetings:write*  documented  meetings.set_participants
//	Meetings.UploadURL        meetings:write*  documented  meetings.upload_url
//	Meetings.Minutes          minutes:read     documented  meetings.minutes
//	Meetings.Transcript       minutes:read     assumed     meetings.transcript
//	Projects.List             meetings:read    assumed     projects.list
//	Projects.Create           meetings:write   assumed     projects.create
//	Templates.List            meetings:read    assumed     templates.list
//	Usage.Get                 meetings:read    assumed     usage.get
//	Vocabulary.Get            meetings:read    assumed     vocabulary.get
//	Vocabulary.Replace        meetings:write   assumed     vocabulary.replace
//	Vocabulary.Add            meetings:write   assumed     vocabulary.add
package minutes
