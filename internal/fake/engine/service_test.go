package engine_test

import (
	"encoding/binary"
	"math"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/engine"
	"github.com/meeting-minutes/minutes-go/minutestest/world"
)

// TestAdvanceClock_LetsEverythingFallDue: a week passes at once, for meetings, upload URLs, keys
// and quotas alike, and each transition has its own time.
func TestAdvanceClock_LetsEverythingFallDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // which begins at 2000-01-01T00:00Z
		start := time.Now()
		s := newRig(t, staged, withAcme(func(o *world.Organisation) {
			o.Credits = new(1)
			o.NextResetAt = "2000-01-02"
			o.Keys = append(o.Keys,
				world.Key{Secret: "day", IntegrationID: "int_ci",
					ExpiresAt: minutes.UnixTime(start.Add(24 * time.Hour).Unix())})
		}))
		id := s.create("ci", "")
		other := s.create("ci", "")
		s.upload("ci", id, 1)
		target := s.presigned("ci", other, "audio/wav")
		s.request("day", "GET /v1/usage", "").is(200, "")
		_, err := s.AdvanceClock(-time.Hour)
		require.NoError(t, err)
		assert.Equal(t, start, s.Now().Local(), "time never goes back")
		now, err := s.AdvanceClock(7 * 24 * time.Hour)
		require.NoError(t, err)
		assert.Equal(t, start.Add(7*24*time.Hour), now.Local())
		_, err = s.AdvanceClock(math.MaxInt64)
		require.ErrorContains(t, err, "over 100 years in total")
		assert.Equal(t, "created@0 audio_uploaded@0 transcribing@10 transcribed@30 generating_minutes@30 "+
			"minutes_ready@60 ", s.history(id, start))
		assert.Equal(t, "1 360000 2000-02-02", s.usage())
		s.request("day", "GET /v1/usage", "").is(401, "UNAUTHENTICATED")
		s.put(target, "audio/wav", "x").storage(403, "AccessDenied")
		s.put(s.presigned("ci", other, "audio/wav"), "audio/wav", "x").storage(200, "")
		time.Sleep(time.Minute)
		assert.Equal(t, "minutes_ready", s.status("ci", other), "its own time passes, too")
		assert.Equal(t, start.Add(7*24*time.Hour+time.Minute), s.Now().Local())
	})
}

func TestDelete_RemovesMeetingOfAnyone(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	id := s.create("ada", `"visibility":"private","external_id":"x"`)
	require.NoError(t, s.Delete(id))
	require.ErrorContains(t, s.Delete(id), "there is no meeting")
	s.request("ada", "GET /v1/meetings/"+id, "").is(404, "NOT_FOUND")
	assert.Equal(t, `{"meetings":[]}`, s.request("ada", "GET /v1/meetings?external_id=x", "").Body.String())
	assert.NotEqual(t, id, s.create("ada", `"external_id":"x"`), "the external id is free")
}

// TestListedAfter_KeepsMeetingFromListsOnly: until its time has come, a GET finds it and no list.
func TestListedAfter_KeepsMeetingFromListsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t)
		require.NoError(t, s.Script(world.Script{ExternalID: "late", ListedAfter: time.Minute}))
		soon := s.create("ci", "")
		late := s.create("ci", `"external_id":"late"`)
		time.Sleep(time.Minute - 1)
		ids, _ := s.list("ci", "")
		assert.Equal(t, []string{soon}, ids)
		ids, _ = s.list("ci", "external_id=late")
		assert.Empty(t, ids)
		assert.Equal(t, "created", s.status("ci", late))
		s.request("ci", "POST /v1/meetings", `{"title":"x","date":"2026-01-01","external_id":"late"}`).is(200, "")
		time.Sleep(time.Nanosecond)
		ids, _ = s.list("ci", "")
		assert.Equal(t, []string{late, soon}, ids)
		ids, _ = s.list("ci", "external_id=late")
		assert.Equal(t, []string{late}, ids)
	})
}

// wav is the beginning of a WAV file that says how many bytes of data follow, at 8,000 a second.
func wav(more string, size uint32) string {
	const format = "fmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00"
	return "RIFF\xff\xff\xff\x7fWAVE" + more + format + "data" +
		string(binary.LittleEndian.AppendUint32(nil, size))
}

