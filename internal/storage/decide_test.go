package storage

import (
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
	arrived := func(h *History) { h.Arrived = true }
	shared := func(h *History) { h.Shared = true }
	tried := func(h *History) { h.Attempts, h.FirstFailure = 4, now.Add(-spread) }
	for name, test := range map[string]struct {
		outcome Outcome
		history func(*History)
		times   func(*Times)
		want    Decision
	}{
		"2xx":                             {outcome: status(204, ""), want: Decision{Step: Stored}},
		"2xx that proves nothing":         {outcome: Outcome{StatusCode: 200, Message: "early"}, want: Decision{Renew, settling, true}},
		"no response":                     {outcome: Outcome{Sent: 1}, want: Decision{Renew, settling, true}},
		"no response, after a longer 503": {outcome: Outcome{Sent: 1}, times: func(t *Times) { t.Wait = settling + 1 }, want: Decision{Renew, settling + 1, true}},
		"nothing sent":                    {outcome: Outcome{Err: testbase.ErrRefused}, want: Decision{Step: Retry, Wait: wait}},
		"untrusted certificate":           {outcome: Outcome{Err: testbase.ErrUntrusted}, want: Decision{Step: GiveUp}},
		"unreadable recording":            {outcome: Outcome{Err: ErrUnreadable, Sent: 1}, want: Decision{Step: GiveUp}},
		"unreadable after a loss":         {outcome: Outcome{Err: ErrUnreadable}, history: arrived, want: Decision{GiveUp, settling, true}},

		"408":                     {outcome: status(408, ""), want: Decision{Step: Retry, Wait: wait}},
		"429":                     {outcome: status(429, "SlowDown"), want: Decision{Step: Retry, Wait: wait}},
		"499":                     {outcome: status(499, ""), want: Decision{Step: Retry, Wait: wait}},
		"500":                     {outcome: status(500, "InternalError"), want: Decision{Step: Retry, Wait: wait}},
		"527":                     {outcome: status(527, ""), want: Decision{Step: Retry, Wait: wait}},
		"RequestTimeout":          {outcome: status(400, "RequestTimeout"), want: Decision{Step: Retry, Wait: wait}},
		"OperationAborted":        {outcome: status(409, "OperationAborted"), want: Decision{Step: Retry, Wait: wait}},
		"IncompleteBody":          {outcome: status(400, "IncompleteBody"), want: Decision{Step: Retry, Wait: wait}},
		"417":                     {outcome: status(417, ""), want: Decision{Step: Retry, Wait: wait}},
		"417 without Expect":      {outcome: status(417, ""), history: func(h *History) { h.WithoutExpect = true }, want: Decision{Step: GiveUp}},
		"400":                     {outcome: status(400, "InvalidDigest"), want: Decision{Step: GiveUp}},
		"403":                     {outcome: status(403, "AccessDenied"), want: Decision{Step: GiveUp}},
		"403 after a loss":        {outcome: status(403, "AccessDenied"), history: arrived, want: Decision{GiveUp, settling, true}},
		"403, shared":             {outcome: status(403, "AccessDenied"), history: shared, want: Decision{GiveUp, settling, true}},
		"untrusted, shared":       {outcome: Outcome{Err: testbase.ErrUntrusted}, history: shared, want: Decision{Step: GiveUp}},
		"307":                     {outcome: status(307, ""), want: Decision{Step: GiveUp}},
		"expired":                 {outcome: Outcome{StatusCode: 403, Message: "Request has expired"}, want: Decision{Step: Renew, Wait: wait}},
		"ExpiredToken":            {outcome: status(400, "ExpiredToken"), want: Decision{Step: Renew, Wait: wait}},
		"403 to an expired URL":   {outcome: status(403, ""), times: func(t *Times) { t.URLExpires = now }, want: Decision{Step: Renew, Wait: wait}},
		"404 that says expired":   {outcome: status(404, "Expired"), want: Decision{Step: GiveUp}},
		"expired again":           {outcome: status(400, "ExpiredToken"), history: func(h *History) { h.Renewed = true }, want: Decision{Step: GiveUp}},
		"503, URL expires before": {outcome: status(503, ""), times: func(t *Times) { t.URLExpires = now.Add(wait) }, want: Decision{Step: Renew, Wait: wait}},

		"503, no retries":                 {outcome: status(503, ""), history: func(h *History) { h.MaxRetries = 0 }, want: Decision{GiveUp, settling, true}},
		"429, no retries":                 {outcome: status(429, ""), history: func(h *History) { h.MaxRetries = 0 }, want: Decision{Step: GiveUp}},
		"lost, no retries":                {outcome: Outcome{Sent: 1}, history: func(h *History) { h.MaxRetries = 0 }, want: Decision{GiveUp, settling, true}},
		"429, retries and a minute spent": {outcome: status(429, ""), history: tried, want: Decision{Step: GiveUp}},
		"lost, retries and minute spent":  {outcome: Outcome{Sent: 1}, history: tried, want: Decision{GiveUp, settling, true}},
		"429, only retries spent": {outcome: status(429, ""), history: func(h *History) { h.Attempts, h.FirstFailure = 9, now.Add(1-spread) },
			want: Decision{Step: Retry, Wait: wait}},
		"429, only a minute spent": {outcome: status(429, ""), history: func(h *History) { h.Attempts, h.FirstFailure = 3, now.Add(-time.Hour) },
			want: Decision{Step: Retry, Wait: wait}},
		"429, deadline before the retry": {outcome: status(429, ""), times: func(t *Times) { t.Deadline = now.Add(wait) }, want: Decision{Step: GiveUp}},
		"lost, deadline soon":            {outcome: Outcome{Sent: 1}, times: func(t *Times) { t.Deadline = now.Add(wait) }, want: Decision{GiveUp, 0, true}},
		"Retry-After of a minute":        {outcome: Outcome{StatusCode: 429, RetryAfter: time.Minute}, want: Decision{Step: Retry, Wait: wait}},
		"longer Retry-After":             {outcome: Outcome{StatusCode: 429, RetryAfter: time.Minute + 1}, want: Decision{Step: GiveUp}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := History{MaxRetries: 4}
			times := Times{Now: now, URLExpires: now.Add(time.Hour), Wait: wait}
			if test.history != nil {
				test.history(&h)
			}
			if test.times != nil {
				test.times(&times)
			}
			got, after := Decide(h, test.outcome, times)
			require.Equal(t, test.want, got)
			require.Equal(t, h.Attempts+1, after.Attempts)
		})
	}
}

func TestDecide_RemembersAttempts(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for name, test := range map[string]struct {
		outcome Outcome
		want    History
	}{
		"lost":              {Outcome{Sent: 1}, History{Arrived: true}},
		"never sent":        {Outcome{}, History{}},
		"502 to the body":   {Outcome{StatusCode: 502, Sent: 1}, History{Arrived: true}},
		"502 to the header": {Outcome{StatusCode: 502}, History{}},
		"429 to the body":   {Outcome{StatusCode: 429, Sent: 1}, History{}},
		"expired":           {Outcome{StatusCode: 400, Code: "ExpiredToken"}, History{Renewed: true}},
		"417":               {Outcome{StatusCode: 417}, History{WithoutExpect: true}},
	} {
		first := now.Add(-time.Second)
		test.want.MaxRetries, test.want.Attempts, test.want.FirstFailure = 4, 3, first
		_, got := Decide(History{MaxRetries: 4, Attempts: 2, FirstFailure: first}, test.outcome, Times{Now: now, URLExpires: now.Add(1)})
		assert.Equal(t, test.want, got, name)
	}
	_, got := Decide(History{}, Outcome{}, Times{Now: now})
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
