// Package minutes is a client for the Meeting Minutes Service, which turns recordings of meetings
// into transcripts and written minutes.
//
// [MeetingsService.Process] creates a meeting, uploads the recording, waits and fetches the
// minutes:
//
//	client, err := minutes.NewFromEnv() // MINUTES_BASE_URL, MINUTES_API_KEY
//	params := &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-20", ExternalID: "weekly-2026-11-20"}
//	result, err := client.Meetings.Process(ctx, params, minutes.FromFile("weekly.mp3"), nil)
//
// With an ExternalID you can run Process again after a crash. If you stored the meeting's id, call
// [MeetingsService.Resume] instead. [MeetingsService.ProcessAll] processes many recordings.
// [MeetingsService.Wait] waits for one meeting, [MeetingsService.WaitAll] for many, and
// [MeetingsService.Follow] for all of the organisation. Package minutestest is the service in
// memory, for tests in which an hour's wait takes milliseconds.
//
// # Waiting
//
// The service sends no events, so the Client polls: a poll is a GET of a meeting to see whether
// it has reached the state you wait for. Two polls of a meeting are at least thirty seconds
// apart, but the first poll after an upload can come earlier. A meeting is final in minutes_ready
// and in the four failure statuses.
//
// # Errors
//
//   - [*Error]: an API call failed. Compare the code: errors.Is(err, minutes.ErrNotFound).
//   - [*StorageError]: storage did not accept the recording.
//   - [*MeetingFailedError]: the meeting reached one of the four failure statuses.
//   - [*WaitError]: a wait ended before the meeting reached the wanted state.
//   - [*ParamError]: a parameter or a recording cannot be used, and was not sent.
//
// Every call can also return these errors, which the methods do not list:
//
//   - [ErrRateLimited], [ErrInternal], and the codes for which [KeyRejected] is true.
//   - An *Error without a Code, if the service sent no response, or no valid one. The *Error wraps
//     the error of the context or of the network.
//   - A *ParamError for an unusable id, invalid UTF-8, or a required parameter that is nil.
//
// [ErrMeetingGone] matches if the meeting is gone. [ErrNotFound] can also mean an unknown
// participant, project or template. [Retryable] reports whether a later call may succeed. No
// error, event, log or printed value contains the API key or a presigned URL's query.
//
// # Operations and scopes
//
// Sections, such as section 4.2, are those of the service's API reference, version 1.1.0.
// docs/interface.md has the same sections. "Assumed" marks a fact that the API reference does not
// show. For example, this package assumes that a character is a Unicode code point. [WithRoute]
// overrides an assumed route. A star marks an assumed scope of a documented route.
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
