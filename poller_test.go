package minutes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// looks are what a Client asked for to follow meetings, as the wire shows it.
type looks struct {
	next http.RoundTripper

	mu    sync.Mutex
	at    []time.Time
	pages int
	shown map[string][]time.Time // of each meeting, in pages and alone
}

// watchLooks returns a Client of srv and its looks.
func watchLooks(srv *minutestest.Server, opts ...minutes.Option) (*minutes.Client, *looks) {
	l := &looks{next: srv.HTTPClient().Transport, shown: map[string][]time.Time{}}
	opts = append([]minutes.Option{minutes.WithHTTPClient(&http.Client{Transport: l}), minutes.WithRateLimit(0, 0)}, opts...)
	return clientOf(srv, opts...), l
}

var meetingID = regexp.MustCompile(`"id":"(mtg_[^"]+)"`)

func (l *looks) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if err != nil || r.Method != http.MethodGet || strings.HasSuffix(r.URL.Path, "/minutes") {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = append(l.at, now)
	if strings.HasSuffix(r.URL.Path, "/meetings") {
		l.pages++
	}
	for _, id := range meetingID.FindAllSubmatch(body, -1) {
		l.shown[string(id[1])] = append(l.shown[string(id[1])], now)
	}
	return resp, nil
}

// tooSoon counts the times that one of ids was shown within thirty seconds of
// the time before.
func (l *looks) tooSoon(ids []string) int {
	n := 0
	for _, id := range ids {
		at := l.shown[id]
		for i := 1; i < len(at); i++ {
			if at[i].Sub(at[i-1]) < 30*time.Second {
				n++
			}
		}
	}
	return n
}

// most is the largest number of looks within d.
func (l *looks) most(d time.Duration) int {
	most := 0
	for i, j := 0, 0; j < len(l.at); j++ {
		for l.at[j].Sub(l.at[i]) >= d {
			i++
		}
		most = max(most, j-i+1)
	}
	return most
}

func TestPoller(t *testing.T) {
	t.Parallel()
	const turn = 30 * time.Second
	for name, test := range map[string]struct {
		meetings, stride int
		perMinute        int // requests
		perSecond        int
	}{
		"dense: pages":                         {meetings: 10_000, stride: 1, perMinute: 420, perSecond: 10},
		"every third: pages":                   {meetings: 3_000, stride: 3, perMinute: 126, perSecond: 10},
		"sparse: single looks":                 {meetings: 4_000, stride: 400, perMinute: 20, perSecond: 10},
		"further apart than a page: no page":   {meetings: 4_000, stride: 80, perMinute: 101, perSecond: 10},
		"every thirtieth: pages far apart":     {meetings: 9_000, stride: 30, perMinute: 600, perSecond: 20},
		"a handful":                            {meetings: 19, stride: 1, perMinute: 38, perSecond: 10},
		"enough for a page, all on the newest": {meetings: 50, stride: 1, perMinute: 4, perSecond: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n, within := test.meetings, 10*time.Minute
				if n >= 5000 {
					within = 3 * time.Minute // enough turns to see, and quicker
				}
				if !long() {
					n = min(n, 900)
				}
				srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
				ids := crowd(t, srv, clientOf(srv), n, test.stride, within)
				c, l := watchLooks(srv)
				start := time.Now()
				var wg sync.WaitGroup
				late := make([]time.Duration, len(ids))
				for i, id := range ids {
					wg.Go(func() {
						m, err := c.Meetings.Wait(t.Context(), id, nil)
						if assert.NoError(t, err) {
							late[i] = time.Since(m.UpdatedAt.Time())
						}
					})
				}
				wg.Wait()
				latest := slices.Max(late)
				t.Logf("%d waits: %d requests, %d of them pages, in %s; at most %d a minute and %d a second; told at most %s late",
					len(ids), len(l.at), l.pages, time.Since(start).Round(time.Second), l.most(time.Minute), l.most(time.Second), latest.Round(time.Second))
				assert.LessOrEqual(t, l.most(time.Minute), test.perMinute)
				assert.LessOrEqual(t, l.most(time.Second), test.perSecond)
				assert.LessOrEqual(t, latest, 2*turn+5*time.Second)
				assert.Zero(t, l.tooSoon(ids), "looks within the floor")
			})
		})
	}
}

