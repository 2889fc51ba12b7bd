package minutestest_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// kitchen is what the lines of the cookbook work with.
type kitchen struct {
	t    *testing.T
	ctx  context.Context
	kill context.CancelFunc
	srv  *minutestest.Server
}

// process does a whole job: the meeting "Weekly" with the external id "weekly".
func (k kitchen) process() error {
	_, err := k.srv.Client().Meetings.Process(k.ctx, weekly(), minutestest.SlowRecording(100_000, 50_000), nil)
	return err
}

// processed fails the test unless the job succeeds.
func (k kitchen) processed() {
	k.t.Helper()
	require.NoError(k.t, k.process())
	m := k.srv.Meetings()
	require.Len(k.t, m, 1)
	assert.EqualValues(k.t, 100_000, m[0].Audio.Size)
}

// rejected fails the test unless the job ends with this error.
func (k kitchen) rejected(want error) {
	k.t.Helper()
	require.ErrorIs(k.t, k.process(), want)
}

// ended fails the test unless the meeting ends so.
func (k kitchen) ended(status minutes.Status) {
	k.t.Helper()
	failed, ok := errors.AsType[*minutes.MeetingFailedError](k.process())
	require.True(k.t, ok)
	assert.Equal(k.t, status, failed.Status)
}

// ok is for lines that return an error.
func (k kitchen) ok(err error) {
	k.t.Helper()
	require.NoError(k.t, err)
}

// cook runs each recipe in a bubble with a new Server.
func cook(t *testing.T, recipes map[string]func(k kitchen)) {
	t.Helper()
	for situation, recipe := range recipes {
		t.Run(situation, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, kill := context.WithCancel(t.Context())
				defer kill()
				recipe(kitchen{t, ctx, kill, minutestest.NewServer(t)})
				kill()
				synctest.Wait()
			})
		})
	}
}

func TestCookbook_Outcomes(t *testing.T) {
	t.Parallel()
	cook(t, map[string]func(k kitchen){
		"the service rejects the recording": func(k kitchen) {
			k.srv.Script(minutestest.Script{Title: "Weekly", Outcome: minutes.StatusAudioRejected})
			k.ended(minutes.StatusAudioRejected)
		},
		"no quota for the transcription": func(k kitchen) {
			k.srv.Script(minutestest.Script{Title: "Weekly", Outcome: minutes.StatusTranscribeBlocked})
			k.ended(minutes.StatusTranscribeBlocked)
		},
		"the transcription fails": func(k kitchen) {
			k.srv.Script(minutestest.Script{Title: "Weekly", Outcome: minutes.StatusTranscriptionFailed})
			k.ended(minutes.StatusTranscriptionFailed)
		},
		"the minutes fail": func(k kitchen) {
			k.srv.Script(minutestest.Script{ExternalID: "weekly", Outcome: minutes.StatusMinutesFailed})
			k.ended(minutes.StatusMinutesFailed)
		},
		"seconds run out midway": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.Call(func(minutestest.Request) {
				k.srv.Update("org_acme", func(o *minutestest.Organisation) { o.TranscribeSeconds = new(0) })
			}))
			k.ended(minutes.StatusTranscribeBlocked)
		},
		"credits run out midway": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.Call(func(minutestest.Request) {
				k.srv.Update("org_acme", func(o *minutestest.Organisation) { o.Credits = new(0) })
			}))
			k.ended(minutes.StatusMinutesFailed)
		},
		"an unknown status": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsGet}, minutestest.ShowStatus("archiving"))
			k.processed()
		},
		"the audio shows up late": func(k kitchen) {
			k.srv.Inject(minutestest.Match{}, minutestest.ShowStatus(minutes.StatusCreated)).During(0, 90*time.Second)
			k.processed()
		},
		"a long transcription": func(k kitchen) {
			k.srv.Script(minutestest.Script{Title: "Weekly", Stages: &minutestest.Stages{Transcribe: time.Hour}})
			began := time.Now()
			k.processed()
			assert.Greater(k.t, time.Since(began), time.Hour)
		},
		"a recording of two hours": func(k kitchen) {
			k.srv.Script(minutestest.Script{Title: "Weekly", Duration: 2 * time.Hour})
			k.processed()
			assert.Equal(k.t, 7200, *k.srv.Meetings()[0].DurationSeconds)
		},
		"the clocks of the service's machines differ": func(k kitchen) {
			k.srv.Script(minutestest.Script{Title: "Weekly", ClockSkew: 10 * time.Minute})
			k.processed()
			m := k.srv.Meetings()[0]
			assert.True(k.t, m.UpdatedAt.Before(m.CreatedAt))
		},
		"the list shows the meeting late": func(k kitchen) {
			k.srv.Script(minutestest.Script{Title: "Weekly", ListedAfter: time.Minute})
			client := k.srv.Client()
			m, _, err := client.Meetings.Create(k.ctx, weekly())
			k.ok(err)
			_, err = client.Meetings.FindByExternalID(k.ctx, "weekly")
			require.ErrorIs(k.t, err, minutes.ErrNotFound)
			time.Sleep(time.Minute)
			found, err := client.Meetings.FindByExternalID(k.ctx, "weekly")
			k.ok(err)
			assert.Equal(k.t, m.ID, found.ID)
		},
	})
}

