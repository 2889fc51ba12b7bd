package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
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

// enoughTries is how often a caller calls again before the test takes it that
// there is no getting through: outages last for minutes.
const enoughTries = 30

// byHand takes a meeting through its life call by call.
func (c *chaos) byHand(who string, rnd *rand.Rand) {
	known := c.name(who, rnd)
	at := rnd.IntN(2)
	client := c.clients[at]
	c.script(rnd, minutestest.Script{Title: who + ".0"})
	m := c.create(client, who, known, rnd, rnd.IntN(2) == 0)
	if m == nil {
		return
	}
	var waiters sync.WaitGroup
	defer waiters.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range rnd.IntN(4) {
		own := rand.New(rand.NewPCG(rnd.Uint64(), 1))
		waiters.Go(func() { c.waiter(ctx, at, m.ID, own) })
	}
	if rnd.IntN(3) == 0 {
		s := c.step(ctx, "SetParticipants", rnd)
		if _, err := client.Meetings.SetParticipants(s.ctx, m.ID, []string{"emp_ada", "emp_ben"}); err != nil {
			c.gaveUp(s, err)
		} else if state, _ := c.srv.Meeting(m.ID); !slices.Equal(state.ParticipantIDs, []string{"emp_ada", "emp_ben"}) {
			c.deviation("SetParticipants: %v", state.ParticipantIDs)
		}
	}
	if rnd.IntN(4) == 0 {
		c.update(client, m.ID, who, rnd)
	}
	uploaders := 1
	if c.rivals && rnd.IntN(3) == 0 {
		uploaders = 2
	}
	var uploads sync.WaitGroup
	for range uploaders {
		own := rand.New(rand.NewPCG(rnd.Uint64(), 2))
		uploads.Go(func() { c.upload(client, m.ID, known, own, uploaders > 1) })
	}
	uploads.Wait()
	switch rnd.IntN(4) {
	case 0:
		time.Sleep(testkit.UpTo(rnd, 10*time.Minute))
		c.delete(client, m.ID, known, rnd)
		return
	case 1:
		c.update(client, m.ID, who, rnd)
	case 2:
		time.Sleep(testkit.UpTo(rnd, 10*time.Minute))
		cancel() // whoever still waits
		return
	}
	c.waiter(ctx, at, m.ID, rnd)
	state, ok := c.srv.Meeting(m.ID)
	if ok && state.Status == minutes.StatusMinutesReady {
		c.fetch(client, m.ID, rnd)
		if rnd.IntN(4) == 0 {
			c.update(client, m.ID, who, rnd)
		}
	}
}

// create makes one meeting. Without an external id, a caller who does not know
// what became of one makes another.
func (c *chaos) create(client *minutes.Client, who string, known *told, rnd *rand.Rand, referenced bool) *minutes.Meeting {
	for try := range enoughTries {
		p := &minutes.MeetingCreateParams{Title: fmt.Sprint(who, ".", try), Date: "2026-11-20"}
		if referenced {
			p.Title, p.ExternalID = who+".0", who
		}
		s := c.step(context.Background(), "Create "+p.Title, rnd)
		m, created, err := client.Meetings.Create(s.ctx, p)
		if err != nil {
			if referenced {
				c.gaveUp(s, err)
			} else {
				c.gaveUpOnce(s, err)
				if s.mayHaveActed() {
					c.orphan(known)
				}
			}
			if m != nil || created {
				c.deviation("%s: a value and an error", s.name)
			}
			time.Sleep(time.Minute)
			continue
		}
		c.knows(known, m.ID, true)
		state, ok := c.srv.Meeting(m.ID)
		switch {
		case !ok:
			c.deviation("%s: %s does not exist", s.name, m.ID)
		case state.Title != p.Title || state.ExternalID != p.ExternalID || m.Title != p.Title || m.ExternalID != p.ExternalID:
			c.deviation("%s: got another meeting: %+v", s.name, m)
		case created:
			c.made(m.ID)
		case !referenced:
			c.deviation("%s: found, though there was nothing to find it by", s.name)
		case try == 0 && !s.mayHaveActed():
			c.deviation("%s: said to have been there before, and was not", s.name)
		}
		return m
	}
	c.deviation("Create %s: no way through", who)
	return nil
}

