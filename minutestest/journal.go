package minutestest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// What the journal keeps: the last journalSize requests, as many of them as
// journalBytes hold, and of each as much as maxBody bytes of its JSON body. A
// header or a URL of more than maxHead bytes is clipped, each of its texts to
// maxText.
const (
	journalSize  = 4096
	journalBytes = 32 << 20
	maxBody      = 64 << 10
	maxHead      = 8 << 10
	maxText      = 256
)

// Request is one request that the Server has received. It holds no secret:
// API keys and the signatures of upload URLs are masked.
type Request struct {
	Seq       int               `json:"seq"`                 // from 1, in the order of arrival
	At        time.Time         `json:"at"`                  // when its header had arrived
	Took      time.Duration     `json:"took"`                // until the response; as JSON in nanoseconds
	Operation minutes.Operation `json:"operation,omitempty"` // "" for a path or a method the interface does not have
	MeetingID string            `json:"meeting_id,omitempty"`
	Caller    string            `json:"caller,omitempty"` // id of the member or integration behind the key

	Method string      `json:"method"`
	Host   string      `json:"host"`
	Path   string      `json:"path"`
	Query  url.Values  `json:"query,omitempty"`
	Header http.Header `json:"header"`
	Body   string      `json:"body,omitempty"`  // JSON, its first 64 KiB; audio only as Bytes
	Bytes  int64       `json:"bytes,omitempty"` // of audio that arrived

	Status    int    `json:"status,omitempty"`     // of the response; 0: none was sent
	Code      string `json:"code,omitempty"`       // of an error response of the service, of storage or of a fault
	RequestID string `json:"request_id,omitempty"` // as in Error.RequestID of the client
	Fault     string `json:"fault,omitempty"`      // the injected fault that was applied
}

// Requests returns the requests that have ended, in the order in which they
// arrived: those of the given operations, or all. The Server keeps the last
// 4,096, or fewer if they take more than 32 MiB. It keeps only the first 8 KiB
// of a header or a URL.
//
// Operations are those of package minutes, such as minutes.OpMeetingsCreate; "" is
// what the interface does not have. Another
// one is a mistake in the test, and fails it as [Server.Inject] does.
func (s *Server) Requests(of ...minutes.Operation) []Request {
	s.helper()
	for _, op := range of {
		if err := checkOperation(op); err != nil {
			s.fail("Requests: %v", err)
			return nil
		}
	}
	var list []Request
	for _, e := range s.journal.entries() {
		if len(of) == 0 || slices.Contains(of, minutes.Operation(e.Operation)) {
			list = append(list, e.request())
		}
	}
	return list
}

// RequestsAfter returns the requests of [Server.Requests] whose Seq is greater
// than seq, one at a time: they are not all in memory at once. Requests that are
// forgotten meanwhile are left out.
func (s *Server) RequestsAfter(seq int, of ...minutes.Operation) iter.Seq[Request] {
	return func(yield func(Request) bool) {
		from, to := s.journal.span()
		for n := max(from, uint64(max(seq, 0))+1); n <= to; n++ {
			e, ok := s.journal.find(n)
			if ok && (len(of) == 0 || slices.Contains(of, minutes.Operation(e.Operation))) && !yield(e.request()) {
				return
			}
		}
	}
}

