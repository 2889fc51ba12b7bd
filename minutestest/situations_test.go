package minutestest_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/fake/mistake"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// With several meetings at once, a Match names one of them, in any order of requests.
func TestMatch_NamesAMeeting(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]minutestest.Match{
		"title":       {Title: "Third", Times: minutestest.Always},
		"external id": {ExternalID: "ext-Third", Times: minutestest.Always},
		"both":        {ExternalID: "ext-Third", Title: "Third", Times: minutestest.Always},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothWires(t, func(t *testing.T, s *minutestest.Server, c *caller) {
				s.Inject(m, minutestest.Call(func(minutestest.Request) {}))
				var all sync.WaitGroup
				for _, title := range []string{"First", "Second", "Third", "Fourth"} {
					all.Go(func() {
						id := c.send("POST", "/v1/meetings",
							`{"title":"`+title+`","date":"2026-11-21","external_id":"ext-`+title+`"}`).field("id")
						c.send("PUT", c.uploadURL(t, id), "audio", withHeader("Content-Type", audioType))
						c.status(t, id)
						if m.Title == "" {
							c.send("GET", "/v1/meetings?external_id=ext-"+title, "")
						}
					})
				}
				all.Wait()
				var got []string
				for _, r := range s.Requests() {
					if r.Fault == "" {
						continue
					}
					if r.MeetingID != "" {
						meeting, _ := s.Meeting(r.MeetingID)
						assert.Equal(t, "Third", meeting.Title)
					}
					got = append(got, string(r.Operation))
				}
				want := []string{"meetings.create", "meetings.upload_url", "storage.put", "meetings.get"}
				if m.Title == "" {
					want = append(want, "meetings.list")
				}
				assert.Equal(t, want, got)
			})
		})
	}
}

// A Match selects by what the request has in its header and its body.
func TestMatch_LooksIntoHeaderAndBody(t *testing.T) {
	t.Parallel()
	s := minutestest.NewServer(t)
	c := callerOf(s)
	s.Inject(minutestest.Match{Header: map[string]string{"x-tenant": "a"}}, minutestest.BadGateway())
	s.Inject(minutestest.Match{Body: `"Ada"`}, minutestest.BadGateway())
	assert.Equal(t, 200, c.send("GET", "/v1/usage", "", withHeader("X-Tenant", "b")).status)
	assert.Equal(t, 502, c.send("GET", "/v1/usage", "", withHeader("X-Tenant", "a")).status)
	assert.Equal(t, 201, c.send("POST", "/v1/projects", `{"name":"Ben"}`).status)
	assert.Equal(t, 502, c.send("POST", "/v1/projects", `{"name":"Ada"}`).status)
	for want, m := range map[string]minutestest.Match{
		"match: header: Authorization holds the key; match that instead": {
			Header: map[string]string{"authorization": "Bearer key_ci"}},
		"match: body: that of a recording is not looked at, so no storage.put matches": {
			Operation: minutes.OpUpload, Body: "x"},
		"stale: it changes what a read of meetings shows; match one of " +
			"meetings.list, meetings.get, meetings.minutes, meetings.transcript": {Operation: minutes.OpUsageGet},
	} {
		program := minutestest.New()
		require.EqualError(t, mistake.Catch(func() { program.Inject(m, minutestest.Stale(0)) }), want)
	}
	assert.NotContains(t, minutestest.Match{Header: map[string]string{"Cookie": "c4f3"}}.String(), "c4f3")
}

// A Match that names a meeting reads the body of a create, and leaves it to the service.
func TestMatch_LeavesBodyReadable(t *testing.T) {
	t.Parallel()
	s := minutestest.NewServer(t)
	s.Inject(minutestest.Match{Title: "Another"}, minutestest.Reset()).Optional()
	c := callerOf(s)
	long := strings.Repeat("x", 1<<20)
	assert.Equal(t, "Weekly", c.send("POST", "/v1/meetings", `{"title":"Weekly","date":"2026-11-21"}`).field("title"))
	assert.Equal(t, http.StatusRequestEntityTooLarge,
		c.send("POST", "/v1/meetings", `{"title":"`+long+`","date":"2026-11-21"}`).status)
	assert.Equal(t, http.StatusRequestEntityTooLarge,
		c.send("POST", "/v1/meetings", `{"title":"`+long+`","date":"2026-11-21"}`, func(r *http.Request) {
			r.ContentLength = -1
		}).status)
}

