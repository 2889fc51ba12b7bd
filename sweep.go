package minutes

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/meeting-minutes/minutes-go/internal/rest"
	"github.com/meeting-minutes/minutes-go/internal/route"
)

// Pages of the listing against single GETs.
//
// A sweep reads the listing from its newest page on and looks at every meeting
// it shows. It costs one request a page, which may show fifty meetings that are
// waited for, or none. The choice is by requests, which is what a service counts
// and limits: a sweep goes on while its pages are no more than the meetings they
// found, and is given up where they are. (By CPU, where a page costs about as
// much as fourteen GETs, and by bytes, it would be given up sooner.)
//
// The first sweep is a trial, made when trialMin meetings or more are looked at
// one by one. It begins when none of them was looked at within the floor, for a
// page shows what it shows. What it finds is listed from then on: each turn the
// next sweep reads just as deep as needed to show all of it. What it does not
// find stays with the GETs, and the next trial is put off.
//
// Nothing is shown twice within the floor: pages keep the order of creation, so
// the next page to read cannot show what the last sweep showed further down; it
// waits until what it will show is due, and its limit keeps it from showing what
// the last sweep did not reach. A meeting that comes to be waited for while
// sweeps are made is most likely new, so the next sweep has its first look.
const (
	trialMin  = 20
	maxBarren = 10  // pages in a row that find nothing
	stake     = 100 // meetings waited for, for each page that a trial may risk
	maxPutOff = 32  // turns
)

// listing is the part of a run that reads the listing.
type listing struct {
	sweep   *sweep // nil: none under way
	sweepNo uint32 // of the one under way, or of the last
	pageNo  uint32 // of the page under way, or of the last

	listed    []*watch // what the last sweep showed, newest first
	listedDue int64    // when the first of these is due, in nanos
	depth     int      // how many meetings it read to show all of these
	lastPages int      // how many pages, which a service may keep short
	pagedLast bool     // the last request was a page, so a single look that is due goes next
	top       *Meeting // the newest meeting it read; ID and CreatedAt
	newcomers []newcomer

	lost    int       // pages in a row that failed, as far as the service is to blame
	works   bool      // a single look succeeded since the last page that did
	refused bool      // the service does not let this key list
	trialAt time.Time // not before, unless the singles have become twice as many
	heldAt  time.Time // since when the singles wait for a trial that cannot begin
	putOff  int       // turns, doubled when a trial finds too little
	missed  int       // meetings that the last trial did not find
}

// newcomer waits for a sweep to show it; one that began after it came.
type newcomer struct {
	*watch
	sweepNo uint32
}

// sweep is one reading of the listing.
type sweep struct {
	trial   bool
	begun   time.Time
	wanted  int // meetings that were waited for when it began
	cursor  string
	reading bool      // a page is under way
	again   time.Time // not before, after a page that was lost
	probing bool      // a single look comes first
	probe   *watch    // whose look that is, while it is under way
	pages   int
	credit  int // pages that may still find nothing
	most    int // what credit may come to

	read  int // meetings, waited for or not
	fresh int // of these, newer than all that the last sweep read
	met   bool
	next  int // in listing.listed: the first that was not shown yet
	found []*watch
	ended int // of the found, meetings that came to their end
	depth int // what read was when the last one was found
	top   *Meeting
}

// keepsLists reports whether meetings are looked at by sweeps.
func (r *run) keepsLists() bool { return r.sweep != nil || len(r.listed) > 0 }

// holdsSingles reports that no meeting may be looked at by itself, since a
// trial may show any of them.
func (r *run) holdsSingles(now time.Time) bool {
	return r.sweep != nil && r.sweep.trial || r.sweep == nil && r.wantsTrial(now)
}

func (r *run) wantsTrial(now time.Time) bool {
	n := len(r.singles) + r.gets + len(r.newcomers)
	return !r.refused && n >= trialMin && (!now.Before(r.trialAt) || n >= 2*r.missed)
}

