package minutestest

import (
	"errors"
	"fmt"
	"math"
	"strings"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/internal/engine"
)

// Script says what becomes of meetings. It is for those with a certain id,
// external id or title, or, when none of the three is set, for all; where
// several scripts are for one meeting, the narrowest counts, in that order.
// What a script leaves empty is left to the next wider one, and in the end to
// the natural course: minutes from a short conversation, after the stages of
// the World. Stages count as a whole: one that is left out takes the World's
// time.
type Script struct {
	// The meetings; one of these at most.
	MeetingID  string `json:"meeting_id,omitempty"`
	ExternalID string `json:"external_id,omitempty"`
	Title      string `json:"title,omitempty"`

	// Outcome is the state the meeting ends in: one of the four states of
	// failure, or minutes_ready. Quota and the recording itself can still turn
	// minutes_ready into a failure.
	Outcome minutes.Status `json:"outcome,omitempty"`
	// Transcript is the spoken text: turns such as "spk_0: Good morning.", one
	// per line.
	Transcript string `json:"transcript,omitempty"`
	// Markdown and HTML are the minutes. A format left empty is written from
	// the transcript.
	Markdown string `json:"markdown,omitempty"`
	HTML     string `json:"html,omitempty"`
	// Stages are the durations of the stages.
	Stages Stages `json:"stages,omitzero"`
	// Hold stops the meeting in this state, one of audio_uploaded,
	// transcribing, transcribed and generating_minutes, until
	// [Server.Release] or [Server.Advance].
	Hold minutes.Status `json:"hold,omitempty"`
}

// UnmarshalJSON rejects unknown fields.
func (s *Script) UnmarshalJSON(data []byte) error {
	type plain Script
	if err := strictUnmarshal(data, (*plain)(s)); err != nil {
		return fmt.Errorf("script: %w", err)
	}
	return nil
}

// Script sets the outcome of meetings from now on: of future meetings, and of
// the remaining stages of meetings in progress. A script replaces an earlier
// one for the same meetings; an empty one removes it. The error names the
// invalid field. Scripts before the invalid one take effect.
//
// A script may match no meeting. If the test of [NewServer] fails, its log names each
// script for a title or external id that no meeting has at the end.
func (s *Server) Script(scripts ...Script) error {
	for _, sc := range scripts {
		what := engine.Script{
			Outcome:    sc.Outcome,
			Transcript: sc.Transcript,
			Minutes:    engine.Minutes{Markdown: sc.Markdown, HTML: sc.HTML},
			Hold:       sc.Hold,
		}
		if sc.Stages != (Stages{}) {
			what.Stages = new(engineStages(sc.Stages.or(s.world.Stages).or(defaultStages)))
		}
		whose := engine.Selector{MeetingID: sc.MeetingID, ExternalID: sc.ExternalID, Title: sc.Title}
		if err := s.engine.Script(whose, what); err != nil {
			return methodError("Script", err)
		}
		s.did("Script", sc.MeetingID, sc.summary())
	}
	return nil
}

// scriptOf returns a script of the engine as a Script.
func scriptOf(sc engine.Scripted) Script {
	script := Script{
		MeetingID: sc.MeetingID, ExternalID: sc.ExternalID, Title: sc.Title,
		Outcome: sc.Outcome, Transcript: sc.Transcript, Markdown: sc.Minutes.Markdown, HTML: sc.Minutes.HTML, Hold: sc.Hold,
	}
	if sc.Stages != nil {
		script.Stages = Stages{sc.Stages.Prepare, sc.Stages.Transcribe, sc.Stages.Write}
	}
	return script
}

// logUnmatchedScripts names the scripts without a meeting in the log of a failed test. A typo in
// a title may be why it failed.
func (s *Server) logUnmatchedScripts(tb TB) {
	s.helper()
	t, ok := tb.(interface {
		Failed() bool
		Logf(format string, args ...any)
	})
	if !ok || !t.Failed() {
		return
	}
	matched := map[engine.Selector]bool{{}: true} // the script for all meetings needs none
	meetings, _, _ := s.engine.Changes(0, math.MaxInt)
	for _, m := range meetings {
		matched[engine.Selector{ExternalID: m.ExternalID}] = true
		matched[engine.Selector{Title: m.Title}] = true
	}
	for _, sc := range s.engine.Scripts(math.MaxInt) {
		if sc.MeetingID == "" && !matched[sc.Selector] {
			t.Logf("minutestest: no meeting that exists now matches the Script for %s", scriptOf(sc).summary())
		}
	}
}

// Release lets a meeting that a script holds go on, and reports whether one
// held it. The rest of its stage still has to pass.
func (s *Server) Release(meetingID string) bool {
	released := s.engine.Release(meetingID)
	if released {
		s.did("Release", meetingID, "no longer held in "+string(s.statusOf(meetingID)))
	}
	return released
}

// Advance moves a meeting that has audio on without waiting for the clock, held
// or not, until its status is until or final. If until is "", it moves the
// meeting by one status. It returns the status reached.
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

// Organisation returns the current state of an organisation, including the
// quota that is left and the objects added through the service.
func (s *Server) Organisation(id string) (Organisation, bool) {
	o, ok := s.engine.Organisation(id)
	if !ok {
		return Organisation{}, false
	}
	return fromEngine(o), true
}

// Update changes an organisation while it is in use: its quota, its keys, its
// members' states and all else that an Organisation holds. Meetings stay. On
// error, nothing changes, and the error names the invalid field. The
// function must not call the Server.
//
//	err := srv.Update("org_acme", func(o *minutestest.Organisation) {
//		o.Credits = new(0)
//		o.Key("key_ci").Revoked = true
//	})
func (s *Server) Update(organisation string, change func(*Organisation)) error {
	var fault error
	var changed []string
	err := s.engine.Update(organisation, func(e *engine.Organisation) {
		o := fromEngine(*e)
		before := decoded(o)
		change(&o)
		if len(o.Meetings) > 0 {
			fault = errors.New("meetings: only a World begins with them; AddMeetings adds more")
			return
		}
		if fault = (World{Organisations: []Organisation{o}}).check(); fault != nil {
			return
		}
		after := o.toEngine()
		after.PeriodCredits, after.PeriodTranscribeSeconds = e.PeriodCredits, e.PeriodTranscribeSeconds
		*e = after
		changed = changes(before, decoded(o))
	})
	if fault != nil {
		err = fault
	}
	if err != nil {
		return methodError("Update", err)
	}
	s.did("Update "+organisation, "", changed...)
	return nil
}

// SetPageSize makes pages of meetings short, or empty, which the interface
// lets them be: size is asked for each page, with the caller's limit and the
// number of the page in its listing from 0, how many meetings it may hold. It
// is called by many goroutines at once. Nil makes pages full again. A panic in size
// is handled as [Call] says.
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

// methodError names the method in an error of the engine or of a World.
func methodError(method string, err error) error {
	if text, ok := strings.CutPrefix(err.Error(), "engine: "); ok {
		err = errors.New(text)
	}
	return fmt.Errorf("minutestest: %s: %w", method, err)
}
