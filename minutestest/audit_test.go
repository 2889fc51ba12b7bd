package minutestest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/route"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func kinds(violations []minutestest.Violation) []minutestest.ViolationKind {
	var list []minutestest.ViolationKind
	for _, v := range violations {
		list = append(list, v.Kind)
	}
	return list
}

// A client that does all it must not do fails its test, each fault by name.
func TestViolation_FailsTheTest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failures := nested(func(tb *fakeTB) {
			s := minutestest.NewServer(tb)
			c := callerOf(s)
			s.Script(minutestest.Script{Hold: minutes.StatusTranscribing})
			id := c.create(t, "Badly treated")
			url := c.uploadURL(t, id)

			// It sends its key to storage.
			c.send("PUT", url, "audio", withHeader("Content-Type", audioType),
				withHeader("Authorization", "Bearer "+c.key))
			// It repeats a POST after a lost response.
			s.Inject(minutestest.Match{Operation: "projects.create"}, minutestest.LoseResponse())
			for range 2 {
				c.send("POST", "/v1/projects", `{"name":"Twice"}`)
			}
			// It uploads without a poll.
			for range 3 {
				c.send("POST", "/v1/meetings/"+id+"/upload-url", `{"content_type":"audio/ogg"}`)
			}
			// It sends a form.
			c.send("POST", "/v1/projects", "name=Form", withHeader("Content-Type", "application/x-www-form-urlencoded"))
			// It polls every second.
			time.Sleep(time.Minute)
			for range 3 {
				c.status(t, id)
				time.Sleep(time.Second)
			}
			// It leaves a response body open.
			req, _ := http.NewRequest("GET", minutestest.BaseURL+"/v1/usage", nil)
			req.Header.Set("Authorization", "Bearer "+c.key)
			resp, err := c.client.Do(req)
			require.NoError(t, err)
			_ = resp
		})
		for i, want := range []string{
			"violation (credential): an Authorization header was sent to storage",
			"violation (repeat): POST /v1/projects was sent again with the same body, though the first may have " +
				"taken effect, by int_ci (request 5)",
			"violation (upload_url): asked for an upload URL again for meeting mtg_",
			`violation (content_type): the body of POST /v1/projects was sent with Content-Type ` +
				`"application/x-www-form-urlencoded" and Content-Encoding "", by int_ci (request 9): send JSON`,
			`("Badly treated") was polled again after 1s instead of 30s, and was transcribing both times, by ` +
				`int_ci (request 11): wait that long between two polls of a meeting (2 times)`,
			"violation (open_body): the response to GET /v1/usage was neither read to its end nor closed",
		} {
			if assert.Greater(t, len(failures), i) {
				assert.Contains(t, failures[i], want)
			}
		}
		assert.Len(t, failures, 6)
		assert.NotContains(t, strings.Join(failures, "\n"), "key_ci", "no violation contains a secret")
	})
}

// Two workers on a meeting may ask for an upload URL that they no longer need. A program that does
// not believe the service asks again and again.
func TestAudit_BlamesTheThirdUploadURL(t *testing.T) {
	t.Parallel()
	for _, state := range []minutes.Status{minutes.StatusTranscribing, minutes.StatusMinutesReady,
		minutes.StatusMinutesFailed} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := unjudged(t, minutestest.WithWorld(slow()))
				c := callerOf(s)
				if state.Failed() {
					s.Script(minutestest.Script{Outcome: state})
				}
				id := c.upload(t, "Ready", "audio")
				s.Advance(id, state)
				other := &caller{s.NewHTTPClient(), c.base, c.key}
				for _, asked := range []struct {
					by   *caller
					want int
				}{{c, 0}, {other, 0}, {&caller{c.client, c.base, "key_ada"}, 0}, {c, 0}, {other, 0}, {c, 1},
					{other, 2}} {
					asked.by.send("POST", "/v1/meetings/"+id+"/upload-url", `{"content_type":"audio/ogg"}`)
					assert.Len(t, s.Violations(), asked.want)
				}
			})
		})
	}
}

