package browser_test

import (
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// metrics are the browser's own, in seconds of its processor, since the page was
// opened: how busy the machine is does not count.
func (p *page) metrics() map[string]float64 {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})
	require.NoError(p.t, err)
	list, err := chromedp.Call(p.ctx, performance.GetMetrics, cdp.Empty{})
	require.NoError(p.t, err)
	all := map[string]float64{}
	for _, m := range list.Metrics {
		all[m.Name] = m.Value
	}
	return all
}
