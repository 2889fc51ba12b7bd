package waits_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/internal/test/testbase"
	"github.com/meeting-minutes/minutes-go/internal/test/testkit"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

// A wait that leaves while a page is under way, and comes back after it, has
// been shown its meeting all the same; and it is not lost.
func TestShownInBetween(t *testing.T) {
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
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, 100, 1, 10*time.Minute)
				guest := ids[99] // on the first page of two
				require.NoError(t, srv.Script(minutestest.Script{MeetingID: guest, Hold: minutes.StatusTranscribing}))
				srv.Inject(minutestest.Match{Operation: "meetings.list", Times: minutestest.Always}, minutestest.Delay(time.Second))
				c, l := testkit.WatchLooks(srv)
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
				assert.Zero(t, l.TooSoon(ids), "looks within the floor")
			})
		})
	}
}

// Many leave when most have been found.
func TestLeftInATrial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 180, 1, 10*time.Minute)
		srv.Inject(minutestest.Match{Operation: "meetings.list", Nth: 3}, minutestest.Delay(20*time.Second))
		c, l := testkit.WatchLooks(srv)
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
		assert.Zero(t, l.TooSoon(ids), "looks within the floor")
	})
}

// A service whose pages are short keeps nobody waiting.
func TestShortPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		old := testkit.Crowd(t, srv, 3, 1, 10*time.Minute)
		foreign := testbase.Many(1500, 150)
		testkit.Crowd(t, srv, foreign, foreign, 10*time.Minute) // nobody's, but one
		ids := append(old, testkit.Crowd(t, srv, testbase.Many(3000, 300), 1, 10*time.Minute)...)
		srv.SetPageSize(func(int, int) int { return 10 })
		srv.Inject(minutestest.Match{Operation: "meetings.list", Times: minutestest.Always}, minutestest.Delay(20*time.Millisecond))
		c, l := testkit.WatchLooks(srv)
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
		assert.Zero(t, l.TooSoon(ids), "looks within the floor")
	})
}

// A page whose reply is lost may have shown its meetings.
func TestLostPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 115, 1, 10*time.Minute)
		_, l := testkit.WatchLooks(srv)
		lost := 0
		hc := &http.Client{Transport: testbase.RoundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := l.RoundTrip(r)
			if strings.HasSuffix(r.URL.Path, "/meetings") && l.Pages() == 9 {
				lost++
				_ = resp.Body.Close()
				return nil, io.ErrUnexpectedEOF
			}
			return resp, err
		})}
		c := testkit.Client(srv, minutes.WithHTTPClient(hc))
		for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
			require.NoError(t, err)
		}
		assert.Equal(t, 1, lost)
		assert.Zero(t, l.TooSoon(ids), "looks within the floor")
	})
}

// A page that took its time counts from when it came.
func TestSlowPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 150, 1, 10*time.Minute)
		for nth := 2; nth < 12; nth += 4 {
			srv.Inject(minutestest.Match{Operation: "meetings.list", Nth: nth}, minutestest.Delay(20*time.Second))
		}
		c, l := testkit.WatchLooks(srv)
		for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
			require.NoError(t, err)
		}
		assert.Greater(t, l.Pages(), 12)
		assert.Zero(t, l.TooSoon(ids), "looks within the floor")
	})
}

// A key that may not list, or a service that refuses to, is followed by GETs.
func TestWithoutLists(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]minutestest.Fault{
		"refused":         minutestest.Refuse(minutes.ErrInsufficientScope),
		"broken":          minutestest.Refuse(minutes.ErrInternal),
		"lost":            minutestest.Reset(),
		"no such route":   minutestest.Respond(404, "text/html", "<h1>Not found</h1>"),
		"not what it was": minutestest.Respond(200, "text/html", "<h1>Welcome</h1>"),
		"too many":        minutestest.RateLimit(""),
		"far too many":    minutestest.RateLimit("300"),
		"cut":             minutestest.Truncate(20),
		"never answered":  minutestest.Delay(time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, testbase.Many(100, 25), 1, 10*time.Minute)
				srv.Inject(minutestest.Match{Operation: "meetings.list", Times: minutestest.Always}, fault)
				c, l := testkit.WatchLooks(srv)
				for m, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
					require.NoError(t, err)
					assert.Equal(t, minutes.StatusMinutesReady, m.Status)
					assert.LessOrEqual(t, time.Since(m.UpdatedAt.Time()), 64*time.Second)
				}
				assert.Zero(t, l.TooSoon(ids), "looks within the floor")
			})
		})
	}
}

