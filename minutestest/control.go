package minutestest

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/mistake"
)

// Release lets a meeting continue that the Hold of a [Script] has stopped, and reports whether it was
// held. The meeting changes its status when the time of its stage is over, or at once if it already
// is. The test fails if there is no such meeting.
func (s *Server) Release(meetingID string) bool {
	s.reporter.Helper()
	before, _ := s.Meeting(meetingID)
	held, err := s.engine.Release(meetingID)
	if err != nil {
		s.reporter.Mistake("Release", err)
		return false
	}
	if held {
		s.inspector.Did("Release", meetingID, "no longer held in "+string(before.Status))
	}
	return held
}

// Advance moves a meeting with audio on until it has the given status. It does not wait for the clock,
// and it ignores a Hold. If until is "", it moves the meeting by one status. It returns the status
// reached. From there, the meeting goes on by itself, at once if its stages take no time.
//
// The test fails if the meeting cannot reach the status from where it is; the message says why. If
// stages take no time and there is no Hold, a meeting is past every status but its last as soon as its
// audio arrives. Advance does not decide how a meeting ends: the Outcome of a [Script] does.
func (s *Server) Advance(meetingID string, until minutes.Status) minutes.Status {
	s.reporter.Helper()
	before, _ := s.Meeting(meetingID)
	status, err := s.engine.Advance(meetingID, until)
	if status != "" && status != before.Status {
		s.inspector.Did("Advance", meetingID, string(before.Status)+" → "+string(status))
	}
	if err != nil {
		s.reporter.Mistake("Advance", err)
	}
	return status
}

// AdvanceClock moves the service's time ahead by d, and returns the new time. A program outside a
// synctest bubble then sees at once what takes the service a week: upload URLs and keys expire,
// quotas are topped up, and meetings progress. The clocks of clients and of the audit stay as they
// are. A negative d changes nothing, because time never goes back. More than 100 years in total
// fail the test.
func (s *Server) AdvanceClock(d time.Duration) time.Time {
	s.reporter.Helper()
	now, err := s.engine.AdvanceClock(d)
	if err != nil {
		s.reporter.Mistake("AdvanceClock", err)
		return now
	}
	s.inspector.Did("AdvanceClock", "", fmt.Sprintf("%s on, to %s", d, now.Format(time.RFC3339)))
	return now
}

// Now returns the service's time, which is time.Now unless [Server.AdvanceClock] moved it ahead.
func (s *Server) Now() time.Time { return s.engine.Now() }

// Delete deletes a meeting, whoever created it, as if somebody else did so while the program under
// test waits for it. The test fails if there is no such meeting.
func (s *Server) Delete(meetingID string) {
	s.reporter.Helper()
	m, _ := s.engine.Meeting(meetingID)
	err := s.engine.Delete(meetingID)
	if err != nil {
		s.reporter.Mistake("Delete", err)
		return
	}
	s.inspector.Did("Delete", meetingID, fmt.Sprintf("%q is gone", m.Title))
}

// AddMeetings adds meetings of other creators, for tests of a program that follows all meetings of
// an organisation, and returns their ids in order. Each meeting begins in its Status, whatever the
// scripts say and without using quota. From there it continues by itself, and the scripts apply.
// With [minutes.StatusCreated] it has no audio yet.
//
//	ids := srv.AddMeetings("org_acme", minutestest.WorldMeeting{
//		Title: "Standup", CreatorID: "emp_ada", Status: minutes.StatusAudioUploaded, Count: 20,
//	})
//
// If any of them is invalid, none is added and the test fails with its path, such as
// "meetings[0].title".
func (s *Server) AddMeetings(organisation string, meetings ...WorldMeeting) (ids []string) {
	s.reporter.Helper()
	ids, err := s.engine.Add(organisation, meetings)
	if err != nil {
		s.reporter.Mistake("AddMeetings", err)
		return nil
	}
	s.inspector.Did("AddMeetings "+organisation, "", fmt.Sprintf("%d meetings", len(ids)))
	return ids
}

// Meetings returns the meetings of all organisations as they are now, the oldest first.
func (s *Server) Meetings() []Meeting { return s.engine.Meetings() }

// Meeting returns a meeting of any organisation as it is now.
func (s *Server) Meeting(id string) (Meeting, bool) { return s.engine.Meeting(id) }

// World returns the settings of all organisations as they are now, with the quota that is left and
// the objects added through the service, but without meetings.
func (s *Server) World() World { return s.engine.World() }

// Organisation returns one organisation of [Server.World]. The test fails if there is none with
// this id.
func (s *Server) Organisation(id string) Organisation {
	s.reporter.Helper()
	w := s.World()
	var o Organisation
	err := mistake.Catch(func() { o = *w.Organisation(id) })
	if err != nil {
		s.reporter.Mistake("Organisation", err)
	}
	return o
}

// Update changes anything in an Organisation while it is in use, such as its quota, its keys or a
// member's status, but not its id and its meetings. A mistake, such as a key that does not exist,
// fails the test, and then nothing changes. change runs under the Server's lock, so it must not
// call the Server.
//
//	srv.Update("org_acme", func(o *minutestest.Organisation) {
//		o.Credits = new(0)
//		o.Key("key_ci").Revoked = true
//	})
func (s *Server) Update(organisation string, change func(*Organisation)) {
	s.reporter.Helper()
	s.update("Update", organisation, func(w *World) error {
		o := w.Organisation(organisation)
		change(o)
		o.ID = organisation
		return nil
	})
}

// UpdateWorld is like [Server.Update], but changes all organisations, the stages and the page
// sizes. A new organisation begins with its Meetings, and one that you leave out is gone with its
// meetings. If change returns an error, nothing changes, and the error fails the test.
func (s *Server) UpdateWorld(change func(*World) error) {
	s.reporter.Helper()
	s.update("UpdateWorld", "", change)
}

func (s *Server) update(method, organisation string, change func(*World) error) {
	s.reporter.Helper()
	var rejected error
	unknown := mistake.Catch(func() { rejected = s.engine.Update(change) })
	err := cmp.Or(unknown, rejected)
	if err != nil {
		s.reporter.Mistake(method, err)
		return
	}
	s.inspector.Did(strings.TrimSpace(method+" "+organisation), "")
}

// SetPageSizes makes list pages of meetings short or empty, as the API permits, by setting
// PageSizes of the [World]. The first page of a list has sizes[0] meetings at most, the next page
// sizes[1], and so on; after the last size they start over. A page of 0 is empty but has a next
// cursor, so not all sizes may be 0. Without sizes, pages are full again.
func (s *Server) SetPageSizes(sizes ...int) {
	s.reporter.Helper()
	s.UpdateWorld(func(w *World) error {
		w.PageSizes = sizes
		return nil
	})
}
