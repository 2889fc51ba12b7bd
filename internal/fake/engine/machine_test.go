package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/engine"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

var stages = world.Stages{Prepare: 10 * time.Second, Transcribe: 20 * time.Second, Write: 30 * time.Second}

func staged(cfg *engine.Config) { cfg.World.Stages = stages }

func (s *rig) usage() string {
	s.t.Helper()
	r := s.request("ci", "GET /v1/usage", "").is(200, "")
	return fmt.Sprint(r.field("credits_remaining"), " ", r.field("transcribe_seconds_remaining"), " ",
		r.field("next_reset_at"))
}

// history writes a meeting's history as states with seconds since start.
func (s *rig) history(id string, start time.Time) string {
	s.t.Helper()
	state, ok := s.Meeting(id)
	require.True(s.t, ok)
	out := ""
	for _, h := range state.History {
		out += fmt.Sprintf("%s@%v ", h.Status, h.At.Sub(start).Seconds())
	}
	last := state.History[len(state.History)-1]
	require.Equal(s.t, last.Status, state.Status)
	require.True(s.t, last.At.Equal(state.UpdatedAt), "a status change moves updated_at")
	return out
}

// Section 3 with D12, D13, D23 and D25: the way into each end state, the content that can be
// fetched there, and the cost.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script     world.Script
		org        func(*world.Organisation)
		size       int
		history    string
		transcript int // status of GET transcript
		duration   string
		usage      string
	}{
		"natural": {world.Script{}, nil, 16_000 * 7,
			"created@0 audio_uploaded@0 transcribing@10 transcribed@30 generating_minutes@30 minutes_ready@60 ", 200,
			"7", "999 359993 null"},
		"rounded up": {world.Script{Outcome: minutes.StatusMinutesReady}, nil, 16_001,
			"created@0 audio_uploaded@0 transcribing@10 transcribed@30 generating_minutes@30 minutes_ready@60 ", 200,
			"2", "999 359998 null"},
		"rejected": {world.Script{Outcome: minutes.StatusAudioRejected}, nil, 9,
			"created@0 audio_uploaded@0 audio_rejected@10 ", 409, "null", "1000 360000 null"},
		"empty": {world.Script{}, nil, 0,
			"created@0 audio_uploaded@0 audio_rejected@10 ", 409, "null", "1000 360000 null"},
		"blocked": {world.Script{Outcome: minutes.StatusTranscribeBlocked}, nil, 9,
			"created@0 audio_uploaded@0 transcribe_blocked@10 ", 409, "null", "1000 360000 null"},
		"over quota": {world.Script{}, func(o *world.Organisation) { o.TranscribeSeconds = new(1) }, 16_001,
			"created@0 audio_uploaded@0 transcribe_blocked@10 ", 409, "null", "1000 1 null"},
		"just in quota": {world.Script{}, func(o *world.Organisation) { o.TranscribeSeconds = new(1) }, 16_000,
			"created@0 audio_uploaded@0 transcribing@10 transcribed@30 generating_minutes@30 minutes_ready@60 ", 200,
			"1", "999 0 null"},
		"both": {world.Script{}, func(o *world.Organisation) { o.TranscribeSeconds = new(0) }, 0,
			"created@0 audio_uploaded@0 audio_rejected@10 ", 409, "null", "1000 0 null"},
		"transcription fails": {world.Script{Outcome: minutes.StatusTranscriptionFailed}, nil, 16_000,
			"created@0 audio_uploaded@0 transcribing@10 transcription_failed@30 ", 409, "1", "1000 360000 null"},
		"not written": {world.Script{Outcome: minutes.StatusMinutesFailed}, nil, 16_000,
			"created@0 audio_uploaded@0 transcribing@10 transcribed@30 generating_minutes@30 minutes_failed@60 ", 200,
			"1", "1000 359999 null"},
		"no credits": {world.Script{}, func(o *world.Organisation) { o.Credits = new(0) }, 16_000,
			"created@0 audio_uploaded@0 transcribing@10 transcribed@30 generating_minutes@30 minutes_failed@60 ", 200,
			"1", "0 359999 null"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Looked at all the time, or once at the end: it makes no difference.
			for _, looking := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					if tc.org == nil {
						tc.org = func(*world.Organisation) {}
					}
					s := newRig(t, staged, withAcme(tc.org))
					require.NoError(t, s.Script(tc.script))
					start := time.Now()
					id := s.create("ci", "")
					s.upload("ci", id, tc.size)
					for range 20 {
						time.Sleep(5 * time.Second)
						if looking {
							s.status("ci", id)
							s.usage()
						}
					}
					require.Equal(t, tc.duration, s.request("ci", "GET /v1/meetings/"+id, "").field("duration_seconds"))
					require.Equal(t, tc.history, s.history(id, start))
					require.Equal(t, tc.usage, s.usage())
					r := s.request("ci", "GET /v1/meetings/"+id+"/transcript", "")
					require.Equal(t, tc.transcript, r.Code)
					if tc.transcript == 409 {
						r.is(409, "TRANSCRIPT_NOT_READY")
					}
					state, _ := s.Meeting(id)
					if state.Status == minutes.StatusMinutesReady {
						s.request("ci", "GET /v1/meetings/"+id+"/minutes", "").is(200, "")
					} else {
						s.request("ci", "GET /v1/meetings/"+id+"/minutes", "").is(409, "MINUTES_NOT_READY")
					}
				})
			}
		})
	}
}