// WithLog and Call may call every method of the Server.
func TestCallbacks_MayCallTheServer(t *testing.T) {
	t.Parallel()
	inAndOut(t, func(t *testing.T) {
		var s *minutestest.Server
		var ids []string
		called := 0
		everything := func(r minutestest.Request) {
			called++
			_ = s.Requests()
			_ = s.Violations()
			_, _ = s.Meeting(r.MeetingID)
			_ = s.Organisation("org_acme")
			s.Update("org_acme", func(o *minutestest.Organisation) { o.Name = "Acme again" })
			s.Script(minutestest.Script{Title: "Other"})
			s.Inject(minutestest.Match{Title: "Other"}, minutestest.Reset()).Optional()
			s.SetPageSizes()
			s.Release(ids[0])
			assert.NoError(t, s.Report(io.Discard))
		}
		s = minutestest.NewServer(t, minutestest.WithLog(everything))
		ids = s.AddMeetings("org_acme", minutestest.WorldMeeting{Title: "Weekly"})
		s.Inject(minutestest.Match{}, minutestest.Call(everything))
		callerOf(s).send("GET", "/v1/usage", "")
		assert.Equal(t, 2, called)
		callerOf(s).create(t, "Weekly")
		assert.Equal(t, 3, called)
	})
}

// A slow upload takes its time, and a client that gives up is not read to the end.
func TestSlowUpload_EndsWithItsClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := minutestest.NewServer(t)
		c := callerOf(s)
		s.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.SlowUpload(1000),
			minutestest.SlowUpload(1))
		url := c.uploadURL(t, c.create(t, "Weekly"))
		began := time.Now()
		assert.Equal(t, 200,
			c.send("PUT", url, strings.Repeat("a", 60_000), withHeader("Content-Type", audioType)).status)
		assert.Equal(t, time.Minute, time.Since(began).Round(time.Second))
		id := c.create(t, "Weekly")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a := c.send("PUT", c.uploadURL(t, id), strings.Repeat("a", 60_000), withHeader("Content-Type", audioType),
			func(r *http.Request) { *r = *r.WithContext(ctx) })
		require.ErrorIs(t, a.err, context.DeadlineExceeded)
		synctest.Wait()
		assert.Len(t, s.Requests(minutes.OpUpload), 2)
		m, _ := s.Meeting(id)
		assert.Nil(t, m.Audio)
	})
}

func TestShowStatus_ReplacesStatus(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, s *minutestest.Server, c *caller) {
		id := c.upload(t, `"status":"x"`, "audio")
		s.Advance(id, minutes.StatusMinutesReady)
		s.Inject(minutestest.Match{Times: 3}, minutestest.ShowStatus("archiving"))
		a := c.send("GET", "/v1/meetings/"+id, "")
		assert.Equal(t, "archiving", a.field("status"))
		assert.Equal(t, `"status":"x"`, a.field("title"))
		assert.Contains(t, c.send("GET", "/v1/meetings", "").text, `"status":"archiving"`)
		assert.Equal(t, http.StatusNotFound, c.send("GET", "/v1/meetings/mtg_x", "").status)
		assert.Equal(t, "minutes_ready", c.send("GET", "/v1/meetings/"+id, "").field("status"))
	})
}

