package minutes

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/backoff"
	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// polled makes the poller's requests: it implements poll.Service here and poll.Observer in
// observe.go.
type polled struct{ core *core }

// Poll makes one GET of a meeting.
func (p polled) Poll(ctx context.Context, id string, wanted func() bool) (poll.Snapshot, time.Duration, *poll.Failure) {
	m, resp, err := doResponse[Meeting](ctx, p.core, rest.Request{Operation: route.MeetingsGet, ID: id, Once: true, Wanted: wanted})
	if err != nil {
		return poll.Snapshot{}, 0, failureOf(err)
	}
	seconds := uint64(0)
	if found := maxAge.FindStringSubmatch(resp.Header.Get("Cache-Control")); found != nil {
		seconds, _ = strconv.ParseUint(found[1], 10, 31) // out of range: the largest number
	}
	interval := time.Duration(seconds) * time.Second
	p.core.maxAge.Store(int64(min(interval, 5*time.Minute)))
	return snapshotOf(m), interval, nil
}

var maxAge = regexp.MustCompile(`(?i)(?:^|,)\s*max-age\s*=\s*"?([0-9]+)`)

// Page makes one GET of a page of the listing.
func (p polled) Page(ctx context.Context, cursor string, wanted func() bool) ([]poll.Snapshot, string, *poll.Failure) {
	params := &MeetingListParams{Limit: maxLimit, Cursor: cursor}
	page, err := do[MeetingPage](ctx, p.core, rest.Request{Operation: route.MeetingsList, Query: params, Once: true, Wanted: wanted})
	if err != nil {
		return nil, "", failureOf(err)
	}
	shown := make([]poll.Snapshot, len(page.Meetings))
	for i, m := range page.Meetings {
		shown[i] = snapshotOf(m)
	}
	return shown, page.NextCursor, nil
}

// snapshotOf returns a snapshot for the poller. The poller keeps m.
func snapshotOf(m *Meeting) poll.Snapshot {
	return poll.Snapshot{ID: m.ID, State: string(m.Status), Final: m.Status.Final(), Value: m,
		Created: int64(m.CreatedAt), Updated: int64(m.UpdatedAt)}
}

// meetingOf returns a copy of the meeting in a snapshot, or nil.
func meetingOf(s poll.Snapshot) *Meeting {
	if m, ok := s.Value.(*Meeting); ok {
		return m.clone()
	}
	return nil
}

// failureOf returns what an error means to a wait. Only a code of the service can end a wait. An
// *Error without a Code is temporary: the response was lost, invalid or a proxy's. The Code may
// also be that of an earlier attempt, if the last one had no connection.
func failureOf(err error) *poll.Failure {
	f := &poll.Failure{Err: err, RateLimited: errors.Is(err, ErrRateLimited)}
	if e, ok := errors.AsType[*Error](err); ok {
		f.RetryAfter, f.KeyRejected = e.RetryAfter, e.Code != "" && KeyRejected(err)
		f.Transient = e.Code == "" || Retryable(err) || backoff.Permanent(err)
	}
	return f
}
