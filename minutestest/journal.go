package minutestest

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// The journal keeps the last journalSize requests, and of each as much as maxBody bytes of its
// body.
const (
	journalSize = 4096
	maxBody     = 16 << 10
)

// Request is a [world.Request]: one request that the Server has received, with what became of it.
// It contains no secret, because credentials and the signatures of upload URLs are masked.
//
// Its fields are Seq int; At time.Time; Took time.Duration; Operation minutes.Operation;
// MeetingID, Caller, Method, Host, Path string; Query url.Values; Header http.Header; Body
// string; Bytes int64; Status int; Code, RequestID, Fault string; Lost bool.
type Request = world.Request

// Requests returns the requests that have ended, in the order in which they arrived: all, or only
// those of the given operations. The Server keeps the last 4,096. Operations are those of package
// minutes, such as minutes.OpMeetingsCreate, and "" selects requests whose path or method the API
// does not have.
func (s *Server) Requests(of ...minutes.Operation) []Request {
	s.reporter.Helper()
	list := s.requestsAfter("Requests", 0, of)
	slices.SortFunc(list, func(a, b Request) int { return cmp.Compare(a.Seq, b.Seq) })
	return list
}

// RequestsAfter returns those of [Server.Requests] that ended after the request with this Seq, in
// the order in which they ended, or all of them for 0. To see each request once while your program
// runs, begin with 0 and then pass the Seq of the last one that you got. This misses no request,
// because one that began early and ends late comes at the end. But the Server keeps only the last
// 4,096 requests, so call RequestsAfter again before that many more have ended.
func (s *Server) RequestsAfter(seq int, of ...minutes.Operation) iter.Seq[Request] {
	s.reporter.Helper()
	return slices.Values(s.requestsAfter("RequestsAfter", seq, of))
}

func (s *Server) requestsAfter(method string, seq int, of []minutes.Operation) []Request {
	s.reporter.Helper()
	for _, op := range of {
		if op != "" && !isOperation(op) {
			s.reporter.Mistake(method, noSuchOperation(op))
			return nil
		}
	}
	list, _ := s.journal.Since(0)
	seen := 1 + slices.IndexFunc(list, func(r Request) bool { return r.Seq == seq })
	return slices.DeleteFunc(list[seen:], func(r Request) bool {
		return len(of) > 0 && !slices.Contains(of, r.Operation)
	})
}

const masked = "(masked)"

// credentials are in the names of headers and parameters that hold a secret, whatever it is.
var credentials = []string{
	"authorization", "cookie", "apikey", "api-key", "token", "secret", "password", "signature",
}

func holdsCredential(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(credentials, func(word string) bool { return strings.Contains(name, word) })
}

// hide masks the key that the client sent, wherever it is in a text. A key of a few characters is not
// a secret, and would mask half of what a test wants to read.
func hide(text, key string) string {
	if len(key) < 6 {
		return text
	}
	return strings.ReplaceAll(text, key, masked)
}

// mask removes the secrets: credentials, of which the scheme stays, what signs an upload URL, and
// the key wherever else the client has put it.
func mask(r *Request, key string) {
	r.Method = hide(r.Method, key)
	r.Host = hide(r.Host, key)
	r.Path = hide(r.Path, key)
	r.Body = hide(r.Body, key)
	maskValues(r.Header, key, func(name, value string) string {
		if holdsCredential(name) {
			return maskedCredential(name, value)
		}
		return hide(value, key)
	})
	maskValues(r.Query, key, func(name, value string) string {
		if r.Operation == minutes.OpUpload || holdsCredential(name) {
			return masked
		}
		return hide(value, key)
	})
	if len(r.Body) > maxBody {
		r.Body = strings.Clone(r.Body[:maxBody]) // or the journal would keep all of it
	}
}

// maskValues masks the values of headers or parameters, and a key that is a name.
func maskValues(all map[string][]string, key string, value func(name, value string) string) {
	for _, name := range slices.Collect(maps.Keys(all)) {
		values := all[name]
		for i := range values {
			values[i] = value(name, values[i])
		}
		delete(all, name)
		all[hide(name, key)] = values
	}
}

// maskedCredential leaves the scheme of an Authorization header.
func maskedCredential(name, value string) string {
	scheme, _, ok := strings.Cut(value, " ")
	if !ok || !strings.HasSuffix(name, "Authorization") {
		return masked
	}
	return scheme + " " + masked
}
