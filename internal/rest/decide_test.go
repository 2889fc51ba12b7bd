package rest

import (
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
)

// Which requests are retried, after the first attempt of a call with four retries and no deadline.
func TestDecide_RetriesOnlyIfSafe(t *testing.T) {
	t.Parallel()
	const never = 0
	const repeatable = 1
	const always = 2
	status := func(n int) outcome { return outcome{status: n} }
	lost := func(err error) outcome { return outcome{err: err} }
	asks := func(n int, retryAfter time.Duration) outcome { return outcome{status: n, retryAfter: retryAfter} }
	for name, test := range map[string]struct {
		outcome outcome
		retried int
	}{
		"200":                    {status(200), never},
		"429":                    {status(429), always},
		"429 for a minute":       {asks(429, time.Minute), always},
		"429 for longer":         {asks(429, time.Minute+1), never},
		"connection refused":     {lost(testbase.ErrRefused), always},
		"no such host":           {lost(testbase.ErrNoHost), always},
		"TLS handshake lost":     {outcome{err: io.EOF, unconnected: true}, always},
		"503 of a proxy":         {lost(&ProxyError{"proxy", "503 Service Unavailable"}), always},
		"407 of a proxy":         {lost(&ProxyError{"proxy", "407 Proxy Authentication Required"}), never},
		"untrusted certificate":  {outcome{err: testbase.ErrUntrusted, unconnected: true}, never},
		"no TLS":                 {lost(testbase.ErrHandshake), never},
		"500":                    {status(500), repeatable},
		"502":                    {status(502), repeatable},
		"503":                    {status(503), repeatable},
		"503 for longer":         {asks(503, time.Hour), never},
		"504":                    {status(504), repeatable},
		"reset":                  {lost(syscall.ECONNRESET), repeatable},
		"idle connection lost":   {lost(errors.New("http: server closed idle connection")), repeatable},
		"200 that broke off":     {outcome{status: 200, err: io.ErrUnexpectedEOF}, repeatable},
		"404 that broke off":     {outcome{status: 404, err: io.ErrUnexpectedEOF}, repeatable},
		"501":                    {status(501), never},
		"408":                    {status(408), never},
		"409":                    {status(409), never},
		"404":                    {status(404), never},
		"401":                    {status(401), never},
		"401, another key":       {outcome{status: 401, key: newKey}, always},
		"401, no key":            {outcome{status: 401, key: noKey}, never},
		"redirect":               {status(307), never},
		"never sent":             {outcome{unsent: true}, never},
		"never sent, after 429s": {outcome{unsent: true, pause: time.Minute}, never},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, safe := range []bool{false, true} {
				want := stop
				if test.retried == always || test.retried == repeatable && safe {
					want = retry
				}
				got, _ := decide(state{maxRetries: 4, repeatable: safe}, test.outcome, time.Now())
				assert.Equal(t, want, got.step, "repeatable: %v", safe)
				got, _ = decide(state{maxRetries: 4, repeatable: safe, once: true}, test.outcome, time.Now())
				assert.Equal(t, test.outcome.key == newKey, got.step == retry, "once")
			}
		})
	}
}

// The wait before a retry is random, from half of the backoff to all of it, on top of the Retry-After.
// A key that has changed need not wait.
func TestDecide_Waits(t *testing.T) {
	t.Parallel()
	const s = time.Second
	failed := outcome{status: 503}
	backoffs := []time.Duration{s / 2, s, 2 * s, 4 * s, 8 * s, 16 * s}
	backoffs = append(backoffs, slices.Repeat([]time.Duration{30 * s}, 60)...)
	for n, backoff := range backoffs {
		for _, asked := range []time.Duration{0, 3 * s} {
			failed.retryAfter = asked
			got, _ := decide(state{maxRetries: 100, attempts: n, repeatable: true}, failed, time.Now())
			most := asked + backoff
			require.Equal(t, decision{step: retry, least: asked + backoff/2, most: most, within: most}, got)
		}
	}
	failed.pause = 40 * s
	got, _ := decide(state{maxRetries: 1, repeatable: true}, failed, time.Now())
	require.Equal(t, 40*s, got.within, "the pause goes on during the wait")
	got, _ = decide(state{}, outcome{status: 401, key: newKey, pause: -s}, time.Now())
	require.Equal(t, decision{step: retry}, got)

	var delays []time.Duration
	for range 100 {
		delay := decision{least: s, most: 2 * s}.delay()
		delays = append(delays, delay)
	}
	require.GreaterOrEqual(t, slices.Min(delays), s)
	require.LessOrEqual(t, slices.Max(delays), 2*s)
	require.Greater(t, slices.Max(delays)-slices.Min(delays), s/2)
	require.Zero(t, decision{}.delay())
}

