package minutes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func TestMeeting_DurationIsKnownOnceProcessed(t *testing.T) {
	t.Parallel()
	require.Equal(t, 30*time.Minute+5*time.Second, testkit.Whole().Duration())
	require.Zero(t, new(minutes.Meeting).Duration())
}

// encoding/json/v2 reads omitempty in another way: it leaves out a pointer to "", and keeps a 0 or a
// false. So omitempty is only on strings and lists, where both agree.
func TestJSON_IsAlikeInBothPackages(t *testing.T) {
	t.Parallel()
	for _, of := range []any{
		minutes.Meeting{}, minutes.MeetingPage{}, minutes.MeetingCreateParams{}, minutes.MeetingUpdateParams{},
		minutes.Minutes{}, minutes.Transcript{}, minutes.UploadTarget{}, minutes.Result{}, minutes.Member{},
		minutes.MemberCreateParams{}, minutes.Project{}, minutes.ProjectCreateParams{}, minutes.Template{},
		minutes.Usage{}, minutes.Vocabulary{}, minutes.VocabularyEntry{}, minutes.VocabularyVariant{},
		minutestest.World{}, minutestest.Organisation{}, minutestest.Script{}, minutestest.Meeting{},
		minutestest.Request{}, minutestest.Violation{}, minutestest.Fault{}, minutestest.Match{},
	} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(of)) {
			agree := field.Type.Kind() == reflect.String || field.Type.Kind() == reflect.Slice ||
				field.Type.Kind() == reflect.Map
			require.True(t, agree || !strings.Contains(field.Tag.Get("json"), "omitempty"), "%T.%s", of, field.Name)
		}
	}
	clearing, err := json.Marshal(minutes.MeetingUpdateParams{ProjectID: new("")})
	require.NoError(t, err)
	require.JSONEq(t, `{"project_id":""}`, string(clearing))
	result, err := json.Marshal(minutes.Result{Err: minutes.ErrNoAudio})
	require.NoError(t, err)
	require.NotContains(t, string(result), "Err", "it would be an empty object")
}

// DateOf and TimeOfDay use the time's own zone.
func TestDateOf_AndTimeOfDayUseTheTimesZone(t *testing.T) {
	t.Parallel()
	for want, at := range map[string]time.Time{
		"2026-03-09 00:05": time.Date(2026, 3, 9, 0, 5, 59, 0, time.FixedZone("", 14*3600)),
		"2026-12-31 23:59": time.Date(2026, 12, 31, 23, 59, 59, 999, time.FixedZone("", -11*3600)),
		"0987-01-02 03:04": time.Date(987, 1, 2, 3, 4, 0, 0, time.UTC),
	} {
		require.Equal(t, want, minutes.DateOf(at)+" "+minutes.TimeOfDay(at))
	}
}

// A Delete that gets NOT_FOUND has succeeded if an earlier attempt may have taken effect.
func TestDelete_SucceedsIfEarlierAttemptDidIt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		faults []minutestest.Fault
		ok     bool
	}{
		{"response lost", []minutestest.Fault{minutestest.LoseResponse()}, true},
		{"429", []minutestest.Fault{minutestest.RateLimit("1")}, false},
		{"nothing", nil, false},
		{
			"page of a gateway",
			[]minutestest.Fault{
				minutestest.LoseResponse(),
				minutestest.Respond(404, "text/html", "<h1>no</h1>"),
			},
			false,
		},
		{"forbidden", []minutestest.Fault{minutestest.LoseResponse(), minutestest.Refuse(minutes.ErrForbidden)}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t)
				m, _, err := testkit.Client(
					srv,
				).Meetings.Create(
					t.Context(),
					&minutes.MeetingCreateParams{Title: "Gone", Date: "2026-11-20"},
				)
				require.NoError(t, err)
				if !test.ok && test.name != "page of a gateway" && test.name != "forbidden" {
					require.NoError(t, testkit.Client(srv).Meetings.Delete(t.Context(), m.ID)) // by another caller
				}
				if test.faults != nil {
					srv.Inject(minutestest.Match{Operation: "meetings.delete"}, test.faults...)
				}
				err = testkit.Client(srv).Meetings.Delete(t.Context(), m.ID)
				if test.ok {
					require.NoError(t, err)
					return
				}
				require.Error(t, err)
			})
		})
	}
}

