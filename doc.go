// Package minutes is a client for the Meeting Minutes Service, which turns recordings of
// meetings into transcripts and written minutes.
//
// [MeetingsService.Process] does the whole job:
//
//	client, err := minutes.NewFromEnv() // MINUTES_BASE_URL, MINUTES_API_KEY
//	params := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20", ExternalID: "weekly-2026-11-20"}
//	result, err := client.Meetings.Process(ctx, params, minutes.FromFile("weekly.mp3"), nil)
//
// With an ExternalID it is safe to run again after a crash. [MeetingsService.Resume] does
// the same for a meeting whose id you stored; see also [WithStore]. [MeetingsService.Wait]
// waits for a meeting, [MeetingsService.WaitAll] for many, and [MeetingsService.Follow] for
// all of the organisation. [MeetingsService.ProcessAll] processes many recordings. Package
// minutestest has the whole service in memory, for tests in which an hour's wait takes
// milliseconds.
//
// # Waiting
//
// The service sends no events, so the Client polls, at least thirty seconds apart for each
// meeting. All waits of a Client share one poller, which serves many meetings with few
// requests. A wait has no time limit except its context and AudioTimeout.
//
// # Errors
//
//   - [*Error]: an API call failed. Compare its code: errors.Is(err, minutes.ErrNotFound).
//   - [*StorageError]: storage did not accept the recording.
//   - [*MeetingFailedError]: the meeting ended in one of its four failure states.
//   - [*WaitError]: a wait ended before its meeting did.
//   - [*ParamError]: a parameter or a recording cannot be used; nothing was sent.
//
// [Retryable] reports whether it is worth trying again later, and [KeyRejected] whether
// the service rejected the key. The Client retries what is provably safe; see
// [WithRetries]. No error, event, log or printed value contains the API key or the query
// of a presigned URL.
//
// # Operations and scopes
//
// The interface document of the service, version 1.1.0, does not show every route. This
// package assumes the others, with their scopes. [WithRoute] overrides an assumed route;
// [Client.Do] makes any other request. A star marks an assumed scope of a documented
// route.
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
