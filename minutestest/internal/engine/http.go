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

	Code      string // of an error response
	RequestID string // of an error response of the API, or of any of storage
	Caller    string // id of the member or integration behind the key
	MeetingID string // the meeting in the path, or the one created or returned by a create
	Bytes     int64  // of the recording that arrived

	// MeetingStatus is the meeting's status as this request found it: the one that a GET showed, or
	// the one before an upload URL was requested. It is set if the caller was allowed to see the
	// meeting.
	MeetingStatus minutes.Status
}

// call is one request to the API while the engine handles it.
type call struct {
	service *Service
	r       *http.Request
	now     time.Time
	org     *organisation
	key     *world.Key
	member  *world.Member // whose key it is; nil: an integration's
	form    *form         // the body, if the operation has one
	Response
}

// Serve handles one request to the API or to storage.
func (s *Service) Serve(r *http.Request) Response {
	c := &call{service: s, r: r, now: s.Now(), Response: Response{Header: http.Header{}}}
	if isStorage(r.URL) {
		c.storage()
	} else if success, err := c.result(); err != nil {
		c.Status, c.Code, c.RequestID = err.status, string(err.code), s.ids.next(requestPrefix)
		c.send(JSON, ErrorJSON(err.code, err.message, c.RequestID, err.details))
	} else if success != nil {
		c.send(JSON, encode(success))
	}
	return c.Response
}

// send sets the body, of which HEAD gets the length alone (D21).
func (c *call) send(contentType string, body []byte) {
	c.Header.Set("Content-Type", contentType)
	c.Header.Set("Content-Length", strconv.Itoa(len(body)))
	if c.r.Method != http.MethodHead {
		c.Body = body
	}
}

// result checks in the order of D6, D18 and D25: the key first, then the path, then everything that
// the operation checks itself.
func (c *call) result() (any, *apiError) {
	found, id, allow := lookUp(c.r)
	c.MeetingID = id
	if err := c.authenticate(); err != nil {
		return nil, err
	}
	switch {
	case found == nil && allow == nil:
		return nil, errNoRoute
	case found == nil:
		c.Header.Set("Allow", strings.Join(allow, ", "))
		return nil, errMethod
	case c.key.Scopes != nil && !slices.Contains(c.key.Scopes, minutes.Scope(found.Scope)):
		return nil, errScope
	}
	if found.Method != http.MethodGet && found.Method != http.MethodDelete {
		c.form = c.readForm()
	}
	c.Status = found.Success
	c.now = c.service.lock() // reading the body may have taken a while
	defer c.service.mu.Unlock()
	return handlers[minutes.Operation(found.Operation)](c)
}

// lookUp returns the route of a request, and the meeting in its path. If there is none, allow has
// the methods of its path, if it exists.
func lookUp(r *http.Request) (found *route.Route, meetingID string, allow []string) {
	method, path := r.Method, r.URL.EscapedPath()
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for i := range route.Table {
		row := &route.Table[i]
		id, ok := match(row.Path, path)
		if !ok {
			continue
		}
		meetingID = id
		if row.Method == method {
			return row, meetingID, nil
		}
		allow = append(allow, row.Method)
		if row.Method == http.MethodGet {
			allow = append(allow, http.MethodHead)
		}
	}
	return nil, meetingID, allow
}

// match reports whether an escaped path is that of a route, and returns the meeting named in it. An
// id may hold anything, an escaped slash included.
func match(pattern, path string) (meetingID string, ok bool) {
	before, after, hasID := strings.Cut(pattern, route.Param)
	if !hasID {
		return "", path == pattern
	}
	escaped, ok := strings.CutPrefix(path, before)
	if !ok || !strings.HasSuffix(escaped, after) {
		return "", false
	}
	escaped = strings.TrimSuffix(escaped, after)
	id, err := url.PathUnescape(escaped)
	return id, err == nil && id != "" && !strings.Contains(escaped, "/")
}

// Identify returns the operation that r asks for and the meeting in its path, without doing
// anything. The operation is "" if the API has none, and minutes.OpUpload for any request to storage.
func Identify(r *http.Request) (op minutes.Operation, meetingID string) {
	if isStorage(r.URL) {
		return minutes.OpUpload, storedIn(r.URL)
	}
	found, meetingID, _ := lookUp(r)
	if found == nil {
		return "", meetingID
	}
	return minutes.Operation(found.Operation), meetingID
}
