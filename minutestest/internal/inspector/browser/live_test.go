package browser_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/chromedp/chromedp"

	minutes "github.com/meeting-minutes/minutes-go"
)

const hostile = `<script>document.title='taken'</script><img src=x onerror="document.title='taken'">`

// order sends JSON to the control API.
func order(t *testing.T, method, url, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	require.Less(t, resp.StatusCode, 300, "%s", text)
}

// meeting is created, and with its audio.
func meeting(t *testing.T, c *minutes.Client, title string) string {
	t.Helper()
	m, _, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: title, Date: "2026-11-21", ParticipantIDs: []string{"emp_ada", "emp_ben"}})
	require.NoError(t, err)
	audio := bytes.NewReader(bytes.Repeat([]byte("sound"), 40_000))
	require.NoError(t, c.Meetings.Upload(t.Context(), m.ID, minutes.FromReaderAt(audio, audio.Size(), "audio/mpeg"), nil))
	return m.ID
}

// A page that is open shows what a client does, and does what a person asks.
func TestLive(t *testing.T) {
	t.Parallel()
	env := fake(t, "-speed", "0.02")
	control := env["MINUTES_CONTROL_URL"]
	client, err := minutes.New(env["MINUTES_BASE_URL"], env["MINUTES_API_KEY"])
	require.NoError(t, err)
	p := browse(t, control+"/")
	p.until(`document.querySelector("#source").innerText.startsWith("live, http")`)
	assert.Equal(t, "Meeting Minutes Service", p.text("h1"))

	// A client works, and the page follows.
	order(t, "POST", control+"/scripts", `{"title":"Weekly","hold":"transcribing","transcript":"spk_0: `+strings.ReplaceAll(hostile, `"`, `\"`)+`\nspk_0: We decided to **ship**."}`)
	order(t, "POST", control+"/faults", `{"match":{"operation":"usage.get"},"faults":[{"kind":"reset"}]}`)
	_, err = client.Usage.Get(t.Context())
	require.NoError(t, err)
	held := meeting(t, client, "Weekly")
	odd := meeting(t, client, hostile)
	_, err = client.Meetings.Get(t.Context(), odd)
	require.NoError(t, err)
	_, err = client.Meetings.Get(t.Context(), odd)
	require.NoError(t, err)
	_, err = client.Meetings.Get(t.Context(), "mtg_none")
	require.Error(t, err)
	p.until(`timeline.rows.length === 3 && model.requests.length >= 10`)
	p.until(`document.querySelector("#alarm").innerText === "1 violation"`)

	// A title that is a script is text, in the timeline and beside it.
	p.click(".row .name", "<script>")
	p.until(`document.querySelector("#detail h2")?.textContent.includes("<script>")`)
	assert.Equal(t, hostile, p.text("#detail h2"))
	assert.Zero(t, ask[int](p, `document.querySelectorAll("img, #detail script, .row script").length`))
	assert.Equal(t, "Inspector", ask[string](p, "document.title"))

	// The violation leads to its request, with the poll before it.
	p.click("#alarm", "1 violation")
	p.until(`document.querySelector("#detail")?.innerText.includes("Previous poll, same key")`)
	p.shoot("live-violation")
	assert.Contains(t, p.text("#detail"), "GET /v1/meetings/"+odd)
	assert.Contains(t, p.text("#detail"), "Bearer (masked)")
	assert.NotContains(t, p.text("body"), env["MINUTES_API_KEY"])

	// A filter leaves the meetings and the requests that pass it.
	p.do(typing("#f-operation", "storage.put"))
	p.until(`timeline.rows.length === 2 && requestList.shown.length === 2`)
	p.click("#filters button", "Clear")
	p.until(`timeline.rows.length === 3`)
	p.do(typing("#f-meeting", "week"))
	p.until(`timeline.rows.length === 1 && document.querySelector("#counts").innerText.startsWith("1 of 3 meetings")`)

	// The held meeting is moved on by hand.
	p.click(".row .name", "Weekly")
	p.until(`document.querySelector("#detail h2")?.textContent === "Weekly"`)
	p.click("#detail button", "Advance")
	p.until(`timeline.rows[0].meeting.status === "transcribing" && timeline.rows[0].meeting.held`)
	p.shoot("live-held")
	p.click("#detail button", "Release")
	p.until(`timeline.rows[0].meeting.held === undefined`)
	p.click("#detail button", "Advance to the end")
	p.until(`document.querySelector(".minutes")?.innerText.includes("ship")`)
	assert.Contains(t, p.text("#detail"), "SHA-256")
	assert.Contains(t, p.text(".minutes"), "<script>")
	assert.Zero(t, ask[int](p, `document.querySelectorAll(".minutes script, .minutes img").length`))
	m, err := client.Meetings.Get(t.Context(), held)
	require.NoError(t, err)
	assert.Equal(t, minutes.StatusMinutesReady, m.Status)
	p.click("#filters button", "Clear")

	// Inject a fault, revoke a key, and reset everything.
	p.click("#orders button", "Inject")
	p.do(setting("#samples", "a service error (500)"))
	p.click("#sending button", "Send")
	p.until(`document.querySelector("#faults").innerText.includes("meetings.create")`)
	_, _, err = client.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Rejected", Date: "2026-11-21"})
	require.ErrorIs(t, err, minutes.ErrInternal)
	p.until(`document.querySelector("#t-faults").innerText === "Faults 2, applied 2 times"`)
	p.click("#orders button", "Inject")
	for text, problem := range map[string]string{
		"{":                                    "This is not valid JSON: the text ends too early. A bracket, a brace or a quotation mark is not closed.",
		`{"match": {"operation": "usage.g`:     "This is not valid JSON: the text ends too early. A bracket, a brace or a quotation mark is not closed.",
		"undefined":                            "This is not valid JSON.",
		"[1, no]":                              "This is not valid JSON: Unexpected token 'o'",
		"":                                     "The field is empty. Enter a JSON object, such as {}.",
		"[1]":                                  "This is not a JSON object. It must start with { and end with }.",
		"{\n  \"match\": {},\n  faults: []\n}": "This is not valid JSON (line 3): Expected double-quoted property name",
		`{"match":{"operation":"usage"}}`:      "match.operation: ",
	} {
		p.do(typing("#body", text))
		ask[any](p, `document.querySelector("#rejection").textContent = ""`)
		p.click("#sending button", "Send")
		p.until(`document.querySelector("#rejection").innerText !== ""`)
		assert.Contains(t, p.text("#rejection"), problem, text)
	}
	p.shoot("live-json")
	p.click("#sending button", "Cancel")
	p.click("#tabs button", "World")
	p.click("#world button", "Revoke")
	p.until(`document.querySelector("#world").innerText.includes("revoked")`)
	_, err = client.Usage.Get(t.Context())
	require.ErrorIs(t, err, minutes.ErrUnauthenticated)
	p.shoot("live-world")
	p.do(chromedp.EmulateViewport(400, 860))
	p.settled()
	p.shoot("live-400")
	assert.LessOrEqual(t, ask[int](p, "document.documentElement.scrollWidth"), 400)
	assert.True(t, ask[bool](p, inside("header > *, #orders button")), "all buttons are in sight")
	p.do(accept())
	p.click("#orders button", "Reset")
	p.until(`timeline.rows.length === 0 && model.requests.length === 0`)
	_, err = client.Usage.Get(t.Context())
	require.NoError(t, err, "the key is as it was")
}

