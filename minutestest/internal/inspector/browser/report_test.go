package browser_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	minutes "github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func accept() step { return js(`globalThis.confirm = () => true`) }

// setting chooses in a field, and typing writes into it, as a person would
// notice it.
func setting(selector, value string) step {
	return js(fmt.Sprintf(`{ const e = document.querySelector(%s); e.value = %s; e.dispatchEvent(new Event("input", {bubbles: true})); e.dispatchEvent(new Event("change", {bubbles: true})); }`, quote(selector), quote(value)))
}

func typing(selector, value string) step { return setting(selector, value) }

// saved is the address of a report on disk.
func saved(t *testing.T, report *bytes.Buffer) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	require.NoError(t, os.WriteFile(path, report.Bytes(), 0o600))
	return "file://" + path
}

var titles = []string{
	"Planning", "Design review", "Weekly", "Hiring", "Incident 4711", "Retrospective", "Board", "Customer call, Northwind", "All hands",
	"Architecture", "Sales forecast", "One on one", hostile, "Budget 2027", "Release 3.2", "Onboarding", "Support rota", "Demo",
}

// A report that is opened from disk begins with the violation that failed the
// test, on its meeting's line.
func TestReport(t *testing.T) {
	t.Parallel()
	chromium(t)
	var report bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.New(minutestest.WithWorld(slow()))
		defer srv.Close()
		client := srv.Client()
		srv.Inject(minutestest.Match{Operation: "meetings.list"}, minutestest.RateLimit("1"))
		require.NoError(t, srv.Script(
			minutestest.Script{Title: "Hiring", Outcome: minutes.StatusTranscriptionFailed},
			minutestest.Script{Title: "Board", Hold: minutes.StatusTranscribing},
			minutestest.Script{Title: "All hands", Stages: minutestest.Stages{Prepare: 9 * time.Second, Transcribe: 58 * time.Second, Write: 25 * time.Second}},
		))
		srv.Inject(minutestest.Match{Operation: minutestest.OpUpload, Nth: 5}, minutestest.ResetUpload(1000))
		srv.Inject(minutestest.Match{Operation: "meetings.create", Nth: 9}, minutestest.RateLimit("2"))
		var crew sync.WaitGroup
		for i, title := range titles {
			crew.Go(func() {
				time.Sleep(time.Duration(i) * 5 * time.Second)
				id := meeting(t, client, title)
				switch title {
				case "Weekly":
					time.Sleep(8 * time.Second) // it is being transcribed
					_, err := client.Meetings.Get(t.Context(), id)
					require.NoError(t, err)
					time.Sleep(12 * time.Second)
					_, err = client.Meetings.Get(t.Context(), id) // too soon
					require.NoError(t, err)
				case "Board":
				default:
					_, err := client.Meetings.WaitForMinutes(t.Context(), id, nil)
					assert.Equal(t, title == "Hiring", err != nil)
				}
			})
		}
		crew.Wait()
		page, err := client.Meetings.List(t.Context(), nil)
		require.NoError(t, err)
		require.NoError(t, client.Meetings.Delete(t.Context(), page.Meetings[2].ID))
		require.NoError(t, srv.Report(&report))
	})
	p := browse(t, saved(t, &report))
	p.until(`!document.querySelector("#detail").hidden`)
	p.shoot("report-light")
	assert.Equal(t, "1 violation", p.text("#alarm"))
	assert.Contains(t, p.text("#violations"), "Weekly")
	assert.Contains(t, p.text("#detail"), "12.0 s before")
	assert.Equal(t, "Weekly", ask[string](p, `timeline.rows.find(row => row.id === timeline.chosen).meeting.title`))
	assert.Contains(t, p.text(".row[aria-selected=true]"), "Weekly")
	assert.Equal(t, "violation", ask[string](p, `timeline.mark.kind`))
	assert.Contains(t, p.text("#source"), "report of 2000-01-01 00:")
	p.dark(true)
	p.shoot("report-dark")

	// Without a mouse: the meetings, their requests, the list.
	p.dark(false)
	p.do(chromedp.KeyEvent("f"), chromedp.KeyEvent("t"), chromedp.KeyEvent(kb.End)) // End
	p.until(`document.querySelector("#detail h2")?.textContent === "Planning"`)
	p.do(chromedp.KeyEvent(kb.ArrowRight)) // →
	p.until(`document.querySelector("#detail h2")?.textContent.includes("meetings.create")`)
	assert.Contains(t, p.text("#said"), "meetings.create")
	p.shoot("report-keys")
	p.do(chromedp.KeyEvent("v"))
	p.until(`document.querySelector("#detail")?.innerText.includes("12.0 s before")`)
	assert.Equal(t, "violation", ask[string](p, `timeline.mark.kind`))
	p.do(chromedp.KeyEvent(kb.Escape)) // Escape
	p.until(`document.querySelector("#detail").hidden`)
	assert.Zero(t, ask[int](p, `document.querySelectorAll("img").length`))

	// On a small screen.
	p.do(chromedp.EmulateViewport(700, 900))
	p.settled()
	p.shoot("report-small")
	assert.LessOrEqual(t, ask[int](p, "document.documentElement.scrollWidth"), 700)
}

