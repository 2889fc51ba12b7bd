package minutes_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meeting-minutes/minutes-go"
	"github.com/meeting-minutes/minutes-go/minutestest"
)

func TestWaitAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
		c := clientOf(srv)
		require.NoError(t, srv.Script(minutestest.Script{Title: "bad", Outcome: minutes.StatusTranscriptionFailed}))
		good, bad := uploaded(t, c, "good"), uploaded(t, c, "bad")
		ids := []string{good.ID, bad.ID, good.ID, "", "mtg_unknown", "mtg_unknown"}
		got := map[string]int{}
		for m, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), nil) {
			var failed *minutes.MeetingFailedError
			var wait *minutes.WaitError
			switch {
			case err == nil:
				got["done "+m.ID]++
			case errors.As(err, &failed):
				assert.Nil(t, m)
				got["failed "+failed.Meeting.ID]++
			case errors.As(err, &wait):
				assert.Nil(t, m)
				got["gone "+wait.MeetingID]++
			}
		}
		assert.Equal(t, map[string]int{"done " + good.ID: 1, "failed " + bad.ID: 1, "gone ": 1, "gone mtg_unknown": 1}, got)
	})
	t.Run("ends with its context, once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
			c := clientOf(srv)
			ids := make([]string, 10)
			for i := range ids {
				ids[i] = uploaded(t, c, strconv.Itoa(i)).ID
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			n := 0
			for m, err := range c.Meetings.WaitAll(ctx, slices.Values(ids), nil) {
				n++
				assert.Nil(t, m)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			}
			assert.Equal(t, 1, n)
		})
	})
	t.Run("stops when the loop does", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
			c := clientOf(srv)
			a, b := uploaded(t, c, "a"), uploaded(t, c, "b")
			_, err := srv.Advance(a.ID, minutes.StatusMinutesReady)
			require.NoError(t, err)
			for m, err := range c.Meetings.WaitAll(t.Context(), slices.Values([]string{b.ID, a.ID}), nil) {
				require.NoError(t, err)
				assert.Equal(t, a.ID, m.ID)
				break
			}
			synctest.Wait()
			n := len(srv.Requests())
			time.Sleep(time.Hour)
			assert.Len(t, srv.Requests(), n)
		})
	})
}

// A context that ends before all ids are read is told, though nothing that was
// read is waited for any more.
func TestWaitAllCutShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t)
		c := clientOf(srv)
		read, unread := uploaded(t, c, "Read"), uploaded(t, c, "Not read")
		_, err := c.Meetings.Wait(t.Context(), read.ID, nil)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ids := func(yield func(string) bool) {
			if yield(read.ID) {
				cancel()
				yield(unread.ID)
			}
		}
		var ended []string
		for m, err := range c.Meetings.WaitAll(ctx, ids, nil) {
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				ended = append(ended, "canceled")
				continue
			}
			ended = append(ended, m.ID)
		}
		assert.Equal(t, []string{read.ID, "canceled"}, ended)
	})
}

// An id that comes again is yielded once: when its meeting has ended meanwhile,
// while it is waited for, and while somebody else waits for it, too.
func TestWaitAllYieldsOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pause time.Duration // after the id, before the next
		other bool          // another wait was first
	}{
		"at once":                  {0, false},
		"still going":              {2 * time.Minute, false},
		"ended a moment ago":       {15*time.Minute + 40*time.Second, false},
		"ended long ago":           {time.Hour, false},
		"waited for by another":    {0, true},
		"another, and still going": {2 * time.Minute, true},
		"another, and both ended":  {time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
				c := clientOf(srv)
				m, last := uploaded(t, c, "Twice"), uploaded(t, c, "Last")
				var wg sync.WaitGroup
				if test.other {
					wg.Go(func() {
						_, err := c.Meetings.Wait(t.Context(), m.ID, nil)
						assert.NoError(t, err)
					})
					synctest.Wait()
				}
				var ids iter.Seq[string] = func(yield func(string) bool) {
					for _, id := range []string{m.ID, last.ID, m.ID, m.ID} {
						if !yield(id) {
							return
						}
						if id == m.ID {
							time.Sleep(test.pause)
						}
					}
				}
				yielded := map[string]int{}
				for m, err := range c.Meetings.WaitAll(t.Context(), ids, nil) {
					require.NoError(t, err)
					yielded[m.ID]++
				}
				wg.Wait()
				assert.Equal(t, map[string]int{m.ID: 1, last.ID: 1}, yielded)
			})
		})
	}
}

