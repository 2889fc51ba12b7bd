package engine

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
)

// TestReservation_OutlivesUpdate: seconds set aside stay so when the settings of
// the organisation change (D23).
func TestReservation_OutlivesUpdate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t, staged, withAcme(func(o *Organisation) { o.TranscribeSeconds = new(10) }))
		a, b := s.create("ci", ""), s.create("ci", "")
		s.upload("ci", a, 16_000*6)
		require.NoError(t, s.Update("org_acme", func(o *Organisation) { o.Name = "Acme & Co" }))
		s.upload("ci", b, 16_000*5)
		time.Sleep(time.Hour)
		assert.Equal(t, "minutes_ready", s.status("ci", a))
		assert.Equal(t, "transcribe_blocked", s.status("ci", b))
	})
}

// Usage is not negative even if the quota is cut below the seconds set aside.
func TestUsage_IsNeverNegative(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRig(t, staged, withAcme(func(o *Organisation) { o.TranscribeSeconds = new(10) }))
		a := s.create("ci", "")
		s.upload("ci", a, 16_000*6)
		require.NoError(t, s.Update("org_acme", func(o *Organisation) { o.TranscribeSeconds, o.Credits = new(2), new(0) }))
		time.Sleep(time.Hour)
		assert.Equal(t, "minutes_failed", s.status("ci", a))
		assert.Equal(t, "0 0 null", s.usage())
	})
}

// TestVisibility_ParticipantsGetNoAccess: of a shared meeting those in shared_with do, and
// its creator (D17).
func TestVisibility_ParticipantsGetNoAccess(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	id := s.create("ada", `"visibility":"shared","participant_ids":["emp_bob","emp_cy"],"shared_with":["emp_cy"]`)
	for key, want := range map[string]int{"ada": 200, "cy": 200, "bob": 404, "ci": 404} {
		assert.Equal(t, want, s.do(key, "GET /v1/meetings/"+id, "").Code, key)
		ids, _ := s.walk(key, "limit=50")
		assert.Len(t, ids, map[int]int{200: 1, 404: 0}[want], key)
	}
}

// TestDuration_AppearsWithTranscribing is D13, state by state.
func TestDuration_AppearsWithTranscribing(t *testing.T) {
	t.Parallel()
	s := newRig(t, func(cfg *Config) { cfg.Stages.Prepare, cfg.Stages.Transcribe = time.Hour, time.Hour })
	id := s.create("ci", "")
	at := "GET /v1/meetings/" + id
	assert.NotContains(t, s.do("ci", at, "").json(), "duration_seconds")
	s.upload("ci", id, 16_000*37)
	require.Equal(t, "audio_uploaded", s.status("ci", id))
	assert.NotContains(t, s.do("ci", at, "").json(), "duration_seconds")
	_, err := s.Advance(id, minutes.StatusTranscribing)
	require.NoError(t, err)
	assert.Equal(t, "37", s.do("ci", at, "").field("duration_seconds"))
}

// TestDuration_OfContainers is D13 for a recording that shows it, rounded
// up: not what 16,000 bytes a second would make of it.
func TestDuration_OfContainers(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	for size, want := range map[int]string{4_000: "1", 8_000: "1", 8_001: "2", 12_000: "2"} { // at 8,000 bytes a second
		wav := "RIFF\xff\xff\xff\x7fWAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\x01\x00\x08\x00data" +
			string(binary.LittleEndian.AppendUint32(nil, uint32(size))) + strings.Repeat("\x80", size)
		id := s.create("ci", "")
		s.put(s.presigned("ci", id, "audio/wav"), "audio/wav", wav).storage(200, "")
		assert.Equal(t, want, s.do("ci", "GET /v1/meetings/"+id, "").field("duration_seconds"), size)
	}
}

