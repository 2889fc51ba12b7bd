package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/meeting-minutes/minutes-go/minutestest"
)

// call is a kind of fault that only this program has. When a request to the service
// arrives, it first makes a request to the control API.
type call struct {
	Kind        string          `json:"kind"`
	Request     string          `json:"request"`        // such as "PATCH /organisations/org_acme"; {id} is the meeting
	JSON        json.RawMessage `json:"json,omitempty"` // its body
	Delay       string          `json:"delay,omitempty"`
	AfterEffect bool            `json:"after_effect,omitempty"`

	problem atomic.Pointer[string] // why the last request failed
}

// MarshalJSON adds the reason why the last request failed.
func (k *call) MarshalJSON() ([]byte, error) {
	type sent call // without this method
	return json.Marshal(struct {
		*sent
		Problem *string `json:"problem,omitempty"`
	}{(*sent)(k), k.problem.Load()})
}

func isCall(text []byte) bool {
	var form struct {
		Kind string `json:"kind"`
	}
	return json.Unmarshal(text, &form) == nil && form.Kind == "call"
}

// readCall returns the fault in text.
func (c *control) readCall(place string, text []byte) (*call, minutestest.Fault, error) {
	k := new(call)
	if err := decode(place, text, k); err != nil {
		return nil, minutestest.Fault{}, err
	}
	if request, err := k.request("mtg"); err != nil {
		return nil, minutestest.Fault{}, bad(place+".request", "%q is not a method and a path, such as PATCH /organisations/org_acme", k.Request)
	} else if _, pattern := c.mux.Handler(request); pattern == "" || request.Method == http.MethodGet {
		return nil, minutestest.Fault{}, bad(place+".request", "%s is not a request that changes the world; GET / lists the control API", k.Request)
	}
	delay, err := durationOf(place+".delay", k.Delay)
	if err != nil {
		return nil, minutestest.Fault{}, err
	}
	fault := minutestest.Call(func(r minutestest.Request) { c.make(k, r.MeetingID) }).Delayed(delay)
	if k.AfterEffect {
		fault = fault.AfterEffect()
	}
	return k, fault, nil
}

func (k *call) request(meetingID string) (*http.Request, error) {
	method, path, _ := strings.Cut(k.Request, " ")
	if !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("no path in %q", k.Request)
	}
	request, err := http.NewRequestWithContext(context.Background(), method, strings.ReplaceAll(path, "{id}", meetingID), bytes.NewReader(k.JSON))
	if err == nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, err
}

// make makes the request of k to the control API.
func (c *control) make(k *call, meetingID string) {
	request, err := k.request(meetingID)
	if err != nil {
		return // readCall has checked it
	}
	w := &response{header: http.Header{}}
	c.mux.ServeHTTP(w, request)
	if w.status < http.StatusBadRequest {
		k.problem.Store(nil)
		return
	}
	var failure struct {
		Problem problem `json:"problem"`
	}
	_ = json.Unmarshal(w.body.Bytes(), &failure)
	text := strings.TrimPrefix(failure.Problem.Field+": "+failure.Problem.Message, ": ")
	k.problem.Store(&text)
}

// response is a response of the control API to itself.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *response) Header() http.Header         { return w.header }
func (w *response) WriteHeader(status int)      { w.status = status }
func (w *response) Write(p []byte) (int, error) { return w.body.Write(p) }