func TestCookbook_Reads(t *testing.T) {
	t.Parallel()
	cook(t, map[string]func(k kitchen){
		"the list stands still for an hour": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsList},
				minutestest.Stale(0)).During(0, time.Hour)
			time.Sleep(time.Second) // otherwise the meeting is created at the instant that the list shows
			k.processed()
			assert.Zero(k.t, listed(k.t, k.srv))
			time.Sleep(time.Hour)
			assert.Equal(k.t, 1, listed(k.t, k.srv))
		},
		"the list lags by ten minutes": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsList, Times: minutestest.Always},
				minutestest.Stale(10*time.Minute))
			k.processed()
			time.Sleep(9 * time.Minute)
			assert.Zero(k.t, listed(k.t, k.srv))
			time.Sleep(time.Minute)
			assert.Equal(k.t, 1, listed(k.t, k.srv))
		},
		"a read lags behind a write": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Title: "Weekly", Times: minutestest.Always},
				minutestest.Stale(5*time.Second))
			k.processed()
		},
		"a meeting that no read finds in its first hour": func(k kitchen) {
			k.srv.Script(minutestest.Script{Title: "Weekly", VisibleAfter: time.Hour})
			id := k.srv.AddMeetings("org_acme", minutestest.WorldMeeting{Title: "Weekly"})[0]
			client := k.srv.Client()
			_, err := client.Meetings.Get(k.ctx, id)
			require.ErrorIs(k.t, err, minutes.ErrNotFound)
			_, err = client.Meetings.Minutes(k.ctx, id, minutes.FormatHTML)
			require.ErrorIs(k.t, err, minutes.ErrNotFound)
			assert.Zero(k.t, listed(k.t, k.srv))
			time.Sleep(time.Hour)
			_, err = client.Meetings.Get(k.ctx, id)
			k.ok(err)
			assert.Equal(k.t, 1, listed(k.t, k.srv))
		},
		"a meeting that is hidden for an hour, though lists contain it": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Title: "Weekly"},
				minutestest.Refuse(minutes.ErrNotFound)).During(0, time.Hour)
			id := k.srv.AddMeetings("org_acme", minutestest.WorldMeeting{Title: "Weekly"})[0]
			_, err := k.srv.Client().Meetings.Get(k.ctx, id)
			require.ErrorIs(k.t, err, minutes.ErrNotFound)
			assert.Equal(k.t, 1, listed(k.t, k.srv))
		},
	})
}