// The rest of a meeting in progress follows each script for it, and no other
// script. A meeting that a script held continues without it.
func TestScript_AppliesToMeetingsInProgress(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sel func(id string) Selector
		hit bool
	}{
		"all":           {func(string) Selector { return Selector{} }, true},
		"id":            {func(id string) Selector { return Selector{MeetingID: id} }, true},
		"external id":   {func(string) Selector { return Selector{ExternalID: "crm"} }, true},
		"title":         {func(string) Selector { return Selector{Title: "Weekly"} }, true},
		"other id":      {func(string) Selector { return Selector{MeetingID: "mtg_other"} }, false},
		"other ext. id": {func(string) Selector { return Selector{ExternalID: "erp"} }, false},
		"other title":   {func(string) Selector { return Selector{Title: "Monthly"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newRig(t, func(cfg *Config) { cfg.Stages.Prepare = 2 * time.Hour })
				id := s.create("ci", `"external_id":"crm"`)
				s.upload("ci", id, 1)
				time.Sleep(time.Minute)
				require.NoError(t, s.Script(test.sel(id), Script{Hold: minutes.StatusAudioUploaded}))
				time.Sleep(3 * time.Hour)
				want := "minutes_ready"
				if test.hit {
					want = "audio_uploaded"
				}
				require.Equal(t, want, s.status("ci", id))
				require.NoError(t, s.Script(test.sel(id), Script{}))
				assert.Equal(t, "minutes_ready", s.status("ci", id))
			})
		})
	}
}

// TestScript_CanBeReplaced: a recording that was to be rejected, and now is not,
// takes its seconds as any other does (D23).
func TestScript_CanBeReplaced(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int]string{7: "minutes_ready", 11: "transcribe_blocked"} {
		synctest.Test(t, func(t *testing.T) {
			s := newRig(t, staged, withAcme(func(o *Organisation) { o.TranscribeSeconds = new(10) }))
			require.NoError(t, s.Script(Selector{}, Script{Outcome: minutes.StatusAudioRejected}))
			a, b := s.create("ci", ""), s.create("ci", "")
			s.upload("ci", a, 16_000*seconds)
			require.NoError(t, s.Script(Selector{}, Script{}))
			time.Sleep(stages.Prepare + time.Second)
			s.upload("ci", b, 16_000*8)
			time.Sleep(time.Hour)
			assert.Equal(t, want, s.status("ci", a))
			assert.Equal(t, map[int]string{7: "transcribe_blocked", 11: "minutes_ready"}[seconds], s.status("ci", b))
			assert.Equal(t, map[int]string{7: "999 3 null", 11: "999 2 null"}[seconds], s.usage())
		})
	}
}

