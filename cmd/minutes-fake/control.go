package main

import (
	"cmp"
	"context"
	_ "embed" // for document
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/fake/inspector"
	"github.com/meeting-minutes/minutes-go/internal/fake/mistake"
	"github.com/meeting-minutes/minutes-go/internal/fake/strictjson"
)

// maxBody is the longest body that the control API takes.
const maxBody = 4 << 20

// document describes the control API.
//
//go:embed openapi.json
var document []byte

// request is a request to the control API.
type request struct {
	*http.Request
	body    []byte
	process *process
	tenant  *tenant
	fake    *fake
	// began is when the request came.
	began time.Time
}

// endpoint does what a request asks for. A result is written as JSON, and nil as 204.
type endpoint func(request) (any, error)

var endpoints = map[string]endpoint{
	"GET /health":                 without(request.health),
	"POST /reset":                 without(request.reset),
	"GET /world":                  without(request.world),
	"PUT /world":                  with(request.putWorld),
	"PATCH /world":                with(request.patchWorld),
	"GET /scripts":                without(request.scripts),
	"POST /scripts":               given(with(request.addScript)),
	"DELETE /scripts":             without(request.removeScripts),
	"GET /faults":                 without(request.faults),
	"POST /faults":                given(with(request.addFault)),
	"DELETE /faults":              without(request.removeFaults),
	"GET /meetings":               without(request.meetings),
	"POST /meetings":              given(with(request.addMeetings)),
	"GET /meetings/{id}":          without(request.meeting),
	"DELETE /meetings/{id}":       without(request.deleteMeeting),
	"POST /meetings/{id}/advance": given(with(request.advance)),
	"GET /clock":                  without(request.clock),
	"POST /clock":                 with(request.advanceClock),
	"GET /requests":               without(request.requests),
	"GET /violations":             without(request.violations),
}

// endpointsOfProgram are those that no organisation has for itself.
var endpointsOfProgram = map[string]endpoint{
	"GET /organisations":                   without(request.organisations),
	"POST /organisations":                  with(request.addOrganisation),
	"DELETE /organisations/{organisation}": without(request.deleteOrganisation),
}

// parameters are those that the endpoints take.
var parameters = map[string][]string{
	"/faults":     {"id"},
	"/meetings":   {"title", "external_id"},
	"/requests":   {"operation", "after", "caller", "meeting_id", "title", "status", "wait"},
	"/violations": {"caller", "meeting_id", "title"},
}

// problem is the JSON of an error.
type problem struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
}

func (p *problem) Error() string { return p.Message }

// controlOf returns the control API of a tenant, the inspector's page included.
func (p *process) controlOf(t *tenant) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, answer endpoint) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			result, err := p.run(t, answer, r)
			respond(w, result, err)
		})
	}
	for pattern, answer := range endpoints {
		handle(pattern, answer)
	}
	if t.id == "" {
		for pattern, answer := range endpointsOfProgram {
			handle(pattern, answer)
		}
		mux.HandleFunc("/organisations/{organisation}/", p.serveTenant)
	}
	mux.HandleFunc("GET /events", t.inspector)
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document)
	})
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = t.fake.Load().Report(w)
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "text/html") {
			t.inspector(w, r)
			return
		}
		respond(w, object{"control_api_of": p.baseURL, "endpoints": patterns()}, nil)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		message := fmt.Sprintf("the control API has no %s %s", r.Method, r.URL.Path)
		if similar := patternsLike(r.URL.Path); len(similar) > 0 {
			message += ", but " + strings.Join(similar, ", ")
		}
		message += "; GET /openapi.json describes it, and the service is at " + p.baseURL
		respond(w, nil, &problem{http.StatusNotFound, message})
	})
	return mux
}

// newControl returns the control API of the program, for those who may use it.
func newControl(p *process) http.Handler {
	control := p.controlOf(p.main)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Minutes-Fake", "control")
		w.Header().Set("Vary", "Accept")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		err := guard(r, p.settings.control)
		if err != nil {
			respond(w, nil, err)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		control.ServeHTTP(w, r)
	})
}

// patterns lists what the control API has.
func patterns() []string {
	list := []string{"GET /", "GET /events", "GET /openapi.json", "GET /report"}
	list = slices.AppendSeq(list, maps.Keys(endpoints))
	list = slices.AppendSeq(list, maps.Keys(endpointsOfProgram))
	slices.Sort(list)
	return list
}

// patternsLike lists the patterns whose paths begin with the same name as a path, or with one that is
// longer or shorter.
func patternsLike(path string) []string {
	name := firstOf(path)
	return slices.DeleteFunc(patterns(), func(pattern string) bool {
		_, other, _ := strings.Cut(pattern, " ")
		known := firstOf(other)
		begins := strings.HasPrefix(known, name) || strings.HasPrefix(name, known)
		return known != name && (known == "" || name == "" || !begins)
	})
}

// firstOf returns the first name of a path, such as "faults" of "/faults/flt_1".
func firstOf(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first
}