// A listing whose cursors lead in a circle does not keep a sweep going.
func TestCursorCircle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 150, 1, 10*time.Minute)
		// The second page leads to the second page, by another cursor each time.
		var second string
		n := 0
		next := regexp.MustCompile(`"next_cursor":"([^"]*)`)
		loop := testbase.RoundTripper(func(r *http.Request) (*http.Response, error) {
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
		c, l := testkit.WatchLooks(srv)
		l.Next = loop
		ended := 0
		for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
			require.NoError(t, err)
			ended++
		}
		assert.Equal(t, len(ids), ended)
		assert.Less(t, l.Pages(), 400)
	})
}

// The meeting furthest down, which pages do not reach once it has left, is
// followed where its wait comes back.
func TestFurthestComesBack(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, test := range map[string]struct{ comes, leaves, back time.Duration }{
		"found, and back after a sweep":       {0, 45 * s, 65 * s},
		"found, and back later":               {0, 45 * s, 75 * s},
		"found, and back after long":          {0, 45 * s, 95 * s},
		"never found, and back in a moment":   {45 * s, 110 * s, 115 * s},
		"never found, and back after a sweep": {45 * s, 110 * s, 125 * s},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, 60, 1, testkit.Ages)
				c, l := testkit.WatchLooks(srv)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
				defer cancel()
				var wg sync.WaitGroup
				wg.Go(func() { testkit.Follow(ctx, t, c, ids[1:], nil) })
				time.Sleep(test.comes)
				testkit.WaitFor(t, c, ids[0], test.leaves-test.comes, nil)
				time.Sleep(test.back - test.leaves)
				time.AfterFunc(2*time.Minute, func() {
					_, err := srv.Advance(ids[0], minutes.StatusMinutesReady)
					assert.NoError(t, err)
				})
				m, err := c.Meetings.Wait(ctx, ids[0], nil)
				require.NoError(t, err)
				assert.LessOrEqual(t, time.Since(m.UpdatedAt.Time()), 62*time.Second)
				wg.Wait()
				synctest.Wait()
				assert.Zero(t, l.TooSoon(ids), "looks within the floor")
			})
		})
	}
}

// The meeting furthest down is followed, too, where its wait left while a page
// was under way that shows it, and came back.
func TestFurthestLeavesDuringAPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 60, 1, testkit.Ages)
		c, l := testkit.WatchLateLooks(srv, 2*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { testkit.Follow(ctx, t, c, ids[1:], nil) })
		short, leave := context.WithCancel(ctx)
		wg.Go(func() {
			_, err := c.Meetings.Wait(short, ids[0], nil)
			assert.ErrorIs(t, err, context.Canceled)
		})
		for l.Pages() < 4 { // the second of the second sweep
			time.Sleep(time.Second / 2)
		}
		leave()
		time.Sleep(15 * time.Second)
		_, err := srv.Advance(ids[0], minutes.StatusMinutesReady)
		require.NoError(t, err)
		m, err := c.Meetings.Wait(ctx, ids[0], nil)
		require.NoError(t, err)
		assert.LessOrEqual(t, time.Since(m.UpdatedAt.Time()), 92*time.Second)
		wg.Wait()
		synctest.Wait()
		assert.Zero(t, l.TooSoon(ids), "looks within the floor")
	})
}

// A page is read only when the single looks before it are there, and are a floor
// ago.
func TestPageAfterLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 50, 1, testkit.Ages)
		c, l := testkit.WatchLateLooks(srv, 20*time.Second)
		var wg sync.WaitGroup
		for i, id := range ids {
			if i == 5 {
				time.Sleep(2 * time.Second)
			}
			wg.Go(func() { assert.NotNil(t, testkit.WaitFor(t, c, id, 5*time.Minute+7*time.Second, nil)) })
		}
		wg.Wait()
		synctest.Wait()
		assert.Greater(t, l.Pages(), 2)
		assert.Zero(t, l.TooSoon(ids), "looks within the floor")
	})
}