// An outage begins and ends at its times, and takes all requests in between.
func TestInjection_During(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := minutestest.NewServer(t)
		c := callerOf(s)
		outage := s.Inject(minutestest.Match{}, minutestest.BadGateway()).During(time.Minute, 6*time.Minute)
		var got []int
		for range 8 {
			got = append(got, c.send("GET", "/v1/usage", "").status)
			time.Sleep(time.Minute)
		}
		assert.Equal(t, []int{200, 502, 502, 502, 502, 502, 200, 200}, got)
		assert.Equal(t, 5, outage.Applied())
		assert.Equal(t, 5, outage.Seen())
		twice := s.Inject(minutestest.Match{Times: 2}, minutestest.BadGateway()).During(0, time.Minute)
		for range 3 {
			c.send("GET", "/v1/usage", "")
		}
		assert.Equal(t, 2, twice.Applied())
	})
	for name, use := range map[string]func(i *minutestest.Injection){"unused": func(*minutestest.Injection) {},
		"optional": func(i *minutestest.Injection) { i.Optional() }} {
		synctest.Test(t, func(t *testing.T) {
			failures := nested(func(tb *fakeTB) {
				s := minutestest.NewServer(tb)
				use(s.Inject(minutestest.Match{}, minutestest.Reset()).During(0, time.Minute))
				time.Sleep(time.Minute)
				callerOf(s).send("GET", "/v1/usage", "")
			})
			assert.Len(t, failures, map[string]int{"unused": 1, "optional": 0}[name])
		})
	}
}

// Storage responds in XML, also if a Match of everything injects an error.
func TestRefuse_DoesNotApplyToStorage(t *testing.T) {
	t.Parallel()
	s := minutestest.NewServer(t)
	c := callerOf(s)
	url := c.uploadURL(t, c.create(t, "Weekly"))
	i := s.Inject(minutestest.Match{}, minutestest.Refuse(minutes.ErrInternal))
	assert.Equal(t, 200, c.send("PUT", url, "audio", withHeader("Content-Type", audioType)).status)
	assert.Zero(t, i.Seen())
	assert.Equal(t, 500, c.send("GET", "/v1/usage", "").status)
}

// A World may begin with meetings: 500 finished ones need no loop.
func TestWorld_HoldsMeetings(t *testing.T) {
	t.Parallel()
	w := slow()
	o := &w.Organisations[0]
	o.Credits = new(3)
	o.TranscribeSeconds = new(30)
	o.Meetings = []minutestest.WorldMeeting{
		{Title: "Archive", ExternalID: "arc", Count: 50},
		{Title: "Private", CreatorID: "emp_ben", Visibility: minutes.VisibilityPrivate, Status: minutes.StatusCreated},
		{Title: "By Eve", CreatorID: "emp_eve", ExternalID: "eve", Date: "2025-12-24",
			ParticipantIDs: []string{"emp_ada"}, Status: minutes.StatusTranscribing},
	}
	for status := range map[minutes.Status]bool{"audio_rejected": true, "transcribe_blocked": true,
		"transcription_failed": true, "minutes_failed": true, "audio_uploaded": true, "generating_minutes": true} {
		o.Meetings = append(o.Meetings, minutestest.WorldMeeting{Title: string(status), Status: status})
	}
	synctest.Test(t, func(t *testing.T) {
		s := unjudged(t, minutestest.WithWorld(w))
		all := s.Meetings()
		require.Len(t, all, 58)
		assert.Equal(t, []string{"arc-1", "arc-50", "", "eve"},
			[]string{all[0].ExternalID, all[49].ExternalID, all[50].ExternalID, all[51].ExternalID})
		assert.Equal(t, minutes.StatusMinutesReady, all[0].Status)
		assert.NotEmpty(t, all[0].Markdown)
		assert.Equal(t, "emp_ben", all[50].Creator)
		assert.Nil(t, all[50].Audio)
		assert.Equal(t, minutes.StatusTranscribing, all[51].Status)
		for _, m := range all[52:] {
			assert.Equal(t, m.Title, string(m.Status))
		}
		now := s.Organisation("org_acme")
		assert.Equal(t, []int{3, 30}, []int{*now.Credits, *now.TranscribeSeconds})
		time.Sleep(time.Hour)
		assert.Equal(t, minutes.StatusMinutesReady, s.Meetings()[51].Status, "it goes on")
		assert.Empty(t, s.Requests())
	})
	w = minutestest.DefaultWorld()
	w.Organisations[0].Meetings = []minutestest.WorldMeeting{{}}
	failures := nested(func(tb *fakeTB) { minutestest.NewServer(tb, minutestest.WithWorld(w)) })
	require.Len(t, failures, 1)
	require.Contains(t, failures[0], "Organisations[0].Meetings[0].Title: 1 to 300")
}

