package minutestest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// Script sets the outcome of meetings from now on: of future meetings, and of the remaining stages
// of meetings in progress. A script replaces an earlier one for the same meetings; an empty one
// removes it. An invalid one fails the test, as in [Server.Inject]; those before it take effect.
//
// A script may match no meeting. If the test of [NewServer] fails, its log names each script for a
// title or external id that no meeting has at the end.
func (s *Server) Script(scripts ...Script) {
	s.helper()
	for _, sc := range scripts {
		if err := s.engine.Script(sc); err != nil {
			s.fail("Script", err)
			return
		}
		s.inspector.Did("Script", sc.MeetingID, summary(sc))
	}
}

func summary(sc Script) string {
	text, _ := json.Marshal(sc)
	return string(text)
}

// UnmatchedScripts returns the scripts for a title or an external id that no meeting has now,
// because a typing error there may be why a test failed.
func (s *Server) UnmatchedScripts() []Script {
	meetings := s.engine.Meetings()
	return slices.DeleteFunc(s.engine.Scripts(), func(sc Script) bool {
		return sc.ExternalID == "" && sc.Title == "" || slices.ContainsFunc(meetings, func(m Meeting) bool {
			return sc.ExternalID != "" && sc.ExternalID == m.ExternalID || sc.Title != "" && sc.Title == m.Title
		})
	})
}

// Release lets a meeting that a script holds go on, and reports whether one held it. The rest of
// its stage still has to pass.
func (s *Server) Release(meetingID string) bool {
	released := s.engine.Release(meetingID)
	if released {
		m, _ := s.Meeting(meetingID)
		s.inspector.Did("Release", meetingID, "no longer held in "+string(m.Status))
	}
	return released
}

// Advance moves a meeting that has audio on without waiting for the clock, held or not, until its
// status is until or final. If until is "", it moves the meeting by one status. It returns the
// status reached. A meeting that does not exist, has no audio or is past until fails the test.
func (s *Server) Advance(meetingID string, until minutes.Status) minutes.Status {
	s.helper()
	before, _ := s.Meeting(meetingID)
	status, err := s.engine.Advance(meetingID, until)
	if err != nil {
		s.fail("Advance", err)
		return status
	}
	if status != before.Status {
		s.inspector.Did("Advance", meetingID, string(before.Status)+" → "+string(status))
	}
	return status
}

// AdvanceClock moves the service's time on by d, and returns the new time, so that a program that
// does not run in a synctest bubble sees within its own seconds what takes the service a week:
// upload URLs and keys expire, quotas are topped up, and meetings progress. The clocks of clients
// stay as they are, and so does that of the audit. A d below zero changes nothing, because time
// never goes back.
func (s *Server) AdvanceClock(d time.Duration) time.Time {
	now := s.engine.AdvanceClock(d)
	s.inspector.Did("AdvanceClock", "", fmt.Sprintf("%s on, to %s", d, now.Format(time.RFC3339)))
	return now
}

// Now returns the service's time, which is time.Now unless [Server.AdvanceClock] moved it on.
func (s *Server) Now() time.Time { return s.engine.Now() }

// Delete deletes a meeting, whoever created it, as if somebody else did so while the program under
// test was waiting for it. It reports whether there was one.
func (s *Server) Delete(meetingID string) bool {
	m, _ := s.engine.Meeting(meetingID)
	deleted := s.engine.Delete(meetingID)
	if deleted {
		s.inspector.Did("Delete", meetingID, fmt.Sprintf("%q is gone", m.Title))
	}
	return deleted
}

// AddMeetings adds meetings of other creators, for tests of a program that follows all meetings of
// an organisation. Each has its Status at once, without regard to scripts, and continues from there
// by itself. With [minutes.StatusCreated] it has no audio yet. The steps before its Status cost no
// quota. AddMeetings returns the ids, in order.
//
//	ids := srv.AddMeetings("org_acme", minutestest.WorldMeeting{
//		Title: "Standup", CreatorID: "emp_ada", Status: minutes.StatusAudioUploaded, Count: 20,
//	})
//
// A mistake fails the test, which is shown its path as in "meetings[0].title", and then none is
// added.
func (s *Server) AddMeetings(organisation string, meetings ...WorldMeeting) (ids []string) {
	s.helper()
	ids, err := s.engine.Add(organisation, meetings)
	if err != nil {
		s.fail("AddMeetings", err)
		return nil
	}
	s.inspector.Did("AddMeetings "+organisation, "", fmt.Sprintf("%d meetings", len(ids)))
	return ids
}

// Meetings returns the meetings of all organisations as they are now, the oldest first.
func (s *Server) Meetings() []Meeting { return s.engine.Meetings() }

// Meeting returns the current state of a meeting of any organisation.
func (s *Server) Meeting(id string) (Meeting, bool) { return s.engine.Meeting(id) }

// World returns the settings of all organisations as they are now, including the quota that is left
// and the objects added through the service, but no meetings.
func (s *Server) World() World { return s.engine.World() }

// Organisation returns an organisation of [Server.World].
func (s *Server) Organisation(id string) (Organisation, bool) {
	w := s.World()
	if o := w.Organisation(id); o != nil {
		return *o, true
	}
	return Organisation{}, false
}

// Update changes an organisation while it is in use: its quota, its keys, its members' statuses and
// all else that an Organisation holds. Meetings and the id stay. A mistake fails the test, which is
// shown its path, and then nothing changes. The function must not call the Server.
//
//	srv.Update("org_acme", func(o *minutestest.Organisation) {
//		o.Credits = new(0)
//		o.Key("key_ci").Revoked = true
//	})
func (s *Server) Update(organisation string, change func(*Organisation)) {
	s.helper()
	s.update("Update", organisation, func(w *World) error {
		o := w.Organisation(organisation)
		if o == nil {
			return fmt.Errorf("there is no organisation %q", organisation)
		}
		change(o)
		o.ID = organisation
		return nil
	})
}

// UpdateWorld is like [Server.Update] for all organisations and the stages. Organisations that are
// new begin with their meetings, and those that are left out are gone with theirs. If change
// returns an error, nothing changes, and the error fails the test.
func (s *Server) UpdateWorld(change func(*World) error) {
	s.helper()
	s.update("UpdateWorld", "", change)
}

func (s *Server) update(method, organisation string, change func(*World) error) {
	s.helper()
	if err := s.engine.Update(change); err != nil {
		s.fail(method, err)
		return
	}
	s.inspector.Did(strings.TrimSpace(method+" "+organisation), "")
}

// SetPageSizes makes the pages of meetings short, or empty, which the API lets them be: it sets
// PageSizes of the [World]. Without sizes, pages are full again.
func (s *Server) SetPageSizes(sizes ...int) {
	s.helper()
	s.UpdateWorld(func(w *World) error {
		w.PageSizes = sizes
		return nil
	})
}
