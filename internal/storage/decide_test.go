package storage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// Decide says what follows an attempt. Unless the row says otherwise, it was the first of an upload with
// four retries, half of the recording was sent, the URL is valid for an hour, and the delay is a second.
func TestDecide(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	status := func(n int, code string) Outcome { return Outcome{StatusCode: n, Code: code, Sent: 1} }
	says := func(n int, message string) Outcome {
		return Outcome{StatusCode: n, Code: "AccessDenied", Message: message}
	}
	lost := Outcome{Sent: 1}
	unreadable := Outcome{Err: ErrUnreadable, Sent: 1}
	untrusted := Outcome{Err: testbase.ErrUntrusted}

	retry := Decision{Step: Retry, Wait: time.Second}
	renew := Decision{Step: Renew, Wait: time.Second}
	askAndRenew := Decision{Step: Renew, Wait: 5 * time.Second, Poll: true}
	giveUp := Decision{Step: GiveUp}
	askAndGiveUp := Decision{Step: GiveUp, Wait: 5 * time.Second, Poll: true}

	arrived := func(s *State) { s.MayHaveArrived = true }
	shared := func(s *State) { s.Shared = true }
	noRetries := func(s *State) { s.MaxRetries = 0 }
	withoutExpect := func(s *State) { s.WithoutExpect = true }
	expired := func(s *State) { s.URLExpires = now }
	failing := func(attempts int, since time.Duration) func(*State) {
		return func(s *State) {
			s.Attempts = attempts - 1
			s.FirstFailure = now.Add(-since)
		}
	}
	deadlineIn := func(d time.Duration) func(*State) { return func(s *State) { s.Deadline = now.Add(d) } }

	for _, test := range []struct {
		name    string
		outcome Outcome
		state   func(*State)
		want    Decision
	}{
		{"2xx", status(204, ""), nil, Decision{Step: Stored}},
		{"2xx that proves nothing", Outcome{StatusCode: 200, Message: "early"}, nil, askAndRenew},
		{"no response", lost, nil, askAndRenew},
		{"nothing sent", Outcome{Err: testbase.ErrRefused}, nil, retry},
		{"untrusted certificate", untrusted, nil, giveUp},
		{"unreadable recording", unreadable, nil, giveUp},
		{"unreadable after a loss", unreadable, arrived, askAndGiveUp},

		{"408", status(408, ""), nil, retry},
		{"429", status(429, "SlowDown"), nil, retry},
		{"499", status(499, ""), nil, retry},
		{"500", status(500, "InternalError"), nil, retry},
		{"527", status(527, ""), nil, retry},
		{"RequestTimeout", status(400, "RequestTimeout"), nil, retry},
		{"IncompleteBody", status(400, "IncompleteBody"), nil, retry},
		{"ClientDisconnect", status(400, "ClientDisconnect"), nil, retry},
		{"OperationAborted", status(409, "OperationAborted"), nil, retry},
		{"ConditionalRequestConflict", status(409, "ConditionalRequestConflict"), nil, retry},
		{"417", status(417, ""), nil, retry},
		{"417 without Expect", status(417, ""), withoutExpect, giveUp},
		{"400", status(400, "InvalidDigest"), nil, giveUp},
		{"403", status(403, "AccessDenied"), nil, giveUp},
		{"403 after a loss", status(403, "AccessDenied"), arrived, askAndGiveUp},
		{"403, shared", status(403, "AccessDenied"), shared, askAndGiveUp},
		{"untrusted, shared", untrusted, shared, giveUp},
		{"307", status(307, ""), nil, giveUp},

		// Clocks and expired URLs.
		{"S3 and GCS: ExpiredToken", status(400, "ExpiredToken"), nil, renew},
		{"S3 and MinIO: expired", says(403, "Request has expired"), nil, renew},
		{"R2: ExpiredRequest", status(400, "ExpiredRequest"), nil, renew},
		{"S3, GCS, MinIO: RequestTimeTooSkewed", status(403, "RequestTimeTooSkewed"), nil, renew},
		{"MinIO: URL from the future", says(403, "Request is not valid yet"), nil, renew},
		{"OBS: URL from the future", says(403, "Request is not yet valid"), nil, renew},
		{"OBS: signing key", says(403, "Signing key is no longer valid"), nil, renew},
		{"S3: TokenRefreshRequired", status(400, "TokenRefreshRequired"), nil, renew},
		{"401 that says expired", status(401, "ExpiredToken"), nil, renew},
		{"404 that says expired", status(404, "Expired"), nil, giveUp},
		{"403 to an expired URL", status(403, ""), expired, renew},
		{"expired again", status(400, "ExpiredToken"), failing(2, time.Second), renew},
		{"expired for a minute", status(400, "ExpiredToken"), failing(5, time.Minute), giveUp},

		// Attempts and time.
		{"503, no retries", status(503, ""), noRetries, askAndGiveUp},
		{"429, no retries", status(429, ""), noRetries, giveUp},
		{"lost, no retries", lost, noRetries, askAndGiveUp},
		{"429, retries and a minute spent", status(429, ""), failing(5, time.Minute), giveUp},
		{"lost, retries and a minute spent", lost, failing(5, time.Minute), askAndGiveUp},
		{"429, only retries spent", status(429, ""), failing(10, 59*time.Second), retry},
		{"429, only a minute spent", status(429, ""), failing(4, time.Hour), retry},
		{"503, storage takes others", status(503, ""), func(s *State) {
			failing(9, time.Hour)(s)
			s.LastStored = now.Add(-59 * time.Second)
		}, retry},
		{"503, storage took others before", status(503, ""), func(s *State) {
			failing(9, time.Hour)(s)
			s.LastStored = now.Add(-time.Minute)
		}, askAndGiveUp},
		{"500, storage takes others", status(500, ""), func(s *State) {
			failing(9, time.Hour)(s)
			s.LastStored = now
		}, askAndGiveUp},
		{"429, deadline before the retry", status(429, ""), deadlineIn(time.Second), giveUp},
		{"429, deadline after the retry", status(429, ""), deadlineIn(time.Second + 1), retry},
		{"lost, deadline soon", lost, deadlineIn(time.Second), Decision{Step: GiveUp, Poll: true}},
		{"Retry-After of a minute", Outcome{StatusCode: 429, RetryAfter: time.Minute}, nil, retry},
		{"longer Retry-After", Outcome{StatusCode: 429, RetryAfter: time.Minute + 1}, nil, giveUp},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := State{MaxRetries: 4, URLExpires: now.Add(time.Hour)}
			if test.state != nil {
				test.state(&s)
			}
			got, after := Decide(s, test.outcome, now, time.Second)
			require.Equal(t, test.want, got)
			require.Equal(t, s.Attempts+1, after.Attempts)
		})
	}
	got, _ := Decide(State{MaxRetries: 4}, lost, now, 6*time.Second)
	require.Equal(t, Decision{Step: Renew, Wait: 6 * time.Second, Poll: true}, got, "the longer of two waits counts")
}