// errNotYet is that of an endpoint that is to be asked again, because its client waits.
var errNotYet = errors.New("not yet")

// run runs an endpoint when it is its turn.
func (p *process) run(t *tenant, answer endpoint, r *http.Request) (result any, err error) {
	for name := range r.URL.Query() {
		known := parameters[r.URL.Path]
		if !slices.Contains(known, name) { // a typing error must not pass for no filter
			return nil, fmt.Errorf("%s takes no parameter %q; known here: %s",
				r.URL.Path, name, cmp.Or(strings.Join(known, ", "), "none"))
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		message := fmt.Sprintf("the body is not complete, or longer than %d bytes", maxBody)
		return nil, &problem{http.StatusRequestEntityTooLarge, message}
	}
	began := time.Now()
	for {
		result, err = p.inTurn(answer, request{Request: r, body: body, process: p, tenant: t, began: began})
		if !errors.Is(err, errNotYet) {
			return result, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

func (p *process) inTurn(answer endpoint, r request) (result any, err error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	r.fake = r.tenant.fake.Load()
	wrong := mistake.Catch(func() { result, err = answer(r) })
	if wrong != nil {
		return nil, wrong
	}
	return result, err
}

// with passes the body to an endpoint. Unknown fields are errors; without a body, all fields are
// zero.
func with[T any](answer func(request, T) (any, error)) endpoint {
	return func(r request) (any, error) {
		var sent T
		if len(r.body) > 0 {
			err := strictjson.Decode(r.body, &sent)
			if err != nil {
				return nil, err
			}
		}
		return answer(r, sent)
	}
}

// without returns an endpoint that takes no body, because a filter in one must not be ignored.
func without(answer endpoint) endpoint {
	return with(func(r request, _ struct{}) (any, error) { return answer(r) })
}

// given returns an endpoint that rejects a field without a value. A variable that was never
// set must not pass for a field that is left out: a fault for one title would apply to all meetings.
func given(answer endpoint) endpoint {
	return func(r request) (any, error) {
		var sent object
		_ = strictjson.Decode(r.body, &sent) // answer says what is wrong
		err := checkGiven("", sent)
		if err != nil {
			return nil, err
		}
		return answer(r)
	}
}

// checkGiven rejects a field of an object, or of one in it, that is null, "" or 0.
func checkGiven(path string, sent object) error {
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		value := sent[name]
		if value == nil || value == "" || value == 0.0 {
			text, _ := json.Marshal(value)
			return fmt.Errorf("%s%s: %s says nothing; give a value, or leave the field out", path, name, text)
		}
		inner, _ := value.(object)
		err := checkGiven(path+name+".", inner)
		if err != nil {
			return err
		}
	}
	return nil
}

// inspector serves the page and its events until the fake is replaced. Then the page asks the next
// one for events.
func (t *tenant) inspector(w http.ResponseWriter, r *http.Request) {
	f := t.fake.Load()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(f.over, cancel)()
	r = r.WithContext(ctx)
	r.Host = "" // guard has checked it, and knows the name in -control
	f.Inspector().ServeHTTP(w, r)
}

// guard rejects what a web page in a browser on this machine may have sent, because the control API
// has no keys: a host that may be anybody's name for this machine, another origin, and a body that
// is not JSON, which pages may send anywhere.
func guard(r *http.Request, control string) error {
	site := r.Header.Get("Sec-Fetch-Site")
	origin := r.Header.Get("Origin")
	otherSite := site != "" && site != "same-origin" && site != "none"
	otherOrigin := origin != "" && !strings.EqualFold(origin, "http://"+r.Host)
	contentType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case !isOwnHost(r.Host, control):
		message := fmt.Sprintf("the control API does not accept the host %q, "+
			"which is neither this machine's name nor that in -control", r.Host)
		return &problem{http.StatusForbidden, message}
	case otherSite || otherOrigin:
		return &problem{http.StatusForbidden, "the control API rejects requests from web pages of other sites"}
	case r.ContentLength != 0 && contentType != "application/json":
		return &problem{http.StatusUnsupportedMediaType, "a body of Content-Type application/json expected"}
	}
	return nil
}

// isOwnHost reports whether a Host header names this machine, or has the name in -control.
func isOwnHost(header, control string) bool {
	return inspector.IsOwnHost(header) ||
		isAddress(control) && inspector.Hostname(header) == inspector.Hostname(control)
}

func respond(w http.ResponseWriter, result any, err error) {
	status := http.StatusOK
	if err != nil {
		p, ok := errors.AsType[*problem](err)
		if !ok {
			p = &problem{http.StatusBadRequest, oneLine(err)}
		}
		status = p.Status
		result = object{"problem": p}
	}
	if result == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ") // because people read this, too
	enc.SetEscapeHTML(false)
	_ = enc.Encode(result)
}

// oneLine returns the text of an error that may consist of several. Each begins with the path of
// its mistake.
func oneLine(err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(err.Error(), "world: "), "\n", "; ")
}
