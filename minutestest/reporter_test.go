package minutestest_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A mistake in the code of a test fails the test at once. The message has Go's names, and what
// there is instead.
func TestMistakes_FailTheTest(t *testing.T) {
	t.Parallel()
	inject := func(m minutestest.Match, faults ...minutestest.Fault) func(*minutestest.Server) {
		return func(s *minutestest.Server) { s.Inject(m, faults...) }
	}
	script := func(sc minutestest.Script) func(*minutestest.Server) {
		return func(s *minutestest.Server) { s.Script(sc) }
	}
	update := func(change func(*minutestest.Organisation)) func(*minutestest.Server) {
		return func(s *minutestest.Server) { s.Update("org_acme", change) }
	}
	everything := minutestest.Match{}
	uploads := minutestest.Match{Operation: minutes.OpUpload}
	gets := minutestest.Match{Operation: minutes.OpMeetingsGet}
	for name, c := range map[string]struct {
		act  func(*minutestest.Server)
		want string
	}{
		"option of a Client": {func(s *minutestest.Server) { s.Client(minutes.WithMaxRetries(-1)) }, "Client: "},
		"operation": {inject(minutestest.Match{Operation: "meetings.got"}, minutestest.Reset()),
			`Inject: Match: Operation: "meetings.got" is not one of minutes.Op`},
		"pattern": {inject(minutestest.Match{Path: "/["}, minutestest.Reset()),
			`Inject: Match: Path: "/[" is not a pattern`},
		"path of nothing": {inject(minutestest.Match{Path: "v1/*"}, minutestest.Reset()),
			`"v1/*" does not begin with a slash`},
		"nth": {inject(minutestest.Match{Nth: -1}, minutestest.Reset()),
			"Inject: Match: Nth: -1 is negative; for all that follow, set Times, not Nth, to -1"},
		"times": {inject(minutestest.Match{Times: -2}, minutestest.Reset()), "Inject: Match: Times: -2"},
		"key of an upload": {inject(minutestest.Match{Operation: minutes.OpUpload, Key: "key_ci"},
			minutestest.Reset()), "Match: Key: an upload carries none, so no minutes.OpUpload matches"},
		"meeting of a usage": {inject(minutestest.Match{Operation: minutes.OpUsageGet, Title: "x"},
			minutestest.Reset()), "Operation: minutes.OpUsageGet is about no meeting"},
		"meeting of a create": {
			inject(minutestest.Match{Operation: minutes.OpMeetingsCreate, MeetingID: "mtg_1"}, minutestest.Reset()),
			"MeetingID: minutes.OpMeetingsCreate has no meeting in its path",
		},
		"title of a list": {inject(minutestest.Match{Operation: minutes.OpMeetingsList, Title: "x"},
			minutestest.Reset()), "Title: minutes.OpMeetingsList asks for no title"},
		"no fault": {inject(everything), "Inject: no fault given"},
		"zero fault": {inject(everything, minutestest.Fault{}),
			`Inject: Kind: there is no kind ""; there are BadCertificate, Call, ConnectionRefused, Delay, Drip, ` +
				`NoSuchHost, RateLimit, Refuse, RefuseUpload, Reset, ResetUpload, Respond, ShowStatus, SlowUpload, ` +
				`Stale, Truncate`},
		"unknown code": {inject(everything, minutestest.Refuse("NO_SUCH")),
			`Inject: Refuse: Code: the API has no code "NO_SUCH"; there are API_ACCESS_DISABLED, `},
		"code of a limit": {inject(everything, minutestest.Refuse(minutes.ErrRateLimited)),
			`Refuse: Code: the API's 429 has no code, so there is no "RATE_LIMITED"; use RateLimit`},
		"Retry-After": {inject(everything, minutestest.RateLimit("2s")),
			`RateLimit: RetryAfter: "2s" is neither a number of seconds nor an HTTP date; ` +
				`to send it anyway, use WithHeader`},
		"header": {inject(everything, minutestest.BadGateway().WithHeader("Retry After", "5")),
			`Respond: Header: "Retry After": "5" is not a header`},
		"header that net/http leaves out": {inject(everything, minutestest.BadGateway().WithHeader("X(1)", "5")),
			`Respond: Header: "X(1)": "5" is not a header`},
		"header value that net/http changes": {inject(everything, minutestest.BadGateway().WithHeader("X", "a\nb")),
			`Respond: Header: "X": "a\nb" is not a header`},
		"one header twice": {
			inject(everything, minutestest.BadGateway().WithHeader("Retry-After", "5").WithHeader("retry-after", "6")),
			`Respond: Header: "retry-after" is the same header as "Retry-After"`,
		},
		"length of the body": {inject(everything, minutestest.BadGateway().WithHeader("content-length", "5")),
			"Respond: Header: Content-Length follows from the body; for a body that ends early, use Truncate"},
		"body of a 204": {inject(everything, minutestest.Respond(204, "", "x")),
			"Respond: Body: a response with status 204 has none"},
		"header of a reset": {inject(everything, minutestest.Reset().WithHeader("A", "b")),
			"Reset: Header: it has no response of its own"},
		"status": {inject(everything, minutestest.Respond(99, "", "")),
			"Respond: Status: 99 is not from 200 to 999"},
		"no delay":    {inject(everything, minutestest.Delay(0)), "Delay: Delay: a duration over 0 expected"},
		"no duration": {inject(everything, minutestest.Drip(0)), "Drip: Over: a duration over 0 expected"},
		"no function": {inject(everything, minutestest.Call(nil)), "Call: the function is nil"},
		"no rate": {inject(uploads, minutestest.SlowUpload(0)),
			"SlowUpload: BytesPerSecond: 0 is not at least 1"},
		"too late to dial": {inject(everything, minutestest.BadCertificate().AfterEffect()),
			"BadCertificate: AfterEffect: it never comes after the effect"},
		"fault of storage": {inject(gets, minutestest.RefuseUpload(503, "SlowDown")),
			"RefuseUpload: it is a fault of storage; match minutes.OpUpload"},
		"fault of the API": {inject(uploads, minutestest.Refuse(minutes.ErrInternal)),
			"Refuse: it is not an error of storage; use RefuseUpload"},
		"status of a usage": {
			inject(minutestest.Match{Operation: minutes.OpUsageGet}, minutestest.ShowStatus("x")),
			"ShowStatus: it changes the status of meetings in a response, but minutes.OpUsageGet shows none; " +
				"match one of minutes.OpMeetingsList, ",
		},
		"status of minutes": {
			inject(minutestest.Match{Operation: minutes.OpMeetingsMinutes}, minutestest.ShowStatus("x")),
			"but minutes.OpMeetingsMinutes shows none",
		},
		"mixed faults": {inject(everything, minutestest.NoSuchHost(), minutestest.Reset()),
			"do not go together with other kinds"},
		"window": {
			func(s *minutestest.Server) {
				s.Inject(everything, minutestest.Reset()).Optional().During(time.Minute, time.Minute)
			},
			"During: To: no time is from 1m0s to 1m0s, counted from now",
		},
		"requests": {func(s *minutestest.Server) { s.Requests("meetings.got") },
			`Requests: Operation: "meetings.got" is not one of`},
		"more requests": {func(s *minutestest.Server) { s.RequestsAfter(0, "meetings.got") },
			`RequestsAfter: Operation: "meetings.got"`},

		"hold": {script(minutestest.Script{Hold: minutes.StatusMinutesReady}),
			`Script: Hold: "minutes_ready"`},
		"several targets": {script(minutestest.Script{Title: "a", MeetingID: "b"}),
			"Script: MeetingID: give one of MeetingID, ExternalID and Title, not several"},
		"whose key": {update(func(o *minutestest.Organisation) { o.Key("key_ada").IntegrationID = "int_ci" }),
			"Update: Organisations[0].Keys[1]: give either a MemberID or an IntegrationID"},
		"two of one id": {update(func(o *minutestest.Organisation) { o.Projects[1].ID = o.Projects[0].ID }),
			"Update: Organisations[0].Projects[1].ID: the same as Organisations[0].Projects[0].ID"},
		"meetings of an old organisation": {
			update(func(o *minutestest.Organisation) { o.Meetings = []minutestest.WorldMeeting{{Title: "x"}} }),
			"Update: Organisations[0].Meetings: only a new organisation begins with meetings",
		},
		"two mistakes": {
			update(func(o *minutestest.Organisation) {
				o.MaxTerms = new(-1)
				o.Keys[2].IPAllowlist = []string{"here"}
			}),
			"Update: Organisations[0].MaxTerms: -1 is negative\n" +
				"Organisations[0].Vocabulary: 3 terms, -1 at most\n" +
				`Organisations[0].Keys[2].IPAllowlist[0]: "here" is neither an address nor a CIDR block`,
		},
		"element of a list": {
			update(func(o *minutestest.Organisation) { o.Vocabulary[1].Variants[0].Source = "x" }),
			`Organisations[0].Vocabulary[1].Variants[0].Source: "x" is none of ["auto" "manual"]`,
		},
		"meeting": {func(s *minutestest.Server) { s.Advance("mtg_x", "") },
			`Advance: there is no meeting "mtg_x"`},
		"status to come to": {func(s *minutestest.Server) { s.Advance("mtg_x", "created") },
			`Advance: Until: a meeting cannot come to "created", only to one of ["audio_uploaded" `},
		"deleted meeting": {func(s *minutestest.Server) { s.Delete("mtg_x") }, `Delete: there is no meeting "mtg_x"`},
		"released meeting": {func(s *minutestest.Server) { s.Release("mtg_x") },
			`Release: there is no meeting "mtg_x"`},
		"organisation": {
			func(s *minutestest.Server) { s.Update("org_x", func(*minutestest.Organisation) {}) },
			`Update: there is no organisation "org_x", only ["org_acme"]`,
		},
		"organisation to read": {
			func(s *minutestest.Server) { s.Organisation("org_x") },
			`Organisation: there is no organisation "org_x", only ["org_acme"]`,
		},
		"no organisation": {
			func(s *minutestest.Server) {
				s.UpdateWorld(func(w *minutestest.World) error {
					w.Organisations = nil
					return nil
				})
			},
			"UpdateWorld: Organisations: at least one expected",
		},
		"key": {
			update(func(o *minutestest.Organisation) { o.Key("key_x").Revoked = true }),
			`Update: there is no key "key_x", only ["key_ci" "key_ada" "key_ben"]`,
		},
		"member": {update(func(o *minutestest.Organisation) { o.Member("emp_x").Admin = true }),
			`there is no member "emp_x", only ["emp_ada" `},
		"integration": {update(func(o *minutestest.Organisation) { o.Integration("int_x").Inactive = true }),
			`there is no integration "int_x", only ["int_ci"]`},
		"project": {update(func(o *minutestest.Organisation) { o.Project("prj_x").Archived = true }),
			`there is no project "prj_x", only ["prj_apollo" `},
		"template": {update(func(o *minutestest.Organisation) { o.Template("tpl_x").Name = "" }),
			`there is no template "tpl_x", only ["tpl_standard" `},
		"credits": {update(func(o *minutestest.Organisation) { o.Credits = new(-7) }),
			"Update: Organisations[0].Credits: -7 is negative"},
		"page sizes": {func(s *minutestest.Server) { s.SetPageSizes(0) }, "UpdateWorld: PageSizes: "},
		"meetings": {
			func(s *minutestest.Server) { s.AddMeetings("org_acme", minutestest.WorldMeeting{}) },
			"AddMeetings: Meetings[0].Title: ",
		},
		"organisation of meetings": {
			func(s *minutestest.Server) { s.AddMeetings("org_x", minutestest.WorldMeeting{Title: "x"}) },
			`AddMeetings: there is no organisation "org_x", only ["org_acme"]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failures := nested(func(tb *fakeTB) { c.act(minutestest.NewServer(tb)) })
			require.Len(t, failures, 1)
			assert.True(t, strings.HasPrefix(failures[0], "fatal: minutestest: "), failures[0])
			assert.Contains(t, failures[0], c.want)
			s := minutestest.New()
			defer s.Close()
			assert.Panics(t, func() { c.act(s) }, "without a test")
		})
	}
}

// A Server cannot be made by mistake.
func TestMistakes_OfOptions(t *testing.T) {
	t.Parallel()
	broken := minutestest.World{Organisations: []minutestest.Organisation{{}}}
	for want, opt := range map[string]minutestest.Option{
		"World: Organisations[0].ID: missing":                       minutestest.WithWorld(broken),
		`WithoutAudit: violation kind "polls" is not one of [poll `: minutestest.WithoutAudit("polls"),
		"WithMinPollInterval: 0s is not over 0":                     minutestest.WithMinPollInterval(0),
		"WithSpeed: -1 is not over 0":                               minutestest.WithSpeed(-1),
		"WithSpeed: NaN is not over 0":                              minutestest.WithSpeed(math.NaN()),
		"WithEdgeLimit: -1 is negative":                             minutestest.WithEdgeLimit(-1),
		"an Option is empty":                                        {},
	} {
		failures := nested(func(tb *fakeTB) { minutestest.NewServer(tb, opt) })
		require.Len(t, failures, 1)
		assert.Contains(t, failures[0], "fatal: minutestest: NewServer: "+want)
		assert.Panics(t, func() { minutestest.New(opt) })
	}
	assert.PanicsWithError(t, "minutestest: NewServer: there is no test; New makes a Server without one", func() {
		minutestest.NewServer(nil)
	})
	failures := nested(func(tb *fakeTB) {
		world := minutestest.World{Organisations: []minutestest.Organisation{{ID: "org_acme"}}}
		minutestest.NewServer(tb, minutestest.WithWorld(world)).Client()
	})
	require.Len(t, failures, 1)
	assert.Contains(t, failures[0], "no integration key")
}
