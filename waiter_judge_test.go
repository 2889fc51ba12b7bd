package minutes

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// A status ends a wait if it is the goal, a later one in the normal order, or a failure.
func TestJudge_Status(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		until, status Status
		want          verdict
	}{
		"early":             {StatusMinutesReady, StatusTranscribing, goOn},
		"the status":        {StatusMinutesReady, StatusMinutesReady, done},
		"the first status":  {StatusCreated, StatusCreated, done},
		"a later status":    {StatusTranscribing, StatusGeneratingMinutes, done},
		"an earlier status": {StatusTranscribing, StatusAudioUploaded, goOn},
		"an unknown status": {StatusCreated, "being_translated", goOn},
		"no audio for ever": {StatusMinutesReady, StatusCreated, goOn},
	} {
		m := &Meeting{ID: "mtg_1", Status: test.status}
		g := goal{until: test.until}
		got, err := g.judge(poll.Snapshot[*Meeting]{Meeting: m}, time.Now())
		require.Equal(t, test.want, got, name)
		require.NoError(t, err, name)
	}
}

// A failure status satisfies each Until that the meeting has certainly passed before, because a faster
// poll would have seen that. Otherwise it is an error.
func TestJudge_FailureStatus(t *testing.T) {
	t.Parallel()
	for status, satisfied := range map[Status]int{ // how many statuses of the happy path
		StatusTranscribeBlocked: 1, StatusAudioRejected: 1, StatusTranscriptionFailed: 3, StatusMinutesFailed: 5,
	} {
		for i, until := range happyPath {
			m := &Meeting{ID: "mtg_1", Status: status}
			g := goal{until: until}
			got, err := g.judge(poll.Snapshot[*Meeting]{Meeting: m}, time.Now())
			require.Equal(t, done, got)
			if i < satisfied {
				require.NoError(t, err, "%s after %s", status, until)
			} else {
				require.Equal(t, &MeetingFailedError{MeetingID: "mtg_1", Status: status, Meeting: m}, err)
			}
		}
	}
}

// Only a GET that was sent after the limit proves that there is no audio.
func TestJudge_AudioTimeout(t *testing.T) {
	t.Parallel()
	created := time.Unix(1_800_000_000, 0)
	early := created.Add(time.Hour - time.Second)
	late := created.Add(time.Hour)
	timeout := goal{until: StatusMinutesReady, audioTimeout: time.Hour}
	noAudio := goal{until: StatusCreated, audioTimeout: time.Hour}
	instant := goal{until: StatusMinutesReady, audioBy: late}
	for name, test := range map[string]struct {
		goal      goal
		status    Status
		page      bool
		sent, now time.Time
		want      verdict
	}{
		"before the limit":        {timeout, StatusCreated, false, early, early, goOn},
		"sent before the limit":   {timeout, StatusCreated, false, early, late, askAgain},
		"sent at the limit":       {timeout, StatusCreated, false, late, late, done},
		"on a page":               {timeout, StatusCreated, true, late, late, askAgain},
		"on a page, early":        {timeout, StatusCreated, true, early, early, goOn},
		"audio":                   {timeout, StatusAudioUploaded, false, late, late, goOn},
		"an instant, before":      {instant, StatusCreated, false, early, early, goOn},
		"an instant, sent before": {instant, StatusCreated, false, early, late, askAgain},
		"an instant, sent at it":  {instant, StatusCreated, false, late, late, done},
		"no limit":                {goal{until: StatusMinutesReady}, StatusCreated, false, late, late, goOn},
		"a status yet unknown":    {timeout, "scheduled", false, late, late, goOn},
		"the goal needs no audio": {noAudio, StatusCreated, false, late, late, done},
	} {
		m := &Meeting{ID: "mtg_1", Status: test.status, CreatedAt: UnixTime(created.Unix())}
		s := poll.Snapshot[*Meeting]{Meeting: m, Page: test.page, Sent: poll.Sent{At: test.sent}}
		got, err := test.goal.judge(s, test.now)
		require.Equal(t, test.want, got, name)
		require.Equal(t, test.want == done && test.goal.until != StatusCreated, errors.Is(err, ErrNoAudio), name)
	}
}