// Credits go to the minutes that finish first, in any order of polls.
func TestCredits_GoToFirstFinishedMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t, staged, withAcme(func(o *world.Organisation) { o.Credits = new(2) }))
		var ids []string
		for range 4 {
			ids = append(ids, s.create("ci", ""))
		}
		require.NoError(t, s.Script(world.Script{MeetingID: ids[0], Stages: &world.Stages{Write: time.Hour}}))
		for i := range ids { // the last to be created is the first to arrive
			s.upload("ci", ids[3-i], 1)
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Hour)
		got := []string{s.status("ci", ids[0]), s.status("ci", ids[1]), s.status("ci", ids[2]), s.status("ci", ids[3])}
		require.Equal(t, []string{"minutes_failed", "minutes_failed", "minutes_ready", "minutes_ready"}, got)
	})
}

// TestReservation is D23: seconds are set aside when the audio arrives and shown as taken when
// transcription completes; D25: deleting gives them back.
func TestReservation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t, staged, withAcme(func(o *world.Organisation) { o.TranscribeSeconds = new(10) }))
		a := s.create("ci", "")
		b := s.create("ci", "")
		c := s.create("ci", "")
		d := s.create("ci", "")
		s.upload("ci", a, 16_000*6)
		require.Equal(t, "1000 10 null", s.usage())
		require.NoError(t, s.update("org_acme", func(o *world.Organisation) { o.Name = "Acme & Co" }),
			"which keeps them set aside")
		s.upload("ci", b, 16_000*5)
		time.Sleep(10 * time.Second)
		require.Equal(t, "transcribe_blocked", s.status("ci", b))
		s.request("ci", "DELETE /v1/meetings/"+a, "").is(204, "")
		s.upload("ci", c, 16_000*10)
		time.Sleep(29 * time.Second)
		require.Equal(t, "1000 10 null", s.usage())
		time.Sleep(time.Second)
		require.Equal(t, "1000 0 null", s.usage())
		s.upload("ci", d, 1)
		time.Sleep(10 * time.Second)
		require.Equal(t, "transcribe_blocked", s.status("ci", d))
		require.NoError(t, s.update("org_acme", func(o *world.Organisation) { o.TranscribeSeconds = new(100) }))
		time.Sleep(time.Hour)
		e := s.create("ci", "")
		f := s.create("ci", "") // what a failed transcription had is free again
		require.NoError(t, s.Script(world.Script{MeetingID: e, Outcome: minutes.StatusTranscriptionFailed}))
		s.upload("ci", e, 16_000*100)
		time.Sleep(time.Minute)
		s.upload("ci", f, 16_000*100)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"transcription_failed", "minutes_ready"},
			[]string{s.status("ci", e), s.status("ci", f)})
		require.Equal(t, "transcribe_blocked", s.status("ci", d), "topping up does not restart it")
	})
}

