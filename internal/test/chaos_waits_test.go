package test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// happyPath orders the states of the happy path.
var happyPath = []minutes.Status{
	minutes.StatusCreated, minutes.StatusAudioUploaded, minutes.StatusTranscribing,
	minutes.StatusTranscribed, minutes.StatusGeneratingMinutes, minutes.StatusMinutesReady,
}

// waiter waits for a meeting: from a random time, to a random status, sometimes with
// a deadline.
func (c *chaos) waiter(ctx context.Context, at int, id string, rnd *rand.Rand) {
	if rnd.IntN(2) == 0 {
		time.Sleep(testkit.UpTo(rnd, 10*time.Minute))
	}
	for range 1 + rnd.IntN(3) {
		if rnd.IntN(4) == 0 {
			short, cancel := context.WithTimeout(ctx, testkit.UpTo(rnd, 10*time.Minute))
			c.waitOnce(short, at, id, rnd)
			cancel()
		} else {
			c.waitOnce(ctx, at, id, rnd)
		}
	}
}

// maxNotifyDelay is how long after a meeting's end its waiters must return. A failed
// poll costs a cycle, and rejections by a gateway up to five minutes.
const maxNotifyDelay = 2 * time.Hour

func (c *chaos) waitOnce(ctx context.Context, at int, id string, rnd *rand.Rand) {
	c.waits.Add(1)
	var seen []minutes.Status
	opts := &minutes.WaitOptions{Until: happyPath[1+rnd.IntN(5)]}
	if rnd.IntN(2) == 0 {
		opts.Until = minutes.StatusMinutesReady
	}
	if rnd.IntN(2) == 0 {
		opts.OnStatus = func(m *minutes.Meeting) { seen = append(seen, m.Status) }
	}
	s := c.step(ctx, fmt.Sprint("Wait ", id, " until ", opts.Until), rnd)
	begun := time.Now()
	done := c.networks[at].wait(id)
	var m *minutes.Meeting
	var err error
	if opts.Until == minutes.StatusMinutesReady && rnd.IntN(2) == 0 {
		var got *minutes.Minutes
		got, err = c.clients[at].Meetings.WaitForMinutes(s.ctx, id, opts)
		if err == nil {
			c.checkMinutes(s, id, got)
		}
	} else {
		m, err = c.clients[at].Meetings.Wait(s.ctx, id, opts)
		if (m == nil) == (err == nil) {
			c.deviation("%s: returned both or neither of a value and an error", s.name)
		}
	}
	done()
	c.checkWait(s, at, id, opts.Until, m, err, begun)
	c.checkStatuses(s, id, seen)
}

// checkWait checks what a wait returned.
func (c *chaos) checkWait(s *step, at int, id string, until minutes.Status, m *minutes.Meeting, err error, begun time.Time) {
	state, there := c.srv.Meeting(id)
	if there && state.Status.Final() && time.Since(begun) > maxNotifyDelay && time.Since(state.UpdatedAt) > maxNotifyDelay {
		c.deviation("%s: returned %v after the end", s.name, time.Since(state.UpdatedAt))
	}
	if err == nil {
		if m != nil && (m.ID != id || slices.Index(happyPath, m.Status) < slices.Index(happyPath, until)) {
			c.deviation("%s: returned meeting %s with status %s", s.name, m.ID, m.Status)
		}
		if there && !slices.ContainsFunc(state.History, func(h minutestest.Transition) bool { return h.Status == until }) {
			c.deviation("%s: returned, but the service's status is %s", s.name, state.Status)
		}
		return
	}
	c.checkError(s, err)
	if failed, ok := errors.AsType[*minutes.MeetingFailedError](err); ok {
		if !failed.Status.Failed() || failed.Meeting.ID != id || there && state.Status != failed.Status {
			c.deviation("%s: %v, but the service's status is %s", s.name, err, state.Status)
		}
		return
	}
	if wait, ok := errors.AsType[*minutes.WaitError](err); !ok || wait.MeetingID != id {
		c.deviation("%s: not a WaitError of this meeting: %v", s.name, err)
	}
	switch {
	case s.ctx.Err() != nil && errors.Is(err, s.ctx.Err()):
	case errors.Is(err, minutes.ErrNotFound) && !there:
	case c.excused(at, id, err, begun):
	default:
		if _, limited := s.ctx.Deadline(); !limited { // it may be too short for another attempt
			c.deviation("%s: %v", s.name, err)
		}
	}
}

