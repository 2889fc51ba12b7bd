package test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// maxCalls is how often a caller repeats a call before the test fails. Outages last for minutes.
const maxCalls = 30

// callByCall takes a meeting through its life call by call.
func (c *chaos) callByCall(who string, rnd *rand.Rand) {
	known := c.name(who, rnd)
	client := c.clients[rnd.IntN(2)]
	c.script(rnd, minutestest.Script{Title: who + ".0"})
	m := c.create(client, who, known, rnd, rnd.IntN(2) == 0)
	if m == nil {
		return
	}
	var others sync.WaitGroup
	defer others.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range rnd.IntN(4) {
		own := rand.New(rand.NewPCG(rnd.Uint64(), 1))
		others.Go(func() { c.waiter(ctx, client, m.ID, own) })
	}
	var uploads sync.WaitGroup
	rival := c.rivals && rnd.IntN(3) == 0
	if rival {
		own := rand.New(rand.NewPCG(rnd.Uint64(), 2))
		uploads.Go(func() { c.upload(client, m.ID, known, own, true) })
	}
	c.upload(client, m.ID, known, rnd, rival)
	uploads.Wait()
	switch rnd.IntN(4) {
	case 0:
		time.Sleep(testkit.UpTo(rnd, 10*time.Minute))
		c.note(func() { known.alive[m.ID] = false })
		c.srv.Delete(m.ID)
	case 1:
		time.Sleep(testkit.UpTo(rnd, 10*time.Minute))
		cancel() // whoever still waits
	default:
		c.waiter(ctx, client, m.ID, rnd)
	}
}

// create creates one meeting. If a caller without an external id loses the response, it creates
// another meeting.
func (c *chaos) create(
	client *minutes.Client, who string, known *knowledge, rnd *rand.Rand, referenced bool,
) *minutes.Meeting {
	for n := range maxCalls {
		p := &minutes.MeetingCreateParams{Title: fmt.Sprint(who, ".", n), Date: "2026-11-20"}
		if referenced {
			p = params(who)
		}
		s := c.step(context.Background(), "Create "+p.Title, rnd)
		m, created, err := client.Meetings.Create(s.ctx, p)
		if err != nil {
			c.checkGaveUp(s, err)
			if !referenced && s.is(&s.unknown) {
				c.note(func() { known.orphans++ })
			}
			time.Sleep(time.Minute)
			continue
		}
		c.note(func() { known.alive[m.ID] = true })
		if created {
			c.note(func() { c.created[m.ID]++ })
		}
		state, ok := c.srv.Meeting(m.ID)
		switch {
		case !ok:
			c.deviation("%s: %s does not exist", s.name, m.ID)
		case state.Title != p.Title || state.ExternalID != p.ExternalID,
			m.Title != p.Title || m.ExternalID != p.ExternalID:
			c.deviation("%s: got another meeting: %+v", s.name, m)
		case !created && (!referenced || n == 0 && !s.is(&s.unknown)):
			c.deviation("%s: not created, though no earlier request may have created it", s.name)
		}
		return m
	}
	c.deviation("Create %s: all calls failed", who)
	return nil
}

func params(who string) *minutes.MeetingCreateParams {
	return &minutes.MeetingCreateParams{Title: who + ".0", Date: "2026-11-20", ExternalID: who}
}

// upload uploads as a careful caller does, until the audio has arrived.
func (c *chaos) upload(client *minutes.Client, id string, known *knowledge, rnd *rand.Rand, rival bool) {
	for range maxCalls {
		s := c.step(context.Background(), "Upload "+id, rnd)
		err := client.Meetings.Upload(s.ctx, id, known.audio, nil)
		state, _ := c.srv.Meeting(id)
		there := state.Audio != nil
		if err == nil {
			if !there {
				c.deviation("%s: returned nil, but the audio is missing", s.name)
			}
			return
		}
		if there && (rival || s.is(&s.late)) && strings.Contains(err.Error(), "whole recording was never sent") {
			return // it cannot know of the rival's upload, nor of an attempt that the network delivered later
		}
		rejected, stored := errors.AsType[*minutes.StorageError](err)
		forbidden := stored && rejected.StatusCode == http.StatusForbidden
		if rival && there && (errors.Is(err, minutes.ErrBadRequest) || forbidden) {
			c.checkError(s, err) // the other upload was first
			return
		}
		c.checkGaveUp(s, err)
		if there && !rival && !s.is(&s.late) {
			c.deviation("%s: %v, but the audio arrived", s.name, err)
		}
		time.Sleep(time.Minute)
		if state, _ := c.srv.Meeting(id); state.Audio != nil {
			return
		}
	}
	c.deviation("Upload %s: all calls failed", id)
}

