// Package minutes is a client for the Meeting Minutes Service, which turns
// recordings into transcripts and written minutes.
//
// # From a recording to its minutes
//
// [MeetingsService.Process] does the whole job:
//
//	client, err := minutes.NewFromEnv() // MINUTES_BASE_URL, MINUTES_API_KEY
//	recording, err := minutes.OpenRecording("weekly.mp3")
//	defer recording.Close()
//	result, err := client.Meetings.Process(ctx, &minutes.MeetingCreateParams{
//		Title: "Weekly", Date: "2026-11-20",
//		ExternalID: "weekly-2026-11-20", // safe to run again after a crash
//	}, recording, &minutes.ProcessOptions{Format: minutes.FormatMarkdown})
//
// A service that has to answer before the minutes are there takes it in two:
// [MeetingsService.Create] tells the id, and [MeetingsService.Finish] does the rest,
// now or after a restart, from whatever state the meeting is in. For many at a time
// there are [MeetingsService.ProcessAll] and [MeetingsService.WaitAll]. Package
// minutestest has the whole service in memory, for tests in which an hour's wait
// takes milliseconds.
//
// # Waiting
//
// The service sends no events; a client looks at a meeting's status, and is
// asked to do so no more than every thirty seconds. A Client keeps that floor
// for every meeting, whoever waits for it, and looks at many meetings with few
// requests; [MeetingsService.Wait] says more. A wait has no time limit but its
// context, and NoAudio for a meeting that nothing is uploaded to.
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
// [Retryable] tells what is worth trying again later, and [KeyRefused] that no
// other call with the key will do better. What a Client repeats by itself is only
// what is provably safe; [WithRetries] has the rules. No error, event, log or
// printed value holds the API key or the query of a presigned URL, which is
// its credential.
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
