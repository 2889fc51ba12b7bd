package engine_test

import (
	"cmp"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// TestScript_CanBeReplaced: a recording that was to be rejected, and now is not, takes its seconds
// as any other does (D23).
func TestScript_CanBeReplaced(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int]string{7: "minutes_ready", 11: "transcribe_blocked"} {
		synctest.Test(t, func(t *testing.T) {
			s := newRig(t, staged, withAcme(func(o *world.Organisation) { o.TranscribeSeconds = new(10) }))
			require.NoError(t, s.Script(world.Script{Outcome: minutes.StatusAudioRejected}))
			a := s.create("ci", "")
			b := s.create("ci", "")
			s.upload("ci", a, 16_000*seconds)
			require.NoError(t, s.Script(world.Script{}))
			time.Sleep(stages.Prepare + time.Second)
			s.upload("ci", b, 16_000*8)
			time.Sleep(time.Hour)
			assert.Equal(t, want, s.status("ci", a))
			assert.Equal(t, map[int]string{7: "transcribe_blocked", 11: "minutes_ready"}[seconds], s.status("ci", b))
			assert.Equal(t, map[int]string{7: "999 3 null", 11: "999 2 null"}[seconds], s.usage())
		})
	}
}

// Two machines whose clocks differ write a meeting in turns. Its history keeps the right time.
func TestScript_SkewsClocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t, staged)
		start := time.Now()
		require.NoError(t, s.Script(world.Script{ClockSkew: time.Minute}))
		require.Error(t, s.Script(world.Script{ClockSkew: -1}))
		id := s.create("ci", "")
		s.upload("ci", id, 1)
		var got []string
		for range 7 {
			m, _ := s.Meeting(id)
			got = append(got, fmt.Sprintf("%s@%.0f", m.Status, m.UpdatedAt.Sub(start).Seconds()))
			time.Sleep(10 * time.Second)
		}
		assert.Equal(t, []string{
			"audio_uploaded@-60", "transcribing@10", "transcribing@10", "generating_minutes@30",
			"generating_minutes@30", "generating_minutes@30", "minutes_ready@0",
		}, got)
		s.request("ci", "PATCH /v1/meetings/"+id, `{"time":"10:00"}`).is(200, "")
		m, _ := s.Meeting(id)
		assert.Equal(t, 70*time.Second, m.UpdatedAt.Sub(start), "the other machine's turn")
		assert.Equal(t, time.Minute, m.History[len(m.History)-1].At.Sub(start))
	})
}

// The end of one recording gives back its own seconds, and not those of others.
func TestReservation_IsOfOneRecording(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t, staged, withAcme(func(o *world.Organisation) { o.TranscribeSeconds = new(10) }))
		kept := s.create("ci", "")
		deleted := s.create("ci", "")
		tooLong := s.create("ci", "")
		s.upload("ci", kept, 16_000*6)
		s.upload("ci", deleted, 16_000*3)
		s.request("ci", "DELETE /v1/meetings/"+deleted, "").is(204, "")
		s.upload("ci", tooLong, 16_000*5)
		time.Sleep(time.Hour)
		assert.Equal(t, "minutes_ready", s.status("ci", kept))
		assert.Equal(t, "transcribe_blocked", s.status("ci", tooLong))
	})
}

// Advance is an error if the meeting ends without the status, whether it has ended already or not. So
// nobody takes it for a way to choose the end.
func TestAdvance_FailsIfTheMeetingEndsElsewhere(t *testing.T) {
	t.Parallel()
	for _, already := range []bool{false, true} {
		for outcome, untils := range map[minutes.Status][]minutes.Status{
			minutes.StatusTranscriptionFailed: {minutes.StatusGeneratingMinutes, minutes.StatusMinutesReady},
			"":                                {minutes.StatusMinutesFailed},
		} {
			synctest.Test(t, func(t *testing.T) {
				s := newRig(t, staged)
				require.NoError(t, s.Script(world.Script{Outcome: outcome}))
				id := s.create("ci", "")
				s.upload("ci", id, 1)
				if already {
					time.Sleep(time.Hour)
				}
				end := cmp.Or(outcome, minutes.StatusMinutesReady)
				for _, until := range untils {
					status, err := s.Advance(id, until)
					require.ErrorContains(t, err, fmt.Sprintf("has ended in %s, so it never comes to %s", end, until))
					require.Equal(t, end, status)
				}
				status, err := s.Advance(id, end)
				require.NoError(t, err)
				require.Equal(t, end, status)
				_, err = s.Advance(id, minutes.StatusTranscribing)
				require.ErrorContains(t, err, "is "+string(end)+" already")
			})
		}
	}
}

