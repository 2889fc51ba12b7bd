package minutes

// Operation names an operation of the service, in errors, events and [WithRoute].
type Operation string

// The operations, each named after its method: OpMeetingsGet is
// [MeetingsService.Get]. [WithRoute] accepts the operations that are marked as assumed.
const (
	OpMembersList             Operation = "members.list"
	OpMembersCreate           Operation = "members.create"
	OpMeetingsList            Operation = "meetings.list"
	OpMeetingsCreate          Operation = "meetings.create"
	OpMeetingsGet             Operation = "meetings.get"
	OpMeetingsUpdate          Operation = "meetings.update"
	OpMeetingsDelete          Operation = "meetings.delete"
	OpMeetingsSetParticipants Operation = "meetings.set_participants"
	OpMeetingsUploadURL       Operation = "meetings.upload_url"
	OpMeetingsMinutes         Operation = "meetings.minutes"
	OpMeetingsTranscript      Operation = "meetings.transcript" // assumed: GET /v1/meetings/{meeting_id}/transcript
	OpProjectsList            Operation = "projects.list"       // assumed: GET /v1/projects
	OpProjectsCreate          Operation = "projects.create"     // assumed: POST /v1/projects
	OpTemplatesList           Operation = "templates.list"      // assumed: GET /v1/templates
	OpUsageGet                Operation = "usage.get"           // assumed: GET /v1/usage
	OpVocabularyGet           Operation = "vocabulary.get"      // assumed: GET /v1/vocabulary
	OpVocabularyReplace       Operation = "vocabulary.replace"  // assumed: PUT /v1/vocabulary
	OpVocabularyAdd           Operation = "vocabulary.add"      // assumed: POST /v1/vocabulary/terms

	OpUpload Operation = "storage.put" // the PUT of a recording to storage
	OpDo     Operation = "do"          // a request of Client.Do
)
