// Package route has the only table of the service's operations. The client builds its
// requests from it, and the in-memory fake its routing. So the two agree about paths,
// scopes and statuses.
package route

import "net/http"

// Operation names one operation of the API reference.
type Operation string

// The operations, in the order of the API reference.
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

// Upload is the PUT of a recording to storage. It is not an operation of the API, so it is not
// in the table.
const Upload Operation = "storage.put"

// Scopes lists every scope that a key can carry (section 5).
var Scopes = []string{"employees:read", "employees:write", "meetings:read", "meetings:write", "meetings:delete", "minutes:read"}

// Basis is the source of a route.
type Basis uint8

const (
	Documented   Basis = iota // the API reference
	ScopeAssumed              // the API reference, but the scope is assumed (D1 in the documentation of package minutestest)
	Assumed                   // assumed (D1); a caller may override it
)

// Repeat says whether the Client may retry a request after an attempt that may have taken
// effect. After one that certainly had no effect (a 429, or no connection), it may always retry.
type Repeat uint8

const (
	Never          Repeat = iota // a second attempt could create a second object or cost a second credit
	Always                       // two attempts have the same effect as one
	WithExternalID               // with an external id, by which the service recognises the second attempt
)

// Param is the only path parameter.
const Param = "{meeting_id}"

// Route is one row of the table.
type Route struct {
	Operation Operation
	Method    string
	Path      string // may hold Param once
	Scope     string
	Success   int // the usual status of a success
	Repeat    Repeat
	Basis     Basis
}

// Table lists every operation once.
var Table = []Route{
	{MembersList, http.MethodGet, "/v1/employees", "employees:read", http.StatusOK, Always, Documented},
	{MembersCreate, http.MethodPost, "/v1/employees", "employees:write", http.StatusCreated, Never, Documented},

	{MeetingsList, http.MethodGet, "/v1/meetings", "meetings:read", http.StatusOK, Always, Documented},
	{MeetingsCreate, http.MethodPost, "/v1/meetings", "meetings:write", http.StatusCreated, WithExternalID, Documented},
	{MeetingsGet, http.MethodGet, "/v1/meetings/{meeting_id}", "meetings:read", http.StatusOK, Always, Documented},
	{MeetingsUpdate, http.MethodPatch, "/v1/meetings/{meeting_id}", "meetings:write", http.StatusOK, Never, Documented},
	{MeetingsDelete, http.MethodDelete, "/v1/meetings/{meeting_id}", "meetings:delete", http.StatusNoContent, Always, Documented},
	{MeetingsSetParticipants, http.MethodPut, "/v1/meetings/{meeting_id}/participants", "meetings:write", http.StatusOK, Always, ScopeAssumed},
	{MeetingsUploadURL, http.MethodPost, "/v1/meetings/{meeting_id}/upload-url", "meetings:write", http.StatusOK, Always, ScopeAssumed},
	{MeetingsMinutes, http.MethodGet, "/v1/meetings/{meeting_id}/minutes", "minutes:read", http.StatusOK, Always, Documented},
	{MeetingsTranscript, http.MethodGet, "/v1/meetings/{meeting_id}/transcript", "minutes:read", http.StatusOK, Always, Assumed},

	{ProjectsList, http.MethodGet, "/v1/projects", "meetings:read", http.StatusOK, Always, Assumed},
	{ProjectsCreate, http.MethodPost, "/v1/projects", "meetings:write", http.StatusCreated, Never, Assumed},
	{TemplatesList, http.MethodGet, "/v1/templates", "meetings:read", http.StatusOK, Always, Assumed},
	{UsageGet, http.MethodGet, "/v1/usage", "meetings:read", http.StatusOK, Always, Assumed},
	{VocabularyGet, http.MethodGet, "/v1/vocabulary", "meetings:read", http.StatusOK, Always, Assumed},
	{VocabularyReplace, http.MethodPut, "/v1/vocabulary", "meetings:write", http.StatusOK, Always, Assumed},
	{VocabularyAdd, http.MethodPost, "/v1/vocabulary/terms", "meetings:write", http.StatusCreated, Never, Assumed},
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