func TestAddMeetings_ContinueByThemselves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t)
		client := s.Client()
		s.Update("org_acme", func(o *minutestest.Organisation) {
			o.Credits = new(5)
			o.TranscribeSeconds = new(100)
		})
		s.Script(minutestest.Script{Outcome: minutes.StatusAudioRejected},
			minutestest.Script{Title: "Failing", Outcome: minutes.StatusMinutesFailed})
		ids := s.AddMeetings("org_acme",
			minutestest.WorldMeeting{Title: "Standup", CreatorID: "emp_ada", Visibility: minutes.VisibilityOrganisation,
				Status: minutes.StatusTranscribing, Count: 3},
			minutestest.WorldMeeting{Title: "Failing", Status: minutes.StatusAudioUploaded},
			minutestest.WorldMeeting{Title: "No audio", ExternalID: "x", Count: 2, Status: minutes.StatusCreated},
			minutestest.WorldMeeting{Title: "Private", ExternalID: "p", Count: 1, CreatorID: "emp_ben"},
		)
		require.Len(t, ids, 7)
		usage, err := client.Usage.Get(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []int{5, 100}, []int{usage.CreditsRemaining, usage.TranscribeSecondsRemaining},
			"nothing has ended yet")

		time.Sleep(time.Hour)
		var got []string
		for _, m := range s.Meetings() {
			got = append(got, m.Title+" "+m.ExternalID+" "+m.Creator+" "+string(m.Status))
		}
		assert.Equal(t, []string{
			"Standup  emp_ada minutes_ready", "Standup  emp_ada minutes_ready", "Standup  emp_ada minutes_ready",
			"Failing  int_ci minutes_failed",
			"No audio x-1 int_ci created", "No audio x-2 int_ci created", "Private p emp_ben minutes_ready",
		}, got)
		_, err = client.Meetings.Get(t.Context(), ids[6])
		require.ErrorIs(t, err, minutes.ErrNotFound, "the default visibility of a member's meeting is private")
		usage, err = client.Usage.Get(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []int{2, 96}, []int{usage.CreditsRemaining, usage.TranscribeSecondsRemaining},
			"three went on from transcribing, one failed in the end")
		assert.Empty(t, s.Requests(minutes.OpMeetingsCreate, minutes.OpUpload))
	})
}

func TestAddMeetings_NamesPathOfMistake(t *testing.T) {
	t.Parallel()
	s := minutestest.New()
	first := s.AddMeetings("org_acme", minutestest.WorldMeeting{Title: "Weekly", ExternalID: "weekly"})
	for want, m := range map[string]minutestest.WorldMeeting{
		"meetings[0].title: 1 to 300 characters expected":          {},
		`meetings[0].creator_id: no member or integration "emp_x"`: {Title: "x", CreatorID: "emp_x"},
		"meetings[0].participant_ids[0]: no member \"emp_x\"": {Title: "x",
			ParticipantIDs: []string{"emp_x"}},
		"meetings[0].external_id: the same as that of meeting " + first[0]: {Title: "x", ExternalID: "weekly"},
		"meetings[0].count: 100001 is not from 0 to 100000":                {Title: "x", Count: 100_001},
		"meetings[0].count: -1 is not from 0 to 100000":                    {Title: "x", Count: -1},
		`meetings[0].date: "today" is not a date such as 2026-12-01`:       {Title: "x", Date: "today"},
	} {
		require.EqualError(t, mistake.Catch(func() { s.AddMeetings("org_acme", m) }), want)
	}
	assert.Len(t, s.Meetings(), 1)
}