// entry is a request in the journal. It must not modify the values that it
// shares with the request.
type entry struct {
	engine.Exchange
	seq    uint64
	resets uint64 // of the Server, before the request
	client uint64 // of the in-memory network that sent it; 0: another
	at     time.Time
	took   time.Duration
	method string
	host   string
	url    *url.URL
	uri    string // as it was sent: url holds on to it
	header http.Header
	fault  string
	size   int    // in memory, nearly
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

// clip makes e fit to be kept: bounded, and with nothing else in memory for its
// sake. Secrets are masked before one could be cut in two.
func (e *entry) clip() {
	e.ExternalID = "" // of no use any more
	if len(e.Body) > maxBody {
		e.Body = []byte(e.hide(string(e.Body)))
	}
	e.Body = bytes.Clone(e.Body[:min(len(e.Body), maxBody)])
	if e.headSize() > maxHead {
		e.clipHead()
	}
	e.size = e.headSize() + len(e.Body)
}

// headSize is what the head takes in memory, nearly.
func (e *entry) headSize() int {
	size := len(e.method) + len(e.host) + max(len(e.uri), len(e.url.Path)+len(e.url.RawPath)+len(e.url.RawQuery))
	for name, values := range e.header {
		size += fieldSize + len(name)
		for _, v := range values {
			size += stringSize + len(v)
		}
	}
	return size
}

// What a field of a map and a string take in memory beside their texts, nearly.
const (
	fieldSize  = 64
	stringSize = 16
)

// clipHead keeps the beginnings of the texts of a long head, and the fields
// that there is room for.
func (e *entry) clipHead() {
	e.url = &url.URL{Path: e.beginning(e.url.Path), RawQuery: url.Values(e.beginnings(e.url.Query())).Encode()}
	e.header = e.beginnings(e.header)
	e.method, e.host, e.uri = e.beginning(e.method), e.beginning(e.host), ""
	e.MeetingID, e.Organisation = e.beginning(e.MeetingID), e.beginning(e.Organisation)
	e.KeySecret = "" // masked already
}

func (e *entry) beginning(s string) string {
	s = e.hide(s)
	return strings.ToValidUTF8(strings.Clone(s[:min(len(s), maxText)]), "")
}

// beginnings keeps the first fields of a header or a query, by name.
func (e *entry) beginnings(fields map[string][]string) map[string][]string {
	kept, room := make(map[string][]string), maxHead/2
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		short := e.beginning(name)
		for _, v := range fields[name] {
			v = e.beginning(v)
			if room -= fieldSize + stringSize + len(short) + len(v); room < 0 {
				return kept
			}
			kept[short] = append(kept[short], v)
		}
	}
	return kept
}

// A key shorter than minSecret is no secret. A key shorter than longSecret is
// masked only as a whole word, since it may be a part of an id or a title.
const (
	minSecret  = 6
	longSecret = 16
)

// hide masks the key of the request in text, such as a path.
func (e *entry) hide(text string) string {
	key := e.KeySecret
	if len(key) < minSecret || !strings.Contains(text, key) {
		return text
	}
	if len(key) >= longSecret {
		return strings.ReplaceAll(text, key, masked)
	}
	var b strings.Builder
	rest := text
	for {
		before, after, found := strings.Cut(rest, key)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		at := len(text) - len(after) - len(key)
		if isWord(text[:at], true) || isWord(after, false) {
			b.WriteString(key)
		} else {
			b.WriteString(masked)
		}
		rest = after
	}
}

// isWord reports whether text ends, or begins, with a character of a word.
func isWord(text string, ends bool) bool {
	r, _ := utf8.DecodeRuneInString(text)
	if ends {
		r, _ = utf8.DecodeLastRuneInString(text)
	}
	return text != "" && (r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r))
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
	seq atomic.Uint64

	mu    sync.Mutex
	ring  []entry // the one with seq n is at n % journalSize
	bytes int     // that ring takes
	puts  uint64
	after uint64 // what arrived up to here has been forgotten
}

func (j *journal) next() uint64 { return j.seq.Add(1) }

func (j *journal) put(e *entry) {
	e.clip()
	at := int(e.seq % journalSize)
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.ring) <= at {
		j.ring = append(j.ring, entry{})
	}
	j.puts++
	e.nth = j.puts
	if e.seq > j.after && e.seq > j.ring[at].seq {
		j.bytes += e.size - j.ring[at].size
		j.ring[at] = *e
	}
	for j.bytes > journalBytes {
		j.forgetOldest()
	}
}

// forgetOldest moves on by one sequence number. The caller holds mu.
func (j *journal) forgetOldest() {
	j.after++
	if at := int(j.after % journalSize); at < len(j.ring) && j.ring[at].seq == j.after {
		j.bytes -= j.ring[at].size
		j.ring[at] = entry{}
	}
}

// entries returns what the journal holds, in order.
func (j *journal) entries() []entry {
	list, _ := j.ended(0)
	return list
}

func bySeq(a, b entry) int { return cmp.Compare(a.seq, b.seq) }

// ended returns the entries put after the first n, in order of arrival, and
// the number of all entries put.
func (j *journal) ended(n uint64) ([]entry, uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var list []entry
	for i := range j.ring {
		if j.puts > n && j.ring[i].nth > n {
			list = append(list, j.ring[i])
		}
	}
	slices.SortFunc(list, bySeq)
	return list, j.puts
}

// span returns the numbers of the first and the last entry that may be kept.
func (j *journal) span() (from, to uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	to = j.seq.Load()
	return max(j.after, to-min(to, journalSize)) + 1, to
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

func (j *journal) reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ring, j.bytes = nil, 0
	j.after = j.seq.Load()
}