func TestCookbook_Rejections(t *testing.T) {
	t.Parallel()
	cook(t, map[string]func(k kitchen){
		"`IP_NOT_ALLOWED`": func(k kitchen) {
			k.srv.Update("org_acme",
				func(o *minutestest.Organisation) { o.Key("key_ci").IPAllowlist = []string{"10.0.0.0/8"} })
			k.rejected(minutes.ErrIPNotAllowed)
		},
		"`API_ACCESS_DISABLED`": func(k kitchen) {
			k.srv.Update("org_acme", func(o *minutestest.Organisation) { o.APIDisabled = true })
			k.rejected(minutes.ErrAPIAccessDisabled)
		},
		"`PERSONAL_API_KEYS_DISABLED`": func(k kitchen) {
			k.srv.Update("org_acme", func(o *minutestest.Organisation) { o.PersonalKeysDisabled = true })
			_, err := k.srv.ClientWithKey("key_ben").Usage.Get(k.ctx)
			require.ErrorIs(k.t, err, minutes.ErrPersonalAPIKeysDisabled)
		},
		"`INSUFFICIENT_SCOPE`": func(k kitchen) {
			k.srv.Update("org_acme",
				func(o *minutestest.Organisation) {
					o.Key("key_ci").Scopes = []minutes.Scope{minutes.ScopeMeetingsRead}
				})
			k.rejected(minutes.ErrInsufficientScope)
		},
		"`ORGANISATION_SUSPENDED`": func(k kitchen) {
			k.srv.Update("org_acme", func(o *minutestest.Organisation) { o.Suspended = true })
			k.rejected(minutes.ErrOrganisationSuspended)
		},
		"`ORGANISATION_EXPIRED`": func(k kitchen) {
			k.srv.Update("org_acme", func(o *minutestest.Organisation) { o.Expired = true })
			k.rejected(minutes.ErrOrganisationExpired)
		},
		"`FORBIDDEN`": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsUploadURL},
				minutestest.Refuse(minutes.ErrForbidden))
			k.rejected(minutes.ErrForbidden)
		},
		"the key is revoked midway": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsGet},
				minutestest.Call(func(minutestest.Request) {
					k.srv.Update("org_acme", func(o *minutestest.Organisation) { o.Key("key_ci").Revoked = true })
				}))
			k.rejected(minutes.ErrUnauthenticated)
		},
		"participants are locked": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsSetParticipants},
				minutestest.Refuse(minutes.ErrParticipantsLocked))
			_, err := k.srv.Client().Meetings.SetParticipants(k.ctx, "mtg_x", []string{})
			require.ErrorIs(k.t, err, minutes.ErrParticipantsLocked)
		},
		"any other code": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Title: "Weekly"}, minutestest.Refuse(minutes.ErrInvalidDate))
			k.rejected(minutes.ErrInvalidDate)
		},
		"429, bare": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate}, minutestest.RateLimit("2"))
			k.processed()
		},
		"429 with an envelope": func(k kitchen) {
			k.srv.Inject(minutestest.Match{},
				minutestest.Respond(429, "application/json",
					`{"error":{"code":"SLOW_DOWN","message":"m","request_id":"r"}}`).WithHeader("Retry-After", "2"))
			k.processed()
		},
		"429 with a date": func(k kitchen) {
			k.srv.Inject(minutestest.Match{},
				minutestest.RateLimit(time.Now().Add(20*time.Second).UTC().Format(http.TimeFormat)))
			k.processed()
		},
		"429 with a broken Retry-After": func(k kitchen) {
			k.srv.Inject(minutestest.Match{},
				minutestest.Respond(429, "text/plain", "").WithHeader("Retry-After", "soon"))
			k.processed()
		},
		"429 for an hour": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsGet}, minutestest.RateLimit("")).During(0,
				time.Hour)
			began := time.Now()
			k.processed()
			assert.Greater(k.t, time.Since(began), time.Hour)
		},
	})
}

