// Package route has the only table of the service's operations. The client builds its requests from
// it, and the in-memory fake its routing. So the two agree about paths, scopes and statuses.
package route

import "strings"

// Meeting is the parameter in the path of an operation about one meeting. Observers, faults and the
// audit of the in-memory fake then know the meeting.
const Meeting = "{meeting_id}"

// Split returns the parameter of a path, such as {meeting_id}, and the text around it. Without a
// parameter, before is the whole path, and param is "".
func Split(path string) (before, param, after string) {
	begin := strings.IndexByte(path, '{')
	end := strings.IndexByte(path, '}') + 1
	if begin < 0 || end < begin {
		return path, "", ""
	}
	return path[:begin], path[begin:end], path[end:]
}

// Route is one row of the table.
type Route struct {
	Operation string // minutes.Operation
	Method    string
	Path      string // may hold one parameter, such as Meeting or {project_id}
	Scope     string
	Success   int // the usual status of a success
	// Repeatable says that two attempts have the same effect as one, so the Client may retry one
	// that may have taken effect.
	Repeatable bool
	// Assumed says that the route is not in the API reference (D1 in docs/assumptions.md), so a
	// caller may override it.
	Assumed bool
}

// The values of Repeatable and Assumed. A notRepeatable request, sent twice, could create a second
// object or cost a second credit. Only the client's Create of a meeting knows whether an external
// id prevents that, so it decides for itself.
const (
	notRepeatable = false
	repeatable    = true
	documented    = false
	assumed       = true
)

// Table lists every operation once.
var Table = Routes{
	{"members.list", "GET", "/v1/employees", "employees:read", 200, repeatable, documented},
	{"members.create", "POST", "/v1/employees", "employees:write", 201, notRepeatable, documented},

	{"meetings.list", "GET", "/v1/meetings", "meetings:read", 200, repeatable, documented},
	{"meetings.create", "POST", "/v1/meetings", "meetings:write", 201, notRepeatable, documented},
	{"meetings.get", "GET", "/v1/meetings/{meeting_id}", "meetings:read", 200, repeatable, documented},
	{"meetings.update", "PATCH", "/v1/meetings/{meeting_id}", "meetings:write", 200, notRepeatable, documented},
	{"meetings.delete", "DELETE", "/v1/meetings/{meeting_id}", "meetings:delete", 204, repeatable, documented},
	{"meetings.set_participants", "PUT", "/v1/meetings/{meeting_id}/participants", "meetings:write", 200, repeatable,
		documented},
	{"meetings.upload_url", "POST", "/v1/meetings/{meeting_id}/upload-url", "meetings:write", 200, repeatable,
		documented},
	{"meetings.minutes", "GET", "/v1/meetings/{meeting_id}/minutes", "minutes:read", 200, repeatable, documented},
	{"meetings.transcript", "GET", "/v1/meetings/{meeting_id}/transcript", "minutes:read", 200, repeatable, assumed},

	{"projects.list", "GET", "/v1/projects", "meetings:read", 200, repeatable, assumed},
	{"projects.create", "POST", "/v1/projects", "meetings:write", 201, notRepeatable, assumed},
	{"templates.list", "GET", "/v1/templates", "meetings:read", 200, repeatable, assumed},
	{"usage.get", "GET", "/v1/usage", "meetings:read", 200, repeatable, assumed},
	{"vocabulary.get", "GET", "/v1/vocabulary", "meetings:read", 200, repeatable, assumed},
	{"vocabulary.replace", "PUT", "/v1/vocabulary", "meetings:write", 200, repeatable, assumed},
	{"vocabulary.add", "POST", "/v1/vocabulary/terms", "meetings:write", 201, notRepeatable, assumed},
}

// Routes is a table of operations.
type Routes []Route

// Of returns the row of one operation, or nil.
func (rs Routes) Of(op string) *Route {
	for i := range rs {
		if rs[i].Operation == op {
			return &rs[i]
		}
	}
	return nil
}
