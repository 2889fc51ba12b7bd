package minutes

import (
	"bytes"
	"cmp"
	"context"
	"iter"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// maxLimit is the largest Limit that the service allows (section 8).
const maxLimit = 50

// All yields all meetings that params select, newest first, and needs the scope meetings:read. It requests
// each page only when the loop needs it. If params.Limit is 0, pages have up to 50 meetings, because that
// costs the fewest requests. params may be nil, and if it has a Cursor, All starts there.
//
// Errors: those of [MeetingsService.List], and an *[Error] if the service repeats a cursor, since the loop
// would never end. An error comes with a nil meeting, and ends the loop.
func (s *MeetingsService) All(ctx context.Context, params *MeetingListParams) iter.Seq2[*Meeting, error] {
	first := *cmp.Or(params, new(MeetingListParams))
	if first.Limit == 0 && first.ExternalID == "" { // ExternalID excludes the other filters
		first.Limit = maxLimit
	}
	return func(yield func(*Meeting, error) bool) {
		next := first // a caller may range over the sequence again
		seen := map[string]bool{next.Cursor: true}
		var body bytes.Buffer // of one page after the other, because a body takes as much memory as its meetings
		for {
			page, resp, err := doResponse[MeetingPage](ctx, s.core, OpMeetingsList, rest.Request{Query: &next, Buffer: &body})
			if err != nil {
				yield(nil, err)
				return
			}
			for _, m := range page.Meetings {
				if !yield(m, nil) {
					return
				}
			}
			// A page before the last one may be short or empty, so only the cursor counts.
			if page.NextCursor == "" {
				return
			}
			if seen[page.NextCursor] {
				yield(nil, s.core.requestError(resp, "the service repeated a cursor"))
				return
			}
			seen[page.NextCursor] = true
			next.Cursor = page.NextCursor
		}
	}
}
