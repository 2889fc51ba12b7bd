package storage

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// Decide says what follows an attempt. Unless the row says otherwise, it was the first of an upload with four
// retries, half of the recording was sent, and the URL is valid for an hour.
func TestDecide(t *testing.T) {
	t.Parallel()
	const wait = time.Second
	now := time.Unix(1_800_000_000, 0)
	status := func(n int, code string) Outcome { return Outcome{StatusCode: n, Code: code, Sent: 1} }
	arrived := func(s *State) { s.Arrived = true }
	shared := func(s *State) { s.Shared = true }
	tried := func(s *State) { s.Attempts, s.FirstFailure = 4, now.Add(-Patience) }
	for name, test := range map[string]struct {
		outcome Outcome
		state   func(*State)
		wait    time.Duration // 0: a second
		want    Decision
	}{
		"2xx":                             {outcome: status(204, ""), want: Decision{Step: Stored}},
		"2xx that proves nothing":         {outcome: Outcome{StatusCode: 200, Message: "early"}, want: Decision{Renew, settling, true}},
		"no response":                     {outcome: Outcome{Sent: 1}, want: Decision{Renew, settling, true}},
		"no response, after a longer 503": {outcome: Outcome{Sent: 1}, wait: settling + 1, want: Decision{Renew, settling + 1, true}},
		"nothing sent":                    {outcome: Outcome{Err: testbase.ErrRefused}, want: Decision{Step: Retry, Wait: wait}},
		"untrusted certificate":           {outcome: Outcome{Err: testbase.ErrUntrusted}, want: Decision{Step: GiveUp}},
		"unreadable recording":            {outcome: Outcome{Err: ErrUnreadable, Sent: 1}, want: Decision{Step: GiveUp}},
		"unreadable after a loss":         {outcome: Outcome{Err: ErrUnreadable}, state: arrived, want: Decision{GiveUp, settling, true}},

		"408":                     {outcome: status(408, ""), want: Decision{Step: Retry, Wait: wait}},
		"429":                     {outcome: status(429, "SlowDown"), want: Decision{Step: Retry, Wait: wait}},
		"499":                     {outcome: status(499, ""), want: Decision{Step: Retry, Wait: wait}},
		"500":                     {outcome: status(500, "InternalError"), want: Decision{Step: Retry, Wait: wait}},
		"527":                     {outcome: status(527, ""), want: Decision{Step: Retry, Wait: wait}},
		"RequestTimeout":          {outcome: status(400, "RequestTimeout"), want: Decision{Step: Retry, Wait: wait}},
		"OperationAborted":        {outcome: status(409, "OperationAborted"), want: Decision{Step: Retry, Wait: wait}},
		"IncompleteBody":          {outcome: status(400, "IncompleteBody"), want: Decision{Step: Retry, Wait: wait}},
		"417":                     {outcome: status(417, ""), want: Decision{Step: Retry, Wait: wait}},
		"417 without Expect":      {outcome: status(417, ""), state: func(s *State) { s.WithoutExpect = true }, want: Decision{Step: GiveUp}},
		"400":                     {outcome: status(400, "InvalidDigest"), want: Decision{Step: GiveUp}},
		"403":                     {outcome: status(403, "AccessDenied"), want: Decision{Step: GiveUp}},
		"403 after a loss":        {outcome: status(403, "AccessDenied"), state: arrived, want: Decision{GiveUp, settling, true}},
		"403, shared":             {outcome: status(403, "AccessDenied"), state: shared, want: Decision{GiveUp, settling, true}},
		"untrusted, shared":       {outcome: Outcome{Err: testbase.ErrUntrusted}, state: shared, want: Decision{Step: GiveUp}},
		"307":                     {outcome: status(307, ""), want: Decision{Step: GiveUp}},
		"expired":                 {outcome: Outcome{StatusCode: 403, Message: "Request has expired"}, want: Decision{Step: Renew, Wait: wait}},
		"ExpiredToken":            {outcome: status(400, "ExpiredToken"), want: Decision{Step: Renew, Wait: wait}},
		"403 to an expired URL":   {outcome: status(403, ""), state: func(s *State) { s.URLExpires = now }, want: Decision{Step: Renew, Wait: wait}},
		"404 that says expired":   {outcome: status(404, "Expired"), want: Decision{Step: GiveUp}},
		"expired again":           {outcome: status(400, "ExpiredToken"), state: func(s *State) { s.Renewed = true }, want: Decision{Step: GiveUp}},
		"503, URL expires before": {outcome: status(503, ""), state: func(s *State) { s.URLExpires = now.Add(wait) }, want: Decision{Step: Renew, Wait: wait}},

		"503, no retries":                 {outcome: status(503, ""), state: func(s *State) { s.MaxRetries = 0 }, want: Decision{GiveUp, settling, true}},
		"429, no retries":                 {outcome: status(429, ""), state: func(s *State) { s.MaxRetries = 0 }, want: Decision{Step: GiveUp}},
		"lost, no retries":                {outcome: Outcome{Sent: 1}, state: func(s *State) { s.MaxRetries = 0 }, want: Decision{GiveUp, settling, true}},
		"429, retries and a minute spent": {outcome: status(429, ""), state: tried, want: Decision{Step: GiveUp}},
		"lost, retries and minute spent":  {outcome: Outcome{Sent: 1}, state: tried, want: Decision{GiveUp, settling, true}},
		"429, only retries spent": {outcome: status(429, ""), state: func(s *State) { s.Attempts, s.FirstFailure = 9, now.Add(1-Patience) },
			want: Decision{Step: Retry, Wait: wait}},
		"429, only a minute spent": {outcome: status(429, ""), state: func(s *State) { s.Attempts, s.FirstFailure = 3, now.Add(-time.Hour) },
			want: Decision{Step: Retry, Wait: wait}},
		"429, deadline before the retry": {outcome: status(429, ""), state: func(s *State) { s.Deadline = now.Add(wait) }, want: Decision{Step: GiveUp}},
		"429, deadline after the retry":  {outcome: status(429, ""), state: func(s *State) { s.Deadline = now.Add(wait + 1) }, want: Decision{Step: Retry, Wait: wait}},
		"lost, deadline soon":            {outcome: Outcome{Sent: 1}, state: func(s *State) { s.Deadline = now.Add(wait) }, want: Decision{GiveUp, 0, true}},
		"Retry-After of a minute":        {outcome: Outcome{StatusCode: 429, RetryAfter: time.Minute}, want: Decision{Step: Retry, Wait: wait}},
		"longer Retry-After":             {outcome: Outcome{StatusCode: 429, RetryAfter: time.Minute + 1}, want: Decision{Step: GiveUp}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := State{MaxRetries: 4, URLExpires: now.Add(time.Hour)}
			if test.state != nil {
				test.state(&s)
			}
			got, after := Decide(s, test.outcome, now, cmp.Or(test.wait, wait))
			require.Equal(t, test.want, got)
			require.Equal(t, s.Attempts+1, after.Attempts)
		})
	}
}