func TestTurns_SplitsAtLabels(t *testing.T) {
	t.Parallel()
	two := []minutes.Turn{{Speaker: "spk_0", Text: "Good morning."}, {Speaker: "spk_12", Text: "Morning."}}
	for name, test := range map[string]struct {
		transcript string
		want       []minutes.Turn
	}{
		"nothing":               {"", nil},
		"white space":           {" \n\t\n", nil},
		"with colons":           {"spk_0: Good morning.\nspk_12: Morning.\n", two},
		"without":               {"spk_0 Good morning.\r\nspk_12 Morning.", two},
		"on lines of their own": {"\n\nspk_0\nGood morning.\n\nspk_12\nMorning.\n", two},
		"in brackets":           {"[spk_0] Good morning.\n  [spk_12]: Morning.", two},
		"in Markdown":           {"**spk_0:** Good morning.\n\n**spk_12:** Morning.", two},
		"as tags":               {"<spk_0>Good morning.\n<spk_12>Morning.", two},
		"on one line":           {"spk_0: Good morning. spk_12: Morning.", two},
		"no space":              {"spk_0:Good morning.\nspk_12:Morning.", two},
		"no label":              {"Good morning.\nMorning.", []minutes.Turn{{Text: "Good morning.\nMorning."}}},
		"text before": {
			"Weekly\n\nspk_0: Hello.", []minutes.Turn{{Text: "Weekly"}, {Speaker: "spk_0", Text: "Hello."}},
		},
		"several lines": {
			"spk_0: One.\n\nTwo: three.\nspk_0: Four.",
			[]minutes.Turn{{Speaker: "spk_0", Text: "One.\n\nTwo: three."}, {Speaker: "spk_0", Text: "Four."}},
		},
		"silence":                {"spk_0:\nspk_1:", []minutes.Turn{{Speaker: "spk_0"}, {Speaker: "spk_1"}}},
		"a label that is spoken": {"spk_0: Is spk_1 in?", []minutes.Turn{{Speaker: "spk_0", Text: "Is spk_1 in?"}}},
		"a label spoken first":   {"spk_0: spk_1 is in.", []minutes.Turn{{Speaker: "spk_0", Text: "spk_1 is in."}}},
		"similar to a label": {
			"spk_: a\nspk_x: b\nxspk_1: c\nspk_1st: d\nspk_1_2: e",
			[]minutes.Turn{{Text: "spk_: a\nspk_x: b\nxspk_1: c\nspk_1st: d\nspk_1_2: e"}},
		},
		"invalid UTF-8": {
			"spk_0: \xff\nspk_1: b", []minutes.Turn{{Speaker: "spk_0", Text: "\xff"}, {Speaker: "spk_1", Text: "b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, slices.Collect((&minutes.Transcript{Text: test.transcript}).Turns()))
			for turn := range (&minutes.Transcript{Text: test.transcript}).Turns() { // the loop may be left
				require.Equal(t, test.want[0], turn)
				break
			}
		})
	}
}

// FindByExternalID accepts no meeting with another reference.
func TestFindByExternalID_FindsOnlyThatReference(t *testing.T) {
	t.Parallel()
	other := `{"id":"mtg_x","status":"created","external_id":"crm/10"}`
	for name, test := range map[string]struct {
		asked, page string
		found       bool
	}{
		"found":          {"crm/1", `{"id":"mtg_1","status":"created","external_id":"crm/1"}`, true},
		"beside another": {"crm/1", other + `,{"id":"mtg_1","status":"created","external_id":"crm/1"}`, true},
		"none":           {"crm/1", "", false},
		"another":        {"crm/1", other, false},
		"in other case":  {"crm/1", `{"id":"mtg_1","status":"created","external_id":"CRM/1"}`, false},
		"another form":   {"cafe\u0301", `{"id":"mtg_1","status":"created","external_id":"caf\u00e9"}`, false},
	} {
		c, mock := testkit.Responding(t, testkit.Canned(200, `{"meetings":[`+test.page+`]}`))
		m, err := c.Meetings.FindByExternalID(t.Context(), test.asked)
		require.Equal(t, 1, mock.GetTotalCallCount())
		if test.found {
			require.NoError(t, err, name)
			require.Equal(t, "mtg_1", m.ID)
			continue
		}
		require.ErrorIs(t, err, minutes.ErrNotFound, name)
		failed := testkit.RequireError(t, err, testkit.OperationNamed(t, "meetings.list"))
		require.NotContains(t, failed.Error(), "crm/1")
	}
}

// The cause of a canceled context, as errgroup sets it, may be another call's NOT_FOUND.
func TestDelete_FailsIfCanceledByAnotherCall(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	client, _ := testkit.Responding(t, func(req *http.Request) (*http.Response, error) {
		cancel(&minutes.Error{StatusCode: 404, Code: minutes.ErrNotFound})
		return nil, context.Cause(req.Context())
	})
	require.ErrorIs(t, client.Meetings.Delete(ctx, "mtg_1"), context.Canceled)
}

// A wait after a Delete does not rely on what an earlier response showed.
func TestDelete_IsKnownToTheNextWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := testkit.Client(srv)
		id := testkit.Uploaded(t, c, "Weekly").ID
		m, err := c.Meetings.Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, minutes.StatusMinutesReady, m.Status)
		require.NoError(t, c.Meetings.Delete(t.Context(), id))
		_, err = c.Meetings.Wait(t.Context(), id, nil)
		require.ErrorIs(t, err, minutes.ErrNotFound)
	})
}

