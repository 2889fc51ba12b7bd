package storage

import (
	"cmp"
	"strings"
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

	retry := Decision{Step: Retry, Delay: time.Second}
	renew := Decision{Step: Renew, Delay: time.Second}
	in := func(d time.Duration) time.Time { return now.Add(d) }
	pollAndRenew := Decision{Step: Renew, Delay: 5 * time.Second, AudioBy: in(5 * time.Second)}
	giveUp := Decision{Step: GiveUp}
	pollAndGiveUp := Decision{Step: GiveUp, Delay: 5 * time.Second, AudioBy: in(5 * time.Second)}
	pollForAMinute := Decision{Step: GiveUp, Delay: 5 * time.Second, AudioBy: in(time.Minute)}

	const size = 2
	atHead := func(n int, code string) Outcome { return Outcome{StatusCode: n, Code: code} }
	toWhole := func(n int, code ...string) Outcome {
		return Outcome{StatusCode: n, Code: strings.Join(code, ""), Sent: size}
	}
	wholes := func(n int) func(*State) { return func(s *State) { s.Whole = n } }
	rejected := func(s *State) { s.Rejected = true }
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
	both := func(one, other func(*State)) func(*State) {
		return func(s *State) {
			one(s)
			other(s)
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
		{"2xx that proves nothing", Outcome{StatusCode: 200, Message: "early"}, nil, pollAndRenew},
		{"no response", lost, nil, pollAndRenew},
		{"nothing sent", Outcome{Err: testbase.ErrRefused}, nil, retry},
		{"untrusted certificate", untrusted, nil, giveUp},
		{"unreadable recording", unreadable, nil, giveUp},
		{"unreadable after a loss", unreadable, arrived, pollForAMinute},

		{"408", status(408, ""), nil, renew},
		{"429", status(429, "SlowDown"), nil, renew},
		{"499", status(499, ""), nil, renew},
		{"500", status(500, "InternalError"), nil, renew},
		{"527", status(527, ""), nil, renew},
		{"RequestTimeout", status(400, "RequestTimeout"), nil, renew},
		{"IncompleteBody", status(400, "IncompleteBody"), nil, renew},
		{"ClientDisconnect", status(400, "ClientDisconnect"), nil, renew},
		{"OperationAborted", status(409, "OperationAborted"), nil, renew},
		{"ConditionalRequestConflict", status(409, "ConditionalRequestConflict"), nil, renew},
		{"417", status(417, ""), nil, renew},
		{"417 without Expect", status(417, ""), withoutExpect, giveUp},
		{"400", status(400, "InvalidDigest"), nil, giveUp},
		{"403", status(403, "AccessDenied"), nil, giveUp},

		// Bytes of the recording may have used up the URL.
		{"429 to the head", atHead(429, "SlowDown"), nil, retry},
		{"500 to the head", atHead(500, "InternalError"), nil, retry},
		{"417 to the head", atHead(417, ""), nil, retry},

		// Another attempt or worker may have used the URL, so only a second rejection is final, and only
		// if no audio appears.
		{"403 after a loss", status(403, "AccessDenied"), arrived, pollAndRenew},
		{"403, shared", status(403, "AccessDenied"), shared, pollAndRenew},
		{"401, shared", status(401, ""), shared, pollAndRenew},
		{"409, shared", status(409, "FileAlreadyExists"), shared, pollAndRenew},
		{"412, shared", status(412, "PreconditionFailed"), shared, pollAndRenew},
		{"400, shared", status(400, "InvalidDigest"), shared, pollAndGiveUp},
		{"404, shared", status(404, "NoSuchBucket"), shared, pollAndGiveUp},
		{"409 that may pass, shared", status(409, "OperationAborted"), shared, renew},
		{"403, shared, no retries", status(403, ""), both(shared, noRetries), pollAndGiveUp},
		{"403 again, shared", status(403, ""), both(shared, rejected), pollForAMinute},
		{"403 again after a loss", status(403, ""), both(arrived, rejected), pollForAMinute},
		{"403 again after most of a minute", status(403, ""), func(s *State) {
			shared(s)
			rejected(s)
			failing(4, 58*time.Second)(s)
		}, pollAndGiveUp},

		// The recording is sent whole three times at most, and the last time not before a minute has passed.
		{"503 to the whole", toWhole(503), nil, renew},
		{"503 to the second whole", toWhole(503), wholes(1), Decision{Step: Renew, Delay: time.Minute}},
		{"503 after the second whole", atHead(503, ""), wholes(2), Decision{Step: Retry, Delay: time.Minute}},
		{"503 to the third whole", toWhole(503), wholes(2), pollForAMinute},
		{"skewed, the third whole", toWhole(403, "RequestTimeTooSkewed"), wholes(2), giveUp},
		{"the second whole lost", Outcome{Sent: size}, wholes(1),
			Decision{Step: Renew, Delay: 5 * time.Second, AudioBy: in(time.Minute)}},
		{"the second whole lost, a minute ago", Outcome{Sent: size}, func(s *State) {
			wholes(1)(s)
			failing(2, time.Minute)(s)
		}, pollAndRenew},
		{"503 to the second whole, a minute ago", toWhole(503), func(s *State) {
			wholes(1)(s)
			failing(2, time.Minute)(s)
		}, renew},
		{"503 to the second whole, deadline soon", toWhole(503), func(s *State) {
			wholes(1)(s)
			deadlineIn(30 * time.Second)(s)
		}, renew},
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
		{"403 to an expired URL, shared", status(403, ""), both(shared, expired), renew},
		{"Swift: 401 to an expired URL", status(401, ""), expired, renew},
		{"401", status(401, ""), nil, giveUp},
		{"expired again", status(400, "ExpiredToken"), failing(2, time.Second), renew},
		{"expired for a minute", status(400, "ExpiredToken"), failing(5, time.Minute), giveUp},

		// Attempts and time.
		{"503, no retries", status(503, ""), noRetries, pollAndGiveUp},
		{"429 to the head, no retries", atHead(429, ""), noRetries, giveUp},
		{"429 to the body, no retries", status(429, ""), noRetries, pollAndGiveUp},
		{"lost, no retries", lost, noRetries, pollAndGiveUp},
		{"429, retries and a minute spent", atHead(429, ""), failing(5, time.Minute), giveUp},
		{"lost, retries and a minute spent", lost, failing(5, time.Minute), pollAndGiveUp},
		{"429, only retries spent", status(429, ""), failing(10, 59*time.Second), renew},
		{"429, only a minute spent", status(429, ""), failing(4, time.Hour), renew},
		{"503, storage takes others", status(503, ""), func(s *State) {
			failing(9, time.Hour)(s)
			s.LastStored = now.Add(-59 * time.Second)
		}, renew},
		{"503, storage took others before", status(503, ""), func(s *State) {
			failing(9, time.Hour)(s)
			s.LastStored = now.Add(-time.Minute)
		}, pollAndGiveUp},
		{"500, storage takes others", status(500, ""), func(s *State) {
			failing(9, time.Hour)(s)
			s.LastStored = now
		}, pollAndGiveUp},
		{"429, deadline before the retry", atHead(429, ""), deadlineIn(time.Second), giveUp},
		{"429, deadline after the retry", status(429, ""), deadlineIn(time.Second + 1), renew},
		{"lost, deadline soon", lost, deadlineIn(time.Second), Decision{Step: GiveUp, AudioBy: now}},
		{"Retry-After of a minute", Outcome{StatusCode: 429, RetryAfter: time.Minute}, nil, retry},
		{"longer Retry-After", Outcome{StatusCode: 429, RetryAfter: time.Minute + 1}, nil, giveUp},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := State{Size: size, MaxRetries: 4, URLExpires: now.Add(time.Hour)}
			if test.state != nil {
				test.state(&s)
			}
			got, after := Decide(s, test.outcome, now, time.Second)
			require.Equal(t, test.want, got)
			require.Equal(t, s.Attempts+1, after.Attempts)
		})
	}
	got, _ := Decide(State{MaxRetries: 4}, lost, now, 6*time.Second)
	want := Decision{Step: Renew, Delay: 6 * time.Second, AudioBy: in(5 * time.Second)}
	require.Equal(t, want, got, "the longer of two delays counts")
}