// checkStatuses checks what OnStatus received: statuses of the meeting, in order, each
// once.
func (c *chaos) checkStatuses(s *step, id string, seen []minutes.Status) {
	state, there := c.srv.Meeting(id)
	if !there {
		return
	}
	at := 0
	for _, status := range seen {
		for at < len(state.History) && state.History[at].Status != status {
			at++
		}
		at++
	}
	if at > len(state.History) {
		c.deviation("%s: OnStatus received %v of %v", s.name, seen, state.History)
	}
}

// crowd waits for so many meetings that the Client reads pages. It may delete one of
// them.
func (c *chaos) crowd(rnd *rand.Rand, deletes bool) {
	known := c.name("crowd", rnd)
	at := rnd.IntN(2)
	n, every := 25+rnd.IntN(100), 1+rnd.IntN(3)
	var ids []string
	for i := range n {
		title := fmt.Sprint("crowd.", i)
		c.script(rnd, minutestest.Script{Title: title, Stages: minutestest.Stages{Prepare: testkit.UpTo(rnd, 20*time.Minute)}})
		m, _, err := c.plain.Meetings.Create(context.Background(), &minutes.MeetingCreateParams{Title: title, Date: "2026-11-20"})
		if err != nil {
			c.deviation("a Create without faults: %v", err)
			return
		}
		c.knows(known, m.ID, true)
		if i%every > 0 {
			continue
		}
		if err := c.plain.Meetings.Upload(context.Background(), m.ID, known.audio, nil); err != nil {
			c.deviation("an Upload without faults: %v", err)
		}
		ids = append(ids, m.ID)
	}
	var waiters sync.WaitGroup
	defer waiters.Wait()
	all := ids[:rnd.IntN(len(ids)+1)]
	own := rand.New(rand.NewPCG(rnd.Uint64(), 4))
	waiters.Go(func() {
		for range 1 + own.IntN(3) { // later calls wait for the rest
			c.waitAll(at, all, own)
			time.Sleep(testkit.UpTo(own, time.Minute))
		}
	})
	for _, id := range ids[len(all)/2:] {
		if rnd.IntN(20) == 0 {
			time.Sleep(testkit.UpTo(rnd, time.Minute))
		}
		own := rand.New(rand.NewPCG(rnd.Uint64(), 5))
		waiters.Go(func() { c.waitOnce(context.Background(), at, id, own) })
	}
	if deletes && rnd.IntN(2) == 0 {
		time.Sleep(testkit.UpTo(rnd, 10*time.Minute))
		c.delete(c.clients[at], ids[rnd.IntN(len(ids))], known, rnd)
	}
}

// waitAll waits for many meetings, sometimes with a crash.
func (c *chaos) waitAll(at int, ids []string, rnd *rand.Rand) {
	ctx, cancel := c.crashing(rnd)
	defer cancel()
	s := c.step(ctx, "WaitAll", rnd)
	c.waits.Add(int64(len(ids)))
	given := slices.Clone(ids)
	if len(ids) > 0 {
		given = append(given, ids[0]) // twice
	}
	begun := time.Now()
	done := c.networks[at].wait(ids...)
	defer done()
	yielded := map[string]bool{}
	ended := false
	for m, err := range testkit.Meetings(c.clients[at].Meetings.WaitAll(s.ctx, slices.Values(given), nil)) {
		if wait, ok := errors.AsType[*minutes.WaitError](err); ok && wait.MeetingID == "" {
			if ctx.Err() == nil || ended {
				c.deviation("WaitAll: ended with %v", err)
			}
			ended = true
			continue
		}
		id := ""
		if failed, ok := errors.AsType[*minutes.MeetingFailedError](err); ok {
			id = failed.Meeting.ID
		} else if wait, ok := errors.AsType[*minutes.WaitError](err); ok {
			id = wait.MeetingID
		} else if m != nil {
			id = m.ID
		}
		if yielded[id] || !slices.Contains(ids, id) {
			c.deviation("WaitAll yielded %q, twice or without being asked", id)
		}
		yielded[id] = true
		c.checkWait(s, at, id, minutes.StatusMinutesReady, m, err, begun)
	}
	if !ended && len(yielded) != len(ids) {
		c.deviation("WaitAll yielded %d of %d", len(yielded), len(ids))
	}
}