// Who comes while a page is under way does not keep others from the news in it;
// the newcomer is not told what the page may have shown before.
func TestComesDuringAPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, 60, 1, testkit.Ages)
		c, l := testkit.WatchLateLooks(srv, 5*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		listed, fresh := ids[:50], ids[50:]
		var wg sync.WaitGroup
		told := 0
		wg.Go(func() {
			for m, err := range c.Meetings.WaitAll(ctx, slices.Values(listed), nil) {
				if err == nil {
					told++
					assert.LessOrEqual(t, time.Since(m.UpdatedAt.Time()), 45*time.Second)
				}
			}
		})
		time.Sleep(3 * time.Minute)
		_, err := srv.Advance(listed[7], minutes.StatusMinutesReady)
		require.NoError(t, err)
		goesOut := func() {
			for n := l.Pages(); l.Pages() == n; {
				time.Sleep(time.Second)
			}
		}
		wg.Go(func() {
			for range 10 {
				goesOut()
				wg.Go(func() {
					short, cancel := context.WithTimeout(ctx, 20*time.Second)
					defer cancel()
					_, _ = c.Meetings.Wait(short, listed[7], nil)
				})
			}
		})
		for i, id := range fresh {
			goesOut()
			_, err := c.Meetings.Update(t.Context(), id, &minutes.MeetingUpdateParams{Title: new("New title")})
			require.NoError(t, err)
			m, err := c.Meetings.Wait(t.Context(), id, &minutes.WaitOptions{Until: minutes.StatusAudioUploaded})
			require.NoError(t, err, i)
			assert.Equal(t, "New title", m.Title)
		}
		wg.Wait()
		synctest.Wait()
		assert.Equal(t, 1, told)
	})
}

// The first sweep goes as far as it finds what is waited for, of which some may
// have ended, and no further.
func TestFirstSweepEndsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		testkit.Crowd(t, srv, 700, 701, testkit.Ages)
		ids := testkit.Crowd(t, srv, 120, 1, testkit.Ages)
		for _, id := range ids[70:] {
			_, err := srv.Advance(id, minutes.StatusMinutesReady)
			require.NoError(t, err)
		}
		c, l := testkit.WatchLooks(srv)
		ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second)
		defer cancel()
		ended := 0
		for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
			if err == nil {
				ended++
			}
		}
		synctest.Wait()
		assert.Equal(t, 50, ended)
		assert.Equal(t, 3, l.Pages())
		assert.LessOrEqual(t, l.Len(), 6, "and hardly a single look")
	})
}

// A page that is refused for its cursor, or lost while single looks succeed, does
// not make an end of pages.
func TestPagesGoOn(t *testing.T) {
	t.Parallel()
	turns := testbase.Many(120, 28)
	for name, test := range map[string]struct {
		fault minutestest.Fault
		times int
		most  int // requests a minute
	}{
		"cursor":     {minutestest.Refuse(minutes.ErrInvalidCursor), 1, 300},
		"lost":       {minutestest.BadGateway(), 1, 20},
		"lost twice": {minutestest.BadGateway(), 2, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				far := testkit.Crowd(t, srv, 1, 1, testkit.Ages)
				testkit.Crowd(t, srv, 700, 701, testkit.Ages)
				ids := append(far, testkit.Crowd(t, srv, 120, 1, testkit.Ages)...)
				srv.Inject(minutestest.Match{Operation: "meetings.list", Nth: 20, Times: test.times}, test.fault)
				c, l := testkit.WatchLooks(srv)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(turns)*30*time.Second)
				defer cancel()
				for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				synctest.Wait()
				assert.Greater(t, l.Pages(), 2*turns-40, "two a turn")
				assert.LessOrEqual(t, l.Most(time.Minute), test.most)
				assert.Zero(t, l.TooSoon(ids), "looks within the floor")
			})
		})
	}
}

// A key that may not list, or may not any more, is told so with growing patience.
func TestAsksSeldomWhereListsAreRefused(t *testing.T) {
	t.Parallel()
	for _, nth := range []int{1, 3, 4} {
		t.Run(fmt.Sprint(nth), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
				ids := testkit.Crowd(t, srv, testbase.Many(60, 25), 1, testkit.Ages)
				srv.Inject(minutestest.Match{Operation: "meetings.list", Nth: nth, Times: minutestest.Always}, minutestest.Refuse(minutes.ErrInsufficientScope))
				c, l := testkit.WatchLooks(srv)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
				defer cancel()
				for _, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				synctest.Wait()
				assert.LessOrEqual(t, l.Pages(), nth+5, "2, 4, 8 and 16 turns later")
				assert.Zero(t, l.TooSoon(ids), "looks within the floor")
			})
		})
	}
}

// A crowd whose last looks were another process's is shown by pages, too, as soon
// as the floor has passed.
func TestCrowdLookedAtByAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(testkit.Generous()))
		ids := testkit.Crowd(t, srv, testbase.Many(1000, 300), 1, testkit.Ages)
		c, l := testkit.WatchLooks(srv)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		began := time.Now()
		testkit.Follow(ctx, t, c, ids, &minutes.WaitOptions{LookedAt: began})
		require.NotEmpty(t, l.At())
		assert.GreaterOrEqual(t, l.At()[0].Sub(began), minutestest.MinPollInterval)
		assert.LessOrEqual(t, l.At()[0].Sub(began), minutestest.MinPollInterval+time.Second)
		assert.LessOrEqual(t, l.Len()-l.Pages(), 10, "looks at single meetings")
	})
}
