// Package route holds the one table of the interface's operations. The client
// builds its requests from it and the in-memory service its routing, so that
// the two cannot disagree about a path, a scope or a status.
package route

import "net/http"

// Operation names one operation of the interface.
type Operation string

// The operations of the interface, in the order of its sections.
const (
	MembersList   Operation = "members.list"
	MembersCreate Operation = "members.create"

	MeetingsList            Operation = "meetings.list"
	MeetingsCreate          Operation = "meetings.create"
	MeetingsGet             Operation = "meetings.get"
	MeetingsUpdate          Operation = "meetings.update"
	MeetingsDelete          Operation = "meetings.delete"
	MeetingsSetParticipants Operation = "meetings.set_participants"
	MeetingsUploadURL       Operation = "meetings.upload_url"
	MeetingsMinutes         Operation = "meetings.minutes"
	MeetingsTranscript      Operation = "meetings.transcript"

	ProjectsList      Operation = "projects.list"
	ProjectsCreate    Operation = "projects.create"
	TemplatesList     Operation = "templates.list"
	UsageGet          Operation = "usage.get"
	VocabularyGet     Operation = "vocabulary.get"
	VocabularyReplace Operation = "vocabulary.replace"
	VocabularyAdd     Operation = "vocabulary.add"
)

// Upload is the PUT of a recording to storage. It is no operation of the API, so
// it stands in no table.
const Upload Operation = "storage.put"

// The scopes a key can carry (section 5).
const (
	ScopeEmployeesRead  = "employees:read"
	ScopeEmployeesWrite = "employees:write"
	ScopeMeetingsRead   = "meetings:read"
	ScopeMeetingsWrite  = "meetings:write"
	ScopeMeetingsDelete = "meetings:delete"
	ScopeMinutesRead    = "minutes:read"
)

// Scopes lists every scope of the interface.
var Scopes = []string{ScopeEmployeesRead, ScopeEmployeesWrite, ScopeMeetingsRead, ScopeMeetingsWrite, ScopeMeetingsDelete, ScopeMinutesRead}

// Basis says where a route comes from.
type Basis uint8

const (
	Documented   Basis = iota // it stands in the interface document
	ScopeAssumed              // it stands there too, but without its scope
	Assumed                   // it does not, and a caller may override it: D1 of package minutestest
)

// Repeat says when a request may be sent again although an earlier try may
// have taken effect. A request that certainly had no effect (429, or a
// connection that was never made) may always be sent again.
type Repeat uint8

const (
	Never          Repeat = iota // a second try could create a second thing or cost a second credit
	Always                       // doing it twice is the same as doing it once
	WithExternalID               // the service recognises the second try by the caller's own reference
)

// Param is the one path parameter of the interface.
const Param = "{meeting_id}"

// Route is one row of the table.
type Route struct {
	Operation Operation
	Method    string
	Path      string // may hold Param once
	Scope     string
	Success   int // the status of the usual success
	Repeat    Repeat
	Basis     Basis
}

// Table lists every operation once. Where the interface shows a path but not
// its scope (set participants, upload URL), the scope is D1's.
var Table = []Route{
	{MembersList, http.MethodGet, "/v1/employees", ScopeEmployeesRead, http.StatusOK, Always, Documented},
	{MembersCreate, http.MethodPost, "/v1/employees", ScopeEmployeesWrite, http.StatusCreated, Never, Documented},

	{MeetingsList, http.MethodGet, "/v1/meetings", ScopeMeetingsRead, http.StatusOK, Always, Documented},
	{MeetingsCreate, http.MethodPost, "/v1/meetings", ScopeMeetingsWrite, http.StatusCreated, WithExternalID, Documented},
	{MeetingsGet, http.MethodGet, "/v1/meetings/{meeting_id}", ScopeMeetingsRead, http.StatusOK, Always, Documented},
	{MeetingsUpdate, http.MethodPatch, "/v1/meetings/{meeting_id}", ScopeMeetingsWrite, http.StatusOK, Never, Documented},
	{MeetingsDelete, http.MethodDelete, "/v1/meetings/{meeting_id}", ScopeMeetingsDelete, http.StatusNoContent, Always, Documented},
	{MeetingsSetParticipants, http.MethodPut, "/v1/meetings/{meeting_id}/participants", ScopeMeetingsWrite, http.StatusOK, Always, ScopeAssumed},
	{MeetingsUploadURL, http.MethodPost, "/v1/meetings/{meeting_id}/upload-url", ScopeMeetingsWrite, http.StatusOK, Always, ScopeAssumed},
	{MeetingsMinutes, http.MethodGet, "/v1/meetings/{meeting_id}/minutes", ScopeMinutesRead, http.StatusOK, Always, Documented},
	{MeetingsTranscript, http.MethodGet, "/v1/meetings/{meeting_id}/transcript", ScopeMinutesRead, http.StatusOK, Always, Assumed},

	{ProjectsList, http.MethodGet, "/v1/projects", ScopeMeetingsRead, http.StatusOK, Always, Assumed},
	{ProjectsCreate, http.MethodPost, "/v1/projects", ScopeMeetingsWrite, http.StatusCreated, Never, Assumed},
	{TemplatesList, http.MethodGet, "/v1/templates", ScopeMeetingsRead, http.StatusOK, Always, Assumed},
	{UsageGet, http.MethodGet, "/v1/usage", ScopeMeetingsRead, http.StatusOK, Always, Assumed},
	{VocabularyGet, http.MethodGet, "/v1/vocabulary", ScopeMeetingsRead, http.StatusOK, Always, Assumed},
	{VocabularyReplace, http.MethodPut, "/v1/vocabulary", ScopeMeetingsWrite, http.StatusOK, Always, Assumed},
	{VocabularyAdd, http.MethodPost, "/v1/vocabulary/terms", ScopeMeetingsWrite, http.StatusCreated, Never, Assumed},
}

// Of returns the row of one operation.
func Of(op Operation) (Route, bool) {
	for _, r := range Table {
		if r.Operation == op {
			return r, true
		}
	}
	return Route{}, false
}
