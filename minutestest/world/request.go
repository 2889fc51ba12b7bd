package world

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// Request is one request that a fake has received, with what became of it. It contains no secret,
// because credentials and the signatures of upload URLs are masked.
type Request struct {
	// Seq numbers the requests from 1, in the order of arrival.
	Seq int `json:"seq"`
	// At is when the header arrived, by the service's clock.
	At time.Time `json:"at"`
	// Took is the time until the response; nanoseconds as JSON.
	Took time.Duration `json:"took"`
	// Operation is "" for a path or a method that the API does not have.
	Operation minutes.Operation `json:"operation,omitempty"`
	// MeetingID is the meeting in the path, or the one that a create returned.
	MeetingID string `json:"meeting_id,omitempty"`
	// Caller is the id of the member or integration behind the key.
	Caller string `json:"caller,omitempty"`

	Method string      `json:"method"`
	Host   string      `json:"host"`
	Path   string      `json:"path"`
	Query  url.Values  `json:"query,omitempty"`
	Header http.Header `json:"header,omitempty"`
	// Body holds the first 16 KiB of any body except a recording.
	Body string `json:"body,omitempty"`
	// Bytes is how much of a recording arrived.
	Bytes int64 `json:"bytes,omitzero"`

	// Status is that of the response; 0: none was sent.
	Status int `json:"status,omitzero"`
	// Code is that of an error response, from the service, from storage or from a fault.
	Code string `json:"code,omitempty"`
	// RequestID is what Error.RequestID of the client shows.
	RequestID string `json:"request_id,omitempty"`
	// Fault is the injected fault that was applied.
	Fault string `json:"fault,omitempty"`
	// Lost says that the client did not get the whole response.
	Lost bool `json:"lost,omitzero"`
}

// MarshalJSON writes Body as a JSON value instead of a string if it is valid JSON.
func (r Request) MarshalJSON() ([]byte, error) {
	type plain Request
	body := json.RawMessage(r.Body)
	if !json.Valid(body) {
		return json.Marshal(plain(r))
	}
	shown := plain(r)
	shown.Body = ""
	return json.Marshal(struct {
		plain
		Body json.RawMessage `json:"body"`
	}{shown, body})
}
