package minutestest

import (
	"cmp"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// The journal keeps the last journalSize requests, and of each as much as maxBody bytes of its JSON
// body.
const (
	journalSize = 4096
	maxBody     = 16 << 10
)

// Request is one request that the Server has received. It contains no secret, because API keys and the
// signatures of upload URLs are masked.
type Request struct {
	Seq       int               `json:"seq"`                 // from 1, in the order of arrival
	At        time.Time         `json:"at"`                  // when its header arrived, by the service's clock
	Took      time.Duration     `json:"took"`                // until the response; nanoseconds as JSON
	Operation minutes.Operation `json:"operation,omitempty"` // "" for a path or a method the API does not have
	MeetingID string            `json:"meeting_id,omitempty"`
	Caller    string            `json:"caller,omitempty"` // id of the member or integration behind the key

	Method string      `json:"method"`
	Host   string      `json:"host"`
	Path   string      `json:"path"`
	Query  url.Values  `json:"query,omitempty"`
	Header http.Header `json:"header,omitempty"`
	Body   string      `json:"body,omitempty"`  // JSON, its first 16 KiB; audio only as Bytes
	Bytes  int64       `json:"bytes,omitempty"` // of audio that arrived

	Status    int    `json:"status,omitempty"`     // of the response; 0: none was sent
	Code      string `json:"code,omitempty"`       // of an error response of the service, of storage or of a fault
	RequestID string `json:"request_id,omitempty"` // as in Error.RequestID of the client
	Fault     string `json:"fault,omitempty"`      // the injected fault that was applied
	Lost      bool   `json:"lost,omitempty"`       // the client did not get the whole response
}

// Requests returns the requests that have ended, in the order in which they arrived: all, or only those
// of the given operations. The Server keeps the last 4,096. Operations are those of package minutes,
// such as minutes.OpMeetingsCreate, and "" selects requests whose path or method the API does not have.
func (s *Server) Requests(of ...minutes.Operation) []Request {
	return slices.SortedFunc(s.RequestsAfter(0, of...), func(a, b Request) int { return cmp.Compare(a.Seq, b.Seq) })
}

// RequestsAfter returns those of [Server.Requests] that ended after the request with this Seq, in the
// order in which they ended, or all of them for 0. To see each request once while your program runs,
// begin with 0 and then pass the Seq of the last one that you got. This misses no request, because one
// that began early and ends late comes at the end.
func (s *Server) RequestsAfter(seq int, of ...minutes.Operation) iter.Seq[Request] {
	list, _ := s.journal.Since(0)
	seen := 1 + slices.IndexFunc(list, func(r Request) bool { return r.Seq == seq })
	return slices.Values(slices.DeleteFunc(list[seen:], func(r Request) bool { return len(of) > 0 && !slices.Contains(of, r.Operation) }))
}

const masked = "(masked)"

// mask removes the secrets: credentials, of which the scheme stays, what signs an upload URL, and the
// key wherever else the client has put it. A key of a few characters is no secret, and would mask
// half of what a test wants to read.
func (r *Request) mask(key string) {
	hide := func(text string) string {
		if len(key) < 6 {
			return text
		}
		return strings.ReplaceAll(text, key, masked)
	}
	r.Host, r.Path, r.Body = hide(r.Host), hide(r.Path), hide(r.Body)
	for name, values := range r.Header {
		for i, v := range values {
			values[i] = hide(v)
			if name == "Authorization" || name == "Proxy-Authorization" || name == "Cookie" {
				scheme, _, ok := strings.Cut(v, " ")
				values[i] = masked
				if ok {
					values[i] = scheme + " " + masked
				}
			}
		}
	}
	for _, values := range r.Query {
		for i, v := range values {
			values[i] = hide(v)
			if r.Operation == minutes.OpUpload {
				values[i] = masked
			}
		}
	}
	if len(r.Body) > maxBody {
		r.Body = strings.Clone(r.Body[:maxBody]) // or the journal would keep all of it
	}
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