// Seconds are given back once, however a recording fails (D23, D25), and a
// meeting deleted in progress costs nothing more.
func TestReservation_IsReleasedOnce(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *rig, id string){
		"deleted while it is prepared": func(s *rig, id string) { s.do("ci", "DELETE /v1/meetings/"+id, "").is(204, "") },
		"deleted while it is transcribed": func(s *rig, id string) {
			time.Sleep(stages.Prepare)
			s.do("ci", "DELETE /v1/meetings/"+id, "").is(204, "")
		},
		"rejected after all": func(s *rig, id string) {
			require.NoError(s.t, s.Script(Selector{MeetingID: id}, Script{Outcome: minutes.StatusAudioRejected}))
		},
		"blocked after all": func(s *rig, id string) {
			require.NoError(s.t, s.Script(Selector{MeetingID: id}, Script{Outcome: minutes.StatusTranscribeBlocked}))
		},
		"not heard, and deleted": func(s *rig, id string) {
			require.NoError(s.t, s.Script(Selector{MeetingID: id}, Script{Outcome: minutes.StatusTranscriptionFailed}))
			time.Sleep(time.Hour)
			s.do("ci", "DELETE /v1/meetings/"+id, "").is(204, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newRig(t, staged, withAcme(func(o *Organisation) { o.TranscribeSeconds = new(10) }))
				id := s.create("ci", "")
				s.upload("ci", id, 16_000*6)
				end(s, id)
				time.Sleep(time.Hour)
				assert.Equal(t, "1000 10 null", s.usage())
				over, fits := s.create("ci", ""), s.create("ci", "")
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

// TestUpdate_ChangesNothingOnError: also not what change wrote into what it was
// given.
func TestUpdate_ChangesNothingOnError(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	before, _ := s.Organisation("org_acme")
	vocabulary := s.do("ci", "GET /v1/vocabulary", "").Body.String()
	require.Error(t, s.Update("org_acme", func(o *Organisation) {
		o.Members[0].ID = o.Members[1].ID
		o.Members[2].Name, o.Projects[0].Name, o.Templates[0].Name, o.Integrations[0].Inactive = "x", "x", "x", true
		o.Vocabulary[0].Term, o.Vocabulary[0].Variants[0].Text = "x", "x"
		o.Keys[0].Revoked = true
		*o.Credits, *o.TranscribeSeconds, *o.PeriodCredits, *o.MaxMembers, *o.MaxTerms = 0, 0, 0, 0, 0
	}))
	after, _ := s.Organisation("org_acme")
	assert.Equal(t, before, after)
	assert.Equal(t, vocabulary, s.do("ci", "GET /v1/vocabulary", "").Body.String())
}

// TestCursor_OfAnotherOrganisationIsRejected is D7.
func TestCursor_OfAnotherOrganisationIsRejected(t *testing.T) {
	t.Parallel()
	s := newRig(t, func(cfg *Config) { cfg.Organisations[1].ID = "org_emca" }) // as long as the other's
	for range 3 {
		s.create("ci", "")
		s.create("globex", "")
	}
	cursor := s.do("ci", "GET /v1/meetings?limit=1", "").field("next_cursor")
	require.NotEmpty(t, cursor)
	s.do("ada", "GET /v1/meetings?cursor="+cursor, "").is(200, "")
	s.do("globex", "GET /v1/meetings?cursor="+cursor, "").is(400, "INVALID_CURSOR")
}

// TestLeapYears: a century is none, unless four of them are.
func TestLeapYears(t *testing.T) {
	t.Parallel()
	for date, want := range map[string]bool{
		"1900-02-28": true, "1900-02-29": false, "2100-02-29": false, "2000-02-29": true, "2400-02-29": true, "2024-02-29": true, "2023-02-29": false,
		"0004-02-29": true, "0100-02-29": false, "0001-01-01": true, "9999-12-31": true,
		"2026-04-31": false, "2026-06-30": true, "2026-06-31": false, "2026-09-31": false, "2026-11-31": false, "2026-12-32": false, "2026-13-01": false, "2026-00-01": false, "2026-01-00": false, "2026-01-31": true,
	} {
		assert.Equal(t, want, validDate(date), date)
	}
}

// Each field comes from the narrowest script that sets it: by id, by external
// id, by title, for all, in any order of scripts.
func TestScript_NarrowestWins(t *testing.T) {
	t.Parallel()
	selectors := func(id string) []Selector { // the narrowest first
		return []Selector{{MeetingID: id}, {ExternalID: "crm"}, {Title: "Weekly"}, {}}
	}
	said := []string{"of the id", "of the external id", "of the title", "of all"}
	for _, backwards := range []bool{false, true} {
		for narrowest := range said {
			s := newRig(t)
			id := s.create("ci", `"external_id":"crm"`)
			list := selectors(id)
			for i := range said {
				if backwards {
					i = len(said) - 1 - i
				}
				if i >= narrowest {
					require.NoError(t, s.Script(list[i], Script{Transcript: said[i], Minutes: Minutes{Markdown: said[i], HTML: said[i]}}))
				}
			}
			s.upload("ci", id, 1)
			assert.Equal(t, "spk_0: "+said[narrowest], s.do("ci", "GET /v1/meetings/"+id+"/transcript", "").is(200, "").field("transcript"))
			assert.Equal(t, said[narrowest], s.do("ci", "GET /v1/meetings/"+id+"/minutes", "").field("content"))
			assert.Equal(t, said[narrowest], s.do("ci", "GET /v1/meetings/"+id+"/minutes?format=markdown", "").field("content"))
		}
	}
	// Where each sets another field, all of them count; stages and what holds, too.
	s := newRig(t)
	id := s.create("ci", `"external_id":"crm"`)
	list := selectors(id)
	for i, sc := range []Script{
		{Hold: minutes.StatusTranscribing}, {Outcome: minutes.StatusMinutesFailed, Stages: &Stages{}}, {Transcript: "spoken"}, {Hold: minutes.StatusAudioUploaded, Outcome: minutes.StatusAudioRejected, Transcript: "x", Stages: &Stages{Prepare: time.Hour}},
	} {
		require.NoError(t, s.Script(list[i], sc))
	}
	s.upload("ci", id, 1)
	require.Equal(t, "transcribing", s.status("ci", id))
	require.True(t, s.Release(id))
	require.Equal(t, "minutes_failed", s.status("ci", id))
	assert.Equal(t, "spk_0: spoken", s.do("ci", "GET /v1/meetings/"+id+"/transcript", "").field("transcript"))
}

// TestVocabulary_LongestVariantWins: whichever term or variant comes first.
func TestVocabulary_LongestVariantWins(t *testing.T) {
	t.Parallel()
	short, long := Term{"Barrel", []Variant{{"cooper", ""}}}, Term{"Kubernetes", []Variant{{"cooper netties", ""}}}
	for _, terms := range [][]Term{{short, long}, {long, short}} {
		assert.Equal(t, "Kubernetes, Barrel", correct("cooper netties, cooper", terms))
	}
	both := []Term{{"Kubernetes", []Variant{{"cooper", ""}, {"cooper netties", ""}}}}
	assert.Equal(t, "Kubernetes", correct("cooper netties", both))
	// Of two as long as each other, the first.
	assert.Equal(t, "A", correct("x", []Term{{"A", []Variant{{"x", ""}}}, {"B", []Variant{{"X", ""}}}}))
}

// TestSchedule_JobsDueAtTheSameTime: of two meetings due at one instant the older goes first,
// whichever had its audio first.
func TestSchedule_JobsDueAtTheSameTime(t *testing.T) {
	t.Parallel()
	for _, backwards := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newRig(t, staged, withAcme(func(o *Organisation) { o.Credits = new(1) }))
			older, newer := s.create("ci", ""), s.create("ci", "")
			order := []string{older, newer}
			if backwards {
				order = []string{newer, older}
			}
			for _, id := range order {
				s.upload("ci", id, 1)
			}
			time.Sleep(time.Hour)
			assert.Equal(t, "minutes_ready", s.status("ci", older))
			assert.Equal(t, "minutes_failed", s.status("ci", newer))
		})
	}
}

