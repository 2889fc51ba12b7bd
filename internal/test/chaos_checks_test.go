package test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/meeting-minutes/minutes-go"
)

// compare compares the service's final state with the callers' results.
func (c *chaos) compare() {
	c.noFaults.Store(true)
	time.Sleep(3 * time.Minute) // idle connections close
	c.checkNothingRuns()
	if n := c.open.Load(); n > 0 {
		c.deviation("%d bodies of responses are open", n)
	}
	requests := c.sent.Load()
	c.compareMeetings()
	if log := c.log.String(); c.showsSecret(log) {
		c.deviation("the log shows a secret")
	}
	time.Sleep(time.Hour)
	if c.sent.Load() != requests {
		c.deviation("requests after the last call")
	}
}

// compareMeetings compares the service's meetings with those that callers know.
func (c *chaos) compareMeetings() {
	byName := map[string][]string{}
	c.srv.SetPageSizes()
	for m, err := range c.plain.Meetings.All(c.t.Context(), &minutes.MeetingListParams{Limit: 50}) {
		if err != nil {
			c.deviation("listing: %v", err)
			return
		}
		name, _, _ := strings.Cut(m.Title, ".")
		byName[name] = append(byName[name], m.ID)
	}
	for name, ids := range byName {
		known := c.known[name]
		if known == nil {
			c.deviation("no caller created %s", name)
			continue
		}
		strangers := 0
		for _, id := range ids {
			c.checkAudio(id, known)
			if !known.alive[id] {
				strangers++
			}
		}
		if strangers > known.orphans {
			c.deviation("%s: %d meetings that no caller knows, at most %d expected", name, strangers, known.orphans)
		}
	}
	for name, known := range c.known {
		for id, certain := range known.alive {
			if certain && !slices.Contains(byName[name], id) {
				c.deviation("%s: %s is lost", name, id)
			}
		}
	}
	for id, n := range c.created {
		if n > 1 {
			c.deviation("%d callers created %s", n, id)
		}
	}
}

// checkAudio checks that a meeting has the recording that was sent, once, or none.
func (c *chaos) checkAudio(id string, known *knowledge) {
	m, ok := c.srv.Meeting(id)
	if !ok {
		return
	}
	n := 0
	for _, h := range m.History {
		if h.Status == minutes.StatusAudioUploaded {
			n++
		}
	}
	switch {
	case m.Audio == nil && n == 0:
	case m.Audio == nil || n != 1:
		c.deviation("%s got its audio %d times", id, n)
	case m.Audio.SHA256 != known.sum || m.Audio.Size != known.size:
		c.deviation("%s has other audio than was sent", id)
	}
}

var bubbleOf = regexp.MustCompile(`synctest bubble (\d+)`)

// checkNothingRuns checks that the bubble has no goroutines except this one and the
// test's.
func (c *chaos) checkNothingRuns() {
	synctest.Wait()
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	stacks := strings.Split(string(buf), "\n\n")
	own := bubbleOf.FindString(stacks[0])
	if own == "" {
		c.deviation("no bubble in %s", stacks[0])
	}
	for _, stack := range stacks[1:] {
		head, _, _ := strings.Cut(stack, "\n")
		if bubbleOf.FindString(head) == own && !strings.Contains(stack, "testing/synctest.Test") {
			c.deviation("a goroutine leaked:\n%s", stack)
		}
	}
}

// checkError checks what holds for every error.
func (c *chaos) checkError(s *step, err error) {
	_, api := errors.AsType[*minutes.Error](err)
	_, storage := errors.AsType[*minutes.StorageError](err)
	_, wait := errors.AsType[*minutes.WaitError](err)
	_, failed := errors.AsType[*minutes.MeetingFailedError](err)
	if !api && !storage && !wait && !failed {
		c.deviation("%s: %T is not an error type of the package: %v", s.name, err, err)
	}
	s.note(func() {
		if !s.over.IsZero() && time.Since(s.over) > 0 {
			c.deviation("%s: returned %v after its context was done", s.name, time.Since(s.over))
		}
	})
	for _, verb := range []string{"%v", "%+v", "%#v", "%q"} {
		if text := fmt.Sprintf(verb, err); c.showsSecret(text) {
			c.deviation("%s: the error shows a secret: %s", s.name, text)
		}
	}
}

// checkGaveUp checks the error of a call: its context is done, a fault has hit one of its requests, or the poll after an
// upload got no answer. Rivals share their faults, because a fault is for a meeting.
func (c *chaos) checkGaveUp(s *step, err error) {
	c.checkError(s, err)
	ended := s.ctx.Err()
	if c.rivals || ended != nil && errors.Is(err, ended) || errors.Is(err, context.DeadlineExceeded) || s.any(func(t *attempt) bool { return t.troubled }) {
		return
	}
	c.deviation("%s failed without a fault: %v", s.name, err)
}

// foreign reports whether the last response of a wait was not the service's, which ends it after ten minutes without a good one.
func foreign(err error) bool {
	e, ok := errors.AsType[*minutes.Error](err)
	return ok && e.Code == "" && !minutes.Retryable(e)
}