// nextPage begins a sweep when it is time, and reports whether its next page
// may be read now, or else when that, or a sweep, will be.
func (r *run) nextPage(now time.Time) (bool, time.Time) {
	if r.sweep == nil {
		if begun, at := r.beginSweep(now); !begun {
			return false, at
		}
	}
	if r.sweep.reading {
		return false, time.Time{}
	}
	switch s := r.sweep; {
	case s.probe != nil:
		return false, time.Time{} // stirs when it is there
	case s.probing:
		return false, s.again.Add(-r.floor)
	case now.Before(s.again):
		return false, s.again
	}
	if !r.sweep.trial {
		if at := r.shownAgainFrom(r.sweep.next); now.Before(at) {
			return false, at
		}
	}
	return true, now
}

// beginSweep begins a sweep when it is time, or else reports when that will be,
// as far as that is known.
func (r *run) beginSweep(now time.Time) (bool, time.Time) {
	if r.wantsTrial(now) {
		if r.gets > 0 {
			return false, time.Time{} // stirs when it is there
		}
		at := r.lastShown.Add(r.floor)
		if !now.Before(at) || now.Before(r.lastShown) {
			r.begin(true)
			return true, now
		}
		if r.heldAt.IsZero() {
			r.heldAt = now
		}
		if now.Sub(r.heldAt) < r.floor {
			return false, at
		}
		// Meetings are shown all the time, by other means than looks.
		r.putTrialOff(len(r.singles)+len(r.newcomers), now)
	}
	r.heldAt = time.Time{}
	if len(r.listed) == 0 {
		return false, time.Time{}
	}
	due := r.timeOf(r.listedDue)
	if came, again := r.newcomersFrom(); came {
		due = again
	}
	if at := latest(r.shownAgainFrom(0), due); now.Before(at) {
		return false, at
	}
	r.begin(false)
	return true, now
}

// shownAgainFrom is when the next page may show what stands in listed from i on.
func (r *run) shownAgainFrom(i int) time.Time {
	var last int64
	for n := 0; i < len(r.listed) && n < maxLimit; i++ {
		if m := r.listed[i]; m.waiter != nil {
			last = max(last, m.looked)
			n++
		}
	}
	return r.timeOf(last).Add(r.floor)
}

// newcomersFrom reports whether there are newcomers, and when a sweep may show
// those that were shown before: they had left, and came back.
func (r *run) newcomersFrom() (came bool, again time.Time) {
	var last int64
	for _, m := range r.newcomers {
		if m.waiter != nil {
			came, last = true, max(last, m.looked)
		}
	}
	return came, r.timeOf(last).Add(r.floor)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (r *run) begin(trial bool) {
	r.heldAt = time.Time{}
	r.sweepNo++
	s := &sweep{trial: trial, begun: time.Now(), wanted: r.waiting, credit: maxBarren}
	if trial {
		s.credit = 1 + r.waiting/stake
	}
	s.most = max(s.credit, maxBarren)
	r.sweep = s
}

// pageParams asks for no more than the sweep has to read.
func (r *run) pageParams() *MeetingListParams {
	limit := maxLimit
	if s := r.sweep; !s.trial {
		limit = min(limit, max(1, r.depth+s.fresh-s.read))
		if s.pages == 0 && len(r.singles)+r.gets == 0 {
			limit = maxLimit // how many are new is not known yet
		}
	}
	return &MeetingListParams{Limit: limit, Cursor: r.sweep.cursor}
}

// pagesPerTurn is what sweeps cost in a turn.
func (r *run) pagesPerTurn() int {
	if len(r.listed) == 0 {
		return 0
	}
	return max(r.depth/maxLimit+1, r.lastPages)
}

// spacing is the time between two pages of a trial: those that it will still
// read are spread over what is left of its turn.
func (s *sweep) spacing(r *run) time.Duration {
	const prior = 10                                // full pages are expected, until enough of them were not
	waits := max(r.waiting-len(s.found)+s.ended, 0) // of the found, some may have left
	pages := waits*(s.pages+prior)/(len(s.found)+prior*maxLimit) + 1
	return max(r.floor-time.Since(s.begun), r.floor/4) / time.Duration(pages)
}

// readPage reads one page of a sweep.
func (r *run) readPage(s *sweep, params *MeetingListParams) {
	page, err := r.core.lookAtPage(r.ctx, params)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return
	}
	now := time.Now()
	s.reading = false
	defer r.stir()
	switch {
	case errors.Is(err, ErrRateLimited):
		r.holdBack(err, now) // the same page again after the pause
		return
	case err != nil && transient(err):
		r.lose(s, err, now)
		return
	case err != nil:
		r.refused = !errors.Is(err, ErrInvalidCursor)
		r.finish(now)
		return
	}
	r.pause = 0
	r.lost, r.works = 0, false
	r.lastShown = now // also of meetings that somebody may wait for in a moment
	r.shows(s, page, now)
	if page.NextCursor == "" || page.NextCursor == s.cursor || r.enough(s) {
		r.finish(now)
		return
	}
	s.cursor = page.NextCursor
}

