package minutestest

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A cookie is always a credential, and a path or a Host may hold a key by mistake.
func TestRequests_MaskCookiesPathsAndHosts(t *testing.T) {
	t.Parallel()
	s := NewServer(t)
	callerOf(s).call("GET", "/v1/key_ci/usage", "", withHeader("Cookie", "session=other"), func(r *http.Request) { r.Host = "key_ci.example" })
	got := s.Requests()[0]
	assert.Equal(t, masked+".example", got.Host)
	assert.Equal(t, "/v1/"+masked+"/usage", got.Path)
	assert.Equal(t, []string{masked}, got.Header["Cookie"])
}

// With fewer Times than faults, the further faults are never applied.
func TestInject_TimesBelowTheNumberOfFaults(t *testing.T) {
	t.Parallel()
	s := NewServer(t)
	s.Inject(Match{Times: 1}, Respond(501, "", ""), Respond(502, "", ""))
	var got []int
	for range 3 {
		got = append(got, callerOf(s).call("GET", "/v1/usage", "").status)
	}
	assert.Equal(t, []int{501, 200, 200}, got)
}

// A response that is held back keeps its status, in the journal too.
func TestDelay_AfterEffectKeepsTheStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(t)
		s.Inject(Match{}, Delay(time.Minute).AfterEffect(), Delay(time.Minute).AfterEffect())
		assert.Equal(t, 201, callerOf(s).call("POST", "/v1/projects", `{"name":"Vostok"}`).status)
		assert.Equal(t, 404, callerOf(s).call("GET", "/v1/meetings/mtg_x", "").status)
		requests := s.Requests()
		assert.Equal(t, 201, requests[0].Status)
		assert.Equal(t, []any{404, "NOT_FOUND"}, []any{requests[1].Status, requests[1].Code})
	})
}

func TestFault_RejectsNegativeBytes(t *testing.T) {
	t.Parallel()
	for _, f := range []Fault{Truncate(-1), ResetUpload(-1)} {
		require.ErrorContains(t, Match{}.Validate(f), "fault: bytes: -1 is negative")
	}
}

// A client with the last byte of a response finds the request in the journal.
func TestRequests_AreThereBeforeTheLastByte(t *testing.T) {
	t.Parallel()
	noted := false
	s := NewServer(t, WithLog(func(Request) { noted = true }))
	w := &lastByte{header: http.Header{}, at: func() { assert.True(t, noted) }}
	r, err := http.NewRequest(http.MethodGet, "/v1/usage", http.NoBody)
	require.NoError(t, err)
	s.Handler().ServeHTTP(w, r)
	assert.True(t, w.done)
}

// lastByte is a response that calls a function when its last byte arrives.
type lastByte struct {
	header      http.Header
	at          func()
	length, got int
	done        bool
}

func (l *lastByte) Header() http.Header {
	return l.header
}

func (l *lastByte) WriteHeader(int) {
	for _, c := range l.Header().Get("Content-Length") {
		l.length = 10*l.length + int(c-'0')
	}
}

func (l *lastByte) Write(p []byte) (int, error) {
	if l.got += len(p); l.got == l.length {
		l.done = true
		l.at()
	}
	return len(p), nil
}
