package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// control is the API with which a test suite scripts, breaks and inspects the
// service. It has its own address, paths and form of error. A header of every
// response names it.
type control struct {
	fake      *minutestest.Server
	world     minutestest.World // as it began
	edge      *edge
	counts    *counts
	inspector http.Handler
	settings  settings
	baseURL   string
	since     time.Time
	dropped   func() int64 // log lines
	judge     func()       // counts violations and unused faults before a reset removes them
	mux       *http.ServeMux

	long sync.Mutex // held while a long body is in memory

	mu     sync.Mutex
	faults []*injected
	nextID int
	pages  []int
}

// endpoint is one thing the control API does. A handler's result is written as
// JSON; nil is 204. A result that is an http.Handler writes its own response.
type endpoint struct {
	method, path, does string
	handle             func(*http.Request) (any, error)
}

func (c *control) endpoints() []endpoint {
	return []endpoint{
		{"GET", "/{$}", "this list; in a browser, the inspector", c.index},
		{"GET", "/health", "the program's version, address and start", c.health},
		{"GET", "/openapi.json", "this API as an OpenAPI document; the service has its own at the same path", c.openapi},
		{"POST", "/reset", "restore the initial world, and remove later meetings, scripts, faults and requests", c.reset},

		{"GET", "/world", "all organisations as they are now", c.getWorld},
		{"GET", "/organisations/{organisation}", "one of them", c.getOrganisation},
		{"PUT", "/organisations/{organisation}", "replace it", c.putOrganisation},
		{"PATCH", "/organisations/{organisation}", "change the fields sent: quota, suspended and so on; null removes one", c.patchOrganisation},
		{"GET", "/organisations/{organisation}/{list}/{id}", "one of its members, integrations, projects, templates or keys", c.getPart},
		{"PUT", "/organisations/{organisation}/{list}/{id}", "add one, or replace it", c.putPart},
		{"PATCH", "/organisations/{organisation}/{list}/{id}", "change the fields sent", c.patchPart},
		{"DELETE", "/organisations/{organisation}/{list}/{id}", "remove it", c.deletePart},

		{"POST", "/organisations/{organisation}/meetings", "add meetings of other creators, in any state; they continue by themselves", c.addMeetings},

		{"POST", "/scripts", "script the course of meetings from now on", c.script},
		{"GET", "/meetings/{id}", "everything about a meeting", c.getMeeting},
		{"GET", "/meetings/{id}/audio", "its recording, byte for byte (with -keep-audio)", c.getAudio},
		{"POST", "/meetings/{id}/advance", "move it on without waiting: by one status, or to the one in until", c.advance},
		{"POST", "/meetings/{id}/release", "let it continue, if a script holds it", c.release},

		{"POST", "/faults", "make requests fail", c.addFault},
		{"GET", "/faults", "the faults that were added", c.listFaults},
		{"GET", "/faults/{id}", "one of them, and how often it was applied", c.getFault},
		{"DELETE", "/faults/{id}", "end it", c.deleteFault},
		{"PUT", "/page-size", "make pages of meetings short or empty", c.setPageSize},
		{"GET", "/page-size", "the size of pages", c.getPageSize},
		{"DELETE", "/page-size", "make them full again", c.clearPageSize},

		{"GET", "/requests", "the requests that have ended, in order (filter with ?operation=…, continue with ?after=seq)", c.requests},
		{"GET", "/requests/counts", "the number of requests of each operation with each status (0: no response)", c.countRequests},
		{"GET", "/requests/{seq}", "one of them", c.getRequest},
		{"GET", "/violations", "the violations of the service's rules", c.violations},
		{"GET", "/report", "the inspector's page, as one HTML file", c.report},
		{"GET", "/events", "changes as they happen, for the inspector (server-sent events)", c.events},
	}
}