// Whatever becomes of a Delete, two polls of a wait stay thirty seconds apart.
func TestDelete_KeepsThePollInterval(t *testing.T) {
	t.Parallel()
	for code, ends := range map[minutes.ErrorCode]error{
		"":                   minutes.ErrNotFound,
		minutes.ErrForbidden: context.DeadlineExceeded,
		minutes.ErrInternal:  context.DeadlineExceeded,
	} {
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t)
			c := testkit.Client(srv, minutes.WithMaxRetries(0))
			id := testkit.Waiting(t, srv) // without audio, because an upload would permit another poll
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
			defer cancel()
			if code != "" {
				srv.Inject(minutestest.Match{Operation: minutes.OpMeetingsDelete}, minutestest.Refuse(code))
			}
			time.AfterFunc(10*time.Second, func() { _ = c.Meetings.Delete(ctx, id) })
			_, err := c.Meetings.Wait(ctx, id, nil)
			require.ErrorIs(t, err, ends)
			polls := srv.Requests(minutes.OpMeetingsGet)
			require.Len(t, polls, 2)
			require.GreaterOrEqual(t, polls[1].At.Sub(polls[0].At), 30*time.Second)
		})
	}
}

// fmt and slog show the URL without its query, and JSON refuses it.
func TestPresignedURL_ShowsNoQuery(t *testing.T) {
	t.Parallel()
	const whole = "https://storage.example/a%2Fb/k?X-Amz-Signature=feedface"
	for from, want := range map[string]string{
		whole: "https://storage.example/a%2Fb/k?***",
		"https://user:feedface@storage.example/k": "https://storage.example/k?***",
		"://%zz?feedface":                         "?***",
		"":                                        "",
	} {
		u := testkit.Presigned(from)
		require.Equal(t, from, u.Reveal())
		require.Equal(t, want, fmt.Sprint(u))
		target := &minutes.UploadTarget{UploadURL: u}
		var out bytes.Buffer
		log := slog.New(slog.NewJSONHandler(&out, nil))
		log.Info("", "url", u, "target", target)
		assert.Contains(t, out.String(), want)
		for _, verb := range []string{"%v", "%+v", "%#v", "%q", "%x"} {
			fmt.Fprintf(&out, verb+verb+verb, u, target, struct{ u minutes.PresignedURL }{u})
		}
		assert.NotContains(t, out.String(), "feedface")
		for _, v := range []any{u, target} {
			_, err := json.Marshal(v)
			require.ErrorContains(t, err, "PresignedURL.Reveal")
			require.NotContains(t, err.Error(), "feedface")
		}
	}
	require.Empty(t, minutes.PresignedURL{}.Reveal())
}

// A book is a list in pages: each page is a list of ids and, after a ">", the next cursor. It
// records the queries of the requests.
type book struct {
	pages   map[string]string
	queries []string
}

func (b *book) client(t testing.TB) *minutes.Client {
	t.Helper()
	c, _ := testkit.Responding(t, func(req *http.Request) (*http.Response, error) {
		b.queries = append(b.queries, req.URL.RawQuery)
		page, ok := b.pages[req.URL.Query().Get("cursor")]
		if !ok || len(b.queries) > 9 { // or a loop that never ends would hang the test
			body := `{"error":{"code":"INVALID_CURSOR","message":"m","request_id":"r"}}`
			return httpmock.NewStringResponse(400, body), nil
		}
		ids, next, more := strings.Cut(page, ">")
		var meetings []string
		for _, id := range strings.Fields(ids) {
			meetings = append(meetings, fmt.Sprintf(`{"id":%q,"status":"created"}`, id))
		}
		body := `{"meetings":[` + strings.Join(meetings, ",") + `]`
		if more {
			body += fmt.Sprintf(`,"next_cursor":%q`, next)
		}
		return httpmock.NewStringResponse(200, body+"}"), nil
	})
	return c
}

// collect ranges over the sequence to its end.
func collect(
	t testing.TB,
	ctx context.Context,
	c *minutes.Client,
	params *minutes.MeetingListParams,
) (ids []string, failure error) {
	t.Helper()
	for m, err := range c.Meetings.All(ctx, params) {
		require.NoError(t, failure, "the sequence continues after an error")
		require.NotEqual(t, m == nil, err == nil, "a meeting or an error")
		if err != nil {
			failure = err
			continue
		}
		ids = append(ids, m.ID)
	}
	return ids, failure
}