// An id that comes again is yielded once, also where its meeting ended while ids
// were read and nothing has been yielded since.
func TestWaitAllOfAnIDThatEndedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]time.Duration{"fresh": 15*time.Minute + 40*time.Second, "long ago": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
				c := clientOf(srv)
				m := uploaded(t, c, "Twice")
				var ids iter.Seq[string] = func(yield func(string) bool) {
					if yield(m.ID) {
						time.Sleep(pause)
						yield(m.ID)
					}
				}
				var yielded []string
				for m, err := range c.Meetings.WaitAll(t.Context(), ids, nil) {
					require.NoError(t, err)
					yielded = append(yielded, m.ID)
				}
				assert.Equal(t, []string{m.ID}, yielded)
			})
		})
	}
}

// A loop that takes its time misses nothing: what ended meanwhile is yielded, and
// where that was all, a context that ended meanwhile, too, is not told of.
func TestWaitAllWithASlowLoop(t *testing.T) {
	t.Parallel()
	for range 20 { // whether the end or the events are seen first is chance
		synctest.Test(t, func(t *testing.T) {
			srv := minutestest.NewServer(t)
			c := clientOf(srv)
			require.NoError(t, srv.Script(minutestest.Script{Title: "second", Stages: minutestest.Stages{Prepare: time.Minute}}))
			first, second := uploaded(t, c, "first"), uploaded(t, c, "second")
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			var yielded []string
			for m, err := range c.Meetings.WaitAll(ctx, slices.Values([]string{first.ID, second.ID}), nil) {
				require.NoError(t, err)
				yielded = append(yielded, m.ID)
				time.Sleep(15 * time.Minute)
			}
			assert.Equal(t, []string{first.ID, second.ID}, yielded)
		})
	}
}

// OnStatus of a WaitAll is told of the first look and of each change.
func TestWaitAllOnStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
		c := clientOf(srv)
		ids := []string{uploaded(t, c, "a").ID, uploaded(t, c, "b").ID}
		told := map[string][]minutes.Status{}
		o := &minutes.WaitOptions{OnStatus: func(m *minutes.Meeting) { told[m.ID] = append(told[m.ID], m.Status) }}
		for _, err := range c.Meetings.WaitAll(t.Context(), slices.Values(ids), o) {
			require.NoError(t, err)
		}
		all := []minutes.Status{"audio_uploaded", "transcribing", "generating_minutes", "minutes_ready"}
		assert.Equal(t, map[string][]minutes.Status{ids[0]: all, ids[1]: all}, told)
	})
}

// OnStatus of a WaitAll hears of each change once, also where a wait comes that
// has heard of nothing yet.
func TestWaitAllHearsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := minutestest.NewServer(t, minutestest.WithWorld(longStages()))
		require.NoError(t, srv.Script(minutestest.Script{Hold: minutes.StatusTranscribing}))
		c := clientOf(srv)
		m := uploaded(t, c, "Long")
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
		defer cancel()
		var all, one []minutes.Status
		var wg sync.WaitGroup
		wg.Go(func() {
			o := &minutes.WaitOptions{Interval: 8 * time.Minute, OnStatus: func(m *minutes.Meeting) { all = append(all, m.Status) }}
			for _, err := range c.Meetings.WaitAll(ctx, slices.Values([]string{m.ID}), o) {
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			}
		})
		time.Sleep(12 * time.Minute)
		_, err := c.Meetings.Wait(ctx, m.ID, &minutes.WaitOptions{OnStatus: func(m *minutes.Meeting) { one = append(one, m.Status) }})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		wg.Wait()
		synctest.Wait()
		assert.Equal(t, []minutes.Status{minutes.StatusTranscribing}, one)
		assert.Equal(t, []minutes.Status{minutes.StatusAudioUploaded, minutes.StatusTranscribing}, all)
	})
}

// Meetings that somebody else has created, as they end.
func ExampleMeetingsService_WaitAll() {
	srv := quick()
	defer srv.Close()
	client := srv.Client()
	ids := []string{created(client, "Weekly"), "mtg_unknown"}

	for meeting, err := range client.Meetings.WaitAll(context.Background(), slices.Values(ids), nil) {
		switch {
		case errors.Is(err, minutes.ErrUnauthenticated):
			return // it will not do better with the others
		case err != nil:
			wait, _ := errors.AsType[*minutes.WaitError](err)
			fmt.Println(wait.MeetingID, errors.Is(err, minutes.ErrNotFound))
		default:
			fmt.Println(meeting.Title, meeting.Status)
		}
	}
	// Unordered output:
	// Weekly minutes_ready
	// mtg_unknown true
}
