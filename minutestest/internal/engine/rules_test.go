package engine

import (
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

// TestReservationOutlivesUpdate: seconds set aside stay so when the settings of
// the organisation change (D23).
func TestReservationOutlivesUpdate(t *testing.T) {
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

// TestUsageIsNeverNegative: nor where the quota was cut below what had been set
// aside.
func TestUsageIsNeverNegative(t *testing.T) {
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

// TestParticipantsSeeNothing: of a shared meeting those in shared_with do, and
// its creator (D17).
func TestParticipantsSeeNothing(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	id := s.create("ada", `"visibility":"shared","participant_ids":["emp_bob","emp_cy"],"shared_with":["emp_cy"]`)
	for key, want := range map[string]int{"ada": 200, "cy": 200, "bob": 404, "ci": 404} {
		assert.Equal(t, want, s.do(key, "GET /v1/meetings/"+id, "").Code, key)
		ids, _ := s.walk(key, "limit=50")
		assert.Len(t, ids, map[int]int{200: 1, 404: 0}[want], key)
	}
}

// TestDurationComesWithTranscribing is D13, state by state.
func TestDurationComesWithTranscribing(t *testing.T) {
	t.Parallel()
	s := newRig(t, func(cfg *Config) { cfg.Stages.Prepare, cfg.Stages.Transcribe = time.Hour, time.Hour })
	id := s.create("ci", "")
	at := "GET /v1/meetings/" + id
	assert.NotContains(t, s.do("ci", at, "").json(), "duration_seconds")
	s.upload("ci", id, 16_000*3)
	require.Equal(t, "audio_uploaded", s.status("ci", id))
	assert.NotContains(t, s.do("ci", at, "").json(), "duration_seconds")
	_, err := s.Advance(id, minutes.StatusTranscribing)
	require.NoError(t, err)
	assert.Equal(t, "3", s.do("ci", at, "").field("duration_seconds"))
}

// TestCursorOfAnotherOrganisation is D7.
func TestCursorOfAnotherOrganisation(t *testing.T) {
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
		_, ok := parseDate(date)
		assert.Equal(t, want, ok, date)
	}
}

// TestScriptPrecedence: each field comes from the narrowest script that sets
// it: by id, by external id, by title, for all, in whatever order they came.
func TestScriptPrecedence(t *testing.T) {
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

// TestLongestVariant: whichever term or variant comes first.
func TestLongestVariant(t *testing.T) {
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

// TestDueAtOnce: of two meetings due at one instant the older goes first,
// whichever had its audio first.
func TestDueAtOnce(t *testing.T) {
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

// TestBlockedOnArrival: what counts is the quota when the audio arrives. One
// that comes later does not restart the meeting (section 3).
func TestBlockedOnArrival(t *testing.T) {
	t.Parallel()
	s := newRig(t, func(cfg *Config) { cfg.Stages.Prepare = time.Hour }, withAcme(func(o *Organisation) { o.TranscribeSeconds = new(1) }))
	id := s.create("ci", "")
	s.upload("ci", id, 16_000*2)
	require.NoError(t, s.Update("org_acme", func(o *Organisation) { o.TranscribeSeconds = new(100) }))
	status, err := s.Advance(id, "")
	require.NoError(t, err)
	assert.Equal(t, minutes.StatusTranscribeBlocked, status)
}

// TestEdgesOfValues: the last value on either side of each limit.
func TestEdgesOfValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"00:00": true, "23:59": true, "24:00": false, "23:60": false, "2x:00": false, "20:0x": false} {
		_, ok := parseClock(text)
		assert.Equal(t, want, ok, text)
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
		`"\ud800\ud800"`: false, `"\ud800\ue000"`: false, `"\ud800x"`: false, `"\ud800\n"`: false, `"\ud800\\udc00"`: false, `"\ud800udc0000"`: false, `"\u0000"`: false, `"\\u0000"`: true,
	} {
		assert.Equal(t, want, cleanText([]byte(text)), text)
	}
	assert.Equal(t, "2027-01-31", dateOf(2026, 12, 31).nextMonth(31).String())
	assert.Equal(t, "2026-12-31", dateOf(2026, 11, 30).nextMonth(31).String())
	assert.Equal(t, `"\ta\r\n\\\"é`+"\u2028"+`"`, strings.NewReplacer(`\u2028`, "\u2028").Replace(string(appendString(nil, "\ta\r\n\\\"é\u2028"))))
}

// TestHeadersOfRefusals: a refusal has no pace of polling, a refused key a
// challenge, and every reply its length.
func TestHeadersOfRefusals(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	id := s.create("ci", "")
	found := s.do("ci", "GET /v1/meetings/"+id, "")
	assert.Equal(t, "private, max-age=30", found.Header().Get("Cache-Control"))
	for key, want := range map[string]string{"": "Bearer", "two": "", "nobody": "Bearer"} {
		r := s.do(key, "GET /v1/meetings/mtg_none", "")
		assert.Equal(t, want, r.Header().Get("Www-Authenticate"), key)
		assert.Empty(t, r.Header().Get("Cache-Control"), key)
		assert.Equal(t, strconv.Itoa(r.Body.Len()), r.Header().Get("Content-Length"), key)
	}
}

// TestAllowlistOfOneAddress: a caller without a port, as some servers have it,
// and an IPv4 prefix in IPv6 clothes.
func TestAllowlistOfOneAddress(t *testing.T) {
	t.Parallel()
	k := &key{Key: Key{Allowlist: []netip.Prefix{unmapPrefix(netip.MustParsePrefix("::ffff:192.0.2.0/120")), unmapPrefix(netip.MustParsePrefix("2001:db8::/32"))}}}
	for remote, want := range map[string]bool{"192.0.2.7:5": true, "192.0.2.7": true, "192.0.3.7": false, "[2001:db8::1]:5": true, "2001:db8::1": true, "2001:db9::1": false, "pipe": false, "": false} {
		assert.Equal(t, want, k.permits(remote), remote)
	}
	assert.Equal(t, "0.0.0.0/0", unmapPrefix(netip.MustParsePrefix("::ffff:0.0.0.0/96")).String())
}
