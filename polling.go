package minutes

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// polled makes the poller's requests: it implements poll.Service here and poll.Observer
// in observe.go.
type polled struct{ core *core }

// Poll makes one GET of a meeting.
func (p polled) Poll(ctx context.Context, id string, wanted func() bool) (poll.Snapshot, time.Duration, *poll.Failure) {
	m, resp, err := doResponse[Meeting](ctx, p.core, rest.Request{Operation: route.MeetingsGet, ID: id, Once: true, Wanted: wanted})
	if err != nil {
		return poll.Snapshot{}, 0, failureOf(err)
	}
	seconds := uint64(0)
	if found := maxAge.FindStringSubmatch(resp.Header.Get("Cache-Control")); found != nil {
		seconds, _ = strconv.ParseUint(found[1], 10, 31) // if it is out of range, the largest number
	}
	return snapshotOf(m), time.Duration(seconds) * time.Second, nil
}

var maxAge = regexp.MustCompile(`(?i)(?:^|,)\s*max-age\s*=\s*"?([0-9]+)`)

// Page makes one GET of a page of the listing.
func (p polled) Page(ctx context.Context, cursor string) ([]poll.Snapshot, string, *poll.Failure) {
	params := &MeetingListParams{Limit: maxLimit, Cursor: cursor}
	page, err := do[MeetingPage](ctx, p.core, rest.Request{Operation: route.MeetingsList, Query: params, Once: true})
	if err != nil {
		return nil, "", failureOf(err)
	}
	shown := make([]poll.Snapshot, len(page.Meetings))
	for i, m := range page.Meetings {
		shown[i] = snapshotOf(m)
	}
	return shown, page.NextCursor, nil
}

// snapshotOf returns a snapshot for the poller, which keeps m.
func snapshotOf(m *Meeting) poll.Snapshot {
	return poll.Snapshot{ID: m.ID, State: string(m.Status), Final: m.Status.Final(), Value: m}
}

// meetingOf returns a copy of the meeting in a snapshot, or nil.
func meetingOf(s poll.Snapshot) *Meeting {
	if m, ok := s.Value.(*Meeting); ok {
		return m.clone()
	}
	return nil
}

// failureOf says what a failed request means to a wait. It is transient if there was no
// response, the response makes no sense, or the service or something in front of it has a
// fault. A failure that is neither Transient nor RateLimited ends the wait.
func failureOf(err error) *poll.Failure {
	f := &poll.Failure{Err: err, RateLimited: errors.Is(err, ErrRateLimited)}
	if e, ok := errors.AsType[*Error](err); ok {
		f.RetryAfter = min(e.RetryAfter, 5*time.Minute)
		permanent := KeyRefused(err) || backoff.Permanent(err)
		f.Transient = !permanent && (e.Code == "" && e.StatusCode != http.StatusForbidden || Retryable(err))
	}
	return f
}