// Meetings that come one after the other, as an integration makes them.
func TestPollerSteadyArrivals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := generous()
		w.Stages.Prepare = 5 * time.Minute
		srv := minutestest.NewServer(t, minutestest.WithWorld(w))
		c, l := watchLooks(srv)
		const n = 1000 // one a second, so about 300 wait at a time
		ids := make([]string, n)
		var wg sync.WaitGroup
		for i := range n {
			ids[i] = uploaded(t, c, "meeting").ID
			wg.Go(func() {
				m, err := c.Meetings.Wait(t.Context(), ids[i], nil)
				if assert.NoError(t, err) {
					assert.LessOrEqual(t, time.Since(m.UpdatedAt.Time()), 62*time.Second)
				}
			})
			time.Sleep(time.Second)
		}
		wg.Wait()
		t.Logf("%d requests, %d of them pages; at most %d a minute", len(l.at), l.pages, l.most(time.Minute))
		assert.Less(t, len(l.at), n*3, "ten looks each, one by one, would be ten thousand")
		assert.Zero(t, l.tooSoon(ids), "looks within the floor")
	})
}

// A wait that leaves while a page is under way, and comes back after it, has
// been shown its meeting all the same; and it is not lost.
func TestPollerShownInBetween(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ leaves, back time.Duration }{
		"in the trial":           {leaves: time.Second / 2, back: 1500 * time.Millisecond},
		"after the trial":        {leaves: time.Second / 2, back: 10 * time.Second},
		"in a sweep":             {leaves: 31_500 * time.Millisecond, back: 32_500 * time.Millisecond},
		"between two sweeps":     {leaves: 31_500 * time.Millisecond, back: 45 * time.Second},
		"long after it had left": {leaves: 31_500 * time.Millisecond, back: 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
				ids := crowd(t, srv, clientOf(srv), 100, 1, 10*time.Minute)
				guest := ids[99] // on the first page of two
				require.NoError(t, srv.Script(minutestest.Script{MeetingID: guest, Hold: minutes.StatusTranscribing}))
				srv.Inject(minutestest.Match{Operation: "meetings.list", Times: minutestest.Always}, minutestest.Delay(time.Second))
				c, l := watchLooks(srv)
				var wg sync.WaitGroup
				wg.Go(func() {
					for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids[:99]), nil) {
						assert.NoError(t, err)
					}
				})
				wg.Go(func() {
					time.Sleep(5 * time.Minute)
					_, err := srv.Advance(guest, minutes.StatusMinutesReady)
					assert.NoError(t, err)
				})
				start := time.Now()
				short, cancel := context.WithTimeout(t.Context(), test.leaves)
				defer cancel()
				_, err := c.Meetings.Wait(short, guest, nil)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				time.Sleep(test.back - time.Since(start))
				long, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				_, err = c.Meetings.Wait(long, guest, nil)
				require.NoError(t, err)
				wg.Wait()
				assert.Zero(t, l.tooSoon(ids), "looks within the floor")
			})
		})
	}
}

// Many leave when most have been found.
func TestPollerLeftInATrial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
		ids := crowd(t, srv, clientOf(srv), 180, 1, 10*time.Minute)
		srv.Inject(minutestest.Match{Operation: "meetings.list", Nth: 3}, minutestest.Delay(20*time.Second))
		c, l := watchLooks(srv)
		ctx, leave := context.WithTimeout(t.Context(), 10*time.Second)
		defer leave()
		var wg sync.WaitGroup
		for i, id := range ids {
			wg.Go(func() {
				if i >= 40 {
					_, err := c.Meetings.Wait(ctx, id, nil)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					return
				}
				if i == 0 {
					time.Sleep(15 * time.Second) // stirs the poller
				}
				_, err := c.Meetings.Wait(t.Context(), id, nil)
				assert.NoError(t, err)
			})
		}
		wg.Wait()
		assert.Zero(t, l.tooSoon(ids), "looks within the floor")
	})
}