// The service may show the audio late. A program that is shown none may ask again.
func TestAudit_AllowsUploadURLWhileTheAudioIsNotShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := minutestest.NewServer(t)
		s.Inject(minutestest.Match{Operation: minutes.OpMeetingsGet},
			minutestest.ShowStatus(minutes.StatusCreated)).During(0, time.Hour)
		c := callerOf(s)
		id := c.upload(t, "Late", "audio")
		for range 5 {
			assert.Equal(t, minutes.StatusCreated, c.status(t, id))
			assert.Equal(t, "BAD_REQUEST",
				c.send("POST", "/v1/meetings/"+id+"/upload-url", `{"content_type":"audio/ogg"}`).code())
		}
	})
}

func TestAudit_BlamesBodiesNotSentAsJSON(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		contentType, encoding string
		want                  int
	}{
		"JSON":           {"application/json", "", 0},
		"charset":        {"application/json; charset=utf-8", "", 0},
		"identity":       {"application/json", "identity", 0},
		"form":           {"application/x-www-form-urlencoded", "", 1},
		"text":           {"text/plain", "", 1},
		"no type":        {"", "", 1},
		"malformed type": {"json;", "", 1},
		"compressed":     {"application/json", "gzip", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := unjudged(t)
			callerOf(s).send("POST", "/v1/projects", `{"name":"x"}`, withHeader("Content-Type", c.contentType),
				withHeader("Content-Encoding", c.encoding))
			callerOf(s).send("GET", "/v1/projects", "", withHeader("Content-Type", "text/plain"))
			require.Len(t, s.Violations(), c.want)
			for _, v := range s.Violations() {
				assert.Equal(t, minutestest.ViolationContentType, v.Kind)
			}
		})
	}
}

