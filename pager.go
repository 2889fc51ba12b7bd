package minutes

import (
	"bytes"
	"cmp"
	"context"
	"iter"

	"github.com/meeting-minutes/minutes-go/internal/rest"
)

// MeetingListParams selects the meetings of a list; the zero value selects all. Assumed: the list
// is ordered by CreatedAt, and not by Date.
type MeetingListParams struct {
	// Limit is the number of meetings per page, 1 to 50. 0 means 25 for List and 50 for All.
	Limit int `url:"limit,omitempty"`
	// Cursor is MeetingPage.NextCursor of the previous page.
	Cursor string `url:"cursor,omitempty"`
	// ExternalID selects one meeting. It cannot be combined with Cursor, DateFrom or DateTo.
	ExternalID string `url:"external_id,omitempty"`
	DateFrom   string `url:"date_from,omitempty"` // YYYY-MM-DD, inclusive
	DateTo     string `url:"date_to,omitempty"`   // YYYY-MM-DD, inclusive
}

// MeetingPage is one page of a list, newest first ([section 2.2]). It may have fewer meetings than
// MeetingListParams.Limit, even none, so only an empty NextCursor marks the last page.
//
// [section 2.2]: https://github.com/meeting-minutes/minutes-go/blob/main/docs/api.md#22-to-210-the-others
type MeetingPage struct {
	Meetings []*Meeting `json:"meetings"`
	// NextCursor is for MeetingListParams.Cursor. It is empty on the last page.
	NextCursor string `json:"next_cursor,omitempty"`
}

func (p *MeetingPage) missing(r received) string { return missingList("meetings", p.Meetings, r) }

// List returns one page of meetings, newest first, and needs the scope meetings:read. params may be
// nil. To read all pages, use [MeetingsService.All].
//
// Errors: [ErrInvalidRequest] (filters that exclude each other), [ErrInvalidLimit],
// [ErrInvalidCursor], [ErrInvalidDate], [ErrInvalidDateRange], *[ParamError] (ExternalID is not valid
// UTF-8).
func (s *MeetingsService) List(ctx context.Context, params *MeetingListParams) (*MeetingPage, error) {
	if params != nil {
		err := checkUTF8("params.ExternalID", params.ExternalID)
		if err != nil {
			return nil, err
		}
	}
	page, _, err := call[MeetingPage](ctx, s.core, OpMeetingsList, rest.Request{Query: params})
	return page, err
}

// largestPage is the largest Limit that the service allows (section 8).
const largestPage = 50

// All yields all meetings that params select, newest first, and needs the scope meetings:read. It
// requests each page only when the loop needs it. If params.Limit is 0, pages have up to 50
// meetings, because that costs the fewest requests. params may be nil, and if it has a Cursor, All
// starts there.
//
// Errors: those of [MeetingsService.List], and an *[Error] if the service repeats a cursor, since
// the loop would never end. An error comes with a nil meeting, and ends the loop. If meetings do not
// match the API reference, All yields all others first, and then an *[Error] that names the first of
// them. The log names all.
func (s *MeetingsService) All(ctx context.Context, params *MeetingListParams) iter.Seq2[*Meeting, error] {
	first := *cmp.Or(params, new(MeetingListParams))
	if first.Limit == 0 && first.ExternalID == "" { // ExternalID excludes the other filters
		first.Limit = largestPage
	}
	return func(yield func(*Meeting, error) bool) {
		err := checkUTF8("params.ExternalID", first.ExternalID)
		if err != nil {
			yield(nil, err)
			return
		}
		l := &listReader{core: s.core, next: first, seen: map[string]bool{first.Cursor: true}}
		for more := true; more; {
			var meetings []*Meeting
			meetings, more, err = l.read(ctx)
			for _, m := range meetings {
				if !yield(m, nil) {
					return
				}
			}
		}
		err = l.withUnfit(err)
		if err != nil {
			yield(nil, err)
		}
	}
}

// listReader reads the list, page by page.
type listReader struct {
	core *core
	// next are the parameters of the next page.
	next MeetingListParams
	// seen has the cursors of the pages so far, and that of the next one.
	seen map[string]bool
	// body is that of one page after the other, because a body takes as much memory as its meetings.
	body bytes.Buffer
	// response is that of the last page.
	response *rest.Response
	// unfit are the elements so far that do not match the API reference.
	unfit []unfitElement
}

// read returns the meetings of the next page. more means that another page follows.
func (l *listReader) read(ctx context.Context) (meetings []*Meeting, more bool, err error) {
	in := rest.Request{Query: &l.next, Buffer: &l.body}
	page, resp, err := call[MeetingPage](ctx, l.core, OpMeetingsList, in)
	l.response = resp
	if err != nil && !isPartial(err) {
		return nil, false, err
	}
	l.unfit = append(l.unfit, unfitIn(err)...)
	cursor := page.NextCursor
	if cursor == "" { // a page before the last one may be short or empty, so only the cursor counts
		return page.Meetings, false, nil
	}
	if l.seen[cursor] {
		return page.Meetings, false, l.core.requestError(resp, "the service repeated a cursor")
	}
	l.seen[cursor] = true
	l.next.Cursor = cursor
	return page.Meetings, true, nil
}

// withUnfit adds the elements that do not match the API reference to the error of the reading, or nil.
func (l *listReader) withUnfit(err error) error {
	if len(l.unfit) == 0 {
		return err
	}
	return rest.Join(err, l.core.unfitError(l.response, l.unfit))
}
