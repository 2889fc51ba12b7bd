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

// process runs a whole job with one or two workers. Each crashes at random times and
// starts again.
func (c *chaos) process(who string, rnd *rand.Rand) {
	known := c.name(who, rnd)
	c.script(rnd, minutestest.Script{ExternalID: who})
	workers := 1
	if c.rivals {
		workers += rnd.IntN(2)
	}
	var wg sync.WaitGroup
	for worker := range workers {
		own := rand.New(rand.NewPCG(rnd.Uint64(), 3))
		wg.Go(func() {
			id := "" // of the meeting, if the next process knows it
			for range maxCalls {
				r, done := c.processOnce(c.live(worker, own), who, id, known, own)
				if done {
					return
				}
				if id = ""; own.IntN(2) == 0 {
					id = r.MeetingID
				}
				time.Sleep(testkit.UpTo(own, 5*time.Minute))
			}
			c.deviation("Process %s: all calls failed", who)
		})
	}
	wg.Wait()
	// A last call, without faults, must find the meeting that the others created.
	s := c.step(context.Background(), "last Process "+who, rnd)
	r, err := c.plain.Meetings.Process(s.ctx, c.params(who), known.audio, nil)
	c.checkProcess(s, r, err, known)
	if r == nil || r.Created {
		c.deviation("%s: found no meeting", s.name)
		return
	}
	c.mu.Lock()
	known.alive = map[string]bool{r.MeetingID: true}
	c.mu.Unlock()
}

func (c *chaos) params(who string) *minutes.MeetingCreateParams {
	return &minutes.MeetingCreateParams{Title: who + ".0", Date: "2026-11-20", ExternalID: who}
}

// crashing returns a context that may end at any time, mostly early.
func (c *chaos) crashing(rnd *rand.Rand) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	if rnd.IntN(2) == 0 {
		within := []time.Duration{time.Second, 10 * time.Second, 2 * time.Minute, 20 * time.Minute}
		time.AfterFunc(testkit.UpTo(rnd, within[rnd.IntN(len(within))]), cancel)
	}
	return ctx, cancel
}

// life is one process of a worker, until it crashes or is done.
type life struct {
	ctx    context.Context
	end    context.CancelFunc
	client *minutes.Client
}

// anyLife returns a life that may end at any time, on either Client.
func (c *chaos) anyLife(_ int, rnd *rand.Rand) life {
	ctx, cancel := c.crashing(rnd)
	return life{ctx, cancel, c.clients[rnd.IntN(2)]}
}

// processOnce runs the job once: with Resume, if it knows the meeting. It reports whether the job is done or failed for good.
func (c *chaos) processOnce(l life, who, id string, known *knowledge, rnd *rand.Rand) (r *minutes.Result, done bool) {
	defer l.end()
	opts := &minutes.ProcessOptions{Transcript: rnd.IntN(4) == 0}
	if rnd.IntN(2) == 0 {
		opts.Format = minutes.FormatMarkdown
	}
	s := c.step(l.ctx, "Process "+who, rnd)
	var err error
	if id == "" {
		r, err = l.client.Meetings.Process(s.ctx, c.params(who), known.audio, opts)
	} else {
		r, err = l.client.Meetings.Resume(s.ctx, id, known.audio, opts)
	}
	if r == nil {
		c.deviation("%s: no result: %v", s.name, err)
		return nil, true
	}
	if r.Created {
		c.made(r.MeetingID)
	}
	c.checkProcess(s, r, err, known)
	_, failed := errors.AsType[*minutes.MeetingFailedError](err)
	return r, err == nil || failed
}

// checkProcess checks the result of a job.
func (c *chaos) checkProcess(s *step, r *minutes.Result, err error, known *knowledge) {
	if err == nil {
		c.checkMinutes(s, r.Meeting.ID, r.Minutes)
		if state, there := c.srv.Meeting(r.Meeting.ID); there && r.Transcript != nil && r.Transcript.Text != state.Transcript {
			c.deviation("%s: the transcript differs", s.name)
		} else if there && state.Status != minutes.StatusMinutesReady {
			c.deviation("%s: returned nil, but the service's status is %s", s.name, state.Status)
		}
		c.checkAudio(r.Meeting.ID, known)
		return
	}
	c.checkError(s, err)
	if failed, ok := errors.AsType[*minutes.MeetingFailedError](err); ok {
		if state, there := c.srv.Meeting(failed.Meeting.ID); there && state.Status != failed.Status || r.Meeting == nil {
			c.deviation("%s: %v, but the service's status is %s", s.name, err, state.Status)
		}
		return
	}
	_, waited := errors.AsType[*minutes.WaitError](err)
	if waited && !foreign(err) && (s.ctx.Err() == nil || !errors.Is(err, s.ctx.Err())) {
		c.deviation("%s: %v", s.name, err)
	} else if !waited {
		c.checkGaveUp(s, err)
	}
}

// batch runs many jobs in one ProcessAll loop. It breaks or cancels the loop at random
// times and starts again until all jobs are done.
func (c *chaos) batch(who string, rnd *rand.Rand) {
	known := map[string]*knowledge{}
	left := map[string]bool{}
	for i := range 2 + rnd.IntN(8) {
		name := fmt.Sprint(who, "-", i)
		known[name], left[name] = c.name(name, rnd), true
		c.script(rnd, minutestest.Script{ExternalID: name})
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range left {
			if !yield(name) {
				return
			}
		}
	})
	for range maxCalls {
		c.batchOnce(names, known, left, rnd)
		if len(left) == 0 {
			return
		}
		// The loop that was left may still read names.
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !left[name] })
		time.Sleep(testkit.UpTo(rnd, 5*time.Minute))
	}
	c.deviation("ProcessAll: all calls failed for %v", left)
}

func (c *chaos) batchOnce(names []string, known map[string]*knowledge, left map[string]bool, rnd *rand.Rand) {
	ctx, cancel := c.crashing(rnd)
	defer cancel()
	s := c.step(ctx, "ProcessAll", rnd)
	leaves := len(names) + 1
	if rnd.IntN(4) == 0 {
		leaves = rnd.IntN(len(names) + 1)
	}
	jobs := func(yield func(minutes.Job) bool) {
		for _, name := range names {
			if !yield(minutes.Job{Params: c.params(name), Source: known[name].audio}) {
				return
			}
		}
	}
	yielded := map[string]bool{}
	for r, err := range c.clients[rnd.IntN(2)].Meetings.ProcessAll(s.ctx, jobs, nil) {
		if r == nil { // the loop is over
			c.checkError(s, err)
			if ctx.Err() == nil && !minutes.KeyRejected(err) { // by a gateway's 401
				c.deviation("ProcessAll ended: %v", err)
			}
			return
		}
		name := r.Params.ExternalID
		if yielded[name] {
			c.deviation("ProcessAll yielded %s twice", name)
		}
		yielded[name] = true
		if r.Meeting != nil {
			c.knows(known[name], r.Meeting.ID, true)
		}
		if r.Created {
			c.made(r.Meeting.ID)
		}
		// The jobs share a step, so only their results are checked, not whose
		// attempts were used up.
		if _, failed := errors.AsType[*minutes.MeetingFailedError](err); err == nil || failed {
			c.checkProcess(s, r, err, known[name])
			delete(left, name)
		} else {
			c.checkError(s, err)
		}
		if leaves--; leaves == 0 {
			return
		}
	}
	if ctx.Err() == nil && len(yielded) != len(names) {
		c.deviation("ProcessAll yielded %d of %d jobs", len(yielded), len(names))
	}
}