// upload uploads as a careful caller does, until the audio is there.
func (c *chaos) upload(client *minutes.Client, id string, known *told, rnd *rand.Rand, rival bool) {
	for range enoughTries {
		s := c.step(context.Background(), "Upload "+id, rnd)
		opts := &minutes.UploadOptions{}
		if rnd.IntN(2) == 0 {
			var last int64
			opts.Progress = func(sent, total int64) {
				if sent > total || sent < last && sent > 32<<10 {
					c.deviation("%s: progress went from %d to %d of %d", s.name, last, sent, total)
				}
				last = sent
			}
		}
		err := client.Meetings.Upload(s.ctx, id, known.audio, opts)
		state, ok := c.srv.Meeting(id)
		there := ok && state.Audio != nil
		if err == nil {
			if !there {
				c.deviation("%s: nil, and the audio is not there", s.name)
			}
			return
		}
		late := s.any(func(t *try) bool { return t.late && t.op == minutestest.OpUpload })
		if refused, ok := errors.AsType[*minutes.StorageError](err); rival && there &&
			(errors.Is(err, minutes.ErrBadRequest) || errors.Is(err, minutes.ErrPartialAudio) || ok && refused.StatusCode == http.StatusForbidden) {
			c.typed(s, err) // the other one's came first
			return
		}
		c.gaveUp(s, err)
		// Where the last look went through, the service has said what to think.
		last := s.last()
		unlearnt := last != nil && last.op == "meetings.get" && last.passing()
		if there && !rival && !late && !unlearnt {
			c.deviation("%s: %v, and the audio is there", s.name, err)
		}
		time.Sleep(time.Minute)
		if state, _ := c.srv.Meeting(id); state.Audio != nil {
			return
		}
	}
	c.deviation("Upload %s: no way through", id)
}

// update changes the title; its end after the dot is nobody's business.
func (c *chaos) update(client *minutes.Client, id, who string, rnd *rand.Rand) {
	before, _ := c.srv.Meeting(id)
	title := fmt.Sprint(who, ".0 ", rnd.Uint32())
	s := c.step(context.Background(), "Update "+id, rnd)
	m, err := client.Meetings.Update(s.ctx, id, &minutes.MeetingUpdateParams{Title: new(title)})
	after, _ := c.srv.Meeting(id)
	switch {
	case err != nil:
		c.gaveUpOnce(s, err)
		if after.Title != before.Title && !s.mayHaveActed() {
			c.deviation("%s: %v, and the title is %q", s.name, err, after.Title)
		}
	case after.Title != title || m.Title != title:
		c.deviation("%s: nil, and the title is %q", s.name, after.Title)
	}
}

// delete deletes as a careful caller does, until the meeting is gone.
func (c *chaos) delete(client *minutes.Client, id string, known *told, rnd *rand.Rand) {
	if rnd.IntN(4) == 0 {
		s := c.step(context.Background(), "Delete of what never was", rnd)
		if err := client.Meetings.Delete(s.ctx, "mtg_never"); err == nil && !s.mayHaveActed() {
			c.deviation("%s: nil", s.name)
		}
	}
	c.knows(known, id, false)
	for range enoughTries {
		s := c.step(context.Background(), "Delete "+id, rnd)
		err := client.Meetings.Delete(s.ctx, id)
		_, there := c.srv.Meeting(id)
		if err == nil {
			if there {
				c.deviation("%s: nil, and the meeting is there", s.name)
			}
			return
		}
		if errors.Is(err, minutes.ErrNotFound) {
			c.deviation("%s: %v, and nobody else has deleted it", s.name, err)
		}
		c.gaveUp(s, err)
		if !there && !s.mayHaveActed() {
			c.deviation("%s: %v, and the meeting is gone", s.name, err)
		}
		time.Sleep(time.Minute) // for what is late
		if _, there := c.srv.Meeting(id); !there {
			return
		}
	}
	c.deviation("Delete %s: no way through", id)
}

// fetch reads minutes and transcript.
func (c *chaos) fetch(client *minutes.Client, id string, rnd *rand.Rand) {
	s := c.step(context.Background(), "Minutes "+id, rnd)
	got, err := client.Meetings.Minutes(s.ctx, id, minutes.FormatMarkdown)
	if err != nil {
		c.gaveUp(s, err)
	} else {
		c.sameMinutes(s, id, got)
	}
	s = c.step(context.Background(), "Transcript "+id, rnd)
	text, err := client.Meetings.Transcript(s.ctx, id)
	if state, _ := c.srv.Meeting(id); err != nil {
		c.gaveUp(s, err)
	} else if text != state.Transcript {
		c.deviation("%s is not the service's", s.name)
	}
}

