package minutestest

import (
	"bytes"
	"encoding/json"
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

// What the journal keeps: the last journalSize requests, and of each as much
// as maxBody bytes of its JSON body.
const (
	journalSize = 4096
	maxBody     = 64 << 10
)

// Request is one request as the Server has seen it. Nothing in it is secret:
// API keys and the signatures of upload URLs are masked.
type Request struct {
	Seq       int               `json:"seq"` // from 1, in the order of arrival
	At        time.Time         `json:"at"`
	Took      time.Duration     `json:"took"`                // in nanoseconds
	Operation minutes.Operation `json:"operation,omitempty"` // "" for a path or a method the interface does not have
	MeetingID string            `json:"meeting_id,omitempty"`
	Caller    string            `json:"caller,omitempty"` // id of the member or integration behind the key

	Method string      `json:"method"`
	Host   string      `json:"host"`
	Path   string      `json:"path"`
	Query  url.Values  `json:"query,omitempty"`
	Header http.Header `json:"header"`
	Body   string      `json:"body,omitempty"`  // JSON, its first 64 KiB; audio is told by Bytes alone
	Bytes  int64       `json:"bytes,omitempty"` // of audio that arrived

	Status    int    `json:"status,omitempty"` // of the reply; 0: none was sent
	Code      string `json:"code,omitempty"`   // of a refusal, by the service or by storage
	RequestID string `json:"request_id,omitempty"`
	Fault     string `json:"fault,omitempty"` // the injected fault that struck it
}

// Requests returns the requests answered so far, in the order in which they
// arrived: those of the given operations, or all. The Server keeps the last
// 4,096.
func (s *Server) Requests(of ...minutes.Operation) []Request {
	var list []Request
	for _, e := range s.journal.entries() {
		if len(of) == 0 || slices.Contains(of, minutes.Operation(e.Operation)) {
			list = append(list, e.request())
		}
	}
	return list
}

// entry is a request in the journal. What it shares with the request, it only
// reads.
type entry struct {
	engine.Exchange
	seq    uint64
	at     time.Time
	took   time.Duration
	method string
	host   string
	url    *url.URL
	header http.Header
	fault  string

	refused bool // by the service itself, or cut short: nothing can have come of it
	lost    bool // the client has not seen the whole reply
}

// masked stands for a secret.
const masked = "(masked)"

func (e *entry) request() Request {
	r := Request{
		Seq: int(e.seq), At: e.at, Took: e.took,
		Operation: minutes.Operation(e.Operation), MeetingID: e.MeetingID, Caller: e.Caller,
		Method: e.method, Host: e.host, Path: e.url.Path, Query: e.url.Query(), Header: e.header.Clone(),
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

// hide masks the key of the request where it stands in the wrong place.
func (e *entry) hide(text string) string {
	if e.KeySecret == "" {
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

// MarshalJSON writes Body as JSON where it is some.
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
	seq atomic.Uint64

	mu    sync.Mutex
	ring  []entry // that with seq n stands at n % journalSize
	after uint64  // what arrived up to here has been forgotten
}

func (j *journal) next() uint64 { return j.seq.Add(1) }

func (j *journal) put(e *entry) {
	if len(e.Body) > maxBody {
		e.Body = bytes.Clone(e.Body[:maxBody])
	}
	at := int(e.seq % journalSize)
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.ring) <= at {
		j.ring = append(j.ring, entry{})
	}
	if e.seq > j.after && e.seq > j.ring[at].seq {
		j.ring[at] = *e
	}
}

// entries returns what the journal holds, in order.
func (j *journal) entries() []entry {
	j.mu.Lock()
	list := slices.Clone(j.ring)
	j.mu.Unlock()
	list = slices.DeleteFunc(list, func(e entry) bool { return e.seq == 0 })
	slices.SortFunc(list, func(a, b entry) int { return int(int64(a.seq) - int64(b.seq)) })
	return list
}

func (j *journal) reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ring = nil
	j.after = j.seq.Load()
}
