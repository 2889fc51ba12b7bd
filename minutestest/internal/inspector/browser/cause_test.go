package browser_test

import (
	"bytes"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// failing is a failed test whose errors are discarded.
type failing struct{ *testing.T }

func (failing) Failed() bool          { return true }
func (failing) Errorf(string, ...any) {}

// reportOf is the report of a failed test that does this.
func reportOf(t *testing.T, do func(*testing.T, *minutestest.Server)) *bytes.Buffer {
	t.Helper()
	var report bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(failing{t}, minutestest.WithWorld(slow()))
		do(t, srv)
		require.NoError(t, srv.Report(&report))
	})
	return &report
}

// A report opens with the likely cause of the failure.
func TestReport_OpensOnCause(t *testing.T) {
	t.Parallel()
	chromium(t)
	poll := func(t *testing.T, client *minutes.Client, id string) {
		t.Helper()
		_, err := client.Meetings.Get(t.Context(), id)
		require.NoError(t, err)
	}
	for name, tc := range map[string]struct {
		do    func(*testing.T, *minutestest.Server)
		panel string
		shows []string
	}{
		"violation before unused fault": {func(t *testing.T, srv *minutestest.Server) {
			srv.Inject(minutestest.Match{Operation: minutes.OpUsageGet}, minutestest.Reset())
			client := srv.Client()
			id := meeting(t, client, "Weekly")
			poll(t, client, id)
			poll(t, client, id)
		}, "#violations", []string{"The client polled a meeting again", "Weekly"}},
		"unused fault before last requests": {func(t *testing.T, srv *minutestest.Server) {
			srv.Inject(minutestest.Match{Operation: minutes.OpTemplatesList}, minutestest.Reset())
			srv.Inject(minutestest.Match{Operation: minutes.OpUsageGet}, minutestest.Reset())
			srv.Inject(minutestest.Match{Operation: minutes.OpProjectsList, Times: 2}, minutestest.RateLimit("1"))
			_, err := srv.Client().Templates.List(t.Context())
			require.NoError(t, err)
			_, err = srv.Client(minutes.WithRetries(minutes.RetryPolicy{})).Projects.List(t.Context())
			require.Error(t, err)
		}, "#faults", []string{"This fault was never applied, so the test fails.", "This fault was not applied as often as injected", "applied 0 times; 0 requests matched", "applied 1 time; 1 request matched"}},
		"last requests": {func(t *testing.T, srv *minutestest.Server) {
			srv.Update("org_acme", func(o *minutestest.Organisation) { o.TranscribeSeconds = new(3) })
			meeting(t, srv.Client(), "Long")
			srv.Update("org_acme", func(o *minutestest.Organisation) { o.TranscribeSeconds = new(1000) })
			time.Sleep(time.Minute)
			id := meeting(t, srv.Client(), "Weekly")
			time.Sleep(5 * time.Second)
			poll(t, srv.Client(), id)
			time.Sleep(20 * time.Second)
		}, "#requests", []string{
			"The test's last request was meetings.get of “Weekly”: 200, 20.0 s before the end.",
			"✕ transcribe_blocked", "Transcription takes 13 s of quota. The organisation had less left when the audio arrived.",
			"Meetings that had not ended", "transcribing", "Last requests", "storage.put 200 of “Weekly”",
		}},
		"no request": {func(*testing.T, *minutestest.Server) {}, "#requests", []string{"The test made no request."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := browse(t, saved(t, reportOf(t, tc.do)))
			p.until(`document.querySelector("#tabs")`)
			p.settled()
			p.shoot("cause")
			assert.True(t, ask[bool](p, `!document.querySelector(`+quote(tc.panel)+`).hidden`))
			for _, text := range tc.shows {
				assert.Contains(t, p.text("aside"), text)
			}
			p.do(chromedp.EmulateViewport(400, 860))
			p.settled()
			p.shoot("cause-400")
		})
	}
}

// A violation opens with the minute around it, however long the test took.
func TestReport_ViolationShowsMinuteAround(t *testing.T) {
	t.Parallel()
	chromium(t)
	p := browse(t, saved(t, reportOf(t, func(t *testing.T, srv *minutestest.Server) {
		client := srv.Client()
		for i := range 60 {
			id := meeting(t, client, "Weekly")
			if i == 30 {
				_, err := client.Meetings.Get(t.Context(), id)
				require.NoError(t, err)
				time.Sleep(3 * time.Second)
				_, err = client.Meetings.Get(t.Context(), id)
				require.NoError(t, err)
			}
			time.Sleep(time.Minute)
		}
	})))
	p.until(`timeline.mark?.kind === "violation"`)
	p.settled()
	p.shoot("violation")
	assert.InDelta(t, 60_000, ask[float64](p, `axis.to - axis.from`), 1)
	assert.InDelta(t, 0.5, ask[float64](p, `axis.x(timeline.mark.at, 1)`), 0.01)
}

// Script, Update, Advance and Release are in the timeline and in the list, with
// what changed.
func TestReport_ShowsActions(t *testing.T) {
	t.Parallel()
	chromium(t)
	var id string
	p := browse(t, saved(t, reportOf(t, func(t *testing.T, srv *minutestest.Server) {
		srv.Script(minutestest.Script{Title: "Weekly", Hold: minutes.StatusTranscribing})
		id = meeting(t, srv.Client(), "Weekly")
		time.Sleep(10 * time.Second)
		require.True(t, srv.Release(id))
		time.Sleep(time.Second)
		srv.Update("org_acme", func(o *minutestest.Organisation) {
			o.Credits = new(0)
			o.Key("key_ci").Revoked = true
		})
		raw(t, srv, http.MethodGet, "/v1/usage", "")
		srv.Advance(id, minutes.StatusMinutesFailed)
	})))
	p.until(`model.actions.length === 4`)
	p.settled()
	assert.Equal(t, `["Script","Release","Update org_acme","Advance"]`, ask[string](p, `JSON.stringify(model.actions.map(a => a.name))`))
	assert.Equal(t, 2, ask[int](p, `model.rest.filter(a => a.action).length`))
	list := p.text("#list")
	for _, text := range []string{"title \"Weekly\": hold transcribing", "no longer held in transcribing", "credits: 1000 → 0; keys.int_ci.revoked: false → true", "transcribing → minutes_failed"} {
		assert.Contains(t, list, text)
	}
	assert.Equal(t, "storage.put,Release,Update org_acme", ask[string](p, `requestList.shown.map(r => r.operation).slice(3, 6).join()`))
	p.click(".item", "Update")
	p.until(`document.querySelector("#detail h2")?.textContent.includes("Update")`)
	assert.Contains(t, p.text("#detail ul"), "keys.int_ci.revoked: false → true")
	assert.Contains(t, p.text(".item[aria-selected=true]"), "Update")
	p.shoot("actions")
	assert.Contains(t, p.text("#counts"), "4 requests", "actions are no requests")
	p.click(".row .name", "Weekly")
	p.until(`document.querySelector("#detail h2")?.textContent === "Weekly"`)
	assert.Contains(t, p.text("#detail"), "The organisation had no credit left")
	p.do(typing("#f-operation", "storage.put"))
	p.until(`requestList.shown.length === 1`)
}