func newControl(fake *minutestest.Server, world minutestest.World, edge *edge, counts *counts, s settings, baseURL string) *control {
	c := &control{fake: fake, world: world, edge: edge, counts: counts, settings: s, baseURL: baseURL, since: time.Now(), dropped: func() int64 { return 0 }, judge: func() {}, mux: http.NewServeMux(), inspector: fake.Inspector()}
	for _, e := range c.endpoints() {
		c.mux.HandleFunc(e.method+" "+e.path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Vary", "Accept")
			if err := e.checkQuery(r); err != nil {
				respond(w, nil, err)
				return
			}
			result, err := e.handle(r)
			if page, ok := result.(http.Handler); ok {
				page.ServeHTTP(w, r)
				return
			}
			respond(w, result, err)
		})
	}
	return c
}

// checkQuery rejects query parameters that an endpoint does not have.
func (e endpoint) checkQuery(r *http.Request) error {
	if e.path == "/{$}" {
		return nil // a browser may add what it likes
	}
	var known []string
	if e.path == "/requests" {
		known = []string{"operation", "after"}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return bad("", "the query is malformed: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(known, name) {
			return bad(name, "no such parameter; %s takes %s", r.URL.Path, cmp.Or(strings.Join(known, " and "), "none"))
		}
	}
	return nil
}

func (c *control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Minutes-Fake", "control")
	if p := c.guard(r); p != nil {
		respond(w, nil, p)
		return
	}
	if r.ContentLength > longBody || r.ContentLength < 0 {
		c.long.Lock() // its client waits meanwhile
		defer c.long.Unlock()
		conn, limit := http.NewResponseController(w), time.Now().Add(time.Minute)
		_, _ = conn.SetReadDeadline(limit), conn.SetWriteDeadline(limit)
	}
	// The mux would redirect a path such as //world.
	if _, pattern := c.mux.Handler(r); pattern != "" && path.Clean(r.URL.Path) == r.URL.Path {
		c.mux.ServeHTTP(w, r)
		return
	}
	respond(w, nil, c.unknown(w, r))
}

// unknown returns why there is no endpoint for r.
func (c *control) unknown(w http.ResponseWriter, r *http.Request) *problem {
	var allow []string
	for _, method := range []string{"DELETE", "GET", "PATCH", "POST", "PUT"} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := c.mux.Handler(other); pattern != "" {
			allow = append(allow, method)
		}
	}
	switch {
	case path.Clean(r.URL.Path) != r.URL.Path:
		return notFound("there is nothing at this path; write it as %s", path.Clean(r.URL.Path))
	case allow != nil:
		w.Header().Set("Allow", strings.Join(allow, ", "))
		return &problem{Status: http.StatusMethodNotAllowed, Message: "this path supports " + strings.Join(allow, ", ")}
	case strings.HasPrefix(r.URL.Path, "/v1/"):
		return notFound("this is the control API; the service is at %s", c.baseURL)
	}
	return notFound("there is nothing at this path; GET / lists what there is")
}

// problem is an error of the control API.
type problem struct {
	Status  int    `json:"status"`
	Field   string `json:"field,omitempty"` // of the body or the query, that is at fault
	Message string `json:"message"`
}

func (p *problem) Error() string { return p.Message }