// What happens is shown within 200 milliseconds.
func TestLatency(t *testing.T) {
	env := fake(t)
	client, err := minutes.New(env["MINUTES_BASE_URL"], env["MINUTES_API_KEY"], minutes.WithRateLimit(0, 0))
	require.NoError(t, err)
	p := browse(t, env["MINUTES_CONTROL_URL"]+"/")
	p.until(`document.querySelector("#source").innerText.startsWith("live, http")`)
	ask[any](p, `globalThis.seen = {}; new MutationObserver(() => {
		for (const e of document.querySelectorAll("#list .seq")) if (!e.parentNode.hidden) seen[e.textContent.slice(1)] ??= Date.now();
	}).observe(document.querySelector("#list"), {subtree: true, childList: true, characterData: true, attributes: true}); null`)
	responded := map[int]time.Time{}
	const n = 40
	for seq := 1; seq <= n; seq++ {
		_, err := client.Usage.Get(t.Context())
		require.NoError(t, err)
		responded[seq] = time.Now()
		time.Sleep(37 * time.Millisecond)
	}
	p.until(fmt.Sprintf(`seen[%d] !== undefined`, n))
	seen := ask[map[int]int64](p, "seen")
	var worst, sum time.Duration
	for seq, at := range responded {
		late := time.UnixMilli(seen[seq]).Sub(at)
		worst, sum = max(worst, late), sum+late
	}
	t.Logf("shown %v after the response on average, %v at worst", sum/n, worst)
	assert.Less(t, sum/n, 200*time.Millisecond)
}
