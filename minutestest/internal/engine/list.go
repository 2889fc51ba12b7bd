package engine

// listing says which meetings a list request asks for.
type listing struct {
	limit      int
	from, to   string // dates, or ""
	externalID *string
	position   position
}

func (c *call) listMeetings() (any, *apiError) {
	l, err := c.listing()
	if err != nil {
		return nil, err
	}
	if l.externalID != nil {
		return c.findMeeting(*l.externalID)
	}
	return c.page(l, c.world.pageSizeOf(l.limit, int(l.position.page))), nil
}

// listing reads the query.
func (c *call) listing() (l listing, err *apiError) {
	q, ok := parameters(c.r.URL.RawQuery, "limit", "cursor", "external_id", "date_from", "date_to")
	if !ok {
		return l, errQuery
	}
	cursor, limit := q["cursor"], q["limit"]
	if cursor != nil && *cursor == "" { // D19
		cursor = nil
	}
	l.externalID = q["external_id"]
	if l.externalID != nil && (cursor != nil || q["date_from"] != nil || q["date_to"] != nil) {
		return l, errCombination
	}
	l.limit = defaultLimit
	if limit != nil {
		if l.limit, ok = parseLimit(*limit); !ok {
			return l, errLimit
		}
	}
	for name, date := range map[string]*string{"date_from": &l.from, "date_to": &l.to} {
		if q[name] == nil {
			continue
		}
		if *date = *q[name]; !validDate(*date) {
			return l, errQueryDate
		}
	}
	if l.to != "" && l.from > l.to {
		return l, errDateRange
	}
	if cursor != nil {
		if l.position, ok = c.world.position(c.org.id, l.from, l.to, *cursor); !ok {
			return l, errCursor
		}
	}
	return l, nil
}

// page returns one page of size meetings, newest first.
func (c *call) page(l listing, size int) pageJSON {
	o, at := c.org, l.position
	o.lock(c.now)
	defer o.unlock()
	if at.before == 0 { // a listing begins: it shows the meetings that exist now
		at.before = o.lastSeq + 1
	}
	to := l.to
	if to == "" {
		to = "9999-12-31"
	}
	lists := o.everyone.within(l.from, to)
	if own := o.personal[c.key.caller]; own != nil {
		lists = append(lists, own.within(l.from, to)...)
	}
	found := newest(lists, at.before, size+1) // one more shows whether there is another page
	page := pageJSON{Meetings: make([]meetingJSON, 0, size)}
	for _, m := range found[:min(size, len(found))] {
		page.Meetings = append(page.Meetings, m.json())
		at.before = m.seq
	}
	if len(found) > size {
		at.page++
		page.NextCursor = c.world.cursor(o.id, l.from, l.to, at)
	}
	return page
}

// findMeeting returns the one meeting with an external id, or none.
func (c *call) findMeeting(externalID string) (any, *apiError) {
	if externalID == "" || longer(externalID, maxExternalID) {
		return nil, errQueryExtID
	}
	c.x.ExternalID = externalID
	c.org.lock(c.now)
	defer c.org.unlock()
	page := pageJSON{Meetings: []meetingJSON{}}
	if m := c.org.externals[externalID]; m != nil && m.visibleTo(c.key.caller) {
		page.Meetings = append(page.Meetings, m.json())
	}
	return page, nil
}
