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

// Two processes wait for many meetings, partly the same. All polls of one meeting fail, the
// service may be out for twenty minutes, and the key of one process may be revoked.
func TestChaosFleet(t *testing.T) {
	t.Parallel()
	var total tally
	total.report(t)
	seeds(t, 60, func(t *testing.T, seed uint64) {
		c := newChaos(t, seed, &total)
		rnd := rand.New(rand.NewPCG(seed, 2))
		if rnd.IntN(2) == 0 {
			c.outages = []outage{drawLongOutage(rnd, time.Now())} // with others, it may last long enough to end waits
		}
		if rnd.IntN(2) == 0 {
			c.networks[rnd.IntN(2)].revokedAt = time.Now().Add(testkit.UpTo(rnd, 20*time.Minute))
		}
		c.callers.Go(func() { c.fleet(rnd) })
		c.finish()
		for _, w := range c.networks {
			if n := len(w.rejected); n > maxRejected {
				c.deviation("%d polls with a revoked key", n)
			}
		}
	})
}

// drawLongOutage draws a time in which the service asks everybody to come back later.
func drawLongOutage(rnd *rand.Rand, from time.Time) outage {
	later := fmt.Sprint(120 + rnd.IntN(780)) // the twenty failures that end a wait take longer than the outage
	from = from.Add(testkit.UpTo(rnd, 10*time.Minute))
	return outage{
		kind: "outage: maintenance",
		from: from, to: from.Add(testkit.UpTo(rnd, 20*time.Minute)),
		what:   minutestest.Respond(503, "text/plain", "maintenance").WithHeader("Retry-After", later),
		upload: minutestest.RefuseUpload(503, "SlowDown"),
	}
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

// How many polls a process may make with a revoked key, if waits begin later, too, and how
// soon its waits end.
const (
	maxRejected    = 150
	maxRejectDelay = 5 * time.Second
)

// accept records that the service accepted the key of a poll or page.
func (w *witness) accept() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lockedOut.IsZero() {
		w.rejected = nil
	}
}

// reject records that the service rejected the key of a poll or page.
func (w *witness) reject(op minutes.Operation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rejected = append(w.rejected, op)
	if len(w.rejected) > 2 && slices.Contains(w.rejected, "meetings.get") && w.lockedOut.IsZero() { // of the first two, one may have been under way
		w.lockedOut = time.Now()
	}
}

// excused reports whether a wait may end with an error: the polls of its meeting fail, or the
// key is revoked.
func (c *chaos) excused(at int, id string, err error, begun time.Time) bool {
	if id == c.bad && minutes.Retryable(err) { // of its own polls, or of others in an outage
		return true
	}
	w := c.networks[at]
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.revokedAt.IsZero() || time.Now().Before(w.revokedAt) || !errors.Is(err, minutes.ErrUnauthenticated) {
		return false
	}
	if at := w.lockedOut; !at.IsZero() && begun.Before(at) && time.Since(at) > maxRejectDelay {
		c.deviation("a wait for %s ended %v after the key was rejected", id, time.Since(at))
	}
	return true
}