// A wait is told in its own time, whatever interval another wait for the same
// meeting has.
func TestPollerIntervalsOfOthers(t *testing.T) {
	t.Parallel()
	for name, crowded := range map[string]int{"single looks": 0, "pages": 49} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
				ids := crowd(t, srv, clientOf(srv), crowded+1, 1, 10*time.Minute)
				c, l := watchLooks(srv)
				var wg sync.WaitGroup
				for _, id := range ids {
					wg.Go(func() {
						_, err := c.Meetings.Wait(t.Context(), id, &minutes.WaitOptions{Interval: 4 * time.Hour})
						assert.NoError(t, err)
					})
				}
				time.Sleep(time.Second)
				m, err := c.Meetings.Wait(t.Context(), ids[0], nil)
				require.NoError(t, err)
				assert.LessOrEqual(t, time.Since(m.UpdatedAt.Time()), 62*time.Second)
				wg.Wait()
				assert.Zero(t, l.tooSoon(ids), "looks within the floor")
			})
		})
	}
}

// Where meetings are looked at in pages, a long interval saves pages, too, and
// one that is no multiple of the floor is kept to.
func TestPollerIntervalOfMany(t *testing.T) {
	t.Parallel()
	for interval, most := range map[time.Duration]int{
		30 * time.Second: 125,
		45 * time.Second: 85,
		10 * time.Minute: 7,
	} {
		t.Run(interval.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
				ids := crowd(t, srv, clientOf(srv), 50, 1, 1000*time.Hour)
				c, l := watchLooks(srv)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), &minutes.WaitOptions{Interval: interval}) {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				assert.LessOrEqual(t, len(l.at), most)
				assert.GreaterOrEqual(t, len(l.at), most*9/10)
			})
		})
	}
}

// A service whose pages are short keeps nobody waiting.
func TestPollerShortPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 1000
		if long() {
			n = 3000
		}
		srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
		old := crowd(t, srv, clientOf(srv), 3, 1, 10*time.Minute)
		crowd(t, srv, clientOf(srv), 1500, 1500, 10*time.Minute) // nobody's, but one
		ids := append(old, crowd(t, srv, clientOf(srv), n, 1, 10*time.Minute)...)
		srv.SetPageSize(func(int, int) int { return 10 })
		srv.Inject(minutestest.Match{Operation: "meetings.list", Times: minutestest.Always}, minutestest.Delay(20*time.Millisecond))
		c, l := watchLooks(srv)
		var wg sync.WaitGroup
		for _, id := range ids {
			wg.Go(func() {
				m, err := c.Meetings.Wait(t.Context(), id, nil)
				if assert.NoError(t, err) {
					assert.LessOrEqual(t, time.Since(m.UpdatedAt.Time()), 92*time.Second)
				}
			})
		}
		wg.Wait()
		assert.Zero(t, l.tooSoon(ids), "looks within the floor")
	})
}