// lose takes in that a page failed. The same one is asked for again a turn later:
// a service that is out would only be loaded with a GET for each meeting instead.
// Once a GET succeeds while pages still fail, it is the listing alone, and what
// the sweep did not show is looked at one by one.
func (r *run) lose(s *sweep, err error, now time.Time) {
	const patience = 3
	r.mayHaveShown(s, now)
	r.trouble = err
	r.lost++
	switch {
	case r.lost >= maxFailedLooks:
		unseen := r.listed[s.next:]
		if s.trial {
			unseen = slices.Clone(r.singles) // which failing changes
		}
		for _, m := range unseen {
			if m.shownIn != r.sweepNo {
				r.fail(m, err)
			}
		}
		r.lost = 0
		if r.ctx.Err() == nil {
			r.finish(now)
		}
		return
	case r.lost >= patience && r.works:
		r.finish(now)
		return
	}
	s.again = now.Add(jitter(r.floor))
	if r.lost < patience-1 || r.works || len(r.singles)+r.gets > 0 && !s.trial {
		return // or the single looks that are made anyway will tell
	}
	// One look, a turn from now, and the page another turn later.
	s.probing = true
	s.again = s.again.Add(r.floor)
}

// takeProbe returns the watch to be looked at before the next page, if that is
// due.
func (r *run) takeProbe(now time.Time) *watch {
	s := r.sweep
	if s == nil || !s.probing || now.Before(s.again.Add(-r.floor)) {
		return nil
	}
	s.probing = false
	if s.trial {
		if len(r.singles) == 0 || r.nanos(now) < r.singles[0].due {
			return nil
		}
		s.probe = r.singles[0]
		r.singles.remove(s.probe)
		return s.probe
	}
	for _, m := range r.listed[s.next:] {
		if m.waiter != nil && m.shownIn != r.sweepNo && !r.isFresh(m, now) {
			s.probe = m
			return m
		}
	}
	return nil
}

// probed takes in the end of a look, which may be a sweep's probe.
func (r *run) probed(m *watch, err error, now time.Time) {
	limited := errors.Is(err, ErrRateLimited)
	failed := err != nil && !limited && transient(err)
	if !failed && !limited {
		r.works = true
	}
	if s := r.sweep; s != nil && s.probe == m {
		s.probe = nil
		s.again = latest(now.Add(r.floor), r.timeOf(m.due)) // the page may show it
		if failed {
			r.lost++
		}
	}
}

// mayHaveShown has what a lost page may have shown wait a turn, as a lost look
// has its meeting.
func (r *run) mayHaveShown(s *sweep, now time.Time) {
	r.lastShown = now
	for i, n := s.next, 0; i < len(r.listed) && n < maxLimit; i++ {
		if m := r.listed[i]; m.waiter != nil {
			r.touch(m, now)
			n++
		}
	}
}

