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
		"2xx":                             {outcome: status(204, ""), want: Decision{Stored, 0}},
		"2xx that proves nothing":         {outcome: Outcome{StatusCode: 200, Unproven: true}, want: Decision{Ask, settling}},
		"no response":                     {outcome: Outcome{Sent: 1}, want: Decision{Ask, settling}},
		"no response, after a longer 503": {outcome: Outcome{Sent: 1}, times: func(t *Times) { t.Wait = settling + 1 }, want: Decision{Ask, settling + 1}},
		"nothing sent":                    {outcome: Outcome{Err: testbase.ErrRefused}, want: Decision{Retry, wait}},
		"untrusted certificate":           {outcome: Outcome{Err: testbase.ErrUntrusted}, want: Decision{GiveUp, 0}},
		"unreadable recording":            {outcome: Outcome{Unreadable: true, Sent: 1}, want: Decision{GiveUp, 0}},
		"unreadable after a loss":         {outcome: Outcome{Unreadable: true}, history: arrived, want: Decision{AskLast, settling}},

		"408":                     {outcome: status(408, ""), want: Decision{Retry, wait}},
		"429":                     {outcome: status(429, "SlowDown"), want: Decision{Retry, wait}},
		"499":                     {outcome: status(499, ""), want: Decision{Retry, wait}},
		"500":                     {outcome: status(500, "InternalError"), want: Decision{Retry, wait}},
		"527":                     {outcome: status(527, ""), want: Decision{Retry, wait}},
		"RequestTimeout":          {outcome: status(400, "RequestTimeout"), want: Decision{Retry, wait}},
		"OperationAborted":        {outcome: status(409, "OperationAborted"), want: Decision{Retry, wait}},
		"IncompleteBody":          {outcome: status(400, "IncompleteBody"), want: Decision{Retry, wait}},
		"417":                     {outcome: status(417, ""), want: Decision{Retry, wait}},
		"417 without Expect":      {outcome: status(417, ""), history: func(h *History) { h.WithoutExpect = true }, want: Decision{GiveUp, 0}},
		"400":                     {outcome: status(400, "InvalidDigest"), want: Decision{GiveUp, 0}},
		"403":                     {outcome: status(403, "AccessDenied"), want: Decision{GiveUp, 0}},
		"403 after a loss":        {outcome: status(403, "AccessDenied"), history: arrived, want: Decision{AskLast, settling}},
		"403, shared":             {outcome: status(403, "AccessDenied"), history: shared, want: Decision{AskLast, settling}},
		"untrusted, shared":       {outcome: Outcome{Err: testbase.ErrUntrusted}, history: shared, want: Decision{GiveUp, 0}},
		"307":                     {outcome: status(307, ""), want: Decision{GiveUp, 0}},
		"expired":                 {outcome: Outcome{StatusCode: 403, Message: "Request has expired"}, want: Decision{Renew, wait}},
		"ExpiredToken":            {outcome: status(400, "ExpiredToken"), want: Decision{Renew, wait}},
		"403 to an expired URL":   {outcome: status(403, ""), times: func(t *Times) { t.URLExpires = now }, want: Decision{Renew, wait}},
		"404 that says expired":   {outcome: status(404, "Expired"), want: Decision{GiveUp, 0}},
		"expired again":           {outcome: status(400, "ExpiredToken"), history: func(h *History) { h.Renewed = true }, want: Decision{GiveUp, 0}},
		"503, URL expires before": {outcome: status(503, ""), times: func(t *Times) { t.URLExpires = now.Add(wait) }, want: Decision{Renew, wait}},

		"503, no retries":                 {outcome: status(503, ""), history: func(h *History) { h.MaxRetries = 0 }, want: Decision{AskLast, settling}},
		"429, no retries":                 {outcome: status(429, ""), history: func(h *History) { h.MaxRetries = 0 }, want: Decision{GiveUp, 0}},
		"lost, no retries":                {outcome: Outcome{Sent: 1}, history: func(h *History) { h.MaxRetries = 0 }, want: Decision{AskLast, settling}},
		"429, retries and a minute spent": {outcome: status(429, ""), history: tried, want: Decision{GiveUp, 0}},
		"lost, retries and minute spent":  {outcome: Outcome{Sent: 1}, history: tried, want: Decision{AskLast, settling}},
		"429, only retries spent": {outcome: status(429, ""), history: func(h *History) { h.Attempts, h.FirstFailure = 9, now.Add(1-spread) },
			want: Decision{Retry, wait}},
		"429, only a minute spent": {outcome: status(429, ""), history: func(h *History) { h.Attempts, h.FirstFailure = 3, now.Add(-time.Hour) },
			want: Decision{Retry, wait}},
		"429, deadline before the retry": {outcome: status(429, ""), times: func(t *Times) { t.Deadline = now.Add(wait) }, want: Decision{GiveUp, 0}},
		"lost, deadline soon":            {outcome: Outcome{Sent: 1}, times: func(t *Times) { t.Deadline = now.Add(wait) }, want: Decision{AskLast, 0}},
		"Retry-After of a minute":        {outcome: Outcome{StatusCode: 429, RetryAfter: time.Minute}, want: Decision{Retry, wait}},
		"longer Retry-After":             {outcome: Outcome{StatusCode: 429, RetryAfter: time.Minute + 1}, want: Decision{GiveUp, 0}},
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
			require.Equal(t, got.Step == Retry || got.Step == Renew || got.Step == Ask, got.Retries())
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
