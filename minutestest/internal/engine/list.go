package engine

// listMeetings answers one page, newest first. It costs the same however many
// meetings there are: see index and calendar.
func (c *call) listMeetings() *refusal {
	values, ok := parameters(c.r.URL.RawQuery, "limit", "cursor", "external_id", "date_from", "date_to")
	if !ok {
		return errQuery
	}
	limit, cursor, externalID, dateFrom, dateTo := values[0], values[1], values[2], values[3], values[4]
	if cursor != nil && *cursor == "" { // D19
		cursor = nil
	}
	if externalID != nil && (cursor != nil || dateFrom != nil || dateTo != nil) {
		return errCombination
	}
	size := defaultLimit
	if limit != nil {
		if size, ok = parseLimit(*limit); !ok {
			return errLimit
		}
	}
	if externalID != nil {
		return c.findMeeting(*externalID)
	}
	var from, to date
	if dateFrom != nil {
		if from, ok = parseDate(*dateFrom); !ok {
			return errQueryDate
		}
	}
	if dateTo != nil {
		if to, ok = parseDate(*dateTo); !ok {
			return errQueryDate
		}
	}
	if from != 0 && to != 0 && from > to {
		return errDateRange
	}
	var at position
	if cursor != nil {
		if at, ok = c.world.position(c.org.id, from, to, *cursor); !ok {
			return errCursor
		}
	}
	if f := c.world.pageSize.Load(); f != nil {
		size = min(max((*f)(size, int(at.page)), 0), size)
	}
	at, more := c.page(at, size, from, to)
	if more {
		at.page++
		c.out = append(c.out, `,"next_cursor":"`...)
		c.out = append(c.out, c.world.cursor(c.org.id, from, to, at)...)
		c.out = append(c.out, '"')
	}
	c.out = append(c.out, '}')
	return nil
}

// page appends up to size meetings from position at on, and returns where the
// next page begins, if there is anything to be on it.
func (c *call) page(at position, size int, from, to date) (next position, more bool) {
	o := c.org
	o.rlock(c.now)
	defer o.mu.RUnlock()
	if at.before == 0 { // a listing begins: it shows what exists now
		at.before = o.lastSeq + 1
	}
	walks := o.everyone.within(make([]walk, 0, 8), from, to, at.before)
	if mine := o.personal[c.key.caller]; mine != nil {
		walks = mine.within(walks, from, to, at.before)
	}
	rest := merge(walks)
	c.out = append(c.out, `{"meetings":[`...)
	for n := range size {
		m := rest.next()
		if m == nil {
			break
		}
		if n > 0 {
			c.out = append(c.out, ',')
		}
		c.out = appendMeeting(c.out, m)
		at.before = m.seq
	}
	c.out = append(c.out, ']')
	return at, rest.next() != nil
}

// findMeeting answers the one meeting with an external id, or none.
func (c *call) findMeeting(externalID string) *refusal {
	if externalID == "" || longer(externalID, maxExternalID) {
		return errQueryExtID
	}
	c.x.ExternalID = externalID
	c.org.rlock(c.now)
	defer c.org.mu.RUnlock()
	c.out = append(c.out, `{"meetings":[`...)
	if m := c.org.externals[externalID]; m != nil && m.visibleTo(c.key.caller) {
		c.out = appendMeeting(c.out, m)
	}
	c.out = append(c.out, "]}"...)
	return nil
}