func TestCookbook_Network(t *testing.T) {
	t.Parallel()
	cook(t, map[string]func(k kitchen){
		"the response to a create is lost": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate}, minutestest.LoseResponse())
			k.processed()
		},
		"the response with the upload URL is lost": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsUploadURL}, minutestest.LoseResponse())
			k.processed()
		},
		"the response to an upload is lost": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.LoseResponse())
			k.processed()
		},
		"the response to any other write is lost": func(k kitchen) {
			op := minutes.OpMeetingsSetParticipants
			k.srv.Inject(minutestest.Match{Operation: op}, minutestest.LoseResponse())
			client := k.srv.Client()
			m, _, err := client.Meetings.Create(k.ctx, weekly())
			k.ok(err)
			_, err = client.Meetings.SetParticipants(k.ctx, m.ID, []string{"emp_ada"})
			k.ok(err)
		},
		"an upload breaks off": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.ResetUpload(10_000))
			k.processed()
		},
		"a proxy's page": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsUploadURL}, minutestest.BadGateway())
			k.processed()
		},
		"an untrusted certificate": func(k kitchen) {
			k.srv.Inject(minutestest.Match{}, minutestest.BadCertificate())
			_, ok := errors.AsType[x509.UnknownAuthorityError](k.process())
			assert.True(k.t, ok)
		},
		"an outage of five minutes": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsGet}, minutestest.Reset()).During(0,
				5*time.Minute)
			k.processed()
		},
		"storage rejects the upload": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpUpload, Times: minutestest.Always},
				minutestest.RefuseUpload(403, "AccessDenied"))
			_, ok := errors.AsType[*minutes.StorageError](k.process())
			assert.True(k.t, ok)
		},
		"storage is busy": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.RefuseUpload(503, "SlowDown"))
			k.processed()
		},
		"storage keeps a part of the recording": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.ResetUpload(10_000).AfterEffect())
			_ = k.process()
			assert.EqualValues(k.t, 10_000, k.srv.Meetings()[0].Audio.Size)
		},
		"the service notices the recording late": func(k kitchen) {
			k.srv.Script(minutestest.Script{Title: "Weekly", NoticedAfter: 90 * time.Second})
			k.processed()
		},
		"storage rejects a second recording, because the response to the first was lost": func(k kitchen) {
			k.srv.Script(minutestest.Script{NoticedAfter: time.Minute})
			k.srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.LoseResponse())
			k.processed()
		},
		"a gateway rejects Expect": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Header: map[string]string{"Expect": "100-continue"}},
				minutestest.Respond(417, "text/html", "<h1>Expectation Failed</h1>"))
			k.processed()
		},
		"an idle connection is closed by the other side": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate}, minutestest.Reset())
			k.processed()
		},
		"the upload URL has expired": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.ExpireURL())
			k.processed()
		},
		"storage is slow": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.SlowUpload(10_000))
			k.processed()
		},
		"storage stalls": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpUpload}, minutestest.Delay(10*time.Minute))
			k.processed()
		},
		"a slow disk": func(k kitchen) {
			recording := minutestest.SlowRecording(1_000_000, 10_000)
			_, err := k.srv.Client().Meetings.Process(k.ctx, weekly(), recording, nil)
			k.ok(err)
		},
	})
}

func TestCookbook_OthersAndCrashes(t *testing.T) {
	t.Parallel()
	cook(t, map[string]func(k kitchen){
		"a crash before a request": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate},
				minutestest.Call(func(minutestest.Request) { k.kill() }))
			require.ErrorIs(k.t, k.process(), context.Canceled)
			synctest.Wait()
			assert.Empty(k.t, k.srv.Meetings(), "the request was not handled")
		},
		"a crash after a request": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpUpload},
				minutestest.Call(func(minutestest.Request) { k.kill() }).AfterEffect())
			require.ErrorIs(k.t, k.process(), context.Canceled)
			synctest.Wait()
			k.ctx = k.t.Context()
			k.processed()
		},
		"another program deletes the meeting": func(k kitchen) {
			k.srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsGet},
				minutestest.Call(func(r minutestest.Request) {
					k.srv.Delete(r.MeetingID)
				}))
			k.rejected(minutes.ErrNotFound)
		},
	})
}

func TestCookbook_MeetingsOfOthers(t *testing.T) {
	t.Parallel()
	cook(t, map[string]func(k kitchen){
		"200 meetings of a colleague, in progress": func(k kitchen) {
			ids := k.srv.AddMeetings("org_acme",
				minutestest.WorldMeeting{Title: "Standup", CreatorID: "emp_ada",
					Visibility: minutes.VisibilityOrganisation, Status: minutes.StatusAudioUploaded, Count: 200})
			n := 0
			for r, err := range k.srv.Client().Meetings.WaitAll(k.ctx, slices.Values(ids), nil) {
				k.ok(err)
				k.ok(r.Err)
				n++
			}
			assert.Equal(k.t, 200, n)
		},
		"a colleague's meeting without audio": func(k kitchen) {
			ids := k.srv.AddMeetings("org_acme",
				minutestest.WorldMeeting{Title: "Planned", CreatorID: "emp_ada",
					Visibility: minutes.VisibilityOrganisation, Status: minutes.StatusCreated})
			time.Sleep(time.Hour)
			m, err := k.srv.Client().Meetings.Get(k.ctx, ids[0])
			k.ok(err)
			assert.Equal(k.t, minutes.StatusCreated, m.Status)
		},
		"meetings that are created while your program runs": func(k kitchen) {
			time.AfterFunc(time.Hour, func() {
				k.srv.AddMeetings("org_acme", minutestest.WorldMeeting{Title: "Late", Count: 3})
			})
			assert.Zero(k.t, listed(k.t, k.srv))
			time.Sleep(time.Hour + time.Second)
			assert.Equal(k.t, 3, listed(k.t, k.srv))
		},
	})
}

