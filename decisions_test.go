package minutes

import (
	"crypto/tls"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/poll"
)

// A wait judges each snapshot against its goal.
func TestGoal_JudgesSnapshots(t *testing.T) {
	t.Parallel()
	created := time.Unix(1_000_000, 0)
	at := func(after time.Duration) time.Time { return created.Add(after) }
	until := func(s Status) goal { return goal{WaitOptions: WaitOptions{Until: s}} }
	ready, asked := until(StatusMinutesReady), until(StatusAudioUploaded)
	limited, processed := ready, ready
	limited.AudioTimeout, processed.audioBy, asked.askedSince = time.Hour, at(2*time.Hour), at(time.Hour)
	for name, test := range map[string]struct {
		goal    goal
		status  Status
		sent    time.Duration // after the creation; judged a second later
		page    bool
		over    bool
		confirm bool
		err     error
	}{
		"early":                           {goal: ready, status: StatusTranscribing},
		"the status":                      {goal: ready, status: StatusMinutesReady, over: true},
		"the status, on a page":           {goal: ready, status: StatusMinutesReady, page: true, over: true},
		"the first status":                {goal: until(StatusCreated), status: StatusCreated, over: true},
		"a later status":                  {goal: until(StatusTranscribing), status: StatusGeneratingMinutes, over: true},
		"an earlier status":               {goal: until(StatusTranscribing), status: StatusAudioUploaded},
		"an unknown status":               {goal: until(StatusCreated), status: "being_translated"},
		"a failure":                       {goal: ready, status: StatusMinutesFailed, over: true, err: errAny},
		"a failure, on a page":            {goal: until(StatusCreated), status: StatusAudioRejected, page: true, over: true, err: errAny},
		"no audio for ever":               {goal: ready, status: StatusCreated, sent: 1000 * time.Hour},
		"no audio yet":                    {goal: limited, status: StatusCreated, sent: time.Hour - 2*time.Second},
		"no audio, sent before the limit": {goal: limited, status: StatusCreated, sent: time.Hour - time.Second, confirm: true},
		"no audio":                        {goal: limited, status: StatusCreated, sent: time.Hour, over: true, err: ErrNoAudio},
		"no audio, on a page":             {goal: limited, status: StatusCreated, sent: 2 * time.Hour, page: true, confirm: true},
		"no audio after an upload, yet":   {goal: processed, status: StatusCreated, sent: time.Hour},
		"no audio after an upload":        {goal: processed, status: StatusCreated, sent: 2 * time.Hour, over: true, err: ErrNoAudio},
		"audio, after the limit":          {goal: limited, status: StatusAudioUploaded, sent: 2 * time.Hour},
		"asked, and the answer":           {goal: asked, status: StatusCreated, sent: time.Hour, over: true},
		"asked, but an older poll":        {goal: asked, status: StatusCreated, sent: time.Hour - 1, confirm: true},
		"asked, but a page":               {goal: asked, status: StatusCreated, sent: 2 * time.Hour, page: true, confirm: true},
		"asked, and a page with audio":    {goal: asked, status: StatusTranscribing, page: true, over: true},
	} {
		m := &Meeting{ID: "mtg_1", Status: test.status, CreatedAt: UnixTime(created.Unix())}
		s := snapshotOf(m)
		s.SentAt, s.Page = at(test.sent), test.page
		over, confirm, err := test.goal.judge(s, at(test.sent+time.Second))
		require.Equal(t, test.over, over, name)
		require.Equal(t, test.confirm, confirm, name)
		failed, isFailed := errors.AsType[*MeetingFailedError](err)
		require.Equal(t, errors.Is(test.err, errAny), isFailed, name)
		if isFailed {
			require.Equal(t, &MeetingFailedError{MeetingID: "mtg_1", Status: test.status, Meeting: m}, failed, name)
		} else {
			require.ErrorIs(t, err, test.err, name)
		}
	}
}

var errAny = errors.New("a *MeetingFailedError")

// A failed poll ends a wait at once, after ten minutes, or never.
func TestFailureOf_ClassifiesErrors(t *testing.T) {
	t.Parallel()
	untrusted := &tls.CertificateVerificationError{Err: errors.New("who is that?")}
	for name, test := range map[string]struct {
		err  error
		want poll.Kind
	}{
		"429":                               {&Error{StatusCode: 429, Code: ErrRateLimited}, poll.RateLimited},
		"500":                               {&Error{StatusCode: 500, Code: ErrInternal}, poll.Transient},
		"502 of a proxy":                    {&Error{StatusCode: 502}, poll.Transient},
		"408":                               {&Error{StatusCode: 408, Code: "SLOW"}, poll.Transient},
		"lost connection":                   {&Error{Err: io.EOF}, poll.Transient},
		"certificate":                       {&Error{Err: untrusted}, poll.Passing},
		"certificate, after a 500":          {&Error{StatusCode: 500, Code: ErrInternal, Err: untrusted}, poll.Passing},
		"redirect":                          {&Error{StatusCode: 302}, poll.Passing},
		"401 of a proxy":                    {&Error{StatusCode: 401}, poll.Passing},
		"403 of a proxy":                    {&Error{StatusCode: 403}, poll.Passing},
		"404 of a proxy":                    {&Error{StatusCode: 404}, poll.Passing},
		"a response that does not match":    {&Error{StatusCode: 200}, poll.Passing},
		"rejected":                          {&Error{StatusCode: 400, Code: ErrBadRequest}, poll.Rejected},
		"gone":                              {&Error{StatusCode: 404, Code: ErrNotFound}, poll.Rejected},
		"a code of a later interface":       {&Error{StatusCode: 410, Code: "GONE"}, poll.Rejected},
		"a scope that the key lacks":        {&Error{StatusCode: 403, Code: ErrInsufficientScope}, poll.Rejected},
		"the key":                           {&Error{StatusCode: 401, Code: ErrUnauthenticated}, poll.KeyRejected},
		"the organisation":                  {&Error{StatusCode: 403, Code: ErrOrganisationSuspended}, poll.KeyRejected},
		"a request that could not be built": {&ParamError{Param: "id"}, poll.Rejected},
	} {
		require.Equal(t, test.want, failureOf(test.err).Kind, name)
	}
	require.Equal(t, time.Hour, failureOf(&Error{StatusCode: 503, RetryAfter: time.Hour}).RetryAfter)
}

// How long Cache-Control asks not to poll again.
func TestMaxAgeOf_ReadsCacheControl(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"": 0, "no-store": 0, "max-age=-5": 0, "max-age=soon": 0,
		"private, max-age=120": 2 * time.Minute, "max-age=120, private": 2 * time.Minute, `Max-Age = "120"`: 2 * time.Minute,
		"s-maxage=200,max-age=120": 2 * time.Minute, "max-age=99999999999999999999": (1<<31 - 1) * time.Second,
	} {
		require.Equal(t, want, maxAgeOf(header), header)
	}
}