// TestTopUp: at next_reset_at the period's quota is back, between what fell due before and after.
func TestTopUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the bubble begins at 2000-01-01T00:00Z
		s := newRig(t, withAcme(func(o *world.Organisation) {
			o.Credits = new(1)
			o.TranscribeSeconds = new(10)
			o.NextResetAt = "2000-01-15"
		}))
		a := s.create("ci", "")
		b := s.create("ci", "")
		c := s.create("ci", "")
		until := time.Date(2000, 1, 15, 0, 0, 0, 0, time.UTC)
		for id, at := range map[string]time.Time{a: until.Add(-2 * time.Second), b: until.Add(-time.Second), c: until} {
			require.NoError(t, s.Script(world.Script{MeetingID: id, Stages: &world.Stages{Write: time.Until(at)}}))
		}
		for _, id := range []string{c, b, a} {
			s.upload("ci", id, 16_000)
		}
		time.Sleep(time.Minute)
		require.Equal(t, `1 7 2000-01-15`, s.usage())
		time.Sleep(time.Until(until.Add(time.Hour)))
		require.Equal(t, []string{"minutes_ready", "minutes_failed", "minutes_ready"},
			[]string{s.status("ci", a), s.status("ci", b), s.status("ci", c)})
		require.Equal(t, `0 10 2000-02-15`, s.usage())
		require.NoError(t, s.update("org_acme", func(o *world.Organisation) { o.Name = "Acme & Co" }))
		time.Sleep(45 * 24 * time.Hour)
		require.Equal(t, `1 10 2000-03-15`, s.usage())
		time.Sleep(30 * 24 * time.Hour)
		require.Equal(t, `1 10 2000-04-15`, s.usage(), "what was left is not added")
	})
	s := newRig(t, withAcme(func(o *world.Organisation) { o.NextResetAt = "2001-01-02" }))
	require.Equal(t, `1000 360000 2001-01-02`, s.usage(), "a date gone by is shown and never comes")
}

// A change of title, date or project costs a credit once the minutes are ready (D9).
func TestUpdate_OfReadyMinutesCostsACredit(t *testing.T) {
	t.Parallel()
	s := newRig(t, withAcme(func(o *world.Organisation) { o.Credits = new(6) }))
	id := s.create("ci", "")
	at := "PATCH /v1/meetings/" + id
	s.request("ci", at, `{"title":"before the minutes"}`).is(200, "")
	s.upload("ci", id, 1)
	require.Equal(t, "minutes_ready", s.status("ci", id))
	for _, step := range []struct{ body, credits string }{
		{`{"time":"10:00"}`, "5"}, {`{"title":"before the minutes"}`, "5"},
		{`{"title":"a","date":"2026-05-05","project_id":"prj_apollo"}`, "4"},
		{`{"project_id":""}`, "3"}, {`{"date":"2026-05-06"}`, "2"}, {`{}`, "2"}, {`{"title":"b"}`, "1"},
		{`{"title":null,"date":null,"time":null,"project_id":null}`, "1"},
		{`{"project_id":"prj_apollo"}`, "0"}, {`{"date":"2026-05-07"}`, "0"}, {`{}`, "0"},
	} {
		s.request("ci", at, step.body).is(200, "")
		require.Equal(t, step.credits, s.request("ci", "GET /v1/usage", "").field("credits_remaining"), step.body)
	}
}

// Only minutes are written again, so a meeting without any costs nothing.
func TestUpdate_IsFreeInAFailureStatus(t *testing.T) {
	t.Parallel()
	for _, failure := range []minutes.Status{
		minutes.StatusTranscriptionFailed, minutes.StatusMinutesFailed,
		minutes.StatusTranscribeBlocked, minutes.StatusAudioRejected,
	} {
		s := newRig(t)
		require.NoError(t, s.Script(world.Script{Outcome: failure}))
		id := s.create("ci", "")
		s.upload("ci", id, 1)
		require.Equal(t, string(failure), s.status("ci", id))
		before := s.usage()
		s.request("ci", "PATCH /v1/meetings/"+id, `{"title":"Later"}`).is(200, "")
		require.Equal(t, before, s.usage(), failure)
	}
}

// TestRelease_LetsTheRestOfTheStagePass: a hold neither shortens a stage nor makes it longer than
// the hold itself.
func TestRelease_LetsTheRestOfTheStagePass(t *testing.T) {
	t.Parallel()
	for held, history := range map[time.Duration]string{ // in transcribing, which takes 20 seconds
		5 * time.Second: "created@0 audio_uploaded@0 transcribing@10 transcribed@30 generating_minutes@30 " +
			"minutes_ready@60 ",
		20 * time.Second: "created@0 audio_uploaded@0 transcribing@10 transcribed@30 generating_minutes@30 " +
			"minutes_ready@60 ",
		27 * time.Second: "created@0 audio_uploaded@0 transcribing@10 transcribed@37 generating_minutes@37 " +
			"minutes_ready@67 ",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newRig(t, staged)
			require.NoError(t, s.Script(world.Script{Hold: minutes.StatusTranscribing}))
			start := time.Now()
			id := s.create("ci", "")
			s.upload("ci", id, 1)
			time.Sleep(stages.Prepare + held)
			require.Equal(t, "transcribing", s.status("ci", id))
			require.True(t, s.release(id))
			time.Sleep(time.Hour)
			require.Equal(t, history, s.history(id, start))
		})
	}
}

