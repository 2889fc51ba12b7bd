package browser_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// troubled is a report full of trouble: rejected requests, meetings in each
// failure state, and titles in several scripts.
func troubled(t *testing.T) *bytes.Buffer {
	t.Helper()
	var report bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.New(minutestest.WithWorld(slow()))
		defer srv.Close()
		client := srv.Client()
		for i, title := range []string{
			"Planning", "週次ミーティング 📅", "اجتماع الفريق", "Quarterly planning of the whole engineering organisation, second part",
			"Rejected", "Blocked", "Unheard", "Unwritten",
		} {
			srv.Script(minutestest.Script{Title: title, Outcome: map[string]minutes.Status{
				"Rejected": minutes.StatusAudioRejected, "Blocked": minutes.StatusTranscribeBlocked,
				"Unheard": minutes.StatusTranscriptionFailed, "Unwritten": minutes.StatusMinutesFailed,
			}[title]})
			id := meeting(t, client, title)
			time.Sleep(time.Duration(i+5) * time.Second)
			raw(t, srv, "GET", "/v1/meetings/"+id+"/transcript", "")
			raw(t, srv, "GET", "/v1/meetings/"+id+"/minutes", "")
			raw(t, srv, "PATCH", "/v1/meetings/"+id, `{"date":"tomorrow"}`)
			raw(t, srv, "POST", "/v1/meetings/"+id+"/upload-url", `{}`)
		}
		raw(t, srv, "POST", "/v1/meetings", `{"title":"x","date":"2026-11-21","external_id":"`+strings.Repeat("x", 200)+`"}`)
		raw(t, srv, "GET", "/v1/usage/of/nobody", "")
		time.Sleep(time.Minute)
		require.NoError(t, srv.Report(&report))
	})
	return &report
}

// raw sends a request unchanged, and ignores its result.
func raw(t *testing.T, srv *minutestest.Server, method, path, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, minutestest.BaseURL+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+srv.Key())
	req.Header.Set("Content-Type", "application/json")
	resp, err := srv.HTTPClient().Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
}

// inside is JavaScript for "every visible element of a selector is inside the
// window, and shows its whole text".
func inside(selector string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%s)].filter(e => e.checkVisibility() && (e.textContent || !e.matches("span"))).every(e => {
		const box = e.getBoundingClientRect();
		return box.left >= 0 && box.right <= innerWidth && box.width > 0 && e.scrollWidth <= e.clientWidth + 1;
	})`, quote(selector))
}

// contrast is JavaScript for the contrast of an element's text with the nearest
// background, as WCAG defines it.
func contrast(selector string) string {
	return fmt.Sprintf(`(() => {
		const light = colour => {
			const [r, g, b] = colour.match(/[\d.]+/g).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
			return 0.2126 * r + 0.7152 * g + 0.0722 * b;
		};
		const e = document.querySelector(%s);
		let back = e;
		while (getComputedStyle(back).backgroundColor === "rgba(0, 0, 0, 0)") back = back.parentElement;
		const a = light(getComputedStyle(e).color), b = light(getComputedStyle(back).backgroundColor);
		return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
	})()`, quote(selector))
}

// Rejected requests and failed meetings are conspicuous at any width, and
// nothing is off-screen.
func TestSizes_ShowFailures(t *testing.T) {
	t.Parallel()
	chromium(t)
	p := browse(t, saved(t, troubled(t)))
	for _, width := range []int64{1280, 400} {
		p.do(chromedp.EmulateViewport(width, 860))
		p.settled()
		assert.LessOrEqual(t, ask[int64](p, "document.documentElement.scrollWidth"), width)
		for _, selector := range []string{"header > *", "#filters button, #filters select, #filters input", ".item .icon svg", ".item .status", ".item .op", "#tabs button", "#legend span"} {
			assert.True(t, ask[bool](p, inside(selector)), "%s at %d px", selector, width)
		}
		assert.True(t, ask[bool](p, `[...document.querySelectorAll(".item")].filter(e => e.offsetParent).every(e => e.querySelector(".what").clientWidth > 150 || !e.querySelector(".what").textContent)`), "titles have room")
		assert.Equal(t, "✕ 4 failed", p.text("#failures"))
		assert.Contains(t, p.text("#counts"), "58 requests, 34 rejected or lost")
		for _, dark := range []bool{false, true} {
			p.dark(dark)
			for _, selector := range []string{".item.rejected .status", ".item.rejected .op", ".row.failed .name", "#failures", "#counts"} {
				assert.Greater(t, ask[float64](p, contrast(selector)), 4.5, "%s at %d px", selector, width)
			}
			assert.NotEqual(t, ask[string](p, `getComputedStyle(document.querySelector(".item:not(.rejected)")).backgroundColor`), ask[string](p, `getComputedStyle(document.querySelector(".item.rejected")).backgroundColor`))
			red := ask[string](p, `getComputedStyle(document.querySelector(".row.failed .name")).color`)
			assert.NotEqual(t, ask[string](p, `getComputedStyle(document.querySelector(".row.ready .name")).color`), red)
			assert.Equal(t, red, ask[string](p, `getComputedStyle(document.querySelector(".row.failed .sign")).color`))
			p.shoot(fmt.Sprintf("troubled-%d-%v", width, dark))
		}
	}
	for _, font := range []string{"CJK", "Color Emoji", "Hiragino", "Arabic"} {
		assert.Contains(t, ask[string](p, "getComputedStyle(document.body).fontFamily"), font)
		assert.Contains(t, ask[string](p, "timeline.font"), font)
	}

	// A failed meeting names its reason at the top.
	p.click("#failures", "✕ 4 failed")
	p.until(`document.querySelector("#detail h2")?.textContent === "Unwritten"`)
	p.click(".row .name", "Blocked")
	p.until(`document.querySelector("#detail h2")?.textContent === "Blocked"`)
	assert.Regexp(t, `(?s)^.{0,4}Blocked\s+✕ transcribe_blocked\s+A script sets this outcome`, p.text("#detail"))
	p.shoot("blocked-400")
}
