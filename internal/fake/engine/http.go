package engine

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// Response is the response to a request, and what became of the request. Fields that do not apply are
// zero.
type Response struct {
	Status int
	Header http.Header
	Body   []byte

	// Code is that of an error response.
	Code string

	// RequestID is that of an error response of the API, or of any response of storage.
	RequestID string

	// Caller is the id of the member or integration behind the key.
	Caller string

	// MeetingID is the meeting in the path, or the one created or returned by a create.
	MeetingID string

	// Bytes is how much of a recording arrived.
	Bytes int64

	// MeetingStatus is the meeting's status as this request found it: the one that a GET showed, or
	// the one before an upload URL was requested. It is set if the caller was allowed to see the
	// meeting.
	MeetingStatus minutes.Status
}

// request is one request to the API or to storage while the engine handles it.
type request struct {
	service *Service
	http    *http.Request
	now     time.Time

	// asOf is the time of which a read shows meetings; zero: the present.
	asOf time.Time

	// org and key are the caller's. member is whose key it is; nil: it is an integration's.
	org    *organisation
	key    *world.Key
	member *world.Member

	// id is that in the path; "" if there is none.
	id string
	// form is the body, if the operation has one.
	form *form

	Response
}

// Serve handles one request to the API or to storage.
func (s *Service) Serve(sent *http.Request) Response { return s.ServeAsOf(sent, time.Time{}) }

// ServeAsOf is Serve, but a read shows meetings as they were at a time, unless that is zero.
func (s *Service) ServeAsOf(sent *http.Request, asOf time.Time) Response {
	r := &request{service: s, http: sent, now: s.Now(), asOf: asOf, Response: Response{Header: http.Header{}}}
	if isStorage(sent.URL) {
		r.storage()
		return r.Response
	}
	success, err := r.result()
	switch {
	case err != nil:
		r.Status = err.status
		r.Code = string(err.code)
		r.RequestID = s.ids.next(requestPrefix)
		r.send(JSON, ErrorJSON(err.code, err.message, r.RequestID, err.details))
	case success != nil:
		r.send(JSON, encode(success))
	}
	return r.Response
}

// send sets the body, of which HEAD gets the length alone (D21).
func (r *request) send(contentType string, body []byte) {
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	if r.http.Method != http.MethodHead {
		r.Body = body
	}
}

// result checks in the order of D6, D18 and D25: the key first, then the path, then everything that
// the operation checks itself.
func (r *request) result() (any, *apiError) {
	to := lookUp(r.http)
	found := to.route
	r.id = to.id
	r.MeetingID = to.meetingID
	err := r.authenticate()
	if err != nil {
		return nil, err
	}
	switch {
	case found == nil && to.allow == nil:
		return nil, errNoRoute
	case found == nil:
		r.Header.Set("Allow", strings.Join(to.allow, ", "))
		return nil, errMethod
	case r.key.Scopes != nil && !slices.Contains(r.key.Scopes, minutes.Scope(found.Scope)):
		return nil, errScope
	}
	if found.Method != http.MethodGet && found.Method != http.MethodDelete {
		r.form = r.readForm()
	}
	r.Status = found.Success
	r.now = r.service.lock() // reading the body may have taken a while
	defer r.service.mu.Unlock()
	return handlers[minutes.Operation(found.Operation)](r)
}

// target is what a request is sent to.
type target struct {
	route     *route.Route // nil if there is none
	id        string       // in the path, or ""
	meetingID string       // the same if it is a meeting's
	allow     []string     // without a route, the methods of the path
}

// lookUp returns what a request is sent to.
func lookUp(r *http.Request) (to target) {
	method := r.Method
	path := r.URL.EscapedPath()
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for i := range route.Table {
		row := &route.Table[i]
		id, param, ok := match(row.Path, path)
		if !ok {
			continue
		}
		to.id = id
		if param == route.Meeting {
			to.meetingID = id
		}
		if row.Method == method {
			to.route = row
			to.allow = nil
			return to
		}
		to.allow = append(to.allow, row.Method)
		if row.Method == http.MethodGet {
			to.allow = append(to.allow, http.MethodHead)
		}
	}
	return to
}

// match reports whether an escaped path is that of a route, and returns the id in it, with the name
// of the parameter. An id may hold anything, an escaped slash included.
func match(pattern, path string) (id, param string, ok bool) {
	before, param, after := route.Split(pattern)
	if param == "" {
		return "", "", path == pattern
	}
	escaped, ok := strings.CutPrefix(path, before)
	if !ok || !strings.HasSuffix(escaped, after) {
		return "", "", false
	}
	escaped = strings.TrimSuffix(escaped, after)
	id, err := url.PathUnescape(escaped)
	return id, param, err == nil && id != "" && !strings.Contains(escaped, "/")
}

// Identify returns the operation that r asks for and the meeting in its path, without doing
// anything. The operation is "" if the API has none, and minutes.OpUpload for any request to storage.
func Identify(r *http.Request) (op minutes.Operation, meetingID string) {
	if isStorage(r.URL) {
		return minutes.OpUpload, storedIn(r.URL)
	}
	to := lookUp(r)
	if to.route == nil {
		return "", to.meetingID
	}
	return minutes.Operation(to.route.Operation), to.meetingID
}
