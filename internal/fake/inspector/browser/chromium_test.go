package browser_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// chromium is the name of a Chromium, or skips the test.
func chromium(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("drives a browser")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium here: apt-get install chromium")
	return ""
}

// page is one page with its own browser. If the page logs or throws anything,
// the test fails.
type page struct {
	t   *testing.T
	ctx context.Context

	mu   sync.Mutex
	said []string // on the console
}

func browse(t *testing.T, url string) *page {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update",
			true), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1440, 860))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	p := &page{t: t, ctx: ctx}
	p.perform()
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			p.said = append(p.said, fmt.Sprintf("%+v", e.ExceptionDetails))
		case *runtime.EventConsoleAPICalled:
			p.said = append(p.said, fmt.Sprint(e.Type, e.Args))
		case *log.EventEntryAdded:
			if e.Entry.Source != log.EntrySourceNetwork { // a rejected request is not the page's fault
				p.said = append(p.said, e.Entry.Text+" "+e.Entry.URL)
			}
		}
	}))
	p.perform(chromedp.Navigate(url))
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		assert.Empty(t, p.said)
	})
	return p
}

// step is something to do in a page.
type step = chromedp.Action[chromedp.Void]

func (p *page) perform(steps ...step) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p.ctx, steps...))
}

// js is a step in JavaScript.
func js(text string) step {
	return chromedp.Evaluate[chromedp.Void](text)
}

// ask evaluates an expression of the page.
func ask[T any](p *page, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	require.NoError(p.t, err, expression)
	return v
}

// until waits for an expression to become true.
func (p *page) until(expression string) {
	p.t.Helper()
	for range 1000 {
		if ask[bool](p, "!!("+expression+")") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	p.shoot("stuck")
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Fail(p.t, "never true", "%s\n%v", expression, p.said)
}

// text is what an element shows.
func (p *page) text(selector string) string {
	p.t.Helper()
	return ask[string](p, "document.querySelector("+quote(selector)+").innerText")
}

func quote(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// click clicks on the first element that shows just this text.
func (p *page) click(selector, text string) {
	p.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll(%s)].find(e => e.offsetParent && "+
		"e.textContent.trim().startsWith(%s))", quote(selector), quote(text))
	p.until("!!" + find)
	ask[any](p, find+".click()")
}

// shoot takes a picture, which go test -artifacts keeps.
func (p *page) shoot(name string) {
	p.t.Helper()
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	require.NoError(p.t, err)
	_, err = png.Decode(bytes.NewReader(picture))
	require.NoError(p.t, err)
	require.NoError(p.t, os.WriteFile(filepath.Join(p.t.ArtifactDir(), name+".png"), picture, 0o644))
}

// settled waits until the page has drawn what it has to.
func (p *page) settled() {
	p.t.Helper()
	_, err := chromedp.Run(p.ctx,
		chromedp.Evaluate[any](`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => `+
			`requestAnimationFrame(() => done(1)))))`, chromedp.EvalAwaitPromise))
	require.NoError(p.t, err)
}

// set chooses in a field, or writes into it, as a person would.
func (p *page) set(selector, value string) {
	p.t.Helper()
	p.perform(js(fmt.Sprintf(`{ const e = document.querySelector(%s); e.value = %s; `+
		`e.dispatchEvent(new Event("input", {bubbles: true})); `+
		`e.dispatchEvent(new Event("change", {bubbles: true})); }`, quote(selector), quote(value))))
}
