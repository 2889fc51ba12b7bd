package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
)

// mutationSeed makes the runs of TestMutatedResponses_GiveAValueOrAnError the same each time.
const mutationSeed = 20260309

// mutations returns how many mutated responses each operation gets.
func mutations() int {
	if testbase.UnderRace {
		return 300
	}
	return testbase.Many(20_000, 300)
}

// For every response, a call returns either a value or an *Error with the response's
// status, never both and never neither.
func TestMutatedResponses_GiveAValueOrAnError(t *testing.T) {
	t.Parallel()
	for _, op := range testkit.Operations() {
		t.Run(string(op.Name), func(t *testing.T) {
			t.Parallel()
			m := newMutator(t, op)
			synctest.Test(t, func(t *testing.T) { // a mutated Retry-After takes no time here
				var reply *mutant
				client, err := testkit.New("https://minutes.example", testkit.Key, minutes.WithMaxRetries(0), minutes.WithRateLimit(0, 0),
					minutes.WithHTTPClient(&http.Client{Transport: testbase.RoundTripper(func(*http.Request) (*http.Response, error) { return reply.response(), nil })}))
				require.NoError(t, err)
				values := 0
				for n := range mutations() {
					reply = m.next()
					got, err := op.Call(t.Context(), client)
					if why := problemOf(op, reply, got, err); why != "" {
						t.Fatalf("seed %d, reply %d, %s: %s\n%#v\n%v", mutationSeed, n, reply, why, got, err)
					}
					if err == nil {
						values++
					}
				}
				require.Greater(t, values, mutations()/50, "too few responses were valid")
				require.Less(t, values, mutations()*9/10, "too few responses were invalid")
			})
		})
	}
}

// problemOf describes the problem with the result of a call, or returns "".
func problemOf(op testkit.Operation, reply *mutant, got any, err error) string {
	zero := got == nil || reflect.ValueOf(got).IsZero()
	if err == nil {
		if reply.status/100 != 2 {
			return "a success from an error response"
		}
		if zero && op.Response != "" && op.Name != "meetings.transcript" {
			return "neither value nor error"
		}
		return ""
	}
	failed, ok := err.(*minutes.Error)
	text := err.Error()
	switch {
	case !zero:
		return "a value and an error"
	case !ok:
		return fmt.Sprintf("an error of type %T", err)
	case failed.StatusCode != reply.status:
		return "another status"
	case failed.Method != op.Method || failed.Path != op.Path:
		return "another request"
	case failed.Code == "" && failed.Message == "" && !errors.Is(err, errBroken):
		return "an error that says nothing"
	case strings.ContainsAny(text, "\n\r\x00\x1b"):
		return "a text of more than one line"
	case strings.Contains(text, "invalid character"), strings.Contains(text, "unexpected end"):
		return "a message of the decoder"
	case len(text) > 5000:
		return "a text too long"
	}
	return ""
}

// A mutant is a mutated response.
type mutant struct {
	status int
	header http.Header
	body   []byte
	form   int // of the body as a reader
}

var errBroken = errors.New("the connection broke")

func (m *mutant) response() *http.Response {
	resp := &http.Response{StatusCode: m.status, Header: m.header, ContentLength: -1}
	switch m.form {
	case 0: // none at all
	case 1:
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(m.body), testbase.Failing(errBroken)))
	default:
		resp.Body = io.NopCloser(bytes.NewReader(m.body))
	}
	return resp
}

func (m *mutant) String() string {
	return fmt.Sprintf("%d %v %q (form %d)", m.status, m.header, m.body, m.form)
}

// A mutator makes mutants from the handwritten responses.
type mutator struct {
	rand    *rand.Rand
	op      testkit.Operation
	own     [][]byte // the operation's responses
	foreign [][]byte // responses of other operations
}

func newMutator(t *testing.T, op testkit.Operation) *mutator {
	h := fnv.New64()
	_, _ = io.WriteString(h, string(op.Name))
	m := &mutator{rand: rand.New(rand.NewPCG(mutationSeed, h.Sum64())), op: op}
	for _, kind := range slices.Sorted(maps.Keys(testkit.Objects)) {
		replies := testkit.Objects[kind].Responses
		for _, name := range slices.Sorted(maps.Keys(replies)) {
			if kind == op.ResponseForm {
				m.own = append(m.own, []byte(replies[name]))
			} else {
				m.foreign = append(m.foreign, []byte(replies[name]))
			}
		}
	}
	if op.Response == "" {
		m.own = [][]byte{nil}
	}
	return m
}