// The quota at the arrival of the audio counts. Quota that is added later does
// not restart the meeting (section 3).
func TestQuota_CountsAtArrivalOfAudio(t *testing.T) {
	t.Parallel()
	s := newRig(t, func(cfg *Config) { cfg.Stages.Prepare = time.Hour }, withAcme(func(o *Organisation) { o.TranscribeSeconds = new(1) }))
	id := s.create("ci", "")
	s.upload("ci", id, 16_000*2)
	require.NoError(t, s.Update("org_acme", func(o *Organisation) { o.TranscribeSeconds = new(100) }))
	status, err := s.Advance(id, "")
	require.NoError(t, err)
	assert.Equal(t, minutes.StatusTranscribeBlocked, status)
}

// TestValues_AtTheirLimits: the last value on either side of each limit.
func TestValues_AtTheirLimits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"00:00": true, "23:59": true, "24:00": false, "23:60": false, "2x:00": false, "20:0x": false} {
		assert.Equal(t, want, validTime(text), text)
	}
	local, label := strings.Repeat("a", 64), strings.Repeat("b", 63)
	for email, want := range map[string]bool{
		local + "@b.example": true, local + "a@b.example": false, "a@" + label + ".example": true, "a@" + label + "b.example": false,
		"a@z.Z": true, "a@0.9": true, "a@é.example": true, "a@" + strings.Repeat(label+".", 3) + strings.Repeat("c", 60): true, "a@" + strings.Repeat(label+".", 3) + strings.Repeat("c", 61): false,
		"a@b!.example": false, "a@b..c": false, "a@b:c": false, "a@b[c": false, "a@b`c": false, "a@b{c": false, "a@b/c": false,
	} {
		assert.Equal(t, want, validEmail(email), email)
	}
	for text, want := range map[string]bool{
		`"\u0001"`: true, `"\ud7ff"`: true, `"\ud800"`: false, `"\udbff"`: false, `"\udc00"`: false, `"\udfff"`: false, `"\ue000"`: true, `"\ud800\udc00"`: true, `"\udbff\udfff"`: true,
		`"\ud800\ud800"`: false, `"\ud800\ue000"`: false, `"\ud800x"`: false, `"\ud800\n"`: false, `"\ud800\\udc00"`: false, `"\ud800udc0000"`: false, `"\ud800xudc00"`: false, `"\ud800\\ndc00"`: false, `"\u0000"`: false, `"\\u0000"`: true,
	} {
		assert.Equal(t, want, storable([]byte(text)), text)
	}
	assert.Equal(t, "2027-01-31", nextMonth("2026-12-31", 31))
	assert.Equal(t, "2026-12-31", nextMonth("2026-11-30", 31))
	assert.Equal(t, `"<\ta\r\n\\\"é"`, string(encode("<\ta\r\n\\\"é")))
}