func TestAudit_RecognizesPolls(t *testing.T) {
	t.Parallel()
	hold := minutestest.Script{Hold: minutes.StatusTranscribing}
	for name, c := range map[string]struct {
		act  func(t *testing.T, s *minutestest.Server, c *caller, id string)
		want int
	}{
		"at the interval": {func(t *testing.T, s *minutestest.Server, c *caller, id string) {
			for range 5 {
				c.status(t, id)
				time.Sleep(minutestest.MinPollInterval)
			}
		}, 0},
		"a second early": {func(t *testing.T, s *minutestest.Server, c *caller, id string) {
			for range 5 {
				c.status(t, id)
				time.Sleep(minutestest.MinPollInterval - time.Second)
			}
		}, 0},
		"more than a second early": {func(t *testing.T, s *minutestest.Server, c *caller, id string) {
			c.status(t, id)
			time.Sleep(minutestest.MinPollInterval - time.Second - 1)
			c.status(t, id)
		}, 1},
		"a stub without a status": {func(t *testing.T, s *minutestest.Server, c *caller, id string) {
			stub := minutestest.Respond(200, "application/json", "{}")
			s.Inject(minutestest.Match{Operation: minutes.OpMeetingsGet}, stub, stub)
			c.status(t, id)
			c.status(t, id)
		}, 0},
		"a stub with a status": {func(t *testing.T, s *minutestest.Server, c *caller, id string) {
			stub := minutestest.Respond(200, "application/json", `{"status":"transcribing"}`)
			s.Inject(minutestest.Match{Operation: minutes.OpMeetingsGet}, stub, stub)
			c.status(t, id)
			c.status(t, id)
			assert.Contains(t, s.Violations()[0].Text, "and was transcribing both times")
		}, 1},
		"minutes that are not ready": {func(t *testing.T, s *minutestest.Server, c *caller, id string) {
			for range 2 {
				c.send("GET", "/v1/meetings/"+id+"/minutes?format=html", "")
				time.Sleep(minutestest.MinPollInterval)
			}
			c.send("GET", "/v1/meetings/"+id+"/minutes", "")
			c.send("GET", "/v1/meetings/"+id+"/minutes", "")
			want := `minutes of meeting ` + id + ` ("Polled") was sent again after 0s instead of 30s, and ` +
				`got MINUTES_NOT_READY both times`
			assert.Contains(t, s.Violations()[0].Text, want)
		}, 1},
		"a transcript that is not ready": {func(t *testing.T, s *minutestest.Server, c *caller, id string) {
			c.send("GET", "/v1/meetings/"+id+"/transcript", "")
			c.status(t, id)
			time.Sleep(time.Second)
			c.send("GET", "/v1/meetings/"+id+"/transcript", "")
		}, 1},
		"a meeting that failed": {func(t *testing.T, s *minutestest.Server, c *caller, id string) {
			s.Script(minutestest.Script{Outcome: minutes.StatusTranscriptionFailed})
			s.Advance(id, minutes.StatusTranscriptionFailed)
			for range 2 {
				assert.Equal(t, "MINUTES_NOT_READY", c.send("GET", "/v1/meetings/"+id+"/minutes", "").code())
				assert.Equal(t, "TRANSCRIPT_NOT_READY", c.send("GET", "/v1/meetings/"+id+"/transcript", "").code())
			}
		}, 0},
		"minutes that become ready": {func(t *testing.T, s *minutestest.Server, c *caller, id string) {
			c.send("GET", "/v1/meetings/"+id+"/minutes?format=html", "")
			s.Advance(id, minutes.StatusMinutesReady)
			c.send("GET", "/v1/meetings/"+id+"/minutes?format=html", "")
			c.send("GET", "/v1/meetings/"+id+"/minutes?format=html", "")
		}, 0},
		"two keys": {func(t *testing.T, s *minutestest.Server, c *caller, id string) {
			c.status(t, id)
			c.key = "key_ada"
			c.status(t, id)
		}, 0},
		"two programs": {func(t *testing.T, s *minutestest.Server, c *caller, id string) {
			c.status(t, id)
			(&caller{s.NewHTTPClient(), c.base, c.key}).status(t, id)
		}, 0},
		"a new status": {func(t *testing.T, s *minutestest.Server, c *caller, id string) {
			c.status(t, id)
			s.Advance(id, minutes.StatusGeneratingMinutes)
			c.status(t, id)
		}, 0},
		"a final status": {func(t *testing.T, s *minutestest.Server, c *caller, id string) {
			s.Advance(id, minutes.StatusMinutesReady)
			for range 5 {
				c.status(t, id)
			}
		}, 0},
		"no audio yet": {func(t *testing.T, s *minutestest.Server, c *caller, _ string) {
			id := c.create(t, "Empty")
			c.status(t, id)
			c.status(t, id)
		}, 1},
		"an upload URL in between": {func(t *testing.T, s *minutestest.Server, c *caller, _ string) {
			id := c.create(t, "Empty")
			c.status(t, id)
			c.uploadURL(t, id)
			c.status(t, id)
		}, 0},
		"an upload in between": {func(t *testing.T, s *minutestest.Server, c *caller, _ string) {
			id := c.create(t, "Empty")
			url := c.uploadURL(t, id)
			c.status(t, id)
			c.send("PUT", url, "audio", withHeader("Content-Type", "wrong/type"))
			c.status(t, id)
		}, 0},
		"another program's upload URL in between": {func(t *testing.T, s *minutestest.Server, c *caller, _ string) {
			id := c.create(t, "Empty")
			c.status(t, id)
			other := *c
			other.key = "key_ada"
			other.uploadURL(t, id)
			c.status(t, id)
		}, 0},
		"a change in between": {func(t *testing.T, s *minutestest.Server, c *caller, id string) {
			c.status(t, id)
			c.send("PATCH", "/v1/meetings/"+id, `{"title":"Changed"}`)
			c.status(t, id)
		}, 1},
		"status in the response of a create": {func(t *testing.T, s *minutestest.Server, c *caller, _ string) {
			c.status(t, c.create(t, "Empty"))
		}, 0},
		"a list page in between": {func(t *testing.T, s *minutestest.Server, c *caller, id string) {
			c.status(t, id)
			c.send("GET", "/v1/meetings", "")
			c.status(t, id)
		}, 1},
		"a rejected poll": {func(t *testing.T, s *minutestest.Server, c *caller, id string) {
			s.Inject(minutestest.Match{Operation: "meetings.get", MeetingID: id}, minutestest.RateLimit(""),
				minutestest.BadGateway(), minutestest.LoseResponse(), minutestest.Truncate(9))
			for range 4 {
				c.send("GET", "/v1/meetings/"+id, "")
			}
			c.status(t, id)
		}, 0},
		"once for each worker": {func(t *testing.T, s *minutestest.Server, c *caller, _ string) {
			const body = `{"title":"Weekly","date":"2026-11-21","external_id":"weekly"}`
			id := c.send("POST", "/v1/meetings", body).field("id")
			c.send("POST", "/v1/meetings", body)
			for range 3 {
				c.status(t, id)
				c.status(t, id)
				time.Sleep(minutestest.MinPollInterval)
			}
		}, 0},
		"once more by a program of its own": {func(t *testing.T, s *minutestest.Server, c *caller, _ string) {
			const body = `{"title":"Weekly","date":"2026-11-21","external_id":"weekly"}`
			own := &caller{s.NewHTTPClient(), c.base, c.key}
			id := own.send("POST", "/v1/meetings", body).field("id")
			own.send("POST", "/v1/meetings", body)
			own.status(t, id)
			own.status(t, id)
		}, 1},
		"once more than there are workers": {func(t *testing.T, s *minutestest.Server, c *caller, _ string) {
			const body = `{"title":"Weekly","date":"2026-11-21","external_id":"weekly"}`
			id := c.send("POST", "/v1/meetings", body).field("id")
			s.Inject(minutestest.Match{Operation: minutes.OpMeetingsCreate}, minutestest.Truncate(5))
			for range 2 { // the first of which is not another worker
				c.send("POST", "/v1/meetings", body)
			}
			for range 3 {
				c.status(t, id)
				time.Sleep(time.Second)
			}
			v := s.Violations()[0]
			assert.Contains(t, v.Text,
				"was polled 3 times in 2s, and was created; 2 workers may poll it 2 times in 30s")
			named := []string{v.MeetingID, v.Title, v.ExternalID, v.Caller}
			assert.Equal(t, []string{id, "Weekly", "weekly", "int_ci"}, named)
		}, 1},
		"every second": {func(t *testing.T, s *minutestest.Server, c *caller, id string) {
			direct := &caller{testkit.Direct(s), c.base, c.key}
			for range 1 + 1000 + 5 {
				direct.status(t, id)
				time.Sleep(time.Second)
			}
		}, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := unjudged(t)
				s.Script(hold)
				caller := callerOf(s)
				id := caller.upload(t, "Polled", "audio")
				time.Sleep(time.Hour)
				c.act(t, s, caller, id)
				violations := s.Violations()
				assert.Len(t, violations, c.want)
				for _, v := range violations {
					assert.Equal(t, minutestest.ViolationPoll, v.Kind)
				}
			})
		})
	}
}

