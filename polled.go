package minutes

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/poll"
	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// polled makes the poller's two requests: it implements poll.Service.
type polled struct{ core *core }

// Get asks for one meeting.
func (p polled) Get(ctx context.Context, id string, send func() bool) (poll.Snapshot[*Meeting], *poll.Failure) {
	in := rest.Request{ID: id, Background: true, Once: true, Send: send}
	m, resp, err := p.core.callMeeting(ctx, OpMeetingsGet, in)
	if err != nil {
		return poll.Snapshot[*Meeting]{}, failureOf(err)
	}
	shown := snapshotOf(m)
	shown.MaxAge = maxAgeOf(resp.Header.Get("Cache-Control"))
	return shown, nil
}

// Page asks for one list page.
func (p polled) Page(ctx context.Context, cursor string, send func() bool) (poll.Page[*Meeting], *poll.Failure) {
	query := &MeetingListParams{Limit: largestPage, Cursor: cursor}
	in := rest.Request{Query: query, Background: true, Once: true, Send: send}
	list, resp, err := call[MeetingPage](ctx, p.core, OpMeetingsList, in)
	if err != nil && !isPartial(err) { // the log has warned of elements that do not fit
		return poll.Page[*Meeting]{}, failureOf(err)
	}
	page := poll.Page[*Meeting]{Shown: make([]poll.Snapshot[*Meeting], len(list.Meetings)), Next: list.NextCursor}
	for i, m := range list.Meetings {
		page.Shown[i] = snapshotOf(m)
	}
	page.Now, _ = http.ParseTime(resp.Header.Get("Date")) // else it stays zero
	return page, nil
}

// snapshotOf returns a snapshot for the poller, which keeps m.
func snapshotOf(m *Meeting) poll.Snapshot[*Meeting] {
	return poll.Snapshot[*Meeting]{
		ID:      m.ID,
		Final:   m.Status.Final(),
		Idle:    m.Status == StatusCreated,
		Created: m.CreatedAt.Time(),
		Updated: m.UpdatedAt.Time(),
		Meeting: m,
	}
}

// record records with the poller what a response to the user's own request shows.
func (c *core) record(m *Meeting, sent poll.Sent) {
	c.poller.Record(snapshotOf(m.clone()), sent)
}

var maxAge = regexp.MustCompile(`(?i)(?:^|,)\s*max-age\s*=\s*"?([0-9]+)`)

// maxAgeOf returns how long the service asks not to poll a meeting again, or 0.
func maxAgeOf(cacheControl string) time.Duration {
	found := maxAge.FindStringSubmatch(cacheControl)
	if found == nil {
		return 0
	}
	seconds, _ := strconv.ParseUint(found[1], 10, 31) // out of range: the largest number
	return time.Duration(seconds) * time.Second
}
