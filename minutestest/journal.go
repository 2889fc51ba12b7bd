package minutestest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// The journal keeps the last journalSize requests, and of each as much as maxBody bytes of its JSON
// body.
const (
	journalSize = 4096
	maxBody     = 16 << 10
)

// Request is one request that the Server has received. It holds no secret: API keys and the
// signatures of upload URLs are masked.
type Request struct {
	Seq       int               `json:"seq"`                 // from 1, in the order of arrival
	At        time.Time         `json:"at"`                  // when its header had arrived
	Took      time.Duration     `json:"took"`                // until the response; as JSON in nanoseconds
	Operation minutes.Operation `json:"operation,omitempty"` // "" for a path or a method the API does not have
	MeetingID string            `json:"meeting_id,omitempty"`
	Caller    string            `json:"caller,omitempty"` // id of the member or integration behind the key

	Method string      `json:"method"`
	Host   string      `json:"host"`
	Path   string      `json:"path"`
	Query  url.Values  `json:"query,omitempty"`
	Header http.Header `json:"header"`
	Body   string      `json:"body,omitempty"`  // JSON, its first 16 KiB; audio only as Bytes
	Bytes  int64       `json:"bytes,omitempty"` // of audio that arrived

	Status    int    `json:"status,omitempty"`     // of the response; 0: none was sent
	Code      string `json:"code,omitempty"`       // of an error response of the service, of storage or of a fault
	RequestID string `json:"request_id,omitempty"` // as in Error.RequestID of the client
	Fault     string `json:"fault,omitempty"`      // the injected fault that was applied
}

// Requests returns the requests that have ended, in the order in which they arrived: those of the
// given operations, or all. The Server keeps the last 4,096.
//
// Operations are those of package minutes, such as minutes.OpMeetingsCreate; "" is what the API
// does not have. Another one is a mistake in the test, and fails it as [Server.Inject] does.
func (s *Server) Requests(of ...minutes.Operation) []Request {
	s.helper()
	for _, op := range of {
		if err := checkOperation(op); err != nil {
			s.fail("Requests", err)
			return nil
		}
	}
	return slices.Collect(s.RequestsAfter(0, of...))
}

// RequestsAfter returns those of [Server.Requests] whose Seq is greater than seq, one at a time.
func (s *Server) RequestsAfter(seq int, of ...minutes.Operation) iter.Seq[Request] {
	return func(yield func(Request) bool) {
		entries, _ := s.journal.ended(0)
		for i := range entries {
			e := &entries[i]
			if int(e.seq) > seq && (len(of) == 0 || slices.Contains(of, minutes.Operation(e.Operation))) && !yield(e.request()) {
				return
			}
		}
	}
}

// entry is a request in the journal. It must not modify the values that it shares with the request.
type entry struct {
	engine.Exchange
	seq    uint64
	resets uint64 // of the Server, before the request
	sender uint64 // the in-memory client of its own that sent it; 0: another
	at     time.Time
	clock  time.Time // at that time, of the service
	took   time.Duration
	method string
	host   string
	url    *url.URL
	header http.Header
	fault  string
	nth    uint64 // to end, from 1

	rejected bool // by the service itself, or truncated: it had no effect
	lost     bool // the client did not get the whole response
}

// masked replaces a secret.
const masked = "(masked)"

func (e *entry) request() Request {
	r := Request{
		Seq: int(e.seq), At: e.at, Took: e.took,
		Operation: minutes.Operation(e.Operation), MeetingID: e.hide(e.MeetingID), Caller: e.Caller,
		Method: e.method, Host: e.hide(e.host), Path: e.hide(e.url.Path), Query: e.url.Query(), Header: e.header.Clone(),
		Body: e.hide(string(e.Body)), Bytes: e.StorageBytes,
		Status: e.Status, Code: string(e.Code), RequestID: e.RequestID, Fault: e.fault,
	}
	if e.StorageCode != "" {
		r.Code = e.StorageCode
	}
	for name, values := range r.Header {
		for i, v := range values {
			values[i] = e.hide(v)
			if name == "Authorization" || name == "Proxy-Authorization" || name == "Cookie" {
				values[i] = maskedCredential(v)
			}
		}
	}
	for _, values := range r.Query {
		for i, v := range values {
			values[i] = e.hide(v)
			if e.Operation == engine.StoragePut {
				values[i] = masked
			}
		}
	}
	return r
}

// hide masks the key of the request in text, such as a path. A key of a few characters is no
// secret, and would mask half of what a test wants to read.
func (e *entry) hide(text string) string {
	if len(e.KeySecret) < 6 {
		return text
	}
	return strings.ReplaceAll(text, e.KeySecret, masked)
}

// maskedCredential keeps the scheme of an Authorization header.
func maskedCredential(v string) string {
	if scheme, _, ok := strings.Cut(v, " "); ok {
		return scheme + " " + masked
	}
	return masked
}

// MarshalJSON writes Body as JSON if it is valid JSON.
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

// journal keeps the last requests in a ring.
type journal struct {
	seq    atomic.Uint64 // of the last request that has arrived
	resets atomic.Uint64

	mu   sync.Mutex
	ring []entry // the one with seq n is at n % journalSize
	puts uint64
}

func (j *journal) put(e *entry) {
	if len(e.Body) > maxBody {
		e.Body = []byte(e.hide(string(e.Body))) // before a key is cut in two
		e.Body = bytes.Clone(e.Body[:min(len(e.Body), maxBody)])
	}
	at := int(e.seq % journalSize)
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.resets != j.resets.Load() {
		return // reset empties the ring after this, or has done so before
	}
	for len(j.ring) <= at {
		j.ring = append(j.ring, entry{})
	}
	j.puts++
	e.nth = j.puts
	if e.seq > j.ring[at].seq {
		j.ring[at] = *e
	}
}

// ended returns the entries put after the first n, in order of arrival, and the number of all
// entries put.
func (j *journal) ended(n uint64) ([]entry, uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var list []entry
	for i := range j.ring {
		if j.puts > n && j.ring[i].nth > n {
			list = append(list, j.ring[i])
		}
	}
	slices.SortFunc(list, func(a, b entry) int { return cmp.Compare(a.seq, b.seq) })
	return list, j.puts
}

// find returns the entry with this number, if it is kept.
func (j *journal) find(seq uint64) (entry, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := int(seq % journalSize)
	if seq == 0 || at >= len(j.ring) || j.ring[at].seq != seq {
		return entry{}, false
	}
	return j.ring[at], true
}

// reset forgets all, and counts from one again.
func (j *journal) reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ring, j.puts = nil, 0
	j.seq.Store(0)
}