func TestAudit_RecognizesRepeats(t *testing.T) {
	t.Parallel()
	const meeting = `{"title":"Twice","date":"2026-11-21"}`
	for name, c := range map[string]struct {
		op, method, path, body string
		fault                  minutestest.Fault
		want                   int
	}{
		"create after a loss": {"meetings.create", "POST", "/v1/meetings", meeting,
			minutestest.LoseResponse(), 1},
		"create after a reset": {"meetings.create", "POST", "/v1/meetings", meeting, minutestest.Reset(),
			1},
		"create after a truncated response": {"meetings.create", "POST", "/v1/meetings", meeting,
			minutestest.Truncate(5), 1},
		"create after 500": {"meetings.create", "POST", "/v1/meetings", meeting,
			minutestest.Refuse(minutes.ErrInternal), 1},
		"create after 502": {"meetings.create", "POST", "/v1/meetings", meeting,
			minutestest.BadGateway(), 1},
		"create after 429": {"meetings.create", "POST", "/v1/meetings", meeting,
			minutestest.RateLimit("1"), 0},
		"create after 409": {"meetings.create", "POST", "/v1/meetings", meeting,
			minutestest.Refuse(minutes.ErrExternalIDTaken), 0},
		"create after success": {"meetings.create", "POST", "/v1/meetings", meeting, minutestest.Delay(1),
			0},
		"create that was rejected, after a loss": {"meetings.create", "POST", "/v1/meetings", `{"title":"Twice"}`,
			minutestest.LoseResponse(), 0},
		"create with an external id": {"meetings.create", "POST", "/v1/meetings",
			`{"title":"Twice","date":"2026-11-21","external_id":"x"}`, minutestest.BadGateway(), 0},
		"create with one, after its effect": {"meetings.create", "POST", "/v1/meetings",
			`{"title":"Twice","date":"2026-11-21","external_id":"x"}`, minutestest.LoseResponse(), 0},
		"member": {"members.create", "POST", "/v1/employees", `{"name":"Twice"}`,
			minutestest.LoseResponse(), 1},
		"member with an email": {"members.create", "POST", "/v1/employees",
			`{"name":"Twice","email":"t@acme.example"}`, minutestest.LoseResponse(), 0},
		"project": {"projects.create", "POST", "/v1/projects", `{"name":"Twice"}`,
			minutestest.LoseResponse(), 1},
		"term": {"vocabulary.add", "POST", "/v1/vocabulary/terms", `{"term":"Twice"}`,
			minutestest.LoseResponse(), 0},
		"update": {"meetings.update", "PATCH", "/v1/meetings/{id}", `{"title":"Twice"}`,
			minutestest.LoseResponse(), 0},
		"upload URL": {"meetings.upload_url", "POST", "/v1/meetings/{id}/upload-url",
			`{"content_type":"audio/ogg"}`, minutestest.LoseResponse(), 0},
		"participants": {"meetings.set_participants", "PUT", "/v1/meetings/{id}/participants",
			`{"participant_ids":[]}`, minutestest.LoseResponse(), 0},
		"vocabulary": {"vocabulary.replace", "PUT", "/v1/vocabulary", `{"terms":[]}`,
			minutestest.LoseResponse(), 0},
		"deletion": {"meetings.delete", "DELETE", "/v1/meetings/{id}", "",
			minutestest.LoseResponse(), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := unjudged(t)
			caller := callerOf(s)
			path := strings.ReplaceAll(c.path, "{id}", caller.create(t, "There"))
			s.Inject(minutestest.Match{Operation: minutes.Operation(c.op)}, c.fault)
			caller.send(c.method, path, c.body)
			if c.body != "" {
				caller.send(c.method, path, strings.Replace(c.body, "Twice", "Another", 1)+" ")
			}
			assert.Empty(t, s.Violations(), "another body is not a repeat")
			for range 2 {
				caller.send(c.method, path, c.body)
			}
			assert.Len(t, s.Violations(), c.want, "the second got its response, so the third is not a repeat")
		})
	}
}