func TestWithMinPollInterval_SetsAuditAndCacheControl(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := unjudged(t, minutestest.WithMinPollInterval(1500*time.Millisecond))
		c := callerOf(s)
		id := c.create(t, "Polled")
		assert.Equal(t, "private, max-age=2", c.send("GET", "/v1/meetings/"+id, "").header.Get("Cache-Control"))
		time.Sleep(time.Second) // a third early
		c.status(t, id)
		assert.Empty(t, s.Violations())
		time.Sleep(time.Second - 1)
		c.status(t, id)
		assert.Len(t, s.Violations(), 1)
	})
	assert.PanicsWithError(t,
		"minutestest: New: WithMinPollInterval: -1s is not over 0", func() {
			minutestest.New(minutestest.WithMinPollInterval(-time.Second))
		})
}

// The faults of the connection happen before the Server sees a request.
func TestFaults_OfTheConnection(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault minutestest.Fault
		is    func(error) bool
	}{
		"certificate": {minutestest.BadCertificate(),
			func(err error) bool {
				_, ok := errors.AsType[x509.UnknownAuthorityError](err)
				return ok
			}},
		"refused": {minutestest.ConnectionRefused(),
			func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }},
		"no host": {minutestest.NoSuchHost(), func(err error) bool {
			dns, ok := errors.AsType[*net.DNSError](err)
			return ok && dns.IsNotFound && minutestest.BaseURL == "https://"+dns.Name
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := minutestest.NewServer(t)
			i := s.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate, Title: "Weekly"}, c.fault)
			err := callerOf(s).send("POST", "/v1/meetings", `{"title":"Weekly","date":"2026-11-21"}`).err
			require.True(t, c.is(err), "%v", err)
			assert.Equal(t, 1, i.Applied())
			assert.Empty(t, s.Requests())
			callerOf(s).create(t, "Weekly")
		})
	}
}

// A connection that fails late takes its time, unless the client leaves before.
func TestConnectionFaults_MayBeDelayed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := minutestest.NewServer(t)
		refused := minutestest.ConnectionRefused().Delayed(time.Minute)
		s.Inject(minutestest.Match{}, refused, refused)
		began := time.Now()
		require.ErrorIs(t, callerOf(s).send("GET", "/v1/usage", "").err, syscall.ECONNREFUSED)
		assert.Equal(t, time.Minute, time.Since(began))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := callerOf(s).send("GET", "/v1/usage", "", func(r *http.Request) { *r = *r.WithContext(ctx) }).err
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Minute+time.Second, time.Since(began))
	})
}

// In each second, each key has its allowance, and storage has no limit.
func TestWithEdgeLimit_RejectsWhatComesTooFast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := minutestest.NewServer(t, minutestest.WithEdgeLimit(2))
		c := callerOf(s)
		ada := &caller{c.client, c.base, "key_ada"}
		var got []int
		for range 3 {
			got = append(got, c.send("GET", "/v1/usage", "").status, ada.send("GET", "/v1/usage", "").status)
		}
		assert.Equal(t, []int{200, 200, 200, 200, 429, 429}, got)
		a := c.send("GET", "/v1/usage", "")
		assert.Equal(t, []any{429, "1", "Too many requests\n"}, []any{a.status, a.header.Get("Retry-After"), a.text})
		for range 3 {
			assert.NotEqual(t, 429, c.send("PUT", "https://storage.minutes.test/storage/x", "").status)
		}
		time.Sleep(time.Second)
		assert.Equal(t, 200, c.send("GET", "/v1/usage", "").status)
		r := s.Requests(minutes.OpUsageGet)[4]
		assert.Equal(t, []any{429, "edge limit", ""}, []any{r.Status, r.Fault, r.Code})
	})
}
