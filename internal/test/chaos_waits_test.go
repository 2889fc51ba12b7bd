package test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
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
	c.checkWait(s, at, id, opts.Until, m, err, begun)
	c.checkStatuses(s, id, seen)
}

// checkWait checks what a wait returned.
func (c *chaos) checkWait(s *step, at int, id string, until minutes.Status, m *minutes.Meeting, err error, begun time.Time) {
	state, there := c.srv.Meeting(id)
	if there && id != c.bad && state.Status.Final() && time.Since(begun) > maxNotifyDelay && time.Since(state.UpdatedAt) > maxNotifyDelay {
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
	case c.excused(at, err), foreign(err):
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

// waitAll waits for many meetings, sometimes with a crash.
func (c *chaos) waitAll(at int, ids []string, rnd *rand.Rand) {
	ctx, cancel := c.crashing(rnd)
	defer cancel()
	s := c.step(ctx, "WaitAll", rnd)
	given := slices.Clone(ids)
	if len(ids) > 0 {
		given = append(given, ids[0]) // twice
	}
	begun := time.Now()
	yielded := map[string]bool{}
	ended := false
	for r, err := range c.clients[at].Meetings.WaitAll(s.ctx, slices.Values(given), nil) {
		if r == nil { // the loop is over
			ended = true
			if ctx.Err() == nil && !c.excused(at, err) {
				c.deviation("WaitAll: ended with %v", err)
			}
			break
		}
		id := r.MeetingID
		if yielded[id] || !slices.Contains(ids, id) {
			c.deviation("WaitAll yielded %q, twice or without being asked", id)
		}
		yielded[id] = true
		c.checkWait(s, at, id, minutes.StatusMinutesReady, r.Meeting, err, begun)
	}
	if !ended && len(yielded) != len(ids) {
		c.deviation("WaitAll yielded %d of %d", len(yielded), len(ids))
	}
}

// Two processes wait for many meetings, partly the same. For hours, all polls of one meeting fail, the
// service may be out for twenty minutes, and the key of one process may be revoked.
func TestChaosFleet(t *testing.T) {
	t.Parallel()
	seeds(t, 60, func(t *testing.T, seed uint64) {
		c := newChaos(t, seed)
		rnd := rand.New(rand.NewPCG(seed, 2))
		if rnd.IntN(2) == 0 {
			c.outages = []outage{drawLongOutage(rnd, time.Now())}
		}
		if rnd.IntN(2) == 0 {
			c.networks[rnd.IntN(2)].revokedAt = time.Now().Add(testkit.UpTo(rnd, 20*time.Minute))
		}
		c.callers.Go(func() { c.fleet(rnd) })
		c.finish()
		for _, w := range c.networks {
			if n := w.rejected.Load(); n > maxRejected {
				c.deviation("%d polls with a revoked key", n)
			}
		}
	})
}

// fleet waits for many meetings in both processes.
func (c *chaos) fleet(rnd *rand.Rand) {
	known := c.name("fleet", rnd)
	var ids []string
	for i := range 10 + rnd.IntN(100) {
		title := fmt.Sprint("fleet.", i)
		c.script(rnd, minutestest.Script{Title: title, Stages: minutestest.Stages{Prepare: testkit.UpTo(rnd, 20*time.Minute)}})
		m, _, err := c.plain.Meetings.Create(context.Background(), &minutes.MeetingCreateParams{Title: title, Date: "2026-11-20"})
		if err == nil {
			err = c.plain.Meetings.Upload(context.Background(), m.ID, known.audio, nil)
		}
		if err != nil {
			c.deviation("a call without faults: %v", err)
			return
		}
		c.knows(known, m.ID, true)
		ids = append(ids, m.ID)
	}
	c.bad = ids[rnd.IntN(len(ids))]
	var waits sync.WaitGroup
	defer waits.Wait()
	for at := range c.clients {
		from, to := rnd.IntN(len(ids)), rnd.IntN(len(ids)+1)
		mine := slices.Clone(ids[min(from, to):max(from, to)])
		own := rand.New(rand.NewPCG(rnd.Uint64(), uint64(at)))
		if own.IntN(2) == 0 {
			waits.Go(func() { c.waitAll(at, mine, own) })
			continue
		}
		spread := testkit.UpTo(own, 2*time.Minute)
		for _, id := range mine {
			one := rand.New(rand.NewPCG(own.Uint64(), 6))
			waits.Go(func() {
				time.Sleep(testkit.UpTo(one, spread+1))
				c.waitOnce(context.Background(), at, id, one)
			})
		}
	}
}

// maxRejected is how many polls a process may make with a revoked key: one for each wait that begins, and a few.
const maxRejected = 150

// excused reports whether waits may end with an error: the key is revoked.
func (c *chaos) excused(at int, err error) bool {
	revoked := c.networks[at].revokedAt
	return !revoked.IsZero() && !time.Now().Before(revoked) && errors.Is(err, minutes.ErrUnauthenticated)
}