// An error has no poll interval, a rejected key gets a challenge, and every
// response has its length.
func TestErrors_HaveTheirHeaders(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	id := s.create("ci", "")
	found := s.do("ci", "GET /v1/meetings/"+id, "")
	assert.Equal(t, "private, max-age=30", found.Header().Get("Cache-Control"))
	for _, what := range []string{"GET /v1/meetings", "GET /v1/usage", "PATCH /v1/meetings/" + id, "GET /v1/templates"} {
		assert.Empty(t, s.do("ci", what, "{}").is(200, "").Header().Get("Cache-Control"), what)
	}
	for key, want := range map[string]string{"": "Bearer", "two": "", "nobody": "Bearer"} {
		r := s.do(key, "GET /v1/meetings/mtg_none", "")
		assert.Equal(t, want, r.Header().Get("Www-Authenticate"), key)
		assert.Empty(t, r.Header().Get("Cache-Control"), key)
		assert.Equal(t, strconv.Itoa(r.Body.Len()), r.Header().Get("Content-Length"), key)
	}
}

// TestAllowlist_OfOneAddress: a caller without a port, as some servers have it,
// and an IPv4 prefix in IPv6 clothes.
func TestAllowlist_OfOneAddress(t *testing.T) {
	t.Parallel()
	k := &key{Key: Key{Allowlist: []netip.Prefix{unmapPrefix(netip.MustParsePrefix("::ffff:192.0.2.0/120")), unmapPrefix(netip.MustParsePrefix("2001:db8::/32")), unmapPrefix(netip.MustParsePrefix("2001:dc0::7/128")), unmapPrefix(netip.MustParsePrefix("fe80::/10"))}}}
	for remote, want := range map[string]bool{"192.0.2.7:5": true, "192.0.2.7": true, "192.0.3.7": false, "[2001:db8::1]:5": true, "2001:db8::1": true, "2001:db9::1": false, "2001:dc0::7": true, "2001:dc0::8": false, "[fe80::1%eth0]:5": true, "fe80::1%eth0": true, "[fec0::1%eth0]:5": false, "pipe": false, "": false} {
		assert.Equal(t, want, k.permits(remote), remote)
	}
	assert.Equal(t, "0.0.0.0/0", unmapPrefix(netip.MustParsePrefix("::ffff:0.0.0.0/96")).String())
}