func bad(field, format string, args ...any) *problem {
	return &problem{Status: http.StatusBadRequest, Field: field, Message: fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) *problem {
	return &problem{Status: http.StatusNotFound, Message: fmt.Sprintf(format, args...)}
}

func forbidden(format string, args ...any) *problem {
	return &problem{Status: http.StatusForbidden, Message: fmt.Sprintf(format, args...)}
}

func conflict(err error) *problem {
	return &problem{Status: http.StatusConflict, Message: withoutOrigin(err)}
}

// withoutOrigin is an error's text without the packages it has come through.
func withoutOrigin(err error) string {
	text := err.Error()
	for _, origin := range []string{"minutestest: ", "Update: ", "Script: ", "Advance: ", "AddMeetings: ", "engine: ", "world: ", "script: ", "match: ", "fault: ", "json: "} {
		text = strings.TrimPrefix(text, origin)
	}
	return strings.ReplaceAll(text, "\n", "; ")
}

// Two results that are not just JSON with status 200.
type (
	created struct {
		location string
		what     any
	}
	recording struct {
		contentType string
		bytes       []byte
	}
)

func respond(w http.ResponseWriter, result any, err error) {
	status := http.StatusOK
	if err != nil {
		p, ok := errors.AsType[*problem](err)
		if !ok {
			p = &problem{Status: http.StatusInternalServerError, Message: err.Error()}
		}
		status, result = p.Status, map[string]*problem{"problem": p}
	}
	switch a := result.(type) {
	case nil:
		w.WriteHeader(http.StatusNoContent)
		return
	case recording:
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Content-Disposition", "attachment")
		w.Header().Set("Content-Type", a.contentType)
		_, _ = w.Write(a.bytes)
		return
	case created:
		w.Header().Set("Location", a.location)
		status, result = http.StatusCreated, a.what
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetIndent("", "  ") // people read this too
	enc.SetEscapeHTML(false)
	if err := enc.Encode(result); err != nil {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes())
}

func (c *control) index(r *http.Request) (any, error) {
	if isBrowser(r) {
		return c.inspector, nil
	}
	type line struct {
		Method string `json:"method"`
		Path   string `json:"path"`
		Does   string `json:"does"`
	}
	var list []line
	for _, e := range c.endpoints() {
		list = append(list, line{e.method, strings.TrimSuffix(e.path, "{$}"), e.does})
	}
	return map[string]any{"control_api_of": c.baseURL, "endpoints": list}, nil
}

func isBrowser(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

func (c *control) health(*http.Request) (any, error) {
	return struct {
		Status         string    `json:"status"`
		BaseURL        string    `json:"base_url"`
		Version        string    `json:"version"`
		Since          time.Time `json:"since"`
		RejectedAtEdge int       `json:"rejected_at_edge"`
		LogDropped     int64     `json:"log_lines_dropped"` // because nothing read them in time
	}{"ok", c.baseURL, version(), c.since, c.edge.rejections(), c.dropped()}, nil
}

func (c *control) reset(*http.Request) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults, c.pages = nil, nil
	c.judge()
	err := c.fake.Reset()
	c.counts.reset()
	return nil, err
}

func (c *control) requests(r *http.Request) (any, error) {
	q := r.URL.Query()
	operations, err := operationsOf(q["operation"])
	if err != nil {
		return nil, err
	}
	after, err := number("after", q.Get("after"))
	if err != nil {
		return nil, err
	}
	return requestList{c.fake.RequestsAfter(after, operations...)}, nil
}

// requestList writes requests one at a time: all of them take much memory, and
// a client may read slowly.
type requestList struct{ of iter.Seq[minutestest.Request] }

func (l requestList) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	conn := http.NewResponseController(w)
	before := "{\n  \"requests\": ["
	for r := range l.of {
		var text bytes.Buffer
		text.WriteString(before + "\n    ")
		enc := json.NewEncoder(&text)
		enc.SetIndent("    ", "  ")
		enc.SetEscapeHTML(false)
		if enc.Encode(r) != nil {
			return
		}
		_ = conn.SetWriteDeadline(time.Now().Add(time.Minute)) // for a client that reads nothing
		if _, err := w.Write(bytes.TrimRight(text.Bytes(), "\n")); err != nil {
			return
		}
		before = ","
	}
	if before == "," {
		_, _ = io.WriteString(w, "\n  ]\n}\n")
	} else {
		_, _ = io.WriteString(w, before+"]\n}\n")
	}
}

func (c *control) countRequests(*http.Request) (any, error) {
	return map[string]any{"counts": c.counts.all()}, nil
}

func (c *control) getRequest(r *http.Request) (any, error) {
	seq, err := number("seq", r.PathValue("seq"))
	if err != nil {
		return nil, err
	}
	for found := range c.fake.RequestsAfter(seq - 1) {
		if found.Seq == seq {
			return found, nil
		}
		break
	}
	return nil, notFound("request %d is not kept", seq)
}

func (c *control) report(*http.Request) (any, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_ = c.fake.Report(w)
	}), nil
}

func (c *control) events(*http.Request) (any, error) { return c.inspector, nil }

func (c *control) violations(*http.Request) (any, error) {
	return map[string]any{"violations": some(c.fake.Violations())}, nil
}

// some is list, and never null as JSON.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