// A program that lists the existing objects may create a missing one again.
func TestAudit_AllowsRepeatAfterListing(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{
		"/v1/meetings":  `{"title":"Twice","date":"2026-11-21"}`,
		"/v1/employees": `{"name":"Twice"}`,
		"/v1/projects":  `{"name":"Twice"}`,
	} {
		for name, c := range map[string]struct {
			list func(s *minutestest.Server, c *caller)
			want int
		}{
			"listed":        {func(_ *minutestest.Server, c *caller) { c.send("GET", path+"?limit=1", "") }, 0},
			"not listed":    {func(*minutestest.Server, *caller) {}, 1},
			"others listed": {func(_ *minutestest.Server, c *caller) { c.send("GET", "/v1/templates", "") }, 1},
			"listed by another": {func(s *minutestest.Server, c *caller) {
				(&caller{s.NewHTTPClient(), c.base, c.key}).send("GET", path, "")
			}, 1},
			"HEAD": {func(_ *minutestest.Server, c *caller) { c.send("HEAD", path, "") }, 1},
			"listing lost": {func(s *minutestest.Server, c *caller) {
				s.Inject(minutestest.Match{Path: path}, minutestest.LoseResponse())
				c.send("GET", path, "")
			}, 1},
			"listing rejected": {func(s *minutestest.Server, c *caller) {
				s.Inject(minutestest.Match{Path: path}, minutestest.Refuse(minutes.ErrInternal))
				c.send("GET", path, "")
			}, 1},
		} {
			t.Run(path+" "+name, func(t *testing.T) {
				t.Parallel()
				s := minutestest.New()
				caller := callerOf(s)
				caller.send("GET", path, "") // too early to count
				s.Inject(minutestest.Match{Path: path}, minutestest.LoseResponse())
				caller.send("POST", path, body)
				c.list(s, caller)
				caller.send("POST", path, body)
				assert.Len(t, s.Violations(), c.want)
			})
		}
	}
}

