package engine

import (
	"net/http"
	"strconv"
	"time"
)

// call is one request to the API while the engine handles it.
type call struct {
	world  *world
	w      http.ResponseWriter
	r      *http.Request
	now    time.Time
	key    *key
	org    *organisation
	status int // of the response
	x      Exchange
}

// Serve handles one request to the API or to storage, and reports the
// exchange.
func (s *Service) Serve(w http.ResponseWriter, r *http.Request) Exchange {
	world := s.world.Load()
	if isStorage(r.URL) {
		return world.storage(w, r)
	}
	c := &call{world: world, w: w, r: r, now: wallClock()}
	var body []byte
	var err *apiError
	guard(func() { body, err = c.resultJSON() }, func() { err = errInternal })
	if err != nil {
		body = c.errorBody(err)
	}
	c.respond(body)
	return c.x
}

// guard calls try, which must not write anything, and fail if it panics: so
// a panic becomes an error response and never half a response.
func guard(try, fail func()) {
	defer func() {
		if fault := recover(); fault != nil {
			if fault == http.ErrAbortHandler {
				panic(fault)
			}
			fail()
		}
	}()
	try()
}

// resultJSON returns the body of a success, nil for none.
func (c *call) resultJSON() ([]byte, *apiError) {
	success, err := c.result()
	if err != nil || success == nil {
		return nil, err
	}
	return encode(success), nil
}

// result checks in the order of D6, D18 and D25: the key first, then the
// path, then everything that the operation checks itself.
func (c *call) result() (any, *apiError) {
	var e *endpoint
	res, id := find(c.r.URL)
	if res != nil {
		c.x.MeetingID = id
		if e = res.method(c.r.Method); e != nil {
			c.x.Operation = e.Operation
		}
	}
	if err := c.authenticate(); err != nil {
		return nil, err
	}
	switch {
	case res == nil:
		return nil, errNoRoute
	case e == nil:
		err := *errMethod
		err.allow = res.allow
		return nil, &err
	case !c.key.allows(e.Scope):
		return nil, errScope
	}
	c.status = e.Success
	return e.handle(c)
}

// errorBody makes the response an error response, and returns its body.
func (c *call) errorBody(err *apiError) []byte {
	c.status = err.status
	c.x.Code, c.x.RequestID = err.code, c.world.ids.next(requestPrefix)
	if err.allow != "" {
		c.w.Header().Set("Allow", err.allow)
	}
	if err == errUnauthenticated {
		c.w.Header().Set("WWW-Authenticate", "Bearer")
	}
	return encode(map[string]errorJSON{"error": {err.code, err.message, c.x.RequestID, err.details}})
}

func (c *call) respond(body []byte) {
	c.x.Status = c.status
	if c.status == http.StatusNoContent {
		c.w.WriteHeader(c.status)
		return
	}
	send(c.w, c.r, c.status, "application/json; charset=utf-8", body)
}

// send writes a response, without its body to HEAD.
func send(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}
