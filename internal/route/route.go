// Package route has the only table of the service's operations. The client builds its requests from it, and the in-memory
// fake its routing. So the two agree about paths, scopes and statuses.
package route

import "net/http"

// Param is the only path parameter.
const Param = "{meeting_id}"

// Route is one row of the table.
type Route struct {
	Operation  string // minutes.Operation
	Method     string
	Path       string // may hold Param once
	Scope      string
	Success    int  // the usual status of a success
	Repeatable bool // two attempts have the same effect as one, so the Client may retry one that may have taken effect
	Assumed    bool // not in the API reference (D1 in docs/assumptions.md), so a caller may override it
}

// The values of Repeatable and Assumed. If a request of the first kind were sent twice, it could create a second object or cost
// a second credit. Only Create knows whether an external id prevents that, so it decides for itself.
const (
	once, repeatable    = false, true
	documented, assumed = false, true
)

// Table lists every operation once.
var Table = Routes{
	{"members.list", http.MethodGet, "/v1/employees", "employees:read", http.StatusOK, repeatable, documented},
	{"members.create", http.MethodPost, "/v1/employees", "employees:write", http.StatusCreated, once, documented},

	{"meetings.list", http.MethodGet, "/v1/meetings", "meetings:read", http.StatusOK, repeatable, documented},
	{"meetings.create", http.MethodPost, "/v1/meetings", "meetings:write", http.StatusCreated, once, documented},
	{"meetings.get", http.MethodGet, "/v1/meetings/{meeting_id}", "meetings:read", http.StatusOK, repeatable, documented},
	{"meetings.update", http.MethodPatch, "/v1/meetings/{meeting_id}", "meetings:write", http.StatusOK, once, documented},
	{"meetings.delete", http.MethodDelete, "/v1/meetings/{meeting_id}", "meetings:delete", http.StatusNoContent, repeatable, documented},
	{"meetings.set_participants", http.MethodPut, "/v1/meetings/{meeting_id}/participants", "meetings:write", http.StatusOK, repeatable, documented},
	{"meetings.upload_url", http.MethodPost, "/v1/meetings/{meeting_id}/upload-url", "meetings:write", http.StatusOK, repeatable, documented},
	{"meetings.minutes", http.MethodGet, "/v1/meetings/{meeting_id}/minutes", "minutes:read", http.StatusOK, repeatable, documented},
	{"meetings.transcript", http.MethodGet, "/v1/meetings/{meeting_id}/transcript", "minutes:read", http.StatusOK, repeatable, assumed},

	{"projects.list", http.MethodGet, "/v1/projects", "meetings:read", http.StatusOK, repeatable, assumed},
	{"projects.create", http.MethodPost, "/v1/projects", "meetings:write", http.StatusCreated, once, assumed},
	{"templates.list", http.MethodGet, "/v1/templates", "meetings:read", http.StatusOK, repeatable, assumed},
	{"usage.get", http.MethodGet, "/v1/usage", "meetings:read", http.StatusOK, repeatable, assumed},
	{"vocabulary.get", http.MethodGet, "/v1/vocabulary", "meetings:read", http.StatusOK, repeatable, assumed},
	{"vocabulary.replace", http.MethodPut, "/v1/vocabulary", "meetings:write", http.StatusOK, repeatable, assumed},
	{"vocabulary.add", http.MethodPost, "/v1/vocabulary/terms", "meetings:write", http.StatusCreated, once, assumed},
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