// A service that is out is asked once in a while, not for each meeting by itself;
// one whose listing alone is out, is.
func TestPollerOutage(t *testing.T) {
	t.Parallel()
	const waits, out = 400, 2 * time.Minute
	for name, test := range map[string]struct {
		listing bool          // alone
		start   time.Duration // of the waits
		back    int           // minutes
		most    int           // requests within a minute of the outage
		late    time.Duration // after back, or the meeting's end
		pages   int           // minutes until there are pages again
	}{
		"all":             {false, 0, 8, 6, 61 * time.Second, 2},
		"all, at a start": {false, out, 8, 6, 100 * time.Second, 2},
		"the listing":     {true, 0, 11, 2*waits + 10, 61 * time.Second, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
				ids := crowd(t, srv, clientOf(srv), waits, 1, 20*time.Minute)
				began, back := time.Now(), time.Duration(test.back)*time.Minute
				c, l := watchLooks(srv)
				network := l.next
				l.next = roundTripper(func(r *http.Request) (*http.Response, error) {
					since := time.Since(began)
					list := strings.HasSuffix(r.URL.Path, "/meetings")
					if since >= out && since < back && (list || !test.listing) {
						return &http.Response{StatusCode: 502, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
					}
					return network.RoundTrip(r)
				})
				time.Sleep(test.start)
				for m, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
					require.NoError(t, err)
					end := m.UpdatedAt.Time()
					if end.Before(began.Add(back)) {
						end = began.Add(back)
					}
					assert.LessOrEqual(t, time.Since(end), test.late)
				}
				assert.Zero(t, l.tooSoon(ids), "looks within the floor")
				var perMinute []int
				for _, at := range l.at {
					minute := int(at.Sub(began) / time.Minute)
					for len(perMinute) <= minute {
						perMinute = append(perMinute, 0)
					}
					perMinute[minute]++
				}
				assert.LessOrEqual(t, slices.Max(perMinute[2:test.back]), test.most)
				assert.LessOrEqual(t, slices.Max(perMinute[test.back+test.pages:]), 2*waits/50+2, "pages again")
			})
		})
	}
}

// A service that stays out ends all waits, after many turns and few requests.
func TestPollerOutForGood(t *testing.T) {
	t.Parallel()
	for name, sick := range map[string]time.Duration{"from the start": 0, "later": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
				ids := crowd(t, srv, clientOf(srv), 130, 1, 1000*time.Hour)
				c, l := watchLooks(srv)
				time.AfterFunc(sick, func() {
					srv.Inject(minutestest.Match{Times: minutestest.Always}, minutestest.BadGateway())
				})
				began, ended := time.Now(), map[string]bool{}
				for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
					wait, ok := errors.AsType[*minutes.WaitError](err)
					require.True(t, ok, "%v", err)
					ended[wait.MeetingID] = true
					failed, ok := errors.AsType[*minutes.Error](err)
					require.True(t, ok, "%v", err)
					assert.Equal(t, 502, failed.StatusCode)
					if sick > 0 {
						assert.NotNil(t, wait.Meeting)
					}
				}
				assert.Len(t, ended, len(ids))
				assert.InDelta(t, sick+11*time.Minute, time.Since(began), float64(2*time.Minute))
				assert.Less(t, len(l.at), 60, "five minutes of pages among them")
			})
		})
	}
}

// A page whose reply is lost may have shown its meetings.
func TestPollerLostPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
		ids := crowd(t, srv, clientOf(srv), 115, 1, 10*time.Minute)
		_, l := watchLooks(srv)
		lost := 0
		hc := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := l.RoundTrip(r)
			if strings.HasSuffix(r.URL.Path, "/meetings") && l.pages == 9 {
				lost++
				_ = resp.Body.Close()
				return nil, io.ErrUnexpectedEOF
			}
			return resp, err
		})}
		c := clientOf(srv, minutes.WithHTTPClient(hc))
		for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
			require.NoError(t, err)
		}
		assert.Equal(t, 1, lost)
		assert.Zero(t, l.tooSoon(ids), "looks within the floor")
	})
}

// An OnStatus that ends its goroutine, as a test's FailNow does, leaves nobody
// waiting.
func TestOnStatusThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // which fails where the poller goes on
		srv := minutestest.NewServer(t)
		c, l := watchLooks(srv)
		m := uploaded(t, c, "meeting")
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _ = c.Meetings.Wait(t.Context(), m.ID, &minutes.WaitOptions{OnStatus: func(*minutes.Meeting) { runtime.Goexit() }})
		})
		wg.Wait()
		time.Sleep(time.Hour)
		assert.Len(t, l.at, 1)
	})
}

