package test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// maxCalls is how often a caller repeats a call before the test fails. Outages last
// for minutes.
const maxCalls = 30

// callByCall takes a meeting through its life call by call.
func (c *chaos) callByCall(who string, rnd *rand.Rand) {
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
	c.uploadOnceOrTwice(client, m.ID, known, rnd)
	switch rnd.IntN(4) {
	case 0:
		time.Sleep(testkit.UpTo(rnd, 10*time.Minute))
		c.delete(client, m.ID, known, rnd)
		return
	case 1:
		time.Sleep(testkit.UpTo(rnd, 10*time.Minute))
		cancel() // whoever still waits
		return
	}
	c.waiter(ctx, at, m.ID, rnd)
	state, ok := c.srv.Meeting(m.ID)
	if ok && state.Status == minutes.StatusMinutesReady {
		c.fetch(client, m.ID, rnd)
	}
}

// create creates one meeting. If a caller without an external id loses the response,
// it creates another meeting.
func (c *chaos) create(client *minutes.Client, who string, known *knowledge, rnd *rand.Rand, referenced bool) *minutes.Meeting {
	for n := range maxCalls {
		p := &minutes.MeetingCreateParams{Title: fmt.Sprint(who, ".", n), Date: "2026-11-20"}
		if referenced {
			p.Title, p.ExternalID = who+".0", who
		}
		s := c.step(context.Background(), "Create "+p.Title, rnd)
		m, created, err := client.Meetings.Create(s.ctx, p)
		if err != nil {
			c.checkGaveUp(s, err)
			if !referenced && s.mayHaveTakenEffect() {
				c.orphan(known)
			}
			if m != nil || created {
				c.deviation("%s: returned a value and an error", s.name)
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
			c.deviation("%s: not created, though it has no external id", s.name)
		case n == 0 && !s.mayHaveTakenEffect():
			c.deviation("%s: not created, though no earlier attempt reached the service", s.name)
		}
		return m
	}
	c.deviation("Create %s: all calls failed", who)
	return nil
}

// uploadOnceOrTwice uploads the recording with one caller, or with two at the same time.
func (c *chaos) uploadOnceOrTwice(client *minutes.Client, id string, known *knowledge, rnd *rand.Rand) {
	uploaders := 1
	if c.rivals && rnd.IntN(3) == 0 {
		uploaders = 2
	}
	var group sync.WaitGroup
	for range uploaders {
		own := rand.New(rand.NewPCG(rnd.Uint64(), 2))
		group.Go(func() { c.upload(client, id, known, own, uploaders > 1) })
	}
	group.Wait()
}

// upload uploads as a careful caller does, until the audio has arrived.
func (c *chaos) upload(client *minutes.Client, id string, known *knowledge, rnd *rand.Rand, rival bool) {
	for range maxCalls {
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
				c.deviation("%s: returned nil, but the audio is missing", s.name)
			}
			return
		}
		late := s.any(func(t *attempt) bool { return t.late && t.op == minutes.OpUpload })
		if rejected, ok := errors.AsType[*minutes.StorageError](err); rival && there &&
			(errors.Is(err, minutes.ErrBadRequest) || ok && rejected.StatusCode == http.StatusForbidden) {
			c.checkError(s, err) // the other upload was first
			return
		}
		c.checkGaveUp(s, err)
		unknown := errors.Is(err, context.DeadlineExceeded) // the poll after a lost response got no answer
		if there && !rival && !late && !unknown {
			c.deviation("%s: %v, but the audio arrived", s.name, err)
		}
		time.Sleep(time.Minute)
		if state, _ := c.srv.Meeting(id); state.Audio != nil {
			return
		}
	}
	c.deviation("Upload %s: all calls failed", id)
}

// delete deletes as a careful caller does, until the meeting is gone.
func (c *chaos) delete(client *minutes.Client, id string, known *knowledge, rnd *rand.Rand) {
	if rnd.IntN(4) == 0 {
		s := c.step(context.Background(), "Delete of an unknown meeting", rnd)
		if err := client.Meetings.Delete(s.ctx, "mtg_never"); err == nil && !s.mayHaveTakenEffect() {
			c.deviation("%s: returned nil", s.name)
		}
	}
	c.knows(known, id, false)
	for range maxCalls {
		s := c.step(context.Background(), "Delete "+id, rnd)
		err := client.Meetings.Delete(s.ctx, id)
		_, there := c.srv.Meeting(id)
		if err == nil {
			if there {
				c.deviation("%s: returned nil, but the meeting exists", s.name)
			}
			s = c.step(context.Background(), "Wait for the deleted "+id, rnd)
			if m, err := client.Meetings.Wait(s.ctx, id, &minutes.WaitOptions{Until: minutes.StatusCreated}); !errors.Is(err, minutes.ErrNotFound) {
				c.deviation("%s: %v, %v", s.name, m, err)
			}
			return
		}
		if errors.Is(err, minutes.ErrNotFound) {
			c.deviation("%s: %v, but nobody else deleted it", s.name, err)
		}
		c.checkGaveUp(s, err)
		if !there && !s.mayHaveTakenEffect() {
			c.deviation("%s: %v, but the meeting is gone", s.name, err)
		}
		time.Sleep(time.Minute) // for late requests
		if _, there := c.srv.Meeting(id); !there {
			return
		}
	}
	c.deviation("Delete %s: all calls failed", id)
}

// fetch reads minutes and transcript.
func (c *chaos) fetch(client *minutes.Client, id string, rnd *rand.Rand) {
	s := c.step(context.Background(), "Minutes "+id, rnd)
	got, err := client.Meetings.Minutes(s.ctx, id, minutes.FormatMarkdown)
	if err != nil {
		c.checkGaveUp(s, err)
	} else {
		c.checkMinutes(s, id, got)
	}
	s = c.step(context.Background(), "Transcript "+id, rnd)
	text, err := client.Meetings.Transcript(s.ctx, id)
	if state, _ := c.srv.Meeting(id); err != nil {
		c.checkGaveUp(s, err)
	} else if text.Text != state.Transcript {
		c.deviation("%s differs from the service's transcript", s.name)
	}
}

func (c *chaos) checkMinutes(s *step, id string, got *minutes.Minutes) {
	state, ok := c.srv.Meeting(id)
	want := state.HTML
	if got.Format == minutes.FormatMarkdown {
		want = state.Markdown
	}
	if ok && (got.Content != want || want == "") {
		c.deviation("%s: the minutes differ from the service's: %q", s.name, got.Content)
	}
}