func TestDecide_RemembersAttempts(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	first := now.Add(-time.Second)
	shared := State{Shared: true}
	for _, test := range []struct {
		name    string
		outcome Outcome
		before  State
		want    State // without the fields of before
	}{
		{"lost", Outcome{Sent: 1}, State{}, State{MayHaveArrived: true}},
		{"never sent", Outcome{}, State{}, State{}},
		{"unreadable", Outcome{Sent: 1, Err: ErrUnreadable}, State{}, State{}},
		{"499 to the body", Outcome{StatusCode: 499, Sent: 1}, State{}, State{MayHaveArrived: true}},
		{"503 to the header", Outcome{StatusCode: 503}, State{}, State{}},
		{"429 to the body", Outcome{StatusCode: 429, Sent: 1}, State{}, State{MayHaveArrived: true}},
		{"400 to the body", Outcome{StatusCode: 400, Sent: 1}, State{}, State{}},
		{"400 to the whole", Outcome{StatusCode: 400, Sent: 2}, State{}, State{Whole: 1}},
		{"expired", Outcome{StatusCode: 400, Code: "ExpiredToken"}, State{}, State{}},
		{"403", Outcome{StatusCode: 403}, State{}, State{}},
		{"403, shared", Outcome{StatusCode: 403}, shared, State{Rejected: true}},
		{"403 to an expired URL, shared", Outcome{StatusCode: 403}, State{Shared: true, URLExpires: now}, State{}},
		{"503 after a 403, shared", Outcome{StatusCode: 503},
			State{Shared: true, Rejected: true}, State{Rejected: true}},
		{"stored", Outcome{StatusCode: 200, Sent: 2}, State{}, State{}},
	} {
		before := test.before
		before.Size = 2
		before.MaxRetries = 4
		before.Attempts = 2
		before.FirstFailure = first
		before.URLExpires = cmp.Or(before.URLExpires, now.Add(time.Hour))
		want := before
		want.Attempts = 3
		want.MayHaveArrived = test.want.MayHaveArrived
		want.Whole = test.want.Whole
		want.Rejected = test.want.Rejected
		_, got := Decide(before, test.outcome, now, 0)
		assert.Equal(t, want, got, test.name)
	}
	_, got := Decide(State{}, Outcome{}, now, 0)
	require.Equal(t, now, got.FirstFailure)
}