func pick[T any](m *mutator, from []T) T { return from[m.rand.IntN(len(from))] }

// one returns true once in n times.
func (m *mutator) one(n int) bool { return m.rand.IntN(n) == 0 }

func (m *mutator) next() *mutant {
	r := &mutant{status: m.op.Status, header: http.Header{"Content-Type": {"application/json"}}, body: pick(m, m.own), form: 2}
	switch {
	case m.one(4):
		r.status = pick(m, []int{-1, 0, 99, 200, 201, 202, 203, 204, 206, 299, 300, 301, 304, 307, 308, 400, 401, 403, 404, 405, 408, 409, 410, 413, 418, 422, 429, 451, 499, 500, 501, 502, 503, 504, 520, 599, 600, 999, 1 << 30})
		if m.one(2) {
			r.body = pick(m, m.foreign)
		}
	case m.one(10):
		r.body = pick(m, m.foreign)
	}
	for range m.rand.IntN(4) {
		r.body = m.mutate(r.body)
	}
	if m.one(8) {
		r.form = m.rand.IntN(2)
	}
	if m.one(4) {
		name := pick(m, []string{"Content-Type", "Content-Type", "Retry-After", "X-Request-Id", "Location", "Cache-Control", "Content-Encoding"})
		r.header[name] = []string{pick(m, []string{"", "text/html", "text/html; charset=", "application/json; charset=latin1", ";;;", "\x00", "\xff\xfe", "0", "-1", "1.5", "60", "86400", "9223372036854775807", "99999999999999999999999",
			"Wed, 21 Oct 2065 07:28:00 GMT", "Wed, 21 Oct 1965 07:28:00 GMT", "max-age=30", "max-age=-1", "https://evil.example/", "http://[::1:%zz", strings.Repeat("é\n", 3000)})}
	} else if m.one(50) {
		r.header = nil
	}
	return r
}

// values replace the value of a field.
var values = []any{
	nil, true, false, "", "x", "\x00\n\u202e", 0, -1, 1.5, json.Number("1e400"), json.Number("-9223372036854775809"), json.Number("123456789012345678901234567890"),
	[]any{}, []any{nil}, []any{""}, []any{map[string]any{}}, map[string]any{}, map[string]any{"id": nil}, json.RawMessage(`{"id":1,"id":"mtg_2","ID":[]}`),
}

func (m *mutator) mutate(old []byte) []byte {
	body := slices.Clone(old)
	at := m.rand.IntN(len(body) + 1)
	end := min(len(body), at+m.rand.IntN(20))
	switch m.rand.IntN(10) {
	case 0: // a byte changes
		if at < len(body) {
			body[at] ^= 1 << m.rand.IntN(8)
		}
	case 1: // bytes are inserted
		return slices.Insert(body, at, []byte(pick(m, []string{"\x00", "\xff", `"`, `\`, `\ud800`, "{", "}", "[", "]", ",", ":", "null", "-", "1e999", strings.Repeat("[", 10001), "<html>", "\ufeff", "0", `"id":null,`, `"error":{"code":"NOT_FOUND"},`}))...)
	case 2: // bytes are deleted
		return slices.Delete(body, at, end)
	case 3: // the end is missing
		return body[:at]
	case 4: // a part is repeated
		return slices.Insert(body, at, body[at:end]...)
	case 5: // two responses in one
		return append(body[:at], pick(m, m.foreign)...)
	case 6: // something surrounds it
		around := pick(m, []string{"[%s]", `{"data":%s}`, `{"error":%s}`, "%s%[1]s", "\n%s", ")]}'\n%s", `"%s"`, `{"error":{"code":"INTERNAL_ERROR","details":%s}}`})
		return fmt.Appendf(nil, around, body)
	case 7, 8: // a field has another value, or none
		var v any
		if json.Unmarshal(body, &v) == nil {
			v = m.swap(v)
			if changed, err := json.Marshal(v); err == nil {
				return changed
			}
		}
	case 9: // the whole body is something else
		if m.one(10) {
			other, err := json.Marshal(pick(m, values))
			if err == nil {
				return other
			}
		}
	}
	return body
}

// swap changes one value somewhere in v.
func (m *mutator) swap(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 || m.one(10) {
			break
		}
		key := pick(m, slices.Sorted(maps.Keys(v)))
		if m.one(6) {
			delete(v, key)
		} else {
			v[key] = m.swap(v[key])
		}
		return v
	case []any:
		if len(v) == 0 || m.one(4) {
			break
		}
		i := m.rand.IntN(len(v))
		v[i] = m.swap(v[i])
		return v
	}
	return pick(m, values)
}
