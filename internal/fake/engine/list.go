package engine

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/binary"
	"net/url"
	"strconv"
)

// listing says which meetings a list request asks for.
type listing struct {
	limit int

	// from and to are dates, or "".
	from string
	to   string

	position position
}

func (r *request) listMeetings() (any, *apiError) {
	q := r.http.URL.Query()
	l, err := r.listing(q)
	if err != nil {
		return nil, err
	}
	if q.Has("external_id") {
		return r.findMeeting(q.Get("external_id"))
	}
	size := l.limit
	sizes := r.service.pageSizes
	if len(sizes) > 0 {
		size = min(size, sizes[l.position.page%uint64(len(sizes))])
	}
	return r.page(l, size), nil
}

func (r *request) listing(q url.Values) (l listing, err *apiError) {
	cursor := q.Get("cursor") // empty is as if absent (D19)
	if q.Has("external_id") && (cursor != "" || q.Has("date_from") || q.Has("date_to")) {
		return l, errCombination
	}
	l.limit = defaultLimit
	if q.Has("limit") {
		n, err := strconv.ParseUint(q.Get("limit"), 10, 32) // no sign, and no underscore
		if err != nil || n < 1 || n > maxLimit {
			return l, errLimit
		}
		l.limit = int(n)
	}
	l.from = q.Get("date_from")
	l.to = q.Get("date_to")
	if q.Has("date_from") && !validDate(l.from) || q.Has("date_to") && !validDate(l.to) {
		return l, errQueryDate
	}
	if l.to != "" && l.from > l.to {
		return l, errDateRange
	}
	if cursor != "" {
		var ok bool
		l.position, ok = r.service.ids.position(r.org.ID, l.from, l.to, cursor)
		if !ok {
			return l, errCursor
		}
	}
	return l, nil
}

// page returns one page of size meetings, newest first. A list shows the meetings that existed when
// it began.
func (r *request) page(l listing, size int) pageJSON {
	o := r.org
	at := l.position
	if at.before == 0 {
		at.before = o.lastSeq + 1
	}
	page := pageJSON{Meetings: make([]meetingJSON, 0, size)}
	older, _ := o.before(at.before)
	for i := older - 1; i >= 0; i-- {
		m := o.meetings[i]
		shown, listed := r.lists(m)
		if !listed || shown.Date < l.from || l.to != "" && shown.Date > l.to {
			continue
		}
		if len(page.Meetings) == size { // there is another page
			at.page++
			page.NextCursor = r.service.ids.cursor(o.ID, l.from, l.to, at)
			break
		}
		page.Meetings = append(page.Meetings, shown)
		at.before = m.seq
	}
	return page
}

// lists returns what the caller's lists show of m. listed is whether they contain it: if the caller may
// see it, and no script keeps it from them yet.
func (r *request) lists(m *meeting) (shown meetingJSON, listed bool) {
	late := r.service.scripts.of(m).ListedAfter
	if late > 0 && r.now.Before(m.CreatedAt.Add(late)) {
		return shown, false
	}
	return r.shows(m)
}

func (r *request) findMeeting(externalID string) (any, *apiError) {
	if externalID == "" || longer(externalID, maxExternalID) {
		return nil, errQueryExtID
	}
	page := pageJSON{Meetings: []meetingJSON{}}
	m := r.org.byExternal[externalID]
	if m == nil {
		return page, nil
	}
	shown, listed := r.lists(m)
	if listed {
		page.Meetings = append(page.Meetings, shown)
	}
	return page, nil
}

// position is the point at which a list continues: with the meetings older than number before.
// Meetings created or deleted meanwhile do not change it.
type position struct {
	before uint64

	// page counts the pages of the list, so that each has its own cursor.
	page uint64
}

// cursor writes a position as an opaque string, bound to the organisation and the filters, but not
// to the limit or the key (D24).
func (i *ids) cursor(org, from, to string, p position) string {
	b := binary.BigEndian.AppendUint64(nil, p.before)
	b = binary.BigEndian.AppendUint64(b, p.page)
	return base64.RawURLEncoding.EncodeToString(append(b, i.mac("cursor", org, from, to, string(b))[:16]...))
}

// position reads a string made by cursor, and no other.
func (i *ids) position(org, from, to, cursor string) (p position, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) < 16 {
		return p, false
	}
	p = position{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
	// Comparing the text rejects other spellings of the same bytes, too.
	return p, hmac.Equal([]byte(cursor), []byte(i.cursor(org, from, to, p)))
}
