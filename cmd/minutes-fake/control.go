package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/meeting-minutes/minutes-go/docs"
	"github.com/meeting-minutes/minutes-go/minutestest"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// maxBody is the longest body that the control API takes.
const maxBody = 4 << 20

// call is a request to the control API.
type call struct {
	*http.Request
	body []byte
	p    *process
	f    *fake
}

// endpoints are what the control API does. A result is written as JSON, and nil as 204.
var endpoints = map[string]func(call) (any, error){
	"GET /health": call.health, "POST /reset": call.reset,
	"GET /world": call.world, "PUT /world": with(call.putWorld), "PATCH /world": with(call.patchWorld),
	"GET /scripts": call.scripts, "POST /scripts": with(call.addScript), "DELETE /scripts": call.removeScripts,
	"GET /faults": call.faults, "POST /faults": with(call.addFault), "DELETE /faults": call.removeFaults,
	"GET /meetings": call.meetings, "POST /meetings": with(call.addMeetings),
	"GET /meetings/{id}": call.meeting, "DELETE /meetings/{id}": call.deleteMeeting, "POST /meetings/{id}/advance": with(call.advance),
	"GET /clock": call.clock, "POST /clock": with(call.advanceClock),
	"GET /requests": call.requests, "GET /violations": call.violations,
}

// parameters are those that the endpoints take.
var parameters = map[string][]string{"/faults": {"id"}, "/meetings": {"title", "external_id"}, "/requests": {"operation", "after"}}

// problem is an error as it is written.
type problem struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
}

func (p *problem) Error() string { return p.Message }

// newControl returns the control API, the inspector's page included.
func newControl(p *process) http.Handler {
	mux := http.NewServeMux()
	for pattern, endpoint := range endpoints {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			result, err := p.answer(endpoint, r)
			respond(w, result, err)
		})
	}
	mux.HandleFunc("GET /events", p.inspector)
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(docs.Control)
	})
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = p.fake.Load().Report(w)
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "text/html") {
			p.inspector(w, r)
			return
		}
		list := slices.AppendSeq([]string{"GET /", "GET /events", "GET /openapi.json", "GET /report"}, maps.Keys(endpoints))
		slices.Sort(list)
		respond(w, object{"control_api_of": p.baseURL, "endpoints": list}, nil)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		respond(w, nil, &problem{http.StatusNotFound, fmt.Sprintf("the control API has no %s %s; GET /openapi.json describes it, and the service is at %s", r.Method, r.URL.Path, p.baseURL)})
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

// answer runs an endpoint when it is its turn.
func (p *process) answer(endpoint func(call) (any, error), r *http.Request) (result any, err error) {
	for name := range r.URL.Query() {
		if !slices.Contains(parameters[r.URL.Path], name) { // since a typing error must not pass for no filter
			return nil, fmt.Errorf("%s takes no parameter %q", r.URL.Path, name)
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, &problem{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is not complete, or longer than %d bytes", maxBody)}
	}
	p.turn.Lock()
	defer p.turn.Unlock()
	mistake := minutestest.Try(func() { result, err = endpoint(call{r, body, p, p.fake.Load()}) })
	return result, cmp.Or(mistake, err)
}

// with passes the body to an endpoint. Unknown fields are errors; without a body, all fields are zero.
func with[T any](endpoint func(call, T) (any, error)) func(call) (any, error) {
	return func(c call) (any, error) {
		var sent T
		if len(c.body) > 0 {
			if err := world.Decode(c.body, &sent); err != nil {
				return nil, err
			}
		}
		return endpoint(c, sent)
	}
}

// inspector serves the page and its events until the fake is replaced. Then the page asks the next
// one for events.
func (p *process) inspector(w http.ResponseWriter, r *http.Request) {
	f := p.fake.Load()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(f.ended, cancel)()
	f.Inspector().ServeHTTP(w, r.WithContext(ctx))
}

// guard rejects what a web page in a browser on this machine may have sent, because the control API
// has no keys: a host that may be anybody's name for this machine, another origin, and a body that
// is no JSON, which pages may send anywhere.
func guard(r *http.Request, control string) error {
	host := hostname(r.Host)
	_, noAddress := netip.ParseAddr(host)
	own := noAddress == nil || host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") || isAddress(control) && host == hostname(control)
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

// hostname returns the name of a host, without its port.
func hostname(host string) string { return strings.ToLower((&url.URL{Host: host}).Hostname()) }

func respond(w http.ResponseWriter, result any, err error) {
	status := http.StatusOK
	if err != nil {
		p, ok := errors.AsType[*problem](err)
		if !ok {
			p = &problem{http.StatusBadRequest, oneLine(err)}
		}
		status, result = p.Status, object{"problem": p}
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

// oneLine returns the text of an error that may consist of several. Each begins with the path of its mistake.
func oneLine(err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(err.Error(), "world: "), "\n", "; ")
}
