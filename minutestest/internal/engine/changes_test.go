package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
)

// Each change is reported once, for every cause: a request, the clock, a
// script, or a call of Advance.
func TestChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t)
		require.NoError(t, s.Script(Selector{}, Script{Stages: &Stages{Prepare: time.Second, Transcribe: time.Second, Write: time.Second}}))
		var since uint64
		changed := func() map[string]minutes.Status {
			list, _, next := s.Changes(since, 100)
			since = next
			found := map[string]minutes.Status{}
			for _, l := range list {
				found[l.ID] = l.Status
			}
			return found
		}
		a, b := s.create("ci", `"external_id":"a"`), s.create("ci", "")
		assert.Equal(t, map[string]minutes.Status{a: "created", b: "created"}, changed())
		assert.Empty(t, changed())

		s.do("ci", "PATCH /v1/meetings/"+a, `{"title":"Other"}`)
		assert.Equal(t, map[string]minutes.Status{a: "created"}, changed())
		s.do("ci", "GET /v1/meetings/"+a, "")
		s.do("ci", "PATCH /v1/meetings/"+a, `{"title":"Other"}`)
		assert.Empty(t, changed(), "nothing has")

		s.upload("ci", b, 1)
		assert.Equal(t, map[string]minutes.Status{b: "audio_uploaded"}, changed())
		require.NoError(t, s.Script(Selector{MeetingID: b}, Script{Hold: minutes.StatusTranscribing}))
		assert.Contains(t, changed(), b)
		time.Sleep(time.Hour)
		assert.Equal(t, map[string]minutes.Status{b: "transcribing"}, changed())
		list, total, _ := s.Changes(0, 100)
		require.Len(t, list, 2)
		assert.Equal(t, 2, total)
		assert.Equal(t, b, list[0].ID, "the newest first")
		assert.True(t, list[0].Held)
		assert.Len(t, list[0].History, 3)
		assert.Equal(t, "a", list[1].ExternalID)
		changed()
		_, err := s.Advance(b, "")
		require.NoError(t, err)
		assert.Equal(t, map[string]minutes.Status{b: "generating_minutes"}, changed())

		list, total, _ = s.Changes(0, 1)
		assert.Len(t, list, 1, "no more than asked for")
		assert.Equal(t, 2, total)
	})
}

func TestScriptsAreListed(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	require.Empty(t, s.Scripts(10))
	for _, sel := range []Selector{{MeetingID: "mtg_1"}, {Title: "b"}, {Title: "a"}, {ExternalID: "x"}, {}} {
		require.NoError(t, s.Script(sel, Script{Hold: minutes.StatusTranscribing}))
	}
	var order []Selector
	for _, sc := range s.Scripts(4) {
		order = append(order, sc.Selector)
	}
	assert.Equal(t, []Selector{{}, {Title: "a"}, {Title: "b"}, {ExternalID: "x"}}, order)
}