func TestDecide_RemembersAttempts(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	first := now.Add(-time.Second)
	for _, test := range []struct {
		name    string
		outcome Outcome
		want    State
	}{
		{"lost", Outcome{Sent: 1}, State{MayHaveArrived: true}},
		{"never sent", Outcome{}, State{}},
		{"unreadable", Outcome{Sent: 1, Err: ErrUnreadable}, State{}},
		{"499 to the body", Outcome{StatusCode: 499, Sent: 1}, State{MayHaveArrived: true}},
		{"502 to the header", Outcome{StatusCode: 502}, State{}},
		{"429 to the body", Outcome{StatusCode: 429, Sent: 1}, State{}},
		{"expired", Outcome{StatusCode: 400, Code: "ExpiredToken"}, State{}},
		{"417", Outcome{StatusCode: 417}, State{WithoutExpect: true}},
	} {
		test.want.MaxRetries = 4
		test.want.Attempts = 3
		test.want.FirstFailure = first
		_, got := Decide(State{MaxRetries: 4, Attempts: 2, FirstFailure: first}, test.outcome, now, 0)
		assert.Equal(t, test.want, got, test.name)
	}
	_, got := Decide(State{}, Outcome{}, now, 0)
	require.Equal(t, now, got.FirstFailure)
}

func TestRetryable(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{
		0: true, 200: true, 408: true, 429: true, 503: true, 307: false, 403: false, 404: false, 417: false,
	} {
		assert.Equal(t, want, Retryable(status, "", ""), status)
	}
	assert.True(t, Retryable(403, "AccessDenied", "Request has expired"))
	assert.True(t, Retryable(403, "RequestTimeTooSkewed", ""))
	assert.True(t, Retryable(400, "IncompleteBody", ""))
}