func (c *chaos) sameMinutes(s *step, id string, got *minutes.Minutes) {
	state, ok := c.srv.Meeting(id)
	want := state.HTML
	if got.Format == minutes.FormatMarkdown {
		want = state.Markdown
	}
	if ok && (got.Content != want || want == "") {
		c.deviation("%s: minutes that are not the service's: %q", s.name, got.Content)
	}
}

// waiter waits for a meeting, from some time on, to some state, perhaps not to
// the end.
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

// patience is within what time of a meeting's end its waiters are told: looks
// that fail take a turn each, and refusals at the edge up to five minutes.
const patience = 2 * time.Hour

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
	if rnd.IntN(4) == 0 {
		opts.Interval = testkit.UpTo(rnd, 2*time.Minute)
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
			c.sameMinutes(s, id, got)
		}
	} else {
		m, err = c.clients[at].Meetings.Wait(s.ctx, id, opts)
		if (m == nil) == (err == nil) {
			c.deviation("%s: both or neither of a value and an error", s.name)
		}
	}
	done()
	c.waited(s, id, opts.Until, m, err, begun)
	c.saw(s, id, seen)
}

// waited checks the end of a wait.
func (c *chaos) waited(s *step, id string, until minutes.Status, m *minutes.Meeting, err error, begun time.Time) {
	state, there := c.srv.Meeting(id)
	if there && state.Status.Final() && time.Since(begun) > patience && time.Since(state.UpdatedAt) > patience {
		c.deviation("%s: told %v after the end", s.name, time.Since(state.UpdatedAt))
	}
	if err == nil {
		if m != nil && (m.ID != id || slices.Index(happyPath, m.Status) < slices.Index(happyPath, until)) {
			c.deviation("%s: ended at %s, %s", s.name, m.ID, m.Status)
		}
		if there && !slices.ContainsFunc(state.History, func(h minutestest.Transition) bool { return h.Status == until }) {
			c.deviation("%s: ended, and the service's state is %s", s.name, state.Status)
		}
		return
	}
	c.typed(s, err)
	if failed, ok := errors.AsType[*minutes.MeetingFailedError](err); ok {
		if !failed.Status.Failed() || failed.Meeting.ID != id || there && state.Status != failed.Status {
			c.deviation("%s: %v, and the service's state is %s", s.name, err, state.Status)
		}
		return
	}
	if wait, ok := errors.AsType[*minutes.WaitError](err); !ok || wait.MeetingID != id {
		c.deviation("%s: no WaitError of this meeting: %v", s.name, err)
	}
	switch {
	case s.ctx.Err() != nil && errors.Is(err, s.ctx.Err()):
	case errors.Is(err, minutes.ErrNotFound) && !there:
	default:
		if _, limited := s.ctx.Deadline(); !limited { // one may be too short for another try
			c.deviation("%s: %v", s.name, err)
		}
	}
}

// saw checks what a wait told on its way: states of the meeting, in order, each
// once.
func (c *chaos) saw(s *step, id string, seen []minutes.Status) {
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
		c.deviation("%s: was shown %v of %v", s.name, seen, state.History)
	}
}

// process does the whole job with one worker or two, each of which crashes at
// any time and begins again.
func (c *chaos) process(who string, rnd *rand.Rand) {
	known := c.name(who, rnd)
	restart := c.script(rnd, minutestest.Script{ExternalID: who}) && rnd.IntN(2) == 0
	workers := 1
	if c.rivals {
		workers += rnd.IntN(2)
	}
	vanishes := restart && workers > 1 // a rival may delete a meeting that failed
	var wg sync.WaitGroup
	for worker := range workers {
		own := rand.New(rand.NewPCG(rnd.Uint64(), 3))
		wg.Go(func() {
			restart, id := restart, ""
			for range enoughTries {
				life := c.live(worker, workers, own)
				job := c.wholeJob(life, who, known)
				if id != "" {
					job = c.restOfJob(life, id, known)
				}
				r, done := c.processOnce(life, who, job, known, own, restart, vanishes)
				if done {
					return
				}
				restart = restart && own.IntN(4) > 0
				id = ""
				if _, there := c.srv.Meeting(meetingID(r)); there && !restart && own.IntN(2) == 0 {
					id = meetingID(r) // the next one is given that, and begins soon
					time.Sleep(testkit.UpTo(own, time.Minute))
					continue
				}
				// A process that begins anew knows nothing of the last one's looks.
				time.Sleep(minutestest.PollFloor + testkit.UpTo(own, 5*time.Minute))
			}
			c.deviation("Process %s: no way through", who)
		})
	}
	wg.Wait()
	// The last word, and what everybody else must have left behind.
	s := c.step(context.Background(), "last Process "+who, rnd)
	r, err := c.plain.Meetings.Process(s.ctx, c.params(who), known.audio, nil)
	c.processed(s, r, err, known, false)
	if r == nil || r.Created {
		c.deviation("%s: there was no meeting", s.name)
		return
	}
	c.mu.Lock()
	known.alive = map[string]bool{r.Meeting.ID: true}
	c.mu.Unlock()
}

