package minutes

import (
	"cmp"
	"context"
	"iter"

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// maxLimit is the largest page the interface allows (section 8).
const maxLimit = 50

// All iterates over all meetings that params select, newest first. It requests the next
// page only when the loop gets there. Unless params sets a Limit, pages have the largest
// size. The iteration starts at params.Cursor. params may be nil, and may be changed
// afterwards.
//
// An error is yielded once, with a nil meeting, and ends the loop. It is one of
// [MeetingsService.List], or an *Error if the service repeats a cursor.
func (s *MeetingsService) All(ctx context.Context, params *MeetingListParams) iter.Seq2[*Meeting, error] {
	first := *cmp.Or(params, new(MeetingListParams))
	if first.Limit == 0 && first.ExternalID == "" { // which goes with no other filter
		first.Limit = maxLimit
	}
	return func(yield func(*Meeting, error) bool) {
		next := first // a sequence may be ranged over again
		seen := map[string]bool{next.Cursor: true}
		for {
			page, resp, err := doResponse[MeetingPage](ctx, s.core(), rest.Request{Operation: route.MeetingsList, Query: &next})
			if err != nil {
				yield(nil, err)
				return
			}
			for _, m := range page.Meetings {
				if !yield(m, nil) {
					return
				}
			}
			// A page may be short, or empty, before the end: only the cursor counts.
			if page.NextCursor == "" {
				return
			}
			if seen[page.NextCursor] {
				yield(nil, s.core().requestError(resp, "the service repeated a cursor"))
				return
			}
			seen[page.NextCursor] = true
			next.Cursor = page.NextCursor
		}
	}
}