// A client that did not wait for the response does not know whether the request took effect.
func TestAudit_BlamesRepeatAfterClientTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := unjudged(t)
		c := callerOf(s)
		s.Inject(minutestest.Match{}, minutestest.Delay(time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := c.send("POST", "/v1/projects", `{"name":"Twice"}`, func(r *http.Request) { *r = *r.WithContext(ctx) })
		require.ErrorIs(t, a.err, context.DeadlineExceeded)
		synctest.Wait() // the Server notices it a moment later
		require.NoError(t, c.send("POST", "/v1/projects", `{"name":"Twice"}`).err)
		assert.Equal(t, []minutestest.ViolationKind{minutestest.ViolationRepeat}, kinds(s.Violations()))
	})
}

// A create that was rejected without being handled is also identified by its body.
func TestAudit_BlamesRepeatOfARepeat(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"title":"Twice","date":"2026-11-21"}`:                   2,
		`{"title":"Twice","date":"2026-11-21","external_id":"x"}`: 0,
	} {
		s := unjudged(t, minutestest.WithoutAudit(minutestest.ViolationPoll))
		s.Inject(minutestest.Match{}, minutestest.BadGateway(), minutestest.Reset())
		for range 3 {
			callerOf(s).send("POST", "/v1/meetings", body)
		}
		assert.Len(t, s.Violations(), want, body)
	}
}

// A body that is closed a moment after the Server is not a violation.
func TestAudit_BlamesOpenBodies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		leave func(resp *http.Response)
		want  int
	}{
		"left open": {func(*http.Response) {}, 1},
		"half read": {func(resp *http.Response) { _, _ = io.ReadFull(resp.Body, make([]byte, 4)) }, 1},
		"read":      {func(resp *http.Response) { _, _ = io.Copy(io.Discard, resp.Body) }, 0},
		"closed":    {func(resp *http.Response) { _ = resp.Body.Close() }, 0},
		"late": {func(resp *http.Response) {
			time.AfterFunc(50*time.Millisecond, func() { _ = resp.Body.Close() })
		}, 0},
		"too late": {func(resp *http.Response) { time.AfterFunc(time.Second, func() { _ = resp.Body.Close() }) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // outside, the machine may be too slow for a twentieth of a second
				failures := nested(func(tb *fakeTB) {
					s := minutestest.NewServer(tb)
					resp, err := s.HTTPClient().Get(minutestest.BaseURL + "/v1/usage")
					require.NoError(t, err)
					c.leave(resp)
				})
				assert.Len(t, failures, c.want)
			})
		})
	}
}

func TestWithoutAudit_IgnoresViolations(t *testing.T) {
	t.Parallel()
	bad := func(s *minutestest.Server) {
		c := callerOf(s)
		id := c.send("POST", "/v1/meetings", `{"title":"x","date":"2026-11-21"}`).field("id")
		c.send("GET", "/v1/meetings/"+id, "")
		c.send("GET", "/v1/meetings/"+id, "")
		c.send("PUT", c.send("POST", "/v1/meetings/"+id+"/upload-url",
			`{"content_type":"audio/ogg"}`).field("upload_url"), "x", withHeader("Authorization", "Basic x"))
	}
	for name, c := range map[string]struct {
		opts []minutestest.Option
		want []minutestest.ViolationKind
	}{
		"all checked":   {nil, []minutestest.ViolationKind{minutestest.ViolationPoll, minutestest.ViolationCredential}},
		"all kinds off": {[]minutestest.Option{minutestest.WithoutAudit()}, nil},
		"not polls": {[]minutestest.Option{minutestest.WithoutAudit(minutestest.ViolationPoll)},
			[]minutestest.ViolationKind{minutestest.ViolationCredential}},
		"all but one": {[]minutestest.Option{minutestest.WithoutAudit(minutestest.ViolationPoll,
			minutestest.ViolationRepeat, minutestest.ViolationUploadURL, minutestest.ViolationContentType,
			minutestest.ViolationOpenBody)}, []minutestest.ViolationKind{minutestest.ViolationCredential}},
		"one by one": {[]minutestest.Option{minutestest.WithoutAudit(minutestest.ViolationPoll),
			minutestest.WithoutAudit(minutestest.ViolationCredential)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s *minutestest.Server
			failures := nested(func(tb *fakeTB) {
				s = minutestest.NewServer(tb, c.opts...)
				bad(s)
			})
			assert.Equal(t, c.want, kinds(s.Violations()))
			assert.Len(t, failures, len(c.want))
		})
	}
}

func TestViolations_AreReportedBriefly(t *testing.T) {
	t.Parallel()
	failures := nested(func(tb *fakeTB) {
		s := minutestest.NewServer(tb)
		c := callerOf(s)
		for range 30 {
			id := c.create(t, "Polled")
			for range 4 {
				c.status(t, id)
			}
		}
	})
	require.Len(t, failures, 21)
	assert.Contains(t, failures[0], "(3 times)")
	assert.Equal(t, "minutestest: and 10 violations more", failures[20])
}

// For each operation that must not be repeated, somebody has decided what the audit does about it.
func TestAudit_KnowsWhatMustNotBeRepeated(t *testing.T) {
	t.Parallel()
	decided := []minutes.Operation{
		minutes.OpMeetingsCreate, minutes.OpMembersCreate, minutes.OpProjectsCreate, // the switch in audit.go
		minutes.OpMeetingsUpdate, minutes.OpVocabularyAdd, // a second one changes nothing
	}
	var unsafe []minutes.Operation
	for _, row := range route.Table {
		if !row.Repeatable {
			unsafe = append(unsafe, minutes.Operation(row.Operation))
		}
	}
	require.ElementsMatch(t, unsafe, decided,
		"add the operation to the switch of audit.check, if need be, and to this list")
}

// Each Client counts as a program, so only Clients that share an HTTP client show what the runs of one do.
func TestViolationPoll_CountsClientsWithOneHTTPClientAsOne(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		client func(*minutestest.Server) *minutes.Client
		want   int
	}{
		"a program each": {func(s *minutestest.Server) *minutes.Client { return s.Client() }, 0},
		"one program": {func(s *minutestest.Server) *minutes.Client {
			return s.Client(minutes.WithHTTPClient(s.HTTPClient()))
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := minutestest.New()
				defer s.Close()
				s.Script(minutestest.Script{Hold: minutes.StatusTranscribing})
				id := s.AddMeetings("org_acme",
					minutestest.WorldMeeting{Title: "Weekly", Status: minutes.StatusTranscribing})[0]
				for range 5 { // runs in 25 s
					_, err := tc.client(s).Meetings.Get(t.Context(), id)
					require.NoError(t, err)
					time.Sleep(5 * time.Second)
				}
				assert.Len(t, s.Violations(), tc.want)
			})
		})
	}
}