func (c *chaos) params(who string) *minutes.MeetingCreateParams {
	return &minutes.MeetingCreateParams{Title: who + ".0", Date: "2026-11-20", ExternalID: who}
}

// crashing is a context that may end at any time, mostly early.
func (c *chaos) crashing(rnd *rand.Rand) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	if rnd.IntN(2) == 0 {
		within := []time.Duration{time.Second, 10 * time.Second, 2 * time.Minute, 20 * time.Minute}
		time.AfterFunc(testkit.UpTo(rnd, within[rnd.IntN(len(within))]), func() {
			if ctx.Err() == nil {
				c.crashes.Add(1)
				cancel()
			}
		})
	}
	return ctx, cancel
}

// life is that of a worker, until it crashes or is done.
type life struct {
	ctx    context.Context
	end    context.CancelFunc
	client *minutes.Client
}

// anyLife is one that may end at any time, on any Client.
func (c *chaos) anyLife(_, _ int, rnd *rand.Rand) life {
	ctx, cancel := c.crashing(rnd)
	return life{ctx, cancel, c.clients[rnd.IntN(2)]}
}

func meetingID(r *minutes.Result) string {
	if r == nil || r.Meeting == nil {
		return ""
	}
	return r.Meeting.ID
}

// job is a Process or a Finish.
type job func(context.Context, *minutes.ProcessOptions) (*minutes.Result, error)

func (c *chaos) wholeJob(l life, who string, known *told) job {
	return func(ctx context.Context, opts *minutes.ProcessOptions) (*minutes.Result, error) {
		return l.client.Meetings.Process(ctx, c.params(who), known.audio, opts)
	}
}

func (c *chaos) restOfJob(l life, id string, known *told) job {
	return func(ctx context.Context, opts *minutes.ProcessOptions) (*minutes.Result, error) {
		opts.LookedAt = time.Now() // or earlier, who knows
		return l.client.Meetings.Finish(ctx, id, func() (minutes.Recording, error) { return known.audio, nil }, opts)
	}
}

// processOnce reports whether the job is done, or cannot be.
func (c *chaos) processOnce(l life, who string, job job, known *told, rnd *rand.Rand, restart, vanishes bool) (*minutes.Result, bool) {
	defer l.end()
	opts := &minutes.ProcessOptions{Restart: restart, Transcript: rnd.IntN(4) == 0}
	if rnd.IntN(2) == 0 {
		opts.Format = minutes.FormatMarkdown
	}
	s := c.step(l.ctx, "Process "+who, rnd)
	c.waits.Add(1)
	r, err := job(s.ctx, opts)
	if r == nil {
		c.deviation("%s: nothing was begun: %v", s.name, err)
		return nil, true
	}
	if r.Created {
		c.made(r.Meeting.ID)
	}
	c.processed(s, r, err, known, vanishes)
	if _, failed := errors.AsType[*minutes.MeetingFailedError](err); failed && restart {
		if err := c.srv.Script(minutestest.Script{ExternalID: who, Outcome: minutes.StatusMinutesReady}); err != nil {
			c.deviation("%v", err)
		}
		return r, false
	} else {
		return r, err == nil || failed
	}
}