// waiter waits for a meeting: from a random time, to a random status, sometimes with a deadline.
func (c *chaos) waiter(ctx context.Context, client *minutes.Client, id string, rnd *rand.Rand) {
	if rnd.IntN(2) == 0 {
		time.Sleep(testkit.UpTo(rnd, 10*time.Minute))
	}
	if rnd.IntN(4) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, testkit.UpTo(rnd, 10*time.Minute))
		defer cancel()
	}
	until := minutes.StatusMinutesReady
	if rnd.IntN(2) == 0 {
		until = happyPath[1+rnd.IntN(5)]
	}
	s := c.step(ctx, fmt.Sprint("Wait ", id, " until ", until), rnd)
	m, err := client.Meetings.Wait(s.ctx, id, &minutes.WaitOptions{Until: until})
	c.checkWait(s, id, until, m, err)
}

// process runs a whole job with one or two workers. Their processes die at any point, and start
// again.
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
				r, done := c.processOnce(worker, who, id, known, own)
				if done {
					return
				}
				id = ""
				if own.IntN(2) == 0 {
					id = r.MeetingID
				}
				// A new Client takes the replica's word for it that there is no such meeting.
				time.Sleep(c.replica.late + testkit.UpTo(own, 5*time.Minute))
			}
			c.deviation("Process %s: all calls failed", who)
		})
	}
	wg.Wait()
	// A last call, without faults, must find the meeting that the others created.
	s := c.step(context.Background(), "last Process "+who, rnd)
	r, err := c.plain.Meetings.Process(s.ctx, params(who), known.audio, nil)
	if !c.checkResult(s, r, err) || r.Created {
		c.deviation("%s: found no finished meeting: %v", s.name, err)
	}
	c.note(func() { known.alive = map[string]bool{r.MeetingID: true} })
}

