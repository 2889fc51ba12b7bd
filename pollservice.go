package minutes

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// polled makes the poller's two requests: it implements poll.Service.
type polled struct{ core *core }

// Get asks for one meeting.
func (p polled) Get(ctx context.Context, id string, send func() bool) (snapshot, time.Duration, *poll.Failure) {
	in := rest.Request{Operation: route.MeetingsGet, ID: id, Background: true, Send: send}
	m, resp, err := doResponse[Meeting](ctx, p.core, in)
	if err != nil {
		return snapshot{}, 0, failureOf(err)
	}
	return snapshotOf(m), maxAgeOf(resp.Header.Get("Cache-Control")), nil
}

// Page asks for one list page.
func (p polled) Page(ctx context.Context, cursor string, send func() bool) ([]snapshot, string, *poll.Failure) {
	params := &MeetingListParams{Limit: maxLimit, Cursor: cursor}
	page, err := do[MeetingPage](ctx, p.core, rest.Request{Operation: route.MeetingsList, Query: params, Background: true, Send: send})
	if err != nil {
		return nil, "", failureOf(err)
	}
	shown := make([]snapshot, len(page.Meetings))
	for i, m := range page.Meetings {
		shown[i] = snapshotOf(m)
	}
	return shown, page.NextCursor, nil
}

// snapshotOf returns a snapshot for the poller, which keeps m. The poller knows when it sent its own
// requests, so it sets SentAt.
func snapshotOf(m *Meeting) snapshot {
	return snapshot{ID: m.ID, Final: m.Status.Final(), Idle: m.Status == StatusCreated, Meeting: m,
		Created: m.CreatedAt.Time(), Updated: m.UpdatedAt.Time()}
}

// record tells the poller what a response to the user's own request shows, which began at the given
// time. It is older than a question that is asked after it, even if both have the same time, as they
// may in a test's virtual time.
func (c *core) record(m *Meeting, began time.Time) {
	s := snapshotOf(m.clone())
	s.SentAt = began.Add(-1)
	c.poller.Record(s)
}

var maxAge = regexp.MustCompile(`(?i)(?:^|,)\s*max-age\s*=\s*"?([0-9]+)`)

// maxAgeOf returns how long the service asks not to poll a meeting again. 0 means that it does not
// say.
func maxAgeOf(cacheControl string) time.Duration {
	found := maxAge.FindStringSubmatch(cacheControl)
	if found == nil {
		return 0
	}
	seconds, _ := strconv.ParseUint(found[1], 10, 31) // out of range: the largest number
	return time.Duration(seconds) * time.Second
}

// failureOf returns what an error means to a wait. An *Error without a Code is not the service's: the
// response was lost, invalid, or a proxy's.
func failureOf(err error) *poll.Failure {
	f := &poll.Failure{Err: err, Kind: poll.Rejected}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return f
	}
	f.RetryAfter = e.RetryAfter
	switch {
	case rest.Permanent(err): // an untrusted certificate, whatever an earlier attempt got
		f.Kind = poll.Passing
	case errors.Is(err, ErrRateLimited):
		f.Kind = poll.RateLimited
	case e.Code != "" && KeyRejected(err):
		f.Kind = poll.KeyRejected
	case Retryable(err) && (e.StatusCode/100 != 2 || e.Err != nil): // a 2xx that broke off is a lost connection
		f.Kind = poll.Transient
	case e.Code == "":
		f.Kind = poll.Passing
	}
	return f
}