// A meeting that was released can be held again in a later status.
func TestRelease_EndsOneHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t, staged)
		require.NoError(t, s.Script(world.Script{Hold: minutes.StatusTranscribing}))
		id := s.create("ci", "")
		s.upload("ci", id, 1)
		time.Sleep(time.Hour)
		require.True(t, s.release(id))
		require.Equal(t, "generating_minutes", s.status("ci", id))
		require.NoError(t, s.Script(world.Script{Hold: minutes.StatusGeneratingMinutes}))
		time.Sleep(time.Hour)
		require.Equal(t, "generating_minutes", s.status("ci", id))
	})
}

// TestScript is what scripts, holds, release and advance do.
func TestScript(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t, staged)
		start := time.Now()
		held := s.create("ci", `"external_id":"h"`)
		other := s.create("ci", "")
		require.NoError(t, s.Script(world.Script{Outcome: minutes.StatusTranscriptionFailed}))
		require.NoError(t,
			s.Script(world.Script{Title: "Weekly", Outcome: minutes.StatusMinutesReady, Transcript: "spk_0: Hi."}))
		require.NoError(t, s.Script(world.Script{ExternalID: "h", Hold: minutes.StatusTranscribing}))
		s.upload("ci", held, 1)
		s.upload("ci", other, 1)
		require.False(t, s.release(held))
		time.Sleep(time.Hour)
		require.Equal(t, "minutes_ready", s.status("ci", other))
		require.Equal(t, "transcribing", s.status("ci", held))
		state, _ := s.Meeting(held)
		require.True(t, state.Held)
		require.NoError(t, s.Script(world.Script{}))
		require.True(t, s.release(held))
		require.False(t, s.release(held))
		require.NoError(t, s.Script(world.Script{Title: "none", Hold: minutes.StatusTranscribing}))
		time.Sleep(time.Hour)
		require.Equal(t,
			"created@0 audio_uploaded@0 transcribing@10 transcribed@3600 generating_minutes@3600 minutes_ready@3630 ",
			s.history(held, start))
		require.Equal(t, "spk_0: Hi.", s.request("ci", "GET /v1/meetings/"+held+"/transcript", "").field("transcript"))

		// The future follows a later script; the past does not change.
		id := s.create("ci", "")
		start = time.Now()
		s.upload("ci", id, 1)
		time.Sleep(15 * time.Second)
		require.NoError(t,
			s.Script(world.Script{MeetingID: id, Stages: &world.Stages{Transcribe: time.Second, Write: time.Minute},
				Outcome: minutes.StatusMinutesFailed}))
		time.Sleep(time.Hour)
		require.Equal(t,
			"created@0 audio_uploaded@0 transcribing@10 transcribed@15 generating_minutes@15 minutes_failed@75 ",
			s.history(id, start))

		// Without a clock.
		id = s.create("ci", "")
		_, err := s.Advance(id, "")
		require.Error(t, err, "no audio")
		s.upload("ci", id, 1)
		// writing begins at once
		for _, want := range []minutes.Status{"transcribing", "transcribed", "minutes_ready"} {
			got, err := s.Advance(id, "")
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		_, err = s.Advance(id, "")
		require.Error(t, err, "there is no next status")
		id = s.create("ci", `"external_id":"h2"`)
		require.NoError(t, s.Script(world.Script{ExternalID: "h2", Hold: minutes.StatusAudioUploaded}))
		s.upload("ci", id, 1)
		got, err := s.Advance(id, minutes.StatusTranscribed)
		require.NoError(t, err)
		require.Equal(t, minutes.StatusTranscribed, got)
		_, err = s.Advance(id, minutes.StatusTranscribing)
		require.Error(t, err, "it has left that status behind")
		_, err = s.Advance(id, "nonsense")
		require.Error(t, err)
		time.Sleep(time.Hour)
		require.Equal(t, "minutes_ready", s.status("ci", id))

		require.Error(t, s.Script(world.Script{Outcome: minutes.StatusTranscribing}))
		require.Error(t, s.Script(world.Script{Hold: minutes.StatusCreated}))
		for last, failure := range map[minutes.Status]minutes.Status{
			minutes.StatusAudioUploaded:     minutes.StatusTranscribeBlocked,
			minutes.StatusTranscribing:      minutes.StatusTranscriptionFailed,
			minutes.StatusGeneratingMinutes: minutes.StatusMinutesFailed,
		} {
			require.NoError(t, s.Script(world.Script{Hold: last, Outcome: failure}))
		}
		require.Error(t, s.Script(world.Script{Hold: minutes.StatusTranscribing, Outcome: minutes.StatusAudioRejected}))
		require.Error(t, s.Script(world.Script{MeetingID: "a", Title: "b"}))
		require.Error(t, s.Script(world.Script{Stages: &world.Stages{Write: -1}}))
	})
}
