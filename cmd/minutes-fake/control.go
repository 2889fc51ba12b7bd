package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// maxBody is the longest body that the control API takes.
const maxBody = 4 << 20

// endpoint is one thing that the control API does. The result is written as JSON, and nil as 204.
type endpoint struct {
	path, does string // with the method before the path
	do         func(p *process, f *fake, r *http.Request) (any, error)
	query      []string // the parameters that it takes
}

var endpoints = []endpoint{
	{"POST /reset", "restore the initial world; remove meetings, scripts, faults, requests; set the clock back", reset, nil},
	{"GET /world", "the organisations as they are now", getWorld, nil},
	{"PUT /world", "reset to another world", putWorld, nil},
	{"PATCH /world", "change the fields that are sent, of organisations by id, keys by secret; null removes one", patchWorld, nil},
	{"GET /scripts", "the scripts", getScripts, nil},
	{"POST /scripts", "set the course of meetings", postScript, nil},
	{"DELETE /scripts", "remove all scripts", deleteScripts, nil},
	{"GET /faults", "the faults, and how often each was applied", getFaults, nil},
	{"POST /faults", "make requests fail", postFault, nil},
	{"DELETE /faults", "remove all faults, or the one with ?id=", deleteFaults, []string{"id"}},
	{"GET /meetings", "everything about the meetings (with ?title= or ?external_id=)", getMeetings, []string{"title", "external_id"}},
	{"POST /meetings", "add meetings of others, in any status", postMeetings, nil},
	{"GET /meetings/{id}", "everything about a meeting", getMeeting, nil},
	{"DELETE /meetings/{id}", "delete a meeting", deleteMeeting, nil},
	{"POST /meetings/{id}/advance", "move a meeting on, to the next status or to the one in until", postAdvance, nil},
	{"GET /clock", "the service's time", getClock, nil},
	{"POST /clock", "move the service's time on", postClock, nil},
	{"GET /requests", "the last requests (?operation=, ?after= with a seq)", getRequests, []string{"operation", "after"}},
	{"GET /violations", "the rules that clients broke; faults and scripts without use", getViolations, nil},
	{"GET /health", "the program's version, address and start", getHealth, nil},
}

// problem is an error other than 400.
type problem struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
}

func (p *problem) Error() string { return p.Message }

func notFound(format string, args ...any) error {
	return &problem{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

// newControl returns the control API of p. It has no keys, so its guard rejects what may come from
// a web page in a browser on this machine.
func newControl(p *process) http.Handler {
	mux := http.NewServeMux()
	for _, e := range endpoints {
		mux.HandleFunc(e.path, func(w http.ResponseWriter, r *http.Request) {
			f := p.now()
			if unknown := e.unknown(r); unknown != "" {
				respond(w, nil, fmt.Errorf("%s takes no parameter %q", e.path, unknown))
				return
			}
			result, err := e.do(p, f, r)
			respond(w, result, err)
		})
	}
	page := func(w http.ResponseWriter, r *http.Request) {
		f := p.now()
		stop := func() { _ = http.NewResponseController(w).SetWriteDeadline(p.began) } // which ends the events of a fake that is replaced
		defer f.onEnd(stop)()
		f.Inspector().ServeHTTP(w, r)
	}
	mux.HandleFunc("GET /events", page)
	mux.HandleFunc("GET /requests/{seq}", page) // for the page alone
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "text/html") {
			page(w, r)
			return
		}
		respond(w, index(p), nil)
	})
	mux.Handle("GET /openapi.json", controlDocument)
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_ = p.now().Report(w)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		respond(w, nil, notFound("the control API has no %s %s; GET / lists what it has, and the service is at %s", r.Method, r.URL.Path, p.baseURL))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Minutes-Fake", "control")
		w.Header().Set("Vary", "Accept")
		if err := guard(r, p.settings.control); err != nil {
			respond(w, nil, err)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		mux.ServeHTTP(w, r)
	})
}

// unknown returns a query parameter that e does not take, because a typing error must not pass for
// no filter.
func (e endpoint) unknown(r *http.Request) string {
	for name := range r.URL.Query() {
		if !slices.Contains(e.query, name) {
			return name
		}
	}
	return ""
}

func index(p *process) any {
	list := []string{"GET /: this list; in a browser, the inspector", "GET /openapi.json: this API as an OpenAPI document", "GET /report: the inspector as one HTML file", "GET /events: changes as they happen (server-sent events)"}
	for _, e := range endpoints {
		list = append(list, e.path+": "+e.does)
	}
	return map[string]any{"control_api_of": p.baseURL, "endpoints": list}
}

// guard rejects requests that a web page may have sent: a host that is not this machine's, because
// the owner of any name can make it lead here; another origin; and bodies that are no JSON, because
// a page may send those anywhere.
func guard(r *http.Request, control string) error {
	host := strings.ToLower(withoutPort(r.Host))
	_, notIP := netip.ParseAddr(strings.Trim(host, "[]"))
	own := notIP == nil || host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") || host == strings.ToLower(withoutPort(control))
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	contentType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case !own:
		return &problem{http.StatusForbidden, fmt.Sprintf("the control API does not accept the host %q; -control sets its name", r.Host)}
	case !slices.Contains([]string{"", "same-origin", "none"}, site) || origin != "" && !strings.EqualFold(origin, "http://"+r.Host):
		return &problem{http.StatusForbidden, "the control API rejects requests from web pages of other sites"}
	case r.ContentLength != 0 && contentType != "application/json":
		return &problem{http.StatusUnsupportedMediaType, "a body of Content-Type application/json expected"}
	}
	return nil
}

func withoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// read decodes a request's body, in which unknown fields are errors.
func read(r *http.Request, into any) error {
	data, err := io.ReadAll(r.Body)
	if tooLong, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &problem{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than %d bytes", tooLong.Limit)}
	}
	if err != nil {
		return fmt.Errorf("the body could not be read: %w", err)
	}
	return world.Decode(data, into)
}

func respond(w http.ResponseWriter, result any, err error) {
	status := http.StatusOK
	if err != nil {
		p, ok := errors.AsType[*problem](err)
		if !ok {
			p = &problem{http.StatusBadRequest, plain(err)}
		}
		status, result = p.Status, map[string]any{"problem": p}
	}
	if result == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ") // since people read this, too
	enc.SetEscapeHTML(false)
	_ = enc.Encode(result)
}

// queryOne returns a query parameter, and whether it was sent.
func queryOne(q url.Values, name string) (string, bool) { return q.Get(name), q.Has(name) }
