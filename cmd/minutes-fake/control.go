package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/meeting-minutes/minutes-go/minutestest"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// maxBody is the longest body that the control API takes.
const maxBody = 4 << 20

// call is a request to the control API.
type call struct {
	*http.Request
	p *process
	f *fake // as the call began
}

// endpoints are what the control API does. A result is written as JSON, and nil as 204.
var endpoints = map[string]func(call) (any, error){
	"GET /health": call.health, "POST /reset": call.reset,
	"GET /world": call.world, "PUT /world": call.putWorld, "PATCH /world": call.patchWorld,
	"GET /scripts": call.scripts, "POST /scripts": call.addScript, "DELETE /scripts": call.removeScripts,
	"GET /faults": call.faults, "POST /faults": call.addFault, "DELETE /faults": call.removeFaults,
	"GET /meetings": call.meetings, "POST /meetings": call.addMeetings,
	"GET /meetings/{id}": call.meeting, "DELETE /meetings/{id}": call.deleteMeeting, "POST /meetings/{id}/advance": call.advance,
	"GET /clock": call.clock, "POST /clock": call.advanceClock,
	"GET /requests": call.requests, "GET /violations": call.violations,
}

// parameters are those that the endpoints take.
var parameters = map[string][]string{"/faults": {"id"}, "/meetings": {"title", "external_id"}, "/requests": {"operation", "after"}}

// problem is an error whose status is not 400.
type problem struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
}

func (p *problem) Error() string { return p.Message }

func newControl(p *process) http.Handler {
	mux := http.NewServeMux()
	for pattern, do := range endpoints {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			for name := range r.URL.Query() {
				if !slices.Contains(parameters[r.URL.Path], name) { // since a typing error must not pass for no filter
					respond(w, nil, fmt.Errorf("%s takes no parameter %q", r.URL.Path, name))
					return
				}
			}
			var result any
			var err error
			if mistake := minutestest.Try(func() { result, err = do(call{r, p, p.now()}) }); mistake != nil {
				err = mistake
			}
			respond(w, result, err)
		})
	}
	page := func(w http.ResponseWriter, r *http.Request) {
		f := p.now()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(f.closed, cancel)() // then the page asks the next fake for events
		f.Inspector().ServeHTTP(w, r.WithContext(ctx))
	}
	mux.HandleFunc("GET /events", page)
	mux.HandleFunc("GET /requests/{seq}", page) // for the page alone
	mux.HandleFunc("GET /openapi.json", serveDocument)
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = p.now().Report(w)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/" || r.Method != http.MethodGet:
			respond(w, nil, &problem{http.StatusNotFound, fmt.Sprintf("the control API has no %s %s; GET /openapi.json describes it, and the service is at %s", r.Method, r.URL.Path, p.baseURL)})
		case strings.Contains(r.Header.Get("Accept"), "text/html"):
			page(w, r)
		default:
			respond(w, map[string]any{"control_api_of": p.baseURL, "endpoints": slices.Sorted(maps.Keys(endpoints))}, nil)
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Minutes-Fake", "control")
		w.Header().Set("Vary", "Accept")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if err := guard(r, p.settings.control); err != nil {
			respond(w, nil, err)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		mux.ServeHTTP(w, r)
	})
}

// guard rejects what a web page in a browser on this machine may have sent, because the control API
// has no keys: a host that may be anybody's name for this machine, another origin, and a body that
// is no JSON, which pages may send anywhere.
func guard(r *http.Request, control string) error {
	host := strings.ToLower(withoutPort(r.Host))
	_, noAddress := netip.ParseAddr(strings.Trim(host, "[]"))
	own := noAddress == nil || host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") || isAddress(control) && host == strings.ToLower(withoutPort(control))
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	contentType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case !own:
		return &problem{http.StatusForbidden, fmt.Sprintf("the control API does not accept the host %q; -control sets its name", r.Host)}
	case site != "" && site != "same-origin" && site != "none", origin != "" && !strings.EqualFold(origin, "http://"+r.Host):
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

// read decodes the body, in which unknown fields are errors.
func (c call) read(into any) error {
	data, err := io.ReadAll(c.Body)
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
			p = &problem{http.StatusBadRequest, oneLine(err)}
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

// oneLine returns the text of an error that may consist of several.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
