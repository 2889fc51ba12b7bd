package test

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// compare compares the service's final state with the callers' results.
func (c *chaos) compare() {
	c.calm.Store(true)
	time.Sleep(3 * time.Minute) // idle connections close
	c.checkNothingRuns()
	if n := c.open.Load(); n > 0 {
		c.deviation("%d bodies of responses are open", n)
	}
	requests := c.sent.Load()
	c.compareMeetings()
	if secret.MatchString(c.log.String()) {
		c.deviation("the log shows a secret")
	}
	for _, v := range c.srv.Violations() {
		c.deviation("%v", v)
	}
	time.Sleep(time.Hour)
	if c.sent.Load() != requests {
		c.deviation("requests after the last call")
	}
}

// compareMeetings compares the service's meetings with those that callers know.
func (c *chaos) compareMeetings() {
	byName := map[string][]string{}
	for _, m := range c.srv.Meetings() {
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
	m, _ := c.srv.Meeting(id)
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

var bubbleOf = regexp.MustCompile(`synctest bubble \d+`)

// checkNothingRuns checks that the bubble has no goroutines except this one and the test's.
func (c *chaos) checkNothingRuns() {
	synctest.Wait()
	var buf []byte
	n := 0
	for size := 1 << 20; n == len(buf); size *= 2 { // all of them fit
		buf = make([]byte, size)
		n = runtime.Stack(buf, true)
	}
	stacks := strings.Split(string(buf[:n]), "\n\n")
	own := bubbleOf.FindString(stacks[0])
	for _, stack := range stacks[1:] {
		head, _, _ := strings.Cut(stack, "\n")
		if bubbleOf.FindString(head) == own && !strings.Contains(stack, "testing/synctest.Test") {
			c.deviation("a goroutine leaked:\n%s", stack)
		}
	}
}

// secret matches the keys, and the signature of an upload URL.
var secret = regexp.MustCompile(`mk_live_|X-Amz-Signature=[0-9a-f]`)

// checkError checks what holds for every error.
func (c *chaos) checkError(s *step, err error) {
	_, api := errors.AsType[*minutes.Error](err)
	_, storage := errors.AsType[*minutes.StorageError](err)
	_, wait := errors.AsType[*minutes.WaitError](err)
	if !api && !storage && !wait {
		c.deviation("%s: %T is not an error type of the package: %v", s.name, err, err)
	}
	s.note(func() {
		if !s.over.IsZero() && time.Since(s.over) > 0 {
			c.deviation("%s: returned %v after its context was done", s.name, time.Since(s.over))
		}
	})
	for _, verb := range []string{"%v", "%+v", "%#v", "%q"} {
		if text := fmt.Sprintf(verb, err); secret.MatchString(text) {
			c.deviation("%s: the error shows a secret: %s", s.name, text)
		}
	}
}

// checkGaveUp checks the error of a call: its context is done, or a fault has hit one of its
// requests. Rivals share their faults, because a fault is for a meeting.
func (c *chaos) checkGaveUp(s *step, err error) {
	c.checkError(s, err)
	ended := s.ctx.Err()
	if !c.rivals && !s.is(&s.troubled) && (ended == nil || !errors.Is(err, ended)) {
		c.deviation("%s failed without a fault: %v", s.name, err)
	}
}

// checkEnd checks the error that ended a loop: its context is done, or something in front of the
// service has rejected it.
func (c *chaos) checkEnd(s *step, err error) {
	c.checkError(s, err)
	if s.ctx.Err() == nil && !minutes.KeyRejected(err) && !foreign(err) {
		c.deviation("%s ended: %v", s.name, err)
	}
}

// foreign reports whether an error does not come from the service. Such errors end a wait after ten
// minutes without a good one.
func foreign(err error) bool {
	e, ok := errors.AsType[*minutes.Error](err)
	return ok && e.Code == "" && !minutes.Retryable(e)
}

// checkResult checks the result of a job or of a wait for minutes, and reports whether it is final.
func (c *chaos) checkResult(s *step, r *minutes.Result, err error) (final bool) {
	state, there := c.srv.Meeting(r.MeetingID)
	if _, failed := errors.AsType[*minutes.MeetingFailedError](err); err != nil && !failed {
		_, waited := errors.AsType[*minutes.WaitError](err)
		switch {
		case waited && r.MeetingID == "":
			c.deviation("%s: %v without a meeting", s.name, err)
		case waited && (foreign(err) || errors.Is(err, minutes.ErrForbidden)),
			waited && errors.Is(err, minutes.ErrNotFound) && !there:
			c.checkError(s, err)
		case waited && s.ctx.Err() == nil:
			c.deviation("%s: a wait ended: %v", s.name, err)
		default:
			c.checkGaveUp(s, err)
		}
		return false
	}
	if !there {
		return true
	}
	c.checkWait(s, r.MeetingID, minutes.StatusMinutesReady, r.Meeting, err)
	if err != nil {
		return true
	}
	want := state.HTML
	if r.Minutes.Format == minutes.FormatMarkdown {
		want = state.Markdown
	}
	if r.Minutes.Content != want || r.Transcript != nil && r.Transcript.Text != state.Transcript {
		c.deviation("%s: minutes or transcript differ from the service's", s.name)
	}
	return true
}

// happyPath orders the states of the happy path.
var happyPath = []minutes.Status{
	minutes.StatusCreated, minutes.StatusAudioUploaded, minutes.StatusTranscribing,
	minutes.StatusTranscribed, minutes.StatusGeneratingMinutes, minutes.StatusMinutesReady,
}

// maxNotifyDelay is how long after a meeting's end its waits must return. A failed poll costs a
// cycle, and rejections by a gateway up to five minutes.
const maxNotifyDelay = 2 * time.Hour

// checkWait checks what a wait returned.
func (c *chaos) checkWait(s *step, id string, until minutes.Status, m *minutes.Meeting, err error) {
	state, there := c.srv.Meeting(id)
	reached := func(h minutestest.Transition) bool { return h.Status == until }
	failed, isFailed := errors.AsType[*minutes.MeetingFailedError](err)
	// A meeting that failed may have passed until before. Its history says so.
	early := err == nil && !m.Status.Failed() && slices.Index(happyPath, m.Status) < slices.Index(happyPath, until)
	switch {
	case there && state.Status.Final() && min(time.Since(s.begun), time.Since(state.UpdatedAt)) > maxNotifyDelay:
		c.deviation("%s: returned %v after the end", s.name, time.Since(state.UpdatedAt))
	case err == nil && (m.ID != id || early):
		c.deviation("%s: returned meeting %s with status %s", s.name, m.ID, m.Status)
	case err == nil && there && !slices.ContainsFunc(state.History, reached):
		c.deviation("%s: returned, but the service's status is %s", s.name, state.Status)
	case isFailed && (failed.Meeting.ID != id || there && state.Status != failed.Status):
		c.deviation("%s: %v, but the service's status is %s", s.name, err, state.Status)
	case err == nil || isFailed:
	case s.ctx.Err() != nil && errors.Is(err, s.ctx.Err()),
		errors.Is(err, minutes.ErrNotFound) && !there,
		foreign(err):
		c.checkError(s, err)
	default:
		c.deviation("%s: %v", s.name, err)
	}
}