func TestDecide_RemembersAttempts(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for name, test := range map[string]struct {
		outcome Outcome
		want    State
	}{
		"lost":              {Outcome{Sent: 1}, State{Arrived: true}},
		"never sent":        {Outcome{}, State{}},
		"499 to the body":   {Outcome{StatusCode: 499, Sent: 1}, State{Arrived: true}},
		"502 to the header": {Outcome{StatusCode: 502}, State{}},
		"429 to the body":   {Outcome{StatusCode: 429, Sent: 1}, State{}},
		"expired":           {Outcome{StatusCode: 400, Code: "ExpiredToken"}, State{Renewed: true}},
		"417":               {Outcome{StatusCode: 417}, State{WithoutExpect: true}},
	} {
		first := now.Add(-time.Second)
		test.want.MaxRetries, test.want.Attempts, test.want.FirstFailure = 4, 3, first
		_, got := Decide(State{MaxRetries: 4, Attempts: 2, FirstFailure: first}, test.outcome, now, 0)
		assert.Equal(t, test.want, got, name)
	}
	_, got := Decide(State{}, Outcome{}, now, 0)
	require.Equal(t, now, got.FirstFailure)
}

func TestRetryable(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{0: true, 200: true, 408: true, 429: true, 503: true, 307: false, 403: false, 404: false, 417: false} {
		assert.Equal(t, want, Retryable(status, "", ""), status)
	}
	assert.True(t, Retryable(403, "AccessDenied", "Request has expired"))
	assert.True(t, Retryable(400, "IncompleteBody", ""))
}
