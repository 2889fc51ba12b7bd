package minutestest

import (
	"encoding/json"
	"fmt"
	"time"

	minutes "github.com/meeting-minutes/minutes-go"
)

// Script sets the outcome of meetings from now on: of future meetings, and of the remaining stages
// of meetings in progress. A script replaces an earlier one for the same meetings; an empty one
// removes it. The error names the invalid field. Scripts before the invalid one take effect.
//
// A script may match no meeting. If the test of [NewServer] fails, its log names each script for a
// title or external id that no meeting has at the end.
func (s *Server) Script(scripts ...Script) error {
	for _, sc := range scripts {
		if err := s.engine.Script(sc); err != nil {
			return methodError("Script", err)
		}
		s.did("Script", sc.MeetingID, summary(sc))
	}
	return nil
}

// summary is a script as JSON.
func summary(sc Script) string {
	text, _ := json.Marshal(sc)
	return string(text)
}

// unmatchedScripts returns the scripts for a title or an external id that no meeting has, because a
// typing error may be why a test failed.
func (s *Server) unmatchedScripts() (list []Script) {
	matched := map[string]bool{"": true}
	for _, m := range s.engine.Meetings() {
		matched["external id "+m.ExternalID], matched["title "+m.Title] = true, true
	}
	for _, sc := range s.engine.Scripts() {
		if sc.ExternalID != "" && !matched["external id "+sc.ExternalID] || sc.Title != "" && !matched["title "+sc.Title] {
			list = append(list, sc)
		}
	}
	return list
}

// logUnmatchedScripts names the scripts without a meeting in the log of a failed test.
func (s *Server) logUnmatchedScripts(tb TB) {
	s.helper()
	t, ok := tb.(interface {
		Failed() bool
		Logf(format string, args ...any)
	})
	if !ok || !t.Failed() {
		return
	}
	for _, sc := range s.unmatchedScripts() {
		t.Logf("minutestest: no meeting that exists now matches the Script %s", summary(sc))
	}
}

// Release lets a meeting that a script holds go on, and reports whether one held it. The rest of
// its stage still has to pass.
func (s *Server) Release(meetingID string) bool {
	released := s.engine.Release(meetingID)
	if released {
		s.did("Release", meetingID, "no longer held in "+string(s.statusOf(meetingID)))
	}
	return released
}

// Advance moves a meeting that has audio on without waiting for the clock, held or not, until its
// status is until or final. If until is "", it moves the meeting by one status. It returns the
// status reached.
func (s *Server) Advance(meetingID string, until minutes.Status) (minutes.Status, error) {
	before := s.statusOf(meetingID)
	status, err := s.engine.Advance(meetingID, until)
	if err != nil {
		return status, methodError("Advance", err)
	}
	if status != before {
		s.did("Advance", meetingID, string(before)+" → "+string(status))
	}
	return status, nil
}

// AdvanceClock moves the service's time on by d, and returns the new time, so that a program that
// does not run in a synctest bubble sees within its own seconds what takes the service a week:
// upload URLs and keys expire, quotas are topped up, and meetings progress. The clocks of clients
// stay as they are, and so does that of the audit. A d below zero changes nothing, because time
// never goes back.
func (s *Server) AdvanceClock(d time.Duration) time.Time {
	now := s.engine.AdvanceClock(d)
	s.did("AdvanceClock", "", fmt.Sprintf("%s on, to %s", d, now.Format(time.RFC3339)))
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
		s.did("Delete", meetingID, fmt.Sprintf("%q is gone", m.Title))
	}
	return deleted
}

// AddMeetings adds meetings of other creators, for tests of a program that follows all meetings of
// an organisation. Each has its Status at once, without regard to scripts, and continues from there
// by itself. With [minutes.StatusCreated] it has no audio yet. The steps before its Status cost no
// quota. AddMeetings returns the ids, in order.
//
//	ids, err := srv.AddMeetings("org_acme", minutestest.WorldMeeting{
//		Title: "Standup", CreatorID: "emp_ada", Status: minutes.StatusAudioUploaded, Count: 20,
//	})
//
// On error, which names the path of each mistake as in "meetings[0].title", it adds none.
func (s *Server) AddMeetings(organisation string, meetings ...WorldMeeting) (ids []string, err error) {
	if ids, err = s.engine.Add(organisation, meetings); err != nil {
		return nil, methodError("AddMeetings", err)
	}
	s.did("AddMeetings "+organisation, "", fmt.Sprintf("%d meetings", len(ids)))
	return ids, nil
}

// Meetings returns the meetings of all organisations as they are now, the oldest first.
func (s *Server) Meetings() []Meeting { return s.engine.Meetings() }

// Meeting returns the current state of a meeting of any organisation.
func (s *Server) Meeting(id string) (Meeting, bool) { return s.engine.Meeting(id) }

// Organisation returns the current state of an organisation, including the quota that is left and
// the objects added through the service.
func (s *Server) Organisation(id string) (Organisation, bool) { return s.engine.Organisation(id) }

// Update changes an organisation while it is in use: its quota, its keys, its members' statuses and
// all else that an Organisation holds. Meetings stay. On error, nothing changes, and the error
// names the path of each mistake. The function must not call the Server.
//
//	err := srv.Update("org_acme", func(o *minutestest.Organisation) {
//		o.Credits = new(0)
//		o.Key("key_ci").Revoked = true
//	})
func (s *Server) Update(organisation string, change func(*Organisation)) error {
	before, _ := s.Organisation(organisation)
	if err := s.engine.Update(organisation, change); err != nil {
		return methodError("Update", err)
	}
	after, _ := s.Organisation(organisation)
	s.did("Update "+organisation, "", changes(before, after)...)
	return nil
}

// SetPageSize makes pages of meetings short, or empty, which the API lets them be: size is asked
// for each page, with the caller's limit and the number of the page in its list from 0, how many
// meetings it may hold. It is called by many goroutines at once. Nil makes pages full again. A panic
// in size is handled as [Call] says.
func (s *Server) SetPageSize(size func(limit, page int) int) {
	if size == nil {
		s.engine.SetPageSize(nil)
		return
	}
	s.engine.SetPageSize(func(limit, page int) int {
		n := limit
		s.hook("SetPageSize", func() { n = size(limit, page) })
		return n
	})
}

// methodError names the method in an error of the engine.
func methodError(method string, err error) error {
	return fmt.Errorf("minutestest: %s: %w", method, err)
}