// Seconds are given back once, however a recording fails (D23, D25), and a meeting deleted in
// progress costs nothing more.
func TestReservation_IsReleasedOnce(t *testing.T) {
	t.Parallel()
	for name, ending := range map[string]func(s *rig, id string){
		"deleted while it is prepared": func(s *rig, id string) {
			s.request("ci", "DELETE /v1/meetings/"+id, "").is(204, "")
		},
		"deleted while it is transcribed": func(s *rig, id string) {
			time.Sleep(stages.Prepare)
			s.request("ci", "DELETE /v1/meetings/"+id, "").is(204, "")
		},
		"rejected after all": func(s *rig, id string) {
			require.NoError(s.t, s.Script(world.Script{MeetingID: id, Outcome: minutes.StatusAudioRejected}))
		},
		"blocked after all": func(s *rig, id string) {
			require.NoError(s.t, s.Script(world.Script{MeetingID: id, Outcome: minutes.StatusTranscribeBlocked}))
		},
		"not heard, and deleted": func(s *rig, id string) {
			require.NoError(s.t, s.Script(world.Script{MeetingID: id, Outcome: minutes.StatusTranscriptionFailed}))
			time.Sleep(time.Hour)
			s.request("ci", "DELETE /v1/meetings/"+id, "").is(204, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newRig(t, staged, withAcme(func(o *world.Organisation) { o.TranscribeSeconds = new(10) }))
				id := s.create("ci", "")
				s.upload("ci", id, 16_000*6)
				ending(s, id)
				time.Sleep(time.Hour)
				assert.Equal(t, "1000 10 null", s.usage())
				over := s.create("ci", "")
				fits := s.create("ci", "")
				s.upload("ci", over, 16_000*10+1)
				s.upload("ci", fits, 16_000*10)
				time.Sleep(time.Hour)
				assert.Equal(t, "transcribe_blocked", s.status("ci", over))
				assert.Equal(t, "minutes_ready", s.status("ci", fits))
				assert.Equal(t, "999 0 null", s.usage())
			})
		})
	}
}

// TestUpdate_ChangesNothingOnError: also not what change wrote into what it was given.
func TestUpdate_ChangesNothingOnError(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	before, _ := s.Organisation("org_acme")
	vocabulary := s.request("ci", "GET /v1/vocabulary", "").Body.String()
	require.Error(t, s.update("org_acme", func(o *world.Organisation) {
		o.Members[0].ID = o.Members[1].ID
		o.Members[2].Name = "x"
		o.Projects[0].Name = "x"
		o.Templates[0].Name = "x"
		o.Integrations[0].Inactive = true
		o.Vocabulary[0].Term = "x"
		o.Vocabulary[0].Variants[0].Text = "x"
		o.Keys[0].Revoked = true
		*o.Credits = 0
		*o.TranscribeSeconds = 0
		*o.MaxMembers = 0
		*o.MaxTerms = 0
	}))
	after, _ := s.Organisation("org_acme")
	assert.Equal(t, before, after)
	assert.Equal(t, vocabulary, s.request("ci", "GET /v1/vocabulary", "").Body.String())
}

// Each field comes from the narrowest script that sets it: by id, by external id, by title, for
// all.
func TestScript_NarrowestWins(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	scripts := func(id string) []world.Script { // the narrowest first
		return []world.Script{{MeetingID: id}, {ExternalID: "crm"}, {Title: "Weekly"}, {}}
	}
	id := s.create("ci", `"external_id":"crm"`)
	for i, sc := range scripts(id) {
		said := []string{"of the id", "of the external id", "of the title", "of all"}[i:]
		sc.Transcript = said[0]
		sc.Markdown = said[0]
		sc.HTML = said[0]
		require.NoError(t, s.Script(sc))
	}
	require.NoError(t, s.Script(world.Script{MeetingID: id, HTML: "of the id", Outcome: minutes.StatusMinutesReady}))
	require.NoError(t, s.Script(world.Script{ExternalID: "crm", Transcript: "of the external id"}))
	s.upload("ci", id, 1)
	assert.Equal(t, "of the external id",
		s.request("ci", "GET /v1/meetings/"+id+"/transcript", "").is(200, "").field("transcript"))
	assert.Equal(t, "of the id", s.request("ci", "GET /v1/meetings/"+id+"/minutes", "").field("content"))
	written := s.request("ci", "GET /v1/meetings/"+id+"/minutes?format=markdown", "")
	assert.Equal(t, "of the title", written.field("content"))
}