// processOnce runs the job in a new process, with Resume if the process knows the meeting. It
// reports whether the job is done. Most processes die at one of their first requests.
func (c *chaos) processOnce(
	worker int, who, id string, known *knowledge, rnd *rand.Rand,
) (r *minutes.Result, done bool) {
	network := c.newNetwork(rand.New(rand.NewPCG(rnd.Uint64(), 4)))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if rnd.IntN(4) > 0 {
		network.die = cancel
		network.left = 1 + rnd.IntN(10)
		network.when = death(rnd.IntN(3))
	}
	client := c.srv.ClientWithKey(chaosKeys[worker], minutes.WithHTTPClient(&http.Client{Transport: network}))
	s := c.step(ctx, "Process "+who, rnd)
	opts := &minutes.ProcessOptions{Transcript: rnd.IntN(4) == 0, Format: minutes.FormatMarkdown}
	var err error
	if id == "" {
		r, err = client.Meetings.Process(s.ctx, params(who), known.audio, opts)
	} else {
		r, err = client.Meetings.Resume(s.ctx, id, known.audio, opts)
	}
	if r.Created {
		c.note(func() { c.created[r.MeetingID]++ })
	}
	return r, c.checkResult(s, r, err)
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

// batch runs many jobs in one ProcessAll loop. It breaks or cancels the loop at random times and
// starts again until all jobs are done.
func (c *chaos) batch(who string, rnd *rand.Rand) {
	known := map[string]*knowledge{}
	var left []string
	for i := range 2 + rnd.IntN(8) {
		name := fmt.Sprint(who, "-", i)
		known[name] = c.name(name, rnd)
		left = append(left, name)
		c.script(rnd, minutestest.Script{ExternalID: name})
	}
	for range maxCalls {
		done := c.batchOnce(left, known, rnd)
		// The loop that was left may still read the names.
		left = slices.DeleteFunc(slices.Clone(left), func(name string) bool { return done[name] })
		if len(left) == 0 {
			return
		}
		time.Sleep(testkit.UpTo(rnd, 5*time.Minute))
	}
	c.deviation("ProcessAll: all calls failed for %v", left)
}

func (c *chaos) batchOnce(names []string, known map[string]*knowledge, rnd *rand.Rand) (done map[string]bool) {
	ctx, cancel := c.crashing(rnd)
	defer cancel()
	s := c.step(ctx, "ProcessAll", rnd)
	leaves := 1 + rnd.IntN(2*len(names)) // after this many results
	jobs := func(yield func(minutes.Job) bool) {
		for _, name := range names {
			if !yield(minutes.Job{Params: params(name), Source: known[name].audio}) {
				return
			}
		}
	}
	yielded := map[string]bool{}
	done = map[string]bool{}
	for r, err := range c.clients[rnd.IntN(2)].Meetings.ProcessAll(s.ctx, jobs, nil) {
		if err != nil { // the loop is over
			c.checkEnd(s, err)
			return done
		}
		name := r.Params.ExternalID
		if yielded[name] {
			c.deviation("ProcessAll yielded %s twice", name)
		}
		yielded[name] = true
		c.note(func() {
			if r.Meeting != nil {
				known[name].alive[r.MeetingID] = true
			}
			if r.Created {
				c.created[r.MeetingID]++
			}
		})
		done[name] = c.checkResult(s, r, r.Err)
		if len(yielded) == leaves {
			return done
		}
	}
	if ctx.Err() == nil && len(yielded) != len(names) {
		c.deviation("ProcessAll yielded %d of %d jobs", len(yielded), len(names))
	}
	return done
}

// crowd waits for many meetings at once. For an hour, nobody can read the minutes of one of them.
func (c *chaos) crowd(who string, rnd *rand.Rand) {
	known := c.name(who, rnd)
	var ids []string
	for i := range 2 + rnd.IntN(40) {
		title := fmt.Sprint(who, ".", i)
		stages := &minutestest.Stages{Prepare: testkit.UpTo(rnd, 20*time.Minute)}
		c.script(rnd, minutestest.Script{Title: title, Stages: stages})
		in := &minutes.MeetingCreateParams{Title: title, Date: "2026-11-20"}
		m, _, err := c.plain.Meetings.Create(context.Background(), in)
		if err == nil {
			err = c.plain.Meetings.Upload(context.Background(), m.ID, known.audio, nil)
		}
		if err != nil {
			c.deviation("a call without faults: %v", err)
			return
		}
		c.note(func() { known.alive[m.ID] = true })
		ids = append(ids, m.ID)
	}
	first := minutestest.Match{Operation: minutes.OpMeetingsMinutes, MeetingID: ids[0], Times: minutestest.Always}
	bad := c.srv.Inject(first, minutestest.Refuse(minutes.ErrForbidden)).Optional()
	time.AfterFunc(time.Hour, bad.Stop)
	time.Sleep(c.replica.late) // the Clients below have not created these meetings, so a 404 would be a verdict
	var loops sync.WaitGroup
	defer loops.Wait()
	for _, client := range c.clients {
		loop := []func(*minutes.Client, []string, *rand.Rand){c.waitAll, c.follow}[rnd.IntN(2)]
		own := rand.New(rand.NewPCG(rnd.Uint64(), 5))
		loops.Go(func() { loop(client, ids, own) })
	}
}

// waitAll waits for all meetings once, and sometimes crashes.
func (c *chaos) waitAll(client *minutes.Client, ids []string, rnd *rand.Rand) {
	ctx, cancel := c.crashing(rnd)
	defer cancel()
	s := c.step(ctx, "WaitAll", rnd)
	yielded := map[string]bool{}
	for r, err := range client.Meetings.WaitAll(s.ctx, slices.Values(slices.Concat(ids, ids[:1])), nil) {
		if err != nil { // the loop is over
			c.checkEnd(s, err)
			return
		}
		if yielded[r.MeetingID] || !slices.Contains(ids, r.MeetingID) {
			c.deviation("WaitAll yielded %q, twice or without being asked", r.MeetingID)
		}
		yielded[r.MeetingID] = true
		c.checkResult(s, r, r.Err)
	}
	if len(yielded) != len(ids) {
		c.deviation("WaitAll yielded %d of %d", len(yielded), len(ids))
	}
}

// follow runs Follow, with crashes, until it has yielded the result of each meeting.
func (c *chaos) follow(client *minutes.Client, ids []string, rnd *rand.Rand) {
	done := map[string]bool{}
	missing := func() bool { return slices.ContainsFunc(ids, func(id string) bool { return !done[id] }) }
	run := func() {
		ctx, cancel := c.crashing(rnd)
		defer cancel()
		s := c.step(ctx, "Follow", rnd)
		opts := &minutes.FollowOptions{Since: c.begun, Handled: func(m *minutes.Meeting) bool { return done[m.ID] }}
		for r, err := range client.Meetings.Follow(s.ctx, opts) {
			if err != nil { // the loop is over
				c.checkEnd(s, err)
				return
			}
			done[r.MeetingID] = c.checkResult(s, r, r.Err)
			if !missing() {
				return
			}
		}
	}
	for range maxCalls {
		run()
		if !missing() {
			return
		}
	}
	c.deviation("Follow: not all meetings were yielded")
}