// These begin with a World: world := minutestest.DefaultWorld() and minutestest.NewServer(t,
// minutestest.WithWorld(world)).
func TestCookbook_Worlds(t *testing.T) {
	t.Parallel()
	for situation, c := range map[string]struct {
		make func(world *minutestest.World)
		use  func(t *testing.T, srv *minutestest.Server)
	}{
		"500 finished meetings": {
			func(world *minutestest.World) {
				world.Organisations[0].Meetings = []minutestest.WorldMeeting{{Title: "Old", Count: 500}}
			},
			func(t *testing.T, srv *minutestest.Server) { assert.Equal(t, 500, listed(t, srv)) },
		},
		"short and empty pages": {
			func(world *minutestest.World) {
				world.Organisations[0].Meetings = []minutestest.WorldMeeting{{Title: "Old", Count: 20}}
			},
			func(t *testing.T, srv *minutestest.Server) {
				srv.SetPageSizes(0, 1, 2)
				assert.Equal(t, 20, listed(t, srv))
			},
		},
		"a private meeting of another member": {
			func(world *minutestest.World) {
				world.Organisations[0].Meetings = []minutestest.WorldMeeting{{Title: "Secret", CreatorID: "emp_ada",
					Visibility: minutes.VisibilityPrivate}}
			},
			func(t *testing.T, srv *minutestest.Server) { assert.Zero(t, listed(t, srv)) },
		},
		"a shared meeting": {
			func(world *minutestest.World) {
				world.Organisations[0].Meetings = []minutestest.WorldMeeting{{Title: "Ours", CreatorID: "emp_ada",
					Visibility: minutes.VisibilityShared, SharedWith: []string{"emp_ben"}}}
			},
			func(t *testing.T, srv *minutestest.Server) {
				_, err := srv.ClientWithKey("key_ben").Meetings.Get(t.Context(), srv.Meetings()[0].ID)
				require.NoError(t, err)
			},
		},
		"an external id that is taken": {
			func(world *minutestest.World) {
				world.Organisations[0].Meetings = []minutestest.WorldMeeting{{Title: "Theirs", ExternalID: "weekly",
					CreatorID: "emp_ada", Visibility: minutes.VisibilityPrivate}}
			},
			func(t *testing.T, srv *minutestest.Server) {
				_, _, err := srv.Client().Meetings.Create(t.Context(), weekly())
				require.ErrorIs(t, err, minutes.ErrExternalIDTaken)
			},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			t.Parallel()
			world := minutestest.DefaultWorld()
			c.make(&world)
			c.use(t, minutestest.NewServer(t, minutestest.WithWorld(world)))
		})
	}
}

func listed(t *testing.T, srv *minutestest.Server) (n int) {
	for _, err := range srv.Client().Meetings.All(t.Context(), nil) {
		require.NoError(t, err)
		n++
	}
	return n
}

// The documentation's cookbook has each of these situations, with a line of this file.
func TestCookbook_IsTheDocumentation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/testing.md")
	require.NoError(t, err)
	source, err := os.ReadFile("cookbook_test.go")
	require.NoError(t, err)
	code := regexp.MustCompile(`\s+`).ReplaceAllString(strings.ReplaceAll(string(source), "k.", ""), "")
	rows := regexp.MustCompile("(?m)^\\| (.*?) \\| `+ ?(.*?) ?`+ \\|$").FindAllStringSubmatch(string(page), -1)
	documented := map[string]bool{}
	for _, row := range rows {
		documented[row[1]] = true
		line := strings.NewReplacer("k.", "", " ", "", "…", "", ";", "").Replace(row[2])
		assert.Contains(t, code, line, row[1])
	}
	tested := regexp.MustCompile(`(?m)^\t\t"(.*)": (?:func\(k kitchen\)|\{$)`)
	for _, m := range tested.FindAllStringSubmatch(string(source), -1) {
		assert.True(t, documented[m[1]], "%s is not in docs/testing.md", m[1])
	}
	assert.Greater(t, len(documented), 40)
}