// What a failing test leaves, where go test is asked to keep such things, opens
// with the violation that failed it.
func TestFailedTest(t *testing.T) {
	t.Parallel()
	chromium(t)
	dir := t.TempDir()
	test := filepath.Join(dir, "weekly_test.go")
	require.NoError(t, os.WriteFile(test, []byte(`package weekly

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func TestWeekly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		client := srv.Client()
		m, _, _ := client.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Weekly", Date: "2026-11-21"})
		for range 2 {
			client.Meetings.Get(t.Context(), m.ID)
			time.Sleep(29 * time.Second)
		}
	})
}
`), 0o600))
	cmd := exec.Command("go", "test", "-artifacts", "-outputdir", dir, test)
	cmd.Dir = "../../../.."
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "violation (poll)")
	_, rest, ok := strings.Cut(string(out), "what the service saw: ")
	require.True(t, ok, "%s", out)
	path, _, _ := strings.Cut(rest, "\n")
	p := browse(t, "file://"+path)
	p.until(`document.querySelector("#detail")?.innerText.includes("29.0 s before")`)
	assert.Contains(t, p.text("#source"), "TestWeekly")
	assert.Contains(t, p.text(".row.bad"), "Weekly")
	assert.Equal(t, "violation", ask[string](p, `timeline.rows[0].marks.at(-1).kind`))
	p.shoot("failed")
}

// slow is a world whose stages can be seen.
func slow() minutestest.World {
	w := minutestest.DefaultWorld()
	w.Stages = minutestest.Stages{Prepare: 4 * time.Second, Transcribe: 31 * time.Second, Write: 12 * time.Second}
	return w
}

// crowd is a Server with as many meetings and requests as the page shows.
func crowd(t *testing.T, meetings int) *minutestest.Server {
	t.Helper()
	srv := minutestest.New(minutestest.WithWorld(slow()), minutestest.WithoutAudit())
	t.Cleanup(func() { _ = srv.Close() })
	handler := srv.Handler()
	call := func(method, path, body string) map[string]any {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+srv.Key())
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Less(t, w.Code, 300, w.Body)
		var v map[string]any
		_ = json.Unmarshal(w.Body.Bytes(), &v)
		return v
	}
	ids := make([]string, meetings)
	for i := range ids {
		ids[i] = call("POST", "/v1/meetings", fmt.Sprintf(`{"title":"Meeting %d of the engineering organisation","date":"2026-11-21","external_id":"crowd-%d"}`, i, i))["id"].(string)
	}
	for _, id := range ids[max(0, len(ids)-1200):] {
		target := call("POST", "/v1/meetings/"+id+"/upload-url", `{"content_type":"audio/mpeg"}`)["upload_url"].(string)
		r := httptest.NewRequest("PUT", target, strings.NewReader("sound"))
		r.Header.Set("Content-Type", "audio/mpeg")
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	for i := range 2000 {
		call("GET", "/v1/meetings/"+ids[(i*7)%len(ids)], "")
	}
	return srv
}

// Ten thousand meetings are shown at once, and scroll.
func TestCrowd(t *testing.T) {
	chromium(t)
	srv := crowd(t, 10_000)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: srv.Inspector()}
	go server.Serve(listener)
	t.Cleanup(func() { _ = server.Close() })
	var report bytes.Buffer
	require.NoError(t, srv.Report(&report))
	t.Logf("the report has %.1f MB", float64(report.Len())/1e6)
	for name, address := range map[string]string{"live": "http://" + listener.Addr().String() + "/", "report": saved(t, &report)} {
		t.Run(name, func(t *testing.T) {
			p := browse(t, "about:blank")
			p.metrics()
			p.do(chromedp.Navigate(address))
			p.until(`performance.getEntriesByName("shown").length > 0 && document.querySelectorAll(".row").length > 10`)
			m := p.metrics()
			t.Logf("first paint: %.0f ms of script, %.0f ms of layout and style, %.0f ms after navigation", m["ScriptDuration"]*1000, (m["LayoutDuration"]+m["RecalcStyleDuration"])*1000,
				ask[float64](p, `performance.getEntriesByName("shown")[0].startTime`))
			assert.Less(t, m["ScriptDuration"], 0.3)
			assert.Equal(t, 10_000, ask[int](p, "timeline.rows.length"))
			assert.Equal(t, 4096, ask[int](p, "model.requests.length"))
			for _, width := range []int64{400, 900, 1920, 1280} {
				p.do(chromedp.EmulateViewport(width, 860))
				p.settled()
				assert.Less(t, ask[int](p, `document.querySelectorAll(".row, .item").length`), 120, "only what is in sight, at %d px", width)
			}
			p.shoot(name)
			before := p.metrics()
			const steps = 50
			for i := range steps {
				p.do(js(fmt.Sprintf(`document.querySelector("#rows").scrollTop = %d`, (i+1)*4777)))
				p.settled()
			}
			after := p.metrics()
			t.Logf("scrolling: %.1f ms of script a frame", (after["ScriptDuration"]-before["ScriptDuration"])*1000/steps)
			assert.Less(t, (after["ScriptDuration"]-before["ScriptDuration"])/steps, 0.016)
			p.shoot(name + "-scrolled")
			p.do(typing("#f-meeting", "meeting 4711 "))
			p.until(`timeline.rows.length === 1`)
		})
	}
}