// A fetch goes on after what never ends a wait, and ends after ten minutes of nothing but foreign
// failures.
func TestFetchFailures_DecideByKind(t *testing.T) {
	t.Parallel()
	later := &Error{StatusCode: 409, Code: ErrMinutesNotReady}
	limited := &Error{StatusCode: 429}
	broken := &Error{StatusCode: 503, RetryAfter: 2 * time.Minute}
	lost := &Error{Err: io.EOF}
	foreign := &Error{StatusCode: 403}
	noKey := &Error{Err: &rest.KeyError{Err: io.EOF}}
	const minute = time.Minute
	type failure struct {
		after time.Duration // the one before
		err   error
	}
	for name, test := range map[string]struct {
		failures []failure
		again    bool
	}{
		"not ready for hours":               {[]failure{{0, later}, {5 * time.Hour, later}}, true},
		"a transcript that is not ready":    {[]failure{{0, &Error{Code: ErrTranscriptNotReady}}}, true},
		"limited for hours":                 {[]failure{{0, limited}, {5 * time.Hour, limited}}, true},
		"down for hours":                    {[]failure{{0, broken}, {5 * time.Hour, broken}}, true},
		"foreign, for less than ten":        {[]failure{{0, foreign}, {9 * minute, foreign}}, true},
		"foreign, for ten minutes":          {[]failure{{0, foreign}, {9 * minute, foreign}, {minute, foreign}}, false},
		"down for long, then foreign once":  {[]failure{{0, broken}, {12 * minute, broken}, {minute, foreign}}, true},
		"foreign, then down, then foreign":  {[]failure{{0, foreign}, {9 * minute, broken}, {minute, foreign}}, true},
		"foreign, then lost, then foreign":  {[]failure{{0, foreign}, {9 * minute, lost}, {minute, foreign}}, true},
		"foreign, then ready, then foreign": {[]failure{{0, foreign}, {9 * minute, later}, {minute, foreign}}, true},
		"foreign, then a 429, then foreign": {[]failure{{0, foreign}, {9 * minute, limited}, {minute, foreign}}, true},
		"rejected":                          {[]failure{{0, &Error{StatusCode: 403, Code: ErrForbidden}}}, false},
		"the key":                           {[]failure{{0, &Error{StatusCode: 401, Code: ErrUnauthenticated}}}, false},
		"no key, for less than ten":         {[]failure{{0, noKey}, {9 * minute, noKey}}, true},
		"no key, for ten minutes":           {[]failure{{0, noKey}, {9 * minute, noKey}, {minute, noKey}}, false},
	} {
		var f fetchFailures
		now := time.Unix(1_800_000_000, 0)
		again := true
		for _, failed := range test.failures {
			require.True(t, again, name)
			now = now.Add(failed.after)
			_, again = f.next(failed.err, false, now)
		}
		require.Equal(t, test.again, again, name)
	}
	f := fetchFailures{patience: 10 * time.Minute}
	now := time.Now()
	for after, again := range map[time.Duration]bool{0: true, 9 * time.Minute: true, 10 * time.Minute: false} {
		f.since = now.Add(-after)
		for _, err := range []error{later, broken, limited, foreign} {
			_, goesOn := f.next(err, false, now)
			require.Equal(t, again, goesOn, "%v after %v", err, after)
		}
	}
	f = fetchFailures{}
	for range 10 {
		wait, _ := f.next(later, false, time.Now())
		require.Equal(t, poll.Interval, wait)
	}
	wait, _ := f.next(&Error{StatusCode: 500}, false, time.Now())
	require.LessOrEqual(t, wait, time.Second, "soon after the first failure")
	wait, _ = f.next(broken, false, time.Now())
	require.GreaterOrEqual(t, wait, 2*time.Minute, "Retry-After")
	require.LessOrEqual(t, wait, 3*time.Minute)
	wait, _ = f.next(&Error{StatusCode: 503, RetryAfter: time.Hour}, false, time.Now())
	require.LessOrEqual(t, wait, 6*time.Minute, "at most five minutes of it")
	_, again := new(fetchFailures).next(&Error{StatusCode: 404, Code: ErrNotFound}, true, time.Now())
	require.True(t, again, "of a meeting that was just shown")
}