// shows takes in what a page shows.
func (r *run) shows(s *sweep, page *MeetingPage, now time.Time) {
	s.pages++
	found := 0
	for _, seen := range page.Meetings {
		s.read++
		if s.top == nil {
			s.top = &Meeting{ID: seen.ID, CreatedAt: seen.CreatedAt}
		}
		if !s.met && r.top != nil {
			s.met = seen.ID == r.top.ID || seen.CreatedAt < r.top.CreatedAt
			if !s.met {
				s.fresh++
			}
		}
		m := r.watches[seen.ID]
		if m == nil || m.shownIn == r.sweepNo {
			continue // nobody's, or a cursor leads in a circle
		}
		if m.waiter == nil {
			// Just looked at, and nobody waits; where somebody does again in a
			// moment, that is a newcomer for the next sweep.
			r.saw(m, seen, now)
			m.shownIn, m.listed = r.sweepNo, false
			continue
		}
		found++
		s.depth = s.read
		s.found = append(s.found, m)
		m.shownIn = r.sweepNo
		r.singles.remove(m)
		m.listed = true
		if m.looking || m.cameIn == r.pageNo {
			// A GET is under way; or the page was asked for before the wait began,
			// so that what it shows may be older than that. Still, it was shown.
			r.touch(m, now)
			m.due = m.looked + int64(m.least(r.floor))
			continue
		}
		if m.looked != 0 && r.nanos(now) < min(m.due, m.looked+int64(m.least(r.floor))) {
			r.touch(m, now) // a caller's longer interval
			continue
		}
		r.saw(m, seen, now)
		if r.ctx.Err() != nil {
			return // that was the last one
		}
		if m.waiter == nil {
			s.ended++
			continue
		}
		m.due = r.nanos(now) + int64(m.least(r.floor))
	}
	s.credit = min(s.credit+found-1, s.most)
	for s.next < len(r.listed) && (r.listed[s.next].waiter == nil || r.listed[s.next].shownIn == r.sweepNo) {
		s.next++
	}
}

// enough reports whether the sweep has shown what it is for, or no longer pays.
func (r *run) enough(s *sweep) bool {
	switch {
	case s.credit <= 0:
		return true
	case s.trial:
		return len(s.found)-s.ended >= r.waiting
	}
	return s.next == len(r.listed) || s.met && s.read >= r.depth+s.fresh
}

// finish ends a sweep, also one that failed: what it did not show is looked at
// one by one.
func (r *run) finish(now time.Time) {
	s := r.sweep
	r.sweep = nil
	old := r.listed
	r.listed = slices.DeleteFunc(s.found, func(m *watch) bool {
		m.listed = m.waiter != nil
		return !m.listed
	})
	r.depth, r.lastPages, r.top = s.depth, s.pages, s.top
	r.listedDue = math.MaxInt64
	for _, m := range r.listed {
		r.listedDue = min(r.listedDue, m.due)
	}
	for _, m := range old {
		if m.shownIn != r.sweepNo {
			r.single(m)
		}
	}
	// A few that are left, or that lie far apart, cost less by themselves. They
	// will hardly draw together again, so there is no trial soon.
	if thin := r.refused || len(r.listed) < r.depth/maxLimit; thin || !s.trial && s.credit <= 0 {
		r.missed, r.putOff = len(r.listed)+len(r.singles), maxPutOff
		r.trialAt = now.Add(maxPutOff * r.floor)
		if thin {
			for _, m := range r.listed {
				r.single(m)
			}
			r.listed = nil
		}
	}
	r.newcomers = slices.DeleteFunc(r.newcomers, func(m newcomer) bool {
		if m.listed && len(r.listed) > 0 || m.waiter == nil {
			m.isNew = false
			return true
		}
		if (m.sweepNo == r.sweepNo || m.shownIn == r.sweepNo) && len(r.listed) > 0 {
			return false // it came too late for this sweep
		}
		m.isNew = false
		r.single(m.watch)
		return true
	})
	if s.trial {
		if len(s.found) > s.pages {
			r.putOff = 1
		}
		r.crowding = r.waiting > s.wanted
		r.putTrialOff(max(trialMin, s.wanted-len(s.found)), now)
	}
}

// putTrialOff puts the next trial off, longer each time, unless a good deal more
// than so many meetings come to be looked at one by one.
func (r *run) putTrialOff(missed int, now time.Time) {
	r.putOff = min(max(2*r.putOff, 2), maxPutOff)
	r.missed = missed
	r.trialAt = now.Add(time.Duration(r.putOff) * r.floor)
}

// lookAtPage reads a page of the listing, once.
func (c *core) lookAtPage(ctx context.Context, params *MeetingListParams) (*MeetingPage, error) {
	return do[MeetingPage](ctx, c, rest.Request{Operation: route.MeetingsList, Query: params, Once: true})
}
