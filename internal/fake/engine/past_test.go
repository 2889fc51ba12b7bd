package engine_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// asOf reads as the meetings were a while ago.
func (s *rig) asOf(ago time.Duration, what string) string {
	method, target, _ := strings.Cut(what, " ")
	r := httptest.NewRequest(method, target, nil)
	r.Header.Set("Authorization", "Bearer ci")
	x := s.ServeAsOf(r, s.Now().Add(-ago))
	return string(x.Body)
}

func TestServeAsOf_ShowsThePast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t)
		require.NoError(t, s.Script(world.Script{Stages: &world.Stages{Prepare: time.Minute}}))
		began := s.Now()
		ago := func(at time.Duration) time.Duration { return s.Now().Sub(began.Add(at)) }
		time.Sleep(time.Minute)
		id := s.create("ci", `"title":"Old"`)
		get := "GET /v1/meetings/" + id
		time.Sleep(time.Minute)
		s.request("ci", "PATCH /v1/meetings/"+id, `{"title":"New"}`).is(200, "")
		time.Sleep(time.Minute)
		s.upload("ci", id, 16_000)
		time.Sleep(time.Hour)
		for at, want := range map[time.Duration][]string{
			30 * time.Second:  {`"NOT_FOUND"`},
			90 * time.Second:  {`"title":"Old"`, `"status":"created"`},
			150 * time.Second: {`"title":"New"`, `"status":"created"`},
			210 * time.Second: {`"title":"New"`, `"status":"audio_uploaded"`},
			time.Hour:         {`"status":"minutes_ready"`, `"duration_seconds":1`},
		} {
			for _, text := range want {
				assert.Contains(t, s.asOf(ago(at), get), text)
			}
			assert.Equal(t, at > time.Minute, strings.Contains(s.asOf(ago(at), "GET /v1/meetings"), id))
			ready := at == time.Hour
			assert.Equal(t, !ready, strings.Contains(s.asOf(ago(at), get+"/minutes"), `"code"`))
			assert.Equal(t, ready, strings.Contains(s.asOf(ago(at), get), "duration_seconds"))
		}
	})
}

// Until the service notices a recording, the meeting is created, and storage alone knows better.
func TestNoticedAfter_DelaysWhatTheServiceKnows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t)
		require.NoError(t, s.Script(world.Script{NoticedAfter: time.Minute}))
		id := s.create("ci", "")
		url := s.presigned("ci", id, "audio/mpeg")
		s.put(url, "audio/mpeg", "audio").is(200, "")
		time.Sleep(time.Minute - 1)
		assert.Equal(t, "created", s.status("ci", id))
		second := s.presigned("ci", id, "audio/mpeg")
		s.put(second, "audio/mpeg", "other").storage(403, "AccessDenied")
		time.Sleep(time.Nanosecond)
		assert.Equal(t, "minutes_ready", s.status("ci", id))
		deleted := s.create("ci", "")
		s.put(s.presigned("ci", deleted, "audio/mpeg"), "audio/mpeg", "audio").is(200, "")
		require.NoError(t, s.Delete(deleted))
		advanced := s.create("ci", "")
		s.put(s.presigned("ci", advanced, "audio/mpeg"), "audio/mpeg", "audio").is(200, "")
		status, err := s.Advance(advanced, "transcribing")
		require.NoError(t, err)
		assert.EqualValues(t, "transcribing", status)
		time.Sleep(time.Hour)
		assert.Equal(t, "minutes_ready", s.status("ci", advanced))
	})
}

// A read does not find the meeting, but a write does.
func TestVisibleAfter_HidesFromReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t)
		require.NoError(t, s.Script(world.Script{VisibleAfter: time.Minute}))
		id := s.create("ci", `"external_id":"x"`)
		s.upload("ci", id, 1)
		for _, path := range []string{"", "/minutes", "/transcript"} {
			s.request("ci", "GET /v1/meetings/"+id+path, "").is(404, "NOT_FOUND")
		}
		ids, _ := s.list("ci", "external_id=x")
		assert.Empty(t, ids)
		s.request("ci", "PATCH /v1/meetings/"+id, `{"title":"y"}`).is(200, "")
		time.Sleep(time.Minute)
		assert.Equal(t, "minutes_ready", s.status("ci", id))
	})
}