// An attempt omits the header Expect once the header was blamed. If a gateway fails for no stated reason,
// only the second attempt omits it.
func TestDecide_OmitsExpect(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	const undici = `the response is not an XML error of storage: gateway sent "expect header not supported"`
	const page = `the response is not an XML error of storage: gateway sent "Bad Gateway"`
	blamed := Outcome{StatusCode: 417}
	failed := Outcome{StatusCode: 502, Message: page}
	for name, test := range map[string]struct {
		outcomes []Outcome
		omits    []bool // after each of them
	}{
		"417":                       {[]Outcome{blamed, {}, {StatusCode: 503}}, []bool{true, true, true}},
		"417 later":                 {[]Outcome{{}, blamed}, []bool{false, true}},
		"undici behind fastify":     {[]Outcome{{StatusCode: 500, Message: undici}, {}}, []bool{true, true}},
		"undici behind a gateway":   {[]Outcome{{}, {StatusCode: 502, Message: undici}}, []bool{false, true}},
		"a gateway for a while":     {[]Outcome{failed, failed, failed}, []bool{true, false, false}},
		"a gateway later":           {[]Outcome{{}, failed}, []bool{false, false}},
		"503":                       {[]Outcome{{StatusCode: 503, Message: page}}, []bool{false}},
		"500 of storage":            {[]Outcome{{StatusCode: 500, Code: "InternalError"}}, []bool{false}},
		"a page of a 2xx":           {[]Outcome{{StatusCode: 200, Message: undici}}, []bool{false}},
		"something else unexpected": {[]Outcome{{StatusCode: 503, Message: "unexpected EOF"}}, []bool{false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := State{MaxRetries: 4}
			for i, o := range test.outcomes {
				_, s = Decide(s, o, now, 0)
				require.Equal(t, test.omits[i], s.WithoutExpect, i)
			}
		})
	}
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
