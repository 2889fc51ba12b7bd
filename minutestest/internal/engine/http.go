package engine

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// StoragePut is the operation of a PUT to storage, which is not in the route table of the API.
// Every request below /storage/ has it, with any method.
const StoragePut = route.Upload

// Exchange is what became of a request. Fields that do not apply are zero.
type Exchange struct {
	Status    int    // of the response
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
	w       http.ResponseWriter
	r       *http.Request
	now     time.Time
	caller  caller
	org     *organisation
	form    *form // the body, if the operation has one
	status  int   // of the response
	x       Exchange
}

// Serve handles one request to the API or to storage, and reports the exchange.
func (s *Service) Serve(w http.ResponseWriter, r *http.Request) Exchange {
	if isStorage(r.URL) {
		return s.storage(w, r)
	}
	c := &call{service: s, w: w, r: r, now: s.Now()}
	var body []byte
	if success, err := c.result(); err != nil {
		body = c.errorBody(err)
	} else if success != nil {
		body = encode(success)
	}
	c.x.Status = c.status
	if c.status == http.StatusNoContent {
		w.WriteHeader(c.status)
	} else {
		send(w, r, c.status, "application/json; charset=utf-8", body)
	}
	return c.x
}

// result checks in the order of D6, D18 and D25: the key first, then the path, then everything that
// the operation checks itself.
func (c *call) result() (any, *apiError) {
	found, id, allow := lookUp(c.r)
	c.x.MeetingID = id
	if err := c.authenticate(); err != nil {
		return nil, err
	}
	switch {
	case found == nil && allow == nil:
		return nil, errNoRoute
	case found == nil:
		c.w.Header().Set("Allow", strings.Join(allow, ", "))
		return nil, errMethod
	case !c.caller.allows(found.Scope):
		return nil, errScope
	}
	if found.Method != http.MethodGet && found.Method != http.MethodDelete {
		c.form = c.readForm()
		c.now = c.service.Now() // reading may have taken a while
	}
	c.status = found.Success
	c.org.lock(c.now)
	defer c.org.unlock()
	return handlers[found.Operation](c)
}

// errorBody makes the response an error response, and returns its body.
func (c *call) errorBody(err *apiError) []byte {
	c.status = err.status
	c.x.Code, c.x.RequestID = string(err.code), c.service.ids.next(requestPrefix)
	return encode(map[string]errorJSON{"error": {err.code, err.message, c.x.RequestID, err.details}})
}

// send writes a response, without its body to HEAD.
func send(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}