// An upload that asks for the audio during a look that fails has its answer from
// the next one.
func TestPollerFailedLookDuringUpload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := clientOf(srv)
		m, _, err := c.Meetings.Create(t.Context(), &minutes.MeetingCreateParams{Title: "Looked at", Date: "2026-11-20"})
		require.NoError(t, err)
		srv.Inject(minutestest.Match{Operation: "meetings.get"}, minutestest.BadGateway().Delayed(10*time.Second))
		srv.Inject(minutestest.Match{Operation: minutestest.OpUpload}, minutestest.Reset())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
			assert.NoError(t, err)
		})
		time.Sleep(time.Second)
		require.NoError(t, c.Meetings.Upload(t.Context(), m.ID, audio(10), nil))
		assert.Len(t, srv.Requests("meetings.get"), 2)
		wg.Wait()
	})
}

// A page that took its time counts from when it came.
func TestPollerSlowPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
		ids := crowd(t, srv, clientOf(srv), 150, 1, 10*time.Minute)
		for nth := 2; nth < 12; nth += 4 {
			srv.Inject(minutestest.Match{Operation: "meetings.list", Nth: nth}, minutestest.Delay(20*time.Second))
		}
		c, l := watchLooks(srv)
		for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
			require.NoError(t, err)
		}
		assert.Greater(t, l.pages, 12)
		assert.Zero(t, l.tooSoon(ids), "looks within the floor")
	})
}

// A key that may not list, or a service that refuses to, is followed by GETs.
func TestPollerWithoutLists(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]minutestest.Fault{
		"refused":         minutestest.Refuse(minutes.ErrInsufficientScope),
		"broken":          minutestest.Refuse(minutes.ErrInternal),
		"lost":            minutestest.Reset(),
		"no such route":   minutestest.Reply(404, "text/html", "<h1>Not found</h1>"),
		"not what it was": minutestest.Reply(200, "text/html", "<h1>Welcome</h1>"),
		"too many":        minutestest.RateLimit(""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
				ids := crowd(t, srv, clientOf(srv), 100, 1, 10*time.Minute)
				times := minutestest.Always
				if name == "too many" {
					times = 2
				}
				srv.Inject(minutestest.Match{Operation: "meetings.list", Times: times}, fault)
				c, l := watchLooks(srv)
				for m, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
					require.NoError(t, err)
					assert.Equal(t, minutes.StatusMinutesReady, m.Status)
				}
				assert.Zero(t, l.tooSoon(ids), "looks within the floor")
			})
		})
	}
}

// A listing whose cursors lead in a circle does not keep a sweep going.
func TestPollerCursorCircle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(generous()))
		ids := crowd(t, srv, clientOf(srv), 150, 1, 10*time.Minute)
		// The second page leads to the second page, by another cursor each time.
		var second string
		n := 0
		next := regexp.MustCompile(`"next_cursor":"([^"]*)`)
		loop := roundTripper(func(r *http.Request) (*http.Response, error) {
			query := r.URL.Query()
			if query.Get("cursor") != "" {
				query.Set("cursor", second)
				r.URL.RawQuery = query.Encode()
			}
			resp, err := srv.HTTPClient().Transport.RoundTrip(r)
			if err != nil || !strings.HasSuffix(r.URL.Path, "/meetings") {
				return resp, err
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if query.Get("cursor") == "" {
				second = string(next.FindSubmatch(body)[1])
			}
			n++
			body = next.ReplaceAll(body, fmt.Appendf(nil, `"next_cursor":"%d`, n))
			resp.Body = io.NopCloser(bytes.NewReader(body))
			return resp, err
		})
		l := &looks{next: loop, shown: map[string][]time.Time{}}
		c := clientOf(srv, minutes.WithHTTPClient(&http.Client{Transport: l}))
		ended := 0
		for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
			require.NoError(t, err)
			ended++
		}
		assert.Equal(t, len(ids), ended)
		assert.Less(t, l.pages, 400)
	})
}