// When a call gives up. Unless the row says otherwise, its first attempt has got a 503.
func TestDecide_GivesUp(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	failing := func(attempts int, since time.Duration) state {
		return state{maxRetries: 4, repeatable: true, attempts: attempts - 1, firstFailure: now.Add(-since)}
	}
	patient := func(maxRetries, attempts int, since time.Duration) state {
		s := failing(attempts, since)
		s.maxRetries = maxRetries
		s.patience = time.Minute
		return s
	}
	until := func(left time.Duration) state {
		return state{maxRetries: 4, repeatable: true, deadline: now.Add(left)}
	}
	unavailable := outcome{status: 503, retryAfter: 20 * time.Second}
	for name, test := range map[string]struct {
		state   state
		outcome outcome
		want    step
	}{
		"retries left":              {failing(4, time.Hour), unavailable, retry},
		"no retries left":           {failing(5, 0), unavailable, stop},
		"patient":                   {patient(1, 20, time.Minute-1), unavailable, retry},
		"patient, retries left":     {patient(4, 4, time.Hour), unavailable, retry},
		"patient for long enough":   {patient(1, 2, time.Minute), unavailable, stop},
		"retries switched off":      {patient(0, 1, 0), unavailable, stop},
		"another key, no retries":   {state{}, outcome{status: 401, key: newKey}, retry},
		"deadline after the retry":  {until(20*time.Second + time.Second/2 + 1), unavailable, retry},
		"deadline before the retry": {until(20*time.Second + time.Second/2), unavailable, outOfTime},
		"deadline in the pause":     {until(time.Minute), outcome{status: 429, pause: time.Minute}, outOfTime},
		"deadline after the pause":  {until(time.Minute + 1), outcome{status: 429, pause: time.Minute}, retry},
		"deadline of a final 404":   {until(0), outcome{status: 404}, stop},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, after := decide(test.state, test.outcome, now)
			require.Equal(t, test.want, got.step)
			require.Equal(t, test.state.attempts+1, after.attempts)
		})
	}
	_, first := decide(state{maxRetries: 1, repeatable: true}, unavailable, now)
	require.Equal(t, now, first.firstFailure)
	_, second := decide(first, unavailable, now.Add(time.Second))
	require.Equal(t, now, second.firstFailure)
}

// Whether the service may have carried out the request, and which response still says something about
// it. Each row is the last attempt of several.
func TestDecide_RemembersWhatMayHaveHappened(t *testing.T) {
	t.Parallel()
	const unsure = true
	refused := outcome{err: testbase.ErrRefused}
	lost := outcome{err: io.EOF}
	for name, test := range map[string]struct {
		outcomes  []outcome
		unsure    bool
		responded int
		drops     bool // the last one drops the response
	}{
		"lost":                         {[]outcome{lost}, unsure, 0, false},
		"502":                          {[]outcome{{status: 502}}, unsure, 502, false},
		"200":                          {[]outcome{{status: 200}}, unsure, 200, false},
		"429":                          {[]outcome{{status: 429}}, false, 429, false},
		"no connection":                {[]outcome{refused}, false, 0, false},
		"no TLS handshake":             {[]outcome{{err: io.EOF, unconnected: true}}, false, 0, false},
		"404":                          {[]outcome{{status: 404}}, false, 404, false},
		"404 that broke off":           {[]outcome{{status: 404, err: io.EOF}}, false, 404, false},
		"502, 404":                     {[]outcome{{status: 502}, {status: 404}}, unsure, 404, false},
		"503, lost":                    {[]outcome{{status: 503}, lost}, unsure, 503, false},
		"429, lost":                    {[]outcome{{status: 429}, lost}, unsure, 0, true},
		"429, no connection":           {[]outcome{{status: 429}, refused}, false, 429, false},
		"429, never sent":              {[]outcome{{status: 429}, {unsent: true}}, false, 429, false},
		"401, lost":                    {[]outcome{{status: 401, key: newKey}, lost}, unsure, 0, true},
		"401, 429":                     {[]outcome{{status: 401, key: newKey}, {status: 429}}, false, 429, false},
		"401, no key":                  {[]outcome{{status: 401, key: noKey}}, false, 0, true},
		"401, the new key never sent":  {[]outcome{{status: 401, key: newKey}, {unsent: true}}, false, 0, true},
		"401, the new key unconnected": {[]outcome{{status: 401, key: newKey}, refused}, false, 0, true},
		"502, 401, no key":             {[]outcome{{status: 502}, {status: 401, key: noKey}}, unsure, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := state{maxRetries: 4}
			var next decision
			for _, o := range test.outcomes {
				next, s = decide(s, o, time.Now())
			}
			assert.Equal(t, test.unsure, s.mayHaveTakenEffect)
			assert.Equal(t, test.responded, s.responded)
			assert.Equal(t, test.drops, next.dropResponse)
		})
	}
}
