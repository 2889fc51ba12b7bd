package browser_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

const hostile = `<script>document.title='taken'</script><img src=x onerror="document.title='taken'">`

// meeting is created, and with its audio.
func meeting(t *testing.T, c *minutes.Client, title string) string {
	t.Helper()
	m, _, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: title, Date: "2026-11-21"})
	require.NoError(t, err)
	require.NoError(t,
		c.Meetings.Upload(t.Context(), m.ID, minutes.FromReader(strings.NewReader("sound"), "audio/mpeg"), nil))
	return m.ID
}

// troubled is a Server with a held meeting, a failed one, a violation and a fault.
func troubled(t *testing.T) (srv *minutestest.Server, held string) {
	t.Helper()
	srv = minutestest.New()
	t.Cleanup(func() { _ = srv.Close() })
	srv.Script(minutestest.Script{Title: "Weekly", Hold: minutes.StatusTranscribing},
		minutestest.Script{Title: "Failed", Outcome: minutes.StatusMinutesFailed})
	srv.Inject(minutestest.Match{Operation: minutes.OpTemplatesList}, minutestest.Reset())
	client := srv.Client()
	held = meeting(t, client, "Weekly")
	meeting(t, client, "Failed")
	meeting(t, client, hostile)
	for range 2 {
		_, err := client.Meetings.Get(t.Context(), held)
		require.NoError(t, err)
	}
	return srv, held
}

// inside is JavaScript for "every visible element of a selector is inside the window, and shows its
// whole text".
func inside(selector string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%s)].filter(
		e => e.checkVisibility() && (e.textContent || !e.matches("span")),
	).every(e => {
		const box = e.getBoundingClientRect();
		return box.left >= 0 && box.right <= innerWidth && box.width > 0 && e.scrollWidth <= e.clientWidth + 1;
	})`, quote(selector))
}

// fits checks that nothing is off-screen at both widths.
func (p *page) fits(name string) {
	p.t.Helper()
	for _, width := range []int64{1280, 400} {
		p.perform(chromedp.EmulateViewport(width, 860))
		p.settled()
		p.shoot(fmt.Sprintf("%s-%d", name, width))
		assert.LessOrEqual(p.t, ask[int64](p, "document.documentElement.scrollWidth"), width)
		for _, selector := range []string{"header > *", "#orders button",
			"#filters button, #filters select, #filters input", ".item .status", ".item .op", "#tabs button",
			"#legend span"} {
			assert.True(p.t, ask[bool](p, inside(selector)), "%s at %d px", selector, width)
		}
	}
	p.perform(chromedp.EmulateViewport(1280, 860))
	p.settled()
}

// A report opens with the violation that failed the test, and shows what clients sent as text.
func TestReport_OpensOnCause(t *testing.T) {
	t.Parallel()
	chromium(t)
	srv, _ := troubled(t)
	var report bytes.Buffer
	require.NoError(t, srv.Report(&report))
	path := filepath.Join(t.TempDir(), "report.html")
	require.NoError(t, os.WriteFile(path, report.Bytes(), 0o600))
	p := browse(t, "file://"+path)
	p.until(`timeline.mark?.kind === "violation"`)
	assert.Contains(t, p.text("aside"), "polled")
	p.click("#tabs button", "Faults")
	assert.Contains(t, p.text("#faults"), "This fault was never applied, so the test fails.")
	p.click("#tabs button", "Requests")
	p.fits("report")
	p.click("#failures", "✕ 1 failed")
	p.until(`document.querySelector("#detail h2")?.textContent === "Failed"`)
	assert.Contains(t, p.text("#detail"), "A script set this outcome.")
	p.click(".row .name", "<script>")
	p.until(`document.querySelector("#detail h2")?.textContent.startsWith("<script>")`)
	assert.Zero(t, ask[int](p, `document.querySelectorAll("img, #detail script, .row script").length`))
	assert.NotContains(t, ask[string](p, "document.title"), "taken")
}

// ordered is a control API that does nothing but remember what the page asks it for.
type ordered struct {
	page http.Handler
	said chan string
}

func (o ordered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch {
	case r.Method != http.MethodGet:
		o.said <- r.Method + " " + r.URL.Path + " " + string(body)
	case r.URL.Path == "/" && r.Header.Get("Accept") == "application/json":
		w.Header().Set("Minutes-Fake", "control")
		_, _ = io.WriteString(w, `{"control_api_of":"http://127.0.0.1:8080"}`)
	case r.URL.Path == "/world":
		_, _ = io.WriteString(w,
			`{"organisations":[{"id":"org_acme","keys":[{"secret":"key_ci"},{"secret":"key_ada"},`+
				`{"secret":"key_ben"}]}]}`)
	case r.URL.Path == "/faults":
		_, _ = io.WriteString(w,
			`{"faults":[{"id":"flt_1","match":{},"faults":[{"kind":"reset"}],"seen":0,"applied":0}]}`)
	default:
		o.page.ServeHTTP(w, r)
	}
}

// A live page shows what a client does, and its buttons use the control API.
func TestLive_ShowsAndOrders(t *testing.T) {
	t.Parallel()
	chromium(t)
	srv, held := troubled(t)
	control := ordered{srv.Inspector(), make(chan string, 1)}
	web := httptest.NewServer(control)
	t.Cleanup(web.Close)
	p := browse(t, web.URL+"/")
	p.until(`document.querySelector("#source").innerText === "live, http://127.0.0.1:8080"`)
	p.until(`timeline.rows.length === 3`)
	p.fits("live")

	meeting(t, srv.Client(), "Later")
	p.until(`timeline.rows.length === 4`)
	p.set("#f-meeting", "week")
	p.until(`timeline.rows.length === 1`)
	p.click("#filters button", "Clear")

	p.click(".row .name", "Weekly")
	p.until(`document.querySelector("#detail h2")?.textContent === "Weekly"`)
	p.click("#detail button", "Advance to the end")
	assert.Equal(t, "POST /meetings/"+held+`/advance {"until":"minutes_ready"}`, <-control.said)
	p.click("#detail button", "Delete")
	assert.Equal(t, "DELETE /meetings/"+held+" ", <-control.said)
	p.click("#tabs button", "World")
	p.click("#world button", "Revoke")
	assert.Equal(t, `PATCH /world {"organisations":[{"id":"org_acme","keys":[{"secret":"key_ci","revoked":true}]}]}`,
		<-control.said)
	p.click("#world button", "Remove all")
	assert.Equal(t, "DELETE /scripts ", <-control.said)
	p.click("#tabs button", "Faults")
	p.click("#faults button", "Remove all")
	assert.Equal(t, "DELETE /faults ", <-control.said)

	for button, want := range map[string]string{"Script": "POST /scripts {", "Inject": "POST /faults {",
		"Clock": "POST /clock {\n  \"advance\": \"1m\"\n}"} {
		p.click("#orders button", button)
		p.click("#sending button", "Send")
		assert.True(t, strings.HasPrefix(<-control.said, want), want)
		p.until(`!document.querySelector("#sending").open`)
	}
	p.click("#orders button", "Inject")
	p.set("#body", "{")
	p.click("#sending button", "Send")
	p.until(`document.querySelector("#rejection").innerText.startsWith("This is not valid JSON: the text ends too ` +
		`early.")`)
	p.click("#sending button", "Cancel")
	p.perform(js(`globalThis.confirm = () => true`))
	p.click("#orders button", "Reset")
	assert.Equal(t, "POST /reset ", <-control.said)
}