// processed checks what a job came to. Where another worker may start over, a
// meeting may go away.
func (c *chaos) processed(s *step, r *minutes.Result, err error, known *told, vanishes bool) {
	if err == nil {
		c.sameMinutes(s, r.Meeting.ID, r.Minutes)
		if state, there := c.srv.Meeting(r.Meeting.ID); there && r.Transcript != "" && r.Transcript != state.Transcript {
			c.deviation("%s: another transcript", s.name)
		} else if there && state.Status != minutes.StatusMinutesReady {
			c.deviation("%s: nil, and the service's state is %s", s.name, state.Status)
		}
		c.oneAudio(r.Meeting.ID, known)
		return
	}
	c.typed(s, err)
	if failed, ok := errors.AsType[*minutes.MeetingFailedError](err); ok {
		if state, there := c.srv.Meeting(failed.Meeting.ID); there && state.Status != failed.Status || r.Meeting == nil {
			c.deviation("%s: %v, and the service's state is %s", s.name, err, state.Status)
		}
		return
	}
	if vanishes && errors.Is(err, minutes.ErrNotFound) {
		return
	}
	if _, waited := errors.AsType[*minutes.WaitError](err); waited && (s.ctx.Err() == nil || !errors.Is(err, s.ctx.Err())) {
		c.deviation("%s: %v", s.name, err)
		return
	}
	c.gaveUp(s, err)
}

// batch does many jobs in one loop, which is left or cancelled at any time, and
// begins again until all are done.
func (c *chaos) batch(who string, rnd *rand.Rand) {
	known := map[string]*told{}
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
	for range enoughTries {
		c.batchOnce(names, known, left, rnd)
		if len(left) == 0 {
			return
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !left[name] })
		time.Sleep(testkit.UpTo(rnd, 5*time.Minute))
	}
	c.deviation("ProcessAll: no way through for %v", left)
}

func (c *chaos) batchOnce(names []string, known map[string]*told, left map[string]bool, rnd *rand.Rand) {
	ctx, cancel := c.crashing(rnd)
	defer cancel()
	s := c.step(ctx, "ProcessAll", rnd)
	s.single = false
	leaves := len(names) + 1
	if rnd.IntN(4) == 0 {
		leaves = rnd.IntN(len(names) + 1)
	}
	jobs := func(yield func(minutes.Job) bool) {
		for _, name := range names {
			open := func() (minutes.Recording, error) { return known[name].audio, nil }
			if !yield(minutes.Job{Params: c.params(name), Open: open}) {
				return
			}
		}
	}
	yielded := map[string]bool{}
	for r, err := range c.clients[rnd.IntN(2)].Meetings.ProcessAll(s.ctx, jobs, nil) {
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
		// Its jobs share a step, which cannot tell whose tries were spent: what
		// is checked is what became of them.
		if _, failed := errors.AsType[*minutes.MeetingFailedError](err); err == nil || failed {
			c.processed(s, r, err, known[name], false)
			delete(left, name)
		} else {
			c.typed(s, err)
		}
		if leaves--; leaves == 0 {
			return
		}
	}
	if ctx.Err() == nil && len(yielded) != len(names) {
		c.deviation("ProcessAll yielded %d of %d jobs", len(yielded), len(names))
	}
}

// crowd has so many meetings waited for that pages are read. One of them may be
// deleted.
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
			c.deviation("a Create without trouble: %v", err)
			return
		}
		c.knows(known, m.ID, true)
		if i%every > 0 {
			continue
		}
		if err := c.plain.Meetings.Upload(context.Background(), m.ID, known.audio, nil); err != nil {
			c.deviation("an Upload without trouble: %v", err)
		}
		ids = append(ids, m.ID)
	}
	var waiters sync.WaitGroup
	defer waiters.Wait()
	all := ids[:rnd.IntN(len(ids)+1)]
	own := rand.New(rand.NewPCG(rnd.Uint64(), 4))
	waiters.Go(func() {
		for range 1 + own.IntN(3) { // those that were left are come back to
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

// waitAll waits for many meetings, perhaps not to the end.
func (c *chaos) waitAll(at int, ids []string, rnd *rand.Rand) {
	ctx, cancel := c.crashing(rnd)
	defer cancel()
	s := c.step(ctx, "WaitAll", rnd)
	c.waits.Add(int64(len(ids)))
	given := slices.Clone(ids)
	if len(ids) > 0 {
		given = append(given, ids[0]) // the same once more
	}
	begun := time.Now()
	done := c.networks[at].wait(ids...)
	defer done()
	yielded := map[string]bool{}
	ended := false
	for m, err := range c.clients[at].Meetings.WaitAll(s.ctx, slices.Values(given), nil) {
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
			c.deviation("WaitAll yielded %q, again or unasked", id)
		}
		yielded[id] = true
		c.waited(s, id, minutes.StatusMinutesReady, m, err, begun)
	}
	if !ended && len(yielded) != len(ids) {
		c.deviation("WaitAll yielded %d of %d", len(yielded), len(ids))
	}
}
