package minutestest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// Always, as [Match.Times], applies a fault to every request from the nth on.
const Always = -1

// Match says which requests a fault is applied to. Operations are those of package minutes, such as
// minutes.OpMeetingsCreate and minutes.OpUpload. An empty field matches every request. Of the
// requests that match, the nth is the first to get the fault. If several meetings are worked on at
// once, name one by its Title or ExternalID: which request comes nth differs from run to run.
type Match struct {
	Operation  minutes.Operation `json:"operation,omitempty"`
	Key        string            `json:"key,omitempty"`         // the secret of the API key sent; uploads carry none
	MeetingID  string            `json:"meeting_id,omitempty"`  // in the path, uploads included
	ExternalID string            `json:"external_id,omitempty"` // of that meeting, of the one to create, or asked for in a listing
	Title      string            `json:"title,omitempty"`       // of that meeting, or of the one to create
	Path       string            `json:"path,omitempty"`        // a pattern of path.Match: "/v1/meetings/*"

	Nth   int `json:"nth,omitempty"`   // the first that gets the fault, from 1; 0 is as 1
	Times int `json:"times,omitempty"` // how many get it; 0: one for each fault; Always: all that follow
}

// Validate returns why [Server.Inject] would reject m or these faults, for example because the
// interface has no such operation. The error names the invalid field: "match: operation: …",
// "fault: code: …".
func (m Match) Validate(what ...Fault) error {
	if err := checkOperation(m.Operation); err != nil {
		return fmt.Errorf("match: %w", err)
	}
	if _, err := path.Match(m.Path, ""); err != nil {
		return fmt.Errorf("match: path: %q is no pattern", m.Path)
	}
	if m.Nth < 0 {
		return fmt.Errorf("match: nth: %d is negative; for all that follow, set times, not nth, to %d", m.Nth, Always)
	}
	if m.Times < Always {
		return fmt.Errorf("match: times: %d is neither a number of times nor %d, for good", m.Times, Always)
	}
	for _, fault := range what {
		if fault.is(clientSide) != what[0].is(clientSide) {
			return errors.New("fault: kind: faults of the connection happen before a request is sent, so they do not go together with other kinds; inject them by themselves")
		}
		if err := fault.check(); err != nil {
			return err
		}
		switch kind := fault.form.Kind; {
		case kind == kindRefuseUpload && m.Operation != minutes.OpUpload:
			return fmt.Errorf("fault: kind: %s is an error of storage; match %s", kind, minutes.OpUpload)
		case kind == kindRefuse && m.Operation == minutes.OpUpload:
			return fmt.Errorf("fault: kind: %s is not an error of storage; use %s", kind, kindRefuseUpload)
		}
	}
	return nil
}

// checkOperation rejects an unknown operation. Like all errors of a Match or a Fault, its error
// begins with the field at fault.
func checkOperation(op minutes.Operation) error {
	if _, ok := route.Of(route.Operation(op)); ok || op == "" || op == minutes.OpUpload {
		return nil
	}
	return fmt.Errorf("operation: %q is not one of %s", op, operations())
}

// operations lists what [Match.Operation] can be.
func operations() string {
	var list []string
	for _, row := range route.Table {
		list = append(list, string(row.Operation))
	}
	return strings.Join(append(list, string(minutes.OpUpload)), ", ")
}

// target is what a request is about, as far as a Match can name it.
type target struct {
	operation         minutes.Operation
	key, meetingID    string
	externalID, title string // only if a Match asks for them
	path              string
}

func (m Match) matches(t target) bool {
	for _, field := range []struct{ want, got string }{
		{string(m.Operation), string(t.operation)}, {m.Key, t.key}, {m.MeetingID, t.meetingID},
		{m.ExternalID, t.externalID}, {m.Title, t.title},
	} {
		if field.want != "" && field.want != field.got {
			return false
		}
	}
	ok, _ := path.Match(m.Path, t.path)
	return ok || m.Path == ""
}

// byName reports whether m names a meeting by what its path does not show.
func (m Match) byName() bool { return m.ExternalID != "" || m.Title != "" }

// name fills in the title and the external id of the meeting that r is about.
func (s *Server) name(r *http.Request, t *target) {
	switch {
	case t.operation == minutes.OpMeetingsCreate:
		names := namesIn(peekBody(r))
		t.externalID, t.title = names.ExternalID, names.Title
	case t.operation == minutes.OpMeetingsList:
		t.externalID = r.URL.Query().Get("external_id")
	case t.meetingID != "":
		if m, ok := s.engine.Meeting(t.meetingID); ok {
			t.externalID, t.title = m.ExternalID, m.Title
		}
	}
}

// names are what a create calls its meeting.
type names struct {
	ExternalID string `json:"external_id"`
	Title      string `json:"title"`
}

func namesIn(body []byte) (n names) {
	_ = json.Unmarshal(body, &n)
	return n
}

// peekBody returns the body of r, or the beginning of a very long one, and leaves it to be read
// again.
func peekBody(r *http.Request) []byte {
	if r.Body == nil {
		return nil
	}
	if r.GetBody != nil { // not sent yet
		if again, err := r.GetBody(); err == nil {
			defer again.Close()
			data, _ := io.ReadAll(again)
			return data
		}
	}
	body := r.Body
	data, err := io.ReadAll(io.LimitReader(body, engine.MaxBodyBytes))
	rest := io.Reader(body)
	if err != nil {
		rest = failing{err}
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(data), rest), body}
	return data
}

// failing is a reader that only fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// String describes m as JSON, without its key.
func (m Match) String() string {
	if m.Key != "" {
		m.Key = masked
	}
	m.Times = 0
	text, _ := json.Marshal(m)
	return string(text)
}
