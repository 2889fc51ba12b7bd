package minutes

// Operation identifies an API operation in errors, in attempts, in [WithRoute] and in package
// minutestest. Each constant is named after its method: OpMeetingsGet is [MeetingsService.Get].
type Operation string

// The operations, in the order of [section 4], which has their requests and scopes. WithRoute
// overrides the assumed routes.
//
// [section 4]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#4-operations
const (
	OpMembersList   Operation = "members.list"
	OpMembersCreate Operation = "members.create"

	OpMeetingsList            Operation = "meetings.list"
	OpMeetingsCreate          Operation = "meetings.create"
	OpMeetingsGet             Operation = "meetings.get"
	OpMeetingsUpdate          Operation = "meetings.update"
	OpMeetingsDelete          Operation = "meetings.delete"
	OpMeetingsSetParticipants Operation = "meetings.set_participants"
	OpMeetingsUploadURL       Operation = "meetings.upload_url"
	OpMeetingsMinutes         Operation = "meetings.minutes"

	// The routes of the following operations are assumed.
	OpMeetingsTranscript Operation = "meetings.transcript" // GET /v1/meetings/{meeting_id}/transcript
	OpProjectsList       Operation = "projects.list"       // GET /v1/projects
	OpProjectsCreate     Operation = "projects.create"     // POST /v1/projects
	OpTemplatesList      Operation = "templates.list"      // GET /v1/templates
	OpUsageGet           Operation = "usage.get"           // GET /v1/usage
	OpVocabularyGet      Operation = "vocabulary.get"      // GET /v1/vocabulary
	OpVocabularyReplace  Operation = "vocabulary.replace"  // PUT /v1/vocabulary
	OpVocabularyAdd      Operation = "vocabulary.add"      // POST /v1/vocabulary/terms

	// The following are not operations of the API.
	OpUpload Operation = "storage.put" // the PUT of a recording to storage
	OpDo     Operation = "do"          // a request of Client.Do
)
