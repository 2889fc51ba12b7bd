package minutestest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
)

// actionsOf are the actions that a page would show.
func actionsOf(s *Server) []action {
	var reader newsreader
	all, _ := reader.read(s)
	return all.Actions
}

func TestUpdate_RecordsWhatChanged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*Organisation)
		want   []string
	}{
		"nothing": {func(*Organisation) {}, []string{"no change"}},
		"numbers and flags": {func(o *Organisation) {
			o.Credits, o.Suspended, o.NextResetAt = new(3), true, "2026-12-01"
		}, []string{"credits: 1000 → 3", "next_reset_at: not set → 2026-12-01", "suspended: not set → true"}},
		"lists, which may hold secrets": {func(o *Organisation) {
			o.Key("key_ci").Secret = "key_new"
			o.Members[0].Status = minutes.MemberDeactivated
		}, []string{"keys changed", "members changed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New()
			require.NoError(t, s.Update("org_acme", tc.change))
			list := actionsOf(s)
			require.Len(t, list, 1)
			assert.Equal(t, "Update org_acme", list[0].Name)
			assert.Equal(t, tc.want, list[0].Changes)
			text, err := json.Marshal(list)
			require.NoError(t, err)
			assert.NotContains(t, string(text), "key_", "no secret")
		})
	}
}

func TestUpdate_RecordsNothingOnError(t *testing.T) {
	t.Parallel()
	s := New()
	require.Error(t, s.Update("org_acme", func(o *Organisation) { o.Credits = new(-1) }))
	require.Error(t, s.Update("org_none", func(*Organisation) {}))
	require.Error(t, s.Script(Script{Hold: minutes.StatusCreated}))
	_, err := s.Advance("mtg_none", "")
	require.Error(t, err)
	assert.False(t, s.Release("mtg_none"))
	assert.Empty(t, actionsOf(s))
}

func TestActions_AreInOrderOfRequests(t *testing.T) {
	t.Parallel()
	s := New(WithWorld(slowly()))
	c := callerOf(s)
	require.NoError(t, s.Script(
		Script{Title: "Weekly", Hold: minutes.StatusAudioUploaded, Transcript: "spk_0: Hello."},
		Script{ExternalID: "x", Outcome: minutes.StatusMinutesFailed, Stages: Stages{Prepare: time.Second}, Markdown: "# M"},
		Script{},
	))
	id := c.upload(t, "Weekly", "audio")
	require.True(t, s.Release(id))
	status, err := s.Advance(id, minutes.StatusMinutesReady)
	require.NoError(t, err)
	_, err = s.Advance(id, status)
	require.NoError(t, err, "it is there already")

	var got []string
	for _, a := range actionsOf(s) {
		got = append(got, fmt.Sprintf("%d after %d: %s %s %s", a.N, a.After, a.Name, strings.ReplaceAll(a.MeetingID, id, "it"), strings.Join(a.Changes, "; ")))
	}
	assert.Equal(t, []string{
		`1 after 0: Script  {"title":"Weekly","transcript":"spk_0: Hello.","hold":"audio_uploaded"}`,
		`2 after 0: Script  {"external_id":"x","outcome":"minutes_failed","markdown":"# M","stages":{"prepare":"1s"}}`,
		`3 after 0: Script  {}`,
		`4 after 3: Release it no longer held in audio_uploaded`,
		`5 after 3: Advance it audio_uploaded → minutes_ready`,
	}, got)
	require.NoError(t, s.Reset())
	assert.Empty(t, actionsOf(s))
}

func TestActions_AppearInNewsOnceAndAreBounded(t *testing.T) {
	t.Parallel()
	s := New()
	var reader newsreader
	_, kind := reader.read(s)
	assert.Equal(t, "state", kind)
	require.NoError(t, s.Script(Script{Title: strings.Repeat("long", 1000)}))
	found, kind := reader.read(s)
	assert.Equal(t, "news", kind)
	require.Len(t, found.Actions, 1)
	assert.LessOrEqual(t, len([]rune(found.Actions[0].Changes[0])), maxChange+1)
	found, _ = reader.read(s)
	assert.Empty(t, found.Actions)
	for range maxActions + 10 {
		require.NoError(t, s.Script(Script{}))
	}
	found, _ = reader.read(s)
	require.Len(t, found.Actions, maxActions)
	assert.Equal(t, maxActions+11, found.Actions[maxActions-1].N)
}

// The news of a failed meeting says why it failed.
func TestNews_SayWhyMeetingFailed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		prepare func(*testing.T, *Server)
		audio   string
		status  minutes.Status
		reason  string
	}{
		"script": {func(t *testing.T, s *Server) {
			require.NoError(t, s.Script(Script{Outcome: minutes.StatusTranscriptionFailed}))
		}, "audio", minutes.StatusTranscriptionFailed, "A script set this outcome."},
		"no seconds": {func(t *testing.T, s *Server) {
			require.NoError(t, s.Update("org_acme", func(o *Organisation) { o.TranscribeSeconds = new(0) }))
		}, "audio", minutes.StatusTranscribeBlocked, "Transcription takes 1 s of quota. The organisation had less left when the audio arrived."},
		"no credit": {func(t *testing.T, s *Server) {
			require.NoError(t, s.Update("org_acme", func(o *Organisation) { o.Credits = new(0) }))
		}, "audio", minutes.StatusMinutesFailed, "The organisation had no credit left."},
		"empty": {func(*testing.T, *Server) {}, "", minutes.StatusAudioRejected, "The recording has 0 bytes. It must have between 1 and 1000000000."},
		"ready": {func(*testing.T, *Server) {}, "audio", minutes.StatusMinutesReady, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := NewServer(t)
				tc.prepare(t, s)
				id := callerOf(s).upload(t, "Weekly", tc.audio)
				_, err := s.Advance(id, minutes.StatusMinutesReady)
				require.NoError(t, err)
				var reader newsreader
				all, _ := reader.read(s)
				require.Len(t, all.Meetings, 1)
				assert.Equal(t, tc.status, all.Meetings[0].Status)
				assert.Equal(t, tc.reason, all.Meetings[0].Reason)
			})
		})
	}
}