// TestDuration is D13: a WAV file's header, else 16,000 bytes a second, and a script before both.
func TestDuration_OfWAVIsThatOfItsHeader(t *testing.T) {
	t.Parallel()
	data := func(n int) string { return strings.Repeat("\x80", n) }
	for name, tc := range map[string]struct {
		recording string
		script    time.Duration
		want      string
	}{
		"WAV":                      {wav("", 16_000) + data(16_000), 0, "2"},
		"WAV, rounded up":          {wav("", 16_001) + data(16_001), 0, "3"},
		"WAV with a text before":   {wav("LIST\x03\x00\x00\x00abc\x00", 24_000) + data(24_000), 0, "3"},
		"WAV with a long text":     {wav("LIST\x00\x00\x02\x00"+data(128<<10), 24_000) + data(24_000), 0, "3"},
		"WAV with an odd text":     {wav("LIST\x01\x00\x00\x00a\x00", 24_000) + data(24_000), 0, "3"},
		"WAV with a text after":    {wav("", 24_000) + data(24_000) + "LIST\x00\x00\x02\x00" + data(128<<10), 0, "3"},
		"WAV that was streamed":    {wav("", 0xffffffff) + data(32_000), 0, "4"},
		"WAV that broke off":       {wav("", 80_000) + data(8_000), 0, "1"},
		"WAV without a format":     {"RIFF\xff\xff\xff\x7fWAVEdata\x00\xff\x00\x00" + data(15_000), 0, "1"},
		"WAV without a length":     {wav("", 0) + data(15_000), 0, "2"},
		"WAV without data":         {wav("", 0), 0, "1"},
		"WAV of a header's half":   {wav("", 16_000)[:30], 0, "1"},
		"a chunk beyond the file":  {"RIFF\xff\xff\xff\x7fWAVELIST\xff\xff\xff\xff" + data(100), 0, "1"},
		"anything else":            {data(16_001), 0, "2"},
		"scripted":                 {data(1), 90*time.Minute + 1, "5401"},
		"scripted before a header": {wav("", 16_000) + data(16_000), time.Minute, "60"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRig(t)
			require.NoError(t, s.Script(world.Script{Duration: tc.script}))
			id := s.create("ci", "")
			s.put(s.presigned("ci", id, "audio/wav"), "audio/wav", tc.recording).storage(200, "")
			assert.Equal(t, tc.want, s.request("ci", "GET /v1/meetings/"+id, "").field("duration_seconds"))
		})
	}
}

// TestSeed_RepeatsIDsAndCursors: URLs differ in date and signature alone, and the ids of meetings
// do not depend on how many errors there were.
func TestSeed_RepeatsIDsAndCursors(t *testing.T) {
	t.Parallel()
	signature := regexp.MustCompile(`(X-Amz-Date|X-Amz-Credential|X-Amz-Signature)=[^&]*`)
	run := func(seed uint64, errors int) (shown []string) {
		s := newRig(t, func(cfg *engine.Config) { cfg.Seed = seed })
		for range errors {
			s.request("nobody", "GET /v1/usage", "").is(401, "UNAUTHENTICATED")
		}
		id := s.create("ci", "")
		s.create("ci", "")
		_, cursor := s.list("ci", "limit=1")
		project := s.request("ci", "POST /v1/projects", `{"name":"x"}`).field("id")
		return []string{id, cursor, project, signature.ReplaceAllString(s.presigned("ci", id, "audio/wav"), "")}
	}
	first := run(7, 0)
	assert.Equal(t, first, run(7, 5))
	for i, other := range run(8, 0) {
		assert.NotEqual(t, first[i], other)
	}
	random := run(0, 0)
	assert.NotEqual(t, random, run(0, 0), "no seed")
}

// TestUpdate_OfTheWorld: an organisation comes with its meetings, and goes with them. Stages count
// for meetings under way, too.
func TestUpdate_OfTheWorld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t, staged)
		id := s.create("ci", "")
		s.upload("ci", id, 1)
		require.NoError(t, s.Update(func(w *world.World) error {
			w.Stages.Prepare = time.Second
			w.Organisations[1] = globex()
			w.Organisations[1].ID = "org_new"
			w.Organisations[1].Meetings = []world.MeetingSpec{{Title: "x", Count: 3}}
			return nil
		}))
		time.Sleep(time.Second)
		assert.Equal(t, "transcribing", s.status("ci", id))
		ids, _ := s.list("globex", "")
		assert.Len(t, ids, 3)
		err := s.Update(func(w *world.World) error {
			w.Organisations[1].Meetings = []world.MeetingSpec{{Title: "x"}}
			return nil
		})
		require.ErrorContains(t, err, "organisations[1].meetings: only a new organisation")
		require.NoError(t, s.Update(func(w *world.World) error {
			w.Organisations = w.Organisations[:1]
			return nil
		}))
		s.request("globex", "GET /v1/usage", "").is(401, "UNAUTHENTICATED")
		_, found := s.Meeting(ids[0])
		assert.False(t, found)
	})
}

// TestAdd_AddsAllOrNone: the second meeting has the external id of one that exists.
func TestAdd_AddsAllOrNone(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.create("bob", `"external_id":"x"`)
	_, err := s.Add("org_acme", []world.MeetingSpec{{Title: "a"}, {Title: "b", ExternalID: "x"}})
	require.ErrorContains(t, err, "meetings[1].external_id: the same as that of meeting mtg_")
	assert.Len(t, s.Meetings(), 1)
	_, err = s.Add("org_none", nil)
	require.Error(t, err)
	ids, err := s.Add("org_acme",
		[]world.MeetingSpec{{Title: "a", Count: 2, Visibility: "shared", SharedWith: []string{"emp_bob"},
			CreatorID: "emp_ada"}})
	require.NoError(t, err)
	assert.Len(t, ids, 2)
	s.request("bob", "GET /v1/meetings/"+ids[1]+"/minutes", "").is(200, "")
}
